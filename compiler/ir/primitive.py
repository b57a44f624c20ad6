"""What an operation is: a name, a family, a type rule and facts of algebra. No backend code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from ...runtime.records import record
from .types import ResultType, TensorType

Attrs = Mapping[str, Any]
TypeRule = Callable[[Sequence[TensorType], Attrs], ResultType]


class Family(Enum):
    """How a primitive moves data, which is what passes and lowering ask first."""

    SOURCE = "source"  # no tensor inputs: input, constant, full, iota
    ELEMENTWISE = "elementwise"  # inputs broadcast, one scalar function per element
    REDUCE = "reduce"  # removes axes
    ASSEMBLY = "assembly"  # one array of which the operands are parts
    VIEW = "view"  # moves elements by an affine index map, may fill in a constant
    GATHER = "gather"  # reads at positions that are themselves data
    SCATTER = "scatter"  # writes at positions that are themselves data
    WINDOW = "window"  # overlapping windows added up
    CONTRACTION = "contraction"  # matrix products and convolutions
    RANDOM = "random"  # counter-based random bits
    SCAN = "scan"  # every element is made of all before it
    SORT = "sort"  # puts elements in order
    COMPLEX = "complex"  # numbers and their parts, which no pass behind the first ones sees
    TRANSFER = "transfer"  # the same elements on another device
    SEVERAL = "several"  # has several results, made at once by native code
    LIBRARY = "library"  # a routine of a library of linear algebra
    SPARSE = "sparse"  # products with matrices whose elements are listed
    OPAQUE = "opaque"  # a Python function over arrays
    CONTROL = "control"  # graphs that run if, or as long as, a value says so
    GET = "get"  # selects one result of a tuple-typed node

    __hash__ = object.__hash__  # that of Enum is Python code, and asked for at every node


@record(eq=False)
class Primitive:
    """A basic operation.

    `infer(types, attrs)` gives the type of the result, or raises IRTypeError. The facts serve
    whole families of rewrites: `identity` is e with f(x, e) == x, `absorbing` is z with
    f(x, z) == z for every x (NaN included), `involution` says f(f(x)) == x and `idempotent`
    f(f(x)) == f(x), or f(x, x) == x for two inputs. `exact` says that no float is rounded (but by
    a cast, which has one way to do so): whatever computes the value again gets the same bits.
    `reproducible` says that it rounds in one way, that of IEEE arithmetic, which rewrites keep.
    `discontinuous` says that the result may jump where an operand changes by a rounding. `cost` is
    a rough number of machine operations per element, for fusion's and the scheduler's estimates.
    """

    name: str
    family: Family
    infer: TypeRule
    arity: int | None = None
    commutative: bool = False
    associative: bool = False
    identity: int | float | bool | None = None
    absorbing: int | float | bool | None = None
    involution: bool = False
    idempotent: bool = False
    exact: bool = False
    reproducible: bool = False
    discontinuous: bool = False
    cost: int = 1

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (primitive_named, (self.name,))


PRIMITIVES: dict[str, Primitive] = {}


def register(primitive: Primitive) -> Primitive:
    """Add a primitive to the one table; a second one of the same name is a ValueError."""
    if primitive.name in PRIMITIVES:
        raise ValueError(f"primitive {primitive.name!r} is registered already")
    PRIMITIVES[primitive.name] = primitive
    return primitive


def primitive_named(name: str) -> Primitive:
    return PRIMITIVES[name]
