"""tgraph on a GPU beside CuPy, PyTorch and JAX: `python -m benchmarks.gpu`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from .. import report as files
from ..process import ROOT
from . import machine, report
from .contenders import NAMES
from .session import EPILOGUES, Options, Outcome, Session
from .workloads import SCALES, GpuWorkload, workloads

SCRATCH = ROOT / "build"


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add = parser.add_argument
    add("--device", choices=NAMES, default="cuda")
    parts = [*workloads("tiny"), EPILOGUES]
    add("--only", type=_names, metavar="A,B", help=f"of {', '.join(parts)}")
    add("--contenders", type=_names, metavar="A,B", help=f"of {', '.join(NAMES['cuda'])}")
    add("--scale", choices=SCALES, default="gpu", help="sizes; tiny ones are for tests")
    add("--seconds", type=float, default=270, help="to spend in all (%(default)s)")
    add(
        "--patience",
        type=float,
        default=60,
        help="seconds for one contender to prepare one workload (%(default)s)",
    )
    add("--rounds", type=int, default=7, help="of turns (%(default)s)")
    add("--turn", type=float, default=0.02, help="seconds of a turn at least (%(default)s)")
    add("--processes", type=int, default=2, help="of each slow compiler (%(default)s)")
    add("--jobs", type=int, default=100, help="contenders that prepare at once (%(default)s)")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each contender")
    add("--save", nargs="?", const="", metavar="NAME", help="write results/NAME.md and .json")
    add("--json", type=Path, metavar="PATH", help="write the data there too")
    options = parser.parse_args(arguments)
    options.contenders = options.contenders or NAMES[options.device]
    options.only = options.only or parts
    for given, known in (
        (options.only, parts),
        (options.contenders, NAMES[options.device]),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


class Run:
    """What is measured, and where it is written."""

    def __init__(self, options: argparse.Namespace) -> None:
        every = workloads(options.scale)
        self.options = options
        self.workloads: dict[str, GpuWorkload] = {
            name: every[name] for name in every if name in options.only
        }
        here = options.device == "cuda" and files.OURS in options.contenders
        self.epilogues = here and EPILOGUES in options.only
        self.facts = machine.describe(options.device, options.threads)

    def measure(self) -> Outcome:
        """Measure, and print a line for each workload that is done."""
        given = self.options
        print(f"{self.facts['gpu']}\n{report.heading()}", flush=True)
        SCRATCH.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="gpu-benchmarks-", dir=SCRATCH) as scratch:
            how = Options(
                given.device,
                given.scale,
                given.contenders,
                given.processes,
                given.jobs,
                given.rounds,
                given.turn,
                given.patience,
                given.seconds,
                given.threads,
                Path(scratch),
                self.epilogues,
            )
            return Session(self.workloads, how, self.tell).run()

    def tell(self, outcome: Outcome, workload: str) -> None:
        print(report.line(outcome, workload), flush=True)
        self.write(outcome)  # what was measured outlives an interruption

    def write(self, outcome: Outcome) -> list[Path]:
        """Write what was asked for; where."""
        data = report.as_json(self.facts, self.workloads, outcome)
        written = []
        if self.options.json is not None:
            self.options.json.write_text(json.dumps(data, indent=1))
            written.append(self.options.json)
        if self.options.save is not None:
            given = f"{self.facts['date']}-{files.slug(self.facts['gpu'].split(',')[0])}"
            text = report.markdown(self.facts, self.workloads, outcome)
            written.append(files.save(self.options.save or given, text, data))
        return written


def main() -> int:
    run = Run(parsed())
    # Stopped processes would stay: end as at an interrupt, which stops them all.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.perf_counter()
    outcome = run.measure()
    print("\n" + report.ending(run.facts, outcome))
    print(f"took {time.perf_counter() - began:.0f} s", file=sys.stderr)
    for path in run.write(outcome):
        print(f"wrote {path}", file=sys.stderr)
    print("\n".join(report.traces(outcome)), file=sys.stderr)
    ours = [row[files.OURS] for row in outcome.results.values() if files.OURS in row]
    good = [bool(result.rounds) for result in ours]
    good += [] if outcome.epilogues is None else [not isinstance(outcome.epilogues, str)]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
