"""Complex numbers on a CUDA device, eager and compiled, against the CPU's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from complex_cases import CASES, ComplexCase
from sampling import rotating
from test_complex import DTYPES, SMOOTH, assert_near, first_and_second, name_of, of
from test_eager_cuda import laid
from test_ops import spaced, transposed

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]


@pytest.mark.parametrize("case", rotating(CASES, 2), ids=name_of)
def test_eager_rows_are_those_of_the_cpu(case: ComplexCase, cuda: Any) -> None:
    for dtype in DTYPES:
        tensors = [tg.from_numpy(each) for each in case.arrays(dtype)]
        wanted = of(case)(*tensors).numpy()
        for layout in (spaced, transposed):
            with cuda:
                found = of(case)(*(laid(each, layout, cuda) for each in tensors))
            assert found.device == cuda
            assert_near(found.cpu().numpy(), wanted, 64, f"{case.name}, {layout.__name__}")


@pytest.mark.parametrize("case", rotating(SMOOTH, 3), ids=name_of)
def test_eager_gradients_are_those_of_the_cpu(case: ComplexCase, cuda: Any) -> None:
    def derivatives(device: Any) -> list[Any]:
        with device:
            leaves = [tg.tensor(each, requires_grad=True) for each in case.arrays()]
            return first_and_second(tg, of(case), leaves)

    for found, wanted in zip(derivatives(cuda), derivatives(tg.device("cpu")), strict=True):
        assert_near(found, wanted, 1000)


def test_quotients_by_zero_infinity_and_large_numbers(cuda: Any) -> None:
    """CuPy's own division makes NaN of them. Subnormal numbers, which it makes zero, are none."""
    for dtype in DTYPES:
        large = float(np.finfo(dtype).max) ** 0.8
        parts = [0.0, -0.0, 0.5, -2.0, large, np.inf, -np.inf, np.nan]
        grid = np.array([complex(re, im) for re in parts for im in parts], dtype)
        x, y = tg.from_numpy(grid), tg.from_numpy(grid[::-1].copy())
        for function in (lambda x, y: x / y, lambda x, y: x.reciprocal()):
            wanted, found = function(x, y), function(x.to(cuda), y.to(cuda)).cpu()
            pairs = zip(*(tg.view_as_real(each).numpy().T for each in (found, wanted)), strict=True)
            for have, want in pairs:
                np.testing.assert_allclose(have, want, rtol=8 * np.finfo(dtype).eps)
                zeros = want == 0
                np.testing.assert_array_equal(np.signbit(have)[zeros], np.signbit(want)[zeros])


def test_compiled_rows_of_the_table_are_those_of_the_cpu(cuda: Any) -> None:
    """In one program, eager code on the CPU beside it."""

    def every(*tensors: Any) -> list[Any]:
        given = iter(tensors)
        return [case.function(tg, *(next(given) for _ in case.shapes)) for case in CASES]

    arrays = [array for case in CASES for array in case.arrays()]
    wanted = every(*map(tg.tensor, arrays))
    compiled = tg.compile(every)
    for _ in range(3):  # launched, captured, replayed
        with cuda:
            found = compiled(*map(tg.tensor, arrays))
        for case, ours, theirs in zip(CASES, found, wanted, strict=True):
            assert ours.device == cuda
            assert_near(ours.cpu().numpy(), theirs.numpy(), 450, case.name)


def test_gradients_are_those_of_the_cpu(cuda: Any) -> None:
    def gradients(place: Callable[[Any], Any]) -> list[Any]:
        z = place(tg.tensor([1 + 2j, 3 - 1j, 0.5j], dtype=tg.complex128)).requires_grad_()
        x = place(tg.tensor([0.5, -1.0, 2.0], dtype=tg.float64)).requires_grad_()
        loss = tg.compile(lambda z, x: ((z * x).exp() / (z + 2)).abs().sum())
        loss(z, x).backward()
        return [z.grad.cpu().numpy(), x.grad.cpu().numpy()]

    for ours, theirs in zip(
        gradients(lambda each: each.to(cuda)), gradients(lambda each: each), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_eager_code_writes_parts(cuda: Any) -> None:
    z = tg.tensor([1 + 2j, 3 - 1j]).to(cuda)
    z.real.add_(1)
    assert z.cpu().tolist() == [2 + 2j, 4 - 1j]
    assert (z.real.cpu().tolist(), z.imag.cpu().tolist()) == ([2.0, 4.0], [2.0, -1.0])
