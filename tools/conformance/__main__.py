"""PyTorch's own cases run against tgraph.

    python -m tools.conformance modules
    python -m tools.conformance modules --only GRU --verbose

For each module: how many of its cases agree with PyTorch in state keys, repr, values, gradients and
buffers, eagerly and compiled, and what is the first difference. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import sys

import torch

from . import modules


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("family", choices=["modules"])
    parser.add_argument("--only", nargs="+", help="names")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--verbose", action="store_true", help="each difference, with its case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    agree = 0
    chosen = options.only or modules.names()
    for name in chosen:
        cases = list(modules.cases_of(name, getattr(torch, options.dtype)))
        found = [(case, modules.outcome(case)) for case in cases]
        wrong = [(case, text) for case, text in found if text]
        agree += not wrong
        first = wrong[0][1] if wrong else ""
        print(f"{name:32} {len(cases) - len(wrong):3} / {len(cases):3}  {first}", flush=True)
        if options.verbose:
            for case, text in wrong:
                print(f"    {case.text[:150]} training={case.training}\n        {text}")
    print(f"{agree} of {len(chosen)} agree")
    return 0


sys.exit(main())
