"""Writing small graphs, and holding a pass to the values of the graph that it was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import PRIMITIVES, Builder, Graph, Node, Provenance, TensorType, input_node
from tgraph.runtime.dtypes import DType, float32

nan, inf = np.nan, np.inf


class Maker:
    """`make.add(x, y)`, `make.sum(x, axes=(0,), keepdims=False)`, `make.full((), 1.0)`."""

    def __init__(self) -> None:
        self.build = Builder()
        self.inputs: list[Node] = []

    def input(self, *shape: int, dtype: DType = float32, name: str = "") -> Node:
        name = name or "xyzwuv"[len(self.inputs)]
        self.inputs.append(input_node(name, TensorType(shape, dtype)))
        return self.inputs[-1]

    def number(self, value: Any, dtype: DType = float32) -> Node:
        return self.build.full((), value, dtype)

    def graph(self, *outputs: Node) -> Graph:
        return Graph(self.inputs, outputs)

    def __getattr__(self, name: str) -> Callable[..., Node]:
        primitive = PRIMITIVES[name]
        where = Provenance("user.py", 1 + len(self.build._made))
        return lambda *inputs, **attrs: self.build.apply(primitive, inputs, attrs, where)


def body(graph: Graph) -> str:
    """The lines of a graph without its heading, types left out, joined by ' | '."""
    lines = str(graph).splitlines()[1:]
    short = [line.strip().split(": ", 1) for line in lines]
    return " | ".join(
        line[0] if len(line) == 1 else f"{line[0]} = {line[1].split(' = ', 1)[1]}" for line in short
    )


def special_values(dtype: DType) -> list[Any]:
    if dtype.kind == "float":
        return [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1e-3, -7.25, inf, -inf, nan]
    if dtype.kind == "bool":
        return [False, True]
    low = int(np.iinfo(dtype.numpy).min)
    return [0, 1, 2, 3, 7, low, int(np.iinfo(dtype.numpy).max), *([-1, -5] if low else [])]


def special_inputs(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Random picks among special values and ordinary numbers for every input."""
    rng = np.random.default_rng(seed)
    arrays = []
    for node in graph.inputs:
        dtype = node.type.dtype
        picks = np.array(special_values(dtype)).astype(dtype.numpy)
        array = rng.choice(picks, node.shape)
        if dtype.kind == "float":
            ordinary = rng.normal(size=node.shape).astype(dtype.numpy)
            array = np.where(rng.random(node.shape) < 0.5, array, ordinary)
        arrays.append(array.reshape(node.shape))
    return arrays


def ordinary_inputs(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for node in graph.inputs:
        dtype = node.type.dtype
        if dtype.kind == "float":
            array = rng.normal(size=node.shape).astype(dtype.numpy)
        else:
            array = rng.integers(0, 2 if dtype.kind == "bool" else 5, node.shape)
        arrays.append(np.asarray(array, dtype.numpy).reshape(node.shape))
    return arrays


def assert_same(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float = 0) -> None:
    """Equal, NaN and the sign of zero included; or close where `rtol` is given."""
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted):
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind not in "fV":
            np.testing.assert_array_equal(one, other)
            continue
        with np.errstate(invalid="ignore"):
            one, other = one.astype(np.float64), other.astype(np.float64)
        if rtol:
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
            continue
        np.testing.assert_array_equal(one, other)
        known = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one)[known], np.signbit(other)[known])


def assert_pass_keeps_values(
    run: Callable[[Graph], Graph], graph: Graph, *, rtol: float = 0, special: bool = True
) -> Graph:
    """The graph after `run`, verified and compared on several inputs."""
    after = run(graph)
    after.verify()
    assert after.inputs == graph.inputs
    assert [node.type for node in after.outputs] == [node.type for node in graph.outputs]
    for seed in range(3):
        choose = special_inputs if special else ordinary_inputs
        inputs = choose(graph, seed)
        assert_same(interpret(after, inputs), interpret(graph, inputs), rtol)
    return after
