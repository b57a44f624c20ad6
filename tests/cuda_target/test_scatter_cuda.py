"""Additions at positions, sorted: values in every order of threads, checks, texts, machine code."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import run_program
from cuda_tools.shim import run_sanitized
from kernel_cases import CASES, Make
from random_graphs.engines import run_eagerly
from template_tools import golden_text, launches_of
from tgraph.compiler.cuda_program import Program
from tgraph.compiler.ir import Graph, Node
from tgraph.compiler.kernel import scatter_form, schedule_scatter
from tgraph.compiler.kernel.schedule_scatter import ScatterSchedule, SumSchedule
from tgraph.runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
)

import tgraph as tg
from tgraph.nn import functional as F

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
GOLDEN = Path(__file__).parent / "golden" / "templates"
# Of the largest result; eager evaluation rounds 16-bit floats after every addition.
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-2, "bfloat16": 2e-1}
DTYPES = (float32, float32, float64, float16, bfloat16, int32, int64, uint8, bool_)


@pytest.fixture
def sorts_everything(monkeypatch):
    """However small."""
    monkeypatch.setattr(scatter_form, "SERIAL_STEPS", 0)
    monkeypatch.setattr(scatter_form, "MANY_THREADS", 1 << 40)


@pytest.fixture
def in_many_blocks(sorts_everything, monkeypatch):
    """As if there were very many positions: several blocks, short pieces, several passes."""
    monkeypatch.setattr(schedule_scatter, "ONE_BLOCK", 1)
    monkeypatch.setattr(schedule_scatter, "SORT_BLOCK", 32)
    monkeypatch.setattr(schedule_scatter, "PIECES", ((1 << 40, 4),))
    monkeypatch.setattr(schedule_scatter, "MAX_DIGIT_BITS", 3)


def schedules(program: Program) -> list[ScatterSchedule]:
    return [i.schedule for i in program.kernels if isinstance(i.schedule, ScatterSchedule)]


def names_of(program: Program) -> list[str]:
    """What the launches of scatters do."""
    return [each.kernel.name.removeprefix("scatter_") for each in schedules(program)]


def arrays_of(graph: Graph, positions: np.ndarray | None, seed: int) -> list[np.ndarray]:
    """Values, and positions that are 0 or 1 unless they are given."""
    rng = np.random.default_rng(seed)
    arrays = []
    for node in graph.inputs:
        dtype = node.type.dtype
        if node.attrs["name"] in "vw" and positions is not None:
            arrays.append(positions.reshape(node.shape).astype(dtype.numpy))
        elif dtype.kind == "float":
            arrays.append(rng.standard_normal(node.shape).astype(dtype.numpy))
        else:
            arrays.append(rng.integers(0, 2, node.shape).astype(dtype.numpy))
    return arrays


def agrees(graph: Graph, arrays: list[np.ndarray], seed: int = 0) -> Program:
    """The program of a graph, run in two orders, gives what eager evaluation does."""
    program = Program(graph)
    values = run_eagerly(graph, arrays)
    first = run_program(program, arrays, "backward")
    second = run_program(program, arrays, "shuffled", seed)
    for node, found, again in zip(graph.outputs, first, second, strict=True):
        np.testing.assert_array_equal(found, again)
        same(found, values[node], node.type.dtype)
    return program


def same(found: np.ndarray, wanted: np.ndarray, dtype: DType) -> None:
    if dtype.kind != "float":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = wanted.astype(np.float64)
    limit = TOLERANCE[dtype.name] * (1 + np.abs(wide).max(initial=0))
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=limit)


class Made(Make):
    """Names positions so that `arrays_of` finds them."""

    def positions(self, *shape: int, dtype: DType = int64) -> Node:
        node = self.input(*shape, dtype=dtype)
        node.attrs["name"]
        return node


def rows_added(
    rows: int, count: int, width: int, dtype: DType = float32, base: Any = 0.0
) -> Graph:
    """`count` rows of `width` elements added to `rows`; `base` is a number or None, an input."""
    make = Make()
    at, values = make.input(count, dtype=int64), make.input(count, width, dtype=dtype)
    start = make.input(rows, width, dtype=dtype) if base is None else _number(make, base, dtype,
                                                                               (rows, width))  # fmt: skip
    return make.graph(make.index_put(start, at, values, axis=0, accumulate=True))


def _number(make: Make, value: Any, dtype: DType, shape: tuple[int, ...]) -> Node:
    return make.build.full(shape, value, dtype)


def with_positions(graph: Graph, positions: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """Arrays for the inputs, of which the first are the positions."""
    rng = np.random.default_rng(seed)
    first, *others = graph.inputs
    return [
        np.asarray(positions).astype(first.type.dtype.numpy).reshape(first.shape),
        *(random_values(rng, each) for each in others),
    ]


def random_values(rng: np.random.Generator, node: Node) -> np.ndarray:
    dtype = node.type.dtype
    if dtype.kind == "float":
        return rng.standard_normal(node.shape).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype.kind == "bool" else 100, node.shape).astype(dtype.numpy)
