"""Branches and loops carry and read no more than they need; a branch that is known is none.

State of a loop that its body hands on as it is becomes something captured, and is its own result.
State that neither a result nor the condition depends on is dropped, and so are operands that no
graph inside reads, and results of branches that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..ir import Builder, Graph, Node, Primitive, toposort, transform
from ..ir import primitives as p

Results = dict[int, Node]
"""What stands for the results that are read, by their numbers."""


def simplify_control(graph: Graph) -> Graph:
    return replace_results(graph, (p.branch, p.loop), _simplified)


def replace_results(
    graph: Graph,
    primitives: Sequence[Primitive],
    change: Callable[[Builder, Node, tuple[Node, ...], Sequence[int]], Results | None],
) -> Graph:
    """`graph` with others in the place of nodes of several results, where `change` gives any.

    It is given a builder, the node, its new operands and the numbers of the results that are read.
    """
    if graph.primitives.isdisjoint(primitives):
        return graph
    results: dict[Node, Results] = {}

    def rewrite(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.primitive is p.get and node.inputs[0] in results:
            return results[node.inputs[0]][node.attrs["index"]]
        found: Results | None = None
        if node.primitive in primitives:
            read = sorted({each.attrs["index"] for each in graph.consumers[node]})
            found = change(build, node, inputs, read)
        if found is None:
            return build.rebuild(node, inputs)
        results[node] = found
        return inputs[0]  # which nothing reads: results are found above

    return transform(graph, rewrite)


def _simplified(
    build: Builder, node: Node, inputs: tuple[Node, ...], read: Sequence[int]
) -> Results | None:
    change = _branch if node.primitive is p.branch else _loop
    return change(build, node, inputs, read)


def _branch(
    build: Builder, node: Node, inputs: tuple[Node, ...], read: Sequence[int]
) -> Results | None:
    (index, *operands), branches = inputs, node.attrs["branches"]
    if index.primitive is p.full:
        chosen = branches[min(max(int(index.attrs["value"]), 0), len(branches) - 1)]
        outputs = inlined(build, chosen, operands)
        return {at: outputs[at] for at in read}
    branches = [each.with_outputs([each.outputs[at] for at in read]) for each in branches]
    needed = sorted(set().union(*(_reached(each, each.outputs) for each in branches)))
    if len(needed) == len(operands) and len(read) == len(node.type):
        return None
    attrs = {"branches": tuple(_over(each, needed, each.outputs) for each in branches)}
    new = build.apply(p.branch, [index, *(operands[at] for at in needed)], attrs, node.where)
    return {at: get(build, new, number) for number, at in enumerate(read)}


def _loop(
    build: Builder, node: Node, inputs: tuple[Node, ...], read: Sequence[int]
) -> Results | None:
    condition, body = node.attrs["condition"], node.attrs["body"]
    live, carried = live_operands(node, read), range(node.attrs["carried"])
    stays = {at for at in carried if body.outputs[at] is body.inputs[at]}
    state = [at for at in carried if at in live and at not in stays]
    order = [*state, *(at for at in range(len(inputs)) if at in live and at not in state)]
    if not state or order == list(range(len(inputs))):
        return None  # without any, it would never end
    attrs = {
        "condition": _over(condition, order, condition.outputs),
        "body": _over(body, order, [body.outputs[at] for at in state]),
        "carried": len(state),
    }
    new = build.apply(p.loop, [inputs[at] for at in order], attrs, node.where)
    return {at: inputs[at] if at in stays else get(build, new, state.index(at)) for at in read}


def live_operands(loop: Node, read: Iterable[int]) -> set[int]:
    """The operands on which the condition or a result that is read depends, after any turns."""
    condition, body = loop.attrs["condition"], loop.attrs["body"]
    live = {*read, *_reached(condition, condition.outputs)}
    while True:
        made = [body.outputs[at] for at in live if at < loop.attrs["carried"]]
        new = _reached(body, made) - live
        if not new:
            return live
        live |= new


def _reached(graph: Graph, outputs: Iterable[Node]) -> set[int]:
    """The numbers of the inputs on which `outputs` depend."""
    needed = set(toposort(outputs))
    return {at for at, node in enumerate(graph.inputs) if node in needed}


def _over(graph: Graph, inputs: Iterable[int], outputs: Sequence[Node]) -> Graph:
    return Graph([graph.inputs[at] for at in inputs], outputs)


def get(build: Builder, node: Node, index: int) -> Node:
    return build.apply(p.get, [node], {"index": index}, node.where)


def inlined(build: Builder, graph: Graph, operands: Sequence[Node]) -> list[Node]:
    """The outputs of a graph, computed of `operands` by nodes of the graph around it."""
    new = dict(zip(graph.inputs, operands, strict=True))
    for node in graph.nodes:
        if node not in new:
            new[node] = build.rebuild(node, [new[each] for each in node.inputs])
    return [new[node] for node in graph.outputs]
