"""tgraph beside NumPy, PyTorch and JAX: `python -m benchmarks [workload ...]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from . import commits, machine, report
from .contenders import NAMES
from .measure import Options, Result, measure
from .workloads import BY_NAME


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="workload", help=f"all unless named: {', '.join(BY_NAME)}"
    )
    parser.add_argument(
        "--contenders",
        default=",".join(NAMES),
        metavar="A,B",
        help="of %(default)s; those not installed are left out",
    )
    parser.add_argument(
        "--before", metavar="COMMIT", help="measure tgraph as it was at that commit, too"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of steady calls (%(default)s)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.15,
        help="time for each contender in each round (%(default)s)",
    )
    parser.add_argument(
        "--patience",
        type=int,
        default=3,
        help="how often to repeat a turn that other programs disturbed (%(default)s)",
    )
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="time calls at a real-time priority, for busy machines; needs root's rights",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=min(2, len(os.sched_getaffinity(0))),
        help="for every contender (%(default)s)",
    )
    parser.add_argument("--no-warm", action="store_true", help="leave out the second processes")
    parser.add_argument("--timeout", type=float, default=180, help="seconds to wait for an answer")
    parser.add_argument(
        "--save",
        nargs="?",
        const="",
        metavar="NAME",
        help="write results/NAME.md and .json (name: date and processor)",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="with --save: keep the rows of that report that are not measured now",
    )
    parser.add_argument(
        "--caches",
        type=Path,
        metavar="DIR",
        help="keep the contenders' caches there: first calls are told with what is in them",
    )
    options = parser.parse_args(arguments)
    options.contenders = options.contenders.split(",")
    for given, known in ((options.workloads, BY_NAME), (options.contenders, NAMES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def tell(text: str) -> None:
    """Progress, on one line of the error stream."""
    end = "\r" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty() or "round" not in text:
        print(f"\033[K{text}" if end == "\r" else text, end=end, file=sys.stderr, flush=True)


def measure_all(options: argparse.Namespace, facts: dict[str, str]) -> dict[str, dict[str, Result]]:
    """Results by workload and contender."""
    results = report.saved(_name(options.save, facts)) if options.add else {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        caches = options.caches or Path(folder)
        how = Options(
            options.threads,
            options.rounds,
            options.seconds,
            options.patience,
            options.realtime,
            not options.no_warm,
            options.timeout,
            caches,
            _before(options, facts, Path(folder)),
        )
        ours = ["before"] if options.before else []
        for name in options.workloads or BY_NAME:
            workload = BY_NAME[name]
            contenders = [*options.contenders, *ours, *(["copy"] if workload.least_bytes else [])]
            results[name] = measure(workload, contenders, how, tell)
            if options.save is not None:  # what was measured outlives an interruption
                write(options.save, facts, results)
    return results


def _before(options: argparse.Namespace, facts: dict[str, str], folder: Path) -> Path | None:
    """Where tgraph lies as it was at another commit, if that is asked for."""
    if not options.before:
        return None
    place = folder / "before"
    facts["before"] = commits.unpack(options.before, place)
    return place


def _name(name: str | None, facts: dict[str, str]) -> str:
    """Of the report, without the ending: what was asked for, or date and processor."""
    return name or f"{facts['date']}-{report.slug(facts['cpu'].split('(')[0])}"


def write(name: str, facts: dict[str, str], results: report.Results) -> Path:
    """Save the report and the data; where, without the ending."""
    return report.save(
        _name(name, facts), report.markdown(facts, results), report.as_json(facts, results)
    )


def main() -> int:
    options = parsed()
    began = time.perf_counter()
    facts = machine.describe(options.threads)
    results = measure_all(options, facts)
    print(report.markdown(facts, results))
    print(f"took {time.perf_counter() - began:.0f} s", file=sys.stderr)
    if options.save is not None:
        print(f"wrote {write(options.save, facts, results)}.md and .json", file=sys.stderr)
    failures = [each for row in results.values() for each in row.values() if each.failed]
    for each in failures:
        print(each.trace, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
