"""Where compiled is slower than eager: `python -m benchmarks.compiled`.

Every operation of `operations.py` runs compiled, alone, beside itself in eager mode, at three
sizes. Those that take more than 1.5 times as long are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import pairs
from .eager import faults, measured, parsed, write
from .operations import SIZES
from .pairs import Pair

SLOWER = 1.5


def offenders(found: Sequence[Pair]) -> list[Pair]:
    """Those that are slower compiled, the slowest first."""
    slow = [pair for pair in found if not pair.error and pair.ratio > SLOWER]
    return sorted(slow, key=lambda pair: -pair.ratio)


def main() -> int:
    options = parsed(__doc__, sizes=",".join(SIZES))
    found, versions = measured(["tgraph_compiled", "tgraph"], options)
    slow = offenders(found)
    text = (
        f"Compiled takes more than {SLOWER} times eager mode's time in {len(slow)} of {len(found)} "
        f"rows; the geometric mean of all ratios is {pairs.mean(found):.2f}."
    )
    titles = ["compiled", "eager"]
    listed = [f"- {pair.operation}, {pair.size}: {pair.ratio:.2f}" for pair in slow]
    parts = [text, *(["\n".join(listed)] if listed else []), pairs.listed(found, titles)]
    write("Compiled beside eager", options, versions, [*parts, *faults(found)])
    return 1 if slow or any(pair.error for pair in found) else 0


if __name__ == "__main__":
    sys.exit(main())
