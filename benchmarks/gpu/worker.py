"""One contender on a device, in a process of its own: `python -m benchmarks.gpu.worker NAME ...`.

Requests and answers are those of `benchmarks.worker`, by other names:

- ``reference`` saves a workload's data and its results in float64 to a folder;
- ``prepare`` loads them, builds the case, makes its first calls and compares the results;
- ``calibrate`` and ``time`` make a batch of calls between two synchronisations;
- ``drop`` forgets a case;
- ``copy`` makes a case that copies so many bytes;
- ``first`` builds a case from the seed and times its first call;
- ``epilogues`` is for tgraph alone: see `epilogues.measure`.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..case import Array, Case
from ..worker import serve
from . import contenders
from .workloads import GpuWorkload, workloads

# A case without steps is called so often before its results are compared: by then it is what will
# be timed, such as a captured graph.
CALLS = 3
# The reference's process; it is no contender, nor is the copy's.
REFERENCE = "reference"
COPY = "copy"


class Worker:
    """Answers requests about one contender."""

    def __init__(self, name: str, device: str, scale: str, threads: int) -> None:
        arrays = "numpy" if device == "cpu" else "cupy"
        began = time.perf_counter()
        given = arrays if name in (REFERENCE, COPY) else name
        self.contender = contenders.start(given, device, threads)
        self.start_seconds = time.perf_counter() - began
        self.scale, self.workloads = scale, workloads(scale)
        # By workload, what is prepared and the result of its last call.
        self.cases: dict[str, Case] = {}
        self.results: dict[str, Any] = {}

    def greeting(self) -> dict[str, Any]:
        """What the driver learns first."""
        return {"import_seconds": self.start_seconds, "versions": self.contender.versions()}

    def reference(self, workload: str, folder: str) -> dict[str, Any]:
        """Save data and results; how many bytes and operations the workload needs at least."""
        chosen = self.workloads[workload]
        data = chosen.data()
        saved(Path(folder), "data", data)
        expected = self.contender.reference(chosen, data)
        saved(Path(folder), "expected", {str(at): each for at, each in enumerate(expected)})
        self.contender.release()
        return {"moved": chosen.moved(data), "flops": chosen.flops(data)}

    def prepare(self, workload: str, folder: str) -> dict[str, Any]:
        """Build the case; seconds of the first call, and the error of the results."""
        chosen = self.workloads[workload]
        data = loaded(Path(folder), "data")
        seconds = self._first(chosen, data)
        self._batch(workload, chosen.steps - 1 if chosen.steps > 1 else CALLS)
        got = self.cases[workload].fetch(self.results[workload])
        saved_results = loaded(Path(folder), "expected")
        expected = [saved_results[str(at)] for at in range(len(saved_results))]
        return {"first": seconds, "deviation": chosen.deviation(data, got, expected)}

    def first(self, workload: str) -> dict[str, Any]:
        """Seconds of the first call, of a case with data from the seed."""
        chosen = self.workloads[workload]
        return {"first": self._first(chosen, chosen.data())}

    def _first(self, workload: GpuWorkload, data: Mapping[str, Array]) -> float:
        self.cases[workload.name] = getattr(self.contender, workload.implementation)(data)
        return self._batch(workload.name, 1)

    def copy(self, size: int) -> dict[str, Any]:
        """A case that copies `size` bytes."""
        self.cases[COPY] = self.contender.copy(size)
        self._batch(COPY, CALLS)
        return {}

    def epilogues(self, seconds: float) -> dict[str, Any]:
        """Matrix products with epilogues beside others."""
        measured = importlib.import_module(f"{__package__}.epilogues")
        found: dict[str, Any] = measured.measure(self.scale, seconds)
        return found

    def _batch(self, name: str, calls: int) -> float:
        """Seconds of so many calls, with nothing left to do before and after."""
        call, synchronize = self.cases[name].call, self.contender.synchronize
        result = self.results.pop(name, None)
        synchronize(result)
        began = time.perf_counter()
        for _ in range(calls):
            result = call()
        synchronize(result)
        seconds = time.perf_counter() - began
        self.results[name] = result
        return seconds

    def calibrate(self, workload: str, least: float) -> dict[str, Any]:
        """How many calls take `least` seconds; it warms up by the way."""
        calls = 1
        while (seconds := self._batch(workload, calls)) < least:
            # A first batch may be slow for other reasons, so its time is not trusted far.
            calls = min(calls * 10, max(calls + 1, round(1.1 * calls * least / seconds)))
        return {"calls": calls}

    def time(self, workload: str, calls: int) -> dict[str, Any]:
        """Seconds per call."""
        return {"seconds": self._batch(workload, calls) / calls}

    def drop(self, workload: str) -> dict[str, Any]:
        """Forget a case, and free its memory."""
        self.cases.pop(workload, None)
        self.results.pop(workload, None)
        gc.collect()
        self.contender.release()
        return {}


def saved(folder: Path, kind: str, arrays: Mapping[str, Array]) -> None:
    """Write arrays, float64 as float32, so that other processes can map them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in arrays.items():
        narrow = value.astype(np.float32) if value.dtype == np.float64 else value
        np.save(folder / f"{kind}.{name}.npy", narrow)
    (folder / f"{kind}.order").write_text("\n".join(arrays))


def loaded(folder: Path, kind: str) -> dict[str, Array]:
    """The arrays of `saved`, in their order."""
    names = (folder / f"{kind}.order").read_text().split("\n")
    return {name: np.load(folder / f"{kind}.{name}.npy", mmap_mode="r") for name in names}


def main(arguments: Sequence[str]) -> None:
    name, device, scale, threads = arguments
    serve(lambda: Worker(name, device, scale, int(threads)))


if __name__ == "__main__":
    main(sys.argv[1:])
