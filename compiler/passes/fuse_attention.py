"""Recognises attention: a product, scaled and masked, its softmax, and the product with values.

What comes of it is one `attention`, which the CPU computes without storing scores. That pays where
nobody else wants the scores or the weights, or nobody but the gradients of the same attention
(`fuse_attention_gradients.py`). A scale moves to the queries, where eager code multiplies, too;
conditions on positions, as a causal mask is, become a diagonal, and the keys behind it are not
computed at all; keys and values that were repeated for heads are read where they lie.
"""

from __future__ import annotations

import math

from ..ir import Graph, Node
from ..ir import primitives as p
from .attention_pattern import attention_in, diagonal_of, factor_of, is_factor, single
from .matching import call, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite

_ATTENTION = (p.attention, p.attention_rows, p.attention_gradient)


@rewrite(p.matmul)
def attention_of_products(build: RewriteBuilder, node: Node) -> Node | None:
    found = attention_in(build, node)
    if found is None:
        return None
    query, factor = _unscaled(build, found.query, found.scores.product)
    scale = found.attrs["scale"] * factor
    if not is_factor(scale):
        return None
    operands = (query, found.key, found.value, *found.masks)
    joined = call(build, p.attention, *operands, **{**found.attrs, "scale": scale})
    return reshape(build, joined, node.shape)


def _unscaled(build: RewriteBuilder, query: Node, product: Node) -> tuple[Node, float]:
    """The queries before a number multiplied them for this product."""
    scaled = single(query) or query
    factor = factor_of(scaled)
    once = build.read_once(query) and build.read_once(scaled)
    if factor is None or not once or product.attrs["transpose_a"]:
        return query, 1.0
    return reshape(build, factor[0], query.shape), factor[1]


# -- other forms of the same --------------------------------------------------------------------


@rewrite(p.attention, p.get)
def positions_are_a_diagonal(build: RewriteBuilder, node: Node) -> Node | None:
    """A mask by position that was joined before it was known as one."""
    of = _attention(node)
    if of is None or not of.attrs["mask"] or of.attrs["fill"] != -math.inf:
        return None
    limit, before = diagonal_of(of.inputs[-1], True), of.attrs["diagonal"]
    if limit is None:
        return None
    diagonal = limit if before is None else min(limit, before)
    attrs = {**of.attrs, "mask": False, "diagonal": diagonal}
    return _result(build, node, call(build, of.primitive, *of.inputs[:-1], **attrs))


@rewrite(p.attention, p.get)
def groups_of_heads(build: RewriteBuilder, node: Node) -> Node | None:
    """Heads of a group have the same keys and values, which are not repeated in memory for each."""
    of = _attention(node)
    if of is None:
        return None
    query, key, value, *others = of.inputs
    keys, values = _unrepeated(key), _unrepeated(value)
    if keys is None or values is None or query.shape[:-2] != key.shape[:-2]:
        return None
    if keys.shape[:-2] != values.shape[:-2]:
        return None
    groups = (keys.shape[-4], query.shape[-3] // keys.shape[-4])
    others = [_in_groups(build, each, groups) for each in others]
    operands = (_in_groups(build, query, groups), keys, values, *others)
    return _result(build, node, call(build, of.primitive, *operands, **of.attrs))


def _attention(node: Node) -> Node | None:
    """The attention that `node` is, or is a result of."""
    of = node.inputs[0] if node.primitive is p.get else node
    return of if of.primitive in _ATTENTION else None


def _result(build: RewriteBuilder, node: Node, of: Node) -> Node:
    """What `node` is, or takes, of an attention of other operands."""
    found = call(build, p.get, of, **node.attrs) if node.primitive is p.get else of
    return reshape(build, found, node.shape)


def _unrepeated(node: Node) -> Node | None:
    """[..., groups, 1, n, d] where `node`, [..., h, n, d], has that for each head of a group."""
    if node.primitive is not p.reshape or node.inputs[0].primitive is not p.broadcast:
        return None
    (wide,) = node.inputs
    (narrow,) = wide.inputs
    *lead, groups, each, rows, columns = wide.shape if wide.type.ndim > 3 else (0, 0, 0, 0)
    if node.shape != (*lead, groups * each, rows, columns):
        return None
    return narrow if narrow.shape == (*lead, groups, 1, rows, columns) else None


def _in_groups(build: RewriteBuilder, node: Node, groups: tuple[int, int]) -> Node:
    """The axis of heads, the third from the end, as two, if there is one."""
    if node.type.ndim < 3:
        return node
    *lead, heads, rows, columns = node.shape
    split = (1, 1) if heads == 1 else groups
    return reshape(build, node, (*lead, *split, rows, columns))


RULES = (attention_of_products, positions_are_a_diagonal, groups_of_heads)


def fuse_attention(graph: Graph) -> Graph:
    if not graph.primitives.issuperset((p.matmul, p.exp)):
        return graph if graph.primitives.isdisjoint(_ATTENTION) else apply_rules(graph, RULES[1:])
    return apply_rules(graph, RULES, count_reads=True)
