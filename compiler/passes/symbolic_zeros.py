"""What is left of gradients where some results have none that comes in.

Zeros in its place are not the same: 0 times an infinite slope is NaN, and eager code never
computes what nothing comes into. So such a cotangent is a symbolic zero, as in JAX and Zygote: what
is linear in it is zero, too, and no node. Where it has to be an array, as an operand of native code
or of a branch, it is one of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..ir import Builder, Graph, Node, Primitive
from ..ir import primitives as p
from .matching import broadcast, full, holds

Operands = list[Any]
"""Nodes; None for a symbolic zero."""
Rule = Callable[[Builder, Node, Operands], Any]


def symbolic_zeros(graph: Graph, zeros: Collection[Node]) -> Graph:
    """`graph` without some of its inputs, which are zero; outputs that are zero are arrays."""
    build = Builder()
    new: dict[Node, Any] = dict.fromkeys(zeros)
    new.update((node, node) for node in graph.inputs if node not in new)
    for node in graph.nodes:
        if node in new:
            continue
        operands = [new[each] for each in node.inputs]
        if None in operands:
            rule = _RULES.get(node.primitive, _with_arrays)
            new[node] = rule(build, node, operands)
        else:
            new[node] = build.rebuild(node, operands)
    outputs = [_array(build, new[node], node) for node in graph.outputs]
    return Graph([node for node in graph.inputs if node not in zeros], outputs)


def _array(build: Builder, value: Any, node: Node) -> Node:
    return full(build, node.type, 0) if value is None else value


def _with_arrays(build: Builder, node: Node, operands: Operands) -> Any:
    pairs = zip(operands, node.inputs, strict=True)
    return build.rebuild(node, [_array(build, value, each) for value, each in pairs])


def _zero(build: Builder, node: Node, operands: Operands) -> Any:
    return None


def _zero_if(*positions: int) -> Rule:
    """A zero where all these operands are zero, symbolic or known."""

    def rule(build: Builder, node: Node, operands: Operands) -> Any:
        if all(_is_zero(operands[at]) for at in positions):
            return None
        return _with_arrays(build, node, operands)

    return rule


def _is_zero(operand: Any) -> bool:
    if operand is not None and operand.primitive is p.broadcast:
        (operand,) = operand.inputs
    return operand is None or holds(operand, 0)


def _sum(build: Builder, node: Node, operands: Operands) -> Any:
    left, right = operands
    if _is_zero(left) and _is_zero(right):
        return None
    if left is not None:
        return broadcast(build, left, node.shape)
    if node.primitive is p.sub:
        right = build.apply(p.neg, [right], {}, node.where)
    return broadcast(build, right, node.shape)


def _pieces(build: Builder, node: Node, operands: Operands) -> Any:
    return _zero_if(*range(len(operands)))(build, node, operands)


def _padded(build: Builder, node: Node, operands: Operands) -> Any:
    return _with_arrays(build, node, operands) if node.attrs["value"] else None


def _put(build: Builder, node: Node, operands: Operands) -> Any:
    """`index_put`: values over a base, or onto it."""
    return _zero_if(0, len(operands) - 1)(build, node, operands)


def _onto(build: Builder, node: Node, operands: Operands) -> Any:
    """`scatter_add`: what is added is nothing, or the base is."""
    base, _, source = operands
    if source is None and not _is_zero(base):
        return base
    return _zero_if(0, 2)(build, node, operands)


_RULES: dict[Primitive, Rule] = {
    **dict.fromkeys(
        (
            *(p.neg, p.copy, p.conj, p.mul, p.matmul, p.convolution, p.transfer),
            *(p.reshape, p.permute, p.broadcast, p.flip, p.slice_, p.diagonal),
            *(p.unfold, p.fold),
            *(p.view_as_real, p.view_as_complex, p.sum_, p.cumsum, p.cast),
        ),
        _zero,
    ),
    **dict.fromkeys((p.div, p.gather, p.index, p.barrier), _zero_if(0)),
    **dict.fromkeys((p.triangular_solve, p.linear_scan), _zero_if(1)),
    **dict.fromkeys((p.slice_update, p.complex_), _zero_if(0, 1)),
    **dict.fromkeys((p.concatenate, p.assemble), _pieces),
    **dict.fromkeys((p.add, p.sub), _sum),
    p.where: _zero_if(1, 2),
    p.pad: _padded,
    p.scatter_add: _onto,
    p.index_put: _put,
}
"""Primitives that are linear in operands, and when these make the result zero."""
