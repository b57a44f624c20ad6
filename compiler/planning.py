"""What is decided of a graph before any target plans it: which results need memory, and whose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..runtime.arrays import copy_elements
from .fusion import is_given, is_step
from .ir import Builder, Graph, Node, TensorType, transform
from .ir import primitives as p
from .kernel.roots import Buffer
from .memory_views import alias_base, can_read, reads_strided, strided_view, view_base
from .passes.replace_empty import replace_empty

Array = Any  # of NumPy or CuPy


class Planning:
    """An optimised graph as plans are made of it.

    `graph` has all outputs, each owning its memory; `planned` those that have elements. `inputs`
    tells how the inputs lie that are not dense. `donate` maps outputs to the inputs whose memory
    they are to take; `places` does so for the outputs of `planned` that a kernel may write there.
    """

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        self.inputs = {
            graph.inputs[number]: _strided(graph.inputs[number], given)
            for number, given in (strides or {}).items()
        }
        self.graph = planned_graph(graph, self.inputs)
        kept = [number for number, node in enumerate(graph.outputs) if node.type.numel]
        self.planned = self.graph.with_outputs([self.graph.outputs[number] for number in kept])
        self.donate = dict(donate or {})
        # An input that is not contiguous cannot be written by a kernel: its output comes fresh.
        self.direct = {
            output: source
            for output, source in self.donate.items()
            if graph.inputs[source] not in self.inputs
        }
        self.places = {
            at: self.direct[number] for at, number in enumerate(kept) if number in self.direct
        }
        self.fresh = [number for number in kept if number not in self.direct]
        """The outputs that come in memory of their own, in the order of their slots."""
        self.empty = [number for number, node in enumerate(graph.outputs) if not node.type.numel]
        self._simple = not (self.donate or self.empty)

    def types(self, numbers: Sequence[int]) -> list[TensorType]:
        """The types of some outputs."""
        return [self.graph.outputs[number].type for number in numbers]

    def results(
        self, inputs: Sequence[Array], fresh: list[Array], empty: Callable[[TensorType], Array]
    ) -> list[Array]:
        """One array per output: `fresh` ones, empty ones, and inputs that were written over."""
        if self._simple:
            return fresh
        outputs: list[Array] = [None] * len(self.graph.outputs)
        for number, type_ in zip(self.empty, self.types(self.empty)):
            outputs[number] = empty(type_)
        for number, array in zip(self.fresh, fresh, strict=True):
            outputs[number] = array
        for number, source in self.donate.items():
            if number not in self.direct:
                copy_elements(inputs[source], outputs[number])
            outputs[number] = inputs[source]
        return outputs


def planned_graph(graph: Graph, inputs: Mapping[Node, Buffer]) -> Graph:
    """`graph` as plans are made of it: outputs own their memory, and every operand can be read.

    `inputs` tells how those lie that are not dense.
    """
    return _copied_operands(_copied_outputs(replace_empty(graph)), inputs)


def _copied_outputs(graph: Graph) -> Graph:
    """Outputs that are inputs or constants get a copy, since outputs own their memory."""
    build = Builder()

    def own(node: Node) -> Node:
        base = node
        while base.primitive.name == "reshape":
            base = base.inputs[0]
        return build.apply(p.copy, [node], where=node.where) if is_given(base) else node

    return graph.with_outputs([own(node) for node in graph.outputs])


def _copied_operands(graph: Graph, inputs: Mapping[Node, Buffer]) -> Graph:
    """What a library call or Python function cannot read of a strided input gets a copy."""
    if not inputs:
        return graph

    def is_readable(step: Node, operand: Node) -> bool:
        is_strided = reads_strided(step)
        base = view_base(operand) if is_strided else alias_base(operand)
        if base not in inputs:
            return True
        view = strided_view(operand, base, inputs[base])
        return view is not None and (not is_strided or can_read(step, operand, view[0]))

    def rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
        if is_step(node):
            operands = tuple(
                each if is_readable(node, each) else build.apply(p.copy, [each], where=each.where)
                for each in operands
            )
        return build.rebuild(node, operands)

    return transform(graph, rewrite)


def _strided(node: Node, strides: tuple[int, ...]) -> Buffer:
    """How an input with element `strides` lies in memory."""
    if any(stride < 0 for stride in strides):
        raise ValueError(f"input {node.attrs['name']}: strides must not be negative: {strides}")
    extent = 1 + sum((n - 1) * s for n, s in zip(node.shape, strides, strict=True))
    return Buffer(strides, 0, extent if node.type.numel else 0)
