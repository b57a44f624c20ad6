"""What is left of operations on tensors without elements: the text and the numbers."""

import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.passes.replace_empty import replace_empty
from tgraph.runtime.dtypes import bool_, int64

PLAIN = {"transpose_a": False, "transpose_b": False}
STEP = {"starts": (1,), "stops": (1,), "steps": (1,)}
WINDOW = {"axes": (0,), "strides": (1,), "dilations": (1,)}


def full(value, shape, dtype="float32"):
    return f"%0 = full(dtype={dtype}, shape={shape}, value={value}) | return %0"


def flat(make):
    return make.input(0, 3)


def positions(make):
    return make.input(0, dtype=int64)


CASES = {
    "sum": (lambda m: m.sum(flat(m), axes=(0,), keepdims=False), full(0.0, "(3,)")),
    "prod": (lambda m: m.prod(flat(m), axes=(0,), keepdims=True), full(1.0, "(1, 3)")),
    "any": (lambda m: m.any(m.input(0, dtype=bool_), axes=(0,), keepdims=False),
            full(False, "()", "bool")),
    "all": (lambda m: m.all(m.input(0, dtype=bool_), axes=(0,), keepdims=False),
            full(True, "()", "bool")),
    "pad": (lambda m: m.pad(flat(m), low=(1, 0), high=(1, 0), interior=(0, 0), value=7.0),
            full(7.0, "(2, 3)")),
    "concatenate": (lambda m: m.concatenate(flat(m), m.input(2, 3), axis=0),
                    "%0 = concatenate(%y; axis=0) | return %0"),
    "slice_update": (lambda m: m.slice_update(m.input(4), m.input(0), **STEP), "return %x"),
    "scatter_add": (lambda m: m.scatter_add(m.input(4), positions(m), m.input(0), axis=0),
                    "return %x"),
    "index_put": (lambda m: m.index_put(m.input(4), positions(m), m.input(0), axis=0,
                                        accumulate=False), "return %x"),
    "fold": (lambda m: m.fold(m.input(0, 3), shape=(2,), **WINDOW), full(0.0, "(2,)")),
    "matmul": (lambda m: m.matmul(m.input(2, 0), m.input(0, 3), **PLAIN), full(0.0, "(2, 3)")),
    "result": (lambda m: m.exp(m.mul(flat(m), flat(m))), full(0.0, "(0, 3)")),
    "read further": (lambda m: m.exp(m.sum(m.neg(flat(m)), axes=(0,), keepdims=False)),
                     "%0 = full(dtype=float32, shape=(3,), value=0.0) | %1 = exp(%0) | return %1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name):
    write, expected = CASES[name]
    make = Maker()
    after = assert_pass_keeps_values(replace_empty, make.graph(write(make)))
    assert body(after) == expected


def test_a_graph_whose_values_all_have_elements_is_the_same_graph():
    make = Maker()
    graph = make.graph(make.exp(make.input(3)))
    assert replace_empty(graph) is graph
