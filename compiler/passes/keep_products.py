"""Products that a loop computes again in each turn are kept by the loop that computed them first.

The gradient of a scan goes over the states that its turns began with, and computes of them what
the turns computed. Where that is a product, the scan stacks it for its gradient: a row is written
and read in less time than a product takes. What is added to a product before anything else is done
with it is kept with it. Whoever has no memory for rows asks for `checkpoints`: what lies between
two of them is a scan of its own, which is made again.

It is called on a whole graph of values and gradients before it is divided into plans, so that the
forward plan has the rows, and as one of the first passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir import Builder, Family, Graph, Node, TensorType, input_node, toposort
from ..ir import primitives as p
from ..ir.loop_rows import RowLoop, row, row_loop, with_row
from .matching import full
from .simplify_control import live_operands

LEAST_DEPTH = 8
"""A product that adds up fewer numbers for each of its own is computed again."""


def keep_products(graph: Graph) -> Graph:
    """`graph` with products of its loops kept for those that would compute them again."""
    new = kept_products(graph)
    return graph.with_outputs([new.get(node, node) for node in graph.outputs])


def kept_products(graph: Graph) -> dict[Node, Node]:
    """What stands for the nodes of `graph`, if loops keep anything for others."""
    loops = {node: found for node in graph.nodes if (found := row_loop(node)) is not None}
    changes = {node: _Change() for node in loops}
    for reader in loops.values():
        makers = {_maker(each): None for each in reader.node.inputs[reader.carried :]}
        for maker in makers:
            if maker in loops:
                _match(graph, loops[maker], reader, changes)
    if not any(each.kept or each.given for each in changes.values()):
        return {}
    return _rebuilt(graph, changes)


def _maker(node: Node) -> Node:
    return node.inputs[0] if node.primitive is p.get else node


class _Change:
    """What becomes of a loop: values that it keeps, and those that another has kept for it."""

    def __init__(self) -> None:
        self.kept: dict[Node, Node] = {}  # values of the body, and the row of each
        self.given: dict[Node, tuple[Node, Node, Node]] = {}  # (row, loop, its value)


def _match(graph: Graph, maker: RowLoop, reader: RowLoop, changes: dict[Node, _Change]) -> None:
    """Note what `reader` need not compute, since `maker` did in the turn with the same row."""
    same, at = _same(maker, reader)
    if not same:
        return
    read = {each.attrs["index"] for each in graph.consumers[reader.node]}
    live = live_operands(reader.node, read)
    outputs = [reader.body.outputs[number] for number in range(reader.carried) if number in live]
    given = changes[reader.node].given
    candidates = {
        _widened(reader.body, each, same): None
        for each in reader.body.nodes
        if each in same and _is_dear(each)
    }
    for each in _needed(outputs, candidates):
        if each not in given:
            own_at, its_at = at
            given[each] = own_at, maker.node, same[each]
            changes[maker.node].kept[same[each]] = its_at


def _is_dear(node: Node) -> bool:
    if node.primitive is p.matmul:
        depth = node.inputs[0].shape[-2 if node.attrs["transpose_a"] else -1]
        return type(depth) is int and depth >= LEAST_DEPTH
    return node.primitive is p.convolution


def _same(maker: RowLoop, reader: RowLoop) -> tuple[dict[Node, Node], tuple[Node, Node]]:
    """Values of the reader's body, and the equal ones of the maker's, in turns with the same row.

    And what the row is in both, which all that was found goes by.
    """
    captured = dict(zip(maker.node.inputs[maker.carried :], maker.body.inputs[maker.carried :]))
    computed = {(each.what, each.inputs): each for each in maker.body.nodes}
    same: dict[Node, Node] = {}
    row_of: tuple[Node, Node] | None = None
    for number in range(reader.carried, len(reader.node.inputs)):
        if (operand := reader.node.inputs[number]) in captured:
            same[reader.body.inputs[number]] = captured[operand]
    for node in reader.body.nodes:
        if node in same or node.primitive is p.input_:
            continue
        read = reader.read_row(node)
        if read is not None:
            rows = reader.node.inputs[read[0]]
            if rows.primitive is p.get and rows.inputs[0] is maker.node:
                written = maker.written_row(rows.attrs["index"])
                if written is not None and row_of in (None, (read[1], written[0])):
                    row_of = read[1], written[0]
                    same[read[1]], same[node] = written
                    continue
        if all(each in same for each in node.inputs):
            found = computed.get((node.what, tuple(same[each] for each in node.inputs)))
            if found is not None:
                same[node] = found
    return (same, row_of) if row_of is not None else ({}, (reader.counter, maker.counter))


def _widened(body: Graph, node: Node, same: dict[Node, Node]) -> Node:
    """What a product becomes by elementwise operations before anybody else reads it."""
    while True:
        readers = body.consumers[node]
        if len(readers) != 1 or node in body.outputs or readers[0] not in same:
            return node
        if readers[0].primitive.family is not Family.ELEMENTWISE or readers[0].type != node.type:
            return node
        node = readers[0]


def _needed(outputs: Sequence[Node], candidates: Iterable[Node]) -> list[Node]:
    """Those of the candidates that others need for the outputs."""
    order = toposort(outputs, known=candidates)
    read = {*outputs, *(operand for each in order for operand in each.inputs)}
    return [each for each in candidates if each in read]


def _rebuilt(graph: Graph, changes: dict[Node, _Change]) -> dict[Node, Node]:
    build = Builder()
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    place: dict[Node, dict[Node, int]] = {}  # of what a loop keeps, among its results
    for node in graph.nodes:
        if node in new:
            continue
        operands = [new[each] for each in node.inputs]
        change = changes.get(node)
        if change is None or not (change.kept or change.given):
            new[node] = build.rebuild(node, operands)
            continue
        count = node.attrs["carried"]
        place[node] = {each: count + at for at, each in enumerate(change.kept)}
        given = [
            build.apply(p.get, [new[maker]], {"index": place[maker][value]}, value.where)
            for _, maker, value in change.given.values()
        ]
        new[node] = _rebuilt_loop(build, node, operands, change, given)
    return new


def _rebuilt_loop(
    build: Builder, node: Node, operands: Sequence[Node], change: _Change, given: Sequence[Node]
) -> Node:
    count, before = node.attrs["carried"], node.attrs["body"]
    turns = row_loop(node)
    assert turns is not None
    types = [each.type.with_shape((turns.turns, *each.shape)) for each in change.kept]
    kept = [input_node("kept", each) for each in types]
    read = [input_node("kept", each.type) for each in given]
    body = Builder()
    new: dict[Node, Node] = {each: each for each in before.inputs}
    stands = dict(zip(change.given, read, strict=True))

    def made(node: Node) -> Node:
        for each in toposort([node], known=new.keys() | stands.keys()):
            if each not in new:
                new[each] = body.rebuild(each, [value_of(operand) for operand in each.inputs])
        return value_of(node)

    def value_of(node: Node) -> Node:
        if node not in new:
            at = made(change.given[node][0])
            new[node] = row(body, stands[node], at)
        return new[node]

    outputs = [made(each) for each in before.outputs]
    for rows, (value, at) in zip(kept, change.kept.items(), strict=True):
        outputs.append(with_row(body, rows, made(at), made(value)))
    attrs = {
        "condition": _with_inputs(node.attrs["condition"], count, types, given),
        "body": Graph([*before.inputs[:count], *kept, *before.inputs[count:], *read], outputs),
        "carried": count + len(kept),
    }
    begin = [full(build, each, 0) for each in types]
    return build.apply(
        p.loop, [*operands[:count], *begin, *operands[count:], *given], attrs, node.where
    )


def _with_inputs(
    graph: Graph, count: int, types: Sequence[TensorType], given: Sequence[Node]
) -> Graph:
    """A condition that takes what it does not read, too."""
    kept = [input_node("kept", each) for each in types]
    read = [input_node("kept", each.type) for each in given]
    inputs = [*graph.inputs[:count], *kept, *graph.inputs[count:], *read]
    return Graph(inputs, graph.outputs)
