"""The page of operations: `python -m tools.operations --write docs/operations.md`.

`--only softmax matmul` prints their rows.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import tools.operations  # noqa: F401  its tables are found from here on

from .found import COLUMNS, WHY_NOT, Found, found, names, operations, unlisted

HEAD = """# What each operation can do

Written by `make operations`, which runs the rows that an operation has in the tables of tests;
`tests/consistency/test_pages_and_stubs.py` holds the page to those tables.

| column | what a cell says |
| --- | --- |
| forms | `f` function of `tgraph` or of the namespace in its name, `m` method, `i` method that writes in place, `o` takes `out=` |
| CPU | eager results are those of NumPy or SciPy |
| CUDA | yes: eager ones are the CPU's on a stand-in of CuPy, and its kernels are written; "eager": not inside a plan |
| gradient, double gradient | agree with finite differences |
| forward mode | tangents are the transpose of gradients |
| vmap | a batch gives what its examples give one by one |
| compiled | agrees with eager results; "in stages": sizes that data decide |
| fused | the steps of `relu(3 * op(2 * x))`: "one kernel" where all of it is one; "gemm", "sort", "library" and others are steps of their own, which kernels stand around |

"–" is where there is nothing: no floats to differentiate, no tensor that is put in. "no" is where
there could be something: [why not](#why-not). Rows of a group are tested together ("in a group": so are its steps).
In place a function gives the same numbers with the same gradients
(`tests/autograd/test_inplace_forms.py`).
"""  # noqa: E501


def line(each: Found) -> str:
    return f"| {names(each.name)} | {' | '.join((each.forms, *each.cells))} |"


def page() -> str:
    parts = [HEAD]
    for title, rows in operations().items():
        parts += [
            f"## {title[:1].upper()}{title[1:]}\n",
            f"| operation | forms | {' | '.join(COLUMNS)} |",
        ]
        parts.append("| --- " * (len(COLUMNS) + 2) + "|")
        parts += [line(found(name, own)) for name, own in rows.items()]
        parts.append("")
    parts += ["## Why not\n", "| operation | why it has a no |", "| --- | --- |"]
    parts += [f"| {names(name)} | {WHY_NOT[name]} |" for name in WHY_NOT]
    parts.append("")
    rest = ", ".join(f"`{each}`" for each in sorted(unlisted()))
    parts += [
        "## Without a row\n",
        "Questions about tensors, seeds, defaults, memory, and what is made of several operations;",
        f"each has a test of its own: {rest}.",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.operations", description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only:
        for rows in operations().values():
            for name in rows.keys() & set(options.only):
                print(line(found(name, rows[name])))
        return
    text = page()
    if options.write:
        options.write.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
