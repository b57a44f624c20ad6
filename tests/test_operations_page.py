"""docs/operations.md is what the tables of operations say; `make operations` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sampling import sampled

from tools.operations import found as tables

PAGE = Path(__file__).parent.parent / "docs" / "operations.md"
OLD = "docs/operations.md is out of date: run `make operations`"
ROWS = {name: rows for family in tables.operations().values() for name, rows in family.items()}


def page() -> dict[str, tuple[str, ...]]:
    """Operation -> the cells behind its names."""
    lines = [each for each in PAGE.read_text().splitlines() if each.startswith("| `")]
    found = {}
    for line in lines:
        names, *cells = (each.strip() for each in line.strip("|").split(" | "))
        if len(cells) == len(tables.COLUMNS) + 1:
            found[re.findall("`(.*?)`", names)[0]] = tuple(cells)
    return found


def test_the_page_knows_every_operation_and_flag() -> None:
    cells = page()
    assert cells.keys() == ROWS.keys(), OLD
    text = PAGE.read_text()
    assert all(f"`{name}`" in text for name in tables.unlisted()), OLD
    assert {name for name, each in cells.items() if tables.NO in each} == tables.WHY_NOT.keys(), OLD
    assert all(f"| {why} |" in text for why in tables.WHY_NOT.values()), OLD
    for name, rows in ROWS.items():
        forms, *found = cells[name]
        told = dict(zip(tables.COLUMNS, found, strict=True))
        assert forms == tables.forms(name), (name, OLD)
        for flag, column in (("gradient", "gradient"), ("compiles", "compiled")):
            if tables.flagged(rows, flag) and rows[0] not in tables.CONVERSIONS:
                assert told[column] == tables.YES, (name, column, OLD)
        derived = [told[each] for each in ("double gradient", "forward mode", "vmap")]
        if told["gradient"] == tables.YES:  # what has a gradient has all that follows from rules
            assert tables.NO not in derived, name


@pytest.mark.parametrize("name", sampled(sorted(ROWS), 12))
def test_plans_are_found_again(name: str) -> None:
    """The cells that the compiler decides; rows' own tests hold the others."""
    told = dict(zip(tables.COLUMNS, page()[name][1:], strict=True))
    assert told["fused"] == tables.fused_cell(*tables.fused(name, ROWS[name][0])), OLD
