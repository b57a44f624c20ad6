"""A compiled graph: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime import memory
from ..runtime.plan import Plan
from .fusion import (
    Fuser,
    Refusal,
    alias_base,
    is_given,
    is_matrix,
    is_step,
    strided_view,
    view_base,
)
from .ir import Builder, Graph, Node, transform
from .ir import primitives as p
from .kernel.roots import Buffer
from .passes.replace_empty import replace_empty
from .plan_builder import StepInfo
from .plan_builder_cpu import CpuPlanBuilder

Array = np.ndarray[Any, Any]


class Executable:
    """A graph that has been fused and generated.

    `run` takes one array per graph input and gives one per output. Outputs own fresh memory,
    except donated ones: those are written into the array of the input that they replace, which is
    returned for them. `kernels` tells of each step, `refused` of each fusion that was not made.
    `seconds` is how long optimising, and fusing and generating, took.
    """

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        inputs = {
            graph.inputs[number]: _strided(graph.inputs[number], given)
            for number, given in (strides or {}).items()
        }
        self.seconds = (0.0, 0.0)
        self.graph = planned_graph(graph, inputs)
        # Outputs without elements need no plan.
        kept = [number for number, node in enumerate(graph.outputs) if node.type.numel]
        planned = Graph(graph.inputs, [self.graph.outputs[number] for number in kept])
        self.donate = dict(donate or {})
        fuser = Fuser(planned, inputs)
        fusion = fuser.run()
        self.refused: list[Refusal] = fusion.refusals
        # An input that is not contiguous cannot be written by a kernel: its output comes fresh.
        direct = {o: i for o, i in self.donate.items() if graph.inputs[i] not in inputs}
        places = {at: direct[number] for at, number in enumerate(kept) if number in direct}
        builder = CpuPlanBuilder(planned, fuser, fusion, places)
        self.plan: Plan = builder.build()
        self.kernels: list[StepInfo] = builder.infos
        self._steps_to_kernels = builder.kernel_of_step
        self._fresh = [
            (number, self.graph.outputs[number].shape, self.graph.outputs[number].type.dtype.numpy)
            for number in (kept[at] for at in builder.fresh_outputs)
        ]
        self._direct = direct
        self._empty = [
            (number, node.shape, node.type.dtype.numpy)
            for number, node in enumerate(graph.outputs)
            if not node.type.numel
        ]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on `inputs`; the error of a failed check, such as a position outside its axis."""
        fresh = [memory.empty(shape, dtype) for _, shape, dtype in self._fresh]
        stopped = self.plan.run((*inputs, *fresh))
        if stopped:
            self._raise(stopped)
        if not (self.donate or self._empty):
            return fresh
        outputs: list[Array] = [None] * len(self.graph.outputs)  # type: ignore[list-item]
        for number, shape, dtype in self._empty:
            outputs[number] = np.empty(shape, dtype)
        for (number, _, _), array in zip(self._fresh, fresh, strict=True):
            outputs[number] = array
        for number, source in self.donate.items():
            if number not in self._direct:
                np.copyto(inputs[source], outputs[number])
            outputs[number] = inputs[source]
        return outputs

    def _raise(self, stopped: int) -> None:
        code, position, size = (int(word) for word in self.plan.status[:3])
        info = self._steps_to_kernels.get(stopped - 1)
        assert info is not None and info.kernel is not None
        raise info.kernel.checks[code - 1].error(position, size)


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

    return Graph(graph.inputs, [own(node) for node in graph.outputs])


def _copied_operands(graph: Graph, inputs: Mapping[Node, Buffer]) -> Graph:
    """What a library call or Python function cannot read of a strided input gets a copy."""
    if not inputs:
        return graph

    def is_readable(step: Node, operand: Node) -> bool:
        is_product = step.primitive is p.matmul
        base = view_base(operand) if is_product else alias_base(operand)
        if base not in inputs:
            return True
        view = strided_view(operand, base, inputs[base])
        return view is not None and (not is_product or is_matrix(operand.shape, view[0]))

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
