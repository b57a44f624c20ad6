"""What is decided of a graph before any target plans it: which results need memory, and whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..fusion.machine import Machine
from ..fusion.pieces import assemble_pieces
from ..fusion.rules import is_step, is_stored_source
from ..ir import Builder, Family, Graph, Node, TensorType, transform
from ..ir import primitives as p
from ..kernel.kernel_io import BufferLayout
from ..kernel.memory_views import alias_base, can_read, reads_strided, strided_view, view_base
from ..passes.replace_empty import replace_empty
from .output_memory import OutputMemory


class Planning(OutputMemory):
    """An optimised graph as plans are made of it, and the memory of its outputs.

    `graph` has all outputs, each owning its memory; `planned` those that have elements. `inputs`
    tells how the inputs lie that are not dense, `types` what outputs are to whoever runs the plan:
    complex, where the plan has pairs of real numbers.
    """

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        types: Sequence[TensorType] | None = None,
        *,
        machine: Machine,
    ) -> None:
        strides = strides or {}
        self.inputs = {
            graph.inputs[number]: _strided(graph.inputs[number], given)
            for number, given in strides.items()
        }
        self.graph = planned_graph(graph, self.inputs, machine)
        own = [node.type for node in self.graph.outputs]
        super().__init__(own if types is None else types, donate, strides)
        self.planned = self.graph.with_outputs([self.graph.outputs[each] for each in self.kept])
        outputs = self.planned.outputs
        self.overwriting = frozenset(alias_base(outputs[number]) for number in self.places)


def planned_graph(graph: Graph, inputs: Mapping[Node, BufferLayout], machine: Machine) -> Graph:
    """`graph` as plans are made of it: outputs own their memory, and every operand can be read.

    `inputs` tells how those lie that are not dense; what is made of many pieces is so as it suits
    `machine`.
    """
    prepared = _copied_operands(_copied_outputs(replace_empty(graph)), inputs)
    return assemble_pieces(prepared, machine)


def _copied_outputs(graph: Graph) -> Graph:
    """Outputs that are inputs or constants get a copy, since outputs own their memory."""
    build = Builder()

    def own(node: Node) -> Node:
        base = node
        while base.primitive is p.reshape:
            base = base.inputs[0]
        return build.apply(p.copy, [node], where=node.where) if is_stored_source(base) else node

    return graph.with_outputs([own(node) for node in graph.outputs])


def _copied_operands(graph: Graph, inputs: Mapping[Node, BufferLayout]) -> Graph:
    """What a library call or Python function cannot read of a strided input gets a copy."""
    if not inputs:
        return graph

    def is_readable(step: Node, operand: Node) -> bool:
        if step.primitive.family is Family.CONTROL:  # graphs inside read dense inputs
            return alias_base(operand) not in inputs
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


def _strided(node: Node, strides: tuple[int, ...]) -> BufferLayout:
    """How an input with element `strides` lies in memory."""
    if any(stride < 0 for stride in strides):
        raise ValueError(f"input {node.attrs['name']}: strides must not be negative: {strides}")
    extent = 1 + sum((n - 1) * s for n, s in zip(node.shape, strides, strict=True))
    return BufferLayout(strides, 0, extent if node.type.numel else 0)
