"""Plants faults in a copy and reports which of them the tests find."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import tools.planted_faults as about

from .faults import KINDS, Fault, load
from .measure import Measurement
from .results import Results
from .table import page, summary
from .tree_copy import TreeCopy


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.planted_faults",
        description=about.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", help="names of faults, or patterns of names")
    parser.add_argument("--file", action="append", help="files with faults, or patterns of files")
    parser.add_argument("--kind", action="append", choices=KINDS, help="faults of this kind")
    parser.add_argument("--tree", help="a folder or commit whose `tests/` are run")
    parser.add_argument("--suite", help="the name of these tests in the results")
    parser.add_argument("--jobs", type=int, default=1, help="how many copies work side by side")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run of pytest")
    parser.add_argument("--results", type=Path, default=Path("planted_faults.json"))
    parser.add_argument("--again", action="store_true", help="repeat what has a result already")
    parser.add_argument("--write", type=Path, help="write a table of all faults to this file")
    return parser.parse_args()


def chosen(faults: Sequence[Fault], given: argparse.Namespace) -> list[Fault]:
    """The faults that `--only`, `--file` and `--kind` select."""
    kinds = given.kind or KINDS
    return [
        fault
        for fault in faults
        if fault.kind in kinds
        and _matches(fault.name, given.only)
        and _matches(fault.file, given.file)
    ]


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatch(name, pattern) for pattern in patterns)


def run(given: argparse.Namespace, faults: Sequence[Fault], results: Results, suite: str) -> None:
    """Measure the faults that have no result yet, and confirm those that were found."""
    due = [each for each in faults if given.again or results.get(suite, each) is None]
    unconfirmed = [each for each in faults if (old := results.get(suite, each))
                   and old.verdict == "found" and not old.confirmed]  # fmt: skip
    if not due and not unconfirmed:
        return
    with tempfile.TemporaryDirectory(prefix="planted_faults_") as folder:
        copies = [TreeCopy(Path(folder, str(i)).resolve(), given.tree) for i in range(given.jobs)]
        measurement = Measurement(copies, results, suite, given.timeout)
        measurement.measure(due)
        measurement.confirm([*dict.fromkeys((*due, *unconfirmed))])


def main() -> int:
    given = arguments()
    faults = load()
    selected = chosen(faults, given)
    results = Results(given.results)
    suite = given.suite or given.tree or "tests"
    run(given, selected, results, suite)
    print(summary(selected, results, suite))
    if given.write is not None:
        given.write.write_text(page(faults, results))
    verdicts = [each.verdict for fault in selected if (each := results.get(suite, fault))]
    return 0 if all(verdict == "found" for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
