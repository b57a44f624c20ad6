"""Makers of elementwise operations."""

from __future__ import annotations

import numpy as np
from tgraph.compiler.ir import primitive_named
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import DType, bool_, int64

from .bounds import ABOVE_ONE, LARGEST_ARGUMENT, SMOOTH
from .program import DTYPES, Program, Unfit, Value

JUMPS = (p.floor, p.ceil, p.round_, p.trunc, p.sign)
COMPARISONS = (p.eq, p.ne, p.lt, p.le, p.gt, p.ge)


def is_number(value: Value) -> bool:
    return not value.is_bool


def is_float(value: Value) -> bool:
    return value.is_float


def tame(program: Program, value: Value, largest: float) -> Value:
    """`value`, squeezed into [-largest, largest] where it is beyond."""
    if value.bound <= largest:
        return value
    squeezed = program.op(p.tanh, value)
    if largest >= 1:
        return squeezed
    return program.op(p.mul, squeezed, program.const(0.5, value.dtype))


def at_least_one(program: Program, value: Value) -> Value:
    """`value` squared, plus 1."""
    value = tame(program, value, 8)
    square = program.op(p.mul, value, value)
    return program.op(p.add, square, program.const(1.0, value.dtype))


def smooth(program: Program) -> None:
    name = program.pick(SMOOTH)
    value = tame(program, program.draw(is_float), LARGEST_ARGUMENT[name])
    program.keep(program.op(primitive_named(name), value))


def rootlike(program: Program) -> None:
    value = at_least_one(program, program.draw(is_float))
    program.keep(program.op(primitive_named(program.pick(ABOVE_ONE)), value))


def plain(program: Program) -> None:
    value = program.draw(is_number)
    prim = program.pick((p.neg, p.abs_, p.copy))
    if prim is p.neg and value.dtype.kind == "uint":
        raise Unfit
    program.keep(program.op(prim, value))


def jump(program: Program) -> None:
    value = program.draw(lambda v: v.is_float and v.exact)
    program.keep(program.op(program.pick(JUMPS), value))


def squash(program: Program) -> None:
    program.keep(program.op(p.tanh, program.draw(is_float)))


def arithmetic(program: Program) -> None:
    value = program.draw(is_number)
    other = program.partner(value)
    prim = program.pick((p.add, p.sub, p.mul, p.maximum, p.minimum))
    pair = (value, other) if program.choose(2) else (other, value)
    program.keep(program.op(prim, *pair))


def divide(program: Program) -> None:
    value = program.draw(is_float)
    divisor = at_least_one(program, program.partner(value))
    program.keep(program.op(program.pick((p.div, p.atan2)), value, divisor))


def power(program: Program) -> None:
    """Powers of floats of at least 1, and of integers."""
    value = program.draw(is_number)
    if value.is_float:
        base = at_least_one(program, tame(program, value, 2))
        exponent = program.pick((0.0, 0.5, 0.75, 1.0, 2.0, -1.0, -0.5, 3.0))
        largest = base.bound ** max(exponent, 0.0)
        error = 3 * largest * (base.error + base.bound * 1e-6)
        operands = (base, program.const(exponent, value.dtype))
        node = program.build.apply(p.pow_, [each.node for each in operands])
        program.keep(program.known(node, largest, error, 60))
        return
    exponent = program.const(program.choose(4), value.dtype)
    node = program.build.apply(p.pow_, [value.node, exponent.node])
    program.keep(program.known(node, float("inf"), 0.0, 0))


def floored_division(program: Program) -> None:
    """Floor division and remainder, of exact values by ones that are not 0."""
    value = program.draw(lambda v: not v.is_bool and v.exact)
    other = program.partner(value, lambda v: v.exact)
    if value.is_float:
        one = program.const(0.5, value.dtype)
        divisor = program.op(p.maximum, program.op(p.abs_, other), one)
        if program.choose(2):
            divisor = program.op(p.neg, divisor)
    else:
        divisor = program.op(p.bitwise_or, other, program.const(1, value.dtype))
    program.keep(program.op(program.pick((p.floor_divide, p.remainder)), value, divisor))


def bits(program: Program) -> None:
    value = program.draw(lambda v: v.is_integer or v.is_bool)
    if program.choose(4) == 0:
        program.keep(program.op(p.bitwise_not, value))
        return
    prim = program.pick((p.bitwise_and, p.bitwise_or, p.bitwise_xor))
    program.keep(program.op(prim, value, program.partner(value)))


def shift(program: Program) -> None:
    """By anything: beyond the width nothing is left but the sign."""
    value = program.draw(lambda v: v.is_integer)
    by = program.partner(value)
    if program.choose(2):
        by = program.const(program.pick((0, 1, 3, 7, 31, 40)), value.dtype)
    program.keep(program.op(program.pick((p.shift_left, p.shift_right)), value, by))


def compare(program: Program) -> None:
    value = program.draw(lambda v: v.exact)
    other = program.partner(value, lambda v: v.exact)
    program.keep(program.op(program.pick(COMPARISONS), value, other))


def classify(program: Program) -> None:
    value = program.draw(is_float)
    program.keep(program.op(program.pick((p.isnan, p.isinf)), value))


def logic(program: Program) -> None:
    value = program.draw(lambda v: v.is_bool)
    if program.choose(3) == 0:
        program.keep(program.op(p.logical_not, value))
        return
    prim = program.pick((p.logical_and, p.logical_or, p.logical_xor))
    program.keep(program.op(prim, value, program.partner(value)))


def where(program: Program) -> None:
    value = program.draw()
    other = program.partner(value)
    if program.choose(2):
        value, other = other, value
    shape = np.broadcast_shapes(value.shape, other.shape)
    conditions = [v for v in program.values if v.is_bool and program.broadcasts(v.shape, shape)]
    if conditions:
        condition = program.pick(conditions)
    else:
        exact = program.draw(lambda v: v.exact and program.broadcasts(v.shape, shape))
        condition = program.op(p.ge, exact, program.const(0, exact.dtype))
    program.keep(program.op(p.where, condition, value, other))


def fits_cast(value: Value, dtype: DType) -> bool:
    """Whether a cast is defined and alike everywhere: floats must fit into integers."""
    if dtype.kind == "float":
        return True
    if not value.is_float:
        return True
    if not value.exact:
        return False
    return dtype is bool_ or (dtype.is_signed and value.bound < np.iinfo(dtype.numpy).max)


def cast(program: Program) -> None:
    value = program.draw()
    dtype: DType = program.pick(DTYPES)
    if not fits_cast(value, dtype):
        raise Unfit
    program.keep(program.op(p.cast, value, dtype=dtype))


def _element(program: Program, row: Value, at: int) -> Value:
    part = program.op(p.slice_, row, starts=(at,), stops=(at + 1,), steps=(1,))
    return program.op(p.reshape, part, shape=())


def random_number(program: Program) -> None:
    """Uniform random floats, the way `rand` makes them of random bits."""
    state = program.array(np.array([program.choose(50), 7]))
    shape = tuple(program.pick((1, 3, 8, 17)) for _ in range(program.choose(4)))
    key, counter = (_element(program, state, at) for at in range(2))
    for _ in range(program.choose(3)):  # drawn before
        counter = program.op(p.add, counter, program.const(1, int64))
    word = program.op(p.random_bits, key, counter, shape=shape)
    holds = program.op(p.ge, word, program.const(0, word.dtype))
    word = program.op(p.require, holds, word, message="a word below zero")
    top = program.op(p.shift_right, word, program.const(8, word.dtype), bound=2.0**24)
    dtype = program.pick((np.float32, np.float64))
    wide = program.op(p.cast, top, dtype=_dtype(dtype), bound=1.0)  # scaled by the next line
    scaled = program.build.apply(p.mul, [wide.node, program.const(2.0**-24, wide.dtype).node])
    program.keep(program.known(scaled, 1.0, 1e-6, 60))


def _dtype(numpy_type: type) -> DType:
    return next(dtype for dtype in DTYPES if dtype.numpy == np.dtype(numpy_type))


MAKERS = (
    smooth, smooth, rootlike, plain, jump, squash, arithmetic, arithmetic, arithmetic, arithmetic,
    divide, power, floored_division, bits, shift, compare, classify, logic, where, where, cast,
    random_number,
)  # fmt: skip
