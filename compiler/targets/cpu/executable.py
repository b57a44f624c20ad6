"""A program whose kernels have been compiled: arrays of NumPy in, arrays of NumPy out."""

from __future__ import annotations

from collections.abc import Mapping

from ....runtime.plan import Plan
from ....runtime.plan_steps import LaunchStep, RoutineStep, Step, TurnsStep, with_kernel
from ...ir import Graph
from ...plan.ready_plan import ReadyPlan
from .loader import KernelLoader
from .program import CpuProgram


class CpuExecutable(ReadyPlan):
    """A program with its plan. What its `loader` knows already is being compiled."""

    def __init__(self, program: CpuProgram, loader: KernelLoader | None = None) -> None:
        plan = _loaded(program, loader or KernelLoader())
        super().__init__(plan, program.planning, program.checks)
        self._program = program

    @property
    def program(self) -> CpuProgram:
        return self._program

    @property
    def whole(self) -> CpuExecutable:
        return self


def cpu_executable(
    optimized: Graph,
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
) -> CpuExecutable:
    """A graph behind the passes, ready to run."""
    return CpuExecutable(CpuProgram(optimized, donate, strides))


def _loaded(program: CpuProgram, loader: KernelLoader) -> Plan:
    """The plan; its arrays are the graph's inputs, then one array per fresh output."""
    for text in program.texts.values():
        loader.add(text)
    loaded = loader.loaded()
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        assert not isinstance(step, (LaunchStep, RoutineStep, TurnsStep))
        if number in program.texts:
            step = with_kernel(step, **loaded[program.texts[number]]._asdict())
        steps.append(step)
    return Plan(
        steps,
        program.arena_bytes,
        program.num_slots,
        program.constants,
        program.written,
        program.dense,
        program.pointers,
    )
