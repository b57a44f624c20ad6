"""Malformed calls of all operations: who catches PyTorch's errors catches ours.

`python -m tools.conformance malformed --write tests/compat/data/malformed.txt`, where PyTorch is
installed, writes what PyTorch does with each, and where tgraph does something else.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.sampling import sampled
from tools.conformance.malformed import cases, difference, forms_of, ours, table

DATA = Path(__file__).parent / "data"
TABLE = table(DATA / "malformed.txt")
CASES = [(TABLE[key], record) for key, record in cases(DATA / "conformance.npz") if key in TABLE]
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_malformed_calls(part: int) -> None:
    wrong = []
    for line, record in sampled(CASES[part::PARTS], 4, part):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [ours(record, each)[0] for each in forms_of(record)]
        if (other := difference(line.theirs, found)) != line.ours:
            wrong.append(f"{line.key}: {other}, not {line.ours}")
    assert not wrong, "\n".join(wrong)
