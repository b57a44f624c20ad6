"""A contender on any number of elements: `python -m benchmarks.scaling_worker NAME THREADS`.

Requests and answers are those of `benchmarks.worker`; `prepare` has a number of elements, too.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import worker


class Worker(worker.Worker):
    """Answers requests about one contender."""

    def prepare(self, workload: str, elements: int) -> dict[str, Any]:
        """Build data of that size and the case; nothing is computed or compiled yet."""
        self.case = None  # its memory is needed
        scaling = importlib.import_module(f"{__package__}.scaling")
        self.workload = scaling.workload(workload, elements)
        contenders = importlib.import_module(f"{__package__}.contenders")
        self.case = contenders.implementation(self.module, self.workload)(self.workload.data())
        return {}


if __name__ == "__main__":
    worker.serve(lambda: Worker(sys.argv[1], int(sys.argv[2])))
