"""A machine as fusion sees it, and the price of kernels on it.

Prices are nanoseconds, rough ones: they decide between kernels, they do not predict. They are those
of a typical machine of a target, not of the one at hand, so that a graph has the same plan
everywhere. As in XLA's `GpuPerformanceModel` a kernel takes its start, its operations, and its
bytes by the cache that holds them, of which the smaller is mostly hidden behind the larger.
"""

from __future__ import annotations

from math import inf

from ...runtime.records import record
from ..ir import TensorType
from ..ir.size_number import priced
from ..kernel.kernel_needs import KernelNeeds, Traffic

NOT_OVERLAPPED = 0.25
"""The share of the smaller one of computing and moving that the larger one does not hide."""

LEAST_WIDTH = 4
"""Bytes of the narrowest numbers whose operations are cheaper for being narrow."""


@record()
class Machine:
    """What a target takes for its work, all its units together.

    `operation` is the time of one operation (an addition) on each byte of a vector. `levels` are
    the sizes of caches in bytes with the time of each byte that lies there between kernels, the
    last one memory; `again` is that of a byte which the same kernel has accessed before. `start` is
    the time of starting a kernel, and `units` work side by side, each on rows of its own. As many
    operations as are `cheap` hide behind the access to their operands. A kernel chooses from
    `most_pieces` pieces of a concatenation without asking for each element.
    """

    operation: float
    levels: tuple[tuple[float, float], ...]
    again: float
    start: float
    units: int
    cheap: float = 4
    most_pieces: float = inf

    @property
    def cache(self) -> float:
        """Bytes that caches hold."""
        return self.levels[-2][0] if len(self.levels) > 1 else 0

    def byte(self, nbytes: int) -> float:
        """The time of each byte of a value of so many bytes."""
        found: float = self._byte(nbytes) if type(nbytes) is int else priced(self._byte, nbytes)
        return found

    def _byte(self, nbytes: int) -> float:
        for size, time in self.levels:
            if nbytes <= size:
                return time
        raise ValueError(f"no level holds {nbytes} bytes")

    def time(self, operations: float, type_: TensorType) -> float:
        """The time of so many operations on each element."""
        return operations * self.operation * max(type_.dtype.itemsize, LEAST_WIDTH) * type_.numel

    def price(self, needs: KernelNeeds) -> float:
        """The time of a kernel."""
        work = sum(max(size, LEAST_WIDTH) * count for size, count in needs.operations)
        computing = work * self.operation
        moving = sum(map(self._moved, (*needs.reads, *needs.writes)))
        found: float = priced(self._time, computing, moving, needs.rows)
        return found

    def _time(self, computing: float, moving: float, rows: int) -> float:
        time = max(computing, moving) + NOT_OVERLAPPED * min(computing, moving)
        return self.start + time * self.units / max(1, min(self.units, rows))

    def _moved(self, traffic: Traffic) -> float:
        first = traffic.nbytes * self.byte(traffic.elements * traffic.itemsize)
        return first + traffic.repeated * self.again


def nanoseconds(value: float) -> str:
    """Such as "0.3 us"."""
    for unit in ("ns", "us", "ms"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} s"
