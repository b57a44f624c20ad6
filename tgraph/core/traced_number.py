"""Python numbers whose values are only known when a compiled function is called."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import Node
from ..compiler.ir.dim import SymInt
from ..runtime.records import record
from .state import state
from .trace_state import Source
from .traced_float import Specialize, needs_value


@record()
class FixedNumber:
    """A number in an expression. Kept as text, which tells 1, 1.0, True and -0.0 apart."""

    kind: type
    text: str

    @property
    def value(self) -> Any:
        return self.text == "True" if self.kind is bool else self.kind(self.text)


@record()
class OpenNumber:
    """A size in an expression, of a plan that is made for many sizes."""

    value: Any


@record()
class NumberExpression:
    """What is computed from numbers by Python itself, at each call: an operator and its operands.

    `sign` is that of Python's text, such as "+"; operands are of these classes, or Sources.
    Computed by Python, a division by zero raises and integers are of any size, as in eager code.
    """

    sign: str
    operands: tuple[Any, ...]

    def value(self, read: Callable[[Source], Any]) -> Any:
        """What it gives now, where `read` gives the value of a Source."""
        values = [number_value(each, read) for each in self.operands]
        if len(values) == 1:
            return _UNARY[self.sign](*values)
        return _BINARY[self.sign](*values)

    def text(self, operands: Sequence[str]) -> str:
        """Python's text for it."""
        if len(operands) == 1:
            return f"{self.sign}({operands[0]})"
        return f"{operands[0]} {self.sign} {operands[1]}"


def number_value(expression: Any, read: Callable[[Source], Any]) -> Any:
    """The value of an expression, where `read` gives that of a Source."""
    if isinstance(expression, NumberExpression):
        return expression.value(read)
    known = isinstance(expression, (FixedNumber, OpenNumber))
    return expression.value if known else read(expression)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "**": operator.pow, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "abs": abs}


def _operator(sign: str, reflected: bool = False) -> Any:
    def method(self: TracedNumber, other: Any) -> Any:
        return self._combine(sign, other, reflected)

    return method


class TracedNumber:
    """Stands for a Python float or int (`kind`) in a trace.

    Arithmetic with numbers makes an expression that each call computes; with tensors it promotes
    like the number. Whatever needs the value itself (comparison, `float()`, indexing, `math`)
    makes the number a fixed one.
    """

    __slots__ = ("expression", "kind", "name", "sources", "trace")

    # isinstance(x, float) holds, yet C code that wants a float asks __float__ and is noticed.
    __class__ = property(lambda self: self.kind)  # type: ignore[assignment]

    def __init__(
        self, trace: Any, expression: Any, kind: type, sources: frozenset[Any], name: str = "number"
    ) -> None:
        self.trace = trace
        self.expression = expression
        self.kind = kind
        self.sources = sources
        self.name = name

    @property
    def node(self) -> Node:
        """The input of the graph that the number is given to."""
        node: Node = self.trace.number_node(self)
        return node

    def check(self) -> None:
        """TraceError where the trace that this belongs to is not the running one."""
        if state.context is not self.trace:
            raise self.trace.leaked_number(self)

    def _combine(self, sign: str, other: Any, reflected: bool) -> Any:
        self.check()
        if type(other) is SymInt:
            other = other.scope.as_number(other)
        sources, expression = self.sources, other
        kinds = {self.kind, type(other)}
        if type(other) is TracedNumber:
            expression, sources = other.expression, sources | other.sources
            kinds = {self.kind, other.kind}
        elif type(other) not in (bool, int, float):
            return NotImplemented
        else:
            expression = FixedNumber(type(other), repr(other))
        kind = float if float in kinds or sign == "/" else int
        if sign == "**" and not _is_real_power(kind, other, reflected):
            raise Specialize(sources)
        operands = (expression, self.expression) if reflected else (self.expression, expression)
        return TracedNumber(self.trace, NumberExpression(sign, operands), kind, sources)

    def _apply(self, sign: str) -> TracedNumber:
        self.check()
        made = NumberExpression(sign, (self.expression,))
        return TracedNumber(self.trace, made, self.kind, self.sources)

    def __neg__(self) -> TracedNumber:
        return self._apply("-")

    def __pos__(self) -> TracedNumber:
        return self

    def __abs__(self) -> TracedNumber:
        return self._apply("abs")

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} `{self.name}` of a traced function>"

    for _name, _sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**"),
        ("floordiv", "//"), ("mod", "%"),
    ):  # fmt: skip
        locals()[f"__{_name}__"] = _operator(_sign)
        locals()[f"__r{_name}__"] = _operator(_sign, reflected=True)
    for _name in (
        "bool", "float", "int", "index", "complex", "round", "floor", "ceil", "trunc", "hash",
        "eq", "ne", "lt", "le", "gt", "ge", "divmod", "rdivmod", "format", "str",
        "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift",
        "invert",
    ):  # fmt: skip
        locals()[f"__{_name}__"] = needs_value(f"__{_name}__")
    for _name in ("is_integer", "as_integer_ratio", "hex", "conjugate", "bit_length"):
        locals()[_name] = needs_value(_name)
    del _name, _sign


def _is_real_power(kind: type, other: Any, reflected: bool) -> bool:
    """Whether a power is of `kind` for sure, whatever the numbers: no fraction, not complex."""
    if reflected:
        return kind is float and type(other) is float and other > 0
    return type(other) is int and (kind is float or other >= 0)
