"""Two contenders on every operation: each in a process of its own, rounds interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import measure
from .case import Array
from .operations import SIZES, Operation
from .process import Process, WorkerError
from .report import seconds, table

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Pair:
    """Two contenders on an operation; seconds per call by round, or why there are none."""

    operation: str
    size: str
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    error: str = ""

    @property
    def ratio(self) -> float:
        """Median over the rounds of our time by theirs."""
        return statistics.median(map(float.__truediv__, self.ours, self.theirs))

    @property
    def cells(self) -> list[str]:
        """Both times and their ratio, for a table."""
        if self.error:
            return ["failed", "failed", "–"]
        times = [seconds(statistics.median(each)) for each in (self.ours, self.theirs)]
        return [*times, f"{self.ratio:.2f}"]


def started(name: str, threads: int, caches: Path) -> Process:
    """A contender's process, which has imported its library."""
    arguments = ("benchmarks.eager_worker", name, str(threads))
    process = Process(name, threads, caches / name, 180.0, arguments)
    process.greet()
    return process


@dataclass(frozen=True)
class How:
    """How to measure: seconds are of one contender in a round; see `measure.Options.realtime`."""

    rounds: int
    seconds: float
    realtime: bool


def compare(
    processes: Sequence[Process],
    operations: Sequence[Operation],
    sizes: Sequence[str],
    how: How,
    folder: Path,
    tell: Callable[[str], None],
) -> Iterator[Pair]:
    """The pairs of every operation and size; the first process is ours."""
    for process in processes:
        process.pause()
    for size in sizes:
        for operation in operations:
            tell(f"{operation.name}, {size}")
            try:
                calls = _checked(processes, operation, size, how, folder)
                ours, theirs = _rounds(processes, calls, how)
                yield Pair(operation.name, size, ours, theirs)
            except (WorkerError, ValueError) as error:
                yield Pair(operation.name, size, error=str(error))


def _checked(
    processes: Sequence[Process],
    operation: Operation,
    size: str,
    how: How,
    folder: Path,
) -> list[tuple[int, int]]:
    """Batches and calls a batch of each, once both have given the same results."""
    results, calls = [], []
    for process in processes:
        process.resume()
        try:
            process.ask("prepare", operation=operation.name, size=size)
            path = folder / "results.npz"
            process.ask("first", save=str(path))
            with np.load(path) as saved:
                results.append([saved[name] for name in saved.files])
            calls.append(measure.calibrated(process, how.seconds))
        finally:
            process.pause()
    require_equal(operation, *results)
    return calls


def require_equal(operation: Operation, ours: list[Array], theirs: list[Array]) -> None:
    """ValueError if results differ; of numbers that are drawn, their shapes."""
    if operation.drawn:
        shapes = [[each.shape for each in results] for results in (ours, theirs)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"different results: of shapes {shapes[0]} and {shapes[1]}")
        return
    off = measure.greatest_deviation(ours, theirs)
    if not off <= TOLERANCE:
        raise ValueError(f"different results: off by {off:.1e}")


def _rounds(
    processes: Sequence[Process], calls: Sequence[tuple[int, int]], how: How
) -> Iterator[tuple[float, ...]]:
    """Medians of every round by process, each round beginning with another one."""
    found: list[list[float]] = [[] for _ in processes]
    order = list(range(len(processes)))
    for number in range(how.rounds):
        for at in order[number % len(order) :] + order[: number % len(order)]:
            found[at].append(_turn(processes[at], *calls[at], how.realtime))
    return map(tuple, found)


def _turn(process: Process, calls: int, batch: int, realtime: bool) -> float:
    process.resume()
    try:
        process.ask("run", calls=1, batch=batch)
        if realtime:
            process.hurry(True)
        return statistics.median(process.ask("run", calls=calls, batch=batch)["times"])
    finally:
        if realtime:
            process.hurry(False)
        process.pause()


def listed(pairs: Sequence[Pair], titles: Sequence[str]) -> str:
    """A table with a row for each operation and three columns for each size."""
    sizes = [size for size in SIZES if any(pair.size == size for pair in pairs)]
    found = {(pair.operation, pair.size): pair for pair in pairs}
    heading = ["operation"]
    for size in sizes:
        heading += [f"{size}: {titles[0]}", titles[1], "ratio"]
    rows = []
    for name in dict.fromkeys(pair.operation for pair in pairs):
        cells = [found[name, size].cells for size in sizes if (name, size) in found]
        rows.append([name, *(cell for three in cells for cell in three)])
    return table(heading, rows)


def mean(pairs: Sequence[Pair]) -> float:
    """The geometric mean of the ratios of those that were measured."""
    return statistics.geometric_mean(pair.ratio for pair in pairs if not pair.error)
