"""What is added to all rows that a loop reads is added by its turns, to the row of each.

A recurrent layer multiplies all rows by the weights of its input before its loop, and adds a bias.
That sum would be read from memory and written there, since a product of so many columns is faster
by itself; a turn adds the bias beside what else it computes of the row.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.records import NamedTuple
from ..ir import Builder, Graph, Node, input_node, transform
from ..ir import primitives as p
from ..ir.loop_rows import RowLoop, row_loop
from .matching import reshape


def sink_biases(graph: Graph) -> Graph:
    """`graph` with biases of products added where loops read their rows."""

    def rewrite(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        loop = row_loop(node)
        sums = {} if loop is None else _sums(graph, loop)
        if loop is None or not sums:
            return build.rebuild(node, inputs)
        operands = list(inputs)
        for number, each in sums.items():
            operands[number] = reshape(build, new_of[each.product], inputs[number].shape)
        operands += [new_of[bias] for each in sums.values() for bias in each.biases]
        return build.apply(p.loop, operands, _with_biases(loop, sums), node.where)

    new_of: dict[Node, Node] = {}

    def noted(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        new_of[node] = rewrite(build, node, inputs)
        return new_of[node]

    new_of.update((each, each) for each in graph.inputs)
    return transform(graph, noted)


class _Sum(NamedTuple):
    product: Node
    biases: tuple[Node, ...]  # the first one is added first


def _sums(graph: Graph, loop: RowLoop) -> dict[int, _Sum]:
    """The operands that are a product and biases, of which each turn reads a row, and no other."""
    found: dict[int, _Sum] = {}
    for number in range(loop.carried, len(loop.node.inputs)):
        rows, operand = loop.body.inputs[number], loop.node.inputs[number]
        readers = loop.body.consumers[rows]
        if rows in loop.body.outputs or not readers or operand.type.ndim < 2:
            continue
        if all(map(loop.read_row, readers)):
            parts = _parts(graph, operand)
            if parts is not None:
                found[number] = parts
    return found


def _parts(graph: Graph, rows: Node) -> _Sum | None:
    """Rows as a product and what is added to each of them, where nobody else reads the sums."""
    biases: list[Node] = []
    node = rows
    while node.primitive in (p.reshape, p.add) and _is_read_once(graph, node):
        if node.primitive is p.reshape:
            (node,) = node.inputs
            continue
        one, other = node.inputs
        if other.type.ndim > 1:
            one, other = other, one
        if (
            one.type != node.type
            or other.shape != rows.shape[-1:]
            or other.type.dtype != one.type.dtype
        ):
            return None
        biases.append(other)
        node = one
    is_product = node.primitive is p.matmul and node.shape[-1:] == rows.shape[-1:]
    return _Sum(node, tuple(reversed(biases))) if is_product and biases else None


def _is_read_once(graph: Graph, node: Node) -> bool:
    readers = graph.consumers[node]
    is_one = len(readers) == 1 and readers[0].inputs.count(node) == 1
    return is_one and node not in graph.outputs


def _with_biases(loop: RowLoop, sums: Mapping[int, _Sum]) -> dict[str, object]:
    """The attributes of the loop that adds them to the rows that it reads."""
    build = Builder()
    biases = {
        number: [input_node("bias", bias.type) for bias in each.biases]
        for number, each in sums.items()
    }
    added = [bias for each in biases.values() for bias in each]
    new: dict[Node, Node] = {each: each for each in loop.body.inputs}
    for node in loop.body.nodes:
        if node in new:
            continue
        made = build.rebuild(node, [new[each] for each in node.inputs])
        read = loop.read_row(node)
        for bias in biases.get(read[0], ()) if read is not None else ():
            made = build.apply(p.add, [made, bias], {}, node.where)
        new[node] = made
    unread = [input_node("unread", each.type) for each in added]
    return {
        "condition": Graph([*loop.condition.inputs, *unread], loop.condition.outputs),
        "body": Graph([*loop.body.inputs, *added], [new[n] for n in loop.body.outputs]),
        "carried": loop.carried,
    }
