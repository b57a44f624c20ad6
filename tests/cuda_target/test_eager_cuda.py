"""Every row of the table of operations, eager on a CUDA device, against the CPU's results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from opcase import OpCase
from opcases import CASES
from sampling import rotating
from test_ops import (
    DTYPES,
    LAYOUTS,
    SMOOTH,
    Gradients,
    as_tuple,
    check_values,
    ids,
    mixed,
    spaced,
    tensors,
    transposed,
    values,
)

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

# Units of the dtype's spacing: CUDA's functions are allowed more than the CPU's.
SLACK = 16
# Rows that make a tensor of a Python number, which lies on the CPU.
ON_THE_CPU = {"allclose", "equal"}


def compare(case: OpCase, found: Any, expected: Any, device: Any, label: str) -> None:
    """Dtypes, shapes and values as on the CPU; and everything lies on the device."""
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected), label
    wanted = tg.device("cpu") if case.name in ON_THE_CPU else device
    for number, (have, want) in enumerate(zip(found, expected, strict=True)):
        what = f"{label}, result {number}"
        assert have.device == wanted, what
        assert have.dtype is want.dtype, what
        assert have.shape == want.shape, what
        check_values(have.cpu().numpy(), want.numpy(), case.tolerance + SLACK, what)


def run_and_compare(case: OpCase, dtype: Any, device: Any) -> None:
    arrays = case.arrays(dtype)
    expected = case.function(*tensors(arrays))
    found = case.function(*[each.to(device) for each in tensors(arrays)])
    label = f"{case.name} of {[each.shape for each in arrays]} {dtype.name}"
    compare(case, found, expected, device, label)


def more(case: OpCase) -> Iterator[tuple[OpCase, Any]]:
    """The row with its last dtype and the 16-bit floats, its other shapes with the first."""
    halves = [each for each in case.dtypes if each in (tg.float16, tg.bfloat16)]
    for dtype in dict.fromkeys((case.dtypes[-1], *halves)):
        if dtype is not case.dtypes[0]:
            yield case, dtype
    for shapes in case.more:
        yield case.with_shapes(shapes), case.dtypes[0]


def every(case: OpCase) -> Iterator[tuple[OpCase, Any]]:
    for dtype in case.dtypes:
        yield case, dtype
        for shapes in case.more:
            yield case.with_shapes(shapes), dtype


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_forward(case: OpCase, cuda: Any) -> None:
    run_and_compare(case, case.dtypes[0], cuda)


# Types and shapes are the CPU's business too, where all rows have them: here a part.
@pytest.mark.parametrize("case", rotating(CASES, 10), ids=ids)
def test_forward_of_more(case: OpCase, cuda: Any) -> None:
    for variant, dtype in more(case):
        run_and_compare(variant, dtype, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("case", rotating(CASES, 3), ids=ids)
def test_forward_of_everything(case: OpCase, cuda: Any) -> None:
    for variant, dtype in every(case):
        run_and_compare(variant, dtype, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("case", rotating(CASES, 4), ids=ids)
def test_forward_on_another_device(case: OpCase, second_cuda: Any) -> None:
    """Than the current one."""
    for variant, dtype in ((case, case.dtypes[0]), *more(case)):
        run_and_compare(variant, dtype, second_cuda)


# -- derivatives -----------------------------------------------------------------------------


class OnDevice(Gradients):
    """A row's derivatives with every input on a device."""

    def __init__(self, case: OpCase, device: Any) -> None:
        super().__init__(case)
        self.device = device

    def function(self, *points: Any) -> tuple[Any, ...]:
        if not points[0].is_cuda:  # while the base class finds out about the results
            return super().function(*points)
        inputs: list[Any] = [each.to(self.device) for each in tensors(self.inputs)]
        for at, point in zip(self.moving, points, strict=True):
            inputs[at] = point
        results = as_tuple(self.case.function(*inputs))
        return tuple(each for each in results if each.dtype is tg.float64)

    def arguments(self) -> list[Any]:
        arrays = tensors([*self.points, *self.cotangents])
        return [each.to(self.device).requires_grad_() for each in arrays]

    def second(self, *arguments: Any) -> tuple[Any, ...]:
        weights = [each.to(self.device) for each in tensors(self.weights)]
        total = sum((g * w).sum() for g, w in zip(self.first(*arguments), weights, strict=True))
        if not total.requires_grad:
            return tuple(tg.zeros_like(each) for each in arguments)
        return tuple(tg.autograd.grad(total, arguments, materialize_grads=True, allow_unused=True))


def agree(found: Any, expected: Any, device: Any, tolerance: float, what: str) -> None:
    for have, want in zip(found, expected, strict=True):
        assert have.device == device, what
        check_values(have.detach().cpu().numpy(), want.detach().numpy(), tolerance, what)


# Gradients are made of what other rows compute: a part of them here, another in the long form.
@pytest.mark.parametrize("case", rotating(SMOOTH, 10), ids=ids)
def test_gradient(case: OpCase, cuda: Any) -> None:
    check_gradient(case, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("case", rotating(SMOOTH, 4), ids=ids)
def test_more_gradients(case: OpCase, cuda: Any) -> None:
    check_gradient(case, cuda)


def check_gradient(case: OpCase, cuda: Any) -> None:
    here, there = Gradients(case), OnDevice(case, cuda)
    expected, found = here.first(*here.arguments()), there.first(*there.arguments())
    agree(found, expected, cuda, 1e5, f"gradient of {case.name}")


# Every second row: what first gradients are made of is differentiated as any operation is.
@pytest.mark.slow
@pytest.mark.parametrize("case", rotating([case for case in SMOOTH if case.second], 4), ids=ids)
def test_second_gradient(case: OpCase, cuda: Any) -> None:
    here, there = Gradients(case), OnDevice(case, cuda)
    expected, found = here.second(*here.arguments()), there.second(*there.arguments())
    agree(found, expected, cuda, 1e6, f"second gradient of {case.name}")


# -- layouts ---------------------------------------------------------------------------------


def laid(tensor: Any, layout: Any, device: Any) -> Any:
    """A tensor on a device that lies in memory as the layout says."""
    there = tensor.to(device)
    if there.ndim == 0 or there.shape[0] == 0:
        return there
    if layout is spaced:
        wide = tg.zeros(*there.shape[:-1], 2 * there.shape[-1], dtype=there.dtype, device=device)
        wide[..., ::2] = there
        return wide[..., ::2]
    if layout is transposed:
        axes = tuple(range(there.ndim))[::-1]
        return there.permute(axes).contiguous().permute(axes)
    return there[:1].expand(*there.shape)


LAID = [case for case in CASES if case.layouts]


def run_laid(case: OpCase, dtype: Any, device: Any) -> None:
    free = [argument.dtype is None for argument in case.arguments]
    for layout in LAYOUTS:
        arrays = case.arrays(dtype)
        arrays = [layout(a) if f else a for a, f in zip(arrays, free, strict=True)]
        expected, inputs = case.function(*tensors(arrays)), tensors(arrays)
        pairs = zip(inputs, free, strict=True)
        found = case.function(*[laid(x, layout, device) if f else x.to(device) for x, f in pairs])
        compare(case, found, expected, device, f"{case.name}, {layout.__name__}, {dtype.name}")


@pytest.mark.parametrize("case", rotating(LAID, 10), ids=ids)
def test_layouts(case: OpCase, cuda: Any) -> None:
    run_laid(case, case.dtypes[0], cuda)


# Dtypes and layouts hardly meet: of both together a sample.
@pytest.mark.slow
@pytest.mark.parametrize("case", rotating(LAID, 7), ids=ids)
def test_layouts_of_every_dtype(case: OpCase, cuda: Any) -> None:
    for dtype in case.dtypes[1:]:
        run_laid(case, dtype, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("case", rotating([case for case in SMOOTH if case.layouts], 4), ids=ids)
def test_gradient_layouts(case: OpCase, cuda: Any) -> None:
    here, there = Gradients(case), OnDevice(case, cuda)
    expected = here.first(*here.arguments())
    for layout in (spaced, transposed):
        given = [laid(each, layout, cuda) for each in tensors([*there.points, *there.cotangents])]
        points = [each.detach().requires_grad_() for each in given[: len(there.points)]]
        found = there.first(*points, *given[len(points) :])
        agree(found, expected, cuda, 1e5, f"{case.name}, {layout.__name__}")


# -- promotion -------------------------------------------------------------------------------

PAIRS = list(itertools.product(DTYPES, DTYPES))


# Types of results are found before a device is asked, and all pairs are tested on the CPU.
@pytest.mark.parametrize(("dtype", "other"), rotating(PAIRS, 4), ids=str)
def test_promotion(dtype: Any, other: Any, cuda: Any) -> None:
    """Also of a tensor on the CPU without dimensions with one on the device."""
    for shapes in [((4,), (4,)), ((4,), ()), ((), (4,)), ((), ())]:
        x, y = tensors([values(dtype, shapes[0]), values(other, shapes[1])])
        expected, pairs = mixed(x, y), [(x.to(cuda), y.to(cuda))]
        pairs += [(x.to(cuda), y)] if not y.ndim else []
        pairs += [(x, y.to(cuda))] if not x.ndim else []
        for pair in pairs:
            for have, want in zip(mixed(*pair), expected, strict=True):
                assert have.dtype is want.dtype and have.device == cuda, (dtype, other, shapes)
                check_values(have.cpu().numpy(), want.numpy(), 4, f"{dtype} {other} {shapes}")
