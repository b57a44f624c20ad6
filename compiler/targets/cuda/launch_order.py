"""Which steps of a plan for CUDA do not wait for each other, so that one launch can do several.

Every step gets a *level*, above those of the earlier steps whose memory it touches, where one of
the two writes. Steps of a level are independent, whatever their order.
Intermediate values share the arena, so memory is compared, not values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....runtime.dtypes import dtype_named
from ....runtime.plan_steps import (
    STATUS_SLOT,
    ArrayRef,
    BufferRef,
    CopyStep,
    GemmStep,
    RoutineStep,
)
from ....runtime.records import NamedTuple


class Access(NamedTuple):
    """Bytes of a slot that a step reads or writes."""

    slot: int
    start: int
    end: int
    writes: bool


def access(ref: BufferRef, nbytes: int, writes: bool) -> Access:
    """The access of `nbytes` at a place."""
    return Access(ref.slot, ref.offset, ref.offset + nbytes, writes)


def accesses_of_copy(step: CopyStep) -> list[Access]:
    """What a copy reads and writes."""
    return [access(step.src, step.nbytes, False), access(step.dst, step.nbytes, True)]


def accesses_of_product(step: GemmStep) -> list[Access]:
    """What a matrix product reads and writes."""
    size = dtype_named(step.dtype).itemsize
    a = (step.k, step.m) if step.transpose_a else (step.m, step.k)
    b = (step.n, step.k) if step.transpose_b else (step.k, step.n)

    def extent(shape: tuple[int, int], leading: int, which: int) -> int:
        if 0 in shape:
            return 0
        behind = sum((entry[0] - 1) * entry[1 + which] for entry in step.batch)
        return size * ((shape[0] - 1) * leading + shape[1] + behind)

    return [
        access(step.a, extent(a, step.lda, 0), False),
        access(step.b, extent(b, step.ldb, 1), False),
        *([access(step.bias, size * step.n, False)] if step.bias else []),
        access(step.c, extent((step.m, step.n), step.ldc, 2), True),
    ]


def accesses_of_routine(step: RoutineStep) -> list[Access]:
    """What a routine reads and writes."""
    return [
        *(_access_of_array(array, False) for array in step.operands),
        *(_access_of_array(array, True) for array in step.read_results),
        *([access(BufferRef(STATUS_SLOT), 8, True)] if step.site else []),
    ]


def _access_of_array(array: ArrayRef, writes: bool) -> Access:
    size = array.dtype.itemsize
    if array.strides is None or 0 in array.shape:
        return access(array.ref, prod(array.shape) * size, writes)
    ends = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    before, behind = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    first = BufferRef(array.ref.slot, array.ref.offset + before)
    return access(first, behind - before + size, writes)


Accesses = Sequence[Access] | None
"""What a step touches; None stands for everything."""


def levels(steps: Sequence[Accesses]) -> list[int]:
    """The level of each step, as low as may be; steps for which none waits come in the last.

    So the updates of all parameters, each as soon as its gradient is there, end up together.
    """
    found = _levels(steps)
    waited_for = _levels(steps[::-1])[::-1]
    last = max(found, default=0)
    return [level if height else last for level, height in zip(found, waited_for)]


def _levels(steps: Sequence[Accesses]) -> list[int]:
    seen: dict[int, list[tuple[Access, int]]] = {}
    found: list[int] = []
    floor = 0  # of the steps behind one that may touch everything
    for accesses in steps:
        if accesses is None:
            level = floor = max(found, default=-1) + 1
            seen.clear()
            floor += 1
        else:
            level = floor
            for each in accesses:
                for other, at in seen.get(each.slot, ()):
                    if _must_wait(each, other):
                        level = max(level, at + 1)
            for each in accesses:
                _remember(seen.setdefault(each.slot, []), each, level)
        found.append(level)
    return found


def _must_wait(a: Access, b: Access) -> bool:
    """Whether two accesses of a slot have an order; reports have none, the first one is kept."""
    if a.slot == STATUS_SLOT:
        return a.writes is not b.writes
    return (a.writes or b.writes) and a.start < b.end and b.start < a.end


def _remember(known: list[tuple[Access, int]], new: Access, level: int) -> None:
    """Add an access; one that writes over all of an older one stands for it from now on."""
    if new.slot == STATUS_SLOT and new.writes:
        level = max([level, *(at for old, at in known if old.writes)])
    if new.writes:
        known[:] = [
            (old, at) for old, at in known if not (new.start <= old.start and old.end <= new.end)
        ]
    known.append((new, level))
