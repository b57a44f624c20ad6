"""Runs a program with `import torch` from tgraph: `python -m tgraph.compat script.py arguments`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from . import as_torch


def main() -> None:
    """Run the script, or `-m module`, that the command line names."""
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: python -m tgraph.compat script.py [arguments]\n"
                 "       python -m tgraph.compat -m module [arguments]")  # fmt: skip
    as_torch(report=True)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
