"""Which nodes are computed once and kept, and which are computed inside whoever needs them.

The first are *roots*: outputs, what unfused steps read, reductions, and values that are costly and
wanted in several places. The others are *virtual*.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.reshape_groups import crosses
from ..ir.shapes import numel
from ..ir.size_number import computed
from ..kernel.kernel_io import has_loops, is_unrolled
from ..kernel.memory_views import alias_base
from .pieces import ASKED
from .places import Places
from .rules import FusionRules, is_stored_source, is_virtual_source

# Operations that may be computed inside a consumer before the value becomes a root.
MAX_VIRTUAL = 400
# What is repeated more often than this is not put into memory to spare divisions.
MAX_GROWTH = 4
# Bytes that are worth a kernel more, to copy them in order before they are turned.
LEAST_TURNED = 1 << 16

_SHIFTS = (p.slice_, p.flip, p.permute, p.pad, p.concatenate)


class Roots:
    """Chooses the roots of one graph.

    `fixed` have memory of their own whatever is decided: sources and steps; `wanted` must lie in
    memory: outputs, and what steps read. After `choose`, `chosen` are the roots.
    """

    def __init__(self, rules: FusionRules) -> None:
        self.rules = rules
        self.graph = rules.graph
        self.machine = rules.machine
        self.fixed = {
            node for node in self.graph.nodes if is_stored_source(node) or rules.is_step(node)
        }
        self.wanted = self._wanted()
        self.chosen: set[Node] = set()
        self.stored = set(self.fixed)  # and those that are chosen
        self.has_memory: Callable[[Node], bool] = self.stored.__contains__

    def in_memory(self, node: Node) -> Node:
        """The node whose memory holds `node`."""
        return node if self.has_memory(node) else alias_base(node)

    def _wanted(self) -> set[Node]:
        """Nodes that must lie in memory: outputs, and what steps read."""
        wanted: set[Node] = set()
        for node in self.graph.outputs:
            base = alias_base(node)
            wanted.add(node if is_stored_source(base) or is_virtual_source(base) else base)
        for node in self.graph.nodes:
            if node.primitive is p.barrier:  # what is kept, and what it waits for
                bases = map(alias_base, node.inputs)
                wanted.update(each for each in bases if not is_virtual_source(each))
            if self.rules.is_step(node):
                wanted.update(self.rules.step_operands(node))
            elif self.rules.scatters_in_place and node.primitive.family is Family.SCATTER:
                wanted.update(self._readers_of_base(node))
        return {node for node in wanted if not is_stored_source(node)}

    def _readers_of_base(self, scatter: Node) -> list[Node]:
        """Operands that are computed from the base, which the scatter may write over."""
        base = alias_base(scatter.inputs[0])
        return [
            alias_base(each) for each in scatter.inputs[1:]
            if is_stored_source(base) and each is not base and self._is_made_of(each, base)
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

    def reads(self, node: Node) -> dict[Node, None]:
        """The nodes in memory from which a node is computed inside a kernel."""
        return stored_operands(node, self.has_memory)

    def virtual_nodes(self, root: Node) -> set[Node]:
        """The nodes that would be computed inside the kernel of `root`."""
        seen: set[Node] = set()
        pending = list(root.inputs)
        while pending:
            node = pending.pop()
            if node in seen or self.has_memory(node) or is_virtual_source(node):
                continue
            seen.add(node)
            pending.extend(node.inputs)
        return seen

    def choose(self, forced: Collection[Node]) -> None:
        """Choose the roots, of which the nodes `forced` are some."""
        self.stored -= self.chosen
        self.chosen.clear()
        spent = self._mark_required_roots(forced)
        self._mark_shared_roots(spent)
        self._mark_repeated_roots(spent)

    def _choose(self, node: Node) -> None:
        self.chosen.add(node)
        self.stored.add(node)

    def drop(self, node: Node) -> None:
        """Let a node that was chosen be a value inside the only kernel that reads it."""
        self.chosen.discard(node)
        self.stored.discard(node)

    def _mark_required_roots(self, forced: Collection[Node]) -> dict[Node, float]:
        """Mark what must be a root whoever reads it; gives the cost of computing each node."""
        size: dict[Node, int] = {}
        cost: dict[Node, float] = {}
        pieces: dict[Node, int] = {}
        has_pieces = p.concatenate in self.graph.primitives
        for node in self.graph.nodes:
            if node in self.fixed:
                size[node], cost[node], pieces[node] = 1, 0, 1
                continue
            inlined = self._own_size(node) + sum(map(size.__getitem__, node.inputs))
            spent = self._own_cost(node) + self._inherited_cost(node, cost)
            if has_pieces:
                among = [pieces[each] for each in node.inputs]
                pieces[node] = max(among, default=1)
                if node.primitive is p.concatenate:
                    pieces[node] = sum(among)
                    if pieces[node] > self.machine.most_pieces:
                        spent += ASKED * pieces[node]  # of pieces of pieces, too
            if node.primitive.family is not Family.ELEMENTWISE and is_unrolled(node):
                taps = numel(node.inputs[0].shape) // computed(max, node.type.numel, 1)
                inlined, spent = inlined * taps, spent * taps
            size[node], cost[node] = inlined, spent
            if node in forced or self._must_be_root(node, inlined, spent):
                self._choose(node)
                size[node], cost[node], pieces[node] = 1, 0, 1
        return cost

    def _inherited_cost(self, node: Node, cost: Mapping[Node, float]) -> float:
        """Per element of `node`: what is shared by a row or a column counts in proportion."""
        spent = 0.0
        for each in node.inputs:
            share = cost[each]
            if share and each.type.shape != node.type.shape:
                share *= min(1.0, each.type.numel / computed(max, node.type.numel, 1))
            spent += share
        return spent

    def _mark_shared_roots(self, cost: Mapping[Node, float]) -> None:
        """Mark costly nodes that are read on the way to more than one root."""
        reaches: dict[Node, dict[Node, None]] = {}
        for node in reversed(self.graph.nodes):
            found: dict[Node, None] = {}
            for reader in self.graph.consumers[node]:
                if self.has_memory(reader):
                    found[reader] = None
                else:
                    found |= reaches[reader]
            shared = len(found) > 1 and self._pays_to_store(node, cost[node], len(found) - 1)
            if shared and not is_virtual_source(node) and not self.has_memory(node):
                self._choose(node)
            reaches[node] = found if len(found) <= 4 else dict.fromkeys(itertools.islice(found, 4))

    def _mark_repeated_roots(self, cost: Mapping[Node, float]) -> None:
        """Mark costly nodes that one kernel would compute again for each place that reads them.

        `_must_be_root` sees a node's readers; here are those behind views of views. Readers come
        first: what one of them keeps in memory needs each element once.
        """
        places = Places(self.graph, self.has_memory)
        for node in reversed(self.graph.nodes):
            is_costly = cost[node] > self.machine.cheap and _computes(node)
            if is_costly and not self.has_memory(node) and not is_virtual_source(node):
                more = places.computed(node) / computed(max, node.type.numel, 1) - 1
                if more >= 1 and self._pays_to_store(node, cost[node], more):
                    self._choose(node)

    def _pays_to_store(self, node: Node, cost: float, more: float) -> bool:
        """Whether a value is better read by so many more kernels than computed again by each."""
        machine = self.machine
        if cost <= machine.cheap:
            return False
        nbytes = node.type.nbytes
        byte = machine.byte(nbytes)
        operands = sum(each.type.nbytes for each in self.reads(node))
        again = machine.time(cost, node.type) + (operands - nbytes) * byte
        return more * again > nbytes * byte

    def _own_size(self, node: Node) -> int:
        return 0 if node.primitive.family is Family.VIEW else node.primitive.cost

    def _own_cost(self, node: Node) -> int:
        if node.primitive.family in (Family.VIEW, Family.SOURCE):
            return 0
        return node.primitive.cost

    def _must_be_root(self, node: Node, inlined: int, spent: float) -> bool:
        family = node.primitive.family
        if node in self.wanted or family is Family.SCATTER:
            return True
        if family is not Family.ELEMENTWISE:
            if is_virtual_source(node):
                return False
            if has_loops(node) and not is_unrolled(node):
                return True
            if self.rules.adds_up_rows(node):
                return True
        readers = self.graph.consumers[node]
        if inlined > MAX_VIRTUAL:
            return True
        for reader in readers:
            if reader.primitive is p.reshape and self._divides(node, reader):
                return True
        if self.rules.joins_before_turning and self._is_turned(node, readers):
            return True
        if self.rules.is_costly_number(node, spent):
            return True
        if spent <= self.machine.cheap:
            return False
        if spent * _times_read_elsewhere(node, readers) > self.machine.cheap:
            return True
        return any(self._repeats(node, reader) for reader in readers)

    def _divides(self, node: Node, reader: Node) -> bool:
        """Whether a reshape would have to divide to find each element of `node`.

        That is better than memory for what is repeated so often that it grows.
        """
        if not crosses(node.shape, reader.shape):
            return False
        largest = max((each.type.numel for each in self.reads(node)), default=0)
        return node.type.numel <= MAX_GROWTH * largest and not self._is_flat(node)

    def _is_flat(self, node: Node) -> bool:
        """Whether elements are made of what lies at the same places in memory, row by row."""
        if node.type.numel == 1 or self.has_memory(node):
            return node not in self.rules.inputs
        if node.primitive.family is not Family.ELEMENTWISE and node.primitive is not p.reshape:
            return False
        sizes = (1, node.type.numel)
        return all(each.type.numel in sizes and self._is_flat(each) for each in node.inputs)

    def _is_turned(self, node: Node, readers: Sequence[Node]) -> bool:
        """Whether a permute puts another axis last of what alternates between values.

        Its vectors would take neighbours from different values, each by itself. Those that are
        behind each other now are copied as vectors, and then turned like any matrix.
        """
        if node.type.nbytes < LEAST_TURNED or not _alternates(node, self.has_memory):
            return False
        last = node.type.ndim - 1
        return any(
            reader.primitive is p.permute and reader.attrs["axes"][last] != last
            for reader in readers
        )

    def _repeats(self, node: Node, reader: Node) -> bool:
        """Whether `reader` would compute elements of `node` several times."""
        if reader.primitive is p.unfold:
            return True
        if reader.primitive in (p.gather, p.index) and node is reader.inputs[0]:
            return True
        if reader.primitive.family in (Family.ELEMENTWISE, Family.VIEW):
            return node.type.numel > 1 and reader.type.numel >= 4 * node.type.numel
        return False


def _alternates(node: Node, has_memory: Callable[[Node], bool]) -> bool:
    """Whether neighbours along an axis, not the last one, are made of different values in turn.

    So are pieces of one element that a reshape puts between each other, and windows beside zeros.
    """
    width, joins = node.shape[-1:], False
    while not has_memory(node) and node.shape[-1:] == width:
        if node.primitive is p.fold:
            return True
        if node.primitive is p.concatenate and joins:
            axis = node.attrs["axis"]
            return all(each.shape[axis] == 1 for each in node.inputs)
        if node.primitive not in (p.reshape, p.pad, p.slice_):
            return False
        joins |= node.primitive is p.reshape
        (node,) = node.inputs
    return False


def _computes(node: Node) -> bool:
    """Whether a node is more than another look at one value."""
    return node.primitive.family is not Family.VIEW or len(node.inputs) > 1


def stored_operands(node: Node, has_memory: Callable[[Node], bool]) -> dict[Node, None]:
    """The nodes in memory from which `node` is computed, in the order in which it needs them."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    pending = [*node.inputs[::-1]]
    while pending:
        each = pending.pop()
        if has_memory(each):
            found[each] = None
        elif each not in seen and each.inputs:
            seen.add(each)
            pending += each.inputs[::-1]
    return found


def _times_read_elsewhere(node: Node, readers: Sequence[Node]) -> float:
    """How often an element is read beyond once, by views that read it at other places.

    Who computes the value in its place would compute it as often.
    """
    size = node.type.numel
    shifted = [each for each in readers if each.primitive in _SHIFTS]
    read = sum(min(each.type.numel, size) for each in shifted)
    return read / size - (len(shifted) == len(readers)) if size > 1 and shifted else 0
