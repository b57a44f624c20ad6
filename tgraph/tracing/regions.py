"""Checkpointed parts of a trace: what their records saved is computed again by the backward pass.

A `Region` knows the nodes that a checkpointed function recorded. Where a gradient rule asks for a
saved value, the nodes that lead to it are made once more, from what the region read and from what
its policy keeps. These come through a `barrier`, which waits for the gradient that arrives at the
region: without it, equal nodes would be one, and the values of the forward pass would be kept.
Random numbers are functions of a counter, so the same ones are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Family, Node, is_repeatable
from ..compiler.ir import primitives as p
from ..core.dispatch import twin_of
from ..core.state import state
from ..core.tensor import Lifted, Tensor

if TYPE_CHECKING:
    from .body_recording import BodyRecording

Policy = Callable[[str, str | None], bool]
"""Whether a value is kept, by the name of its primitive, and the name that the user gave it."""


class Region:
    def __init__(self, trace: BodyRecording, policy: Policy, outer: Region | None) -> None:
        self.trace, self.policy, self.outer = trace, policy, outer
        self.scope = trace.scope
        self.nodes: set[Node] = set()
        self.names: dict[Node, str] = {}
        self.after: Node | None = None  # a gradient that arrived
        self.made: dict[Node, Node] = {}

    def add(self, node: Node) -> None:
        self.nodes.add(node)

    def leave(self) -> None:
        if self.outer is not None:
            self.outer.nodes |= self.nodes
            self.outer.names |= self.names

    def arrived(self, cotangents: Sequence[Tensor | None]) -> None:
        """Gradients arrive at a record: what is computed again waits for the first of them."""
        if self.outer is not None:
            self.outer.arrived(cotangents)
        if self.after is None:
            known = [each for each in cotangents if each is not None]
            self.after = self._node_of(known[0]) if known else None
            self.trace.arrived.append(self)

    def _node_of(self, tensor: Tensor) -> Node:
        while isinstance(tensor._value, Lifted):
            tensor = tensor._value.below
        return self.trace.value_of(tensor)

    def recomputed(self, tensor: Tensor) -> Tensor:
        """A tensor that a record of the region saved, of the same history."""
        if self.after is None or self.trace.scope is not self.scope:
            return tensor
        value = self._value(tensor._value)
        return tensor if value is tensor._value else twin_of(tensor, value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, Lifted):
            return value.of(self.recomputed)
        return self.node(value) if type(value) is Node and value in self.scope.own else value

    def node(self, target: Node) -> Node:
        """What stands for a node in the backward pass."""
        pending = [target]
        while pending:
            node = pending[-1]
            if node in self.made:
                pending.pop()
                continue
            if self._is_given(node):
                pending.pop()
                self.made[node] = self._held(node)
                continue
            missing = [each for each in node.inputs if each not in self.made]
            if missing:
                pending += missing
                continue
            pending.pop()
            self.made[node] = self.trace.rebuild(node, [self.made[each] for each in node.inputs])
        return self.made[target]

    def _is_given(self, node: Node) -> bool:
        """Whether a node is read from memory, and not computed again."""
        if node.primitive.family is Family.SOURCE or node not in self.nodes:
            return True
        if not hasattr(node.type, "dtype"):  # of several results, which `get` selects
            return False
        source = node.inputs[0] if node.primitive is p.get else node
        if source not in self.nodes or not is_repeatable(node):
            return True
        return self.policy(source.primitive.name, self.names.get(node))

    def _held(self, node: Node) -> Node:
        if node.primitive.family is Family.SOURCE and node.primitive is not p.input_:
            return node
        assert self.after is not None
        outer = self.outer
        known = outer.node(node) if outer is not None and node in outer.nodes else node
        return self.trace.barrier(known, self.after)


@contextmanager
def entered_region(trace: BodyRecording, policy: Policy) -> Iterator[bool]:
    """Record what follows as a region of the trace."""
    outer = state.region
    state.region = region = Region(trace, policy, outer)
    try:
        yield True
    finally:
        state.region = outer
        region.leave()


@contextmanager
def deriving(trace: BodyRecording) -> Iterator[None]:
    """Gradients that are derived meanwhile belong to a graph of their own: its cotangents are not
    there for another, whose regions compute again what they need of it."""
    before, trace.arrived = trace.arrived, []
    try:
        yield
    finally:
        for each in trace.arrived:
            each.after, each.made = None, {}
        trace.arrived = before


@contextmanager
def outside_of_regions() -> Iterator[None]:
    """The bodies of branches and loops belong to no region; the whole of one may."""
    held, state.region = state.region, None
    try:
        yield
    finally:
        state.region = held
