"""Every elementwise operation in a fused function, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fused_tools import Counted, same
from opcase import OpCase
from opcases import CASES
from test_ops import Gradients, as_tuple, tensors

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

SLACK = 16  # units of the dtype's spacing, as for eager code on a device
# A weight for each channel is a view of another shape.
ROWS = [case for case in CASES if case.elementwise and case.name != "prelu"]
PER_KERNEL = 10
CHUNKS = [ROWS[at : at + PER_KERNEL] for at in range(0, len(ROWS), PER_KERNEL)]


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def chunk_id(chunk: Sequence[OpCase]) -> str:
    return chunk[0].name.replace(" ", "_")


def all_of(cases: Sequence[OpCase]) -> Callable[..., Any]:
    """One function that does what all the rows do."""

    def rows(inputs: Sequence[Sequence[Any]]) -> list[Any]:
        return [case.function(*each) for case, each in zip(cases, inputs, strict=True)]

    return rows


@pytest.mark.parametrize("kind", ["first", "last", "float16", "bfloat16"])
@pytest.mark.parametrize("chunk", CHUNKS, ids=chunk_id)
def test_every_row(cuda: Any, counted: Counted, chunk: Sequence[OpCase], kind: str) -> None:
    picked = {"first": 0, "last": -1}
    if kind in picked:
        pairs = [(case, case.dtypes[picked[kind]]) for case in chunk]
    else:
        half = getattr(tg, kind)
        pairs = [(case, half) for case in chunk if half in case.dtypes]
    if not pairs:
        return
    cases = [case for case, _ in pairs]
    inputs = [tensors(case.arrays(dtype)) for case, dtype in pairs]
    there = [[each.to(cuda) for each in row] for row in inputs]
    counted.clear()
    found = tg.fused(all_of(cases))(there)
    assert counted.operations == []
    for case, have, want in zip(cases, found, all_of(cases)(inputs), strict=True):
        same(have, want, case.tolerance + SLACK, case.name)


SMOOTH = [
    [case for case in chunk if case.gradient and case.second]
    for chunk in CHUNKS
    if any(case.gradient and case.second for case in chunk)
]


@pytest.mark.parametrize("chunk", SMOOTH, ids=chunk_id)
def test_gradients_of_every_row(cuda: Any, counted: Counted, chunk: Sequence[OpCase]) -> None:
    """The first and the second, each by one kernel for each shape of results."""
    rows = [Gradients(case) for case in chunk]

    def gradients(function: Callable[..., Any], device: Any) -> list[Any]:
        inputs, points, cotangents = [], [], []
        for row in rows:
            given = [each.to(device) for each in tensors(row.inputs)]
            for at in row.moving:
                points.append(given[at].requires_grad_())
            inputs.append(given)
            cotangents += [each.to(device) for each in tensors(row.cotangents)]
        results = [
            each
            for result in function(inputs)
            for each in as_tuple(result)
            if each.dtype is tg.float64
        ]
        pairs = zip(results, cotangents, strict=True)
        kept = [pair for pair in pairs if pair[0].requires_grad]
        results, cotangents = [each for each, _ in kept], [each for _, each in kept]
        options: Any = {"materialize_grads": True, "allow_unused": True}
        first = tg.autograd.grad(results, points, cotangents, create_graph=True, **options)
        total: Any = sum((each * each).sum() for each in first)
        if not total.requires_grad:
            return list(first)  # linear functions
        return [*first, *tg.autograd.grad(total, points, **options)]

    function = all_of(chunk)
    expected = gradients(function, tg.device("cpu"))
    found = gradients(tg.fused(function), cuda)
    names = [case.name for case, row in zip(chunk, rows, strict=True) for _ in row.moving]
    wanted = {"tg_rows", "tg_rows_backward"}
    wanted |= {"tg_rows_backward_backward"} if len(found) > len(names) else set()
    assert wanted <= set(counted.kernels)
    names *= len(found) // len(names)
    for name, have, want in zip(names, found, expected, strict=True):
        same(have, want, 1e6, name)
