"""Files that are written from the code say what the code says: pages of docs/, and the stubs."""

from __future__ import annotations

import re

import tgraph as tg
from tools import make_stubs, source_files
from tools.operations import found as tables

OLD = "docs/operations.md is out of date: run `make operations`"


def test_the_page_of_source_files_knows_every_file() -> None:
    """Of the three floors and of the tools, in its own words."""
    found = source_files.PAGE.read_text()
    assert found == source_files.page(), "run `python -m tools.source_files`"


def test_stubs_say_what_the_code_says() -> None:
    for path, text in make_stubs.stubs().items():
        assert path.read_text() == text, f"{path}: run `{make_stubs.COMMAND}`"


def test_every_public_name_is_in_the_stub() -> None:
    text = make_stubs.PACKAGE.with_suffix(".pyi").read_text()
    found = set(re.findall(r"(?: as |^def |^)(\w+)", text, re.MULTILINE))
    assert set(tg.__all__) <= found


def test_the_page_of_operations_knows_every_operation_and_flag() -> None:
    rows, cells, text = tables.all_rows(), tables.cells_of_page(), tables.PAGE.read_text()
    assert cells.keys() == rows.keys(), OLD
    assert all(f"`{name}`" in text for name in tables.unlisted()), OLD
    assert {name for name, each in cells.items() if tables.NO in each} == tables.WHY_NOT.keys(), OLD
    assert all(f"| {why} |" in text for why in tables.WHY_NOT.values()), OLD
    for name, own in rows.items():
        forms, *found = cells[name]
        told = dict(zip(tables.COLUMNS, found, strict=True))
        assert forms == tables.forms(name), (name, OLD)
        for flag, column in (("gradient", "gradient"), ("compiles", "compiled")):
            if tables.flagged(own, flag) and own[0] not in tables.CONVERSIONS:
                assert told[column] == tables.YES, (name, column, OLD)
        derived = [told[each] for each in ("double gradient", "forward mode", "vmap")]
        if told["gradient"] == tables.YES:  # what has a gradient has all that follows from rules
            assert tables.NO not in derived, name
