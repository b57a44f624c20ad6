"""Split a joint graph of values and gradients into a forward and a backward graph.

The backward graph reads some values of the forward: each is either saved (an extra output of the
forward) or recomputed from others. A minimum cut chooses: saving a value costs the bytes that are
written and read again, computing it again costs its operations, and what is dear (products,
reductions, random bits, host calls) is never computed again. Nor is a decision (`is_decision`) on
values that may be rounded otherwise: it is saved, or made by exact operations and IEEE arithmetic
from what is saved. The two plans differ in what passes find, and both must decide alike. What host
calls give that are not repeatable is always saved, also where only second gradients would ask for
it; those that a rule of the user's makes run with the backward.

Source of the idea: Jain et al., "Checkmate" (MLSys 2020), and the min-cut rematerialisation of
PyTorch's functorch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from ..compiler.ir import (
    Builder,
    Family,
    Graph,
    Node,
    input_node,
    is_decision,
    is_exact,
    is_float,
    is_repeatable,
    is_reproducible,
    toposort,
)
from ..compiler.ir import primitives as p
from ..compiler.ir.size_number import decided
from ..runtime.records import record
from .minimum_cut import Network

# One machine operation of an elementwise primitive costs as much as moving this many bytes.
BYTES_PER_OPERATION = 0.3
# Beyond this many candidates the cut would take seconds: save what the backward reads directly.
MAX_CUT_NODES = 4000

_RECOMPUTED = {Family.ELEMENTWISE, Family.VIEW, Family.GATHER, Family.GET, Family.SOURCE}
_INFINITE = float("inf")


@record()
class Partition:
    """Two graphs that together compute the joint one.

    `forward`: primals -> (outputs..., saved values that are no primals...).
    `backward`: (saved..., cotangents...) -> gradients. `saved` are nodes of the joint graph, in
    the order in which `backward` reads them; each is a primal, an output or an extra output of
    `forward`, and `sources` says which: ("primal", i) or ("output", i).
    """

    forward: Graph
    backward: Graph
    saved: tuple[Node, ...]
    sources: tuple[tuple[str, int], ...]


def partition(
    primals: Sequence[Node],
    cotangents: Sequence[Node],
    outputs: Sequence[Node],
    gradients: Sequence[Node],
    keep: Collection[Node] = (),
) -> Partition:
    """Split the joint graph (primals, cotangents) -> (outputs, gradients).

    Nodes of `keep` are never computed again. Nothing in `outputs` may depend on a cotangent.
    """
    late = _late(outputs, gradients)
    saved = _choose(primals, [*cotangents, *late], gradients, keep)
    known = {*primals, *outputs}
    forward = Graph(primals, [*outputs, *(node for node in saved if node not in known)])
    primal_at = {node: index for index, node in enumerate(primals)}
    output_at = {node: index for index, node in reversed(list(enumerate(forward.outputs)))}
    sources = tuple(
        ("primal", primal_at[node]) if node in primal_at else ("output", output_at[node])
        for node in saved
    )
    return Partition(forward, _backward(saved, cotangents, gradients), tuple(saved), sources)


def _backward(
    saved: Sequence[Node], cotangents: Sequence[Node], gradients: Sequence[Node]
) -> Graph:
    """The gradients as a graph of the saved values and cotangents."""
    fed = [
        node if node.primitive is p.input_ else input_node(f"saved{i}", node.type, node.where)
        for i, node in enumerate(saved)
    ]
    build = Builder()
    new = dict(zip(saved, fed, strict=True)) | {node: node for node in cotangents}
    for node in toposort(gradients, known=new):
        if node not in new:
            new[node] = build.rebuild(node, [new[operand] for operand in node.inputs])
    return Graph([*fed, *cotangents], [new[node] for node in gradients])


def _late(outputs: Sequence[Node], gradients: Sequence[Node]) -> list[Node]:
    """Host calls that run with the backward, even where they read nothing of it."""
    return [
        node
        for node in toposort(gradients, known=toposort(outputs))
        if node.where.backward and node.primitive is p.host_call and not is_repeatable(node)
    ]


def _dependent(order: Sequence[Node], roots: Collection[Node]) -> set[Node]:
    """Every node of `order` (sorted) that reads one of `roots`, and the roots."""
    found = set(roots)
    for node in order:
        if node not in found and any(operand in found for operand in node.inputs):
            found.add(node)
    return found


def _choose(
    primals: Sequence[Node],
    late: Sequence[Node],
    gradients: Sequence[Node],
    keep: Collection[Node],
) -> list[Node]:
    """The values to save, in the order in which the forward makes them.

    What reads nothing of `late`, and is none of it, is the forward's.
    """
    order = toposort(gradients, first=primals)
    backward = _dependent(order, late)
    read = _read_by(order, backward, gradients)
    if not read:
        return []
    needed = set(toposort(read))
    ancestors = [node for node in order if node in needed]
    banned = {node for node in ancestors if node in keep or not _is_cheap(node)}
    if len(ancestors) > MAX_CUT_NODES:
        chosen = _direct(ancestors, read)
    else:
        chosen = _decided_once(ancestors, read, set(primals), banned)
    chosen.update(node for node in ancestors if not (is_repeatable(node) or _is_tuple(node)))
    return [node for node in ancestors if node in chosen]


def _decided_once(
    ancestors: Sequence[Node], read: Collection[Node], primals: set[Node], banned: set[Node]
) -> set[Node]:
    """The minimum cut behind which no decision is made on values that may differ.

    A decision may be made again where its operands are sure to be the same; otherwise the next cut
    saves the decision.
    """
    while True:
        chosen = _minimum_cut(ancestors, read, primals, banned)
        unsure = _unsure(ancestors, read, chosen)
        if not unsure:
            return chosen
        banned = banned | unsure


def _unsure(ancestors: Sequence[Node], read: Collection[Node], chosen: set[Node]) -> set[Node]:
    """The decisions that the backward would make on values of which its bits may be others."""
    needed = set(read)
    for node in reversed(ancestors):
        if node in needed and node not in chosen:
            needed.update(node.inputs)
    same: set[Node] = set(chosen)  # as the forward has them, to the last bit
    plain = {node for node in chosen if _is_plain(node)}
    unsure = set()
    for node in ancestors:
        if node not in needed or node in chosen:
            continue
        if is_decision(node) and not all(x in same for x in node.inputs if is_float(x)):
            unsure.add(node)
        if is_reproducible(node) and all(operand in plain for operand in node.inputs):
            plain.add(node)
        if node in plain or (is_exact(node) and all(operand in same for operand in node.inputs)):
            same.add(node)
    return unsure


def _is_plain(node: Node) -> bool:
    """Whether arithmetic on a saved value is what it is in the forward.

    Not on a saved exponential: the forward may see that, and make exp(x) - 1 an expm1(x).
    """
    return node.primitive.family is not Family.ELEMENTWISE or is_reproducible(node)


def _read_by(
    order: Sequence[Node], backward: set[Node], gradients: Sequence[Node]
) -> dict[Node, None]:
    """Forward values that the backward reads directly."""
    found: dict[Node, None] = {}
    for node in order:
        if node in backward:
            found.update((each, None) for each in node.inputs if each not in backward)
    found.update((node, None) for node in gradients if node not in backward)
    return found


def _is_source(node: Node) -> bool:
    return node.primitive.family is Family.SOURCE and node.primitive is not p.input_


def _is_cheap(node: Node) -> bool:
    return node.primitive.family in _RECOMPUTED


def _is_tuple(node: Node) -> bool:
    return not hasattr(node.type, "dtype")


def _direct(ancestors: Sequence[Node], read: Collection[Node]) -> set[Node]:
    return {node for node in ancestors if node in read and not _is_source(node)}


def _save_cost(node: Node, primals: Collection[Node]) -> float:
    if _is_tuple(node):
        return _INFINITE
    if node in primals:  # alive in any case, only read once more
        return node.type.nbytes + 1
    return 2 * node.type.nbytes + 2


def _recompute_cost(node: Node, banned: Collection[Node]) -> float:
    if node in banned or node.primitive is p.input_:
        return _INFINITE
    if _is_tuple(node) or node.primitive.family is Family.SOURCE:
        return 0.0
    return node.type.numel * node.primitive.cost * BYTES_PER_OPERATION


def _minimum_cut(
    ancestors: Sequence[Node],
    read: Collection[Node],
    primals: Collection[Node],
    banned: Collection[Node],
) -> set[Node]:
    """The nodes whose saving separates the forward from what the backward reads.

    Every node is an edge (in -> out) that costs its saving to cut; cutting "source -> in" means
    computing it again, which needs its operands on the backward's side too.
    """
    source, sink = 2 * len(ancestors), 2 * len(ancestors) + 1
    edges: list[tuple[int, int]] = []
    costs: list[float] = []

    def connect(start: int, end: int, cost: float) -> None:
        edges.append((start, end))
        costs.append(cost)

    number = {node: index for index, node in enumerate(ancestors)}
    for node, index in number.items():
        before, after = 2 * index, 2 * index + 1
        connect(before, after, _save_cost(node, primals))
        connect(source, before, _recompute_cost(node, banned))
        for operand in dict.fromkeys(node.inputs):
            # If `node` is computed again, its operand must be at hand.
            connect(2 * number[operand] + 1, before, _INFINITE)
        if node in read:
            connect(after, sink, _INFINITE)
    behind = decided(partial(_cut_off, sink + 1, edges), *costs)
    return {
        node for node, index in number.items() if not behind[2 * index] and behind[2 * index + 1]
    }


def _cut_off(count: int, edges: Sequence[tuple[int, int]], *costs: float) -> list[bool]:
    """Which of `count` vertices are on the sink's side; the last two are source and sink.

    Costs are made whole numbers: sums of floats would make ties depend on rounding.
    """
    network = Network(count)
    for (start, end), cost in zip(edges, costs, strict=True):
        network.connect(start, end, cost if cost == _INFINITE else round(10 * cost))
    return network.cut_off(count - 2, count - 1)
