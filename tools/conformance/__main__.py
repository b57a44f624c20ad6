"""PyTorch's own cases run against tgraph. Needs PyTorch.

    python -m tools.conformance modules
    python -m tools.conformance modules --only GRU --verbose
    python -m tools.conformance modules optimizers operations --write docs/conformance.md
    python -m tools.conformance modules optimizers operations --results build/run.jsonl --write PAGE
    python -m tools.conformance operations --results build/run.jsonl --only cat addbmm --write PAGE
    python -m tools.conformance sample --write tests/compat/data/conformance.npz
    python -m tools.conformance malformed --write tests/compat/data/malformed.txt
    python -m tools.conformance malformed --only gather roll [--write TABLE]

For each module, optimizer and operation: how many of its cases agree with PyTorch in values,
gradients, state and errors, eagerly and compiled, and what is the first difference. Results are
added to the file of --results as they come: names in it run again only with --only, and are in the
page, too, which tells at which commits they ran.

"sample" writes a few cases of each for the tests, which read them without PyTorch. "malformed"
makes malformed calls of these (`malformed.py`); it prints what differs of the names of --only, and
writes their lines of the table, or all.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import torch

from .make_malformed import write_malformed
from .make_sample import write_sample
from .report import written
from .runner import FAMILIES, ResultLog, results_of

SAMPLE = Path("tests/compat/data/conformance.npz")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("families", nargs="+", choices=[*FAMILIES, "sample", "malformed"])
    parser.add_argument("--only", nargs="+", help="names")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument(
        "--device", default="cpu", help="of tgraph's tensors; PyTorch's are on the CPU"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--compiled", type=int, default=12, help="how many cases are compiled, too")
    parser.add_argument("--verbose", action="store_true", help="each difference, with its case")
    parser.add_argument("--write", type=Path, help="a page with all of it")
    parser.add_argument("--results", type=Path, help="what came before, and is added to")
    options = parser.parse_args()
    if "sample" in options.families:
        return write_sample(options.write, options.only, options.processes)
    if "malformed" in options.families:
        return write_malformed(options.write, SAMPLE, options.only, options.processes)
    log = ResultLog(options.results)
    for family in options.families:
        names = [name for name in FAMILIES[family].names() if name in (options.only or [name])]
        if not options.only:
            names = [name for name in names if name not in log.results[family]]
        found = []
        for result in results_of(
            family, names, options.dtype, options.processes, options.compiled, options.device
        ):
            first = result.differences[0][1] if result.differences else ""
            print(f"{result.name:40} {result.agree:3} / {result.count:3}  {first}", flush=True)
            log.add(family, result)
            found.append(result)
        if options.verbose:
            for result in found:
                for case, text in result.differences:
                    print(f"{result.name} {case}\n    {text}")
        print(f"{sum(not each.differences for each in found)} of {len(found)} {family} agree")
    if options.write:
        options.write.write_text(written(
            log.in_order(), version=torch.__version__,
            python=platform.python_version(), compiled=options.compiled,
            command=" ".join(sys.argv[1:]),
        ))  # fmt: skip
    return None


if __name__ == "__main__":
    sys.exit(main())
