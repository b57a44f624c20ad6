"""Containers of values: nested tuples, lists, dicts, named tuples and dataclasses.

`flatten` takes a container apart into its leaves and a `TreeSpec`, which tells how to put leaves
back together. Everything that is no known container is a leaf: tensors, numbers, None, modules.
`register` adds a type.

>>> leaves, spec = flatten({"a": 1, "b": (2, [3, None])})
>>> leaves
[1, 2, 3, None]
>>> spec.unflatten([leaf and leaf * 10 for leaf in leaves])
{'a': 10, 'b': (20, [30, None])}
>>> spec.paths("x")
["x['a']", "x['b'][0]", "x['b'][1][0]", "x['b'][1][1]"]
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

from ..runtime.records import record


@record()
class Container:
    """How a type is taken apart and put together.

    `take(value)` gives (children, meta), where meta is hashable; `make(type, meta, children)` is
    its inverse; `label(meta, index)` names a child in paths, such as `[0]` or `.weight`.
    """

    take: Callable[[Any], tuple[Sequence[Any], Any]]
    make: Callable[[type, Any, Sequence[Any]], Any]
    label: Callable[[Any, int], str]


@record()
class TreeSpec:
    """The structure of a container; equal specs have equal types, keys and shapes.

    `container` is None for a leaf.
    """

    container: type | None
    meta: Any = None
    children: tuple[TreeSpec, ...] = ()

    @cached_property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.container is None else sum(child.count for child in self.children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The container with `leaves` in place; ValueError if their number does not fit."""
        given = list(leaves)
        if len(given) != self.count:
            raise ValueError(f"expected {self.count} leaves, got {len(given)}")
        return self._build(iter(given))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.container is None:
            return next(leaves)
        children = [child._build(leaves) for child in self.children]
        return _CONTAINERS[_kind(self.container)].make(self.container, self.meta, children)

    def paths(self, root: str = "") -> list[str]:
        """The path of every leaf, as a user would write it after `root`."""
        if self.container is None:
            return [root]
        label = _CONTAINERS[_kind(self.container)].label
        return [
            path
            for index, child in enumerate(self.children)
            for path in child.paths(root + label(self.meta, index))
        ]


LEAF = TreeSpec(None)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree` in order, and its structure; `is_leaf` names containers kept whole."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = _kind(type(tree))
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children, meta = _CONTAINERS[kind].take(tree)
    inner = tuple(_flatten(child, leaves, is_leaf) for child in children)
    return TreeSpec(type(tree), meta, inner)


def children(tree: Any) -> Sequence[Any] | None:
    """What a container holds; None of a leaf."""
    kind = _kind(type(tree))
    return None if kind is None else _CONTAINERS[kind].take(tree)[0]


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree` in order."""
    return flatten(tree)[0]


def map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`tree` with `function` applied to every leaf (and those of `others`, of one structure).

    >>> map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    first, spec = flatten(tree)
    rest = []
    for other in others:
        found, other_spec = flatten(other)
        if other_spec != spec:
            raise ValueError(f"structures differ: {spec} and {other_spec}")
        rest.append(found)
    return spec.unflatten(function(*each) for each in zip(first, *rest, strict=True))


def register(
    type_: type,
    take: Callable[[Any], tuple[Sequence[Any], Any]],
    make: Callable[[type, Any, Sequence[Any]], Any],
    label: Callable[[Any, int], str] | None = None,
) -> None:
    """Make `type_` (and not its subclasses) a container; see `Container` for the functions."""
    _CONTAINERS[type_] = Container(take, make, label or _index_label)


def _index_label(meta: Any, index: int) -> str:
    return f"[{index}]"


def _key_label(meta: Any, index: int) -> str:
    return f"[{meta[index]!r}]"


def _field_label(meta: Any, index: int) -> str:
    return f".{meta[index]}"


class _NamedTuple:
    """Stands for every class made by `typing.NamedTuple` or `collections.namedtuple`."""


class _Dataclass:
    """Stands for every dataclass."""


def _make_dataclass(type_: type, meta: Any, children: Sequence[Any]) -> Any:
    # Fields are set directly: __init__ and __post_init__ ran when the original was made.
    value = object.__new__(type_)
    for name, child in zip(meta, children, strict=True):
        object.__setattr__(value, name, child)
    return value


def _take_dataclass(value: Any) -> tuple[Sequence[Any], Any]:
    names = tuple(each.name for each in fields(value) if hasattr(value, each.name))
    more = getattr(value, "__dict__", {}).keys() - set(names)
    names += tuple(name for name in value.__dict__ if name in more) if more else ()
    return [getattr(value, name) for name in names], names


def _take_dict(value: Any) -> tuple[Sequence[Any], Any]:
    return list(value.values()), tuple(value)


def _take_defaultdict(value: Any) -> tuple[Sequence[Any], Any]:
    return list(value.values()), (tuple(value), value.default_factory)


_CONTAINERS: dict[Any, Container] = {
    tuple: Container(lambda v: (v, None), lambda t, m, c: tuple(c), _index_label),
    list: Container(lambda v: (v, None), lambda t, m, c: list(c), _index_label),
    dict: Container(_take_dict, lambda t, m, c: dict(zip(m, c, strict=True)), _key_label),
    OrderedDict: Container(
        _take_dict, lambda t, m, c: OrderedDict(zip(m, c, strict=True)), _key_label
    ),
    defaultdict: Container(
        _take_defaultdict,
        lambda t, m, c: defaultdict(m[1], zip(m[0], c, strict=True)),
        lambda m, index: f"[{m[0][index]!r}]",
    ),
    _NamedTuple: Container(lambda v: (v, v._fields), lambda t, m, c: t(*c), _field_label),
    _Dataclass: Container(_take_dataclass, _make_dataclass, _field_label),
}

_BUILTIN = tuple(_CONTAINERS.values())
_KINDS: dict[type, Any] = {}


def containers(tree: Any, spec: TreeSpec, code: str) -> Iterator[tuple[Any, str]]:
    """The containers in `tree`, and the text by which each is reached from what `code` names.

    Those of registered types are passed over, for it is not known how theirs are reached.
    """
    kind = None if spec.container is None else _kind(spec.container)
    if kind is None or _CONTAINERS[kind] not in _BUILTIN:
        return
    yield tree, code
    children, meta = _CONTAINERS[kind].take(tree)
    label = _CONTAINERS[kind].label
    for index, (child, inner) in enumerate(zip(children, spec.children, strict=True)):
        yield from containers(child, inner, code + label(meta, index))


def _kind(type_: type) -> Any:
    """The key of `_CONTAINERS` that `type_` belongs to, or None for a leaf."""
    if type_ in _CONTAINERS:
        return type_
    if type_ not in _KINDS:
        if issubclass(type_, tuple) and hasattr(type_, "_fields"):
            _KINDS[type_] = _NamedTuple
        elif type_.__module__.startswith("tgraph."):
            _KINDS[type_] = None  # dtypes, devices and the like are values
        elif hasattr(type_, "__dataclass_fields__"):
            _KINDS[type_] = _Dataclass
        else:
            _KINDS[type_] = None
    return _KINDS[type_]
