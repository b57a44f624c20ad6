"""What a run has shown: lines while it goes on, a table, Markdown, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .jobs import Findings, Found

SHOWN_LINES = 4
SHOWN_FAILURES = 25
SLOWEST = 10
WHOLE = 200
"""Failures whose whole tracebacks are in the data; of more it tells what is wrong."""
OUTCOMES = ("passed", "failed", "skipped")


@dataclass
class Result:
    """A run. `left_out` has parts that there was nothing for, with the reason.

    `benchmark` is its exit status, None where it was not run; `seconds` are those of the parts.
    """

    facts: Mapping[str, Any]
    findings: Findings = field(default_factory=Findings)
    left_out: dict[str, str] = field(default_factory=dict)
    benchmark: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        leaks = any(each["bad"] for each in self.findings.memory)
        return not (self.findings.of("failed") or leaks or self.benchmark)


def core(why: str) -> list[str]:
    """The lines of a traceback that say what is wrong: pytest's begin with an E."""
    lines = [line for line in why.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    if not errors:
        lines = [line for line in lines if not line.startswith("  where ")]
        # What stands behind the last line of code.
        first = max(
            (n for n in range(1, len(lines)) if _is_code(lines[n - 1]) and lines[n][0] != " "),
            default=max(0, len(lines) - SHOWN_LINES),
        )
        errors = [line.strip() for line in lines[first:]]
    return errors[:SHOWN_LINES] or ["no message"]


def _is_code(line: str) -> bool:
    return line.startswith(("    ", '  File "'))


def failure_lines(found: Found) -> str:
    lines = "\n".join(f"    {line}" for line in core(found.why))
    return f"FAILED {found.test}\n{lines}"


# -- the table -----------------------------------------------------------------------------------


def rows(result: Result) -> list[list[str]]:
    """One for each module of tests and each tool, and the benchmark."""
    findings = result.findings
    modules: dict[str, dict[str, float]] = {}
    for found in findings.tests.values():
        row = modules.setdefault(found.module, {})
        row[found.outcome] = row.get(found.outcome, 0) + 1
        row["seconds"] = row.get("seconds", 0) + found.seconds
    for test in findings.not_run:
        row = modules.setdefault(Found(test, "").module, {})
        row["not run"] = row.get("not run", 0) + 1
    told = []
    for name in sorted(modules):
        row = modules[name]
        counts = [str(int(row.get(key, 0)) or "") for key in (*OUTCOMES, "not run")]
        told.append([name, *counts, f"{row.get('seconds', 0):.1f}"])
    told += [_memory_row(result)] if findings.memory else []
    told += [[part, "", "", "", "left out", ""] for part in result.left_out]
    if result.benchmark is not None:
        counts = ["", "1"] if result.benchmark else ["1", ""]
        told.append(["benchmark", *counts, "", "", f"{result.seconds.get('benchmark', 0):.1f}"])
    return told


def _memory_row(result: Result) -> list[str]:
    bad = sum(each["bad"] for each in result.findings.memory)
    good = len(result.findings.memory) - bad
    return ["memory after all tests", str(good or ""), str(bad or ""), "", "", ""]


HEADINGS = ["part", *OUTCOMES, "not run", "seconds"]


def table(result: Result) -> str:
    """Aligned columns."""
    lines = [HEADINGS, *rows(result)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def ending(result: Result) -> str:
    """The table, what failed, and what was left out."""
    parts = ["", table(result), *_notes(result)]
    total = sum(len(result.findings.of(outcome)) for outcome in OUTCOMES)
    word = "BAD" if not result.good else "good so far" if result.findings.not_run else "good"
    return "\n".join([*parts, f"{word}: {total} tests in {sum(result.seconds.values()):.0f} s"])


def _notes(result: Result) -> Iterator[str]:
    failed = result.findings.of("failed")
    if failed:
        yield "\nfailures by their message:"
        for message, count, example in grouped(failed)[:SHOWN_FAILURES]:
            yield f"  {count} x {message}\n      such as {example}"
    for each in result.findings.memory:
        if each["bad"]:
            yield f"{each['process']}: {each['used']} bytes are left, {each['known']} are known"
    for part, why in result.left_out.items():
        yield f"left out: {part}: {why}"
    if result.findings.not_run:
        yield f"not run for want of time: {len(result.findings.not_run)} tests, see the JSON file"
    for reason, count in skip_reasons(result).items():
        yield f"skipped {count}: {reason}"
    for text, count in sorted(result.findings.warnings.items(), key=lambda pair: -pair[1])[:5]:
        yield f"warned {count} times: {text[:200]}"


def grouped(failed: Sequence[Found]) -> list[tuple[str, int, str]]:
    """Failures with the same first line: it, how many, and one of them; the most frequent first."""
    groups: dict[str, list[str]] = {}
    for found in failed:
        lines = core(found.why)
        error = next((line for line in lines if "Error" in line or "Exception" in line), lines[0])
        groups.setdefault(error[:160], []).append(found.test)
    found_groups = [(message, len(tests), tests[0]) for message, tests in groups.items()]
    return sorted(found_groups, key=lambda group: -group[1])


def skip_reasons(result: Result) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for found in result.findings.of("skipped"):
        reasons[found.why] = reasons.get(found.why, 0) + 1
    return reasons


def _failures(failed: Sequence[Found]) -> list[dict[str, Any]]:
    short = [replace(found, why="\n".join(core(found.why))) for found in failed[WHOLE:]]
    return [asdict(found) for found in (*failed[:WHOLE], *short)]


# -- files ---------------------------------------------------------------------------------------


def markdown(result: Result) -> str:
    lines = ["# Checks on a GPU", ""]
    lines += [f"- {name}: {value}" for name, value in result.facts.items()]
    lines += ["", f"All in all: **{'good' if result.good else 'bad'}**, as far as it ran.", ""]
    lines.append("| " + " | ".join(HEADINGS) + " |")
    lines.append("| --- |" + " ---: |" * (len(HEADINGS) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows(result)]
    notes = [note.strip() for note in _notes(result)]
    if notes:
        lines += ["", "```", *notes, "```"]
    for found in result.findings.of("failed"):
        lines += ["", f"`{found.test}`", "", "```", *core(found.why), "```"]
    return "\n".join(lines) + "\n"


def as_json(result: Result) -> dict[str, Any]:
    """Everything, with the tracebacks of failures."""
    tests = sorted(result.findings.tests.values(), key=lambda found: found.test)
    slowest = sorted(tests, key=lambda found: -found.seconds)[:SLOWEST]
    return {
        "facts": dict(result.facts),
        "good": result.good,
        "seconds": result.seconds,
        "table": [dict(zip(HEADINGS, row)) for row in rows(result)],
        "failures": _failures([found for found in tests if found.outcome == "failed"]),
        "skipped": skip_reasons(result),
        "left_out": result.left_out,
        "not_run": sorted(result.findings.not_run),
        "memory": result.findings.memory,
        "warnings": result.findings.warnings,
        "slowest": {found.test: found.seconds for found in slowest},
        "benchmark": result.benchmark,
        "tests": {found.test: found.outcome for found in tests},
    }
