"""From a graph to what runs, by all of the compiler: passes, fusion, kernels."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..runtime.device import CPU
from . import pipeline
from .ir import Graph
from .placement import PlacedExecutable, Segment, is_on_cpu
from .targets.cpu.executable import Executable

if TYPE_CHECKING:
    from .targets.cuda.executable import CudaExecutable


def make_executable(
    graph: Graph,
    donate: Mapping[int, int] | None,
    strides: Mapping[int, tuple[int, ...]] | None,
    overwritten: Iterable[int],
) -> Executable | PlacedExecutable:
    """One executable, or one for each part of `graph` on a device: see `compile_graph`."""
    if is_on_cpu(graph):
        return _on_cpu(graph, donate, strides, overwritten)
    start = time.perf_counter()
    executable = PlacedExecutable(graph, _compile_segment, donate, strides, overwritten)
    executable.seconds = (0.0, time.perf_counter() - start)
    return executable


def _compile_segment(
    segment: Segment,
    donate: Mapping[int, int],
    strides: Mapping[int, tuple[int, ...]],
    from_host: Sequence[int],
) -> Executable | CudaExecutable:
    if segment.device is CPU:
        return _on_cpu(segment.graph, donate, strides)
    from .targets.cuda.executable import CudaExecutable

    return CudaExecutable(segment.graph, segment.device, donate, strides, from_host)


def _on_cpu(
    graph: Graph,
    donate: Mapping[int, int] | None,
    strides: Mapping[int, tuple[int, ...]] | None,
    overwritten: Iterable[int] = (),
) -> Executable:
    start = time.perf_counter()
    optimized = pipeline.optimize(graph)
    half = time.perf_counter()
    executable = Executable(optimized, donate, strides, overwritten)
    executable.seconds = (half - start, time.perf_counter() - half)
    return executable
