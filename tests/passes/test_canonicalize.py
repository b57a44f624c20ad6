"""Canonical forms: their text, and that not one bit of a value changes."""

from functools import partial

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.canonicalize import RULES, loses_nothing
from tgraph.compiler.passes.rewrite import apply_rules
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import (
    REAL_DTYPES,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

canonicalize = partial(apply_rules, rules=RULES)


def three(make):
    """x, y: float32[3]"""
    return make.input(3), make.input(3)


CASES = {
    "constant_to_the_right": (
        lambda m: m.mul(m.number(2), three(m)[0]),
        "%0 = full(dtype=float32, shape=(), value=2.0) | %1 = mul(%x, %0) | return %1",
    ),
    "comparison_turned": (
        lambda m: m.lt(m.number(2.0), three(m)[0]),
        "%0 = full(dtype=float32, shape=(), value=2.0) | %1 = gt(%x, %0) | return %1",
    ),
    "sub_constant": (
        lambda m: m.sub(three(m)[0], m.number(0.5)),
        "%0 = full(dtype=float32, shape=(), value=-0.5) | %1 = add(%x, %0) | return %1",
    ),
    "sub_negative": (
        lambda m: (lambda x, y: m.sub(x, m.neg(y)))(*three(m)),
        "%0 = add(%x, %y) | return %0",
    ),
    "add_negative_left": (
        lambda m: (lambda x, y: m.add(m.neg(x), y))(*three(m)),
        "%0 = sub(%y, %x) | return %0",
    ),
    "swapped_operands_are_one": (
        lambda m: (lambda x, y: m.mul(m.add(x, y), m.add(y, x)))(*three(m)),
        "%0 = add(%x, %y) | %1 = mul(%0, %0) | return %1",
    ),
    "operands_in_the_order_in_which_they_were_made": (
        lambda m: (
            lambda x, y: (lambda first, second: m.mul(second, first))(
                m.exp(m.sub(x, m.number(0.5))), m.exp(y)
            )
        )(*three(m)),
        "%0 = full(dtype=float32, shape=(), value=-0.5) | %1 = add(%x, %0) | %2 = exp(%1) "
        "| %3 = exp(%y) | %4 = mul(%2, %3) | return %4",
    ),
    "copy": (lambda m: m.copy(m.copy(three(m)[0])), "return %x"),
    "reshape_to_its_own_shape": (
        lambda m: m.exp(m.reshape(three(m)[0], shape=(3,))),
        "%0 = exp(%x) | return %0",
    ),
    "broadcast_to_its_own_shape": (
        lambda m: m.broadcast(three(m)[0], shape=(3,)),
        "return %x",
    ),
    "needless_broadcast": (
        lambda m: m.add(m.input(4, 3), m.broadcast(m.input(3), shape=(4, 3))),
        "%0 = add(%x, %y) | return %0",
    ),
    "needed_broadcast": (
        lambda m: m.exp(m.broadcast(m.input(3), shape=(4, 3))),
        "%0 = broadcast(%x; shape=(4, 3)) | %1 = exp(%0) | return %1",
    ),
    "number_of_full_shape": (
        lambda m: m.add(m.input(4, 3), m.full(shape=(4, 3), value=1.0, dtype=float32)),
        "%0 = full(dtype=float32, shape=(), value=1.0) | %1 = add(%x, %0) | return %1",
    ),
    "where_not": (
        lambda m: m.where(m.logical_not(m.input(3, dtype=bool_)), m.input(3), m.input(3)),
        "%0 = where(%x, %z, %y) | return %0",
    ),
    "reshapes": (
        lambda m: m.reshape(m.reshape(m.input(2, 6), shape=(12,)), shape=(3, 4)),
        "%0 = reshape(%x; shape=(3, 4)) | return %0",
    ),
    "reshape_back": (
        lambda m: m.reshape(m.reshape(m.input(2, 6), shape=(12,)), shape=(2, 6)),
        "return %x",
    ),
    "permutes": (
        lambda m: m.permute(m.permute(m.input(2, 3, 4), axes=(1, 2, 0)), axes=(2, 0, 1)),
        "return %x",
    ),
    "permutes_into_one": (
        lambda m: m.permute(m.permute(m.input(2, 3, 4), axes=(1, 2, 0)), axes=(1, 0, 2)),
        "%0 = permute(%x; axes=(2, 1, 0)) | return %0",
    ),
    "permute_of_ones": (
        lambda m: m.permute(m.input(1, 3, 4), axes=(1, 0, 2)),
        "%0 = reshape(%x; shape=(3, 1, 4)) | return %0",
    ),
    "broadcast_of_a_reshape_that_adds_axes": (
        lambda m: m.broadcast(m.reshape(m.input(3), shape=(1, 3)), shape=(4, 3)),
        "%0 = broadcast(%x; shape=(4, 3)) | return %0",
    ),
    "broadcasts": (
        lambda m: m.broadcast(m.broadcast(m.input(3, 1), shape=(3, 4)), shape=(2, 3, 4)),
        "%0 = broadcast(%x; shape=(2, 3, 4)) | return %0",
    ),
    "broadcast_by_ones": (
        lambda m: m.broadcast(m.input(3), shape=(1, 3)),
        "%0 = reshape(%x; shape=(1, 3)) | return %0",
    ),
    "whole_slice": (
        lambda m: m.slice(m.input(3, 4), starts=(0, 0), stops=(3, 4), steps=(1, 1)),
        "return %x",
    ),
    "slices": (
        lambda m: m.slice(
            m.slice(m.input(20), starts=(3,), stops=(19,), steps=(2,)),
            starts=(1,), stops=(8,), steps=(3,),
        ),
        "%0 = slice(%x; starts=(5,), steps=(6,), stops=(18,)) | return %0",
    ),
    "slice_stop": (
        lambda m: m.slice(m.input(9), starts=(1,), stops=(9,), steps=(3,)),
        "%0 = slice(%x; starts=(1,), steps=(3,), stops=(8,)) | return %0",
    ),
    "slice_of_one": (
        lambda m: m.slice(m.input(9), starts=(2,), stops=(4,), steps=(5,)),
        "%0 = slice(%x; starts=(2,), steps=(1,), stops=(3,)) | return %0",
    ),
    "slice_of_nothing": (
        lambda m: m.slice(m.input(9), starts=(4,), stops=(2,), steps=(1,)),
        "%0 = full(dtype=float32, shape=(0,), value=0.0) | return %0",
    ),
    "diagonal": (
        lambda m: m.diagonal(m.input(3, 4, 6), offset=1),
        "%0 = reshape(%x; shape=(3, 24)) "
        "| %1 = slice(%0; starts=(0, 1), steps=(1, 7), stops=(3, 23)) | return %1",
    ),
    "diagonal_below": (
        lambda m: m.diagonal(m.input(4, 2), offset=-1),
        "%0 = reshape(%x; shape=(8,)) | %1 = slice(%0; starts=(2,), steps=(3,), stops=(6,)) "
        "| return %1",
    ),
    "diagonal_beyond": (
        lambda m: m.diagonal(m.input(4, 2), offset=2),
        "%0 = full(dtype=float32, shape=(0,), value=0.0) | return %0",
    ),
    "flips": (
        lambda m: m.flip(m.flip(m.input(2, 3, 1), axes=(0, 1)), axes=(1, 2)),
        "%0 = flip(%x; axes=(0,)) | return %0",
    ),
    "flip_back": (lambda m: m.flip(m.flip(m.input(3), axes=(0,)), axes=(0,)), "return %x"),
    "flip_of_ones": (lambda m: m.flip(m.input(1, 3), axes=(0,)), "return %x"),
    "pad_by_nothing": (
        lambda m: m.pad(m.input(3), low=(0,), high=(0,), interior=(0,), value=1.0),
        "return %x",
    ),
    "pads": (
        lambda m: m.pad(
            m.pad(m.input(3), low=(1,), high=(0,), interior=(0,), value=0.0),
            low=(2,), high=(3,), interior=(0,), value=0.0,
        ),
        "%0 = pad(%x; high=(3,), interior=(0,), low=(3,), value=0.0) | return %0",
    ),
    "concatenate_one": (lambda m: m.concatenate(m.input(3), axis=0), "return %x"),
    "concatenate_empty": (
        lambda m: m.concatenate(m.input(0), m.input(3), m.input(0), m.input(2), axis=0),
        "%0 = concatenate(%y, %w; axis=0) | return %0",
    ),
    "update_everything": (
        lambda m: m.slice_update(m.input(3), m.input(3), starts=(0,), stops=(3,), steps=(1,)),
        "return %y",
    ),
    "update_nothing": (
        lambda m: m.slice_update(m.input(3), m.input(0), starts=(1,), stops=(1,), steps=(1,)),
        "return %x",
    ),
    "reduce_ones": (
        lambda m: m.max(m.input(3, 1), axes=(1,), keepdims=False),
        "%0 = reshape(%x; shape=(3,)) | return %0",
    ),
    "reduce_no_axes": (lambda m: m.prod(m.input(3), axes=(), keepdims=False), "return %x"),
    "sum_no_axes": (lambda m: m.sum(m.input(3, dtype=int8), axes=(), keepdims=True), "return %x"),
    "argmax_of_one": (
        lambda m: m.argmax(m.input(3, 1), axes=(1,), keepdims=True),
        "%0 = full(dtype=int64, shape=(3, 1), value=0) | return %0",
    ),
    "cast_to_itself": (lambda m: m.cast(m.input(3), dtype=float32), "return %x"),
    "cast_there_and_back": (
        lambda m: m.cast(m.cast(m.input(3, dtype=bfloat16), dtype=float32), dtype=bfloat16),
        "return %x",
    ),
    "cast_in_one_step": (
        lambda m: m.cast(m.cast(m.input(3, dtype=int16), dtype=int64), dtype=int8),
        "%0 = cast(%x; dtype=int8) | return %0",
    ),
    "casts_that_lose": (
        lambda m: m.cast(m.cast(m.input(3), dtype=float16), dtype=float32),
        "%0 = cast(%x; dtype=float16) | %1 = cast(%0; dtype=float32) | return %1",
    ),
    "bitcasts_in_one_step": (
        lambda m: m.bitcast(m.bitcast(m.input(3, dtype=int32), dtype=float32), dtype=int32),
        "return %x",
    ),
    "bitcasts_that_lose": (
        lambda m: m.bitcast(m.bitcast(m.input(3, dtype=int16), dtype=bfloat16), dtype=float16),
        "%0 = bitcast(%x; dtype=bfloat16) | %1 = bitcast(%0; dtype=float16) | return %1",
    ),
    "uniform_constant": (
        lambda m: m.add(m.input(2), m.constant(value=np.float32([3, 3]))),
        "%0 = full(dtype=float32, shape=(), value=3.0) | %1 = add(%x, %0) | return %1",
    ),
    "zeros_of_both_signs": (
        lambda m: m.add(m.input(2), m.constant(value=np.float32([0.0, -0.0]))),
        "%0 = constant(value=[0.0, -0.0]) | %1 = add(%x, %0) | return %1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_form(name):
    make, (write, expected) = Maker(), CASES[name]
    after = assert_pass_keeps_values(canonicalize, make.graph(write(make)))
    assert body(after) == expected
    assert body(canonicalize(after)) == expected


@pytest.mark.parametrize("value, dtype, expected", [
    (1, float32, "1.0"), (True, int64, "1"), (0.1, float32, "0.10000000149011612"),
    (300, uint8, "44"), (-0.0, float64, "-0.0"), (2, bool_, "True"), (1e300, float32, "inf"),
])  # fmt: skip
def test_numbers_are_what_their_dtype_makes_of_them(value, dtype, expected):
    make = Maker()
    after = canonicalize(make.graph(make.number(value, dtype)))
    assert body(after) == f"%0 = full(dtype={dtype.name}, shape=(), value={expected}) | return %0"


@pytest.mark.parametrize("shape", [(3, 4), (2, 1, 3)])
def test_a_nested_pad_of_another_value_stays(shape):
    make = Maker()
    ones, zeros = (1,) * len(shape), (0,) * len(shape)
    inner = make.pad(make.input(*shape), low=ones, high=zeros, interior=zeros, value=0.0)
    outer = make.pad(inner, low=ones, high=zeros, interior=zeros, value=-0.0)
    after = assert_pass_keeps_values(canonicalize, make.graph(outer))
    assert [node.primitive for node in after.nodes].count(p.pad) == 2


def test_lossless_casts_are_lossless():
    """Every value of a small type, or the corners of a large one, survives there and back."""
    for source in REAL_DTYPES:
        if source.itemsize <= 2:
            every = np.arange(2 ** (8 * source.itemsize), dtype=f"u{source.itemsize}")
            values = (every > 0) if source is bool_ else every.view(source.numpy)
        elif source.is_floating_point:
            values = np.array([1 + np.finfo(source.numpy).eps, np.finfo(source.numpy).max])
            values = values.astype(source.numpy)
        else:
            info = np.iinfo(source.numpy)
            values = np.array([info.min, info.max, info.max - 1], source.numpy)
        for target in REAL_DTYPES:
            there = evaluate("cast", [values], {"dtype": target})
            with np.errstate(invalid="ignore"):
                wide, wanted = there.astype(np.longdouble), values.astype(np.longdouble)
                kept = (wide == wanted) | ((wide != wide) & (wanted != wanted))
            assert kept.all() == loses_nothing(source, target), (source, target)


def test_rewritten_nodes_keep_their_line():
    make = Maker()
    x = make.input(3)
    one = make.number(1.0)
    difference = make.sub(x, one)
    after = canonicalize(make.graph(difference))
    assert after.outputs[0].primitive is p.add
    assert after.outputs[0].where == difference.where and difference.where.line > 0
    assert after.outputs[0].inputs[1].where == difference.where


def test_integers_of_int32():
    make = Maker()
    x = make.input(5, dtype=int32)
    assert_pass_keeps_values(canonicalize, make.graph(make.sub(x, make.number(-(2**31), int32))))
