"""Rows that are run together: what fails is named, and costs the others nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from batches import Batches, Call, batches, run_compiled

import tgraph as tg


class Row(NamedTuple):
    name: str


ROWS = [Row(name) for name in "abcdefg"]


def table(run: Callable[[Sequence[Call]], list[Any]], size: int = 4) -> Callable[[Row], Any]:
    """The result of a row of `ROWS`, each of which stands for its name."""
    made = Batches(lambda row, _: Call(row.name.upper, []), size, run)
    items = [SimpleNamespace(function=table, callspec=_spec(row)) for row in ROWS]
    session = SimpleNamespace(items=items)

    def result(row: Row) -> Any:
        node = SimpleNamespace(callspec=_spec(row))
        return made.result(SimpleNamespace(node=node, function=table, session=session), row)

    return result


def _spec(row: Row) -> SimpleNamespace:
    return SimpleNamespace(params={"case": row})


def refusing(*bad: set[str]) -> Callable[[Sequence[Call]], list[Any]]:
    """Runs calls, but not where all of some names are among them."""

    def run(calls: Sequence[Call]) -> list[Any]:
        names = [call.function() for call in calls]
        ran.append("".join(names))
        if any(each <= set(names) for each in bad):
            raise RuntimeError(f"refused {''.join(names)}")
        return names

    ran: list[str] = []
    run.ran = ran  # type: ignore[attr-defined]
    return run


def test_neighbours_run_once() -> None:
    run = refusing()
    result = table(run)
    assert [result(row) for row in ROWS] == list("ABCDEFG")
    assert run.ran == ["ABCD", "EFG"]


def test_a_row_that_fails_alone_is_named() -> None:
    result = table(refusing({"C"}))
    assert [result(row) for row in ROWS if row.name != "c"] == list("ABDEFG")
    with pytest.raises(RuntimeError, match="refused C"):
        result(ROWS[2])


def test_rows_that_fail_together_only_fail_all() -> None:
    result = table(refusing({"A", "D"}))
    for row in ROWS[:4]:
        with pytest.raises(RuntimeError, match="refused ABCD"):
            result(row)
    assert result(ROWS[4]) == "E"


def test_a_batch_has_so_many_operations() -> None:
    rows = [Row("a"), Row("b,c"), Row("d,e,f"), Row("g")]
    assert list(batches(rows, 3)) == [rows[:2], rows[2:3], rows[3:]]


def test_results_are_those_of_each_function() -> None:
    calls = [Call(tg.exp, [tg.zeros(2)]), Call(tg.add, [tg.ones(3), tg.ones(3)])]
    first, second = run_compiled(calls)
    assert first.tolist() == [1, 1] and second.tolist() == [2, 2, 2]
