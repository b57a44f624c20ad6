"""Where compiled is slower than eager: `python -m benchmarks.compiled`.

Every operation of `operations.py`, and every row of the tests' table of operations (`table.py`),
runs compiled, alone, beside itself in eager mode, at three sizes. Those that take more than 1.5
times as long are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tgraph

from . import pairs, report, table
from .eager import faults, measured, parsed, write
from .operations import SIZES
from .pairs import Pair

SLOWER = 1.5
LISTED = 20
"""The rows of the tests' table that a report shows."""


def offenders(found: Sequence[Pair]) -> list[Pair]:
    """Those that are slower compiled, the slowest first."""
    slow = [pair for pair in found if not pair.error and pair.ratio > SLOWER]
    return sorted(slow, key=lambda pair: -pair.ratio)


def summary(found: Sequence[Pair], what: str) -> str:
    """The offenders, in a list."""
    slow = offenders(found)
    text = (
        f"Compiled takes more than {SLOWER} times eager mode's time in {len(slow)} of {len(found)} "
        f"{what}; the geometric mean of all ratios is {pairs.mean(found):.2f}."
    )
    listed = [f"- {pair.operation}, {pair.size}: {pair.ratio:.2f}" for pair in slow]
    return "\n\n".join([text, *(["\n".join(listed)] if listed else [])])


def table_parts(rows: Sequence[table.Row]) -> list[str]:
    """What a report tells of the tests' table."""
    computing = [row for row in rows if row.computes]
    still = [row for row in rows if not row.computes]
    worst = sorted(rows, key=lambda row: -row.ratio)[:LISTED]
    cells = [[row.operation, row.size, *row.cells, "" if row.computes else "no"] for row in worst]
    heading = ["row", "size", "compiled", "eager", "ratio", "computes"]
    parts = ["## The tests' table", table.NOTE, summary(computing, "rows at a size")]
    if still:
        parts.append(
            f"{len(still)} more give arguments, or views of them: nothing is computed, and what is "
            "timed is the call alone, which looks whether its plan holds. " + summary(still, "such")
        )
    return [*parts, f"The {len(worst)} slowest:", report.table(heading, cells)]


def main() -> int:
    options = parsed(__doc__, sizes=",".join(SIZES))
    found, versions = measured(["tgraph_compiled", "tgraph"], options)
    parts = [summary(found, "rows"), pairs.listed(found, ["compiled", "eager"]), *faults(found)]
    rows: list[table.Row] = []
    if not options.operations:
        tgraph.set_num_threads(options.threads)
        rows += table.compare(list(table.ROWS), options.sizes.split(","), table.How())
        parts += table_parts(rows)
    write("Compiled beside eager", options, versions, parts)
    slow = offenders([*found, *(row for row in rows if row.computes)])
    return 1 if slow or any(pair.error for pair in found) else 0


if __name__ == "__main__":
    sys.exit(main())
