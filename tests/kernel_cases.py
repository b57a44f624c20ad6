"""Graphs of the classes of kernels that programs are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tgraph.compiler.ir import PRIMITIVES, Builder, Graph, Node, TensorType, input_node
from tgraph.runtime.dtypes import DType, bool_, float16, float32, int64, uint32

CASES: dict[str, Callable[[], Graph]] = {}


def golden(make: Callable[[], Graph]) -> Callable[[], Graph]:
    CASES[make.__name__] = make
    return make


class Make:
    """`make.add(x, y)`, `make.sum(x, axes=(0,), keepdims=False)`, numbers become constants."""

    def __init__(self) -> None:
        self.build = Builder()
        self.inputs: list[Node] = []

    def input(self, *shape: int, dtype: DType = float32) -> Node:
        name = "xyzwuv"[len(self.inputs)]
        self.inputs.append(input_node(name, TensorType(shape, dtype)))
        return self.inputs[-1]

    def __getattr__(self, name: str) -> Callable[..., Node]:
        def apply(*operands: Any, **attrs: Any) -> Node:
            dtype = next((each.type.dtype for each in operands if isinstance(each, Node)), float32)
            nodes = [
                each if isinstance(each, Node) else self.build.full((), each, dtype)
                for each in operands
            ]
            return self.build.apply(PRIMITIVES[name], nodes, attrs)

        return apply

    def graph(self, *outputs: Node) -> Graph:
        return Graph(self.inputs, outputs)


LAST = {"axes": (1,), "keepdims": True}


@golden
def gelu() -> Graph:
    make = Make()
    x = make.input(64, 1024)
    inner = make.erf(make.mul(x, 0.7071067811865476))
    return make.graph(make.mul(make.mul(x, 0.5), make.add(inner, 1.0)))


@golden
def softmax() -> Graph:
    make = Make()
    x = make.input(256, 512)
    powers = make.exp(make.sub(x, make.max(x, **LAST)))
    return make.graph(make.div(powers, make.sum(powers, **LAST)))


@golden
def layer_norm() -> Graph:
    make = Make()
    x, weight, bias = make.input(256, 512), make.input(512), make.input(512)
    mean = make.mul(make.sum(x, **LAST), 1 / 512)
    centered = make.sub(x, mean)
    variance = make.mul(make.sum(make.mul(centered, centered), **LAST), 1 / 512)
    unit = make.mul(centered, make.rsqrt(make.add(variance, 1e-5)))
    return make.graph(make.add(make.mul(unit, weight), bias))


@golden
def column_sum() -> Graph:
    make = Make()
    x = make.input(1000, 300)
    return make.graph(make.sum(make.mul(x, x), axes=(0,), keepdims=False))


@golden
def long_sum() -> Graph:
    """Few rows: the passes split the reduction, so that threads share it."""
    make = Make()
    return make.graph(make.sum(make.input(1 << 20), axes=(0,), keepdims=False))


@golden
def scan() -> Graph:
    make = Make()
    x = make.input(100, 700)
    return make.graph(make.log(make.cumsum(make.exp(x), axis=1, reverse=False)))


@golden
def pairwise_forces() -> Graph:
    make = Make()
    x = make.input(500, 3)
    apart = make.sub(make.reshape(x, shape=(500, 1, 3)), make.reshape(x, shape=(1, 500, 3)))
    square = make.sum(make.mul(apart, apart), axes=(2,), keepdims=True)
    scale = make.rsqrt(make.add(square, 0.01))
    cubed = make.mul(scale, make.mul(scale, scale))
    return make.graph(make.sum(make.mul(apart, cubed), axes=(1,), keepdims=False))


@golden
def pairwise_distances() -> Graph:
    """Every element is wanted by many results."""
    make = Make()
    apart = make.sub(make.input(130, 1, 64), make.input(1, 70, 64))
    square = make.sum(make.mul(apart, apart), axes=(2,), keepdims=False)
    return make.graph(make.sqrt(square))


@golden
def transpose() -> Graph:
    make = Make()
    x, y = make.input(300, 400), make.input(400, 300)
    return make.graph(make.add(make.permute(x, axes=(1, 0)), y))


@golden
def pad() -> Graph:
    make = Make()
    x = make.input(30, 40)
    around = {"low": (1, 2), "high": (1, 0), "interior": (0, 1), "value": 0.5}
    return make.graph(make.exp(make.pad(x, **around)))


@golden
def concatenate() -> Graph:
    make = Make()
    x, y = make.input(30, 40), make.input(30, 8)
    return make.graph(make.tanh(make.concatenate(x, y, axis=1)))


@golden
def embedding() -> Graph:
    """Positions are data: each is checked."""
    make = Make()
    table, at = make.input(100, 64), make.input(50, dtype=int64)
    return make.graph(make.mul(make.index(table, at, axis=0), 8.0))


@golden
def scatter_add() -> Graph:
    make = Make()
    base, source = make.input(100, 64), make.input(50, 64)
    at = make.constant(value=np.arange(50) % 7)
    return make.graph(make.index_put(base, at, source, axis=0, accumulate=True))


@golden
def max_pool() -> Graph:
    make = Make()
    x = make.input(8, 28, 28)
    window = {"axes": (1, 2), "sizes": (2, 2), "strides": (2, 2), "dilations": (1, 1)}
    return make.graph(make.max(make.unfold(x, **window), axes=(3, 4), keepdims=False))


@golden
def loss() -> Graph:
    """Log-softmax and the entry of the target: two reductions, then a read at a position."""
    make = Make()
    x, target = make.input(64, 100), make.input(64, 1, dtype=int64)
    shifted = make.sub(x, make.max(x, **LAST))
    logs = make.sub(shifted, make.log(make.sum(make.exp(shifted), **LAST)))
    return make.graph(make.neg(make.gather(logs, target, axis=1)))


@golden
def dropout() -> Graph:
    """Random bits are drawn where they are used."""
    make = Make()
    x, state = make.input(64, 100), make.input(2, dtype=int64)
    key, counter = (
        make.reshape(make.slice(state, starts=(at,), stops=(at + 1,), steps=(1,)), shape=())
        for at in (0, 1)
    )
    third = make.add(counter, make.build.full((), 3, int64))
    bits = make.random_bits(key, third, shape=(64, 100))
    kept = make.lt(bits, make.build.full((), 1 << 31, uint32))
    return make.graph(make.where(kept, make.mul(x, 2.0), make.build.full((), 0.0, float32)))


@golden
def overlapping_windows() -> Graph:
    """Windows that overlap are added up where they came from."""
    make = Make()
    windows = {"axes": (1,), "strides": (2,), "dilations": (1,)}
    return make.graph(make.fold(make.input(8, 14, 3), shape=(8, 29), **windows))


@golden
def overwritten_rows() -> Graph:
    """Positions are data; of several writes to a row the last one stays."""
    make = Make()
    base, at, rows = make.input(100, 64), make.input(50, dtype=int64), make.input(50, 64)
    return make.graph(make.index_put(base, at, rows, axis=0, accumulate=False))


@golden
def several_outputs() -> Graph:
    """An optimizer's step: one kernel, three results."""
    make = Make()
    weight, gradient, moment = make.input(1000), make.input(1000), make.input(1000)
    moved = make.add(make.mul(moment, 0.9), make.mul(gradient, 0.1))
    return make.graph(make.sub(weight, make.mul(moved, 0.01)), moved, make.mul(gradient, gradient))


@golden
def position_of_maximum() -> Graph:
    make = Make()
    return make.graph(make.argmax(make.input(64, 100), axes=(1,), keepdims=False))


@golden
def masked_maximum() -> Graph:
    """What is left out is minus infinity, which LLVM knows not to change a maximum."""
    make = Make()
    x, wanted = make.input(64, 1024), make.input(64, 1024, dtype=bool_)
    return make.graph(make.max(make.where(wanted, x, make.neg(float("inf"))), **LAST))


@golden
def long_rows() -> Graph:
    """More than registers hold: rows are kept in shared memory."""
    make = Make()
    x = make.input(9, 33_000)
    return make.graph(make.sub(x, make.cast(make.argmax(x, **LAST), dtype=float32)))


@golden
def half_precision() -> Graph:
    """Computed in float32 between load and store."""
    from_half = Make()
    x = from_half.input(64, 256, dtype=float16)
    total = from_half.sum(from_half.mul(x, x), **LAST)
    return from_half.graph(from_half.mul(x, from_half.rsqrt(total)))


def inputs_of(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Numbers for a case: normal ones, and positions that are 0 or 1."""
    random = np.random.default_rng(1)
    return [
        random.standard_normal(node.shape).astype(node.type.dtype.numpy)
        if node.type.dtype.is_floating_point
        else random.integers(0, 2, node.shape).astype(node.type.dtype.numpy)
        for node in graph.inputs
    ]
