"""Every row of the table of operations, eager on a CUDA device, against the CPU's results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opcase import OpCase
from opcases import CASES
from test_ops import LAYOUTS, SMOOTH, Gradients, _strided, as_tuple, check_values, ids, tensors

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]


def moved(inputs: Any, device: Any) -> list[Any]:
    return [each.to(device) for each in inputs]


def compare(found: Any, expected: Any, device: Any, tolerance: float, label: str) -> None:
    """Dtypes, shapes and values as on the CPU; and that everything lies on the device."""
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected), label
    for number, (have, want) in enumerate(zip(found, expected, strict=True)):
        what = f"{label}, result {number}"
        assert have.device == device, what
        assert have.dtype is want.dtype, what
        assert have.shape == want.shape, what
        have, want = have.detach().cpu().numpy(), want.detach().numpy()
        check_values(have, want, tolerance, what)


def run_and_compare(case: OpCase, dtype: Any, device: Any) -> None:
    arrays = case.arrays(dtype)
    expected = case.function(*tensors(arrays))
    found = case.function(*moved(tensors(arrays), device))
    label = f"{case.name} of {[each.shape for each in arrays]} {dtype.name}"
    compare(found, expected, device, case.tolerance, label)


def few(case: OpCase) -> Iterator[tuple[OpCase, Any]]:
    """The row with its first and last dtype and the 16-bit floats, its other shapes with one."""
    halves = [each for each in case.dtypes if each in (tg.float16, tg.bfloat16)]
    for dtype in dict.fromkeys((case.dtypes[0], case.dtypes[-1], *halves)):
        yield case, dtype
    for shapes in case.more:
        yield case.with_shapes(shapes), case.dtypes[0]


def all_of(case: OpCase) -> Iterator[tuple[OpCase, Any]]:
    for dtype in case.dtypes:
        yield case, dtype
        for shapes in case.more:
            yield case.with_shapes(shapes), dtype


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_forward(case: OpCase, cuda: Any) -> None:
    for variant, dtype in few(case):
        run_and_compare(variant, dtype, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_forward_of_everything(case: OpCase, cuda: Any) -> None:
    for variant, dtype in all_of(case):
        run_and_compare(variant, dtype, cuda)
