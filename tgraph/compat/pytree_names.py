"""Containers of values by the names of PyTorch's own helper, which libraries use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core import pytree
from ..core.pytree import TreeSpec

__all__ = [
    "Context",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_unflatten",
]  # fmt: skip

Context = Any


class _Meta:
    """What `flatten_fn` said of a container, which may be a list: it stands in a key."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Meta) and bool(self.context == other.context)

    def __hash__(self) -> int:
        return hash(repr(self.context))


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **kwargs: Any,
) -> None:
    """Make a class a container, of which compiled functions take and return values."""

    def take(value: Any) -> tuple[list[Any], _Meta]:
        children, context = flatten_fn(value)
        return list(children), _Meta(context)

    def make(kind: type, meta: _Meta, children: Any) -> Any:
        return unflatten_fn(list(children), meta.context)

    pytree.register(cls, take, make)


_register_pytree_node = register_pytree_node


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree` and its structure."""
    return pytree.flatten(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A container of this structure with `leaves`."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of `tree`."""
    return pytree.flatten(tree, is_leaf)[0]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """`func` of all leaves, in a container like `tree`."""
    leaves, spec = pytree.flatten(tree, is_leaf)
    others = [pytree.flatten(each, is_leaf)[0] for each in rests]
    return spec.unflatten(func(*each) for each in zip(leaves, *others, strict=True))


def tree_map_only(
    kind: Any, func: Callable[[Any], Any], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """`func` of the leaves of a type; the others stay."""
    return tree_map(lambda each: func(each) if isinstance(each, kind) else each, tree,
                    is_leaf=is_leaf)  # fmt: skip


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` is true of a leaf."""
    return any(map(pred, tree_leaves(tree)))


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` is true of all leaves."""
    return all(map(pred, tree_leaves(tree)))
