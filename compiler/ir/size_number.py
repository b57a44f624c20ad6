"""Numbers computed from open sizes that are no polynomials: quotients by sizes, prices, and text.

Where plans are made for sizes that are open (`plan_sizes`), these stand beside `dim.SymInt`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import gcd
from typing import Any

from .dim import Sizes, SymInt

SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class SizeText(str):
    """What stands for a size in the text of a kernel; `size` is that."""

    __slots__ = ("size",)
    size: Any


def _operation(sign: str, reflected: bool = False) -> Any:
    def method(self: SizeNumber, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        return self.scope.made(sign, left, right)

    return method


def _relation(relation: str) -> Any:
    def method(self: SizeNumber, other: Any) -> Any:
        return self.scope.asked(relation, self, other) if _is_number(other) else NotImplemented

    return method


def _needs_value(name: str) -> Any:
    def method(self: SizeNumber, *args: Any) -> Any:
        self.scope.refuse(self, name)

    return method


class SizeNumber:
    """`left sign right`, where at least one of them is open, as Python computes it.

    With the sign "of", `left` is a function, and `right` what it is called with. `hint` is the
    value at the sizes that the plan is made at, `typical` that at the sizes by which prices are
    compared, `key` the same for the same number. A price (`priced`, or what arithmetic that is not
    of whole numbers makes of sizes and prices) decides what is worth while, never what is right.
    """

    __slots__ = ("hint", "is_price", "key", "left", "right", "scope", "sign", "typical")

    # isinstance(x, float) holds, yet C code that wants a float asks __float__ and is noticed.
    __class__ = property(lambda self: type(self.hint))
    __array_ufunc__ = None

    def __init__(
        self, scope: Any, key: str, sign: str, left: Any, right: Any, hint: Any, typical: Any,
        priced: bool = False,
    ) -> None:  # fmt: skip
        self.scope, self.key, self.sign = scope, key, sign
        self.hint, self.typical = hint, typical
        self.left, self.right = left, right
        operands = right if sign == "of" else (left, right)
        is_computed = sign != "of" or left is operator.neg
        of_prices = type(hint) is float and is_computed and all(map(_may_price, operands))
        self.is_price = priced or of_prices

    @property
    def text(self) -> str:
        """For people."""
        if self.sign == "of":
            return f"{_name(self.left)}({', '.join(map(_text, self.right))})"
        return f"({_text(self.left)} {self.sign} {_text(self.right)})"

    for _name, _sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"),
        ("mod", "%"),
    ):  # fmt: skip
        locals()[f"__{_name}__"] = _operation(_sign)
        locals()[f"__r{_name}__"] = _operation(_sign, reflected=True)
    for _name, _sign in (
        ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!="),
    ):  # fmt: skip
        locals()[f"__{_name}__"] = _relation(_sign)
    for _name in (
        "index", "int", "float", "complex", "round", "floor", "ceil", "trunc", "and", "rand", "or",
        "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "invert", "pow", "rpow",
        "reduce",
    ):  # fmt: skip
        locals()[f"__{_name}__"] = _needs_value(f"__{_name}__")
    del _name, _sign

    def __neg__(self) -> Any:
        return self.scope.called(operator.neg, self)

    def at(self, sizes: Sizes) -> Any:
        """The number, where others stand in the place of dims."""
        if self.sign == "of":
            return computed(self.left, *(_at(each, sizes) for each in self.right))
        return SIGNS[self.sign](_at(self.left, sizes), _at(self.right, sizes))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __abs__(self) -> Any:
        return -self if self.scope.asked("<", self, 0) else self

    def __bool__(self) -> bool:
        return bool(self.scope.asked("!=", self, 0))

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.scope.written(self, "__str__")  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return self.scope.written(self, "__repr__")  # type: ignore[no-any-return]

    def __format__(self, spec: str) -> str:
        return self.scope.written(self, "__format__")  # type: ignore[no-any-return]


def is_expression(value: object) -> bool:
    """Whether a number is computed from open sizes."""
    return type(value) in (SymInt, SizeNumber)


def computed(function: Callable[..., Any], *values: Any) -> Any:
    """A function of numbers, of which some may be open; it has no effect."""
    scope = next((each.scope for each in values if is_expression(each)), None)
    return function(*values) if scope is None else scope.called(function, *values)


def common_factor(*numbers: Any) -> int:
    """A number that divides all of them: the greatest one, where none is open."""
    known: list[int] = []
    for each in numbers:
        if type(each) is SymInt:
            known += each.terms.values()
        else:
            known.append(1 if type(each) is SizeNumber else each)
    return gcd(*known)


def is_made_by(function: Callable[..., Any], value: Any) -> bool:
    """Whether a number is what `function` gave."""
    return type(value) is SizeNumber and value.left is function


def priced(function: Callable[..., Any], *values: Any) -> Any:
    """As `computed`, of what only decides what is worth while."""
    scope = next((each.scope for each in values if is_expression(each)), None)
    return function(*values) if scope is None else scope.called(function, *values, priced=True)


def decided(function: Callable[..., Any], *values: Any) -> Any:
    """What `function` chooses as worth while by numbers; where it chooses otherwise is noted."""
    found = priced(function, *values)
    return found.scope.chosen(found) if type(found) is SizeNumber else found


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or getattr(function, "func", function).__name__)


def is_price(value: object) -> bool:
    """Whether a number only decides what is worth while."""
    return type(value) is SizeNumber and value.is_price


def _is_number(value: Any) -> bool:
    return is_expression(value) or type(value) in (int, float, bool)


def _at(value: Any, sizes: Sizes) -> Any:
    return value.at(sizes) if is_expression(value) else value


def _may_price(value: Any) -> bool:
    return value.is_price or type(value.hint) is int if type(value) is SizeNumber else True


def _text(value: Any) -> str:
    return value.text if is_expression(value) else str(value)
