"""One contender in a process of its own, driven by JSON lines: `python -m benchmarks.worker NAME`.

Requests come on standard input, one answer each goes to standard output:

- ``{"do": "prepare", "workload": NAME}`` loads the data and builds the case;
- ``{"do": "first", "save": PATH}`` makes the first calls, timed, and saves the results;
- ``{"do": "run", "calls": N, "batch": M}`` gives the seconds per call of N batches of M calls.

The first answer, before any request, has the import's time and the versions.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .case import Case
    from .workloads import Workload

# What a user imports. Everything else waits until this has been timed.
LIBRARY = {"numpy": "numpy", "torch": "torch", "torch_compile": "torch", "copy": "numpy"}


class Worker:
    """Answers requests about one contender."""

    def __init__(self, name: str, threads: int) -> None:
        began = time.perf_counter()
        importlib.import_module(LIBRARY.get(name, name))
        self.import_seconds = time.perf_counter() - began
        self.contender = importlib.import_module(f"{__package__}.contenders.with_{name}")
        self.contender.start(threads)
        self.workload: Workload | None = None
        self.case: Case | None = None

    def greeting(self) -> dict[str, Any]:
        """What the driver learns first."""
        return {"import_seconds": self.import_seconds, "versions": self.contender.versions()}

    def prepare(self, workload: str) -> dict[str, Any]:
        """Build the data and the case; nothing is computed or compiled yet."""
        workloads = importlib.import_module(f"{__package__}.workloads")
        self.workload = workloads.BY_NAME[workload]
        data = self.workload.data()
        self.case = getattr(self.contender, self.workload.implementation)(data)
        return {}

    def first(self, save: str) -> dict[str, Any]:
        """Time the first call, make the other calls before a comparison, save the results."""
        began = time.perf_counter()
        result = self.case.call()
        seconds = time.perf_counter() - began
        for _ in range(self.workload.steps - 1):
            result = self.case.call()
        if save:
            numpy = importlib.import_module("numpy")
            numpy.savez(save, *self.case.fetch(result))
        return {"seconds": seconds}

    def run(self, calls: int, batch: int) -> dict[str, Any]:
        """Seconds per call of `calls` batches, each of `batch` calls."""
        call, clock, times = self.case.call, time.perf_counter, []
        for _ in range(calls):
            began = clock()
            for _ in range(batch):
                call()
            times.append((clock() - began) / batch)
        return {"times": times}


def answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; a failure is an answer too."""
    do = request.pop("do")
    try:
        return getattr(worker, do)(**request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def main() -> None:
    # Libraries may print: they get the error stream, answers alone the pipe.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, threads = sys.argv[1], int(sys.argv[2])
    try:
        worker = Worker(name, threads)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=replies)
        return
    print(json.dumps(worker.greeting()), file=replies)
    for line in sys.stdin:
        print(json.dumps(answer(worker, json.loads(line))), file=replies)


if __name__ == "__main__":
    main()
