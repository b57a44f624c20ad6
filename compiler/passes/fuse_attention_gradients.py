"""Recognises the gradients of attention together with it, where nobody else wants the weights.

The gradient of softmax needs the weights, and a program that stores them needs memory that grows
with the square of the length. One `attention_gradient` computes them again, block by block, from
scores and two numbers of each query (`attention_rows`). The sums that the gradient of softmax takes
over the keys are those of the result times its gradient (T. Dao, "FlashAttention-2", 2023).

It is called on a whole graph of values and gradients, as it was traced: before such a one is
divided into plans, so that the forward plan keeps those rows instead of weights, and as one of the
first passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ...runtime.device import CPU
from ...runtime.records import NamedTuple
from ..ir import Builder, Graph, Node
from ..ir import primitives as p
from ..ir.size_number import decided
from .attention_pattern import Attention, attention_in, factor_of, swapped
from .matching import call, reshape, scalar_of
from .rewrite import RewriteBuilder

STORED_BYTES = 2 << 20
"""Weights of at most this size are stored, and computed once: with their gradients they stay in
second-level caches, where reading them takes no longer than to compute them again."""
ENOUGH_UNITS = 16
"""So many items of a batch are easily shared by threads; fewer ones are cut by their keys."""
KEYS_OF_PART = 256
MOST_WIDTH = 128
"""A thread has the panels of queries and gradients on its stack."""


def fuse_attention_gradients(graph: Graph) -> Graph:
    """`graph` with each attention that has gradients joined with them."""
    new = fused_gradients(graph)
    return graph.with_outputs([new.get(node, node) for node in graph.outputs])


def fused_gradients(graph: Graph) -> dict[Node, Node]:
    """What stands for the nodes of `graph`, where some are joined."""
    if not graph.primitives.issuperset((p.matmul, p.exp)):
        return {}
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.primitive is p.matmul and node.type.device is CPU:
            replaced.update(_joined(graph, _unread_result(graph, node) or node))
    return _substituted(graph, replaced) if replaced else {}


class _Notes(RewriteBuilder):
    """Notes whom a pattern takes for its own, to ask of all of them in the end who reads them."""

    def __init__(self, graph: Graph, node: Node) -> None:
        super().__init__()
        self.whole, self.node = graph, node
        self.own: set[Node] = set()

    def read_once(self, node: Node) -> bool:
        self.own.add(node)
        return True

    read_twice = read_once

    def readers_of(self, node: Node) -> tuple[Node, ...]:
        return self.whole.consumers.get(node, ())

    def is_closed(self, results: Iterable[Node]) -> bool:
        """Whether nobody but itself and `results` reads what is in between."""
        within = {*self.own, *results}
        outside = self.own.intersection(self.whole.outputs)
        return not outside and all(within.issuperset(self.readers_of(each)) for each in self.own)


class _Matrix(NamedTuple):
    """A matrix by the node that has its elements, or their transpose."""

    node: Node
    is_transposed: bool = False

    @property
    def settled(self) -> _Matrix:
        """The same below permutes, so that equal matrices are equal."""
        node, is_transposed = self
        while node.primitive is p.permute and _swaps(node):
            node, is_transposed = node.inputs[0], not is_transposed
        return _Matrix(node, is_transposed)

    @property
    def transposed(self) -> _Matrix:
        return _Matrix(self.node, not self.is_transposed)


def _swaps(permute: Node) -> bool:
    *lead, rows, columns = permute.attrs["axes"]
    count = len(lead)
    return lead == list(range(count)) and (rows, columns) == (count + 1, count)


def _sides(product: Node) -> tuple[_Matrix, _Matrix]:
    a, b = product.inputs
    return _Matrix(a, product.attrs["transpose_a"]), _Matrix(b, product.attrs["transpose_b"])


class _Products(NamedTuple):
    """Products of one matrix: with it transposed from the left, and with it as it stands.

    Each has the other operand and the product as a matrix, that operand on the right.
    """

    transposed: list[tuple[_Matrix, _Matrix]]
    plain: list[tuple[_Matrix, _Matrix]]


def _products_of(notes: _Notes, matrix: Node) -> _Products | None:
    """All that is read of `matrix` but by its own pattern, if these are products."""
    found = _Products([], [])
    for reader in notes.readers_of(matrix):
        if reader in notes.own:
            continue
        if reader.primitive is not p.matmul:
            return None
        left, right = _sides(reader)
        if (left.node is matrix) == (right.node is matrix):
            return None
        result = _Matrix(reader)
        if right.node is matrix:  # (A B)ᵀ = Bᵀ Aᵀ
            left, right, result = right.transposed, left.transposed, result.transposed
        (found.transposed if left.is_transposed else found.plain).append((right.settled, result))
    return found


def _only(products: Sequence[tuple[_Matrix, _Matrix]]) -> tuple[_Matrix | None, _Matrix | None]:
    """The other operand and the result of the only product, if there is one."""
    return products[0] if products else (None, None)


# -- the pattern --------------------------------------------------------------------------------


def _joined(graph: Graph, node: Node) -> dict[Node, Node]:
    """What stands for the results of the attention that ends in the product `node`."""
    notes = _Notes(graph, node)
    found = attention_in(notes, node)
    weights = node.inputs[0]
    if found is None or not _pays(found, node) or weights.shape[:-2] != node.shape[:-2]:
        return {}
    scores = _gradient_of_softmax(notes, found)
    of_weights = _products_of(notes, weights)
    if of_weights is None or len(of_weights.plain) > 1 or len(of_weights.transposed) > 1:
        return {}
    gradient, of_value = _only(of_weights.transposed)
    of_query, of_key = None, None
    if scores is not None:
        product, change = scores
        left, right = _sides(product)
        if right.transposed.settled != _sides(node)[1].settled:
            return {}
        if gradient not in (None, left.settled):
            return {}
        gradient = left.settled
        found_products = _of_scores(notes, found, change)
        if found_products is None:
            return {}
        of_query, of_key = found_products
    results = [each.node for each in (of_query, of_key, of_value) if each is not None]
    if gradient is None or not notes.is_closed([node, *results]):
        return {}
    return _replacements(notes, found, node, gradient, (of_query, of_key, of_value))


def _unread_result(graph: Graph, product: Node) -> Node | None:
    """The result of attention that nobody reads, where `product` is the gradient of its weights.

    So it is where that depends on nothing but the gradient of the result, as that of a sum does.
    """
    hidden, shown = None, product
    for reader in graph.consumers[product]:
        if reader.primitive is p.where and _shown(reader, reader.inputs[0]) is product:
            hidden, shown = reader.inputs[0], reader
    readers = [each for each in graph.consumers[shown] if each.primitive is p.mul]
    weights = next((_other(each, shown) for each in readers), None)
    if weights is None or weights.primitive is not p.div or product.attrs["transpose_a"]:
        return None
    if weights.shape != product.shape:  # a factor of each row
        return None
    build = Builder()
    if hidden is not None:
        zeros = [each for each in graph.consumers[weights] if _shown(each, hidden) is weights]
        given = (hidden, shown.inputs[1], weights)
        weights = zeros[0] if zeros else build.apply(p.where, given, {}, weights.where)
    plain = [each for each in graph.consumers.get(weights, ()) if each.inputs[0] is weights]
    if any(each.primitive is p.matmul and not each.attrs["transpose_a"] for each in plain):
        return None
    value, is_transposed = product.inputs[1], not product.attrs["transpose_b"]
    attrs = {"transpose_a": False, "transpose_b": is_transposed}
    return build.apply(p.matmul, [weights, value], attrs, product.where)


def _pays(found: Attention, node: Node) -> bool:
    shape = found.softmax.scores.shape
    wide = max(found.query.shape[-1], node.shape[-1]) > MOST_WIDTH
    stores = prod(shape) * node.type.dtype.itemsize <= STORED_BYTES
    return not (stores or wide or 0 in node.shape)


def _gradient_of_softmax(notes: _Notes, found: Attention) -> tuple[Node, Node] | None:
    """The product that is the gradient of the weights, and that of the scores' product."""
    weights, hidden = found.softmax.weights, found.softmax.hidden
    for reader in notes.readers_of(weights):
        if reader.primitive is not p.mul:
            continue
        rest = _other(reader, weights)
        if rest is None or rest.primitive is not p.sub:
            continue
        shown, total = rest.inputs
        if total.primitive is not p.sum_ or not _is_row_sum(total, weights, shown):
            continue
        product = _shown(shown, hidden)
        change = None if product is None else _of_product(notes, found, reader)
        if product is None or product.primitive is not p.matmul or change is None:
            return None
        notes.own.update((reader, rest, shown, total, total.inputs[0], product))
        return product, change
    return None


def _other(node: Node, one: Node) -> Node | None:
    first, second = node.inputs
    return second if first is one else first if second is one else None


def _is_row_sum(total: Node, weights: Node, shown: Node) -> bool:
    (terms,) = total.inputs
    of_rows = total.attrs["keepdims"] and total.attrs["axes"] == (terms.type.ndim - 1,)
    return bool(of_rows and terms.primitive is p.mul and _other(terms, weights) is shown)


def _shown(node: Node, hidden: Node | None) -> Node | None:
    """What `node` is where rows are not hidden, 0 elsewhere."""
    if hidden is None:
        return node
    if node.primitive is not p.where or node.inputs[0] is not hidden:
        return None
    return node.inputs[2] if scalar_of(node.inputs[1]) == 0 else None


def _of_product(notes: _Notes, found: Attention, change: Node) -> Node | None:
    """The gradient of the scores' product, from `change`, that of what softmax is taken of."""
    if found.softmax.hidden is not None:
        following = _reader(notes, change)
        if following is None or _shown(following, found.softmax.hidden) is not change:
            return None
        notes.own.update((change, following))
        change = following
    path = found.scores.path
    for outer, inner in pairwise(path):
        if outer.primitive is p.add:
            if inner.shape != outer.shape:
                return None
            continue
        following = _reader(notes, change)
        if following is None or not _undoes(following, change, outer, inner):
            return None
        notes.own.add(change)
        change = following
    notes.own.add(change)
    return change


def _reader(notes: _Notes, node: Node) -> Node | None:
    readers = notes.readers_of(node)
    return readers[0] if len(readers) == 1 else None


def _undoes(node: Node, change: Node, outer: Node, inner: Node) -> bool:
    """Whether `node` is the gradient of `inner`, where `change` is that of `outer`."""
    if outer.primitive is p.where:
        at = outer.inputs.index(inner)
        if node.primitive is not p.where or node.inputs[0] is not outer.inputs[0]:
            return False
        return node.inputs[at] is change and scalar_of(node.inputs[3 - at]) == 0
    if outer.primitive is p.reshape:
        return node.primitive is p.reshape and node.shape == inner.shape
    factor, same = factor_of(outer), factor_of(node)
    return factor is not None and same == (change, factor[1])


def _of_scores(
    notes: _Notes, found: Attention, change: Node
) -> tuple[_Matrix | None, _Matrix | None] | None:
    """The gradients of queries and keys, made of `change`, that of their product."""
    products = _products_of(notes, change)
    if products is None or len(products.plain) > 1 or len(products.transposed) > 1:
        return None
    query, key = _sides(found.scores.product)
    keys, of_query = _only(products.plain)
    queries, of_key = _only(products.transposed)
    if keys not in (None, key.transposed.settled) or queries not in (None, query.settled):
        return None
    return of_query, of_key


# -- what stands for it -------------------------------------------------------------------------


def _replacements(
    notes: _Notes,
    found: Attention,
    node: Node,
    gradient: _Matrix,
    results: tuple[_Matrix | None, _Matrix | None, _Matrix | None],
) -> dict[Node, Node]:
    operands = (found.query, found.key, found.value)
    made = call(notes, p.attention_rows, *operands, *found.masks, **found.attrs)
    result, rows = (call(notes, p.get, made, index=index) for index in range(2))
    given = swapped(notes, gradient.node) if gradient.is_transposed else gradient.node
    given = reshape(notes, given, result.shape)
    terms = call(notes, p.mul, result, given)
    sums = call(notes, p.sum_, terms, axes=(terms.type.ndim - 1,), keepdims=False)
    *lead, queries = sums.shape
    sums = reshape(notes, sums, (*lead, 1, queries))
    several = call(
        notes, p.attention_gradient, *operands, given, rows, sums, *found.masks,
        **found.attrs, parts=_parts(lead, found.key.shape[-2]),
    )  # fmt: skip
    replaced = {node: reshape(notes, result, node.shape)}
    for index, each in enumerate(results):
        if each is not None:
            made = call(notes, p.get, several, index=index)
            if index == 0:
                made = call(notes, p.sum_, made, axes=(0,), keepdims=False)
            made = swapped(notes, made) if each.is_transposed else made
            replaced[each.node] = reshape(notes, made, each.node.shape)
    return replaced


def _parts(lead: Sequence[int], keys: int) -> int:
    """How many parts the keys are cut into, so that threads have enough to do."""
    parts: int = decided(_parts_of, prod(lead), keys)
    return parts


def _parts_of(batch: int, keys: int) -> int:
    wanted = -(-ENOUGH_UNITS // max(batch, 1))
    return max(1, min(wanted, keys // KEYS_OF_PART))


def _substituted(graph: Graph, replaced: dict[Node, Node]) -> dict[Node, Node]:
    """The new nodes by the old ones; none where a program made such a graph that it has no order.

    What stands for a node is made of old nodes.
    """
    build = Builder()
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    stack, opened = [*graph.outputs], set[Node]()
    while stack:
        node = stack[-1]
        if node in new or node.primitive is p.input_:
            new.setdefault(node, node)  # an input is equal to no other
            stack.pop()
            continue
        needed = (replaced[node],) if node in replaced else node.inputs
        missing = [each for each in needed if each not in new]
        if not missing:
            operands = [new[each] for each in needed]
            new[node] = operands[0] if node in replaced else build.rebuild(node, operands)
            stack.pop()
        elif node in opened:
            return {}
        else:
            opened.add(node)
            stack += missing
    return new
