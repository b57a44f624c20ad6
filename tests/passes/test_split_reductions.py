"""Long reductions in pieces: which are split, into what, and their numbers."""

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, body, ordinary_inputs
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.passes.split_reductions import (
    MIN_ELEMENTS,
    split_reductions,
    split_reductions_for_gpu,
)
from tgraph.runtime.dtypes import bool_, float16, float32, float64, int64

LONG = MIN_ELEMENTS


def reduced(name, shape, axes, keepdims=False, dtype=float64):
    make = Maker()
    x = make.input(*shape, dtype=dtype)
    return make.graph(getattr(make, name)(x, axes=axes, keepdims=keepdims))


def test_the_text_of_an_even_split():
    after = assert_pass_keeps_values(
        split_reductions, reduced("sum", (LONG,), (0,)), rtol=1e-9, special=False
    )
    assert body(after) == (
        f"%0 = reshape(%x; shape=(64, {LONG // 64})) | "
        "%1 = sum(%0; axes=(1,), keepdims=True) | "
        "%2 = reshape(%1; shape=(64,)) | "
        "%3 = sum(%2; axes=(0,), keepdims=True) | "
        "%4 = reshape(%3; shape=()) | return %4"
    )


def test_the_text_of_a_split_with_a_rest():
    after = assert_pass_keeps_values(
        split_reductions, reduced("max", (3, LONG + 5), (1,)), special=False
    )
    assert body(after) == (
        f"%0 = slice(%x; starts=(0, 0), steps=(1, 1), stops=(3, {LONG})) | "
        f"%1 = reshape(%0; shape=(3, 64, {LONG // 64})) | "
        "%2 = max(%1; axes=(2,), keepdims=True) | "
        "%3 = reshape(%2; shape=(3, 64)) | "
        f"%4 = slice(%x; starts=(0, {LONG}), steps=(1, 1), stops=(3, {LONG + 5})) | "
        "%5 = max(%4; axes=(1,), keepdims=True) | "
        "%6 = concatenate(%3, %5; axis=1) | "
        "%7 = max(%6; axes=(1,), keepdims=True) | "
        "%8 = reshape(%7; shape=(3,)) | return %8"
    )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape, axes", [((LONG + 1,), (0,)), ((40, 2, 900), (0, 2)),
                                         ((7, 300, 120), (1, 2)), ((33000, 64), (0,))])  # fmt: skip
@pytest.mark.parametrize("name, dtype", [("sum", float64), ("sum", int64), ("prod", float64),
                                         ("max", float16), ("min", int64), ("any", bool_),
                                         ("all", bool_)])  # fmt: skip
def test_numbers(name, dtype, shape, axes, keepdims):
    graph = reduced(name, shape, axes, keepdims, dtype)
    after = assert_pass_keeps_values(split_reductions, graph, rtol=1e-9, special=False)
    assert len(after.nodes) > 2


def test_few_columns_are_split_by_their_outermost_axes():
    """Sums to 32 numbers side by side are one vector loop: each sample gets a row of its own."""
    graph = reduced("sum", (16, 20, 20, 32), (0, 1, 2), dtype=float32)
    after = assert_pass_keeps_values(split_reductions, graph, rtol=1e-4, special=False)
    assert body(after) == (
        "%0 = sum(%x; axes=(1, 2), keepdims=True) | %1 = cast(%0; dtype=float64) | "
        "%2 = sum(%1; axes=(0,), keepdims=True) | %3 = cast(%2; dtype=float32) | "
        "%4 = reshape(%3; shape=(32,)) | return %4"
    )


@pytest.mark.parametrize(
    "shape, axes, first",
    [
        ((16, 90, 100), (0, 1), None),  # too many columns
        ((16, 90, 60), (0, 1), None),  # too few numbers
        ((4, 50, 50, 60), (0, 1, 2), (4, 50, 1, 60)),
        ((4, 2, 400, 60), (0, 1, 2), (4, 2, 1, 60)),
        ((10, 20, 700), (0, 2), None),  # rows
        ((10, 20, 9, 40, 2), (0, 1, 2, 3), (10, 1, 1, 1, 2)),
        ((9000, 40), (0,), (257, 1, 40)),
    ],
)
def test_which_columns_are_split(shape, axes, first):
    make = Maker()
    after = split_reductions(make.graph(make.sum(make.input(*shape), axes=axes, keepdims=False)))
    found = next(node for node in after.nodes if node.primitive.name == "sum")
    if first is None:
        assert found.attrs["axes"] == axes and len(after.nodes) == 2
    else:
        assert found.shape == first


@pytest.mark.parametrize("name, dtype", [("sum", float64), ("max", int64), ("prod", float64)])
@pytest.mark.parametrize("shape", [(9, 30, 30, 17), (5001, 33), (2, 5, 500, 30)])
def test_numbers_of_few_columns(name, dtype, shape):
    graph = reduced(name, shape, tuple(range(len(shape) - 1)), dtype=dtype)
    after = assert_pass_keeps_values(split_reductions, graph, rtol=1e-9, special=False)
    assert len(after.nodes) > 2


@pytest.mark.parametrize(
    "shape, axes, first",
    [
        ((1024, 2048), (0, 1), (256, 4, 2048)),
        ((1000, 2000), (0, 1), (333, 3, 2000)),  # and one row, not what 256 leaves of a thousand
        ((100, 8, 8, 200), (0, 1, 2, 3), (100, 1, 8, 8, 200)),
        ((3, 1000, 400), (1, 2), (3, 333, 3, 400)),
        ((2, 50, 4000), (0, 1, 2), (2, 50, 266, 15)),
    ],
)
def test_a_piece_is_of_neighbours(shape, axes, first):
    """Where several axes are reduced, each thread reads memory from its start to its end."""
    after = split_reductions(reduced("sum", shape, axes))
    assert next(n.shape for n in after.nodes if n.primitive.name == "reshape") == first


def test_what_is_unknown_stays_unknown():
    graph = reduced("max", (LONG,), (0,))
    (x,) = ordinary_inputs(graph)
    x[LONG - 7] = np.nan
    assert np.isnan(interpret(split_reductions(graph), [x])[0])


@pytest.mark.parametrize(
    "name, shape, axes",
    [("sum", (LONG - 1,), (0,)), ("sum", (65, LONG), (1,)), ("argmax", (LONG,), (0,)),
     ("sum", (16, 8, 16, 16, 1), (0, 1, 2, 3, 4))],
)  # fmt: skip
def test_what_stays_whole(name, shape, axes):
    graph = reduced(name, shape, axes)
    assert body(split_reductions(graph)) == body(graph)


# -- for a GPU -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, axes, pieces",
    [
        ((1 << 20,), (0,), 256),
        ((8, 1 << 20), (1,), 64),  # 512 blocks
        ((8, 20000), (1,), 4),  # pieces of a row are 4,096 or longer
        ((4096, 1024), (0,), 16),  # 32 blocks of columns before
        ((5, 300, 64), (1,), 4),  # ten blocks, pieces of 75
        ((4096, 1024), (1,), 0),  # a block for each row
        ((4096, 1 << 14), (0,), 0),
        ((100, 100), (0,), 0),  # small
        ((500, 500, 3), (1,), 0),  # three neighbours are no columns
        ((3, 1 << 15), (0,), 0),  # three is no length
    ],
)
def test_pieces_for_a_gpu(shape, axes, pieces):
    after = split_reductions_for_gpu(reduced("sum", shape, axes))
    cuts = [node.shape for node in after.nodes if node.primitive.name == "reshape"]
    if pieces:
        assert pieces in cuts[0] and len(cuts[0]) == len(shape) + 1
    else:
        assert cuts == []


@pytest.mark.parametrize("name", ["sum", "max", "all"])
@pytest.mark.parametrize(
    "shape, axes",
    [
        ((70001,), (0,)),
        ((5, 301, 64), (1,)),
        ((3, 29001), (0, 1)),
        ((2, 9, 5000), (1, 2)),
        ((2000, 40), (0,)),
    ],
)
def test_numbers_for_a_gpu(name, shape, axes):
    graph = reduced(name, shape, axes, dtype=bool_ if name == "all" else float64)
    after = assert_pass_keeps_values(split_reductions_for_gpu, graph, rtol=1e-9, special=False)
    assert len(after.nodes) > 2
