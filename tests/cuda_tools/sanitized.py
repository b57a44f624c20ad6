"""The process that `shim.run_sanitized` starts: `python -m cuda_tools.sanitized TASK RESULT`.

It runs the launches of the task and writes what went wrong, or nothing, to the result. A sanitizer
that finds something ends the process before.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .shim import LaunchError, Library


def _fresh(argument: Any) -> Any:
    """An array of its own memory, whose end the sanitizer knows; pickle's may share one."""
    return np.array(argument) if isinstance(argument, np.ndarray) else argument


def main(task: Path, result: Path) -> None:
    source, launches, kind = pickle.loads(task.read_bytes())
    outcome = ""
    try:
        library = Library(source, sanitize=kind)
        for name, grid, block, args, *rest in launches:
            library.launch(name, grid, block, [_fresh(argument) for argument in args], *rest)
    except LaunchError as error:
        outcome = str(error)
    result.write_text(outcome)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
