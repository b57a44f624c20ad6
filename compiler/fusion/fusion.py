"""Fusion: which nodes are computed together by one kernel.

First every fusible node is either *virtual*, computed inside whoever needs it, or a *root*, which
somebody computes once: outputs, what unfused steps read, reductions, and values that are costly
and wanted in several places. Then roots are merged into groups, each into the group of a producer
or of a sibling that reads the same data, if the group stays convex (no path leaves it and comes
back), its rows agree, and lowering accepts it. What cannot be merged stays apart, never an error;
the reason is kept for `explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice
from math import prod
from typing import Any

from ...runtime.dtypes import float32, float64
from ...runtime.records import record
from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.reshape_groups import crosses
from ..ir.shapes import numel
from ..kernel.kernel_io import (
    BufferLayout,
    CannotFuse,
    Root,
    has_loops,
    is_unrolled,
    iteration_shape,
    kept_axes,
    row_sizes,
)
from ..kernel.lower import Lowering
from ..kernel.lower_scatter import ScatterLowering
from ..kernel.memory_views import (
    alias_base,
    can_read,
    reads_strided,
    spread_view,
    strided_view,
    unfolded,
    view_base,
)
from ..kernel.simplify_loops import has_quotients, simplify_loops
from .running_order import RunningOrder
from .structure import Structure, Structures

# A value computed in at most this many operations is computed again rather than stored.
CHEAP_COST = 4
# Operations that may be computed inside a consumer before the value becomes a root.
MAX_VIRTUAL = 400
MAX_ROOTS = 24
# Bytes that are worth to be read once by two kernels although one then waits for the other.
LARGE_READ = 1 << 20
MAX_READS = 40
# A kernel with fewer rows than this does not fuse reductions longer than MAX_SERIAL.
MIN_PARALLEL_ROWS = 8
MAX_SERIAL = 1 << 15
MAX_SIBLINGS_TRIED = 4
# What is repeated more often than this is not put into memory to spare divisions.
MAX_GROWTH = 4

_SHIFTS = (p.slice_, p.flip, p.permute, p.pad, p.concatenate)

_FUSIBLE = frozenset(
    (
        Family.SOURCE,
        Family.ELEMENTWISE,
        Family.REDUCE,
        Family.VIEW,
        Family.GATHER,
        Family.SCATTER,
        Family.WINDOW,
        Family.RANDOM,
        Family.SCAN,
    )
)


@record(eq=False, frozen=False)
class Group:
    """Roots that one kernel computes.

    `kind` is "kernel", "scatter" (a kernel for one node that nothing merges into) or "step" (one
    node, unfused).
    """

    roots: list[Root]
    kind: str = "kernel"
    reads: dict[Node, None] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        return [root.node for root in self.roots]


@record()
class Refusal:
    """Why two nodes are not computed by one kernel."""

    consumer: Node
    producer: Node
    reason: str


@record(eq=False, frozen=False)
class Fusion:
    """The result: groups in an order in which they can run, and the refused merges."""

    groups: list[Group]
    refusals: list[Refusal]


def is_step(node: Node) -> bool:
    """Whether a node runs on its own on every target: a library call, a Python function."""
    return node.primitive.family not in _FUSIBLE


def is_given(node: Node) -> bool:
    """Whether a node has its memory before the plan starts: inputs and array constants."""
    name = node.primitive.name
    return name == "input" or (name == "constant" and node.type.numel != 1)


def is_virtual_source(node: Node) -> bool:
    return node.primitive.family is Family.SOURCE and not is_given(node)


class Fuser:
    """Decides roots, then merges them."""

    max_serial = MAX_SERIAL
    scatters_in_place = True
    gathers = True  # matrix products read windows from the images

    def __init__(self, graph: Graph, inputs: Mapping[Node, BufferLayout] | None = None) -> None:
        self.graph = graph
        self.inputs = inputs or {}
        self.order = {node: position for position, node in enumerate(graph.nodes)}
        # Nodes that have memory of their own whatever is decided.
        self.fixed = {node for node in graph.nodes if is_given(node) or self.is_step(node)}
        self.wanted = self._wanted()
        self.forced: set[Node] = set()
        self.unfused: set[Node] = set()
        self.refusals: list[Refusal] = []
        self.structures = Structures(self.order, self.inputs)
        self.reasons: dict[Any, str] = {}  # of a structure: why it has no kernel, "" if it has one

    def _wanted(self) -> set[Node]:
        """Nodes that must lie in memory: outputs, and what steps read."""
        wanted: set[Node] = set()
        for node in self.graph.outputs:
            base = alias_base(node)
            wanted.add(node if is_given(base) or is_virtual_source(base) else base)
        for node in self.graph.nodes:
            if self.is_step(node):
                wanted.update(self.step_operands(node))
            elif self.scatters_in_place and node.primitive.family is Family.SCATTER:
                wanted.update(self._readers_of_base(node))
        return {node for node in wanted if not is_given(node)}

    def _readers_of_base(self, scatter: Node) -> list[Node]:
        """Operands that are computed from the base, which the scatter may write over."""
        base = alias_base(scatter.inputs[0])
        return [
            alias_base(each) for each in scatter.inputs[1:]
            if is_given(base) and each is not base and self._is_made_of(each, base)
        ]  # fmt: skip

    def _is_made_of(self, node: Node, source: Node) -> bool:
        pending, seen = [node], {node}
        while pending:
            for each in pending.pop().inputs:
                if each is source:
                    return True
                if each not in seen and each not in self.fixed:
                    seen.add(each)
                    pending.append(each)
        return False

    def is_step(self, node: Node) -> bool:
        """Whether a node runs on its own on this target."""
        return is_step(node)

    def step_operands(self, step: Node) -> list[Node]:
        """What must lie in memory for `step`."""
        return [self.step_operand(step, operand) for operand in step.inputs]

    def step_operand(self, step: Node, operand: Node) -> Node:
        """What must lie in memory for `step` to read `operand`."""
        if step.primitive is p.matmul:
            return self.windows_base(step, operand) or self._strided_base(step, operand)
        if reads_strided(step):
            return self._strided_base(step, operand)
        base = alias_base(operand)
        return operand if is_virtual_source(base) else base

    def windows_base(self, step: Node, node: Node) -> Node | None:
        """What a product must find in memory to gather windows itself, if it can."""
        windows = unfolded(node) if self.gathers and 1 not in step.shape[-2:] else None
        if windows is None or node.type.dtype not in (float32, float64):
            return None
        (x,) = windows.inputs
        for base in dict.fromkeys((view_base(x), alias_base(x), x)):
            if not is_virtual_source(base) and spread_view(node, base, self.buffer(base)):
                return base
        return None

    def _strided_base(self, step: Node, node: Node) -> Node:
        """What `step` must find in memory to read `node`: `node`, or what it views."""
        base = view_base(node)
        if base is node or is_virtual_source(base):
            return node
        view = strided_view(node, base, self.buffer(base))
        if view is None:
            return node
        return base if can_read(step, node, view[0]) else node

    # -- roots ---------------------------------------------------------------------------

    def choose_roots(self) -> list[Node]:
        """The nodes that are computed once and kept, in order."""
        spent = self._mark_required_roots()
        self._mark_shared_roots(spent)
        return [node for node in self.graph.nodes if node in self.is_root]

    def _mark_required_roots(self) -> dict[Node, float]:
        """Mark what must be a root whoever reads it; gives the cost of computing each node."""
        size: dict[Node, int] = {}
        cost: dict[Node, float] = {}
        self.is_root: set[Node] = set()
        for node in self.graph.nodes:
            if node in self.fixed:
                size[node], cost[node] = 1, 0
                continue
            inlined = self._own_size(node) + sum(map(size.__getitem__, node.inputs))
            spent = self._own_cost(node) + self._inherited_cost(node, cost)
            if is_unrolled(node):
                taps = numel(node.inputs[0].shape) // max(1, node.type.numel)
                inlined, spent = inlined * taps, spent * taps
            size[node], cost[node] = inlined, spent
            if self._must_be_root(node, inlined, spent):
                self.is_root.add(node)
                size[node], cost[node] = 1, 0
        return cost

    def _inherited_cost(self, node: Node, cost: Mapping[Node, float]) -> float:
        """Per element of `node`: what is shared by a row or a column counts in proportion."""
        spent = 0.0
        for each in node.inputs:
            share = cost[each]
            if share and each.type.shape != node.type.shape:
                share *= min(1.0, each.type.numel / max(1, node.type.numel))
            spent += share
        return spent

    def _mark_shared_roots(self, cost: Mapping[Node, float]) -> None:
        """Mark costly nodes that are read on the way to more than one root."""
        reaches: dict[Node, set[Node]] = {}
        for node in reversed(self.graph.nodes):
            found: set[Node] = set()
            for reader in self.graph.consumers[node]:
                if self.has_memory(reader):
                    found.add(reader)
                else:
                    found |= reaches[reader]
            shared = len(found) > 1 and cost[node] > CHEAP_COST
            if shared and not is_virtual_source(node) and not self.has_memory(node):
                self.is_root.add(node)
            reaches[node] = found if len(found) <= 4 else set(list(found)[:4])

    def _own_size(self, node: Node) -> int:
        return 0 if node.primitive.family is Family.VIEW else node.primitive.cost

    def _own_cost(self, node: Node) -> int:
        if node.primitive.family in (Family.VIEW, Family.SOURCE):
            return 0
        return node.primitive.cost

    def _must_be_root(self, node: Node, inlined: int, spent: float) -> bool:
        if node in self.wanted or node in self.forced or node.primitive.family is Family.SCATTER:
            return True
        if is_virtual_source(node):
            return False
        if has_loops(node) and not is_unrolled(node):
            return True
        readers = self.graph.consumers[node]
        if inlined > MAX_VIRTUAL or any(self._divides(node, reader) for reader in readers):
            return True
        if spent <= CHEAP_COST:
            return False
        if spent * _times_read_elsewhere(node, readers) > CHEAP_COST:
            return True
        return any(self._repeats(node, reader) for reader in readers)

    def _divides(self, node: Node, reader: Node) -> bool:
        """Whether `reader` would have to divide to find each element of `node`.

        That is better than memory for what is repeated so often that it grows.
        """
        if reader.primitive is not p.reshape or not crosses(node.shape, reader.shape):
            return False
        largest = max((each.type.numel for each in self._reads(node)), default=0)
        return node.type.numel <= MAX_GROWTH * largest and not self._is_flat(node)

    def _is_flat(self, node: Node) -> bool:
        """Whether elements are made of what lies at the same places in memory, row by row."""
        if node.type.numel == 1 or self.has_memory(node):
            return node not in self.inputs
        if node.primitive.family is not Family.ELEMENTWISE and node.primitive is not p.reshape:
            return False
        sizes = (1, node.type.numel)
        return all(each.type.numel in sizes and self._is_flat(each) for each in node.inputs)

    def _repeats(self, node: Node, reader: Node) -> bool:
        """Whether `reader` would compute elements of `node` several times."""
        name = reader.primitive.name
        if name == "unfold" or (name in ("gather", "index") and node is reader.inputs[0]):
            return True
        if reader.primitive.family in (Family.ELEMENTWISE, Family.VIEW):
            return node.type.numel > 1 and reader.type.numel >= 4 * node.type.numel
        return False

    # -- groups --------------------------------------------------------------------------

    def run(self) -> Fusion:
        """Roots, groups and refusals; roots that have no kernel of their own run unfused."""
        while True:
            self.refusals = []
            stuck = self._grouped(self.choose_roots())
            if not stuck:
                break
            for node in stuck:
                inner = self._virtual_nodes(node)
                if inner <= self.forced:
                    self.unfused.add(node)
                self.forced.update(inner)
        for group in self.groups:
            group.roots = self._kept_roots(group)
        return Fusion(self._sorted(), self.refusals)

    def _kept_roots(self, group: Group) -> list[Root]:
        """Without roots that only this kernel reads: those are values inside it."""
        kept = []
        for root in group.roots:
            readers = self.readers_of.get(root.node, ())
            stored = root.node in self.wanted or any(reader is not group for reader in readers)
            if stored or has_loops(root.node):
                kept.append(Root(root.node, root.dims, stored))
            else:
                self.is_root.discard(root.node)
        return kept

    def _virtual_nodes(self, root: Node) -> set[Node]:
        """The nodes that would be computed inside `root`'s kernel."""
        seen: set[Node] = set()
        pending = list(root.inputs)
        while pending:
            node = pending.pop()
            if node in seen or self.has_memory(node) or is_virtual_source(node):
                continue
            seen.add(node)
            pending.extend(node.inputs)
        return seen

    def has_memory(self, node: Node) -> bool:
        return node in self.is_root or node in self.fixed

    def _grouped(self, roots: Sequence[Node]) -> list[Node]:
        """Put every root into a group; gives the roots that no kernel can compute."""
        self.groups: list[Group] = []
        self.group_of: dict[Node, Group] = {}
        self.readers_of: dict[Node, dict[Group, None]] = {}  # in the order in which they came
        self.first: dict[Group, int] = {}
        self.running = RunningOrder(self._producers, self._followers)
        stuck = []
        chosen = set(roots)
        for node in self.graph.nodes:
            if (node in self.fixed and not is_given(node)) or node in self.unfused:
                self._new_group(node, "step")
            elif node in chosen and not self._place(node):
                stuck.append(node)
        return stuck

    def _reads(self, node: Node) -> dict[Node, None]:
        """The nodes in memory from which `node` is computed."""
        found: dict[Node, None] = {}
        if self.is_step(node) or node in self.unfused:
            return {self._in_memory(each): None for each in self.step_operands(node)}
        seen: set[Node] = set()
        pending = list(reversed(node.inputs))
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            if self.has_memory(each):
                found[each] = None
            else:
                pending.extend(reversed(each.inputs))
        return found

    def _in_memory(self, node: Node) -> Node:
        return node if self.has_memory(node) else alias_base(node)

    def _new_group(self, node: Node, kind: str) -> Group:
        dims = (True,) * len(iteration_shape(node)) if kind != "step" else ()
        if kind == "kernel" and has_loops(node):
            dims = kept_axes(node)
        group = Group([Root(node, dims)], kind, self._reads(node))
        self.groups.append(group)
        self._register(group, node)
        return group

    def _register(self, group: Group, node: Node) -> None:
        position = self.order[node]
        self.group_of[node] = group
        self.first[group] = min(self.first.get(group, position), position)
        for read in group.reads:
            self.readers_of.setdefault(read, {})[group] = None
        self.running.add(group)

    def _producers(self, group: Group) -> Iterable[Group]:
        """The groups that compute what a group reads."""
        found = map(self.group_of.get, group.reads)
        return [each for each in found if each is not None]

    def _followers(self, group: Group) -> Iterable[Group]:
        """The groups that read what a group computes."""
        return (reader for node in group.nodes for reader in self.readers_of.get(node, ()))

    def _place(self, node: Node) -> bool:
        """Merge `node` into the best group that takes it, or start a group."""
        reads = self._reads(node)
        if node.primitive.family is Family.SCATTER:
            return self._start_group(node, "scatter")
        for group in self._candidates(reads):
            merged = self._merged_roots(group, node, reads)
            if merged is not None:
                group.roots = merged
                group.reads.update(
                    (read, None) for read in reads if self.group_of.get(read) is not group
                )
                self._register(group, node)
                return True
        return self._start_group(node, "kernel")

    def _start_group(self, node: Node, kind: str) -> bool:
        return not self._why_no_kernel(self._new_group(node, kind))

    def _why_no_kernel(self, group: Group) -> str:
        """Why lowering refuses a group; "" where it does not. Asked once for each structure."""
        key = self.structure(group).key
        reason = self.reasons.get(key)
        if reason is None:
            reason = self.reasons[key] = self._refusal_of(group)
        return reason

    def _refusal_of(self, group: Group) -> str:
        try:
            self.lowering(group).check()
        except CannotFuse as error:
            return str(error) or "it has no kernel"
        if _rows_cross(group.roots) and has_quotients(simplify_loops(self.lowering(group).run())):
            return "one of them would find its elements by division"
        return ""

    def _candidates(self, reads: Iterable[Node]) -> list[Group]:
        """Producers' groups, the latest first, then groups that read the same memory."""
        producers: dict[Group, None] = {}
        siblings: dict[Group, None] = {}
        for read in sorted(reads, key=self.order.__getitem__, reverse=True):
            group = self.group_of.get(read)
            if group is not None and group.kind == "kernel":
                producers[group] = None
            if read.type.numel > 1:
                readers = islice(reversed(self.readers_of.get(read, {})), MAX_SIBLINGS_TRIED)
                for reader in reversed(list(readers)):
                    if reader.kind == "kernel":
                        siblings[reader] = None
        return [*producers, *(group for group in siblings if group not in producers)]

    def _delays(self, group: Group, node: Node, reads: Iterable[Node]) -> bool:
        """Whether something that others wait for would wait itself, for little that is shared.

        What is known at the start must not be bound to what comes late: as the number of targets
        that a loss divides by, which its gradient needs before the loss.
        """
        inside = [read for read in reads if self.group_of.get(read) is group]
        outside = [read for read in reads if self.group_of.get(read) is not group]
        shared = [*inside, *(read for read in outside if read in group.reads)]
        if any(read.type.nbytes >= LARGE_READ for read in shared):
            return False
        group_is_early = self._starts(group.reads)
        if group_is_early == self._starts(outside) or (inside and not group_is_early):
            return False
        early = group.nodes if group_is_early else [node]
        return any(len(self._readers(each)) > bool(inside) for each in early)

    def _starts(self, reads: Iterable[Node]) -> bool:
        """Whether nothing has to be computed before."""
        return not any(read in self.group_of for read in reads)

    def _readers(self, node: Node) -> Sequence[Node]:
        """What reads a node, or what alone is computed from it."""
        readers = self.graph.consumers[node]
        while len(readers) == 1 and not self.has_memory(readers[0]):
            readers = self.graph.consumers[readers[0]]
        return readers

    def _merged_roots(self, group: Group, node: Node, reads: dict[Node, None]) -> list[Root] | None:
        if len(group.roots) >= MAX_ROOTS or len(group.reads) + len(reads) > MAX_READS:
            return self._refuse(group, node, "the kernel would have too many arguments")
        if self._depends_through_others(group, reads):
            return self._refuse(group, node, "a value between them is computed by another kernel")
        if self._delays(group, node, reads):
            return self._refuse(group, node, "others wait for the one, and it would for the other")
        if _scans([node, *group.nodes]) and not any(self.group_of.get(r) is group for r in reads):
            return self._refuse(group, node, "a scan goes with what it reads and is read by alone")
        reason = "their rows differ"
        for roots in _row_choices(group.roots, node):
            rows = prod(row_sizes(roots[0]))
            longest = max(numel(iteration_shape(root.node)) // max(1, rows) for root in roots)
            if rows < MIN_PARALLEL_ROWS and longest > self.max_serial:
                reason = "too few rows to share among threads"
                continue
            if _walks_across(roots):
                reason = "they walk over the same axes in different orders"
                continue
            refusal = self._why_no_kernel(Group(roots))
            if not refusal:
                return roots
            reason = refusal
        return self._refuse(group, node, reason)

    def _refuse(self, group: Group, node: Node, reason: str) -> list[Root] | None:
        """Note why `node` does not join `group`: there are no merged roots."""
        self.refusals.append(Refusal(node, group.roots[-1].node, reason))
        return None

    def structure(self, group: Group) -> Structure:
        """What the kernel of a group depends on."""
        return self.structures.of(group.kind, group.roots, self.has_memory)

    def lowering(self, group: Group, name: str = "kernel", save_rows: bool = True) -> Lowering:
        """The lowering of a group over the memory of everything outside it."""
        inside = set(group.nodes)
        cache: dict[Node, BufferLayout | None] = {}

        def buffer_of(node: Node) -> BufferLayout | None:
            if node in inside or not self.has_memory(node):
                return None
            if node not in cache:
                cache[node] = self.buffer(node)
            return cache[node]

        kind = ScatterLowering if group.kind == "scatter" else Lowering
        return kind(name, group.roots, buffer_of, self.order, save_rows)

    def buffer(self, node: Node) -> BufferLayout:
        """How a node lies in memory: contiguous, but for inputs that came otherwise."""
        return self.inputs.get(node) or BufferLayout.contiguous(node.shape)

    def _depends_through_others(self, group: Group, reads: Iterable[Node]) -> bool:
        """Whether some value read, computed outside `group`, depends on `group`."""
        found = map(self.group_of.get, reads)
        outside = [each for each in found if each is not None and each is not group]
        return self.running.reaches(group, outside)

    def _sorted(self) -> list[Group]:
        """The groups in an order in which each finds what it reads."""
        order: list[Group] = []
        state: dict[Group, int] = {}
        for start in self.groups:
            stack = [start]
            while stack:
                group = stack[-1]
                if state.get(group) is None:
                    state[group] = 1
                    producers = {self.group_of[r] for r in group.reads if r in self.group_of}
                    stack.extend(
                        sorted(
                            (each for each in producers if state.get(each) is None),
                            key=self.first.__getitem__,
                            reverse=True,
                        )
                    )
                    continue
                stack.pop()
                if state[group] == 1:
                    state[group] = 2
                    order.append(group)
        return order


def _scans(nodes: Iterable[Node]) -> bool:
    return any(node.primitive.family is Family.SCAN for node in nodes)


def _row_choices(roots: Sequence[Root], node: Node) -> Iterable[list[Root]]:
    """Ways to loop over `roots` and `node` together: who counts which axis as a row."""
    rows = row_sizes(roots[0])
    if has_loops(node):
        new = Root(node, kept_axes(node))
        wanted = row_sizes(new)
        if wanted == rows:
            yield [*roots, new]
        elif not any(has_loops(root.node) for root in roots):
            adapted = [_with_rows(root.node, wanted, [new]) for root in roots]
            if all(each is not None for each in adapted):
                yield [*(each for each in adapted if each is not None), new]
        return
    found = _with_rows(node, rows, roots)
    if found is not None:
        yield [*roots, found]
    whole = Root(node, (True,) * node.type.ndim)
    if numel(node.shape) == prod(rows) and whole != found:
        yield [*roots, whole]


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


def _rows_cross(roots: Sequence[Root]) -> bool:
    """Whether a root's axes and the rows of all are different parts of the same numbers."""
    rows = row_sizes(roots[0])
    sizes = (row_sizes(root) for root in roots[1:])
    return any(prod(each) == prod(rows) and crosses(rows, each) for each in sizes)


def _times_read_elsewhere(node: Node, readers: Sequence[Node]) -> float:
    """How often an element is read beyond once, by views that read it at other places.

    Who computes the value in its place would compute it as often.
    """
    size = node.type.numel
    shifted = [each for each in readers if each.primitive in _SHIFTS]
    read = sum(min(each.type.numel, size) for each in shifted)
    return read / size - (len(shifted) == len(readers)) if size > 1 and shifted else 0


def _walks_across(roots: Iterable[Root]) -> bool:
    """Whether some reductions have axes as rows that others fold: a square's rows and columns.

    One of them would read memory in steps.
    """
    rows: dict[tuple[int, ...], tuple[bool, ...]] = {}
    folds = (root for root in roots if root.node.primitive.family is Family.REDUCE)
    return any(
        rows.setdefault(iteration_shape(each.node), each.dims) != each.dims for each in folds
    )
