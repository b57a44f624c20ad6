"""Folding: what is computed at compile time, and what never is."""

from functools import partial

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.ir import Provenance, TensorType
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.fold_constants import MAX_ELEMENTS, RULES
from tgraph.compiler.passes.rewrite import apply_rules
from tgraph.runtime.dtypes import bfloat16, float32, int32, int64

fold_constants = partial(apply_rules, rules=RULES)


def folded(make, *outputs):
    return assert_pass_keeps_values(fold_constants, make.graph(*outputs))


def test_numbers():
    make = Maker()
    value = make.add(make.mul(make.number(2.0), make.number(3.0)), make.number(0.5))
    assert body(folded(make, value)) == "%0 = full(dtype=float32, shape=(), value=6.5) | return %0"


@pytest.mark.parametrize("dtype", [bfloat16, int64])
def test_numbers_of_any_size(dtype):
    make = Maker()
    ones = make.full(shape=(1000, 1000), value=1, dtype=dtype)
    value = make.reshape(make.neg(make.add(ones, ones)), shape=(10, 100000))
    number = "-2.0" if dtype is bfloat16 else "-2"
    assert body(fold_constants(make.graph(value))) == (
        f"%0 = full(dtype={dtype.name}, shape=(10, 100000), value={number}) | return %0"
    )


def test_small_arrays():
    make = Maker()
    x = make.constant(value=np.float32([[1, 2], [3, 4]]))
    value = make.matmul(x, make.permute(x, axes=(1, 0)), transpose_a=False, transpose_b=False)
    after = folded(make, make.sum(value, axes=(0,), keepdims=False))
    assert body(after) == "%0 = constant(value=[16.0, 36.0]) | return %0"
    assert not after.outputs[0].attrs["value"].flags.writeable


def test_uniform_results_are_numbers():
    make = Maker()
    x = make.constant(value=np.float32([1, 2, 3]))
    assert body(folded(make, make.sub(x, x))) == (
        "%0 = full(dtype=float32, shape=(3,), value=0.0) | return %0"
    )


def test_large_results_stay():
    make = Maker()
    x = make.constant(value=np.arange(MAX_ELEMENTS + 1.0))
    after = folded(make, make.exp(x))
    assert after.outputs[0].primitive is p.exp
    small = make.constant(value=np.arange(float(MAX_ELEMENTS)))
    assert folded(make, make.exp(small)).outputs[0].primitive is p.constant


def test_what_is_never_folded():
    make = Maker()
    bits = make.random_bits(make.number(1, int64), make.number(2, int64), shape=(3,))
    steps = make.iota(size=5, dtype=int64)
    call = make.host_call(
        make.number(1.0), function=lambda x: (x + 1,),
        results=(TensorType((), float32),), name="f",
    )  # fmt: skip
    stretched = make.broadcast(make.constant(value=np.float32([1, 2])), shape=(3, 2))
    after = folded(make, bits, make.neg(steps), make.get(call, index=0), stretched)
    assert [node.primitive.name for node in after.outputs] == [
        "random_bits", "neg", "get", "broadcast",
    ]  # fmt: skip


def test_errors_are_left_to_the_run():
    make = Maker()
    one, zero = make.number(1, int32), make.number(0, int32)
    after = fold_constants(make.graph(make.floor_divide(one, zero)))
    assert after.outputs[0].primitive is p.floor_divide
    table = make.constant(value=np.float32([1, 2]))
    outside = make.index(table, make.constant(value=np.array([5, 6])), axis=0)
    assert fold_constants(make.graph(outside)).outputs[0].primitive is p.index


def test_folded_nodes_keep_their_line():
    make = Maker()
    total = make.add(make.number(1.0), make.number(2.0))
    assert fold_constants(make.graph(total)).outputs[0].where == total.where != Provenance()
