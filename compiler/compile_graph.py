"""From a graph to something that runs: one executable, or one for each part on a device."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..runtime import gemm_native
from ..runtime.device import CPU
from ..runtime.garbage import no_collection
from . import pipeline
from .executable import Executable
from .ir import Graph
from .ir import primitives as p
from .placement import PlacedExecutable, Segment, is_on_cpu

if TYPE_CHECKING:
    from .executable_cuda import CudaExecutable


@no_collection()
def compile_graph(
    graph: Graph,
    *,
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    overwritten: Iterable[int] = (),
) -> Executable | PlacedExecutable:
    """Make `graph` ready to run on its devices.

    `donate` maps outputs to the inputs whose memory they take. `strides`, in elements, tells which
    inputs are not dense. A call raises ReadOnlyError, and does nothing, where an input that is
    donated, or is one of `overwritten`, must not be written.
    """
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
    from .executable_cuda import CudaExecutable

    return CudaExecutable(segment.graph, segment.device, donate, strides, from_host)


def _on_cpu(
    graph: Graph,
    donate: Mapping[int, int] | None,
    strides: Mapping[int, tuple[int, ...]] | None,
    overwritten: Iterable[int] = (),
) -> Executable:
    start = time.perf_counter()
    for dtype in {node.type.dtype for node in graph.nodes if node.primitive is p.matmul}:
        gemm_native.prepare(dtype.name)
    optimized = pipeline.optimize(graph)
    half = time.perf_counter()
    executable = Executable(optimized, donate, strides, overwritten)
    executable.seconds = (half - start, time.perf_counter() - half)
    return executable
