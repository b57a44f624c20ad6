"""The column "fused" of docs/operations.md, which compiling the rows decides."""

from __future__ import annotations

import pytest
from sampling import rotating

from tgraph.core.planned import Planned
from tools.operations import found as tables

OLD = "docs/operations.md is out of date: run `make operations`"


def test_plans_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells that the compiler decides; rows' own tests hold the others.

    Eager mode, which runs some rows before, compiles no plans of its own meanwhile.
    """
    monkeypatch.setattr(Planned, "_plan", lambda *args: None)
    cells, rows, wrong = tables.cells_of_page(), tables.all_rows(), []
    for name in rotating(sorted(rows), 10):  # each row is compiled for two targets
        told = dict(zip(tables.COLUMNS, cells[name][1:], strict=True))["fused"]
        found = tables.fused_cell(*tables.fused(name, rows[name][0]))
        if found != told:
            wrong.append(f"{name}: {found}, and the page says {told}")
    assert not wrong, (OLD, *wrong)
