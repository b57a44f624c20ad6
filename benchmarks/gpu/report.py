"""What was measured on a device: a line for each workload, tables as Markdown, all as JSON."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import report
from ..measure import Result
from ..report import OURS, cell, ratio, seconds, table
from .contenders import TITLES
from .session import Outcome
from .worker import COPY
from .workloads import GpuWorkload

Workloads = Mapping[str, GpuWorkload]
# Lines of a trace that are shown.
TRACE = 6
HEADING = ["workload", "tgraph", "GB/s", "of copy", "TFLOP/s"]

STEADY_NOTE = (
    "Medians over interleaved rounds; a turn is a batch of calls between two synchronisations. "
    "GB/s are the bytes that must be read and written at least, divided by tgraph's time; *of "
    "copy* is that rate by the rate of a large copy in the same rounds. The ratio is tgraph's time "
    "by the best peer's, round by round: below 1 tgraph is faster."
)
RATIO_NOTE = "tgraph's time divided by each other's, round by round: below 1 tgraph is faster."
FIRST_NOTE = (
    "Tracing and compiling included, while other contenders compile on the other processors; a "
    "contender's first workload pays for its compiler's start too."
)
EPILOGUE_NOTE = (
    "Of a layer with so many rows × inputs × outputs: tgraph's product and the kernels behind it, "
    "*apart*, cublasLt's product with an epilogue, *together*, and an *own kernel* of tgraph that "
    "multiplies and does the rest, sums apart, where there is one; float32 of cublasLt with "
    "TensorFloat32. Medians over interleaved rounds of captured repetitions; ratios are those to "
    "*apart*, round by round: below 1 *apart* is slower. Differences are relative to the greatest "
    "value."
)
EPILOGUE_COLUMNS = [
    *("epilogue", "size", "dtype", "apart", "together", "ratio", "difference"),
    *("own kernel", "ratio", "difference"),
]
ERROR_NOTE = (
    "Of outputs the greatest error relative to the greatest value, of training steps the error of "
    "the loss or of a parameter's change in the mean square, against float64."
)


def figures(outcome: Outcome, workload: str) -> list[str]:
    """tgraph's time, and its rates where they mean something."""
    row = outcome.results.get(workload, {})
    ours, copy = row.get(OURS), row.get(COPY)
    if ours is None or not ours.rounds:
        return [cell(ours) if ours else "–", "", "", ""]
    moved, flops = outcome.moved.get(workload, 0), outcome.flops.get(workload, 0)
    share = ""
    if moved and copy is not None and copy.rounds:
        share = f"{moved / (2 * outcome.copied) / ratio(ours, copy):.0%}"
    return [
        seconds(ours.median),
        f"{moved / ours.median / 1e9:.0f}" if moved else "",
        share,
        f"{flops / ours.median / 1e12:.3g}" if flops else "",
    ]


def heading() -> str:
    """What stands above the lines."""
    return f"{HEADING[0]:<18}{''.join(f'{each:>10}' for each in HEADING[1:])}   {RATIO_NOTE}"


def line(outcome: Outcome, workload: str) -> str:
    """A workload that is done, on one line; one line more for each contender that failed."""
    row = outcome.results.get(workload, {})
    peers = [f"{name} {_against(row, name)}" for name in row if _is_peer(name, row)]
    numbers = "".join(f"{each:>10}" for each in figures(outcome, workload))
    failed = [f"  {name}: {row[name].error}" for name in row if row[name].failed]
    return "\n".join([f"{workload:<18}{numbers}   {'  '.join(peers)}", *failed])


def _is_peer(name: str, row: Mapping[str, Result]) -> bool:
    return name not in (OURS, COPY) and bool(row[name].rounds)


def _against(row: Mapping[str, Result], name: str) -> str:
    """The ratio of times; the time itself where ours is missing."""
    ours = row.get(OURS)
    if ours is None or not ours.rounds:
        return seconds(row[name].median)
    return f"{ratio(ours, row[name]):.2f}"


def markdown(machine: Mapping[str, str], workloads: Workloads, outcome: Outcome) -> str:
    """The whole report."""
    named = [name for name in workloads if name in outcome.results]
    names = [name for name in TITLES if any(name in outcome.results[w] for w in named)]
    others = [name for name in names if name != OURS]

    def grid(columns: Sequence[str], text: Callable[[Mapping[str, Result], str], str]) -> str:
        rows = []
        for workload in named:
            row = outcome.results[workload]
            cells = [text(row, name) if name in row else "" for name in columns]
            rows.append([f"`{workload}`", *cells])
        return table(["workload", *(TITLES[name] for name in columns)], rows)

    parts = [
        "# GPU benchmarks",
        _facts(machine, outcome, names),
        "## Steady calls",
        STEADY_NOTE,
        _steady(workloads, outcome, named),
        "## Times",
        "With half the distance between the quartiles of the rounds.",
        grid(names, lambda row, name: cell(row[name])),
        "## Ratios",
        RATIO_NOTE,
        grid(others, lambda row, name: _against(row, name) if _is_peer(name, row) else "–"),
        "## First calls",
        FIRST_NOTE,
        grid(names, lambda row, name: _first(row[name])),
        *_fresh(outcome),
        *_epilogues(outcome),
        "## Errors",
        ERROR_NOTE,
        grid(names, lambda row, name: _deviation(row[name])),
        *_faults(outcome),
    ]
    return "\n\n".join(parts) + "\n"


def ending(machine: Mapping[str, str], outcome: Outcome) -> str:
    """What the lines do not tell: the machine, first calls, what failed or was not reached."""
    names = [name for name in TITLES if any(name in row for row in outcome.results.values())]
    parts = [*_fresh(outcome), *_epilogues(outcome), *_faults(outcome)]
    return "\n\n".join([_facts(machine, outcome, names), *parts])


def _faults(outcome: Outcome) -> list[str]:
    told = [*report.faults(outcome.results), *(f"- {each}" for each in outcome.faults)]
    parts = ["## Faults", "\n".join(told)] if told else []
    if outcome.not_run:
        lines = (f"- `{w}`: {', '.join(names)}" for w, names in outcome.not_run.items())
        parts += ["## Not run", "There was no time left.", "\n".join(lines)]
    return parts


def traces(outcome: Outcome) -> list[str]:
    """Where faults come from: the last lines of each different trace."""
    ends: dict[str, str] = {}
    for workload, row in outcome.results.items():
        for name, result in row.items():
            if result.failed and result.trace:
                ends.setdefault(
                    "\n".join(result.trace.splitlines()[-TRACE:]), f"{name}, {workload}"
                )
    return [f"{first}:\n{end}" for end, first in ends.items()]


def _facts(machine: Mapping[str, str], outcome: Outcome, names: Sequence[str]) -> str:
    facts = {**machine, "versions": report.versions(outcome.results, names)}
    if (rate := copy_rate(outcome)) is not None:
        size = outcome.copied / 2**30
        facts["copy"] = f"{rate / 1e9:.0f} GB/s, reads and writes, of {size:.3g} GiB"
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def copy_rate(outcome: Outcome) -> float | None:
    """Bytes per second, read and written, that a large copy moves; None if there was none."""
    times = [t for row in outcome.results.values() if COPY in row for t in row[COPY].rounds]
    return 2 * outcome.copied / statistics.median(times) if times else None


def _steady(workloads: Workloads, outcome: Outcome, named: Iterable[str]) -> str:
    rows = []
    for workload in named:
        row = outcome.results[workload]
        best = report.best_peer(row)
        compared = ["–", ""]
        if best is not None:
            compared = [TITLES[best], _against(row, best) if row.get(OURS) else ""]
        title = f"`{workload}`: {workloads[workload].title}"
        rows.append([title, *figures(outcome, workload), *compared])
    return table([*HEADING, "best peer", "ratio"], rows)


def _first(result: Result) -> str:
    if result.first_cold is None:
        return "failed" if result.failed else "–"
    return seconds(result.first_cold)


def _fresh(outcome: Outcome) -> list[str]:
    """First calls in a process of its own."""
    lines = []
    for workload, times in outcome.first.items():
        text = times if isinstance(times, str) else _two(*times)
        lines.append(f"- `{workload}`, tgraph alone on the machine: {text}")
    return lines


def _epilogues(outcome: Outcome) -> list[str]:
    """Matrix products with epilogues beside those without."""
    found = outcome.epilogues
    if found is None or isinstance(found, str):
        return ["## Epilogues", found] if found else []
    rows = [
        [f"`{row['epilogue']}`", row["size"], row["dtype"], *_epilogue_cells(row)]
        for row in found["rows"]
    ]
    special = [
        f"- `{epilogue}` of {dtype}: {text}"
        for dtype, texts in found["special"].items()
        for epilogue, text in texts.items()
    ]
    missing = f"There was no time for {found['not_measured']} more."
    return [
        "## Epilogues",
        EPILOGUE_NOTE,
        table(EPILOGUE_COLUMNS, rows),
        *([missing] if found["not_measured"] else []),
        "What activations make of special values:",
        "\n".join(special),
    ]


def _epilogue_cells(row: Mapping[str, Any]) -> list[str]:
    if "error" in row:
        return ["", row["error"], "", "", "", "", ""]
    tiled = ["–", "", ""]
    if "tiled" in row:
        tiled = [
            seconds(row["tiled"]), f"{row['tiled_ratio']:.2f}", f"{row['tiled_deviation']:.1e}",
        ]  # fmt: skip
    return [
        seconds(row["separate"]),
        seconds(row["together"]),
        f"{row['ratio']:.2f}",
        f"{row['deviation']:.1e}",
        *tiled,
    ]


def _two(cold: float, warm: float) -> str:
    return f"first call {seconds(cold)} with empty caches, {seconds(warm)} with its own"


def _deviation(result: Result) -> str:
    return "–" if result.deviation is None else f"{result.deviation:.1e}"


def as_json(machine: Mapping[str, str], workloads: Workloads, outcome: Outcome) -> dict[str, Any]:
    """Everything measured."""
    rest = {each.name: getattr(outcome, each.name) for each in dataclasses.fields(outcome)}
    del rest["results"]
    rate = copy_rate(outcome)
    return {
        **report.as_json(machine, outcome.results),
        **rest,
        "titles": {name: workloads[name].title for name in outcome.results},
        "copy_bytes_per_second": rate if rate is None or math.isfinite(rate) else None,
    }
