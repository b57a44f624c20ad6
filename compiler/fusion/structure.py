"""The structure of a fused group: what lowering, schedules and texts depend on, and nothing else.

A model has many groups that differ only in whose memory they read and write: the updates of its
parameters, its layers. They have one structure, so that what was found out about the first of them
holds for all, in this graph and in others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...runtime.memo import Memo
from ...runtime.records import NamedTuple
from ..ir import Node
from ..kernel.kernel_io import BufferLayout, Root

# What a node is -> a number for it, which is never given again.
_numbers: Memo[Any, int] = Memo(20_000)
_next = itertools.count()


class Structure(NamedTuple):
    """Groups with equal keys are computed alike, each over its own nodes.

    `inside` are computed by the group, producers first; `outside` are the nodes in memory that it
    reads, in the order in which those mention them.
    """

    key: tuple[Any, ...]
    inside: tuple[Node, ...]
    outside: tuple[Node, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, each at its number, which is the same in all groups of the structure."""
        return self.inside + self.outside


class Structures:
    """Finds the structure of groups of one graph. `layouts` tells which nodes lie oddly."""

    def __init__(self, order: Mapping[Node, int], layouts: Mapping[Node, BufferLayout]) -> None:
        self._order = order
        self._layouts = layouts
        self._inside: dict[Node, int] = {}  # computed nodes -> the number of what they do
        self._outside: dict[Node, int] = {}  # nodes in memory -> the number of how they lie

    def of(self, kind: str, roots: Sequence[Root], computed: Iterable[Node]) -> Structure:
        """The structure of a group of `roots`, for which it computes the nodes `computed`."""
        inside = sorted(computed, key=self._order.__getitem__)
        at = {node: number for number, node in enumerate(inside)}
        outside: dict[Node, int] = {}
        key: list[Any] = [kind]
        known = self._inside
        for node in inside:
            label = known.get(node)
            key.append(self._label(node) if label is None else label)
            for operand in node.inputs:
                number = at.get(operand)
                if number is None:
                    number = outside.get(operand)
                    if number is None:
                        number = outside[operand] = ~len(outside)
                        key.append(self._memory(operand))
                key.append(number)
        for root in roots:
            key += at[root.node], root.dims, root.stored
            if root.node in self._layouts:
                key.append(self._layouts[root.node])
        return Structure(tuple(key), tuple(inside), tuple(outside))

    def _label(self, node: Node) -> int:
        # On which device all nodes of the graph lie changes nothing. Large arrays, which keys tell
        # apart by their ids, are no attributes of what kernels compute.
        what = (node.what, len(node.inputs), node.type.shape, node.type.dtype)
        number = self._inside[node] = _number(what)
        return number

    def _memory(self, node: Node) -> int:
        number = self._outside.get(node)
        if number is None:
            how = ("memory", node.type.shape, node.type.dtype, self._layouts.get(node))
            number = self._outside[node] = _number(how)
        return number


def computed_for(roots: Iterable[Node], has_memory: Callable[[Node], bool]) -> set[Node]:
    """The nodes that a group of `roots` computes beside the nodes that have memory."""
    seen = set(roots)
    pending = list(seen)
    while pending:
        for operand in pending.pop().inputs:
            if operand not in seen and not has_memory(operand):
                seen.add(operand)
                pending.append(operand)
    return seen


def _number(what: Any) -> int:
    number = _numbers.get(what)
    return _numbers.keep(what, next(_next)) if number is None else number
