"""Fusion: which nodes are computed together by one kernel.

First every fusible node is either *virtual*, computed inside whoever needs it, or a *root*, which
somebody computes once (`roots`). Each root is a group, and groups are merged as long as that makes
the price of the plan fall, those first that save most: a group with one whose values it reads, or
with one that reads the same data. A merged group has to stay convex (no path leaves it and comes
back), its rows must agree, and lowering must accept it. What cannot be merged stays apart, never an
error; the reason is kept for `explain`. (The order by what is saved is that of XLA's
`PriorityFusion`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from heapq import heapify, heappop, heappush
from itertools import islice
from math import prod

from ...runtime.records import record
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.shapes import numel
from ..ir.size_number import decided
from ..kernel.kernel_io import (
    Root,
    has_loops,
    iteration_shape,
    own_root,
    row_sizes,
    sums_rows,
)
from .contractions import with_contractions
from .fused_graph import Assessment, FusedGraph, Group, GroupKernels, Refusal
from .machine import Machine, nanoseconds
from .memory_order import memory_order
from .roots import Roots
from .rules import FusionRules, is_stored_source
from .running_order import RunningOrder
from .structure import computed_for
from .waiting import waited_for

MAX_ROOTS = 24
MAX_READS = 40
# What two kernels that do not need each other have to read both, as a share of what one moves.
LEAST_SHARED = 1 / 8
# By so much one kernel may be dearer than two, which leave less room in caches.
LEANING = 1 / 16
MAX_SIBLINGS_TRIED = 4
MAX_WAITING = 16
MAX_BETWEEN = 4


def fuse(rules: FusionRules) -> FusedGraph:
    """Cut the graph of `rules` into groups. Roots without a kernel of their own run unfused."""
    roots = Roots(rules)
    kernels = GroupKernels(rules)
    forced: set[Node] = set()
    unfused: set[Node] = set()
    while True:
        roots.choose(forced)
        merging = _Merging(roots, kernels, unfused)
        stuck = merging.run()
        if not stuck:
            return with_contractions(merging.result())
        for node in stuck:
            inner = roots.virtual_nodes(node)
            if inner <= forced:
                unfused.add(node)
            forced.update(inner)


_Pair = tuple[float, int, int, Node, Node]
"""Minus what merging the groups of two nodes saves at most, an order of equals, and the nodes."""


@record(eq=False, frozen=False)
class _GrowingGroup:
    """A group while others may still join it. `first` is where its first node stands.

    `nodes` are those of its `roots`.
    `computed` are those of `reads` that the graph has to compute.
    `waiting` are pairs that could not be merged for what is computed between them; `before` and
    `behind` the steps around it (`_Merging._steps_around`).
    """

    roots: list[Root]
    nodes: list[Node]
    kind: str
    reads: dict[Node, None]
    computed: dict[Node, None]
    first: int
    price: float = 0.0
    apart: float = 0.0
    waiting: list[_Pair] = field(default_factory=list)
    before: int = 0
    behind: int = 0

    @property
    def moved(self) -> int:
        """The bytes that it touches."""
        return sum([node.type.nbytes for each in (self.reads, self.nodes) for node in each])


class _Merging:
    """Puts roots into groups."""

    def __init__(self, roots: Roots, kernels: GroupKernels, unfused: set[Node]) -> None:
        self.rules, self.graph = roots.rules, roots.graph
        self.roots, self.kernels, self.unfused = roots, kernels, unfused
        self.order = kernels.order
        self.overwriting = frozenset(roots.rules.overwriting)
        self.has_memory = roots.has_memory
        self.refusals: list[Refusal] = []
        self.groups: dict[_GrowingGroup, None] = {}
        self.group_of: dict[Node, _GrowingGroup] = {}
        # In the order in which they came.
        self.readers_of: dict[Node, dict[_GrowingGroup, None]] = {}
        self.reads: dict[Node, dict[Node, None]] = {}  # by roots and steps
        self.needed_by: dict[Node, set[Node]] = {}  # the roots and steps that read a node
        self.computed: dict[Node, set[Node]] = {}
        self.pending: list[_Pair] = []
        self.running = RunningOrder(self._producers, self._followers)

    def run(self) -> list[Node]:
        """Put every root into a group; gives the roots that no kernel can compute."""
        stuck = []
        placed = [
            node
            for node in self.graph.nodes
            if node in self.roots.chosen or (node in self.roots.fixed and self._is_step(node))
        ]
        for node in placed:
            self.reads[node] = reads = self._reads(node)
            for read in reads:
                self.needed_by.setdefault(read, set()).add(node)
        before, behind = self._steps_around(placed)
        for node in placed:
            group = self._new_group(node)
            group.before, group.behind = before[node], behind[node]
            self.pending += self._pairs(group)
            if group.kind != "step":
                found = self._assess(group.kind, group.roots)
                group.price = group.apart = found.price
                if found.refusal:
                    stuck.append(node)
        if not stuck:
            self._merge_all()
        return stuck

    def result(self) -> FusedGraph:
        """The groups as they have become, in an order in which they can run."""
        for group in self.groups:
            group.roots = self._kept_roots(group)
        stored = frozenset(self.roots.stored)
        groups = tuple(
            Group(tuple(each.roots), each.kind, tuple(each.reads), each.price, each.apart)
            for each in self._sorted()
        )
        if p.barrier in self.graph.primitives:
            outputs = set(map(self.roots.in_memory, self.graph.outputs))
            groups = tuple(memory_order(groups, outputs))
        group_of = {node: group for group in groups for node in group.nodes}
        refusals = tuple(self._last_refusals())
        return FusedGraph(self.rules, groups, group_of, stored, refusals, self.kernels)

    def _steps_around(self, placed: Sequence[Node]) -> tuple[dict[Node, int], dict[Node, int]]:
        """The steps that each node needs, and those that need it, a bit for each.

        Steps join no group: what needs one never becomes one kernel with what that one needs. In
        most programs this says more of far groups than a search for what stands between them.
        """
        bits: dict[Node, int] = {}
        before: dict[Node, int] = {}
        for node in placed:
            if self._is_step(node):
                bits[node] = 1 << len(bits)
            needed = 0
            for read in self.reads[node]:
                needed |= before.get(read, 0) | bits.get(read, 0)
            before[node] = needed
        behind = dict.fromkeys(placed, 0)
        for node in reversed(placed):
            needing = behind[node] | bits.get(node, 0)
            for read in self.reads[node]:
                if read in behind:
                    behind[read] |= needing
        return before, behind

    def _is_step(self, node: Node) -> bool:
        is_step = node in self.roots.fixed and not is_stored_source(node)
        return is_step or node in self.unfused

    def _kept_roots(self, group: _GrowingGroup) -> list[Root]:
        """Without roots that only this kernel reads: those are values inside it."""
        kept = []
        for root in self._as_stored(group.roots):
            if root.stored or has_loops(root.node):
                kept.append(root)
            else:
                self.roots.drop(root.node)
        return kept

    def _as_stored(self, roots: Sequence[Root]) -> list[Root]:
        """The roots of one kernel, which stores those that others read."""
        inside = {root.node for root in roots}
        stored = []
        for root in roots:
            readers = self.needed_by.get(root.node, inside)
            is_read = root.node in self.roots.wanted or not readers <= inside
            stored.append(root if root.stored == is_read else Root(root.node, root.dims, is_read))
        return stored

    def _reads(self, node: Node) -> dict[Node, None]:
        """The nodes in memory from which `node` is computed."""
        if self._is_step(node):
            in_memory = self.roots.in_memory
            read = {in_memory(each): None for each in self.rules.step_operands(node)}
            return read | {in_memory(each): None for each in waited_for(node)}
        return self.roots.reads(node)

    def _new_group(self, node: Node) -> _GrowingGroup:
        kind = "kernel"
        if self._is_step(node):
            kind = "step"
        elif node.primitive.family is Family.SCATTER:
            kind = "scatter"
        root = own_root(node) if kind != "step" else Root(node, ())
        reads = self.reads[node]
        computed = {read: None for read in reads if read in self.group_of}
        group = _GrowingGroup([root], [node], kind, dict(reads), computed, self.order[node])
        self.groups[group] = None
        self.group_of[node] = group
        for read in group.reads:
            self.readers_of.setdefault(read, {})[group] = None
        self.running.add(group)
        return group

    def _producers(self, group: _GrowingGroup) -> Iterable[_GrowingGroup]:
        """The groups that compute what a group reads."""
        return map(self.group_of.__getitem__, group.computed)

    def _followers(self, group: _GrowingGroup) -> Iterable[_GrowingGroup]:
        """The groups that read what a group computes."""
        return (reader for node in group.nodes for reader in self.readers_of.get(node, ()))

    # -- merging -------------------------------------------------------------------------

    def _merge_all(self) -> None:
        """Merge groups, those first that save most."""
        pending, tried = self.pending, set()
        heapify(pending)
        while pending:
            pair = heappop(pending)
            first, second = self.group_of[pair[3]], self.group_of[pair[4]]
            if self.running.rank[first] > self.running.rank[second]:
                first, second = second, first
            key = (first, second, len(first.roots), len(second.roots))
            if first is second or key in tried:
                continue
            if first.behind & second.before:
                self._refuse(first, second, "a step that runs on its own stands between them")
                continue
            if not self._joins_between(first, second):
                self._refuse(first, second, "a value between them is computed by another kernel")
                for each in (first, second):
                    if len(each.waiting) < MAX_WAITING:
                        each.waiting.append(pair)
                continue
            tried.add(key)
            self._join(first, second)

    def _joins_between(self, first: _GrowingGroup, second: _GrowingGroup) -> bool:
        """Whether nothing needs the earlier group that the later one needs, or can be part of it.

        What stands between two that had better be one may itself have little to gain.
        """
        # No step is needed by the later one and needs the other: those would be in their bits.
        between = self.running.between(first, second, lambda each: each.kind != "step")
        if between is None or len(between) > MAX_BETWEEN:
            return False
        return not between or all(
            each.kind == "kernel" and self._join(first, each) for each in between
        )

    def _pairs(self, group: _GrowingGroup) -> Iterable[_Pair]:
        """The merges of a new group with producers, and with readers of the same before it."""
        if group.kind != "kernel":
            return
        node, number = group.nodes[0], self.order[group.nodes[0]]
        others: dict[Node, None] = {}
        for read in sorted(group.reads, key=self.order.__getitem__, reverse=True):
            if read in self.group_of:
                others[read] = None
            if read.type.numel > 1:
                readers = islice(reversed(self.readers_of[read]), 1, 1 + MAX_SIBLINGS_TRIED)
                others.update(dict.fromkeys(reader.nodes[0] for reader in readers))
        for position, other in enumerate(others):
            if self.group_of[other].kind == "kernel":
                yield -self._most_saved(node, other), number, position, node, other

    def _most_saved(self, node: Node, other: Node) -> float:
        """What is saved at most if a root joins another that it reads, or reads the same as."""
        machine, saved = self.rules.machine, self.rules.machine.start
        others = self.reads[other]
        for read in self.reads[node]:
            if read is other or read in others:
                nbytes = read.type.nbytes
                saved += nbytes * machine.byte(nbytes)
        return saved

    def _join(self, first: _GrowingGroup, second: _GrowingGroup) -> bool:
        """Let the later one of two groups become a part of the other, if that is a gain."""
        roots = self._joined_roots(first, second)
        if roots is None:
            return False
        first.roots, first.nodes = roots, [root.node for root in roots]
        first.first = min(first.first, second.first)
        del self.groups[second]
        for node in second.nodes:
            self.group_of[node] = first
        for read in second.reads:
            del self.readers_of[read][second]
        for read in [*first.reads, *second.reads]:
            if self.group_of.get(read) is first:
                first.reads.pop(read, None)
                first.computed.pop(read, None)
                self.readers_of.get(read, {}).pop(first, None)
            else:
                first.reads[read] = None
                if read in self.group_of:
                    first.computed[read] = None
                self.readers_of[read][first] = None
        first.apart += second.apart
        self._join_steps(first, second)
        self.running.add(first)
        for pair in (*first.waiting, *second.waiting):
            heappush(self.pending, pair)
        first.waiting.clear()
        return True

    def _join_steps(self, first: _GrowingGroup, second: _GrowingGroup) -> None:
        """What needs one of two groups now needs the steps before the other, too."""
        before, behind = first.before | second.before, first.behind | second.behind
        if before != first.before or before != second.before:
            first.before, pending = before, [first]
            while pending:
                for each in self._followers(pending.pop()):
                    if before & ~each.before:
                        each.before |= before
                        pending.append(each)
        if behind != first.behind or behind != second.behind:
            first.behind, pending = behind, [first]
            while pending:
                for each in self._producers(pending.pop()):
                    if behind & ~each.behind:
                        each.behind |= behind
                        pending.append(each)

    def _assess(self, kind: str, roots: Sequence[Root]) -> Assessment:
        """What is known of a kernel of `roots`."""
        stored = self._as_stored(roots)
        if len(roots) == 1:
            computed = self._computed_for(roots[0].node)
        else:
            computed = set().union(*[self._computed_for(root.node) for root in roots])
        structure = self.kernels.structure(kind, stored, computed)
        return self.kernels.assess(kind, stored, self.has_memory, structure)

    def _computed_for(self, node: Node) -> set[Node]:
        """What a kernel computes for one root, whatever others it has."""
        found = self.computed.get(node)
        if found is None:
            found = self.computed[node] = computed_for([node], self.has_memory)
        return found

    def _joined_roots(self, first: _GrowingGroup, second: _GrowingGroup) -> list[Root] | None:
        """The roots of two groups as one kernel computes them, if that is a gain."""
        if len(first.roots) + len(second.roots) > MAX_ROOTS:
            return self._refuse(first, second, "the kernel would have too many results")
        if len(first.reads) + len(second.reads) > MAX_READS:
            return self._refuse(first, second, "the kernel would have too many arguments")
        is_reader = not second.reads.keys().isdisjoint(first.nodes)
        if not is_reader and _scans([*first.nodes, *second.nodes]):
            reason = "a scan goes with what it reads and is read by alone"
            return self._refuse(first, second, reason)
        if self._share_little(first, second):
            return self._refuse(first, second, "they have little memory in common")
        apart = first.price + second.price
        reason = "their rows differ"
        for choice in _row_choices(first.roots, second.roots, self.rules.adds_up_rows):
            roots = self._in_order(choice)
            if _walks_across(roots):
                reason = "they walk over the same axes in different orders"
                continue
            found = self._assess("kernel", roots)
            reason = found.refusal
            if found.may_fail and self._writes_what_was_safe(first, second):
                reason = "the checks of the one have to precede what the other overwrites"
            if not reason:
                if found.price <= apart * (1 + LEANING):
                    first.price = found.price
                    return roots
                together = nanoseconds(found.price)
                reason = f"one kernel would take {together}, two {nanoseconds(apart)}"
        return self._refuse(first, second, reason)

    def _in_order(self, roots: Sequence[Root]) -> list[Root]:
        """Roots in the order of the graph, so that equal groups are equal however they grew.

        Where some count the rows by other axes, the first one says by which the kernel does.
        """
        sizes = {row_sizes(root) for root in roots}
        first = next(filter(sums_rows, roots), roots[0]) if len(sizes) > 1 else None
        rest = sorted(roots, key=lambda root: self.order[root.node])
        return rest if first is None else [first, *(each for each in rest if each is not first)]

    def _share_little(self, first: _GrowingGroup, second: _GrowingGroup) -> bool:
        """Whether what two groups both touch is little, also beside what each of them moves.

        To merge them would save hardly more than the start of a kernel, and keep what the later one
        computes in memory for longer. Single numbers, which many kernels read, are no reason for
        kernels of many numbers to become one, and to differ from all others then.
        """
        touched = {*first.reads, *first.nodes}
        common = [read.type for read in second.reads if read in touched]
        if all(each.numel == 1 for each in common):
            return any(node.type.numel > 1 for node in (*first.nodes, *second.nodes))
        shared = sum([each.nbytes for each in common])
        machine = self.rules.machine
        if decided(_outlasts_start, machine, shared):
            return False
        found: bool = decided(_is_little, machine, shared, first.moved, second.moved)
        return found

    def _writes_what_was_safe(self, first: _GrowingGroup, second: _GrowingGroup) -> bool:
        """Whether one of two groups writes over inputs, and can still come behind all checks."""
        return any(
            not self.overwriting.isdisjoint(group.nodes)
            and not self._assess(group.kind, group.roots).may_fail
            for group in (first, second)
        )

    def _refuse(
        self, first: _GrowingGroup, second: _GrowingGroup, reason: str
    ) -> list[Root] | None:
        """Note why two groups are not merged: there are no joined roots."""
        self.refusals.append(Refusal(second.roots[0].node, first.roots[-1].node, reason))
        return None

    def _last_refusals(self) -> Iterable[Refusal]:
        """For each two groups that stayed apart, why the last attempt to merge them failed."""
        found = {}
        for each in self.refusals:
            pair = self.group_of[each.consumer], self.group_of[each.producer]
            if pair[0] is not pair[1]:
                found[pair] = each
        return found.values()

    def _sorted(self) -> list[_GrowingGroup]:
        """The groups in an order in which each finds what it reads."""
        order: list[_GrowingGroup] = []
        state: dict[_GrowingGroup, int] = {}
        for start in self.groups:
            stack = [start]
            while stack:
                group = stack[-1]
                if state.get(group) is None:
                    state[group] = 1
                    producers = set(self._producers(group))
                    stack.extend(
                        sorted(
                            (each for each in producers if state.get(each) is None),
                            key=lambda each: each.first,
                            reverse=True,
                        )
                    )
                    continue
                stack.pop()
                if state[group] == 1:
                    state[group] = 2
                    order.append(group)
        return order


def _outlasts_start(machine: Machine, nbytes: int) -> bool:
    """Whether to access so many bytes takes longer than to start a kernel."""
    return nbytes * machine.byte(nbytes) > machine.start


def _is_little(machine: Machine, shared: int, *moved: int) -> bool:
    least = min(moved)
    return least * machine.byte(least) >= machine.start and shared < LEAST_SHARED * least


def _scans(nodes: Iterable[Node]) -> bool:
    return any(node.primitive.family is Family.SCAN for node in nodes)


def _row_choices(
    first: Sequence[Root], second: Sequence[Root], adds_up_rows: Callable[..., bool]
) -> Iterable[list[Root]]:
    """Ways to loop over two groups together: who counts which axis as a row."""
    if _rows(first) == _rows(second):
        yield [*first, *second]
    fixed, free = first, second
    if any(has_loops(root.node) for root in second):
        fixed, free = second, first
        if any(has_loops(root.node) for root in first):
            for beside, columns in ((first, second), (second, first)):
                sums = [root.node for root in (*filter(sums_rows, beside), *columns)]
                if adds_up_rows(*sums):
                    yield from _adding_up(beside, columns)
            return
    rows = _rows(fixed)
    fitting = [_with_rows(root.node, rows, fixed) for root in free]
    if None not in fitting:
        yield [*fixed, *(each for each in fitting if each is not None)]
    whole = [Root(root.node, (True,) * root.node.type.ndim) for root in free]
    if whole != fitting and all(numel(root.node.shape) == prod(rows) for root in free):
        yield [*fixed, *whole]


def _rows(roots: Sequence[Root]) -> tuple[int, ...]:
    """The sizes of the rows of a group, as those count them who do not add them up."""
    return row_sizes(next((root for root in roots if not sums_rows(root)), roots[0]))


def _adding_up(rows: Sequence[Root], columns: Sequence[Root]) -> Iterable[list[Root]]:
    """A group of rows that adds them up for sums of columns, in pieces of as many rows."""
    sums = [Root(root.node, (True, True, False)) for root in columns]
    sizes = {row_sizes(root) for root in (*sums, *filter(sums_rows, rows))}
    if len(sizes) == 1 and prod(next(iter(sizes))) == prod(_rows(rows)):
        yield [*sums, *rows]


def _with_rows(node: Node, rows: tuple[int, ...], beside: Sequence[Root]) -> Root | None:
    """`node` as a pointwise root whose row axes have the sizes `rows`."""
    shape = node.shape
    for root in beside:
        if iteration_shape(root.node) == shape and row_sizes(root) == rows:
            return Root(node, root.dims)
    matched = 0
    dims = []
    for size in shape:
        if size == 1:
            dims.append(True)
        elif matched < len(rows) and size == rows[matched]:
            matched += 1
            dims.append(True)
        elif matched == len(rows):
            dims.append(False)
        else:
            return None
    return Root(node, tuple(dims)) if matched == len(rows) else None


def _walks_across(roots: Iterable[Root]) -> bool:
    """Whether some reductions have axes as rows that others fold: a square's rows and columns.

    One of them would read memory in steps.
    """
    rows: dict[tuple[int, ...], tuple[bool, ...]] = {}
    folds = (root for root in roots if root.node.primitive.family is Family.REDUCE)
    return any(
        rows.setdefault(iteration_shape(each.node), each.dims) != each.dims for each in folds
    )
