"""A program whose sizes are open: its kernels take those numbers as parameters."""

from __future__ import annotations

from ....runtime.plan_steps import KernelStep, PythonStep, Step
from ....runtime.records import replace
from ...ir import Graph
from ...plan.plan_sizes import NotSizedError, PlanSizes, SizedSpace
from ...plan.request import Request
from ...plan.sized_plan import SizedPlan
from .loader import KernelLoader
from .plan_builder import CpuPlanBuilder
from .program import CpuProgram
from .varying_numbers import with_sizes


def sized_plan(optimized: Graph, request: Request, sizes: PlanSizes) -> SizedPlan:
    """The plan of a graph behind the passes, for all sizes that it holds for."""
    space = SizedSpace(sizes, CpuPlanBuilder.alignment, CpuPlanBuilder.never_reused)
    program = CpuProgram(
        optimized,
        request.donate,
        request.real_strides,
        request.overwritten,
        types=request.types,
        epilogues=False,
        space=space,
    )
    lifted = {}
    for number, step in enumerate(program.steps):
        where = next((str(node.where) for node in program.info_of_step[number].nodes), "")
        if isinstance(step, PythonStep):
            raise NotSizedError(f"{step.name} runs in Python ({where})")
        if number in program.texts:
            try:
                lifted[number] = with_sizes(program.texts[number], sizes.texts)
            except ValueError as error:
                raise NotSizedError(f"in a kernel stands: {error} ({where})") from None
    loader = KernelLoader()
    for text, _ in lifted.values():
        loader.add(text)
    loaded = loader.loaded()
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        if isinstance(step, KernelStep) and number in lifted:
            text, parameters = lifted[number]
            step = replace(step, address=loaded[text].address, parameters=parameters)
        steps.append(step)  # type: ignore[arg-type]
    return SizedPlan(
        request,
        sizes,
        space,
        steps,
        program.planning,
        program.checks,
        program.num_slots,
        program.constants,
        program.written,
        program.dense,
        program.pointers,
    )
