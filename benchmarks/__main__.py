"""tgraph beside NumPy, PyTorch and JAX: `python -m benchmarks [workload ...]`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from . import machine, report
from .contenders import NAMES
from .measure import Options, Result, measure
from .workloads import BY_NAME

RESULTS = Path(__file__).parent / "results"


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
    results = {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as caches:
        how = Options(
            options.threads,
            options.rounds,
            options.seconds,
            options.patience,
            options.realtime,
            not options.no_warm,
            options.timeout,
            Path(caches),
        )
        for name in options.workloads or BY_NAME:
            workload = BY_NAME[name]
            contenders = [*options.contenders, *(["copy"] if workload.least_bytes else [])]
            results[name] = measure(workload, contenders, how, tell)
            if options.save is not None:  # what was measured outlives an interruption
                save(options.save, facts, results)
    return results


def save(name: str, facts: dict[str, str], results: report.Results) -> Path:
    """Write the report and the data beside each other; where, without the ending."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", facts["cpu"].split("(")[0]).strip("-").lower()
    path = RESULTS / (name or f"{facts['date']}-{slug}")
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".md").write_text(report.markdown(facts, results))
    path.with_suffix(".json").write_text(json.dumps(report.as_json(facts, results), indent=1))
    return path


def main() -> int:
    options = parsed()
    began = time.perf_counter()
    facts = machine.describe(options.threads)
    results = measure_all(options, facts)
    print(report.markdown(facts, results))
    print(f"took {time.perf_counter() - began:.0f} s", file=sys.stderr)
    if options.save is not None:
        print(f"wrote {save(options.save, facts, results)}.md and .json", file=sys.stderr)
    failures = [each for row in results.values() for each in row.values() if each.failed]
    for each in failures:
        print(each.trace, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
