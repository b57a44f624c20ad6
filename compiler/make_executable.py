"""From a graph to what runs, by all of the compiler: passes, fusion, kernels."""

from __future__ import annotations

import time

from ..runtime.device import CPU
from .placement import PlacedExecutable, is_on_cpu
from .plan.executable import Executable
from .plan.plan_sizes import NotSizedError, PlanSizes
from .plan.request import Request
from .plan.sized_plan import SizedPlan
from .targets.known_targets import target_of


def make_executable(request: Request) -> Executable | PlacedExecutable:
    """One executable, or one for each part of the graph on a device: see `compile_graph`."""
    if is_on_cpu(request.graph):
        return target_of(CPU).compile(request)
    start = time.perf_counter()
    executable = PlacedExecutable(request, lambda device, part: target_of(device).compile(part))
    executable.seconds = (0.0, time.perf_counter() - start)
    return executable


def make_sized(request: Request, sizes: PlanSizes) -> SizedPlan:
    """One plan for open `sizes`: see `compile_for_sizes`."""
    if not is_on_cpu(request.graph):
        raise NotSizedError("it computes on other devices than the CPU")
    return target_of(CPU).sized(request, sizes)
