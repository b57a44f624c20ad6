"""The table of results in Markdown."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections import Counter
from collections.abc import Sequence

from .faults import Fault
from .results import Results

HEAD = """# Planted faults

Small faults in the code, and whether the tests that are meant for that code find them.
`python -m tools.planted_faults --write docs/planted_faults.md` writes this page; its text says how
faults are planted. The tests "old" are those of commit 3e39f146. A fault that the "new" ones missed
when the table was made (55 of 205 were) has got a test since.
"""
PACKAGES = ("numpy", "llvmlite", "pytest")


def page(faults: Sequence[Fault], results: Results) -> str:
    """The whole page, with one column for each suite that was measured."""
    suites = list(results.suites)
    titles = ["fault", "kind", "file", "what would go wrong", *suites]
    rows = [_row(titles), _row(["---"] * len(titles))]
    rows += [_row([*_cells(fault), *_verdicts(fault, results)]) for fault in faults]
    return "\n".join([HEAD, *_summary(faults, results), "", _machine(), "", *rows, ""])


def summary(faults: Sequence[Fault], results: Results, suite: str) -> str:
    """How many faults a suite finds and misses, in one line."""
    done = [result for fault in faults if (result := results.get(suite, fault))]
    counts = Counter(result.verdict for result in done)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    seconds = sum(result.seconds for result in done)
    return f"{suite}: {verdicts or 'nothing measured'} ({len(done)} faults, {seconds:.0f} s)"


def _summary(faults: Sequence[Fault], results: Results) -> list[str]:
    return [f"- {summary(faults, results, suite)}" for suite in results.suites]


def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"Measured on {platform.system()}, {machine}, {versions}."


def _cells(fault: Fault) -> list[str]:
    return [f"`{fault.name}`", fault.kind, f"`{fault.file}`", fault.reason.replace("|", r"\|")]


def _verdicts(fault: Fault, results: Results) -> list[str]:
    found = (results.get(suite, fault) for suite in results.suites)
    return [f"{each.verdict}, {each.seconds:.0f} s" if each else "–" for each in found]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
