"""What a kernel needs: operations with multiplicity, bytes, rows to share. Counted from its plan.

An element is computed once for each value of the loops that its coordinates mention: loops are
ordered so that what does not depend on the inner ones is computed outside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...runtime.records import record
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.size_number import computed
from .index import Axis, Coords, Mask, loop_atoms, positions_in
from .kernel import compute_dtype
from .stages import Contract, KernelPlan, Reduce, Scan, Scatter, StagePlan, Store, SumOfRows
from .views import Need

_DIVISIONS = (p.floor_divide, p.remainder)


@record()
class Traffic:
    """How often elements of one node in memory are read, or written, and how many it has."""

    accesses: int
    elements: int
    itemsize: int

    @property
    def nbytes(self) -> int:
        """Bytes of what is accessed, each once."""
        least: int = computed(min, self.accesses, self.elements)
        return least * self.itemsize

    @property
    def repeated(self) -> int:
        """Bytes that are accessed again."""
        return self.accesses * self.itemsize - self.nbytes


@record()
class KernelNeeds:
    """What is needed to run a kernel.

    `operations` are those of each size of element in bytes. `rows` can be computed side by side.
    `may_fail` says that it checks positions, divisors or what must hold.
    """

    operations: tuple[tuple[int, int], ...]
    reads: tuple[Traffic, ...]
    writes: tuple[Traffic, ...]
    rows: int
    may_fail: bool


def kernel_needs(plan: KernelPlan, rows: Sequence[Axis]) -> KernelNeeds:
    """Count what the kernel of `plan` needs."""
    counter = _Counter(plan)
    for stage in plan.stages:
        counter.count(stage)
    return KernelNeeds(
        tuple(sorted(counter.operations.items())),
        tuple(counter.traffic(counter.read)),
        tuple(counter.traffic(counter.written)),
        prod(axis.size for axis in rows),
        counter.may_fail,
    )


class _Counter:
    def __init__(self, plan: KernelPlan) -> None:
        self.plan = plan
        self.operations: dict[int, int] = {}
        self.read: dict[Node, int] = {}
        self.written: dict[Node, int] = {}
        self.may_fail = False

    def traffic(self, found: dict[Node, int]) -> Iterable[Traffic]:
        for node, accesses in found.items():
            yield Traffic(accesses, node.type.numel, node.type.dtype.itemsize)

    def count(self, stage: StagePlan) -> None:
        seen: set[Need] = set()
        pending: list[Need] = []
        for target in stage.targets:
            pending += target.needs
            self._target(target)
        pending += [need for store in stage.finished for need in store.needs]
        for store in stage.finished:
            self._target(store)
        while pending:
            need = pending.pop()
            if need in seen:
                continue
            seen.add(need)
            pending += self._element(stage, need)

    def _target(self, target: object) -> None:
        if isinstance(target, Store):
            self._add(self.written, target.node, _times(target.coords))
        elif isinstance(target, Scatter):
            self._add(self.written, target.node, _times(target.value[1]))
            self.may_fail = True
        elif isinstance(target, Contract):
            (_, left, mask), (_, right, other) = target.needs
            times = _times((*left, *right), (*mask, *other))
            size = compute_dtype(target.node.type.dtype).itemsize
            self.operations[size] = self.operations.get(size, 0) + times  # multiply-adds
        elif isinstance(target, SumOfRows):
            self._spend(target.node, _times(target.value[1], target.value[2]))
            self._add(self.written, target.node, _times(target.coords))
        elif isinstance(target, (Reduce, Scan)):
            self._spend(target.node, _times(target.value[1], target.value[2]))
            if isinstance(target, Scan) and target.stored:
                self._add(self.written, target.node, _times(target.coords))

    def _element(self, stage: StagePlan, need: Need) -> list[Need]:
        """Count one element; gives those that it is made of."""
        node, coords, mask = need
        positions = positions_in(coords, mask)
        self.may_fail |= bool(positions)
        if node not in self.plan.nodes:
            self._add(self.read, node, _times(coords, mask))
            return positions
        element = node, coords
        if element in self.plan.results or element in self.plan.running:
            return positions
        saved = self.plan.saved.get(element)
        if saved is not None and saved.stage != stage.number:
            return positions
        operands = stage.operands(need)
        taps = len(operands) if node.primitive.family is Family.REDUCE else 1
        self._spend(node, _times(coords, mask) * taps)
        self.may_fail |= node.primitive in _DIVISIONS and node.type.dtype.is_integral
        self.may_fail |= node.primitive is p.require
        return [*positions, *operands]

    def _spend(self, node: Node, times: int) -> None:
        if node.primitive.family in (Family.VIEW, Family.SOURCE):
            return
        size = compute_dtype(node.type.dtype).itemsize
        self.operations[size] = self.operations.get(size, 0) + node.primitive.cost * times

    def _add(self, table: dict[Node, int], node: Node, times: int) -> None:
        table[node] = table.get(node, 0) + times


def _times(coords: Coords, mask: Mask = ()) -> int:
    """How often an element at these coordinates is computed."""
    axes: set[Axis] = set()
    seen: set[Need] = set()
    pending: list[tuple[Coords, Mask]] = [(coords, mask)]
    while pending:
        coords, mask = pending.pop()
        for index in (*coords, *(condition.index for condition in mask)):
            axes |= loop_atoms(index)
        for need in positions_in(coords, mask):
            if need not in seen:
                seen.add(need)
                pending.append(need[1:])
    return prod(axis.size for axis in axes)
