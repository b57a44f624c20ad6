"""Algebra: what is rewritten, what must not be, and the values over special numbers."""

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, assert_same, body, inf, nan
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.simplify import simplify
from tgraph.runtime.dtypes import bool_, float16, float32, float64, int32, int64, uint8

N = 64  # every case meets many pairs of special values


def f(make):
    return make.input(N)


def i(make):
    return make.input(N, dtype=int32)


def b(make):
    return make.input(N, dtype=bool_)


def twice(write):
    """`write(make, x, x)` of one float input."""
    return lambda m: (lambda x: write(m, x, x))(f(m))


def full(value, dtype="float32", shape="()"):
    return f"full(dtype={dtype}, shape={shape}, value={value})"


# name: (how to write it, the body after the pass)
CASES = {
    "add_negative_zero": (lambda m: m.add(f(m), m.number(-0.0)), "return %x"),
    "what_is_known_to_hold": (
        lambda m: m.require(m.number(True, bool_), f(m), message="wrong"),
        "return %x",
    ),
    "subtract_zero": (lambda m: m.sub(f(m), m.number(0.0)), "return %x"),
    "divide_integer_by_one": (lambda m: m.floor_divide(i(m), m.number(1, int32)), "return %x"),
    "integer_remainder_by_one": (
        lambda m: m.remainder(i(m), m.number(1, int32)),
        f"%0 = {full(0, 'int32', f'({N},)')} | return %0",
    ),
    "add_integer_zero": (lambda m: m.add(i(m), m.number(0, int32)), "return %x"),
    "add_zero_to_what_is_no_negative_zero": (
        lambda m: m.add(m.abs(f(m)), m.number(0.0)), "%0 = abs(%x) | return %0"),
    "times_one": (lambda m: m.mul(m.number(1), f(m)), "return %x"),
    "times_one_broadcast": (
        lambda m: m.mul(m.input(3), m.full(shape=(2, 3), value=1, dtype=float32)),
        "%0 = broadcast(%x; shape=(2, 3)) | return %0"),
    "divided_by_one": (lambda m: m.div(f(m), m.number(1)), "return %x"),
    "and_true": (lambda m: m.logical_and(b(m), m.number(True, bool_)), "return %x"),
    "or_true": (
        lambda m: m.logical_or(b(m), m.number(True, bool_)),
        f"%0 = {full(True, 'bool', '(64,)')} | return %0"),
    "neg_neg": (lambda m: m.neg(m.neg(f(m))), "return %x"),
    "not_not": (lambda m: m.logical_not(m.logical_not(b(m))), "return %x"),
    "floor_floor": (lambda m: m.floor(m.floor(f(m))), "%0 = floor(%x) | return %0"),
    "max_of_equals": (twice(lambda m, x, y: m.maximum(x, y)), "return %x"),
    "max_with_lowest": (lambda m: m.maximum(f(m), m.number(-inf)), "return %x"),
    "min_with_highest": (lambda m: m.minimum(i(m), m.number(2**31 - 1, int32)), "return %x"),
    "max_max": (
        lambda m: (lambda x, y: m.maximum(m.maximum(x, y), y))(f(m), f(m)),
        "%0 = maximum(%x, %y) | return %0"),
    "integer_minus_itself": (
        lambda m: (lambda x: m.sub(x, x))(i(m)), f"%0 = {full(0, 'int32', '(64,)')} | return %0"),
    "negated_integer_difference": (
        lambda m: m.neg(m.sub(i(m), i(m))), "%0 = sub(%y, %x) | return %0"),
    "negative_zero_minus": (
        lambda m: m.sub(m.number(-0.0), f(m)), "%0 = neg(%x) | return %0"),
    "abs_neg": (lambda m: m.abs(m.neg(f(m))), "%0 = abs(%x) | return %0"),
    "cos_neg": (lambda m: m.cos(m.neg(f(m))), "%0 = cos(%x) | return %0"),
    "sin_neg": (lambda m: m.sin(m.neg(f(m))), "%0 = sin(%x) | %1 = neg(%0) | return %1"),
    "erf_of_a_negative_multiple": (
        lambda m: m.mul(m.erf(m.mul(f(m), m.number(-3))), m.number(0.5)),
        f"%0 = {full(3.0)} | %1 = mul(%x, %0) | %2 = erf(%1) | %3 = {full(-0.5)} | "
        "%4 = mul(%2, %3) | return %4"),
    "integer_times_zero": (
        lambda m: m.mul(i(m), m.number(0, int32)),
        f"%0 = {full(0, 'int32', '(64,)')} | return %0"),
    "times_minus_one": (lambda m: m.mul(f(m), m.number(-1)), "%0 = neg(%x) | return %0"),
    "product_of_negated": (
        lambda m: m.mul(m.neg(f(m)), m.neg(f(m))), "%0 = mul(%x, %y) | return %0"),
    "quotient_of_negated": (
        lambda m: m.div(m.neg(f(m)), m.number(3)),
        f"%0 = {full(-3.0)} | %1 = div(%x, %0) | return %1"),
    "divided_by_four": (
        lambda m: m.div(f(m), m.number(-4)),
        f"%0 = {full(-0.25)} | %1 = mul(%x, %0) | return %1"),
    "one_over": (lambda m: m.div(m.number(1), f(m)), "%0 = reciprocal(%x) | return %0"),
    "one_over_root": (
        lambda m: m.div(m.number(1), m.sqrt(f(m))), "%0 = rsqrt(%x) | return %0"),
    "integers_together": (
        lambda m: m.add(m.add(i(m), m.number(2**31 - 1, int32)), m.number(2, int32)),
        f"%0 = {full(-2147483647, 'int32')} | %1 = add(%x, %0) | return %1"),
    "not_equal": (lambda m: m.logical_not(m.eq(f(m), f(m))), "%0 = ne(%x, %y) | return %0"),
    "not_less_integer": (
        lambda m: m.logical_not(m.lt(i(m), i(m))), "%0 = ge(%x, %y) | return %0"),
    "differs_from_itself": (
        twice(lambda m, x, y: m.ne(x, y)), "%0 = isnan(%x) | return %0"),
    "integer_equals_itself": (
        lambda m: (lambda x: m.eq(x, x))(i(m)), f"%0 = {full(True, 'bool', '(64,)')} | return %0"),
    "bool_equals_true": (lambda m: m.eq(b(m), m.number(True, bool_)), "return %x"),
    "bool_equals_false": (
        lambda m: m.eq(b(m), m.number(False, bool_)), "%0 = logical_not(%x) | return %0"),
    "integers_are_finite": (
        lambda m: m.isnan(m.cast(i(m), dtype=float32)),
        f"%0 = {full(False, 'bool', '(64,)')} | return %0"),
    "xor_with_itself": (
        lambda m: (lambda x: m.bitwise_xor(x, x))(i(m)),
        f"%0 = {full(0, 'int32', '(64,)')} | return %0"),
    "xor_true": (
        lambda m: m.logical_xor(b(m), m.number(True, bool_)), "%0 = logical_not(%x) | return %0"),
    "and_ones": (lambda m: m.bitwise_and(i(m), m.number(-1, int32)), "return %x"),
    "and_bytes": (
        lambda m: m.bitwise_and(m.input(N, dtype=uint8), m.number(255, uint8)), "return %x"),
    "and_none": (
        lambda m: m.bitwise_and(i(m), m.number(0, int32)),
        f"%0 = {full(0, 'int32', '(64,)')} | return %0"),
    "or_ones": (
        lambda m: m.bitwise_or(i(m), m.number(-1, int32)),
        f"%0 = {full(-1, 'int32', '(64,)')} | return %0"),
    "shift_by_nothing": (lambda m: m.shift_left(i(m), m.number(0, int32)), "return %x"),
    "where_equal": (
        lambda m: (lambda x: m.where(b(m), x, x))(f(m)), "return %x"),
    "where_true": (lambda m: m.where(m.number(True, bool_), f(m), f(m)), "return %x"),
    "where_of_bools": (
        lambda m: m.where(b(m), m.number(True, bool_), m.number(False, bool_)), "return %x"),
    "where_of_bools_turned": (
        lambda m: m.where(b(m), m.number(False, bool_), m.number(True, bool_)),
        "%0 = logical_not(%x) | return %0"),
    "where_in_where": (
        lambda m: (lambda c, x, y, z: m.where(c, m.where(c, x, y), z))(b(m), f(m), f(m), f(m)),
        "%0 = where(%x, %y, %w) | return %0"),
    "to_the_first": (lambda m: m.pow(f(m), m.number(1)), "return %x"),
    "to_the_zeroth": (
        lambda m: m.pow(f(m), m.number(0)), f"%0 = {full(1.0, shape='(64,)')} | return %0"),
    "square": (lambda m: m.pow(f(m), m.number(2)), "%0 = mul(%x, %x) | return %0"),
    "inverse": (lambda m: m.pow(f(m), m.number(-1)), "%0 = reciprocal(%x) | return %0"),
    "root_of_square": (
        lambda m: (lambda x: m.pow(m.mul(x, x), m.number(0.5)))(f(m)),
        "%0 = mul(%x, %x) | %1 = sqrt(%0) | return %1"),
    "inverse_root_of_abs": (
        lambda m: m.pow(m.abs(f(m)), m.number(-0.5)),
        "%0 = abs(%x) | %1 = rsqrt(%0) | return %1"),
    "sums_of_sums": (
        lambda m: m.sum(m.sum(m.input(2, 3, 4, dtype=int64), axes=(1,), keepdims=False),
                        axes=(1,), keepdims=True),
        "%0 = sum(%x; axes=(1, 2), keepdims=False) | %1 = reshape(%0; shape=(2, 1)) | return %1"),
    "max_of_max": (
        lambda m: m.max(m.max(m.input(2, 3, 4), axes=(2,), keepdims=True), axes=(0, 2),
                        keepdims=True),
        "%0 = max(%x; axes=(0, 2), keepdims=True) | return %0"),
    "sum_of_broadcast": (
        lambda m: m.sum(m.broadcast(m.input(3, dtype=int64), shape=(4, 3)), axes=(0,),
                        keepdims=False),
        f"%0 = {full(4, 'int64')} | %1 = mul(%x, %0) | return %1"),
    "max_of_broadcast": (
        lambda m: m.max(m.broadcast(m.input(3), shape=(4, 3)), axes=(0, 1), keepdims=False),
        "%0 = max(%x; axes=(0,), keepdims=False) | return %0"),
    "sum_of_ones": (
        lambda m: m.sum(m.full(shape=(1000, 1000), value=1.0, dtype=float32), axes=(0, 1),
                        keepdims=False),
        f"%0 = {full(1000000.0)} | return %0"),
    "read_what_was_written": (
        lambda m: m.slice(m.slice_update(m.input(6), m.input(2), starts=(1,), stops=(5,),
                                         steps=(2,)), starts=(1,), stops=(4,), steps=(2,)),
        "return %y"),
    "read_beside_what_was_written": (
        lambda m: m.slice(m.slice_update(m.input(6), m.input(2), starts=(1,), stops=(5,),
                                         steps=(2,)), starts=(0,), stops=(6,), steps=(2,)),
        "%0 = slice(%x; starts=(0,), steps=(2,), stops=(5,)) | return %0"),
    "written_twice": (
        lambda m: (lambda x, y, z: m.slice_update(
            m.slice_update(x, y, starts=(1,), stops=(3,), steps=(1,)), z,
            starts=(1,), stops=(3,), steps=(1,)))(m.input(6), m.input(2), m.input(2)),
        "%0 = slice_update(%x, %z; starts=(1,), steps=(1,), stops=(3,)) | return %0"),
    "slice_of_one_part": (
        lambda m: m.slice(m.concatenate(m.input(2, 3), m.input(2, 4), axis=1), starts=(0, 4),
                          stops=(2, 6), steps=(1, 1)),
        "%0 = slice(%y; starts=(0, 1), steps=(1, 1), stops=(2, 3)) | return %0"),
    "reshape_of_broadcast": (
        lambda m: m.reshape(m.broadcast(m.input(3, 1), shape=(3, 4)), shape=(3, 1, 4)),
        "%0 = reshape(%x; shape=(3, 1, 1)) | %1 = broadcast(%0; shape=(3, 1, 4)) | return %1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rewritten(name):
    make, (write, expected) = Maker(), CASES[name]
    rounded = name in ("inverse_root_of_abs", "inverse")
    after = assert_pass_keeps_values(simplify, make.graph(write(make)), rtol=2e-7 * rounded)
    assert body(after) == expected


# What looks like algebra and is not, for floats.
KEPT = {
    "add_zero": lambda m: m.add(f(m), m.number(0.0)),
    "zero_minus": lambda m: m.sub(m.number(0.0), f(m)),
    "minus_itself": twice(lambda m, x, y: m.sub(x, y)),
    "times_zero": lambda m: m.mul(f(m), m.number(0.0)),
    "equals_itself": twice(lambda m, x, y: m.eq(x, y)),
    "not_less": lambda m: m.logical_not(m.lt(f(m), f(m))),
    "divided_by_three": lambda m: m.div(f(m), m.number(3.0)),
    "divided_by_a_subnormal": lambda m: m.div(f(m), m.number(2.0**-140)),
    "divided_by_a_huge_power": lambda m: m.div(f(m), m.number(2.0**127)),
    "numbers_apart": lambda m: m.add(m.add(f(m), m.number(1e8)), m.number(-1e8)),
    "quotient_of_itself": twice(lambda m, x, y: m.div(x, y)),
    "floor_divide_by_one": lambda m: m.floor_divide(f(m), m.number(1.0)),
    "large_integer_to_half": lambda m: m.isinf(m.cast(i(m), dtype=float16)),
    "log_exp": lambda m: m.log(m.exp(f(m))),
    "max_of_zero": lambda m: m.maximum(f(m), m.number(0.0)),
    "negated_difference": lambda m: m.neg(m.sub(f(m), f(m))),
    "sum_of_many_halves": lambda m: m.sum(
        m.broadcast(m.input(1, dtype=float16), shape=(70001,)), axes=(0,), keepdims=False
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name):
    make = Maker()
    graph = make.graph(KEPT[name](make))
    after = assert_pass_keeps_values(simplify, graph)
    assert [node.primitive for node in after.nodes] == [node.primitive for node in graph.nodes]


@pytest.mark.parametrize("exponent", [3, 4])
@pytest.mark.parametrize("dtype", [float32, float64, int32])
def test_small_powers_are_products(exponent, dtype):
    make = Maker()
    x = make.input(N, dtype=dtype)
    graph = make.graph(make.pow(x, make.number(exponent, dtype)))
    after = assert_pass_keeps_values(simplify, graph, rtol=3e-7)
    assert {node.primitive for node in after.nodes} == {p.input_, p.mul}


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_half_powers_keep_their_values_at_the_ends(exponent):
    make = Maker()
    after = assert_pass_keeps_values(
        simplify, make.graph(make.pow(f(make), make.number(exponent))), rtol=3e-7
    )
    assert p.pow_ not in {node.primitive for node in after.nodes}
    x = np.zeros(N, np.float32)
    x[:4] = [-0.0, 0.0, -inf, nan]
    (got,) = interpret(after, [x])
    with np.errstate(all="ignore"):
        assert_same([got], [np.power(x, np.full(N, exponent, np.float32))])


def test_safer_logarithms_and_exponentials():
    make = Maker()
    x = f(make)
    one = make.number(1.0)
    graph = make.graph(make.log(make.add(one, x)), make.sub(make.exp(x), one))
    after = assert_pass_keeps_values(simplify, graph, rtol=1e-6)
    assert body(after) == "%0 = log1p(%x) | %1 = expm1(%x) | return %0, %1"
    small = np.full(N, 1e-9, np.float32)
    for got in interpret(after, [small]):
        np.testing.assert_allclose(got, small, rtol=1e-6)


def test_logarithm_of_softmax_does_not_underflow():
    make = Maker()
    z = make.input(4, 5)
    e = make.exp(make.sub(z, make.max(z, axes=(1,), keepdims=True)))
    graph = make.graph(make.log(make.div(e, make.sum(e, axes=(1,), keepdims=True))))
    after = assert_pass_keeps_values(simplify, graph, rtol=1e-5, special=False)
    assert p.div not in {node.primitive for node in after.nodes}
    far = np.zeros((4, 5), np.float32)
    far[:, 0] = 1000
    np.testing.assert_allclose(interpret(after, [far])[0][:, 1], -1000)


def test_sum_of_a_large_broadcast_of_floats():
    make = Maker()
    x = make.broadcast(make.input(3, 1), shape=(2, 3, 5))
    graph = make.graph(make.sum(x, axes=(0, 1, 2), keepdims=False))
    after = assert_pass_keeps_values(simplify, graph, rtol=1e-5, special=False)
    assert p.broadcast not in {node.primitive for node in after.nodes}
