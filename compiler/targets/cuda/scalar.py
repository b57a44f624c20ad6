"""The scalar template of every elementwise primitive, as a CUDA C expression.

`TEMPLATES[name](args, dtype)` gives the expression for one element; `dtype` is the type of the
operands, which are names or literals. What takes more than an expression is a function of the
device library (`device_library`), called `tg_...`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....runtime.dtypes import DType, float32, float64

Template = Callable[[Sequence[str], DType], str]

_C_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float64": "double",
}


def c_type(dtype: DType) -> str:
    """The type of a value of `dtype` in a register; 16-bit floats are computed as float."""
    return _C_TYPES.get(dtype.name, "float")


def memory_type(dtype: DType) -> str:
    """The type of an element in memory."""
    if dtype.kind == "bool":
        return "unsigned char"
    return "unsigned short" if dtype.is_half else c_type(dtype)


def literal(value: Any, dtype: DType) -> str:
    """A constant of `dtype`, exact."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind != "float":
        return _integer_literal(int(value), dtype)
    if dtype is float64:
        return _float_literal(float(value), repr(float(value)), "__longlong_as_double({}LL)", 52)
    single = np.float32(value)
    return _float_literal(float(single), f"{single!s}f", "__int_as_float({})", 23)


def _float_literal(value: float, text: str, from_bits: str, mantissa: int) -> str:
    if math.isfinite(value):
        return f"({text})" if text.startswith("-") else text
    exponent = (1 << (8 if mantissa == 23 else 11)) - 1
    quiet = 1 << (mantissa - 1) if math.isnan(value) else 0
    bits = from_bits.format(hex(exponent << mantissa | quiet))
    return f"(-{bits})" if value < 0 else bits


def _integer_literal(value: int, dtype: DType) -> str:
    suffix = ("u" if dtype.kind == "uint" else "") + ("LL" if dtype.itemsize == 8 else "")
    if value >= 0:
        return f"{value}{suffix}"
    # The most negative number is no literal: its absolute value has no type.
    return f"({value + 1}{suffix} - 1)"


def _float(dtype: DType) -> bool:
    return dtype.kind == "float"


def _arithmetic(sign: str, alone: str = "") -> Template:
    """`alone` is the function that rounds on its own.

    Sums do: contracted into an fma, a value would differ from kernel to kernel.
    """

    def template(args: Sequence[str], dtype: DType) -> str:
        a, b = args
        if not _float(dtype):
            return _wrapping(f"{{}} {sign} {{}}", args, dtype)
        if not alone:
            return f"{a} {sign} {b}"
        return f"__{'d' if dtype is float64 else 'f'}{alone}_rn({a}, {b})"

    return template


def _wrapping(form: str, args: Sequence[str], dtype: DType) -> str:
    """Integer arithmetic that wraps: in C only that of unsigned types does."""
    wide = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
    return f"({c_type(dtype)})({form.format(*(f'({wide}){each}' for each in args))})"


def _math(name: str) -> Template:
    """A function of the CUDA math library, whose float variants end in f."""

    def template(args: Sequence[str], dtype: DType) -> str:
        return f"{name}{'' if dtype is float64 else 'f'}({', '.join(args)})"

    return template


def _library(name: str) -> Template:
    """A function of our device library, a template over the type."""

    def template(args: Sequence[str], dtype: DType) -> str:
        return f"tg_{name}<{c_type(dtype)}>({', '.join(args)})"

    return template


def _neg(args: Sequence[str], dtype: DType) -> str:
    return f"-{args[0]}" if _float(dtype) else _wrapping("0u - {}", args, dtype)


def _abs(args: Sequence[str], dtype: DType) -> str:
    if _float(dtype):
        return _math("fabs")(args, dtype)
    return args[0] if dtype.kind == "uint" else f"{args[0]} < 0 ? {_neg(args, dtype)} : {args[0]}"


def _sign(args: Sequence[str], dtype: DType) -> str:
    """0 for NaN and for both zeros."""
    zero = literal(0, dtype)
    return f"({c_type(dtype)})(({args[0]} > {zero}) - ({args[0]} < {zero}))"


def _div(args: Sequence[str], dtype: DType) -> str:
    return f"{args[0]} / {args[1]}"


def _reciprocal(args: Sequence[str], dtype: DType) -> str:
    return f"{literal(1, dtype)} / {args[0]}"


def _rsqrt(args: Sequence[str], dtype: DType) -> str:
    return _reciprocal([_math("sqrt")(args, dtype)], dtype)


_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {"and": "&&", "or": "||", "xor": "!="}
_BITS = {"and": "&", "or": "|", "xor": "^"}


def _infix(sign: str) -> Template:
    def template(args: Sequence[str], dtype: DType) -> str:
        return f"{args[0]} {sign} {args[1]}"

    return template


def _isnan(args: Sequence[str], dtype: DType) -> str:
    return f"{args[0]} != {args[0]}"


def _isinf(args: Sequence[str], dtype: DType) -> str:
    return f"{_math('fabs')(args, dtype)} == {literal(math.inf, dtype)}"


def _not(args: Sequence[str], dtype: DType) -> str:
    return f"!{args[0]}" if dtype.kind == "bool" else f"({c_type(dtype)})(~{args[0]})"


def _bits(sign: str) -> Template:
    def template(args: Sequence[str], dtype: DType) -> str:
        return f"({c_type(dtype)})({args[0]} {sign} {args[1]})"

    return template


def _extreme(name: str) -> Template:
    """NaN where either is NaN."""

    def template(args: Sequence[str], dtype: DType) -> str:
        if dtype.kind == "bool":
            return f"{args[0]} {'||' if name == 'maximum' else '&&'} {args[1]}"
        return _library(name)(args, dtype)

    return template


def _where(args: Sequence[str], dtype: DType) -> str:
    return f"{args[0]} ? {args[1]} : {args[2]}"


def _copy(args: Sequence[str], dtype: DType) -> str:
    return args[0]


TEMPLATES: dict[str, Template] = {
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
    "round": _math("rint"),
    "isnan": _isnan,
    "isinf": _isinf,
    "logical_not": _not,
    "bitwise_not": _not,
    "copy": _copy,
    "add": _arithmetic("+", "add"),
    "sub": _arithmetic("-", "sub"),
    "mul": _arithmetic("*"),
    "div": _div,
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "where": _where,
    "pow": lambda args, dtype: (
        _math("pow")(args, dtype) if _float(dtype) else _library("pow")(args, dtype)
    ),
    **{name: _library(name) for name in ("floor_divide", "remainder", "shift_left", "shift_right")},
    **{name: _infix(sign) for name, sign in _COMPARE.items()},
    **{f"logical_{name}": _infix(sign) for name, sign in _LOGIC.items()},
    **{f"bitwise_{name}": _bits(sign) for name, sign in _BITS.items()},
    **{
        name: _math(name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tan", "asin"),
            *("acos", "atan", "sinh", "cosh", "tanh", "erf", "atan2", "floor", "ceil", "trunc"),
        )
    },
}  # fmt: skip


def convert(value: str, source: DType, target: DType) -> str:
    """A value of `source`'s compute type as `target`, rounded to it, in its compute type."""
    if target.kind == "bool":
        return f"{value} != {literal(0, source)}"
    if target.kind != "float":
        if source.kind == "float":
            # Values out of range wrap, where a direct conversion saturates.
            value = f"tg_to_integer({value})"
        return f"({c_type(target)}){value}"
    return round_half(value if source is target else f"({c_type(target)}){value}", target)


def bitcast(value: str, source: DType, target: DType) -> str:
    """The bits that `value` has in memory as `target`, in its compute type."""
    if source.kind == "bool":
        bits = f"(unsigned char){value}"
    else:
        bits = f"{_BITS_OF[source.name]}({value})" if source.name in _BITS_OF else value
        bits = narrow(bits, source)
    if target.name in _FROM_BITS:
        return f"{_FROM_BITS[target.name]}({bits})"
    return widen(f"({memory_type(target)})({bits})", target)


_BITS_OF = {"float32": "__float_as_int", "float64": "__double_as_longlong"}
_FROM_BITS = {"float32": "__int_as_float", "float64": "__longlong_as_double"}


def round_half(value: str, target: DType) -> str:
    """A float rounded to the precision of a 16-bit type; other types pass."""
    return widen(narrow(value, target), target) if target.is_half else value


def narrow(value: str, dtype: DType) -> str:
    """A value as it is stored in memory."""
    return f"{_half(dtype)}_from_float({value})" if dtype.is_half else value


def widen(value: str, dtype: DType) -> str:
    """A value loaded from memory in its compute type."""
    if dtype.kind == "bool":
        return f"{value} != 0"
    return f"{_half(dtype)}_to_float({value})" if dtype.is_half else value


def _half(dtype: DType) -> str:
    return "half" if dtype.name == "float16" else "bfloat"


__all__ = [
    "TEMPLATES", "bitcast", "c_type", "convert", "float32", "literal", "memory_type", "narrow",
    "round_half", "widen",
]  # fmt: skip
