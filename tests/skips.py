"""Counts what is skipped or not chosen in runs of pytest, by reason, and checks the reasons.

A plugin of pytest: where TGRAPH_SKIPS names a folder, each run writes there how many tests it left
out, and why. TGRAPH_RUN names the run ("main" unless it is set). `python tests/skips.py folder`
adds up what lies there, prints a table, and fails where a reason is not in tests/skips.txt, or
where a reason in it is no longer needed. A module that is skipped whole counts as one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sampling

LIST = Path(__file__).parent / "skips.txt"
_MARKERS = {
    "gpu": "needs a CUDA device (marker gpu)",
    "slow": "takes more than a few seconds (marker slow)",
}
_NOT_CHOSEN = "not chosen by --part or -k"

# The stand-in for pytest on machines without it has no hooks.
_hook: Any = getattr(pytest, "hookimpl", lambda **options: lambda function: function)

# --- counting, in a run of pytest -----------------------------------------------------------------


class SkipCounter:
    """Counts the reasons of one run. Workers of xdist send what was not chosen to the controller,
    which gets all reports."""

    def __init__(self, folder: str | None, run: str) -> None:
        self.folder, self.run = folder, run
        self.skipped: Counter[str] = Counter()
        self.deselected: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def _count(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self.deselected.update(map(_why_deselected, items))

    @_hook(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Each worker collects all tests, so that any of them has the whole count."""
        self.deselected |= Counter(getattr(node, "workeroutput", {}).get("deselected", {}))

    @_hook(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["deselected"] = dict(self.deselected)
        elif self.folder is not None:
            counts = {"run": self.run, "skips": self.skipped + self.deselected}
            Path(self.folder, f"{os.getpid()}.json").write_text(json.dumps(counts))


def _why_deselected(item: pytest.Item) -> str:
    if item.get_closest_marker(sampling.ROTATED):
        return "row of another commit"
    expression = item.config.getoption("markexpr", "")
    for name, reason in _MARKERS.items():
        if f"not {name}" in expression and item.get_closest_marker(name):
            return reason
    return _NOT_CHOSEN


def pytest_configure(config: pytest.Config) -> None:
    # Taken out of the environment: tests that run pytest themselves are not counted.
    folder = os.environ.pop("TGRAPH_SKIPS", None)
    counter = SkipCounter(folder, os.environ.get("TGRAPH_RUN", "main"))
    config.pluginmanager.register(counter, "skip counter")


# --- checking, at the end of CI -------------------------------------------------------------------


class Reason(NamedTuple):
    """A line of the list: in which runs a reason may come, and whether it must."""

    runs: str
    must_come: bool
    pattern: str
    why: str

    def matches(self, run: str, reason: str) -> bool:
        is_run = re.fullmatch(self.runs, run) is not None
        return is_run and re.fullmatch(self.pattern, reason, re.DOTALL) is not None


def listed(text: str) -> Iterator[Reason]:
    """The reasons of a list; ValueError for a line that is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 4 or parts[1] not in ("always", "sometimes"):
            raise ValueError(f"line {number} is not `runs | always or sometimes | pattern | why`")
        yield Reason(parts[0], parts[1] == "always", parts[2], parts[3])


Counts = dict[str, Counter[str]]
"""By the name of the run: how often each reason came."""


def faults(counts: Counts, reasons: Iterable[Reason]) -> Iterator[str]:
    """What is not as the list says: reasons that are missing from it, and those that never came
    where there was such a run."""
    reasons = list(reasons)
    for run, reason, count in _rows(counts):
        if not any(each.matches(run, reason) for each in reasons):
            yield f"not in the list: {count} in the run {run!r}: {reason}"
    for each in reasons:
        runs = [counts[run] for run in counts if re.fullmatch(each.runs, run)]
        came = any(re.fullmatch(each.pattern, reason, re.DOTALL) for run in runs for reason in run)
        if each.must_come and runs and not came:
            yield f"no longer needed: {each.runs} | {each.pattern}"


def _rows(counts: Counts) -> list[tuple[str, str, int]]:
    return [(run, reason, n) for run, found in counts.items() for reason, n in found.items()]


def read(folder: Path) -> Counts:
    """What the runs wrote into a folder."""
    counts: Counts = {}
    for path in sorted(folder.glob("*.json")):
        written = json.loads(path.read_text())
        counts.setdefault(written["run"], Counter()).update(written["skips"])
    return counts


def table(counts: Counts) -> Iterator[str]:
    """The lines of a table of counts, runs and reasons, the largest first."""
    rows = sorted(_rows(counts), key=lambda row: -row[2])
    yield f"{'count':>6}  {'run':12}  reason"
    for run, reason, count in rows:
        yield f"{count:6}  {run:12}  {reason}"
    yield f"{sum(count for *_, count in rows):6}  in all, in the runs {', '.join(counts)}"


def main() -> int:
    counts = read(Path(sys.argv[1]))
    print(*table(counts), sep="\n")
    found = [*faults(counts, listed(LIST.read_text()))]
    if found:
        print(f"\nReasons differ from {LIST}:", *found, sep="\n", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
