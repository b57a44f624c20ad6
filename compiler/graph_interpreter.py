"""Runs a graph node by node on arrays: the reference that compiled code is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime.arrays import FUNCTIONS, Array, Function
from ..runtime.records import NamedTuple
from .ir import Graph, Node
from .ir import primitives as p


class _Step(NamedTuple):
    """One node: where its operands and result are kept, and which values it reads last."""

    function: Function
    operands: tuple[int, ...]
    attrs: dict[str, Any]
    result: int
    dead: tuple[int, ...]
    node: Node


class Interpreter:
    """A graph made ready to run; values are dropped once nothing reads them any more."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._slots = {node: slot for slot, node in enumerate(graph.nodes)}
        self._steps = self._plan()

    def _plan(self) -> list[_Step]:
        slots, steps = self._slots, []
        kept = set(self.graph.outputs)  # these, and whatever was released already
        for node in reversed(self.graph.nodes):
            if node.primitive is p.input_:
                continue
            dead = [operand for operand in dict.fromkeys(node.inputs) if operand not in kept]
            kept.update(dead)
            steps.append(
                _Step(
                    FUNCTIONS[node.primitive.name],
                    tuple(slots[operand] for operand in node.inputs),
                    with_functions(node.attrs),
                    slots[node],
                    tuple(slots[operand] for operand in dead),
                    node,
                )
            )
        return steps[::-1]

    def run(self, inputs: Sequence[Array], xp: Any = np) -> list[Array]:
        """One value per output; views of inputs and constants may be among them.

        TypeError where the inputs do not fit the graph; an IndexError names the line of the
        program that asked for the position.
        """
        values: list[Any] = [None] * len(self._slots)
        self._feed(values, inputs)
        for function, operands, attrs, result, dead, node in self._steps:
            try:
                values[result] = function(xp, *[values[slot] for slot in operands], **attrs)
            except IndexError as error:
                raise type(error)(f"{error} (in {node.primitive.name} at {node.where})") from None
            for slot in dead:
                values[slot] = None
        return [values[self._slots[node]] for node in self.graph.outputs]

    def run_on(self, xp: Any, *inputs: Array) -> tuple[Array, ...]:
        """As array functions are called: the module first."""
        return tuple(self.run(inputs, xp))

    def _feed(self, values: list[Any], inputs: Sequence[Array]) -> None:
        wanted = self.graph.inputs
        if len(inputs) != len(wanted):
            raise TypeError(f"the graph takes {len(wanted)} inputs, got {len(inputs)}")
        for node, array in zip(wanted, inputs, strict=True):
            if array.shape != node.shape or array.dtype != node.type.dtype.numpy:
                raise TypeError(
                    f"input {node.attrs['name']} expected {node.type}, "
                    f"got {array.dtype}{list(array.shape)}"
                )
            values[self._slots[node]] = array


def with_functions(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node for its array function, which calls graphs."""
    return {name: _runnable(value) for name, value in attrs.items()}


def _runnable(attribute: Any) -> Any:
    if isinstance(attribute, Graph):
        return Interpreter(attribute).run_on
    if type(attribute) is tuple and any(isinstance(each, Graph) for each in attribute):
        return tuple(map(_runnable, attribute))
    return attribute


def interpret(graph: Graph, inputs: Sequence[Array], xp: Any = np) -> list[Array]:
    """The outputs of `graph` for `inputs`, one array each.

    >>> import numpy as np
    >>> from tgraph.compiler.ir import Builder, TensorType, input_node, primitives as p
    >>> from tgraph.runtime.dtypes import float32
    >>> x = input_node("x", TensorType((2,), float32))
    >>> interpret(Graph([x], [Builder().apply(p.neg, [x])]), [np.ones(2, np.float32)])
    [array([-1., -1.], dtype=float32)]
    """
    return Interpreter(graph).run(inputs, xp)
