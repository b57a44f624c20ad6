"""Kernels of equal structure are lowered and scheduled once for all graphs of the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...runtime.memo import Memo
from ...runtime.records import NamedTuple, replace
from ..ir import Node
from ..kernel.kernel import Kernel
from ..kernel.kernel_work import moved_bytes, operations
from ..kernel.scheduled_kernel import KernelSchedule, ScheduledKernel


class Pattern:
    """What groups of one structure have in common: their kernel, and what was made of it.

    `params` has the number of a node of the structure for each parameter, None for the status.
    `sharing` are the schedules in which parameters are one: pairs of theirs -> the schedule.
    `in_step` tells of pairs whether the one may lie in the memory of the other; `parts` are other
    kernels that a target made of this one.
    """

    def __init__(
        self, kernel: Kernel, params: Sequence[int | None], schedule: KernelSchedule
    ) -> None:
        self.kernel, self.params, self.schedule = kernel, params, schedule
        self.sharing: dict[tuple[tuple[int, int], ...], KernelSchedule] = {}
        self.in_step: dict[tuple[int, int], bool] = {}
        self.parts: dict[Any, Any] = {}
        self.bytes = moved_bytes(kernel)
        self.flops = operations(kernel)

    def reads_in_step(self, read: int, written: int) -> bool:
        """Whether the parameter `written` may lie in the memory of `read`."""
        found = self.in_step.get((read, written))
        if found is None:
            found = _reads_before_writing(self.kernel, read, written)
            self.in_step[read, written] = found
        return found

    def shared(self, which: Mapping[int, int]) -> KernelSchedule:
        """The schedule in which parameters are others: those that `which` maps to them."""
        if not which:
            return self.schedule
        key = tuple(which.items())
        found = self.sharing.get(key)
        if found is None:
            kernel = _with_shared_params(self.schedule.kernel, which)
            found = self.sharing[key] = replace(self.schedule, kernel=kernel)
        return found


# By what schedules depend on beside the structure, and by that; with lines where those matter.
PATTERNS: Memo[tuple[Any, ...], Pattern] = Memo(4_000)


class Piece(NamedTuple):
    """One of the kernels of a group, with the nodes of its parameters, and what it does."""

    role: str
    kernel: Kernel
    schedule: ScheduledKernel
    nodes: list[Node | None]
    bytes: int
    flops: int


class Scheduled(NamedTuple):
    """The kernel of one group: the node of each parameter, None for the status, and its values."""

    pattern: Pattern
    nodes: list[Node | None]
    inside: tuple[Node, ...]


def _reads_before_writing(kernel: Kernel, read: int, written: int) -> bool:
    """Whether each element of the parameter `read` is read only where `written` gets its own."""
    stored: set[Any] = set()
    stage_of_store = -1
    for number, stage in enumerate(kernel.stages):
        for instr in stage.body:
            if instr.op == "store" and instr.param == written:
                stored.add(instr.index)
                stage_of_store = number
    if len(stored) != 1:
        return False
    return all(
        instr.index in stored and not instr.mask and number <= stage_of_store
        for number, stage in enumerate(kernel.stages)
        for instr in stage.body
        if instr.op == "load" and instr.param == read
    )


def _with_shared_params(kernel: Kernel, shared: Mapping[int, int]) -> Kernel:
    """`kernel` without the parameters that `shared` maps to others, which are written now."""
    kept = [number for number in range(len(kernel.params)) if number not in shared]
    new = {old: position for position, old in enumerate(kept)}
    table = {number: new[shared.get(number, number)] for number in range(len(kernel.params))}
    params = [kernel.params[number] for number in kept]
    for source in shared.values():
        params[new[source]] = replace(params[new[source]], written=True)
    stages = tuple(
        replace(
            stage,
            body=tuple(
                replace(instr, param=table[instr.param]) if instr.param >= 0 else instr
                for instr in map(partial(_move_status, table), stage.body)
            ),
        )
        for stage in kernel.stages
    )
    return replace(kernel, params=tuple(params), stages=stages)


def _move_status(table: Mapping[int, int], instr: Any) -> Any:
    if instr.op != "check":
        return instr
    size, site, status = instr.value
    return replace(instr, value=(size, site, table[status]))
