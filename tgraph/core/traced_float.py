"""A Python float in a traced function, which may be another at each call."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node, Primitive
from ..compiler.ir import primitives as p
from ..runtime.dtypes import float64
from .state import state


class Specialize(BaseException):
    """Raised inside a trace when the value of a traced float is needed.

    Caught by `compile`, which traces again with the float as a fixed number. No `Exception`, so
    that a user's `except Exception` does not swallow it.
    """

    def __init__(self, sources: frozenset[Any]) -> None:
        super().__init__(sources)
        self.sources = sources


def _arithmetic(primitive: Primitive, reflected: bool = False) -> Any:
    def method(self: TracedFloat, other: Any) -> Any:
        return self._combine(primitive, other, reflected)

    return method


def needs_value(name: str) -> Any:
    """A method of a traced number that cannot do without its value."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.check()
        raise Specialize(self.sources)

    method.__name__ = name
    return method


class TracedFloat:
    """Stands for a Python float: a 0-d float64 node that promotes like a number.

    Arithmetic with numbers is recorded in double precision, as Python computes it (only that a
    division by zero gives an infinity). Whatever needs the value itself (comparison, `float()`,
    `math` functions) makes the number a fixed one.
    """

    __slots__ = ("node", "sources", "trace")

    # isinstance(x, float) holds, yet C code that wants a float asks __float__ and is noticed.
    __class__ = property(lambda self: float)  # type: ignore[assignment]

    def __init__(self, trace: Any, node: Node, sources: frozenset[Any]) -> None:
        self.trace = trace
        self.node = node
        self.sources = sources

    def check(self) -> None:
        """TraceError where the trace that this belongs to is not the running one."""
        if state.context is not self.trace:
            raise self.trace.leaked(self.node)

    def _combine(self, primitive: Primitive, other: Any, reflected: bool) -> Any:
        self.check()
        sources = self.sources
        if type(other) is TracedFloat:
            node, sources = other.node, sources | other.sources
        elif isinstance(other, (bool, int, float)):
            node = self.trace.builder.full((), float(other), float64)
        else:
            return NotImplemented
        operands = [node, self.node] if reflected else [self.node, node]
        return TracedFloat(self.trace, self.trace.record(primitive, operands), sources)

    def _apply(self, primitive: Primitive) -> TracedFloat:
        self.check()
        return TracedFloat(self.trace, self.trace.record(primitive, [self.node]), self.sources)

    __add__ = _arithmetic(p.add)
    __radd__ = _arithmetic(p.add, reflected=True)
    __sub__ = _arithmetic(p.sub)
    __rsub__ = _arithmetic(p.sub, reflected=True)
    __mul__ = _arithmetic(p.mul)
    __rmul__ = _arithmetic(p.mul, reflected=True)
    __truediv__ = _arithmetic(p.div)
    __rtruediv__ = _arithmetic(p.div, reflected=True)
    __pow__ = _arithmetic(p.pow_)
    __rpow__ = _arithmetic(p.pow_, reflected=True)

    def __neg__(self) -> TracedFloat:
        return self._apply(p.neg)

    def __pos__(self) -> TracedFloat:
        return self

    def __abs__(self) -> TracedFloat:
        return self._apply(p.abs_)

    def __repr__(self) -> str:
        return f"<float traced at {self.node.where}>"

    for _name in (
        "bool", "float", "int", "index", "complex", "round", "floor", "ceil", "trunc", "hash",
        "eq", "ne", "lt", "le", "gt", "ge", "mod", "rmod", "floordiv", "rfloordiv", "divmod",
        "rdivmod", "format",
    ):  # fmt: skip
        locals()[f"__{_name}__"] = needs_value(f"__{_name}__")
    for _name in ("is_integer", "as_integer_ratio", "hex", "conjugate"):
        locals()[_name] = needs_value(_name)
    del _name
