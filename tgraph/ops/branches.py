"""Branches on tensors: `cond`, `switch`.

In eager code they call Python functions. While a function is traced they become branches of its
graph, whose bodies are traced once, so that a compiled branch runs no Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.eager_context import current_context
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from .control_trees import (
    Function,
    TracedBody,
    check_alike,
    decision_of,
    name_of,
    own,
    tree_of,
)
from .elementwise import where


@public()
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """What `true_fn(*operands)` gives where `pred` is true, else what `false_fn` gives.

    `pred` is a bool, or a tensor with one element. Operands may be given one by one, or as one
    tuple or list of them, as PyTorch has it. Both functions may read other tensors and modules;
    what they give must be built alike, of tensors of equal types (numbers become tensors). In a
    compiled function only one of them runs, and both are traced: they must leave nothing in Python
    objects. What they write in place is written by the one that runs.

    Raises TypeError where results differ in structure or type.

    >>> import tgraph as tg
    >>> halve = tg.compile(lambda x: tg.cond(x.sum() > 3, lambda x: x / 2, lambda x: x, (x,)))
    >>> halve(tg.tensor([1.0, 4.0])), halve(tg.tensor([1.0, 1.0]))
    (tensor([0.5000, 2.0000]), tensor([1., 1.]))
    """
    operands = _unpacked(operands)
    if not isinstance(pred, Tensor):
        return own(tree_of((true_fn if pred else false_fn)(*operands), "cond", "the result"))
    return _chosen("cond", decision_of(pred, "cond"), (false_fn, true_fn), operands)


@public()
def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """What `branches[index](*operands)` gives.

    `index` is an int, or an integer tensor with one element; one below 0 is the first branch, one
    too large the last. All else is as with `cond`.

    >>> import tgraph as tg
    >>> tg.switch(tg.tensor(1), [tg.sin, tg.exp, tg.neg], tg.zeros(2))
    tensor([1., 1.])
    """
    if not branches:
        raise ValueError("switch: expected at least one branch")
    operands = _unpacked(operands)
    if not isinstance(index, Tensor):
        return own(tree_of(branches[_clamped(index, branches)](*operands), "switch", "the result"))
    if index._type.dtype.kind not in ("int", "uint") or index.numel() != 1:
        raise TypeError(
            f"switch: expected an integer tensor with one element as index, got {index._type}"
        )
    return _chosen("switch", index, tuple(branches), operands)


def _unpacked(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(operands) == 1 and type(operands[0]) in (tuple, list):
        return tuple(operands[0])
    return operands


def _clamped(index: Any, branches: Sequence[Function]) -> int:
    return min(max(int(index), 0), len(branches) - 1)


def _chosen(
    operation: str, index: Tensor, branches: tuple[Function, ...], operands: tuple[Any, ...]
) -> Any:
    context = current_context()
    if not context.takes_bodies:
        if not context.has_value(index):
            return _selected(operation, index, branches, operands)
        chosen = branches[_clamped(index.item(), branches)]
        return own(tree_of(chosen(*operands), operation, f"{name_of(chosen)}(...)"))
    traced = [TracedBody(operation, each) for each in branches]
    bodies = [each.body((), lambda each=each: each.function(*operands)) for each in traced]
    first = traced[-1]
    for each in traced[:-1]:
        check_alike(operation, each.tree, first.tree, each.name, first.name)
    return first.tree.filled(context.branch(index.reshape(()), bodies))


def _selected(
    operation: str, index: Tensor, branches: tuple[Function, ...], operands: tuple[Any, ...]
) -> Any:
    """What all branches give, and by `where` that of one: for examples that choose differently."""
    with current_context().selecting():
        trees = [tree_of(each(*operands), operation, f"{name_of(each)}(...)") for each in branches]
    for tree, branch in zip(trees[:-1], branches):
        names = (f"{name_of(each)}(...)" for each in (branch, branches[-1]))
        check_alike(operation, tree, trees[-1], *names)
    number, found = index.to(int64), trees[0].tensors
    for at, tree in enumerate(trees[1:], 1):
        found = [where(number >= at, own, other) for own, other in zip(tree.tensors, found)]
    return trees[-1].filled(found)
