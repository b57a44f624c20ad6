"""Measure a workload: first calls in fresh processes, then rounds that take turns."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .case import Array
from .contenders import COMPILERS, implementation
from .process import ROOT, MissingError, Process, WorkerError
from .workload import Workload, parameters

# Shorter calls are timed several at a time, so that the clock costs nothing.
SHORT = 200e-6
LEAST_CALLS = 3
# A turn is disturbed when other programs kept more than this part of a processor busy.
DISTURBED = 0.2


@dataclass(frozen=True)
class Options:
    """How to measure.

    seconds: the time of one contender in one round.
    patience: how often a turn that other programs disturbed is repeated; the least disturbed
    counts.
    realtime: time calls at a priority that keeps other programs away.
    before: where another version of tgraph lies, for the contender of that name.
    """

    threads: int
    rounds: int
    seconds: float
    patience: int
    realtime: bool
    warm: bool
    timeout: float
    caches: Path
    before: Path | None = None


@dataclass
class Result:
    """What one contender did on one workload; seconds per call.

    rounds: the median of each round; least: of all rounds, the shortest.
    foreign: in each round, processors kept busy by other programs.
    error: why there are no times, if so; `failed` tells a fault from a missing library.
    """

    import_seconds: list[float] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    first_cold: float | None = None
    first_warm: float | None = None
    rounds: list[float] = field(default_factory=list)
    least: float = math.inf
    foreign: list[float] = field(default_factory=list)
    deviation: float | None = None
    error: str = ""
    failed: bool = False
    trace: str = ""

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.rounds)


@dataclass
class _Running:
    name: str
    process: Process
    calls: int
    batch: int


def reference(workload: Workload) -> list[Array]:
    """The results in float64 from NumPy."""
    case = implementation("numpy", workload)(doubled(workload.data()))
    for _ in range(workload.steps):
        result = case.call()
    return case.fetch(result)


def doubled(data: Mapping[str, Array]) -> dict[str, Array]:
    """The data with float64 in the place of float32."""
    return {
        name: value.astype(np.float64) if value.dtype == np.float32 else value
        for name, value in data.items()
    }


def deviation(workload: Workload, got: Sequence[Array], expected: Sequence[Array]) -> float:
    """The greatest error of any output; of a training step, see `training_deviation`."""
    if workload.steps == 1 and workload.summary is None:
        return greatest_deviation(got, expected)
    data = workload.data()
    if workload.summary is not None:
        return greatest_deviation(workload.summary(data, got), workload.summary(data, expected))
    return training_deviation(got, expected, [data[name] for name in parameters(data)])


def greatest_deviation(got: Sequence[Array], expected: Sequence[Array]) -> float:
    """The greatest error of any output relative to its greatest value."""
    _require_shapes(got, expected)
    return max(map(_greatest_error, got, expected))


def training_deviation(
    got: Sequence[Array], expected: Sequence[Array], before: Sequence[Array]
) -> float:
    """The error of the loss or of a parameter; `before` has the parameters before the first step.

    Of parameters it is their change that is compared, in the mean square: the change is far
    smaller than the value, and Adam turns a rounding error in a gradient of zero into a step.
    """
    _require_shapes(got, expected)
    changes = map(_change_error, got[1:], expected[1:], before)
    return max(_greatest_error(got[0], expected[0]), *changes)


def _require_shapes(got: Sequence[Array], expected: Sequence[Array]) -> None:
    shapes = [each.shape for each in got]
    if shapes != [each.shape for each in expected]:
        raise ValueError(f"expected shapes {[each.shape for each in expected]}, got {shapes}")


def _greatest_error(got: Array, expected: Array) -> float:
    if not np.isfinite(got).all():
        return math.inf
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def _change_error(got: Array, expected: Array, before: Array) -> float:
    if not np.isfinite(got).all():
        return math.inf
    wanted = expected - before
    return float(np.linalg.norm(got - before - wanted) / np.linalg.norm(wanted))


def measure(
    workload: Workload, contenders: Sequence[str], options: Options, tell: Callable[[str], None]
) -> dict[str, Result]:
    """A result per contender."""
    expected = reference(workload)
    results = {name: Result() for name in contenders}
    running: list[_Running] = []
    try:
        for name in contenders:
            tell(f"{workload.name}: {name}")
            started = _start(name, workload, options, expected, results[name])
            if started is not None:
                running.append(started)
        _take_turns(running, options, results, tell, workload.name)
    finally:
        for each in running:
            each.process.stop()
    if options.warm:
        for each in running:
            if each.name in COMPILERS:
                tell(f"{workload.name}: {each.name}, first call with warm caches")
                _warm(each.name, workload, options, results[each.name])
    return results


def _caches(name: str, workload: Workload, options: Options) -> Path:
    return options.caches / workload.name / name


def settings(name: str, options: Options) -> dict[str, str]:
    """What a contender's environment has beside what all have."""
    if name != "before":
        return {}
    return {"PYTHONPATH": os.pathsep.join((str(options.before), str(ROOT)))}


def _process(name: str, options: Options, caches: Path) -> Process:
    extra = settings(name, options)
    return Process(name, options.threads, caches, options.timeout, settings=extra)


def _start(
    name: str, workload: Workload, options: Options, expected: list[Array], result: Result
) -> _Running | None:
    """Start, check and calibrate a contender; None, with the reason kept, if that fails."""
    caches = _caches(name, workload, options)
    caches.mkdir(parents=True, exist_ok=True)
    process = None
    try:
        process = _process(name, options, caches)
        process.greet()
        result.import_seconds.append(process.import_seconds)
        result.versions = process.versions
        process.ask("prepare", workload=workload.name)
        _first(process, workload, caches, expected, result)
        calls, batch = calibrated(process, options.seconds)
        process.pause()
        return _Running(name, process, calls, batch)
    except MissingError as error:
        result.error = f"not installed ({error})"
    except (WorkerError, ValueError) as error:
        result.error, result.failed = str(error), True
        result.trace = getattr(error, "trace", "")
    if process is not None:
        process.stop()
    return None


def _first(
    process: Process, workload: Workload, caches: Path, expected: list[Array], result: Result
) -> None:
    """The first call, whose results must be the reference's."""
    if process.name == "copy":
        process.ask("first", save="")
        return
    path = caches / "results.npz"
    result.first_cold = process.ask("first", save=str(path))["seconds"]
    with np.load(path) as saved:
        got = [saved[name] for name in saved.files]
    path.unlink()
    result.deviation = deviation(workload, got, expected)
    if not result.deviation <= workload.tolerance:
        raise ValueError(
            f"wrong results: off by {result.deviation:.1e}, allowed is {workload.tolerance:.0e}"
        )


def calibrated(process: Process, round_seconds: float) -> tuple[int, int]:
    """How many batches of how many calls fill a round of that length."""
    process.ask("run", calls=2, batch=1)
    seconds = statistics.median(process.ask("run", calls=5, batch=1)["times"])
    batch = max(1, math.ceil(SHORT / seconds))
    calls = max(LEAST_CALLS, round(round_seconds / (seconds * batch)))
    return calls, batch


def _take_turns(
    running: list[_Running],
    options: Options,
    results: dict[str, Result],
    tell: Callable[[str], None],
    title: str,
) -> None:
    """Every contender once a round, each round beginning with another one."""
    for number in range(options.rounds):
        tell(f"{title}: round {number + 1} of {options.rounds}")
        first = number % max(1, len(running))
        for each in running[first:] + running[:first]:
            median, least, foreign = _turn(each, options)
            result = results[each.name]
            result.rounds.append(median)
            result.least = min(result.least, least)
            result.foreign.append(foreign)


def _turn(running: _Running, options: Options) -> tuple[float, float, float]:
    """Seconds per call, median and least, and processors that others kept busy meanwhile."""
    process = running.process
    process.resume()
    turns: list[tuple[float, float, float]] = []
    while len(turns) <= options.patience:
        process.ask("run", calls=1, batch=running.batch)
        if options.realtime:
            process.hurry(True)
        busy, own, began = _busy_seconds(), process.cpu_seconds(), time.perf_counter()
        times = process.ask("run", calls=running.calls, batch=running.batch)["times"]
        wall = time.perf_counter() - began
        if options.realtime:
            process.hurry(False)
        others = (_busy_seconds() - busy) - (process.cpu_seconds() - own)
        turns.append((statistics.median(times), min(times), max(0.0, others / wall)))
        if turns[-1][2] <= DISTURBED:
            break
    process.pause()
    return min(turns, key=lambda turn: turn[2])


def _warm(name: str, workload: Workload, options: Options, result: Result) -> None:
    """The first call of a second process, which finds what the first one cached."""
    process = _process(name, options, _caches(name, workload, options))
    try:
        process.greet()
        result.import_seconds.append(process.import_seconds)
        process.ask("prepare", workload=workload.name)
        result.first_warm = process.ask("first", save="")["seconds"]
    except WorkerError as error:
        result.error, result.failed, result.trace = f"second process: {error}", True, error.trace
    finally:
        process.stop()


def _busy_seconds() -> float:
    """Seconds of work of all processors since the machine started."""
    words: list[Any] = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system = (int(word) for word in words[:3])
    return (user + nice + system) / 100
