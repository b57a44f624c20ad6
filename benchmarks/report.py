"""The tables, as Markdown, and everything measured, as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .contenders import COMPILERS, TITLES, VERSIONS
from .measure import DISTURBED, Result
from .workloads import BY_NAME

RESULTS = Path(__file__).parent / "results"
Results = Mapping[str, Mapping[str, Result]]
OURS = "tgraph"
# No row should take more than so many times the best peer's time.
SLOWER = 1.2


def seconds(value: float) -> str:
    """Three digits and a unit.

    >>> seconds(0.0123456), seconds(5.8e-6), seconds(2.5)
    ('12.3 ms', '5.80 µs', '2.50 s')
    """
    scale, unit = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    scaled = value * scale
    digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
    return f"{scaled:.{digits}f} {unit}"


def spread(rounds: Sequence[float]) -> float:
    """Half the distance between the quartiles of the rounds, relative to their median."""
    if len(rounds) < 4:
        return (max(rounds) - min(rounds)) / 2 / statistics.median(rounds)
    low, middle, high = statistics.quantiles(rounds, n=4)
    return (high - low) / 2 / middle


def ratio(ours: Result, other: Result) -> float:
    """Median over the rounds of our time divided by the other's in the same round."""
    return statistics.median(map(float.__truediv__, ours.rounds, other.rounds))


def best_peer(results: Mapping[str, Result]) -> str | None:
    """The fastest contender that is not ours."""
    peers = [name for name in results if name not in (*VERSIONS, "copy")]
    peers = [name for name in peers if results[name].rounds]
    return min(peers, key=lambda name: results[name].median, default=None)


def markdown(machine: Mapping[str, str], results: Results) -> str:
    """The whole report."""
    names = [name for name in TITLES if any(name in row for row in results.values())]
    parts = [
        "# Benchmarks",
        _facts(machine, results, names),
        "## Steady calls",
        _steady_note(results),
        _steady(results, names),
        *_least(results, names),
        *_against_before(results),
        *_summary(results),
        "## First calls",
        FIRST_NOTE,
        _first_calls(results, names),
        "## Import",
        _imports(results, names),
    ]
    told = [*faults(results)]
    if told:
        parts += ["## Faults", "\n".join(told)]
    return "\n\n".join(parts) + "\n"


FIRST_NOTE = (
    "Tracing and compiling included, in a fresh process: with empty caches, then (after the slash) "
    "in a second process that finds the first one's caches on disk."
)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] + ["---:"] * (len(heading) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _facts(machine: Mapping[str, str], results: Results, names: Sequence[str]) -> str:
    facts = {**machine, "versions": versions(results, names)}
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def versions(results: Results, names: Sequence[str]) -> str:
    """The versions of the contenders of these names."""
    found: dict[str, str] = {}
    for row in results.values():
        for name in names:
            found.update(row[name].versions if name in row else {})
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _disturbed(results: Results) -> float:
    """The part of all rounds that other programs disturbed."""
    rounds = [share for row in results.values() for each in row.values() for share in each.foreign]
    return sum(share > DISTURBED for share in rounds) / max(1, len(rounds))


def _steady_note(results: Results) -> str:
    return (
        "Median over interleaved rounds, with half the distance between their quartiles. The ratio "
        "is tgraph's time by the best peer's, round by round: below 1 tgraph is faster. *Of copy* "
        "is the time to copy as many bytes as must be moved at least, divided by tgraph's time. "
        f"Other programs disturbed {_disturbed(results):.0%} of the rounds."
    )


def _steady(results: Results, names: Sequence[str]) -> str:
    heading = ["workload", *(TITLES[name] for name in names), "best peer", "ratio", "of copy"]
    rows = []
    for workload, row in results.items():
        cells = [cell(row[name]) for name in names if name in row]
        rows.append([_title(workload), *cells, *_comparison(row)])
    return table(heading, rows)


def _least(results: Results, names: Sequence[str]) -> list[str]:
    """On a busy machine the shortest calls tell more than the medians."""
    if _disturbed(results) <= DISTURBED:
        return []
    rows = []
    for workload, row in results.items():
        times = {name: row[name].least for name in names if name in row}
        peer = min((times[name] for name in times if name not in VERSIONS), default=math.inf)
        ours = times.get(OURS, math.inf)
        compared = f"{ours / peer:.2f}" if max(ours, peer) < math.inf else "–"
        cells = [seconds(times[n]) if times[n] < math.inf else "–" for n in times]
        rows.append([f"`{workload}`", *cells, compared])
    heading = ["workload", *(TITLES[name] for name in names), "ratio"]
    return ["## Shortest calls", "The machine was busy.", table(heading, rows)]


def _against_before(results: Results) -> list[str]:
    """The other commit's version beside this one, where it was measured."""
    rows = []
    for workload, row in results.items():
        ours, before = row.get(OURS), row.get("before")
        if ours and before and ours.rounds and before.rounds:
            rounds = [one / other for one, other in zip(ours.rounds, before.rounds, strict=True)]
            least = f"{ours.least / before.least:.2f}"
            rows.append(
                [f"`{workload}`", f"{statistics.median(rounds):.2f} ±{spread(rounds):.0%}", least]
            )
    heading = ["workload", "ratio of medians", "of shortest calls"]
    note = "Time of this commit by the other's, round by round: below 1 this one is faster."
    return ["## Against the commit before", note, table(heading, rows)] if rows else []


def ratios(results: Results) -> dict[str, float]:
    """tgraph's time by the best peer's of each workload that both ran, greatest first."""
    found = {}
    for workload, row in results.items():
        best, ours = best_peer(row), row.get(OURS)
        if best is not None and ours is not None and ours.rounds:
            found[workload] = ratio(ours, row[best])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _summary(results: Results) -> list[str]:
    """How many rows tgraph leads, by how much, and those where a peer leads."""
    found = ratios(results)
    if not found:
        return []
    behind = {name: value for name, value in found.items() if value > 1}
    text = (
        f"tgraph is ahead of the best peer in {len(found) - len(behind)} of {len(found)} rows, and "
        f"slower than {SLOWER} times its time in {sum(v > SLOWER for v in found.values())}. The "
        f"ratios' geometric mean is {statistics.geometric_mean(found.values()):.2f}."
    )
    rows = []
    for name, value in behind.items():
        best = best_peer(results[name])
        assert best is not None
        times = [seconds(results[name][who].median) for who in (OURS, best)]
        rows.append([f"`{name}`", f"{value:.2f}", times[0], f"{TITLES[best]} {times[1]}"])
    where = table(["where a peer leads", "ratio", "tgraph", "best peer"], rows)
    return ["## All rows", text, *([where] if rows else [])]


def _title(workload: str) -> str:
    return f"`{workload}`: {BY_NAME[workload].title}"


def cell(result: Result) -> str:
    if not result.rounds:
        return "failed" if result.failed else "–"
    return f"{seconds(result.median)} ±{spread(result.rounds):.0%}"


def _comparison(row: Mapping[str, Result]) -> list[str]:
    best, ours, copy = best_peer(row), row.get(OURS), row.get("copy")
    measured = ours is not None and bool(ours.rounds)
    return [
        TITLES[best] if best else "–",
        f"**{ratio(ours, row[best]):.2f}**" if measured and best else "–",
        f"{ratio(copy, ours):.0%}" if measured and copy is not None and copy.rounds else "–",
    ]


def _first_calls(results: Results, names: Sequence[str]) -> str:
    rows = []
    for workload, row in results.items():
        cells = [_first_cell(name, row[name]) for name in names if name in row]
        rows.append([f"`{workload}`", *cells])
    return table(["workload", *(TITLES[name] for name in names)], rows)


def _first_cell(name: str, result: Result) -> str:
    if result.first_cold is None:
        return "failed" if result.failed else "–"
    cold = seconds(result.first_cold)
    if name not in COMPILERS or result.first_warm is None:
        return cold
    return f"{cold} / {seconds(result.first_warm)}"


def _imports(results: Results, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        times = [t for row in results.values() if name in row for t in row[name].import_seconds]
        if times and name != "torch_compile":
            rows.append([f"`import {name}`", f"{seconds(statistics.median(times))}"])
    return table(["statement", "median"], rows)


def faults(results: Results) -> Iterable[str]:
    told = set()
    for workload, row in results.items():
        for name, result in row.items():
            where = f"{name}, {workload}" if result.failed else name
            line = f"- {where}: {' '.join(result.error.split())}"
            if result.error and line not in told:
                told.add(line)
                yield line


def _plain(result: Result) -> dict[str, Any]:
    fields = dataclasses.asdict(result)
    return {name: value for name, value in fields.items() if value != math.inf}


def as_json(machine: Mapping[str, str], results: Results) -> dict[str, Any]:
    """Everything measured."""
    return {
        "machine": dict(machine),
        "workloads": {
            workload: {name: _plain(each) for name, each in row.items()}
            for workload, row in results.items()
        },
    }


def saved(name: str) -> dict[str, dict[str, Result]]:
    """The results of a kept report; none where there is no such report."""
    path = (RESULTS / name).with_suffix(".json")
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["workloads"]
    return {
        workload: {name: Result(**fields) for name, fields in row.items()}
        for workload, row in rows.items()
    }


def slug(text: str) -> str:
    """Text as a part of a file's name.

    >>> slug("Intel(R) Xeon(R)")
    'intel-r-xeon-r'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()


def save(name: str, markdown: str, data: Mapping[str, Any]) -> Path:
    """Write a report and its data beside each other; where, without the ending."""
    path = RESULTS / name
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".md").write_text(markdown)
    path.with_suffix(".json").write_text(json.dumps(data, indent=1))
    return path
