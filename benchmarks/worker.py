"""One contender in a process of its own, driven by JSON lines: `python -m benchmarks.worker NAME`.

Requests come on standard input, one answer each goes to standard output:

- ``{"do": "prepare", "workload": NAME}`` loads the data and builds the case;
- ``{"do": "first", "save": PATH}`` makes the first calls, timed, and saves the results;
- ``{"do": "fresh", "workload": NAME}`` does both at once, and saves nothing;
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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .case import Case
    from .workload import Workload

# What a user imports. Everything else waits until this has been timed.
LIBRARY = {
    "numpy": "numpy",
    "torch": "torch",
    "torch_compile": "torch",
    "copy": "numpy",
    "before": "tgraph",
}


class Worker:
    """Answers requests about one contender."""

    def __init__(self, name: str, threads: int) -> None:
        began = time.perf_counter()
        importlib.import_module(LIBRARY.get(name, name))
        self.import_seconds = time.perf_counter() - began
        self.module = "tgraph" if name == "before" else name
        self.contender = importlib.import_module(f"{__package__}.contenders.with_{self.module}")
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
        contenders = importlib.import_module(f"{__package__}.contenders")
        self.case = contenders.implementation(self.module, self.workload)(data)
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

    def fresh(self, workload: str) -> dict[str, Any]:
        """`prepare` and `first`, without a pause in which threads could get ahead."""
        self.prepare(workload)
        return self.first("")

    def run(self, calls: int, batch: int) -> dict[str, Any]:
        """Seconds per call of `calls` batches, each of `batch` calls."""
        call, clock, times = self.case.call, time.perf_counter, []
        for _ in range(calls):
            began = clock()
            for _ in range(batch):
                call()
            times.append((clock() - began) / batch)
        return {"times": times}


def answer(worker: object, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, made by the method of that name; a failure is an answer too."""
    try:
        return getattr(worker, request.pop("do"))(**request)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> dict[str, Any]:
    """An exception as an answer."""
    return {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def serve(start: Callable[[], Any]) -> None:
    """Start a worker, send its `greeting`, answer requests until there are no more."""
    # Libraries may print: they get the error stream, answers alone the pipe.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        worker = start()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=replies)
        return
    except Exception as error:
        print(json.dumps(failure(error)), file=replies)
        return
    print(json.dumps(worker.greeting()), file=replies)
    for line in sys.stdin:
        print(json.dumps(answer(worker, json.loads(line))), file=replies)


if __name__ == "__main__":
    serve(lambda: Worker(sys.argv[1], int(sys.argv[2])))
