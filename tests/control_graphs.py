"""Graphs with branches and loops, for tests, by short names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tgraph.compiler.ir import UNKNOWN, Builder, Graph, Node, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import DType, from_numpy_dtype, int64

Array = np.ndarray[Any, Any]
Make = Callable[..., Sequence[Node]]


class Maker(Builder):
    """Nodes by short names, of the line `where`."""

    where = UNKNOWN

    def __call__(self, primitive: str, /, *inputs: Node, **attrs: Any) -> Node:
        return self.apply(p.PRIMITIVES[primitive], inputs, attrs, self.where)

    def number(self, value: Any, dtype: DType = int64) -> Node:
        return self.full((), value, dtype)

    def loop(
        self, operands: Sequence[Node], carried: int, condition: Make, body: Make
    ) -> list[Node]:
        types = [each.type for each in operands]
        attrs = {
            "condition": graph(types, condition), "body": graph(types, body), "carried": carried,
        }  # fmt: skip
        loop = self.apply(p.loop, operands, attrs)
        return [self("get", loop, index=number) for number in range(carried)]

    def branch(self, index: Node, operands: Sequence[Node], *branches: Make) -> list[Node]:
        types = [each.type for each in operands]
        graphs = tuple(graph(types, each) for each in branches)
        branch = self.apply(p.branch, [index, *operands], {"branches": graphs})
        return [self("get", branch, index=number) for number in range(len(graphs[0].outputs))]


def graph(types: Sequence[TensorType], make: Make) -> Graph:
    inputs = [input_node(f"x{number}", type_) for number, type_ in enumerate(types)]
    return Graph(inputs, list(make(Maker(), *inputs)))


def types_of(arrays: Sequence[Array]) -> list[TensorType]:
    return [TensorType(each.shape, from_numpy_dtype(each.dtype)) for each in arrays]


def below(m: Maker, *operands: Node) -> list[Node]:
    """The condition of loops that count in their first value up to their last operand."""
    return [m("lt", operands[0], operands[-1])]


def up(m: Maker, i: Node) -> Node:
    return m("add", i, m.number(1))
