"""tgraph's eager mode beside PyTorch's, operation by operation: `python -m benchmarks.eager`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import machine, pairs, report
from .operations import BY_NAME, OPERATIONS, SIZES
from .pairs import Pair


def parsed(
    description: str | None, arguments: list[str] | None = None, sizes: str = "small,large"
) -> argparse.Namespace:
    """The command line of what compares two contenders."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("operations", nargs="*", metavar="operation", help="all unless named")
    parser.add_argument("--sizes", default=sizes, help=f"of {','.join(SIZES)}")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.03, help="of each in a round (%(default)s)"
    )
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="time calls at a real-time priority, for busy machines; needs root's rights",
    )
    parser.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--save", metavar="NAME", help="write results/NAME.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.operations if name not in BY_NAME]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    return options


def measured(names: Sequence[str], options: argparse.Namespace) -> tuple[list[Pair], str]:
    """The pairs of two contenders, and their versions."""
    chosen = [BY_NAME[name] for name in options.operations] or OPERATIONS
    running = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        try:
            for name in names:
                running.append(pairs.started(name, options.threads, Path(folder)))
            versions = {k: v for process in running for k, v in process.versions.items()}
            found = pairs.compare(
                running,
                chosen,
                options.sizes.split(","),
                pairs.How(options.rounds, options.seconds, options.realtime),
                Path(folder),
                lambda text: print(text, file=sys.stderr),
            )
            return list(found), ", ".join(f"{k} {v}" for k, v in versions.items())
        finally:
            for process in running:
                process.stop()


def write(title: str, options: argparse.Namespace, versions: str, parts: Sequence[str]) -> None:
    """Print a report, and keep it if that is asked for."""
    facts = machine.describe(options.threads) | ({"versions": versions} if versions else {})
    listed = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    text = "\n\n".join([f"# {title}", listed, *parts]) + "\n"
    print(text)
    if options.save:
        path = (report.RESULTS / options.save).with_suffix(".md")
        path.write_text(text)


def summary(found: Sequence[Pair], size: str) -> str:
    """How one size compares, in two sentences."""
    rows = [pair for pair in found if pair.size == size and not pair.error]
    if not rows:
        return f"{size.capitalize()}: nothing was measured."
    no_slower = sum(pair.ratio <= 1 for pair in rows)
    worst = sorted(rows, key=lambda pair: -pair.ratio)[:5]
    slow = ", ".join(f"{pair.operation} {pair.ratio:.1f}" for pair in worst)
    return (
        f"{size.capitalize()}: the geometric mean of tgraph's time by PyTorch's is "
        f"{pairs.mean(rows):.2f}; tgraph is no slower in {no_slower} of {len(rows)} rows. "
        f"The greatest ratios are {slow}."
    )


def faults(found: Sequence[Pair]) -> list[str]:
    """What failed, as a part of a report."""
    lines = [f"- {p.operation}, {p.size}: {' '.join(p.error.split())}" for p in found if p.error]
    return ["## Faults\n\n" + "\n".join(lines)] if lines else []


def main() -> int:
    options = parsed(__doc__)
    found, versions = measured(["tgraph", "torch"], options)
    told = [summary(found, size) for size in options.sizes.split(",")]
    note = (
        "Median over interleaved rounds, each library in a process of its own, stopped while the "
        "other is timed. Gradients and steps are those of whole small networks."
    )
    table = pairs.listed(found, ["tgraph", "torch"])
    write("Eager mode", options, versions, [note, *told, table, *faults(found)])
    return 1 if any(pair.error for pair in found) else 0


if __name__ == "__main__":
    sys.exit(main())
