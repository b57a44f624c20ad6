"""Random additions at positions, in every form, with positions that are inside of their axes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
from kernel_cases import Make
from tgraph.compiler.ir import Graph, Node, TensorType, input_node
from tgraph.runtime.dtypes import DType, float32, int32, int64

Case = tuple[Graph, list[np.ndarray[Any, Any]]]


class Scatters(Make):
    """Makes scatters together with arrays for their inputs."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.rng = np.random.default_rng(seed)

    def values(self, *shape: int, dtype: DType = float32) -> Node:
        if dtype.kind == "float":
            array = self.rng.standard_normal(shape).astype(dtype.numpy)
        else:
            array = self.rng.integers(0, 2 if dtype.kind == "bool" else 100, shape)
        return self.given(array, dtype)

    def positions(self, below: int, *shape: int, dtype: DType = int64) -> Node:
        return self.given(self.rng.integers(0, below, shape), dtype)

    def given(self, array: Any, dtype: DType = int64) -> Node:
        array = np.asarray(array).astype(dtype.numpy)
        self.arrays.append(array)
        return self.input(*array.shape, dtype=dtype)

    def input(self, *shape: int, dtype: DType = float32) -> Node:
        """Any number of them."""
        self.inputs.append(input_node(f"x{len(self.inputs)}", TensorType(shape, dtype)))
        return self.inputs[-1]

    def start(self, from_number: bool, *shape: int, dtype: DType = float32) -> Node:
        return self.build.full(shape, 1, dtype) if from_number else self.values(*shape, dtype=dtype)


def rows_added(
    positions: Any, rows: int, width: int, dtype: DType = float32, from_number: bool = True
) -> Case:
    """Rows of `width` elements added at `positions` of `rows` rows."""
    return all_rows_added([positions], rows, width, dtype, from_number)


def all_rows_added(
    several: Iterable[Any],
    rows: int,
    width: int,
    dtype: DType = float32,
    from_number: bool = True,
) -> Case:
    """The same for each of several tensors of positions: a result each."""
    make = Scatters()
    results = []
    for positions in several:
        at = make.given(positions)
        values = make.values(len(positions), width, dtype=dtype)
        base = make.start(from_number, rows, width, dtype=dtype)
        results.append(make.index_put(base, at, values, axis=0, accumulate=True))
    return make.graph(*results), make.arrays


def random_case(seed: int, dtypes: tuple[DType, ...], count: int = 1) -> Case:
    """Scatters of up to some hundred elements."""
    rng = random.Random(seed)
    make = Scatters(seed)
    results = []
    for _ in range(count):
        kind = rng.choice((_rows, _rows, _points, _elements, _expanded))
        settings = rng.choice(dtypes), rng.choice((int64, int64, int32)), rng.random() < 0.6
        results.append(kind(make, rng, *settings))
    return make.graph(*results), make.arrays


def _shape(rng: random.Random, most: int, fewest: int = 0) -> list[int]:
    return [rng.randint(1, 6) for _ in range(rng.randint(fewest, most))]


def _rows(make: Scatters, rng: random.Random, dtype: DType, integer: DType, number: bool) -> Node:
    """Along one axis, with slices before it and rows behind it, and values that may be views."""
    lead, width, index = _shape(rng, 1), _shape(rng, 2), _shape(rng, 2)
    size = rng.randint(1, 40)
    base = make.start(number, *lead, size, *width, dtype=dtype)
    at = make.positions(size, *index, dtype=integer)
    shape = (*lead, *index, *width)
    values = make.values(*shape, dtype=dtype)
    turn = rng.choice(("no", "no", "flip", "slice", "permute"))
    if turn == "flip" and index:
        values = make.flip(values, axes=(len(lead),))
    elif turn == "slice":
        values = make.values(*(size + 2 for size in shape), dtype=dtype)
        values = make.slice(values, starts=(1,) * len(shape), steps=(1,) * len(shape),
                            stops=tuple(size + 1 for size in shape))  # fmt: skip
    elif turn == "permute":
        axes = tuple(reversed(range(len(shape))))
        values = make.permute(make.values(*reversed(shape), dtype=dtype), axes=axes)
    return make.index_put(base, at, values, axis=len(lead), accumulate=True)


def _points(make: Scatters, rng: random.Random, dtype: DType, integer: DType, number: bool) -> Node:
    """Along two neighbouring axes."""
    lead, width, index = _shape(rng, 1), _shape(rng, 1), _shape(rng, 2)
    sizes = rng.randint(1, 9), rng.randint(1, 9)
    base = make.start(number, *lead, *sizes, *width, dtype=dtype)
    at = [make.positions(size, *index, dtype=integer) for size in sizes]
    values = make.values(*lead, *index, *width, dtype=dtype)
    return make.index_put(base, *at, values, axis=len(lead), accumulate=True)


def _elements(
    make: Scatters, rng: random.Random, dtype: DType, integer: DType, number: bool
) -> Node:
    """Each element has a position of its own; the positions may be fewer along other axes."""
    shape = _shape(rng, 3, 1)
    axis = rng.randrange(len(shape))
    index = [rng.randint(1, size) for size in shape]
    index[axis] = rng.randint(1, 30)
    base = make.start(number, *shape, dtype=dtype)
    at = make.positions(shape[axis], *index, dtype=integer)
    return make.scatter_add(base, at, make.values(*index, dtype=dtype), axis=axis)


def _expanded(
    make: Scatters, rng: random.Random, dtype: DType, integer: DType, number: bool
) -> Node:
    """The positions of one row after another."""
    shape = _shape(rng, 3, 2)
    axis, count = rng.randrange(len(shape)), rng.randint(1, 30)
    base = make.start(number, *shape, dtype=dtype)
    at = make.positions(shape[axis], count, dtype=integer)
    lined = make.reshape(at, shape=tuple(count if n == axis else 1 for n in range(len(shape))))
    index = tuple(count if n == axis else size for n, size in enumerate(shape))
    wide = make.broadcast(lined, shape=index)
    return make.scatter_add(base, wide, make.values(*index, dtype=dtype), axis=axis)
