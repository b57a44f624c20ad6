"""Cases of PyTorch's own test databases, with what PyTorch gave for them; PyTorch is not needed.

`python -m tools.conformance sample --write tests/compat/data/conformance.npz`, where PyTorch is
installed, writes them. `make conformance` runs all cases and not only these.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance.replay import Record, replay
from tools.conformance.sample import read
from tools.conformance.values import outcome

RECORDS = list(read(Path(__file__).parent / "data" / "conformance.npz"))
PARTS = 20
"""How many tests the cases are divided among."""
OF_VALUES = {"tensor_split", "allclose", "equal", "item", "bincount", "narrow"}
"""Operations that give or take Python's values, which compiled code does not know."""
NOT_TRACED = {"LBFGS", "resize_", "nn.functional.one_hot"}
"""What a trace refuses, in some cases or in all: values decide, or memory is resized."""


def _is_refused(record: Record, text: str) -> bool:
    return record.name in NOT_TRACED and ("TraceError" in text or "in a traced function" in text)


def _differences(records: list[Record], compiled: bool) -> list[str]:
    found = [(each, outcome(replay, each, (compiled,))) for each in records]
    return [
        f"{each.name} {each.text}\n    {text}"
        for each, text in found
        if text and not (compiled and _is_refused(each, text))
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_what_pytorch_gave(part: int) -> None:
    """Values, gradients, state keys, names of modules, and which error is raised."""
    assert not (wrong := _differences(RECORDS[part::PARTS], False)), "\n".join(wrong)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_pytorch_gave_compiled(part: int) -> None:
    records = [
        each for each in RECORDS[part::PARTS]
        if "error" not in each.wanted and each.name not in OF_VALUES
    ]  # fmt: skip
    assert not (wrong := _differences(records, True)), "\n".join(wrong)


def test_what_differs_is_few_and_has_its_reason() -> None:
    """In docs/conformance.md, which a run of all cases wrote."""
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    counts = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count("|") == 7]
    whole, of = (sum(int(row[at]) for row in counts[2:]) for at in (2, 1))
    assert of > 800 and whole / of > 0.95
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == of - whole and all(row[-1].strip(" |") for row in rows)


def test_a_difference_is_told() -> None:
    """The comparison is not one that everything passes."""
    record = next(each for each in RECORDS if each.name == "Linear" and each.wanted.get("result"))
    result = record.wanted["result"]
    other = record.wanted | {"result": result._replace(values=result.values + 1e-5)}
    assert "values: differs by up to 1." in outcome(replay, record._replace(wanted=other), (False,))
