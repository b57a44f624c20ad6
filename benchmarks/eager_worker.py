"""Operations of one library in a process of its own: `python -m benchmarks.eager_worker NAME N`.

Requests and answers are those of `benchmarks.worker`, where `prepare` has an operation and a size
in the place of a workload. NAME is "torch", "tgraph", or "tgraph_compiled".
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import worker
from .case import Case

COMPILED = "_compiled"


class Worker(worker.Worker):
    """Answers requests about one library."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(name.removesuffix(COMPILED), threads)
        self.library = importlib.import_module(self.module)
        self.compiled = self.library.compile if name.endswith(COMPILED) else lambda f: f

    def prepare(self, operation: str, size: str) -> dict[str, Any]:
        """Build the call; nothing is computed or compiled yet."""
        self.workload = importlib.import_module(f"{__package__}.operations").BY_NAME[operation]
        self.library.manual_seed(0)
        call = self.workload.call(self.library, size, self.compiled)
        self.case = Case(call, self.contender.arrays)
        return {}


if __name__ == "__main__":
    worker.serve(lambda: Worker(sys.argv[1], int(sys.argv[2])))
