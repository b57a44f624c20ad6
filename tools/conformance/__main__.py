"""PyTorch's own cases run against tgraph. Needs PyTorch.

    python -m tools.conformance modules
    python -m tools.conformance modules --only GRU --verbose
    python -m tools.conformance modules optimizers operations --write docs/conformance.md
    python -m tools.conformance sample --write tests/compat/data/conformance.npz

For each module, optimizer and operation: how many of its cases agree with PyTorch in values,
gradients, state and errors, eagerly and compiled, and what is the first difference. "sample" writes
a few cases of each for the tests, which read them without PyTorch.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from pathlib import Path

import torch

from .make_sample import write_sample
from .report import written
from .runner import FAMILIES, results_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("families", nargs="+", choices=[*FAMILIES, "sample"])
    parser.add_argument("--only", nargs="+", help="names")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--compiled", type=int, default=12, help="how many cases are compiled, too")
    parser.add_argument("--verbose", action="store_true", help="each difference, with its case")
    parser.add_argument("--write", type=Path, help="a page with all of it")
    options = parser.parse_args()
    if "sample" in options.families:
        return write_sample(options.write, options.only, options.processes)
    results = {}
    for family in options.families:
        names = [name for name in FAMILIES[family].names() if name in (options.only or [name])]
        found = results[family] = results_of(
            family, names, options.dtype, options.processes, options.compiled
        )
        if options.verbose:
            for result in found:
                for case, text in result.differences:
                    print(f"{result.name} {case}\n    {text}")
        print(f"{sum(not each.differences for each in found)} of {len(found)} {family} agree")
    if options.write:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        ).stdout.strip()
        options.write.write_text(written(
            results, version=torch.__version__, python=platform.python_version(),
            commit=commit or "an unknown commit", compiled=options.compiled,
            command=" ".join(sys.argv[1:]),
        ))  # fmt: skip
    return None


if __name__ == "__main__":
    sys.exit(main())
