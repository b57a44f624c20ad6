"""How a step of a plan is run, in a line for people."""

from __future__ import annotations

from ..runtime import jit
from ..runtime.device import CPU
from ..runtime.plan_gemm import product_summary, sizes
from .plan.plan_builder import StepInfo
from .targets.cpu.attention_step import attention_summary
from .targets.cpu.kernel_writer import schedule_summary
from .targets.cpu.packed_panels import panels_summary
from .targets.cpu.schedule import Schedule
from .targets.cpu.sorting_step import sorting_summary


def step_summary(info: StepInfo) -> str:
    """The schedule of a kernel, sizes of products, attention and sorting; "" for other steps.

    Kernels for the CPU are written once more for it, as what is told stands in no other place.
    """
    if isinstance(info.schedule, Schedule):
        return schedule_summary(info.schedule, jit.vector_bytes())
    if info.schedule is not None:
        return info.schedule.summary()
    if info.kind == "attention":
        return attention_summary(info.nodes[0])
    if info.kind == "sort":
        return sorting_summary(info.outputs[0])
    if info.kind == "pack":
        return panels_summary(info.nodes[0])
    if info.product is None:
        return ""
    on_cpu = info.outputs[0].type.device is CPU
    return product_summary(info.product) if on_cpu else f"cuBLAS {sizes(info.product)}"
