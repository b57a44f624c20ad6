"""How long each step of a plan takes alone, and the plan's own data between the steps.

Steps run in their order, each again and again on what those before it left, so that positions are
real positions and sparse data is sparse. Calls are made of many repetitions of one step, so that
Python does not count. What a step overwrites although it reads it is put back between its calls.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from ....runtime import memory
from ....runtime.plan import Plan
from ....runtime.plan_steps import ARENA_SLOT, BufferRef, KernelStep, Step
from ...plan.step_info import StepInfo
from .executable import CpuExecutable

Array = np.ndarray[Any, Any]

SECONDS = 200e-6
"""What one timed call should take at least."""

MOST_REPEATS = 1000
ROUNDS = 9
MOST_SECONDS = 0.3
"""For the rounds of one step, of which there are three in any case."""


def step_times(executable: CpuExecutable, inputs: Sequence[Array]) -> list[float]:
    """Median seconds of each of the `kernels` of `executable`; 0 for those with nothing to do.

    All threads are used. Inputs that the plan writes are written: give copies.
    """
    planning = executable.program.planning
    fresh = [np.zeros(type_.shape, type_.dtype.numpy) for type_ in planning.types(planning.fresh)]
    run = _Run(executable.plan, (*map(np.asarray, inputs), *fresh))
    found: dict[int, float] = {}
    for info, steps in _steps_of_infos(executable):
        found[id(info)] = run.time(steps, _changed(steps[0], info))
    return [found.get(id(info), 0.0) for info in executable.kernels]


def _steps_of_infos(executable: CpuExecutable) -> Iterator[tuple[StepInfo, list[Step]]]:
    """The `kernels` that have steps; those of the graphs of a branch or a loop are its own."""
    owner = {id(each): info for info in executable.kernels for each in info.whole}
    told = executable.program.info_of_step
    for _, numbered in groupby(
        enumerate(executable.plan.steps), lambda each: id(owner[id(told[each[0]])])
    ):
        (first, step), *rest = numbered
        yield owner[id(told[first])], [step, *(each for _, each in rest)]


def repeated(plan: Plan, steps: Sequence[Step], arena: Array, count: int = 1) -> Plan:
    """Steps of `plan`, `count` times, with `arena` in the place of a plan's own."""
    slot = plan.num_slots
    moved = [_moved(step, slot) for step in steps]
    constants = {**plan.constants, slot: arena}
    return Plan(moved * count, 0, slot + 1, constants, pointers=plan.pointers)


def _moved(value: Any, slot: int) -> Any:
    """A step, reference or tuple of them with the arena's slot replaced."""
    if isinstance(value, tuple):
        return tuple(_moved(each, slot) for each in value)
    if isinstance(value, BufferRef):
        return replace(value, slot=slot) if value.slot == ARENA_SLOT else value
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        return type(value)(**{name: _moved(getattr(value, name), slot) for name in names})
    return value


Changed = list[tuple[BufferRef, int]]
"""Places and numbers of bytes."""


def _changed(step: Step, info: StepInfo) -> Changed:
    """What a step reads and writes, so that a second run would begin from something else."""
    if not isinstance(step, KernelStep) or info.schedule is None:
        return []
    kernel = info.schedule.kernel
    read = {
        instr.param
        for instr in kernel.instructions()
        if instr.op == "load" or (instr.op == "store" and instr.value in ("add", "put"))
    }
    return [
        (ref, param.elements * param.dtype.itemsize)
        for number, (ref, param) in enumerate(zip(step.args, kernel.params, strict=True))
        if param.written and number in read
    ]


class _Run:
    """One run of a plan, step by step."""

    def __init__(self, plan: Plan, arrays: tuple[Array, ...]) -> None:
        self.plan, self.arrays = plan, arrays
        self.arena = memory.arena(plan.arena_bytes)
        own = plan.pointers.union(plan.constants)
        slots = [slot for slot in range(1, plan.num_slots) if slot not in own]
        self.memory = dict(zip(slots, arrays)) | plan.constants | {ARENA_SLOT: self.arena}
        empty = repeated(plan, [], self.arena)
        self.nothing = min(self._seconds(empty) for _ in range(ROUNDS))

    def time(self, steps: Sequence[Step], changed: Changed) -> float:
        """Median seconds of `steps`, which have then run once as far as others see."""
        places = [self._bytes(ref, nbytes) for ref, nbytes in changed]
        before = [(place, place.copy()) for place in places]
        once = repeated(self.plan, steps, self.arena)
        first = self._sample(once, before)
        count = 1 if before else max(1, min(MOST_REPEATS, int(SECONDS / max(first, 1e-7))))
        plan = repeated(self.plan, steps, self.arena, count) if count > 1 else once
        samples: list[float] = []
        while len(samples) < 3 or (len(samples) < ROUNDS and sum(samples) < MOST_SECONDS):
            samples.append(self._sample(plan, before))
        took = statistics.median(samples)
        return max(took - self.nothing, took / 10) / count

    def _bytes(self, ref: BufferRef, nbytes: int) -> Array:
        whole = self.memory[ref.slot].reshape(-1).view(np.uint8)
        return whole[ref.offset : ref.offset + nbytes]

    def _sample(self, plan: Plan, before: Sequence[tuple[Array, Array]]) -> float:
        for place, content in before:
            place[...] = content
        return self._seconds(plan)

    def _seconds(self, plan: Plan) -> float:
        began = time.perf_counter()
        stopped = plan.run(self.arrays)
        took = time.perf_counter() - began
        if stopped:
            raise RuntimeError(f"step {plan.steps[stopped - 1]} stopped: {plan.status}")
        return took
