"""From a graph to what runs, by all of the compiler: passes, fusion, kernels."""

from __future__ import annotations

import time

from ..runtime.device import CPU
from .placement import PlacedExecutable, is_on_cpu
from .plan.executable import Executable
from .plan.request import Request
from .targets.known_targets import target_of


def make_executable(request: Request) -> Executable | PlacedExecutable:
    """One executable, or one for each part of the graph on a device: see `compile_graph`."""
    if is_on_cpu(request.graph):
        return target_of(CPU).compile(request)
    start = time.perf_counter()
    executable = PlacedExecutable(request, lambda device, part: target_of(device).compile(part))
    executable.seconds = (0.0, time.perf_counter() - start)
    return executable
