"""Equal values computed once, unread ones not at all."""

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.eliminate_common import eliminate_common
from tgraph.compiler.passes.eliminate_dead_code import eliminate_dead_code
from tgraph.runtime.dtypes import float64

PLAIN = {"transpose_a": False, "transpose_b": False}


def test_equal_nodes_and_equal_large_constants():
    one, other = Maker(), Maker()
    x = one.input(5000)
    values = np.arange(5000, dtype=np.float32)
    first = one.mul(x, one.constant(value=values))
    second = other.mul(x, other.constant(value=values.copy()))
    third = other.mul(x, other.constant(value=values + 1))
    after = assert_pass_keeps_values(eliminate_common, one.graph(first, second, third))
    assert after.outputs[0] is after.outputs[1]
    assert after.outputs[0] is not after.outputs[2]


def last(make, x):
    ndim = x.type.ndim
    starts = (0,) * (ndim - 1) + (x.shape[-1] - 1,)
    return make.slice(x, starts=starts, stops=x.shape, steps=(1,) * ndim)


CASES = {
    "elementwise": (
        lambda m: last(m, m.exp(m.add(m.input(2, 3), m.input(2, 1)))),
        "%0 = slice(%x; starts=(0, 2), steps=(1, 1), stops=(2, 3)) | %1 = add(%y, %0) | "
        "%2 = exp(%1) | return %2"),
    "columns_of_a_product": (
        lambda m: last(m, m.matmul(m.input(6, 2, 4), m.input(4, 5), **PLAIN)),
        "%0 = slice(%y; starts=(0, 4), steps=(1, 1), stops=(4, 5)) | "
        "%1 = matmul(%x, %0; transpose_a=False, transpose_b=False) | return %1"),
    "rows_of_a_transposed_product": (
        lambda m: m.slice(m.matmul(m.input(3, 4, 2), m.input(3, 5, 4), transpose_a=True,
                                   transpose_b=True), starts=(1, 0, 0), stops=(2, 1, 5),
                          steps=(1, 1, 1)),
        "%0 = slice(%x; starts=(1, 0, 0), steps=(1, 1, 1), stops=(2, 4, 1)) | "
        "%1 = slice(%y; starts=(1, 0, 0), steps=(1, 1, 1), stops=(2, 5, 4)) | "
        "%2 = matmul(%0, %1; transpose_a=True, transpose_b=True) | return %2"),
    "permute": (
        lambda m: last(m, m.permute(m.exp(m.input(2, 3, 4)), axes=(0, 2, 1))),
        "%0 = slice(%x; starts=(0, 2, 0), steps=(1, 1, 1), stops=(2, 3, 4)) | %1 = exp(%0) | "
        "%2 = reshape(%1; shape=(2, 4, 1)) | return %2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_read(name):
    make, (write, expected) = Maker(), CASES[name]
    product = "matmul" in expected
    after = assert_pass_keeps_values(
        eliminate_dead_code, make.graph(write(make)), rtol=1e-6 * product, special=not product
    )
    assert body(after) == expected


def sliced_convolution(make, starts, stops, steps, **options):
    groups = options.get("groups", 1)
    x, w = make.input(3, 4, 9, 8, dtype=float64), make.input(6, 4 // groups, 3, 2, dtype=float64)
    attrs = {"strides": (2, 1), "padding": ((1, 2), (0, 1)), "dilation": (1, 2),
             "input_dilation": (1, 1), "groups": 1, **options}  # fmt: skip
    return make.slice(make.convolution(x, w, **attrs), starts=starts, stops=stops, steps=steps)


@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"input_dilation": (2, 3)}])
@pytest.mark.parametrize("starts, stops, steps", [
    ((0, 0, 0, 0), (3, 6, 3, 5), (1, 1, 1, 1)),
    ((1, 2, 1, 2), (3, 5, 4, 7), (1, 2, 2, 3)),
    ((2, 0, 4, 0), (3, 1, 5, 1), (1, 1, 1, 1)),
])  # fmt: skip
def test_only_the_windows_that_are_read(starts, stops, steps, options):
    make = Maker()
    graph = make.graph(sliced_convolution(make, starts, stops, steps, **options))
    after = assert_pass_keeps_values(eliminate_dead_code, graph, rtol=1e-12, special=False)
    convolution = next(node for node in after.nodes if node.primitive is p.convolution)
    read = after.outputs[0].shape
    grouped = "groups" in options
    assert convolution.shape == ((read[0], 6, *read[2:]) if grouped else read)


def test_what_others_read_stays_whole():
    make = Maker()
    x = make.exp(make.input(4))
    after = assert_pass_keeps_values(eliminate_dead_code, make.graph(last(make, x), x))
    assert [node.primitive for node in after.nodes].count(p.exp) == 1
