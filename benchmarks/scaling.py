"""Time over the number of elements, on one and two threads, as SVG: `python -m benchmarks.scaling`.

Every contender has a process for each number of threads, stopped while another is timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from . import chart, machine, measure, report
from .case import Array
from .contenders import TITLES
from .process import MissingError, Process
from .workload import Random, Workload
from .workloads import USUAL

ELEMENTS = tuple(10**power for power in range(3, 9))
ROW = 1000
# Calls of so many seconds are timed twice and no more.
SLOW = 0.5


def numbers(random: Random, *shape: int) -> Array:
    """Normal numbers, the same again after a million: data of this size take time to draw."""
    return np.resize(random.standard_normal(1_000_000, dtype=np.float32), shape)


def vector(random: Random, elements: int) -> dict[str, Array]:
    return {"x": numbers(random, elements)}


def rows(random: Random, elements: int) -> dict[str, Array]:
    return {"x": numbers(random, elements // ROW, ROW)}


def normalized(random: Random, elements: int) -> dict[str, Array]:
    shape = (elements // ROW, ROW)
    return {
        "x": numbers(random, *shape),
        "upstream": numbers(random, *shape),
        "weight": numbers(random, ROW),
        "bias": numbers(random, ROW),
    }


PROGRAMS: Mapping[str, Callable[[Random, int], dict[str, Array]]] = {
    "gelu_chain": vector,
    "softmax": rows,
    "layer_norm": normalized,
    "argmax": rows,
}


def workload(name: str, elements: int) -> Workload:
    """A row of the benchmark with so many elements."""
    return replace(USUAL[name], make=lambda random: PROGRAMS[name](random, elements))


def started(name: str, threads: int, caches: Path) -> Process | None:
    """A contender's process; None where it is not installed."""
    arguments = ("benchmarks.scaling_worker", name, str(threads))
    process = Process(name, threads, caches, 180.0, arguments)
    try:
        process.greet()
    except MissingError:
        process.stop()
        return None
    process.pause()
    return process


def timed(process: Process, program: str, elements: int, options: argparse.Namespace) -> float:
    """The median of the seconds of a call."""
    process.resume()
    try:
        process.ask("prepare", workload=program, elements=elements)
        first = process.ask("first", save="")["seconds"]
        slow = first > SLOW and process.ask("run", calls=1, batch=1)["times"][0] > SLOW
        calls, batch = (2, 1) if slow else measure.calibrated(process, options.seconds)
        if options.realtime:
            process.hurry(True)
        return float(np.median(process.ask("run", calls=calls, batch=batch)["times"]))
    finally:
        if options.realtime:
            process.hurry(False)
        process.pause()


def measured(
    program: str, options: argparse.Namespace, tell: Callable[[str], None]
) -> dict[str, list[tuple[float, float]]]:
    """Elements and seconds a call, by contender and threads."""
    lines: dict[str, list[tuple[float, float]]] = {}
    running: dict[str, Process] = {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        try:
            for name in options.contenders.split(","):
                for threads in (1, 2):
                    process = started(name, threads, Path(folder) / name)
                    if process is not None:
                        many = "s" if threads > 1 else ""
                        running[f"{TITLES.get(name, name)}, {threads} thread{many}"] = process
            for elements in ELEMENTS:
                if elements > options.most:
                    break
                tell(f"{program}, {elements:,}")
                for title, process in running.items():
                    point = (elements, timed(process, program, elements, options))
                    lines.setdefault(title, []).append(point)
        finally:
            for process in running.values():
                process.stop()
    return lines


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--contenders", default="tgraph,torch,jax", help="(%(default)s)")
    parser.add_argument("--most", type=int, default=ELEMENTS[-1], help="elements (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each point (%(default)s)")
    parser.add_argument(
        "--realtime", action="store_true", help="for busy machines; needs root's rights"
    )
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder (%(default)s)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.programs if name not in PROGRAMS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    return options


def main() -> None:
    options = parsed()
    facts = machine.describe(2)
    options.out.mkdir(parents=True, exist_ok=True)
    for program in options.programs or PROGRAMS:
        lines = measured(program, options, lambda text: print(text, file=sys.stderr))
        title = f"{program}: seconds a call over elements"
        note = f"{facts['cpu']}, {facts['date']}, commit {facts['commit']}"
        path = options.out / f"{facts['date']}-scaling-{report.slug(program)}.svg"
        path.write_text(chart.logarithmic(title, note, lines))
        print(path)


if __name__ == "__main__":
    main()
