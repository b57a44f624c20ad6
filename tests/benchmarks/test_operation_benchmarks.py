"""The benchmark of operations: its table is whole, wrong results are told, offenders listed."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sampling import rotating

import tgraph as tg
from benchmarks import (
    chart,
    compiled,
    eager,
    eager_worker,
    overheads,
    pairs,
    scaling,
    small_calls,
    table,
)
from benchmarks.operations import BY_NAME, OPERATIONS, SIZES, Operation
from benchmarks.pairs import Pair


def results(name: str, compile_it: bool = False) -> list[np.ndarray]:
    call = BY_NAME[name].call(tg, "small", tg.compile if compile_it else lambda f: f)
    found = call()
    return [each.detach().numpy() for each in (found if isinstance(found, tuple) else (found,))]


def test_there_are_forty_operations_and_networks_beside_them() -> None:
    assert len(BY_NAME) == len(OPERATIONS) >= 40
    assert all(len(operation.sizes) == len(SIZES) for operation in OPERATIONS)


@pytest.mark.parametrize("name", rotating([operation.name for operation in OPERATIONS], 3))
def test_every_operation_gives_the_same_eager_and_compiled(name: str) -> None:
    pairs.require_equal(BY_NAME[name], results(name, True), results(name))


def test_small_calls_run() -> None:
    rows = small_calls.rows()
    assert len({row.name for row in rows}) == len(rows) > 100
    for row in rotating(rows, 3):
        small_calls.batch(row, "tgraph")(1)


def test_other_results_or_shapes_are_told() -> None:
    exact, drawn = BY_NAME["add"], BY_NAME["randn"]
    with pytest.raises(ValueError, match=r"different results: off by 1\.0e\+00"):
        pairs.require_equal(exact, [np.zeros(2)], [np.ones(2)])
    pairs.require_equal(drawn, [np.zeros(2)], [np.ones(2)])
    with pytest.raises(ValueError, match="different results"):
        pairs.require_equal(drawn, [np.zeros(2)], [np.ones(3)])


def test_two_processes_take_turns_and_a_failure_is_told(tmp_path: Path) -> None:
    how = pairs.How(rounds=2, seconds=0.001, realtime=False)
    missing = Operation("nothing", lambda random: {}, ((), (), ()), lambda library: None)
    running = []
    try:
        for name in ("tgraph_compiled", "tgraph"):
            running.append(pairs.started(name, 1, tmp_path))
        chosen = [BY_NAME["add"], missing]
        found = list(pairs.compare(running, chosen, ["small"], how, tmp_path, lambda text: None))
    finally:
        for process in running:
            process.stop()
    assert [len(found[0].ours), len(found[0].theirs)] == [2, 2] and found[0].ratio > 0
    assert "KeyError: 'nothing'" in found[1].error


def test_a_compiled_worker_compiles() -> None:
    worker = eager_worker.Worker("tgraph_compiled", tg.get_num_threads())
    assert worker.compiled is tg.compile
    assert worker.library is tg


def test_rows_grow_as_far_as_they_allow() -> None:
    def sizes(name: str, elements: int) -> list[tuple[int, ...]]:
        return [each.shape for each in table.grown(table.ROWS[name], elements).arguments]

    assert sizes("add", 0) == [each.shape for each in table.ROWS["add"].arguments]
    (whole, row, column) = (*sizes("add", 1 << 14), (1,))[:3]
    assert np.prod(whole) >= 1 << 14 and np.broadcast_shapes(whole, row, column) == whole
    a, b = sizes("matmul", 1 << 12)
    assert a[-1] == b[-2] and max(np.prod(a), np.prod(b)) >= 1 << 12
    assert set(table.NOT_COMPILED).isdisjoint(table.ROWS)


def test_rows_are_measured_and_told_of() -> None:
    how = table.How(rounds=2, seconds=1e-5, most=3, pause=0.0)
    rows = list(table.compare(["add", "positive"], ["small", "middle"], how))
    assert [(row.operation, row.size) for row in rows[:2]] == [("add", "small"), ("add", "middle")]
    assert [row.computes for row in rows] == [row.operation == "add" for row in rows]
    assert all(row.ratio > 0 for row in rows)
    slow = table.Row("add", "small", (3e-6,), (1e-6,))
    still = table.Row("positive", "small", (9e-7,), (3e-7,), computes=False)
    text = "\n".join(compiled.table_parts([slow, still]))
    assert "in 1 of 1 rows at a size" in text and "- add, small: 3.00" in text
    assert (
        "in 1 of 1 such" in text and "| positive | small | 0.90 µs | 0.30 µs | 3.00 | no |" in text
    )


def test_summaries_and_offenders() -> None:
    fast = Pair("add", "small", (1e-6, 1e-6), (2e-6, 2e-6))
    slow = Pair("mul", "small", (4e-6, 4e-6), (2e-6, 2e-6))
    failed = Pair("exp", "small", error="no")
    found = [fast, slow, failed]
    assert compiled.offenders(found) == [slow]
    text = eager.summary(found, "small")
    assert "PyTorch's is 1.00; tgraph is no slower in 1 of 2 rows" in text
    assert eager.faults(found) == ["## Faults\n\n- exp, small: no"]
    listed = pairs.listed(found, ["ours", "theirs"])
    assert (
        "| mul | 4.00 µs | 2.00 µs | 2.00 |" in listed and "| exp | failed | failed | – |" in listed
    )
    assert "nothing was measured" in eager.summary(found, "large")


def test_the_command_line_names_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert eager.parsed(None, ["add"]).sizes == "small,large"
    with pytest.raises(SystemExit):
        eager.parsed(None, ["nothing"])
    assert "unknown: nothing; there are add, mul" in capsys.readouterr().err


def test_overheads_are_measured_in_fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overheads, "SMALL", ("call_one",))
    monkeypatch.setattr(overheads, "TRAINING", ())
    options = overheads.parsed(["--repetitions", "1", "--threads", "1"])
    found = list(overheads.rows(options, lambda text: None))
    told = [line[0] for line in found]
    assert told[:2] == [
        "`call_one`: first call, empty caches",
        "`call_one`: first call of a second process",
    ]
    assert told[-1] == "`import tgraph`" and len(told) == 5
    assert all(len(line) == 4 for line in found)


def test_times_over_elements_are_drawn(tmp_path: Path) -> None:
    options = scaling.parsed(
        ["softmax", "--contenders", "tgraph,absent", "--most", "10000", "--seconds", "0.001"]
    )
    lines = scaling.measured("softmax", options, lambda text: None)
    assert list(lines) == ["tgraph, 1 thread", "tgraph, 2 threads"]
    assert [elements for elements, _ in lines["tgraph, 1 thread"]] == [1000, 10_000]
    drawing = ElementTree.fromstring(chart.logarithmic("a < b", "note", lines))
    polylines = [each for each in drawing.iter() if each.tag.endswith("polyline")]
    assert ["stroke-dasharray" in each.attrib for each in polylines] == [True, False]
    texts = {each.text for each in drawing.iter() if each.tag.endswith("text")}
    assert {"a < b", "tgraph, 2 threads", "1e3", "1e4"} <= texts


@pytest.mark.parametrize("name", scaling.PROGRAMS)
def test_programs_have_the_elements_that_were_asked_for(name: str) -> None:
    data = scaling.workload(name, 10_000).data()
    assert next(iter(data.values())).size == 10_000
