"""The part of the GPU benchmark that measures epilogues of matrix products; the host stands in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cuda_tools import shim
from cuda_tools.fake_device import installed
from tgraph.compiler.targets.cuda import reuse_tile_schedule
from tgraph.runtime.cuda import cublas_lt, precision
from tgraph.runtime.cuda.cublas_lt import Status
from tgraph.runtime.memo import Memo

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import epilogues, report, session
from benchmarks.gpu.session import Options, Outcome, Session
from benchmarks.process import WorkerError

TOLERANCE = {"float32": 1e-3, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture
def device() -> Iterator[None]:
    """The host in the place of a device."""
    if shim.available() is not None:
        pytest.skip(str(shim.available()))
    before = precision.get_precision()
    with installed(lazy=True):
        yield
    precision.set_precision(before)


def test_both_ways_give_the_same(device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogues, "ROUNDS", 2)
    found = json.loads(json.dumps(epilogues.measure("tiny", 100.0)))
    assert [row["epilogue"] for row in found["rows"]] == 3 * [k.epilogue for k in epilogues.KINDS]
    for row in found["rows"]:
        assert row["size"] == "8×16×128" and row["ratio"] > 0
        assert min(row["separate"], row["together"]) > 0
        assert row["deviation"] <= TOLERANCE[row["dtype"]], row
        assert "tiled" not in row  # so small products make no tiles
    assert found["not_measured"] == 0 and found["seconds"] > 0
    assert set(found["special"]) == set(epilogues.DTYPES)
    for text in found["special"].values():
        assert text["relu"].startswith("nan → ") and "-inf → " in text["bias_gelu"]


def test_one_kernel_for_both_is_measured(device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tiles are made, and something reads the product; sums are kernels of their own."""
    monkeypatch.setattr(epilogues, "ROUNDS", 2)
    monkeypatch.setattr(epilogues, "DTYPES", ("float32", "float16"))
    monkeypatch.setattr(reuse_tile_schedule, "MIN_STEPS", 0)
    Memo.forget_all()  # schedules that were chosen by the real limit
    found = epilogues.measure("tiny", 100.0)
    Memo.forget_all()
    for row in found["rows"]:
        assert ("tiled" in row) == (row["epilogue"] != "sum_a"), row
        if "tiled" in row:
            assert row["tiled"] > 0 and row["tiled_deviation"] <= TOLERANCE[row["dtype"]], row
    cells = [
        line.count("|") for line in report.markdown({}, {}, Outcome(epilogues=found)).split("\n")
    ]
    assert cells.count(11) == 2 + len(found["rows"])


def test_what_the_library_refuses_is_told(device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogues, "KINDS", epilogues.KINDS[:1])
    monkeypatch.setattr(epilogues, "DTYPES", ("float32",))
    made = epilogues.Together.__init__

    def refused(*args: Any) -> None:
        cublas_lt.load().fail_next("cublasLtMatmulAlgoGetHeuristic", Status.NOT_SUPPORTED)
        made(*args)

    monkeypatch.setattr(epilogues.Together, "__init__", refused)
    found = epilogues.measure("tiny", 100.0)
    (row,) = found["rows"]
    assert "NOT_SUPPORTED" in row["error"] and "ratio" not in row
    assert "NOT_SUPPORTED" in report.markdown({}, {}, Outcome(epilogues=found))


def test_without_time_nothing_is_measured(device: None) -> None:
    found = epilogues.measure("tiny", 0.0)
    assert found["rows"] == [] and found["not_measured"] == 3 * len(epilogues.KINDS)


# --- the session ---------------------------------------------------------------------------------


class Process:
    """Answers the one request, or fails at it."""

    reply: Any = None

    def __init__(self, name: str, *rest: Any) -> None:
        self.name = name

    def greet(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def ask(self, do: str, **arguments: Any) -> Any:
        assert (self.name, do) == ("tgraph", "epilogues") and arguments["seconds"] > 0
        if isinstance(self.reply, str):
            raise WorkerError(self.reply)
        return self.reply


def outcome_of(reply: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(Process, "reply", reply)
    monkeypatch.setattr(session, "Process", Process)
    how = Options("cuda", "tiny", ["tgraph"], 1, 1, 1, 1e-4, 1.0, 10.0, 1, folder, epilogues=True)
    return Session({}, how, lambda outcome, name: None).run()


ROW = {"epilogue": "bias", "size": "8×16×128", "dtype": "float16"}
FOUND = {
    "rows": [
        {
            **ROW,
            "separate": 3e-5,
            "together": 2e-5,
            "ratio": 2 / 3,
            "deviation": 1e-4,
            "tiled": 6e-5,
            "tiled_ratio": 2.0,
            "tiled_deviation": 2e-4,
        }
    ],
    "special": {"float16": {"relu": "nan → nan, inf → inf, -inf → 0.0"}},
    "not_measured": 5,
    "seconds": 1.0,
}


def test_a_session_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = outcome_of(FOUND, tmp_path, monkeypatch)
    text = report.markdown({}, {}, outcome)
    row = "| `bias` | 8×16×128 | float16 | 30.0 µs | 20.0 µs | 0.67 | 1.0e-04 | 60.0 µs | 2.00 |"
    assert f"{row} 2.0e-04 |" in text
    assert "- `relu` of float16: nan → nan, inf → inf, -inf → 0.0" in text
    assert "There was no time for 5 more." in text
    assert "| `bias` |" in report.ending({}, outcome)
    assert json.loads(json.dumps(report.as_json({}, {}, outcome)))["epilogues"] == FOUND


def test_a_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = outcome_of("no such thing", tmp_path, monkeypatch)
    assert outcome.epilogues == "failed: no such thing"
    assert "failed: no such thing" in report.ending({}, outcome)


def test_a_session_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Epilogues" not in report.markdown({}, {}, Outcome())
    given = ["--scale", "tiny", "--only", "softmax"]
    assert not command.Run(command.parsed(given)).epilogues
    assert not command.Run(command.parsed(["--device", "cpu"])).epilogues
    monkeypatch.setattr(command.machine, "describe", lambda *_: {})
    run = command.Run(command.parsed(["--only", "epilogues"]))
    assert run.epilogues and not run.workloads
    assert not command.Run(command.parsed(["--contenders", "torch"])).epilogues
