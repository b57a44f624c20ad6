"""Python numbers that branches and loops of a graph decide."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node
from ..compiler.ir.dim import SymInt
from ..runtime.device import Device
from ..runtime.dtypes import DType, bool_, complex128, float64, int64
from .provenance import user_site
from .state import state
from .tensor import Tensor
from .trace_state import TraceError
from .traced_number import TracedNumber

TYPES: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_KINDS = {bool: 0, int: 1, float: 2, complex: 3}
_ARITHMETIC = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
}  # fmt: skip
_OF_BITS = {
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}  # fmt: skip
_COMPARISONS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


class CarriedNumber(TracedNumber):
    """Stands for a Python number (`kind`) that is the value of `tensor`, which the graph computes.

    Arithmetic, comparisons and conversions are Python's, recorded in the graph: of bools as of
    ints, of floats in float64. With tensors it promotes like a number. Integers have 64 bits; what
    Python raises for a division by zero or gives as a complex power is what tensors give. What
    needs the value itself, as a look-up in a dictionary, is an error with the user's line.
    """

    __slots__ = ("is_natural", "tensor")

    def __init__(self, tensor: Tensor, is_natural: bool = False) -> None:
        self.tensor = tensor
        self.kind = kind_of(tensor._type.dtype)
        self.is_natural = is_natural or self.kind is bool
        """Whether it is known that it is not below 0."""

    @property
    def node(self) -> Node:
        found: Node = state.context.value_of(self.tensor)
        return found

    def check(self) -> None:
        """Whoever reads the tensor finds out whether its trace is over."""

    def to(self, dtype: DType, device: Device | None = None) -> Tensor:
        """The number as a tensor of another type."""
        tensor = self.tensor
        if tensor._type.dtype is not dtype:
            tensor = tensor.to(dtype)  # type: ignore[attr-defined]
        if device is not None and tensor._type.device != device:
            tensor = tensor.to(device)  # type: ignore[attr-defined]
        return tensor

    def converted(self, kind: type) -> CarriedNumber:
        """`kind(self)`, of Python's types of numbers."""
        if self.kind is kind:
            return self
        if kind is bool:
            return CarriedNumber(self.tensor != 0)
        if kind is int and self.kind is float:
            return CarriedNumber(self.tensor.trunc().to(int64))  # type: ignore[attr-defined]
        if self.kind is complex:
            raise TypeError(
                f"{kind.__name__}() argument must be a string or a real number, not 'complex'"
            )
        return CarriedNumber(self.to(TYPES[kind]), self.is_natural)

    # --- operators ---

    def _combine(self, sign: str, other: Any, reflected: bool) -> Any:
        kind = number_kind(other)
        if kind is None:
            return NotImplemented
        first, second = (other, self) if reflected else (self, other)
        if sign in _COMPARISONS:
            dtype = TYPES[max(self.kind, kind, key=_KINDS.__getitem__)]
            return CarriedNumber(_COMPARISONS[sign](*self._both(first, second, dtype)))
        if sign in _OF_BITS:
            return self._of_bits(sign, first, second, kind)
        wide = max(self.kind, kind, int, key=_KINDS.__getitem__)
        natural = is_natural(first) and is_natural(second)
        if sign == "/" or (sign == "**" and wide is int and not is_natural(second)):
            wide = max(wide, float, key=_KINDS.__getitem__)
        made = _ARITHMETIC[sign](*self._both(first, second, TYPES[wide]))
        return CarriedNumber(made, natural and wide is int and sign != "-")

    def _both(self, first: Any, second: Any, dtype: DType) -> tuple[Tensor, Tensor]:
        return as_type(first, dtype, self), as_type(second, dtype, self)

    def _of_bits(self, sign: str, first: Any, second: Any, kind: type) -> Any:
        if kind not in (bool, int) or self.kind not in (bool, int):
            return NotImplemented
        are_bools = kind is self.kind is bool and sign in "&|^"
        dtype = bool_ if are_bools else int64
        made = _OF_BITS[sign](*self._both(first, second, dtype))
        return CarriedNumber(made, is_natural(first) and is_natural(second))

    def __neg__(self) -> CarriedNumber:
        return CarriedNumber(-self._wide())

    def __pos__(self) -> CarriedNumber:
        return CarriedNumber(self._wide(), self.is_natural)

    def __abs__(self) -> CarriedNumber:
        return CarriedNumber(abs(self._wide()), self.kind in (bool, int))

    def __invert__(self) -> CarriedNumber:
        if self.kind not in (bool, int):
            raise TypeError(f"bad operand type for unary ~: '{self.kind.__name__}'")
        return CarriedNumber(~self._wide())

    def _wide(self) -> Tensor:
        """The value, of a bool as an int."""
        return self.to(int64) if self.kind is bool else self.tensor

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, ndigits: int | None = None) -> CarriedNumber:
        if self.kind in (bool, int):
            return self.converted(int)
        made: Any = self.tensor.round(decimals=ndigits or 0)  # type: ignore[attr-defined]
        return CarriedNumber(made if ndigits is not None else made.to(int64))

    def _rounded(name: str) -> Any:
        def method(self: CarriedNumber) -> CarriedNumber:
            if self.kind in (bool, int):
                return self.converted(int)
            return CarriedNumber(getattr(self.tensor, name)().to(int64))

        return method

    __floor__, __ceil__, __trunc__ = map(_rounded, ("floor", "ceil", "trunc"))

    def _operator(sign: str, reflected: bool = False) -> Any:
        def method(self: CarriedNumber, other: Any) -> Any:
            return self._combine(sign, other, reflected)

        return method

    for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^"), ("lshift", "<<"),
                         ("rshift", ">>")):  # fmt: skip
        locals()[f"__{_name}__"] = _operator(_sign)
        locals()[f"__r{_name}__"] = _operator(_sign, reflected=True)
    for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"),
                         ("ge", ">=")):  # fmt: skip
        locals()[f"__{_name}__"] = _operator(_sign)

    @property
    def real(self) -> CarriedNumber:
        return CarriedNumber(self.tensor.real) if self.kind is complex else self  # type: ignore[attr-defined]

    @property
    def imag(self) -> Any:
        return CarriedNumber(self.tensor.imag) if self.kind is complex else self.kind(0)  # type: ignore[attr-defined]

    # --- its value ---

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __index__(self) -> int:
        return self.tensor.__index__()  # type: ignore[attr-defined, no-any-return]

    def __float__(self) -> float:
        return float(self.tensor)

    def __complex__(self) -> complex:
        return complex(self.tensor)

    def _refused(name: str, what: str) -> Any:
        def method(self: CarriedNumber, *args: Any) -> Any:
            raise TraceError(
                f"{what} of a number is asked for, at {user_site()}, which a branch or loop on "
                "tensors decides: its value is known only when the compiled function runs. Compare "
                "the number instead, use it as an index of a tensor, or return it."
            )

        method.__name__ = name
        return method

    for _name, _what in (
        ("__hash__", "the hash (as of a key of a dictionary or an element of a set)"),
        ("__str__", "the text"), ("__format__", "the text"), ("hex", "the text"),
        ("as_integer_ratio", "a fraction"), ("bit_length", "the number of bits"),
    ):  # fmt: skip
        locals()[_name] = _refused(_name, _what)

    def is_integer(self) -> Any:
        return self == self.converted(int)

    def conjugate(self) -> CarriedNumber:
        return CarriedNumber(self.tensor.conj()) if self.kind is complex else self  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} of a branch or loop>"

    del _name, _sign, _what, _operator, _refused, _rounded


def kind_of(dtype: DType) -> type:
    """The type of Python's numbers that a tensor of a number has."""
    if dtype is bool_:
        return bool
    if dtype.is_integral:
        return int
    return complex if dtype.is_complex else float


def number_kind(value: Any) -> type | None:
    """The type of a number of Python's, or of what stands for one; None of all else."""
    kind = type(value)
    if isinstance(value, TracedNumber) and issubclass(kind, TracedNumber):
        return value.kind
    if kind is SymInt:
        return int
    return kind if kind in TYPES else None


def is_natural(value: Any) -> bool:
    """Whether a number is known to be an integer of at least 0."""
    if type(value) is CarriedNumber:
        return value.is_natural
    return type(value) is SymInt or (type(value) in (bool, int) and value >= 0)


def as_type(value: Any, dtype: DType, like: CarriedNumber) -> Tensor:
    """A number as a tensor of a type, in the graph of another one."""
    if type(value) is CarriedNumber:
        return value.to(dtype)
    made: Tensor = like.tensor.new_full((), value, dtype=dtype)  # type: ignore[attr-defined]
    return made
