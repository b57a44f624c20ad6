"""Every elementwise operation in plans of eager mode, and its gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from eager_tools import Counted, same
from opcase import OpCase
from opcases import CASES
from test_ops import Gradients, as_tuple, tensors

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

SLACK = 16  # units of the dtype's spacing, as for eager code on a device
# A weight for each channel is a view of another shape.
ROWS = [case for case in CASES if case.elementwise and case.name != "prelu"]
PER_KERNEL = 30
CHUNKS = [ROWS[at : at + PER_KERNEL] for at in range(0, len(ROWS), PER_KERNEL)]


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def chunk_id(chunk: Sequence[OpCase]) -> str:
    return chunk[0].name.replace(" ", "_")


def all_of(cases: Sequence[OpCase], inputs: Sequence[Sequence[Any]]) -> Callable[..., Any]:
    """One function that does what all the rows do with inputs as these, one behind another."""
    counts = [len(each) for each in inputs]

    def rows(*given: Any) -> list[Any]:
        rest = iter(given)
        found = []
        for case, count in zip(cases, counts, strict=True):
            results = as_tuple(case.function(*itertools.islice(rest, count)))
            found += [each.clone() for each in results]  # some are inputs, or views of them
        return found

    return rows


# The other types differ in how numbers are read and written, which other tables have too.
@pytest.mark.parametrize(
    "kind",
    ["first", "float16", *(pytest.param(k, marks=pytest.mark.slow) for k in ("last", "bfloat16"))],
)
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
    flat = list(itertools.chain.from_iterable(inputs))
    there = [each.to(cuda) for each in flat]
    function = all_of(cases, inputs)
    planned = tg.fused(function)
    planned(*there)
    counted.clear()
    found = planned(*there)
    assert counted.kernels and counted.operations == []
    names = [case.name for case, row in zip(cases, inputs) for _ in as_tuple(case.function(*row))]
    tolerance = max(case.tolerance for case in cases) + SLACK
    for name, have, want in zip(names, found, function(*flat), strict=True):
        same(have, want, tolerance, name)


SMOOTH = [
    [case for case in chunk if case.gradient and case.second]
    for chunk in CHUNKS
    if any(case.gradient and case.second for case in chunk)
]


@pytest.mark.parametrize("chunk", SMOOTH, ids=chunk_id)
def test_gradients_of_every_row(cuda: Any, counted: Counted, chunk: Sequence[OpCase]) -> None:
    """The first and the second: of one function, and so of one recorded step each."""
    rows = [Gradients(case) for case in chunk]

    def gradients(function: Callable[..., Any], device: Any) -> list[Any]:
        inputs, points, cotangents = [], [], []
        for row in rows:
            given = [each.to(device) for each in tensors(row.inputs)]
            for at in row.moving:
                points.append(given[at].requires_grad_())
            inputs += given
            cotangents += [each.to(device) for each in tensors(row.cotangents)]
        results = [each for each in function(*inputs) if each.dtype is tg.float64]
        pairs = zip(results, cotangents, strict=True)
        kept = [pair for pair in pairs if pair[0].requires_grad]
        results, cotangents = [each for each, _ in kept], [each for _, each in kept]
        options: Any = {"materialize_grads": True, "allow_unused": True}
        first = tg.autograd.grad(results, points, cotangents, create_graph=True, **options)
        total: Any = sum((each * each).sum() for each in first)
        if not total.requires_grad:
            return list(first)  # linear functions
        return [*first, *tg.autograd.grad(total, points, **options)]

    function = all_of(chunk, [row.inputs for row in rows])
    expected = gradients(function, tg.device("cpu"))
    planned = tg.fused(function)
    gradients(planned, cuda)
    counted.clear()
    found = gradients(planned, cuda)
    assert counted.kernels
    names = [case.name for case, row in zip(chunk, rows, strict=True) for _ in row.moving]
    names *= len(found) // len(names)
    for name, have, want in zip(names, found, expected, strict=True):
        same(have, want, 1e6, name)
