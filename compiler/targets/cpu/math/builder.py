"""Writes one branch-free scalar function as LLVM IR text from ordinary Python expressions.

The math library builds every function once per dtype from the same Python code: `Value`
overloads the operators, `FunctionBuilder` collects the instructions and drops repeated ones.

>>> b = FunctionBuilder("tg_square_plus_f32", FLOAT32, ["x"])
>>> x = b.arguments[0]
>>> print(b.finish(b.mad(x, x, 1.0)))
define internal float @tg_square_plus_f32(float %x) alwaysinline nounwind willreturn memory(none) {
  %1 = call float @llvm.fmuladd.f32(float %x, float %x, float 0x3FF0000000000000)
  ret float %1
}
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from .....runtime.records import record, replace

ATTRIBUTES = "alwaysinline nounwind willreturn memory(none)"


@record()
class Format:
    """A binary floating-point format: its LLVM types and the layout of its bits."""

    name: str
    suffix: str
    type: str
    integer: str
    bits: int
    mantissa: int
    bias: int

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0**-self.mantissa) * 2.0**self.bias

    @property
    def sign_bit(self) -> int:
        """The integer with only the sign bit set, as a signed number."""
        return -(1 << (self.bits - 1))

    def in_vectors(self, lanes: int) -> Format:
        """The format of so many numbers side by side."""
        suffix = f"v{lanes}{self.suffix}"
        return replace(
            self,
            suffix=suffix,
            type=_vector(lanes, self.type),
            integer=_vector(lanes, self.integer),
        )


FLOAT32 = Format("float32", "f32", "float", "i32", 32, 23, 127)
FLOAT64 = Format("float64", "f64", "double", "i64", 64, 52, 1023)
LONG_POLYNOMIAL = 9
_SUFFIXES = {"float": "f32", "double": "f64"}


def _vector(lanes: int, element: str) -> str:
    """The type of a vector; of a scalar without lanes."""
    return f"<{lanes} x {element}>" if lanes else element


def _parts(type: str) -> tuple[int, str]:
    """The lanes of a vector's type, none for a scalar, and the type of its elements."""
    if not type.startswith("<"):
        return 0, type
    lanes, element = type[1:-1].split(" x ")
    return int(lanes), element


@record(eq=False)
class Value:
    """An SSA value or a constant; operators emit instructions of its own type.

    ``>>`` is arithmetic; `FunctionBuilder.shift_right` is the logical one. Comparisons are
    methods (ordered: false on NaN, except `unequal`), so that ``==`` keeps its Python meaning.
    """

    builder: FunctionBuilder
    type: str
    text: str

    @property
    def is_float(self) -> bool:
        """Whether the type is float or double, or a vector of these."""
        return _parts(self.type)[1] in _SUFFIXES

    def _binary(self, floating: str, integer: str, other: Operand, swap: bool = False) -> Value:
        right = self.builder.operand(other, self.type)
        first, second = (right, self) if swap else (self, right)
        operation = floating if self.is_float else integer
        return self.builder.emit(f"{operation} {self.type} {first.text}, {second.text}", self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other, swap=True)

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", "xor", other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("shl", "shl", other)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary("ashr", "ashr", other)

    def __neg__(self) -> Value:
        if not self.is_float:
            return 0 - self
        return self.builder.emit(f"fneg {self.type} {self.text}", self.type)

    def _compare(self, floating: str, integer: str, other: Operand) -> Value:
        right = self.builder.operand(other, self.type)
        operation = f"fcmp {floating}" if self.is_float else f"icmp {integer}"
        truth = _vector(_parts(self.type)[0], "i1")
        return self.builder.emit(f"{operation} {self.type} {self.text}, {right.text}", truth)

    def less(self, other: Operand) -> Value:
        """Whether self < other."""
        return self._compare("olt", "slt", other)

    def greater(self, other: Operand) -> Value:
        """Whether self > other."""
        return self._compare("ogt", "sgt", other)

    def greater_equal(self, other: Operand) -> Value:
        """Whether self >= other."""
        return self._compare("oge", "sge", other)

    def equal(self, other: Operand) -> Value:
        """Whether self == other."""
        return self._compare("oeq", "eq", other)

    def unequal(self, other: Operand) -> Value:
        """Whether self != other; true where one is NaN."""
        return self._compare("une", "ne", other)

    def unordered(self, other: Operand) -> Value:
        """Whether self or other is NaN."""
        return self._compare("uno", "uno", other)


Operand = Value | float | int


def constant_text(value: float, type: str) -> str:
    """A number as LLVM writes it: floats by the bits of the double of the same value.

    Example:
        >>> constant_text(0.1, "float"), constant_text(-3, "i32"), constant_text(1, "<2 x i32>")
        ('0x3FB99999A0000000', '-3', '<i32 1, i32 1>')
    """
    lanes, type = _parts(type)
    if lanes:
        one = f"{type} {constant_text(value, type)}"
        return f"<{', '.join([one] * lanes)}>"
    if type not in _SUFFIXES:
        return str(int(value))
    if type == "float" and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    if math.isnan(value):
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class FunctionBuilder:
    """Collects the instructions of one function.

    `types` gives the argument types where they are not those of the format.
    """

    def __init__(
        self,
        name: str,
        format: Format,
        arguments: Sequence[str],
        types: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.format = format
        argument_types = types or [format.type] * len(arguments)
        self.arguments = [
            Value(self, type, f"%{argument}") for type, argument in zip(argument_types, arguments)
        ]
        self._values: dict[tuple[str, str], Value] = {}

    def emit(self, instruction: str, type: str) -> Value:
        """The value of an instruction; the same instruction is written only once."""
        key = (instruction, type)
        if key not in self._values:
            self._values[key] = Value(self, type, f"%{len(self._values) + 1}")
        return self._values[key]

    def finish(self, result: Value) -> str:
        """The text of the function that returns `result`."""
        arguments = ", ".join(f"{a.type} {a.text}" for a in self.arguments)
        lines = [
            f"  {value.text} = {instruction}" for (instruction, _), value in self._values.items()
        ]
        head = f"define internal {result.type} @{self.name}({arguments}) {ATTRIBUTES} {{"
        return "\n".join([head, *lines, f"  ret {result.type} {result.text}", "}"])

    def operand(self, value: Operand, type: str) -> Value:
        """A value as it is, a Python number as a constant of the type."""
        if isinstance(value, Value):
            return value
        return Value(self, type, constant_text(value, type))

    def constant(self, value: float) -> Value:
        """A constant of the function's own format."""
        return self.operand(value, self.format.type)

    def intrinsic(self, name: str, first: Value, *others: Operand) -> Value:
        """A call of an overloaded intrinsic whose operands and result have one type."""
        values = [first, *(self.operand(other, first.type) for other in others)]
        operands = ", ".join(f"{value.type} {value.text}" for value in values)
        lanes, element = _parts(first.type)
        suffix = f"v{lanes}" * bool(lanes) + _SUFFIXES.get(element, element)
        return self.emit(f"call {first.type} @llvm.{name}.{suffix}({operands})", first.type)

    def convert(self, operation: str, value: Value, type: str) -> Value:
        """A conversion instruction such as fpext, sitofp or trunc."""
        return self.emit(f"{operation} {value.type} {value.text} to {type}", type)

    def mad(self, a: Value, b: Operand, c: Operand) -> Value:
        """a * b + c, fused where the machine can: for polynomials."""
        return self.intrinsic("fmuladd", a, b, c)

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """a * b + c rounded once, everywhere: where the algorithm rests on it."""
        return self.intrinsic("fma", a, b, c)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """A polynomial of x; the lowest power comes first.

        Horner's scheme; long ones with odd and even powers apart, which halves the waiting,
        except for the last step, where most of the rounding error arises.
        """
        if len(coefficients) < LONG_POLYNOMIAL:
            return self._horner(x, coefficients)
        square = x * x
        rest = self.mad(
            self._horner(square, coefficients[2::2]), x, self._horner(square, coefficients[1::2])
        )
        return self.mad(rest, x, coefficients[0])

    def _horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        result = self.operand(coefficients[-1], x.type)
        for coefficient in coefficients[-2::-1]:
            result = self.mad(result, x, coefficient)
        return result

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        """`yes` where the condition holds, else `no`; one of them must be a Value."""
        type = next(v.type for v in (yes, no, self.constant(0)) if isinstance(v, Value))
        first, second = self.operand(yes, type), self.operand(no, type)
        return self.emit(
            f"select {condition.type} {condition.text}, {type} {first.text}, {type} {second.text}",
            type,
        )

    def clamp(self, x: Value, low: float | None, high: float | None) -> Value:
        """x held between two bounds; NaN stays NaN (each side is one x86 min or max)."""
        if low is not None:
            x = self.select(x.less(low), low, x)
        return x if high is None else self.select(x.greater(high), high, x)

    def shift_right(self, value: Value, count: int) -> Value:
        """The logical right shift of an integer."""
        by = self.operand(count, value.type)
        return self.emit(f"lshr {value.type} {value.text}, {by.text}", value.type)

    def bits(self, x: Value) -> Value:
        """The bits of a float as an integer."""
        lanes, element = _parts(x.type)
        return self.convert("bitcast", x, _vector(lanes, "i32" if element == "float" else "i64"))

    def from_bits(self, x: Value) -> Value:
        """The float that an integer's bits are."""
        lanes, element = _parts(x.type)
        return self.convert("bitcast", x, _vector(lanes, "float" if element == "i32" else "double"))

    def absolute(self, x: Value) -> Value:
        """|x|."""
        return self.intrinsic("fabs", x)

    def copysign(self, magnitude: Value, sign: Operand) -> Value:
        """|magnitude| with the sign bit of `sign`."""
        return self.intrinsic("copysign", magnitude, sign)
