"""The scalar template of every elementwise primitive, as LLVM IR.

`TEMPLATES[name](emit, args, dtype)` writes the instructions for one element and returns the name
of the value; `dtype` is the type of the operands. Booleans are i1 while they are values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ....runtime.dtypes import DType, float32, float64, int8, int16, int32, uint16, uint32, uint64
from ...ir.size_number import computed, is_expression


class Emit(Protocol):
    """What a template writes into."""

    def op(self, text: str) -> str:
        """Write `name = text` and return the new name."""

    def call(self, op: str, dtype: DType, args: Sequence[str]) -> str:
        """Call the math library's function for `op`."""

    def intrinsic(self, name: str, type: str, args: Sequence[str]) -> str:
        """Call an LLVM intrinsic whose operands and result have one type."""


Template = Callable[[Any, Sequence[str], DType], str]


def llvm_type(dtype: DType) -> str:
    """The type of a value of `dtype` in a register; 16-bit floats are computed as float."""
    if dtype.kind == "float":
        return "double" if dtype is float64 else "float"
    return "i1" if dtype.kind == "bool" else f"i{dtype.itemsize * 8}"


def memory_type(dtype: DType) -> str:
    """The type of an element in memory."""
    if dtype.kind == "bool":
        return "i8"
    return {"float16": "half", "bfloat16": "i16"}.get(dtype.name, llvm_type(dtype))


def literal(value: Any, dtype: DType) -> str:
    """A constant of `dtype`, exact."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if is_expression(value):
        return str(computed(_word_of_float, value, dtype is float64) if _float(dtype) else value)
    if dtype.kind != "float":
        return str(int(value))
    return f"0x{_word_of_float(value, dtype is float64) & MASK:016X}"


MASK = (1 << 64) - 1


def _word_of_float(value: float, is_double: bool) -> int:
    """The bits of a float, or of the double that is equal to it, as a signed integer."""
    rounded = float(value) if is_double else float(np.float32(value))
    word: int = struct.unpack("<q", struct.pack("<d", rounded))[0]
    return word


def _float(dtype: DType) -> bool:
    return dtype.kind == "float"


def _arithmetic(name: str, flags: str = "") -> Template:
    """Sums round alone: contracted into an fma, a value would differ from kernel to kernel.

    A product may join the sum of a reduction, which is computed only once.
    """

    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        a, b = args
        op = f"f{name}{flags}" if _float(dtype) else name
        return emit.op(f"{op} {llvm_type(dtype)} {a}, {b}")

    return template


def _library(name: str) -> Template:
    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        return emit.call(name, dtype, args)

    return template


def _floored(name: str) -> Template:
    """A quotient or remainder; LLVM writes division by a known positive integer as products."""
    library = _library(name)

    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        if dtype.kind == "float" or not args[1].isdigit() or int(args[1]) == 0:
            return library(emit, args, dtype)
        if int(args[1]).bit_count() == 1:
            return _by_power_of_two(emit, name, args[0], int(args[1]), dtype)
        if dtype.itemsize == 8:  # there are no vector products of so many bits
            return library(emit, args, dtype)
        return _by_constant(emit, name, args, dtype)

    return template


def _by_power_of_two(emit: Emit, name: str, value: str, divisor: int, dtype: DType) -> str:
    if name == "remainder":
        return emit.op(f"and {llvm_type(dtype)} {value}, {divisor - 1}")
    op = "ashr" if dtype.kind == "int" else "lshr"
    return emit.op(f"{op} {llvm_type(dtype)} {value}, {divisor.bit_length() - 1}")


def _by_constant(emit: Emit, name: str, args: Sequence[str], dtype: DType) -> str:
    """The quotient towards zero, or what it leaves, and back one step where that is negative."""
    type_, (value, divisor) = llvm_type(dtype), args
    sign = "s" if dtype.kind == "int" else "u"
    quotient = emit.op(f"{sign}div {type_} {value}, {divisor}")
    rest = emit.op(f"sub {type_} {value}, {emit.op(f'mul {type_} {quotient}, {divisor}')}")
    if sign == "u":
        return rest if name == "remainder" else quotient
    below = emit.op(f"icmp slt {type_} {rest}, 0")
    if name == "remainder":
        step = emit.op(f"select i1 {below}, {type_} {divisor}, {type_} 0")
        return emit.op(f"add {type_} {rest}, {step}")
    return emit.op(f"add {type_} {quotient}, {emit.op(f'sext i1 {below} to {type_}')}")


def _intrinsic(name: str) -> Template:
    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        return emit.intrinsic(f"llvm.{name}", llvm_type(dtype), args)

    return template


def _neg(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    if _float(dtype):
        return emit.op(f"fneg {llvm_type(dtype)} {args[0]}")
    return emit.op(f"sub {llvm_type(dtype)} 0, {args[0]}")


def _abs(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    if _float(dtype):
        return emit.intrinsic("llvm.fabs", llvm_type(dtype), args)
    if dtype.kind == "uint":
        return args[0]
    type_ = llvm_type(dtype)
    negative = emit.op(f"icmp slt {type_} {args[0]}, 0")
    minus = emit.op(f"sub {type_} 0, {args[0]}")
    return emit.op(f"select i1 {negative}, {type_} {minus}, {type_} {args[0]}")


def _sign(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    """0 for NaN and for both zeros."""
    type_, zero = llvm_type(dtype), literal(0, dtype)
    x = args[0]
    above = _compare("gt")(emit, [x, zero], dtype)
    below = _compare("lt")(emit, [x, zero], dtype)
    one, minus = literal(1, dtype), literal(-1, dtype)
    down = emit.op(f"select i1 {below}, {type_} {minus}, {type_} {zero}")
    return emit.op(f"select i1 {above}, {type_} {one}, {type_} {down}")


def _div(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return emit.op(f"fdiv {llvm_type(dtype)} {args[0]}, {args[1]}")


def _reciprocal(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return emit.op(f"fdiv {llvm_type(dtype)} {literal(1, dtype)}, {args[0]}")


def _rsqrt(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return _reciprocal(emit, [emit.intrinsic("llvm.sqrt", llvm_type(dtype), args)], dtype)


_FLOAT_CODES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _compare(name: str) -> Template:
    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        if _float(dtype):
            return emit.op(f"fcmp {_FLOAT_CODES[name]} {llvm_type(dtype)} {args[0]}, {args[1]}")
        signed = "s" if dtype.kind == "int" else "u"
        code = name if name in ("eq", "ne") else signed + name
        return emit.op(f"icmp {code} {llvm_type(dtype)} {args[0]}, {args[1]}")

    return template


def _isnan(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return emit.op(f"fcmp uno {llvm_type(dtype)} {args[0]}, {args[0]}")


def _isinf(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    size = emit.intrinsic("llvm.fabs", llvm_type(dtype), args)
    return emit.op(f"fcmp oeq {llvm_type(dtype)} {size}, {literal(float('inf'), dtype)}")


def _not(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    ones = "true" if dtype.kind == "bool" else "-1"
    return emit.op(f"xor {llvm_type(dtype)} {args[0]}, {ones}")


def _bits(name: str) -> Template:
    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        return emit.op(f"{name} {llvm_type(dtype)} {args[0]}, {args[1]}")

    return template


def _shift(name: str) -> Template:
    """By the width or more: left gives 0, right what is left of the sign."""

    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        type_, width = llvm_type(dtype), dtype.itemsize * 8
        value, by = args
        inside = emit.op(f"icmp ult {type_} {by}, {width}")
        arithmetic = name == "right" and dtype.kind == "int"
        last = width - 1 if arithmetic else 0
        safe = emit.op(f"select i1 {inside}, {type_} {by}, {type_} {last}")
        op = "shl" if name == "left" else "ashr" if arithmetic else "lshr"
        moved = emit.op(f"{op} {type_} {value}, {safe}")
        if arithmetic:
            return moved
        return emit.op(f"select i1 {inside}, {type_} {moved}, {type_} 0")

    return template


def _extreme(name: str) -> Template:
    def template(emit: Emit, args: Sequence[str], dtype: DType) -> str:
        if _float(dtype):
            return emit.call(name, dtype, args)
        if dtype.kind == "bool":
            return emit.op(f"{'or' if name == 'maximum' else 'and'} i1 {args[0]}, {args[1]}")
        code = ("s" if dtype.kind == "int" else "u") + name[:3]
        return emit.intrinsic(f"llvm.{code}", llvm_type(dtype), args)

    return template


def _pow(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return emit.call("pow", dtype, args)


def _where(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    type_ = llvm_type(dtype)
    return emit.op(f"select i1 {args[0]}, {type_} {args[1]}, {type_} {args[2]}")


def _copy(emit: Emit, args: Sequence[str], dtype: DType) -> str:
    return args[0]


TEMPLATES: dict[str, Template] = {
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _intrinsic("roundeven"),
    "trunc": _intrinsic("trunc"),
    "isnan": _isnan,
    "isinf": _isinf,
    "logical_not": _not,
    "bitwise_not": _not,
    "copy": _copy,
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul", " contract"),
    "div": _div,
    "floor_divide": _floored("floor_divide"),
    "remainder": _floored("remainder"),
    "pow": _pow,
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "where": _where,
    "shift_left": _shift("left"),
    "shift_right": _shift("right"),
    **{name: _compare(name) for name in _FLOAT_CODES},
    **{f"logical_{name}": _bits(name) for name in ("and", "or", "xor")},
    **{f"bitwise_{name}": _bits(name) for name in ("and", "or", "xor")},
    **{
        name: _library(name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin"),
            *("acos", "atan", "sinh", "cosh", "tanh", "erf", "atan2"),
        )
    },
}


def convert(emit: Emit, value: str, source: DType, target: DType) -> str:
    """A value of `source`'s compute type as `target`, rounded to it, in its compute type."""
    if target.kind == "bool":
        return _compare("ne")(emit, [value, literal(0, source)], source)
    if source.kind != "float" and target.kind != "float":
        return _convert_integer(emit, value, source, target)
    if source.kind != "float":
        op = "sitofp" if source.kind == "int" else "uitofp"
        wide = emit.op(f"{op} {llvm_type(source)} {value} to {llvm_type(target)}")
        return round_half(emit, wide, target)
    if target.kind != "float":
        return _float_to_integer(emit, value, source, target)
    if llvm_type(source) == llvm_type(target):
        return round_half(emit, value, target)
    op = "fpext" if target is float64 else "fptrunc"
    changed = emit.op(f"{op} {llvm_type(source)} {value} to {llvm_type(target)}")
    return round_half(emit, changed, target)


def _float_to_integer(emit: Emit, value: str, source: DType, target: DType) -> str:
    """Through the bits that compilers of C take, so that values out of range become the same."""
    own = llvm_type(target)
    if target in (uint32, uint64):
        return _float_to_unsigned(emit, value, source, own)
    bits = "i32" if target in _THROUGH_32_BITS else "i64"
    made = _truncated(emit, value, source, bits)
    return made if own == bits else emit.op(f"trunc {bits} {made} to {own}")


def _float_to_unsigned(emit: Emit, value: str, source: DType, bits: str) -> str:
    """As a signed integer, from which half of the range was taken where it does not hold it."""
    kind, half = llvm_type(source), 1 << (int(bits[1:]) - 1)
    rest = emit.op(f"fsub {kind} {value}, {literal(half, source)}")
    above = emit.op(f"xor {bits} {_truncated(emit, rest, source, bits)}, {-half}")
    below = _truncated(emit, value, source, bits)
    is_below = emit.op(f"fcmp ult {kind} {value}, {literal(half, source)}")
    return emit.op(f"select i1 {is_below}, {bits} {below}, {bits} {above}")


def _truncated(emit: Emit, value: str, source: DType, bits: str) -> str:
    made = emit.op(f"fptosi {llvm_type(source)} {value} to {bits}")
    return emit.op(f"freeze {bits} {made}")  # out of range it is what the processor makes of it


_THROUGH_32_BITS = frozenset({int8, int16, uint16, int32})
"""Not uint8, as in PyTorch."""


def _convert_integer(emit: Emit, value: str, source: DType, target: DType) -> str:
    have, want = llvm_type(source), llvm_type(target)
    if have == want:
        return value
    if int(want[1:]) < int(have[1:]):
        return emit.op(f"trunc {have} {value} to {want}")
    op = "sext" if source.kind == "int" else "zext"
    return emit.op(f"{op} {have} {value} to {want}")


def bitcast(emit: Emit, value: str, source: DType, target: DType) -> str:
    """The bits that `value` has in memory as `target`, in its compute type."""
    stored, have, want = narrow(emit, value, source), _bits_type(source), _bits_type(target)
    if have != want:
        stored = emit.op(f"bitcast {have} {stored} to {want}")
    return widen(emit, stored, target)


def _bits_type(dtype: DType) -> str:
    return "i8" if dtype.kind == "bool" else memory_type(dtype)


def round_half(emit: Emit, value: str, target: DType) -> str:
    """A float rounded to the precision of a 16-bit type; other types pass."""
    if not target.is_half:
        return value
    return widen(emit, narrow(emit, value, target), target)


def narrow(emit: Emit, value: str, dtype: DType) -> str:
    """A value as it is stored in memory."""
    if dtype.kind == "bool":
        return emit.op(f"zext i1 {value} to i8")
    if dtype.name == "float16":
        return emit.op(f"fptrunc float {value} to half")
    if dtype.name != "bfloat16":
        return value
    bits = emit.op(f"bitcast float {value} to i32")
    high = emit.op(f"lshr i32 {bits}, 16")
    odd = emit.op(f"and i32 {high}, 1")
    bias = emit.op(f"add i32 {odd}, 32767")
    rounded = emit.op(f"add i32 {bits}, {bias}")
    top = emit.op(f"lshr i32 {rounded}, 16")
    quiet = emit.op(f"or i32 {high}, 64")
    nan = emit.op(f"fcmp uno float {value}, {value}")
    chosen = emit.op(f"select i1 {nan}, i32 {quiet}, i32 {top}")
    return emit.op(f"trunc i32 {chosen} to i16")


def widen(emit: Emit, value: str, dtype: DType) -> str:
    """A value loaded from memory in its compute type."""
    if dtype.kind == "bool":
        return emit.op(f"icmp ne i8 {value}, 0")
    if dtype.name == "float16":
        return emit.op(f"fpext half {value} to float")
    if dtype.name != "bfloat16":
        return value
    wide = emit.op(f"zext i16 {value} to i32")
    bits = emit.op(f"shl i32 {wide}, 16")
    return emit.op(f"bitcast i32 {bits} to float")


__all__ = [
    "TEMPLATES", "bitcast", "convert", "float32", "literal", "llvm_type", "memory_type", "narrow",
    "widen",
]  # fmt: skip
