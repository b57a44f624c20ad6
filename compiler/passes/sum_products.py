"""What turns of a loop add up of products is one product behind the loop.

The gradient of a scan adds to that of a matrix, in each turn, a product of a row of one tensor and
a row of another. Where both are stacked, all turns are one product of the two, over all rows: the
sum is not read and written in each turn, and long products run at a higher rate. Rows that are not
stacked yet are, where that moves less than the sum has elements. So are sums of rows one sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Builder, Graph, Node, input_node
from ..ir import primitives as p
from ..ir.loop_rows import RowLoop, row_loop, with_row
from ..ir.shapes import are_plain_ints
from .matching import full, holds, reshape
from .simplify_control import Results, get, replace_results


def sum_products(graph: Graph) -> Graph:
    return replace_results(graph, (p.loop,), _summed)


class _Stacked:
    """The rows of which a loop has all: what it reads, and results that it writes.

    They are numbered as the operands of the loop. `at` is the row that belongs to a turn.
    """

    def __init__(self, loop: RowLoop) -> None:
        self.at: Node | None = None
        self.number: dict[Node, int] = {}
        for node in loop.body.nodes:
            read = loop.read_row(node)
            if read is not None and self.at in (None, read[1]):
                self.number[node], self.at = read
        for number in range(loop.carried):
            written = loop.written_row(number)
            if written is not None and self.at in (None, written[0]):
                self.at, value = written
                self.number.setdefault(value, number)


def _summed(
    build: Builder, node: Node, inputs: tuple[Node, ...], read: Sequence[int]
) -> Results | None:
    loop = row_loop(node)
    if loop is None:
        return None
    stacked = _Stacked(loop)
    sums = {
        number: part
        for number in range(loop.carried)
        if (part := _part(loop, number)) is not None and _is_of_rows(stacked, part)
    }
    if not sums or stacked.at is None:
        return None
    body, count = loop.body, loop.carried
    new = dict.fromkeys(
        each for part in sums.values() for each in part.inputs if each not in stacked.number
    )
    stay = [number for number in range(count) if number not in sums]
    rows = [input_node("rows", each.type.with_shape((loop.turns, *each.shape))) for each in new]
    written = Builder()
    outputs = [
        *(body.outputs[number] for number in stay),
        *(with_row(written, to, stacked.at, each) for to, each in zip(rows, new, strict=True)),
    ]

    def taken(graph: Graph) -> list[Node]:
        own = rows if graph is body else [input_node("rows", each.type) for each in rows]
        return [*(graph.inputs[number] for number in stay), *own, *graph.inputs[count:]]

    begin = [full(build, each.type, 0) for each in rows]
    attrs = {
        "condition": Graph(taken(loop.condition), loop.condition.outputs),
        "body": Graph(taken(body), outputs),
        "carried": len(outputs),
    }
    operands = [*(inputs[number] for number in stay), *begin, *inputs[count:]]
    made = build.apply(p.loop, operands, attrs, node.where)

    def all_rows(value: Node) -> Node:
        if value in new:
            return get(build, made, len(stay) + list(new).index(value))
        number = stacked.number[value]
        return inputs[number] if number >= count else get(build, made, stay.index(number))

    results: Results = {}
    for number in read:
        if number not in sums:
            results[number] = get(build, made, stay.index(number))
            continue
        total = _whole(build, sums[number], [all_rows(each) for each in sums[number].inputs])
        start = inputs[number]
        is_zero = holds(start, 0)
        results[number] = total if is_zero else build.apply(p.add, [start, total], {}, node.where)
    return results


def _part(loop: RowLoop, number: int) -> Node | None:
    """What each turn adds to a value of the state that nobody else reads, if it can be joined."""
    state, after = loop.body.inputs[number], loop.body.outputs[number]
    if after.primitive is not p.add or not loop.is_only_in(state, after):
        return None
    one, other = after.inputs
    part = other if one is state else one
    if part is state or part.type != state.type or not part.type.dtype.is_floating_point:
        return None
    if part.primitive is p.matmul:
        sums_rows = part.attrs["transpose_a"] and not part.attrs["transpose_b"]
        return part if sums_rows and all(each.type.ndim == 2 for each in part.inputs) else None
    return part if part.primitive is p.sum_ else None


def _is_of_rows(stacked: _Stacked, part: Node) -> bool:
    """Whether all that a part is made of is stacked, or may be at no more than half of the cost."""
    if stacked.at is None:
        return False
    missing = [each for each in part.inputs if each not in stacked.number]
    if not missing:
        return True
    if not all(are_plain_ints(each.shape) for each in (part, *missing)):
        return False
    return 2 * sum(each.type.numel for each in missing) <= part.type.numel


def _whole(build: Builder, part: Node, rows: Sequence[Node]) -> Node:
    """A product, or a sum, of all turns."""
    if part.primitive is p.matmul:
        turns, depth = rows[0].shape[:2]
        flat = [reshape(build, each, (turns * depth, each.shape[2])) for each in rows]
        return build.rebuild(part, flat)
    axes = tuple(axis + 1 for axis in part.attrs["axes"])
    attrs = {**part.attrs, "axes": (0, *axes), "keepdims": False}
    total = build.apply(p.sum_, rows, attrs, part.where)
    return reshape(build, total, part.shape)
