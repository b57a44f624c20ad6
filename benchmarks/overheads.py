"""What tgraph costs beside computing: `python -m benchmarks.overheads`.

Import, first calls with empty caches and in a second process, and the steady calls of compiled
functions that compute next to nothing, each in fresh processes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import measure, report
from .eager import write
from .process import Process
from .workloads import BY_NAME

SMALL = ("call_one", "gelu_chain_1k", "softmax", "layer_norm", "tiny_mlp")
TRAINING = ("small_mlp_train", "mlp_train", "cnn_train", "transformer_train")
# What to reach, in seconds.
IMPORT, FIRST_SMALL, FIRST_TRAINING, SECOND = 0.1, 0.1, 0.3, 0.06
CALLS = {"call_one": 2.5e-6, "call_twenty": 5e-6}


def _started(caches: Path, options: argparse.Namespace) -> Process:
    """A fresh process that has imported tgraph."""
    process = Process("tgraph", options.threads, caches, 180.0)
    if options.realtime:
        process.hurry(True)  # what it starts later, too
    process.greet()
    return process


def first_call(name: str, caches: Path, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds of the import and of a workload's first call in a fresh process."""
    process = _started(caches, options)
    try:
        return process.import_seconds, process.ask("fresh", workload=name)["seconds"]
    finally:
        process.stop()


class FirstCalls(NamedTuple):
    """Of each repetition the first call, and that of a second process."""

    first: list[float]
    second: list[float]


def first_calls(
    names: Sequence[str], options: argparse.Namespace, tell: Callable[[str], None]
) -> tuple[list[float], dict[str, FirstCalls]]:
    """Imports, and first calls by workload; a slow minute of the machine meets all workloads."""
    imports: list[float] = []
    calls = {name: FirstCalls([], []) for name in names}
    for repetition in range(options.repetitions):
        tell(f"first calls, round {repetition + 1}")
        for name in names:
            caches = Path(tempfile.mkdtemp(prefix="benchmarks-"))
            try:
                for kept in calls[name]:
                    of_import, of_call = first_call(name, caches, options)
                    imports.append(of_import)
                    kept.append(of_call)
            finally:
                shutil.rmtree(caches)
    return imports, calls


def steady(name: str, options: argparse.Namespace) -> list[float]:
    """Seconds per call by round, each round in a process of its own."""
    found = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as caches:
        for _ in range(options.repetitions):
            process = _started(Path(caches), options)
            try:
                process.ask("prepare", workload=name)
                process.ask("first", save="")
                calls, batch = measure.calibrated(process, 0.05)
                times = process.ask("run", calls=calls, batch=batch)["times"]
                found.append(statistics.median(times))
            finally:
                process.stop()
    return found


def row(what: str, times: Sequence[float], wanted: float) -> list[str]:
    """A line of the table: what, median, least, what to reach."""
    told = report.seconds
    return [what, told(statistics.median(times)), told(min(times)), told(wanted)]


def rows(options: argparse.Namespace, tell: Callable[[str], None]) -> Iterable[list[str]]:
    """All lines."""
    imports, calls = first_calls(SMALL + TRAINING, options, tell)
    for name, (first, second) in calls.items():
        wanted = FIRST_TRAINING if name in TRAINING else FIRST_SMALL
        yield row(f"`{name}`: first call, empty caches", first, wanted)
        yield row(f"`{name}`: first call of a second process", second, SECOND)
    for name, wanted in CALLS.items():
        tell(name)
        yield row(f"`{name}`: {BY_NAME[name].title}", steady(name, options), wanted)
    yield row("`import tgraph`", imports, IMPORT)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="processes (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument(
        "--realtime", action="store_true", help="run at a real-time priority; needs root's rights"
    )
    parser.add_argument("--save", metavar="NAME", help="write results/NAME.md")
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    found = list(rows(options, lambda name: print(name, file=sys.stderr)))
    note = (
        "Every line is measured in several fresh processes; modules have their bytecode, "
        "second processes find the first one's caches on disk. First calls follow upon "
        "`tg.compile` at once: what that begins in a thread has no time of its own."
    )
    table = report.table(["what", "median", "least", "to reach"], found)
    write("Overheads", options, "", [note, table])


if __name__ == "__main__":
    main()
