"""Complex numbers: values, compiled code, gradients, and what PyTorch has of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from autograd.finite_differences import check_gradients
from complex_cases import CASES, ComplexCase

import tgraph as tg

Array = np.ndarray[Any, Any]
SMOOTH = [case for case in CASES if case.gradient]
DTYPES = [np.complex64, np.complex128]


def name_of(value: Any) -> str:
    return value.name if isinstance(value, ComplexCase) else getattr(value, "__name__", str(value))


def assert_near(found: Array, wanted: Array, ulps: float = 16) -> None:
    """Equal to within some units in the last place of each number's size, or of the largest."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if found.dtype.kind == "b":
        np.testing.assert_array_equal(found, wanted)
        return
    size = np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, atol=ulps * np.finfo(found.dtype).eps * size, rtol=0)


def of(case: ComplexCase, T: Any = tg) -> Callable[..., Any]:
    return lambda *tensors: case.function(T, *tensors)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_are_numpy_s(case: ComplexCase, dtype: Any) -> None:
    arrays = case.arrays(dtype)
    eager = of(case)(*map(tg.tensor, arrays)).numpy()
    wide = np.asarray(case.reference(*(each.astype(np.complex128) for each in arrays)))
    narrow = {"c": dtype, "f": dtype(0).real.dtype}.get(wide.dtype.kind, wide.dtype)
    assert_near(eager, wide.astype(narrow), 64)
    assert_near(tg.compile(of(case))(*map(tg.tensor, arrays)).numpy(), eager, 64)


def strided(array: Array) -> Any:
    """A tensor with gaps between its elements and its rows in another order."""
    spread = np.zeros((*array.T.shape, 3), array.dtype)
    spread[..., 1] = array.T
    return tg.from_numpy(spread[..., 1].T)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_strided_operands(case: ComplexCase) -> None:
    arrays = case.arrays(np.complex128, 1)
    wanted = of(case)(*map(tg.tensor, arrays)).numpy()
    given = list(map(strided, arrays))
    assert_near(of(case)(*given).numpy(), wanted)
    assert_near(tg.compile(of(case))(*given).numpy(), wanted, 64)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
def test_without_dimensions_or_elements(shape: tuple[int, ...]) -> None:
    rows = [case for case in CASES if case.elementwise]
    operands = np.full(shape, 0.5 - 0.25j)

    def every(*tensors: Any) -> list[Any]:
        return [of(case)(*tensors[: len(case.shapes)]) for case in rows]

    tensors = [tg.tensor(operands), tg.tensor(operands)]
    for found, wanted in zip(tg.compile(every)(*tensors), every(*tensors), strict=True):
        assert found.shape == shape
        assert_near(found.numpy(), wanted.numpy(), 64)


# --- gradients -----------------------------------------------------------------------------------


def in_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the parts of its operands, giving the parts of its result."""

    def of_parts(*parts: Any) -> Any:
        result = function(*map(tg.view_as_complex, parts))
        return tg.view_as_real(result) if result.is_complex() else result

    return of_parts


@pytest.mark.parametrize("case", SMOOTH, ids=name_of)
def test_gradients_are_those_of_real_functions(case: ComplexCase) -> None:
    """What backward gives for z is dL/dRe(z) + i dL/dIm(z): so are gradients of its parts."""
    arrays = [np.stack([each.real, each.imag], -1) for each in case.arrays()]
    check_gradients(in_parts(of(case)), *arrays, tolerance=2e-5)


@pytest.mark.parametrize("case", SMOOTH, ids=name_of)
def test_compiled_gradients_are_eager_ones(case: ComplexCase) -> None:
    def derivatives(function: Callable[..., Any]) -> list[Any]:
        leaves = [tg.tensor(each, requires_grad=True) for each in case.arrays()]
        return first_and_second(tg, function, leaves)

    compiled = derivatives(tg.compile(of(case)))
    for found, wanted in zip(compiled, derivatives(of(case)), strict=True):
        assert_near(found, wanted, 1000)


def first_and_second(T: Any, function: Callable[..., Any], leaves: Sequence[Any]) -> list[Array]:
    """Gradients of a loss with respect to the leaves, and those of a loss of these."""
    first = T.autograd.grad(loss_of(T, function(*leaves)), leaves, create_graph=True)
    second = [None] * len(leaves)
    connected = [each for each in first if each.requires_grad]
    if connected:
        total = sum(loss_of(T, each) for each in connected)
        second = T.autograd.grad(total, leaves, allow_unused=True)
    return [each.detach().resolve_conj().numpy() if T is not tg else each.detach().numpy()
            for each in (*first, *second) if each is not None]  # fmt: skip


def loss_of(T: Any, result: Any) -> Any:
    """A real number that hangs on both parts of every element."""
    weights = T.arange(1, result.numel() + 1, dtype=T.float64).reshape(result.shape)
    parts = (result.real, result.imag) if result.is_complex() else (result, result)
    return (parts[0] * weights).sum() + (parts[1] * weights * weights).sum()


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_and_gradients_are_pytorch_s(case: ComplexCase) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    arrays = case.arrays()
    ours, theirs = ([T.tensor(each, requires_grad=case.gradient) for each in arrays]
                    for T in (tg, torch))  # fmt: skip
    found, wanted = of(case)(*ours), of(case, torch)(*theirs)
    assert_near(found.detach().numpy(), wanted.detach().resolve_conj().numpy(), 64)
    if case.gradient:
        found, wanted = (first_and_second(T, of(case, T), leaves)
                         for T, leaves in ((tg, ours), (torch, theirs)))  # fmt: skip
        for ours_, theirs_ in zip(found, wanted, strict=True):
            assert_near(ours_, theirs_, 4000)
