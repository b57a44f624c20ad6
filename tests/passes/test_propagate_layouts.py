"""Permutes move behind what they stand in front of, and products become few."""

import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.reshape_groups import reshape_groups
from tgraph.compiler.passes.propagate_layouts import propagate_layouts
from tgraph.runtime.dtypes import bool_, float64

PLAIN = {"transpose_a": False, "transpose_b": False}


def after(make, *outputs, rtol=0.0, special=True):
    return assert_pass_keeps_values(
        propagate_layouts, make.graph(*outputs), rtol=rtol, special=special
    )


CASES = {
    "elementwise": (
        lambda m: m.exp(m.permute(m.input(2, 3), axes=(1, 0))),
        "%0 = exp(%x) | %1 = permute(%0; axes=(1, 0)) | return %1"),
    "equally_permuted": (
        lambda m: m.permute(m.add(m.permute(m.input(2, 3, 4), axes=(1, 2, 0)),
                                  m.permute(m.input(2, 3, 4), axes=(1, 2, 0))), axes=(2, 0, 1)),
        "%0 = add(%x, %y) | return %0"),
    "with_a_bias": (
        lambda m: m.add(m.permute(m.input(2, 3, 4), axes=(0, 2, 1)), m.input(4, 1)),
        "%0 = reshape(%y; shape=(1, 1, 4)) | %1 = add(%x, %0) | "
        "%2 = permute(%1; axes=(0, 2, 1)) | return %2"),
    "with_a_small_permuted_operand": (
        lambda m: m.where(m.permute(m.input(2, 3, dtype=bool_), axes=(1, 0)),
                          m.permute(m.input(2, 3), axes=(1, 0)), m.number(0.0)),
        "%0 = full(dtype=float32, shape=(), value=0.0) | %1 = where(%x, %y, %0) | "
        "%2 = permute(%1; axes=(1, 0)) | return %2"),
    "differently_permuted": (
        lambda m: m.add(m.permute(m.input(3, 3, 3), axes=(1, 2, 0)),
                        m.permute(m.input(3, 3, 3), axes=(2, 0, 1))),
        "%0 = permute(%x; axes=(1, 2, 0)) | %1 = permute(%y; axes=(2, 0, 1)) | "
        "%2 = add(%0, %1) | return %2"),
    "reduction": (
        lambda m: m.max(m.permute(m.input(2, 3, 4), axes=(2, 0, 1)), axes=(1,), keepdims=False),
        "%0 = max(%x; axes=(0,), keepdims=False) | %1 = permute(%0; axes=(1, 0)) | return %1"),
    "reduction_that_keeps_axes": (
        lambda m: m.max(m.permute(m.input(2, 3, 4), axes=(2, 0, 1)), axes=(0, 1), keepdims=True),
        "%0 = max(%x; axes=(0, 2), keepdims=True) | %1 = reshape(%0; shape=(1, 1, 3)) | return %1"),
    "argmax": (
        lambda m: m.argmax(m.permute(m.input(2, 3), axes=(1, 0)), axes=(0,), keepdims=False),
        "%0 = argmax(%x; axes=(1,), keepdims=False) | return %0"),
    "pad": (
        lambda m: m.pad(m.permute(m.input(2, 3), axes=(1, 0)), low=(1, 0), high=(2, 0),
                        interior=(0, 3), value=1.0),
        "%0 = pad(%x; high=(0, 2), interior=(3, 0), low=(0, 1), value=1.0) | "
        "%1 = permute(%0; axes=(1, 0)) | return %1"),
    "slice": (
        lambda m: m.slice(m.permute(m.input(4, 3, 5), axes=(2, 0, 1)), starts=(1, 0, 2),
                          stops=(5, 4, 3), steps=(3, 1, 1)),
        "%0 = slice(%x; starts=(0, 2, 1), steps=(1, 1, 3), stops=(4, 3, 5)) | "
        "%1 = permute(%0; axes=(2, 0, 1)) | return %1"),
    "flip": (
        lambda m: m.flip(m.permute(m.input(4, 3, 5), axes=(2, 0, 1)), axes=(0, 2)),
        "%0 = flip(%x; axes=(1, 2)) | %1 = permute(%0; axes=(2, 0, 1)) | return %1"),
    "concatenate": (
        lambda m: m.concatenate(m.permute(m.input(2, 3), axes=(1, 0)),
                                m.permute(m.input(4, 3), axes=(1, 0)), axis=1),
        "%0 = concatenate(%x, %y; axis=0) | %1 = permute(%0; axes=(1, 0)) | return %1"),
    "unfold": (
        lambda m: m.unfold(m.permute(m.input(5, 3, 6), axes=(2, 0, 1)), axes=(1, 0), sizes=(2, 3),
                           strides=(1, 2), dilations=(2, 1)),
        "%0 = unfold(%x; axes=(0, 2), dilations=(2, 1), sizes=(2, 3), strides=(1, 2)) | "
        "%1 = permute(%0; axes=(2, 0, 1, 3, 4)) | return %1"),
    "fold": (
        lambda m: m.fold(m.permute(m.input(2, 3, 4, 2, 5, 3), axes=(0, 4, 1, 2, 3, 5)),
                         axes=(2, 3), strides=(2, 1), dilations=(1, 1), shape=(2, 5, 6, 6)),
        "%0 = permute(%x; axes=(0, 1, 2, 4, 3, 5)) | "
        "%1 = fold(%0; axes=(1, 2), dilations=(1, 1), shape=(2, 6, 6, 5), strides=(2, 1)) | "
        "%2 = permute(%1; axes=(0, 3, 1, 2)) | return %2"),
    "reshape_that_splits": (
        lambda m: m.reshape(m.permute(m.input(6, 20), axes=(1, 0)), shape=(4, 5, 2, 3)),
        "%0 = reshape(%x; shape=(2, 3, 4, 5)) | %1 = permute(%0; axes=(2, 3, 0, 1)) | return %1"),
    "reshape_that_merges_neighbours": (
        lambda m: m.reshape(m.permute(m.input(2, 3, 4), axes=(2, 0, 1)), shape=(4, 1, 6)),
        "%0 = reshape(%x; shape=(1, 6, 4)) | %1 = permute(%0; axes=(2, 0, 1)) | return %1"),
    "reshape_that_must_move": (
        lambda m: m.reshape(m.permute(m.input(2, 3), axes=(1, 0)), shape=(6,)),
        "%0 = permute(%x; axes=(1, 0)) | %1 = reshape(%0; shape=(6,)) | return %1"),
    "flags": (
        lambda m: m.matmul(m.permute(m.input(4, 3), axes=(1, 0)), m.input(4, 5), **PLAIN),
        "%0 = matmul(%x, %y; transpose_a=True, transpose_b=False) | return %0"),
    "flags_cancel": (
        lambda m: m.matmul(m.input(3, 4), m.permute(m.input(4, 5), axes=(1, 0)),
                           transpose_a=False, transpose_b=True),
        "%0 = matmul(%x, %y; transpose_a=False, transpose_b=False) | return %0"),
    "flags_of_many": (
        lambda m: m.matmul(m.input(2, 3, 7, 4),
                           m.permute(m.input(2, 5, 3, 4), axes=(0, 2, 3, 1)), **PLAIN),
        "%0 = permute(%y; axes=(0, 2, 1, 3)) | "
        "%1 = matmul(%x, %0; transpose_a=False, transpose_b=True) | return %1"),
    "transposed_product": (
        lambda m: m.permute(m.matmul(m.input(4, 3), m.input(4, 5), transpose_a=True,
                                     transpose_b=False), axes=(1, 0)),
        "%0 = matmul(%y, %x; transpose_a=True, transpose_b=False) | return %0"),
    "all_rows": (
        lambda m: m.matmul(m.input(2, 3, 4), m.input(5, 4), transpose_a=False, transpose_b=True),
        "%0 = reshape(%x; shape=(6, 4)) | %1 = matmul(%0, %y; transpose_a=False, "
        "transpose_b=True) | %2 = reshape(%1; shape=(2, 3, 5)) | return %2"),
    "single_matrices": (
        lambda m: m.matmul(m.input(1, 3, 4), m.input(1, 1, 4, 5), **PLAIN),
        "%0 = reshape(%x; shape=(3, 4)) | %1 = reshape(%y; shape=(4, 5)) | "
        "%2 = matmul(%0, %1; transpose_a=False, transpose_b=False) | "
        "%3 = reshape(%2; shape=(1, 1, 3, 5)) | return %3"),
    "sum_of_products": (
        lambda m: m.sum(m.matmul(m.input(6, 7, 3), m.input(6, 7, 5), transpose_a=True,
                                 transpose_b=False), axes=(0,), keepdims=False),
        "%0 = reshape(%x; shape=(42, 3)) | %1 = reshape(%y; shape=(42, 5)) | "
        "%2 = matmul(%0, %1; transpose_a=True, transpose_b=False) | return %2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_form(name):
    make, (write, expected) = Maker(), CASES[name]
    product = "matmul" in expected or "fold" in expected
    graph = after(make, write(make), rtol=1e-5 if product else 0, special=not product)
    assert body(graph) == expected


def test_a_product_that_is_read_twice_is_not_made_twice():
    make = Maker()
    product = make.matmul(make.input(3, 4, dtype=float64), make.input(4, 5, dtype=float64), **PLAIN)
    graph = after(make, make.permute(product, axes=(1, 0)), product, rtol=1e-12, special=False)
    assert [node.primitive for node in graph.nodes].count(p.matmul) == 1


def test_permuted_batches_are_no_transposed_product():
    make = Maker()
    product = make.matmul(make.input(3, 2, 4), make.input(3, 4, 5), **PLAIN)
    graph = after(make, make.permute(product, axes=(1, 2, 0)), rtol=1e-5, special=False)
    assert graph.outputs[0].primitive is p.permute


@pytest.mark.parametrize("source, target, groups", [
    ((2, 3), (6,), [((0, 1), (0,))]),
    ((6,), (2, 3), [((0,), (0, 1))]),
    ((4, 6), (2, 2, 3, 2), [((0,), (0, 1)), ((1,), (2, 3))]),
    ((4, 6), (8, 3), [((0, 1), (0, 1))]),
    ((1, 4), (4, 1), [((0, 1), (0, 1))]),
    ((2, 1, 3), (2, 3), [((0,), (0,)), ((1, 2), (1,))]),
    ((1, 1), (), [((0, 1), ())]),
    ((), (1,), [((), (0,))]),
    ((1, 5, 1), (1, 1, 5), [((0, 1, 2), (0, 1, 2))]),
])  # fmt: skip
def test_reshape_groups(source, target, groups):
    assert reshape_groups(source, target) == groups
