"""The GPU benchmark at tiny sizes on the CPU: what it measures, refuses, and leaves out."""

from __future__ import annotations

import ast
import json
import os
import selectors
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.special
from cuda_tools import shim
from cuda_tools.fake_device import installed
from tgraph.runtime.cuda.plan import CudaPlan

from benchmarks import contenders as cpu_contenders
from benchmarks.case import Case
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import contenders, machine, report, session, worker
from benchmarks.gpu.contenders import with_numpy
from benchmarks.gpu.session import Options, Outcome, Session
from benchmarks.gpu.worker import Worker
from benchmarks.gpu.workloads import GpuWorkload, workloads
from benchmarks.measure import Result, doubled
from benchmarks.process import MissingError, WorkerError
from benchmarks.workload import parameters

TINY = workloads("tiny")
# These compile for a second or more.
SLOW = ["gpt2_train", "resnet18", "adamw", "cnn_train", "mlp_train", "transformer_train"]
FOLDERS = [Path(module.__file__).parent for module in (contenders, cpu_contenders)]


def deviation(contender: Any, workload: GpuWorkload) -> float:
    """How far a contender is from the reference."""
    data = workload.data()
    expected = contenders.start("numpy", "cpu", 1).reference(workload, data)
    case = getattr(contender, workload.implementation)(data)
    for _ in range(workload.steps):
        result = case.call()
    contender.synchronize(result)
    return workload.deviation(data, case.fetch(result), expected)


# --- the workloads -------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["numpy", "torch", "jax", "tgraph"])
def test_every_contender_has_every_workload(module: str) -> None:
    trees = [ast.parse((folder / f"with_{module}.py").read_text()) for folder in FOLDERS]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assert {workload.implementation for workload in TINY.values()} <= defined


def test_both_scales_have_the_same_workloads_and_the_large_one_leaves_the_cache() -> None:
    large = workloads("gpu")
    assert list(large) == list(TINY)
    assert {name: each.kind for name, each in large.items()} == {
        name: each.kind for name, each in TINY.items()
    }
    with pytest.raises(ValueError, match="unknown scale"):
        workloads("huge")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TINY]
)
def test_tgraph_computes_what_the_reference_does(name: str) -> None:
    contender = contenders.start("tgraph", "cpu", 1)
    assert deviation(contender, TINY[name]) <= TINY[name].tolerance


@pytest.mark.parametrize("name", contenders.EAGER)
def test_eager_tgraph_computes_what_the_reference_does(name: str) -> None:
    contender = contenders.start("tgraph_eager", "cpu", 1)
    assert deviation(contender, TINY[name]) <= TINY[name].tolerance


@pytest.fixture
def fake_cupy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """CuPy over NumPy; the names that are asked of it."""
    asked: list[str] = []

    class Fake(ModuleType):
        __version__ = "0"

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(np, name)

        def asnumpy(self, array: Any) -> Any:
            return np.asarray(array)

        def fuse(self) -> Callable[..., Any]:
            asked.append("fuse")
            return lambda function: function

        cuda = SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: asked.append("wait"))
        )

        def get_default_memory_pool(self) -> Any:
            return SimpleNamespace(free_all_blocks=lambda: asked.append("free"))

    monkeypatch.setitem(sys.modules, "cupy", Fake("cupy"))
    for name in ("cupyx", "cupyx.scipy"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupyx.scipy.special", scipy.special)
    return asked


@pytest.mark.parametrize("name", ["cupy", "cupy_fuse"])
def test_cupy_runs_the_code_of_numpy(name: str, fake_cupy: list[str]) -> None:
    contender = contenders.start(name, "cuda", 1)
    assert ("fuse" in fake_cupy) is (name == "cupy_fuse")
    for workload in TINY.values():
        if contenders.takes_part(name, workload):
            fake_cupy.clear()
            assert deviation(contender, workload) <= workload.tolerance
            assert "array" in fake_cupy and "wait" in fake_cupy
    contender.release()
    assert fake_cupy[-1] == "free"
    assert with_numpy.np is np and with_numpy.base.np is np


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize(
    ("contender", "name"),
    [
        *(("tgraph", name) for name in TINY if name not in SLOW),
        *(("tgraph_eager", name) for name in contenders.EAGER),
        ("tgraph_launched", "gelu_chain_1k"),
        *(pytest.param("tgraph", name, marks=pytest.mark.slow) for name in SLOW),
    ],
)
def test_tgraph_on_a_device(contender: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run on the host; a third call with the same memory would be a captured one."""
    # The variant that launches changes this.
    monkeypatch.setattr(CudaPlan, "can_capture", True, raising=False)
    workload = TINY[name]
    with installed() as machine:
        device = contenders.start(contender, "cuda", 1)
        data = workload.data()
        expected = contenders.start("numpy", "cpu", 1).reference(workload, data)
        case = getattr(device, workload.implementation)(data)
        for _ in range(workload.steps if workload.steps > 1 else 1 + worker.CALLS):
            result = case.call()
        device.synchronize(result)
        assert workload.deviation(data, case.fetch(result), expected) <= workload.tolerance
        assert machine.launches or contender == "tgraph_eager"  # which asks CuPy's functions
        if contender == "tgraph_launched":
            assert not CudaPlan.can_capture.fget(None)


def test_the_reference_of_the_language_model_steps_down_the_slope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its gradients are written by hand: a small step lowers the loss by their squares."""
    seen: dict[str, np.ndarray] = {}

    class Watch:
        def __init__(self, values: dict[str, np.ndarray]) -> None:
            self.values = values

        def step(self, gradients: dict[str, np.ndarray]) -> None:
            seen.update(gradients)
            for key, value in self.values.items():
                value -= 1e-6 * gradients[key]

    monkeypatch.setattr(with_numpy.base, "_AdamW", Watch)
    data = TINY["gpt2_train"].data()
    case = with_numpy.gpt2_train(doubled(data))
    before = case.call()
    assert list(seen) and set(seen) == set(parameters(data))
    squares = sum(float((gradient**2).sum()) for gradient in seen.values())
    assert before - case.call() == pytest.approx(1e-6 * squares, rel=1e-3)


def test_what_a_training_step_is_held_to() -> None:
    workload = TINY["gpt2_train"]
    data = workload.data()
    expected = contenders.start("numpy", "cpu", 1).reference(workload, data)
    names = parameters(data)

    def changed(name: str, value: np.ndarray) -> list[np.ndarray]:
        at = 1 + names.index(name)
        return [*expected[:at], value, *expected[at + 1 :]]

    assert workload.deviation(data, expected, expected) == 0
    # A parameter that was not trained, a loss that is off by two hundredths.
    for name in ("words_w", "h1_out_b"):
        assert workload.deviation(data, changed(name, data[name]), expected) == pytest.approx(1)
    off = workload.deviation(data, [1.02 * expected[0], *expected[1:]], expected)
    assert off == pytest.approx(0.6) and off > workload.tolerance
    # The bias of the keys tells nothing.
    assert workload.deviation(data, changed("h0_qkv_b", data["h0_qkv_b"]), expected) == 0


def test_operations_and_bytes() -> None:
    data = {name: workload.data() for name, workload in TINY.items()}
    assert TINY["softmax"].moved(data["softmax"]) == 2 * 16 * 40 * 4
    # Three products of (8, 20) x (20, 16), less the one for the input's gradient, and so on.
    products = 2 * 8 * (20 * 16 * 2 + 16 * 16 * 3 + 16 * 10 * 3)
    assert TINY["mlp_train"].flops(data["mlp_train"]) == products
    # The convolution of 3x7x7 to 4 channels at half the side is the first of ResNet's.
    assert TINY["resnet18"].flops(data["resnet18"]) > 2 * 2 * 16 * 16 * 4 * 3 * 49
    assert all(each.moved(data[each.name]) > 0 for each in TINY.values() if each.kind == "memory")


# --- sessions ------------------------------------------------------------------------------------


def options(folder: Path, *names: str, **changed: Any) -> Options:
    given: dict[str, Any] = {
        "device": "cpu",
        "scale": "tiny",
        "contenders": names,
        "processes": 1,
        "jobs": 100,
        "rounds": 2,
        "least": 1e-4,
        "patience": 60.0,
        "seconds": 100.0,
        "threads": 1,
        "scratch": folder,
    }
    return Options(**{**given, **changed})


def measured(names: list[str], how: Options, told: Callable[..., None] | None = None) -> Outcome:
    chosen = {name: TINY[name] for name in names}
    return Session(chosen, how, told or (lambda outcome, name: None)).run()


def test_real_processes(tmp_path: Path) -> None:
    lines = []
    names = ["softmax", "tiny_mlp"]
    outcome = measured(
        names,
        options(tmp_path, "numpy", "tgraph", processes=2),
        lambda outcome, name: lines.append(report.line(outcome, name)),
    )
    assert [line.split()[0] for line in lines] == names
    for row in outcome.results.values():
        for name in ("numpy", "tgraph"):
            assert row[name].error == ""
            assert len(row[name].rounds) == 2 and min(row[name].rounds) > 0
            assert row[name].first_cold > 0 and row[name].deviation < 1e-5
    assert len(outcome.results["softmax"]["copy"].rounds) == 2
    assert "copy" not in outcome.results["tiny_mlp"]
    assert outcome.moved["softmax"] == 2 * 16 * 40 * 4
    assert not outcome.not_run and not outcome.faults
    assert not [*(tmp_path / "data").iterdir()]


Plan = Callable[[str, dict[str, Any]], dict[str, Any] | None]


class Process:
    """A contender's process, but in this one: answers when it is asked for the answer.

    `plans` has what a contender does instead of working: a function of the request.
    """

    plans: ClassVar[dict[str, Plan]] = {}
    started: ClassVar[list[str]] = []

    def __init__(self, name: str, *rest: Any) -> None:
        self.name, self.paused = name, 0
        self.import_seconds, self.versions = 0.1, {name: "1"}
        self.started.append(name)
        self.read, self.written = os.pipe()
        self.request: tuple[str, dict[str, Any]] | None = None
        self.worker: Worker | None = None
        self._reply({"greeting": True})

    def _reply(self, reply: dict[str, Any] | None) -> None:
        self.reply = reply
        if reply is not None:
            os.write(self.written, b"x")

    def send(self, do: str, **arguments: Any) -> None:
        plan = self.plans.get(self.name)
        planned = plan(do, arguments) if plan is not None else {}
        if planned != {}:
            self._reply(planned)
            return
        self.worker = self.worker or Worker(self.name, "cpu", "tiny", 1)
        self._reply(getattr(self.worker, do)(**arguments))

    def answer(self) -> dict[str, Any]:
        if self.reply is None:
            raise WorkerError(f"{self.name} did not answer")
        os.read(self.read, 1)
        if "error" in self.reply:
            raise WorkerError(self.reply["error"], "the trace")
        return self.reply

    def greet(self) -> None:
        self.answer()
        if self.name == "jax":
            raise MissingError("no jax")

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.send(do, **arguments)
        return self.answer()

    def fileno(self) -> int:
        return self.read

    def pause(self) -> None:
        self.paused += 1

    def resume(self) -> None:
        self.paused -= 1

    def stop(self) -> None:
        if self.read >= 0:
            os.close(self.read)
            os.close(self.written)
            self.read = -1


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    """Processes of this kind, and time that passes only while nobody answers."""
    now = 0.0

    class Selector(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            nonlocal now
            assert timeout is not None
            found = super().select(0)
            now += 0.0 if found else timeout
            return found

    clock = SimpleNamespace(perf_counter=lambda: now, sleep=lambda seconds: None)
    ways = SimpleNamespace(DefaultSelector=Selector, EVENT_READ=selectors.EVENT_READ)
    monkeypatch.setattr(session, "time", clock)
    monkeypatch.setattr(session, "selectors", ways)
    monkeypatch.setattr(session, "Process", Process)
    monkeypatch.setattr(session, "FIRST_CALLS", ())
    Process.plans, Process.started = {}, []
    return Process


def test_wrong_results_are_told_and_not_timed(
    processes: type[Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = contenders.start

    class Wrong:
        """Off by a thousandth in one element."""

        def __init__(self, name: str, device: str, threads: int) -> None:
            self.inner = start("numpy", device, threads)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def softmax(self, data: dict[str, np.ndarray]) -> Case:
            case = self.inner.softmax(data)
            change = np.zeros(data["x"].shape, np.float32)
            change[3, 5] = 1e-3
            return Case(lambda: case.call() + change, case.fetch)

    monkeypatch.setattr(
        worker.contenders,
        "start",
        lambda name, *rest: (Wrong if name == "torch" else start)(name, *rest),
    )
    outcome = measured(["softmax"], options(tmp_path, "numpy", "torch"))
    wrong, right = outcome.results["softmax"]["torch"], outcome.results["softmax"]["numpy"]
    assert wrong.failed and not wrong.rounds
    assert wrong.error.startswith("wrong results: off by") and wrong.deviation > 2e-5
    assert len(right.rounds) == 2


def test_failures_are_told_and_the_others_go_on(processes: type[Process], tmp_path: Path) -> None:
    def broken(do: str, request: dict[str, Any]) -> dict[str, Any]:
        fails = (do, request.get("workload")) in (("prepare", "softmax"), ("time", "gelu_chain"))
        return {"error": f"no memory for {do}\nand more"} if fails else {}

    processes.plans = {"tgraph_eager": broken}
    names = ["softmax", "gelu_chain", "cross_entropy"]
    outcome = measured(names, options(tmp_path, "numpy", "tgraph_eager", "jax"))
    rows = [outcome.results[name] for name in names]
    assert [row["tgraph_eager"].error for row in rows] == [
        "no memory for prepare",
        "no memory for time",
        "",
    ]
    assert [len(row["tgraph_eager"].rounds) for row in rows] == [0, 0, 2]
    assert rows[0]["tgraph_eager"].trace == "the trace"
    assert [len(row["numpy"].rounds) for row in rows] == [2, 2, 2]
    # A process that has failed is replaced: the device may be unusable for it.
    assert processes.started.count("tgraph_eager") == 3
    # What is not installed is no fault.
    assert {row["jax"].error for row in rows} == {"not installed (no jax)"}
    assert not any(row["jax"].failed for row in rows)


def test_who_does_not_answer_is_given_up(processes: type[Process], tmp_path: Path) -> None:
    def silent(do: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return None if request.get("workload") == "softmax" else {}

    processes.plans = {"tgraph_eager": silent}
    how = options(tmp_path, "numpy", "tgraph_eager", patience=20.0)
    outcome = measured(["softmax", "gelu_chain"], how)
    assert outcome.results["softmax"]["tgraph_eager"].error == "no answer within 20 s"
    assert len(outcome.results["softmax"]["numpy"].rounds) == 2
    assert len(outcome.results["gelu_chain"]["tgraph_eager"].rounds) == 2


def test_without_a_reference_nothing_is_timed(processes: type[Process], tmp_path: Path) -> None:
    def failing(do: str, request: dict[str, Any]) -> dict[str, Any]:
        return {"error": "too large"} if request.get("workload") == "softmax" else {}

    processes.plans = {worker.REFERENCE: failing}
    outcome = measured(["softmax", "gelu_chain"], options(tmp_path, "numpy"))
    assert outcome.results["softmax"]["numpy"].error == "no reference: too large"
    assert len(outcome.results["gelu_chain"]["numpy"].rounds) == 2


def test_what_there_is_no_time_for_is_listed(processes: type[Process], tmp_path: Path) -> None:

    def silent(do: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return None if request.get("workload") == "gelu_chain" else {}

    processes.plans = {"tgraph_eager": silent}
    names = ["softmax", "gelu_chain", "cross_entropy"]
    how = options(tmp_path, "numpy", "tgraph_eager", seconds=100.0, patience=1000.0)
    outcome = measured(names, how)
    # What is ready when the time is almost over is timed without the others.
    assert [len(outcome.results[name]["numpy"].rounds) for name in names] == [2, 2, 2]
    assert len(outcome.results["softmax"]["tgraph_eager"].rounds) == 2
    assert outcome.not_run == {"gelu_chain": ["tgraph_eager"], "cross_entropy": ["tgraph_eager"]}
    assert "tgraph_eager" not in outcome.results["gelu_chain"]


def test_slow_contenders_stop_first(processes: type[Process], tmp_path: Path) -> None:

    def silent(do: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return None

    processes.plans = {"torch_compile": silent}
    names = [*TINY][6:10]
    outcome = measured(names, options(tmp_path, "torch_compile", "numpy", patience=1000.0))
    assert [len(outcome.results[name]["numpy"].rounds) for name in names] == [2, 2, 2, 2]
    assert outcome.not_run == {name: ["torch_compile"] for name in names}


def test_no_time_at_all(processes: type[Process], tmp_path: Path) -> None:
    outcome = measured(["softmax"], options(tmp_path, "numpy", "tgraph", seconds=0.0))
    assert outcome.not_run == {"softmax": ["numpy", "tgraph"]}
    assert not outcome.results


def test_a_slow_contender_has_several_processes(processes: type[Process], tmp_path: Path) -> None:
    def fast(do: str, request: dict[str, Any]) -> dict[str, Any]:
        replies = {"prepare": {"first": 1.0, "deviation": 0.0}, "calibrate": {"calls": 3}}
        return {"time": {"seconds": 1e-3}, "drop": {"done": True}, **replies}[do]

    processes.plans = {"torch_compile": fast}
    outcome = measured([*TINY][:5], options(tmp_path, "torch_compile", processes=3))
    assert processes.started.count("torch_compile") == 3
    assert {row["torch_compile"].median for row in outcome.results.values()} == {1e-3}


def test_first_calls_in_fresh_processes(
    processes: type[Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "FIRST_CALLS", (("numpy", "softmax"),))
    outcome = measured(["softmax"], options(tmp_path, "numpy"))
    cold, warm = outcome.first["softmax"]
    assert min(cold, warm) > 0 and processes.started[:2] == ["numpy", "numpy"]
    processes.plans = {"numpy": lambda do, request: {"error": "no"} if do == "first" else {}}
    outcome = measured(["softmax"], options(tmp_path, "numpy"))
    assert outcome.first["softmax"] == "failed: no"


# --- reports -------------------------------------------------------------------------------------


def result(*rounds: float, **more: Any) -> Result:
    return Result([0.1], {"x": "1"}, 0.5, None, list(rounds), min(rounds), deviation=1e-7, **more)


def outcome() -> Outcome:
    wrong = Result(error="wrong results: off by 1.0e+00, allowed is 2e-05", failed=True)
    return Outcome(
        results={
            "softmax": {
                "torch": result(2e-3, 2e-3, 4e-3),
                "jax": wrong,
                "cupy": Result(error="not installed (no cupy)"),
                "tgraph": result(1e-3, 1e-3, 1e-3),
                "copy": result(5e-4, 5e-4, 5e-4),
            },
            "mlp_train": {"torch": result(3e-5), "tgraph": Result(error="no", failed=True)},
        },
        moved={"softmax": 3 * 10**9, "mlp_train": 0},
        flops={"softmax": 0, "mlp_train": 10**9},
        copied=10**9,
        first={"transformer_train": (0.5, 0.05)},
        not_run={"stencil": ["torch", "tgraph"]},
        faults=["copy: did not start"],
    )


def test_lines() -> None:
    softmax = report.line(outcome(), "softmax")
    assert softmax.split() == [
        *("softmax", "1.00", "ms", "3000", "75%", "torch", "0.50"),
        *("jax:", "wrong", "results:", "off", "by", "1.0e+00,", "allowed", "is", "2e-05"),
    ]
    assert "torch 30.0 µs" in report.line(outcome(), "mlp_train")
    assert "  tgraph: no" in report.line(outcome(), "mlp_train")
    assert len(report.heading().splitlines()) == 1


def test_markdown() -> None:
    text = report.markdown({"gpu": "some"}, TINY, outcome())
    assert "- gpu: some" in text
    assert "- copy: 4000 GB/s, reads and writes, of 0.931 GiB" in text
    assert "16×40 | 1.00 ms | 3000 | 75% |  | torch | 0.50 |" in text
    assert "| `softmax` | 2.00 ms ±50% | failed | 1.00 ms ±0% | – |" in text
    assert "first call 500 ms with empty caches, 50.0 ms with its own" in text
    assert "- jax, softmax: wrong results: off by 1.0e+00, allowed is 2e-05" in text
    assert "- cupy: not installed (no cupy)" in text
    assert "- copy: did not start" in text
    assert "- `stencil`: torch, tgraph" in text
    assert "1.0e-07" in text
    ending = report.ending({"gpu": "some"}, outcome())
    assert "## Not run" in ending and "| softmax" not in ending


def test_traces_are_told_once() -> None:
    results = outcome().results
    trace = "\n".join(f"line {number}" for number in range(20))
    for row in results.values():
        for each in row.values():
            each.trace = trace
    told = report.traces(Outcome(results))
    assert told == ["jax, softmax:\n" + "\n".join(f"line {number}" for number in range(14, 20))]


def test_json() -> None:
    data = json.loads(json.dumps(report.as_json({"gpu": "some"}, TINY, outcome())))
    assert data["copy_bytes_per_second"] == pytest.approx(4e12)
    assert data["workloads"]["softmax"]["tgraph"]["rounds"] == [1e-3] * 3
    assert data["not_run"] == {"stencil": ["torch", "tgraph"]}
    assert data["titles"]["softmax"] == "softmax of rows, 16×40"
    assert data["machine"] == {"gpu": "some"}


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    class Canned:
        def __init__(self, chosen: Any, how: Options, told: Callable[..., None]) -> None:
            assert list(chosen) == ["softmax", "mlp_train"]
            assert how.contenders == ["tgraph", "torch"] and how.seconds == 7
            self.told = told

        def run(self) -> Outcome:
            self.told(outcome(), "softmax")
            return outcome()

    monkeypatch.setattr(command, "Session", Canned)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(command, "SCRATCH", tmp_path / "scratch")
    monkeypatch.setattr(command.files, "RESULTS", tmp_path / "results")
    given = ["--device", "cpu", "--only", "mlp_train,softmax", "--contenders", "tgraph,torch"]
    more = ["--seconds", "7", "--save", "here", "--json", str(tmp_path / "data.json")]
    monkeypatch.setattr(sys, "argv", ["gpu", *given, *more, "--scale", "tiny"])
    assert command.main() == 1  # tgraph failed at one
    printed = capsys.readouterr()
    assert "softmax" in printed.out and "## Not run" in printed.out
    assert (tmp_path / "results" / "here.md").read_text().startswith("# GPU benchmarks")
    saved = json.loads((tmp_path / "data.json").read_text())
    assert saved == json.loads((tmp_path / "results" / "here.json").read_text())


def test_unknown_names_are_refused(capsys: Any) -> None:
    for given in (["--only", "softmax,nothing"], ["--contenders", "nobody"]):
        with pytest.raises(SystemExit):
            command.parsed(given)
    assert "unknown: nothing" in capsys.readouterr().err


def test_variants_take_part_where_they_may_matter() -> None:
    part = {name: [w for w in TINY if contenders.takes_part(name, TINY[w])] for name in TITLED}
    assert part["tgraph"] == part["torch"] == part["jax"] == [*TINY]
    assert "gpt2_train" not in part["cupy"] and "softmax" in part["cupy"]
    assert "softmax" in part["torch_autotune"] and "mlp_train" not in part["torch_autotune"]
    assert "mlp_train" in part["torch_overhead"] and "softmax" not in part["torch_overhead"]


TITLED = [name for name in contenders.TITLES if name != "numpy"]


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert machine._gpu()["gpu"].startswith("unknown (")
