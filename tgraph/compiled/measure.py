"""`explain(measure=True)`: how long each kernel of a plan takes, and what share of the possible.

The plans run on the arguments of a call and on the state as it is; what they write is copied first,
so nothing changes. Gradients come for cotangents of ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import effect_of
from ..compiler.plan.ready_plan import ReadyPlan
from ..compiler.plan.step_info import StepInfo
from ..compiler.targets.cpu.executable import CpuExecutable
from ..compiler.targets.cpu.machine_speed import bandwidth, peak
from ..compiler.targets.cpu.step_times import step_times
from ..runtime.arrays import contiguous
from ..runtime.dtypes import float64
from ..runtime.records import record
from .call_inputs import call_inputs, copies
from .compiled_call import CompiledCall
from .graph_function import GraphFunction

Array = np.ndarray[Any, Any]


@record()
class Speed:
    """What a step reached: `share` of `limit`, the nearer one of bandwidth and peak.

    `possible` is that limit, in bytes or operations a second. `limit` is "" for steps with nothing
    to do.
    """

    seconds: float
    share: float = 0.0
    limit: str = ""
    possible: float = 0.0


def measured(plan: CompiledCall, leaves: Sequence[Any]) -> list[list[Speed]]:
    """The speed of every kernel: of the plan, or of the forward and the backward plan."""
    function, call = plan.function, plan.effectful_call
    if call is not None:
        raise NotImplementedError(
            "explain(measure=True) runs every step again and again, which must not happen to "
            f"'{call.attrs['name']}', a host_call with the effect \"{effect_of(call)}\" at "
            f"{call.where}. Nothing was run."
        )
    inputs = call_inputs(plan, plan.with_places(leaves))
    if not function.differentiable:
        return [speeds_of(function.plain, inputs)]
    forward = _on_cpu(function.forward.executable)
    values = forward.run(_own(forward, inputs))
    backward, _ = function.backward_plan(function.asks_all)
    given = _backward_inputs(function, inputs, values)
    return [speeds_of(forward, inputs), speeds_of(backward, given)]


def _backward_inputs(
    function: GraphFunction, inputs: Sequence[Array], values: Sequence[Array]
) -> list[Array]:
    """What the forward plan saved, and cotangents."""
    found = []
    for kind, number in function.forward.saved:
        if kind == "primal" and number in function.strides:
            found.append(inputs[number])
        else:
            found.append(contiguous(inputs[number] if kind == "primal" else values[number]))
    types = [function.types[number] for number in function.differentiable]
    return [*found, *(np.ones(each.shape, each.dtype.numpy) for each in types)]


def speeds_of(executable: Any, inputs: Sequence[Array]) -> list[Speed]:
    """The speed of every kernel of an executable on some inputs, none of which it writes."""
    executable = _on_cpu(executable)
    executable.run(_own(executable, inputs))  # raises what a call would
    times = step_times(executable, _own(executable, inputs))
    return [_speed(info, took) for info, took in zip(executable.kernels, times, strict=True)]


def _own(executable: CpuExecutable, inputs: Sequence[Array]) -> list[Array]:
    """The inputs, those that are written as copies."""
    written = set(executable.donate.values())
    return [copies([each])[0] if at in written else each for at, each in enumerate(inputs)]


def _speed(info: StepInfo, seconds: float) -> Speed:
    if not seconds:
        return Speed(0.0)
    limits = [("bandwidth", info.bytes, bandwidth(info.bytes)), ("peak", info.flops, _peak(info))]
    found = [Speed(seconds, n / seconds / most, name, most) for name, n, most in limits]
    return max(found, key=lambda speed: speed.share)


def _peak(info: StepInfo) -> float:
    is_double = any(node.type.dtype is float64 for node in info.outputs)
    return peak("float64" if is_double else "float32")


def _on_cpu(executable: Any) -> CpuExecutable:
    if isinstance(executable, ReadyPlan):
        return executable.whole
    raise NotImplementedError(
        "explain(measure=True) measures plans on the CPU only, and this one runs on other devices; "
        "explain() tells of its kernels without their times, and a profiler such as NVIDIA Nsight "
        "Systems (nsys profile python ...) measures them under the same names"
    )
