"""PyTorch's own cases run against tgraph. Needs PyTorch.

    python -m tools.conformance modules
    python -m tools.conformance modules --only GRU --verbose
    python -m tools.conformance modules optimizers operations --write docs/conformance.md

For each module, optimizer and operation: how many of its cases agree with PyTorch in values,
gradients and state, eagerly and compiled, and what is the first difference.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from .report import written
from .runner import FAMILIES, results_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--only", nargs="+", help="names")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="each difference, with its case")
    parser.add_argument("--write", type=Path, help="a page with all of it")
    options = parser.parse_args()
    results = {}
    for family in options.families:
        names = [name for name in FAMILIES[family].names() if name in (options.only or [name])]
        found = results[family] = results_of(family, names, options.dtype, options.processes)
        if options.verbose:
            for result in found:
                for case, text in result.differences:
                    print(f"{result.name} {case}\n    {text}")
        print(f"{sum(not each.differences for each in found)} of {len(found)} {family} agree")
    if options.write:
        options.write.write_text(written(results, torch.__version__))


if __name__ == "__main__":
    sys.exit(main())
