"""Malformed calls of all operations: who catches PyTorch's errors catches ours.

`python -m tools.conformance malformed --write tests/compat/data/malformed.txt`, where PyTorch is
installed, writes what PyTorch does with each, and where tgraph does something else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tgraph as tg
from tgraph.core.trace_state import TraceError
from tools.conformance.malformed import cases, difference, forms_of, ours, table

DATA = Path(__file__).parent / "data"
TABLE = table(DATA / "malformed.txt")
CASES = [(TABLE[key], record) for key, record in cases(DATA / "conformance.npz") if key in TABLE]
PARTS = 50
"""How many tests the cases are divided among."""
REASONS = {
    "AT": "PyTorch's Python code asks what is no tensor for an attribute",
    "R=": "types that differ are promoted; booleans and complex numbers count as others do",
    "N=": "PyTorch has no kernel for the type, and the meaning is plain",
    "T=": "a number in the place of a tensor, a list in that of numbers, None in that of a default",
    "=R": "PyTorch reads memory of a tensor on meta, or of places that are not there; what has no "
    "meaning is refused, as windows of negative sizes and booleans that are subtracted",
    "=T": "PyTorch's Python code takes anything for what it does not use or asks for truth, and "
    "fractions for sizes",
    "=N": "values of a tensor on meta are asked for; complex numbers where none are meant",
    "=I": "positions and dimensions that are not used are looked at, too",
    "=V": "ranges of numbers that are not used are looked at, too",
    "==": "PyTorch drops a fraction or an imaginary part, or has other shapes without elements",
    "ST": "PyTorch asserts it",
    "ZR": "PyTorch divides by it",
    **dict.fromkeys(
        ("VT", "RT", "IR", "IT", "TR", "NR", "RI", "TV", "VR", "RV", "TN", "NT", "IV", "TI", "LR"),
        "several things are wrong, and another one is seen first: types, then dimensions, then "
        "values",
    ),
}  # fmt: skip
"""Of a letter of PyTorch's and one of ours, why; "=" stands for what is taken."""
MOST = 0.08
"""Which share of the calls differs at most."""
MEMORY = {"resize_", "resize_as_"}
"""Operations that a trace refuses whatever they are given: it has no memory to resize."""
EMPTY = {
    "put", "index_put", "index_add", "index_copy", "index_fill", "scatter", "scatter_add",
    "scatter_reduce",
}  # fmt: skip
"""Operations that compiled code does not run where the result has no elements."""
VALUES = {"istft", "index_select", "nn.functional.one_hot", "nn.functional.embedding_bag",
          "repeat_interleave"}  # fmt: skip
"""Operations of which eager code looks at values before it computes, compiled code at positions:
another error comes, or none where no position is outside."""


@pytest.mark.parametrize("part", range(PARTS))
def test_malformed_calls(part: int) -> None:
    wrong = []
    for line, record in CASES[part::PARTS]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [ours(record, each)[0] for each in forms_of(record)]
        if (other := difference(line.theirs, found)) != line.ours:
            wrong.append(f"{line.key}: {other}, not {line.ours}")
    assert not wrong, "\n".join(wrong)


def test_what_differs_is_little_and_has_its_reason() -> None:
    pairs = [
        "".join("=" if each.islower() else each for each in pair)
        for line in TABLE.values()
        for pair in zip(line.theirs, line.ours)
        if pair[1] not in ". "
    ]
    assert set(pairs) == set(REASONS)
    assert len(pairs) < MOST * sum(len(line.theirs) for line in TABLE.values())


@pytest.mark.parametrize("part", range(PARTS))
def test_malformed_calls_compiled(part: int) -> None:
    """They raise what they raise eagerly, or give the same numbers."""
    calls = [(record, each) for _, record in CASES[part::PARTS] for each in forms_of(record)]
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record, form in calls:
            eager, compiled = ours(record, form), ours(record, form, compiled=True)
            if record.name in MEMORY or isinstance(compiled[1], TraceError):
                continue
            may_differ = record.name in VALUES or (
                record.name in EMPTY and "without elements" in form.text
            )
            if eager[0][0] != compiled[0][0] and not may_differ:
                wrong.append(f"{record.name} {form.text}: {eager}, compiled {compiled}")
            elif eager[0].islower() and compiled[0].islower():
                unlike = _unlike(eager[1], compiled[1], "float16" in form.text)
                wrong += [f"{record.name} {form.text}: {each}" for each in unlike]
    assert not wrong, "\n".join(wrong)


def _unlike(one: Any, other: Any, of_half: bool) -> Iterator[str]:
    """Which tensors of results are not close: compiled code rounds to half types less often."""
    if isinstance(one, (list, tuple)):
        for pair in zip(one, other, strict=True):
            yield from _unlike(*pair, of_half)
    elif isinstance(one, tg.Tensor):
        loose = (
            {"rtol": 1e-2, "atol": 1e-2}
            if of_half or one.dtype.itemsize < 4
            else {"rtol": 1e-4, "atol": 1e-5}
        )
        try:
            tg.testing.assert_close(other, one, equal_nan=True, **loose)
        except AssertionError as error:
            yield str(error)
