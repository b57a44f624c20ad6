"""Nodes: immutable applications of primitives, made one per distinct value by a builder."""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Hashable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...runtime.dtypes import DType
from ...runtime.records import NamedTuple
from .primitive import Attrs, Primitive, primitive_named
from .size_number import is_expression
from .types import IRKindError, IRTypeError, ResultType, TensorType

# An array constant at most this large is compared by its contents, a larger one by identity.
_COMPARED_BYTES = 4096
_PLAIN_INTS = frozenset({int})


class Provenance(NamedTuple):
    """Where the user's program made a value: file, line, function and module path.

    `backward` marks what computes the gradients of that line.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    module: str = ""
    backward: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else "unknown"
        return f"{place} ({self.module})" if self.module else place


UNKNOWN = Provenance()
_serials = itertools.count(1)
_type_of = operator.attrgetter("type")
_BITS = 32
_LOW = (1 << _BITS) - 1


class Node:
    """One application of a primitive. Immutable; made only by `Builder.apply`.

    `type` is a TensorType, or a tuple of them for a primitive with several results, from which
    `get` nodes select. `where` tells which line of the user's program it came from and takes no
    part in equality. `settled` is a note of the rewrites (`rewrite.py`): the rules, as bits, that
    are known to leave this node alone. `strides` is noted by `layouts.node_strides`. `number` grows
    in the order in which nodes are made, but that those without operands come first, and what
    stands for another node right behind it.
    """

    __slots__ = (
        "_what", "attrs", "inputs", "number", "primitive", "settled", "strides", "type", "where"
    )  # fmt: skip

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Node, ...],
        attrs: Attrs,
        type: Any,
        where: Provenance = UNKNOWN,
        what: Any = None,
        instead: Node | None = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.attrs = attrs
        self.type: TensorType = type
        self.where = where
        serial = next(_serials)
        self.number = serial & _LOW
        if inputs:
            self.number |= serial << _BITS if instead is None else instead.number & ~_LOW
        self.settled = 0
        self.strides: tuple[int, ...] | None = None
        self._what = what

    @property
    def what(self) -> Any:
        """Hashable: equal for nodes of equal primitives and attributes, whatever they read."""
        found = self._what
        if found is None:
            found = self._what = _what(self.primitive, self.attrs)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def __repr__(self) -> str:
        return f"<{self.primitive.name} {self.type}>"


class Structured:
    """What is told apart by its `structure` where it is an attribute: graphs."""

    __slots__ = ()

    @property
    def structure(self) -> Hashable:
        raise NotImplementedError


def attr_key(value: Any) -> Any:
    """A hashable stand-in for an attribute: equal keys mean interchangeable values.

    Guards what Python's equality confuses: NaN differs from itself, -0.0 == 0.0, 1 == True == 1.0.
    """
    kind = type(value)
    if (kind is tuple or kind is list) and _PLAIN_INTS.issuperset(map(type, value)):
        return "ints", tuple(value)
    if kind is DType:
        return value
    if is_expression(value):
        return ("size", value.key)
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, complex):
        return ("complex", struct.pack("<dd", value.real, value.imag))
    if isinstance(value, (bool, int, str)):
        return (type(value).__name__, value)
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if isinstance(value, np.ndarray):
        if value.nbytes > _COMPARED_BYTES:
            return ("array", id(value))
        return ("array", value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return tuple([attr_key(item) for item in value])
    return value.structure if isinstance(value, Structured) else value


_NO_ATTRS: Attrs = MappingProxyType({})


class Builder:
    """Makes nodes; the same primitive on the same inputs and attributes is the same node.

    >>> from tgraph.compiler.ir import Builder, primitives as p
    >>> from tgraph.runtime.dtypes import float32
    >>> build = Builder()
    >>> one = build.full((), 1.0, float32)
    >>> build.apply(p.add, [one, one]) is build.apply(p.add, [one, one])
    True
    """

    def __init__(self) -> None:
        self._made: dict[Any, Node] = {}

    def apply(
        self,
        primitive: Primitive,
        inputs: Sequence[Node] = (),
        attrs: Attrs = _NO_ATTRS,
        where: Provenance = UNKNOWN,
        type_: ResultType | None = None,
    ) -> Node:
        """The node of `primitive` on `inputs`; IRTypeError if the types do not fit.

        `type_` is that of the result where it was inferred before.
        """
        operands = tuple(inputs)
        what = _what(primitive, attrs)
        return self._apply(what, primitive, operands, attrs, where, type_=type_)

    def _apply(
        self,
        what: Any,
        primitive: Primitive,
        operands: tuple[Node, ...],
        attrs: Attrs,
        where: Provenance,
        instead: Node | None = None,
        type_: ResultType | None = None,
    ) -> Node:
        key = what, operands
        found = self._made.get(key)
        if found is None:
            if type_ is None:
                type_ = infer_type(primitive, [node.type for node in operands], attrs)
            if type(attrs) is not MappingProxyType:
                attrs = MappingProxyType(dict(attrs)) if attrs else _NO_ATTRS
            found = self._made[key] = Node(primitive, operands, attrs, type_, where, what, instead)
        return found

    def repeat(
        self, node: Node, inputs: Sequence[Node], where: Provenance, type_: ResultType
    ) -> Node:
        """What `node` does on other inputs, made at `where`; the result is of `type_`."""
        what, operands = node.what, tuple(inputs)
        return self._apply(what, node.primitive, operands, node.attrs, where, type_=type_)

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any, where: Any = UNKNOWN) -> Node:
        """A tensor of `shape` filled with one Python scalar."""
        attrs = {"shape": shape, "value": value, "dtype": dtype}
        return self.apply(primitive_named("full"), (), attrs, where)

    def rebuild(self, node: Node, inputs: Sequence[Node], attrs: Attrs | None = None) -> Node:
        """`node` on other inputs, keeping provenance, and attributes where no others are given.

        On its own inputs it is `node` itself, unless the builder knows an equal one.
        """
        operands = tuple(inputs)
        if attrs is not None:
            what = _what(node.primitive, attrs)
            return self._apply(what, node.primitive, operands, attrs, node.where, node)
        what = node._what or node.what
        key = what, operands
        if operands == node.inputs:
            return self._made.setdefault(key, node)
        found = self._made.get(key)
        if found is None:
            types = list(map(_type_of, operands))
            type_: ResultType = node.type
            if types != list(map(_type_of, node.inputs)):
                type_ = infer_type(node.primitive, types, node.attrs)
            found = Node(node.primitive, operands, node.attrs, type_, node.where, what, node)
            self._made[key] = found
        return found


def _what(primitive: Primitive, attrs: Attrs) -> Any:
    if not attrs:
        return primitive
    return (primitive, *((name, attr_key(attrs[name])) for name in sorted(attrs)))


def infer_type(primitive: Primitive, types: Sequence[TensorType], attrs: Attrs) -> ResultType:
    """The result type of applying `primitive`; an IRTypeError names it and what came."""
    if primitive.arity is not None and len(types) != primitive.arity:
        raise IRTypeError(f"{primitive.name} takes {primitive.arity} inputs, got {len(types)}")
    try:
        return primitive.infer(types, attrs)
    except (IRTypeError, ValueError) as error:
        came = ", ".join(str(each) for each in types)
        kind = IRKindError if isinstance(error, IRKindError) else IRTypeError
        raise kind(f"{primitive.name}({came}): {error}") from None
