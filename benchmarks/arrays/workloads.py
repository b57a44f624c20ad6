"""The rows of programs over arrays: sizes and data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..case import Array
from ..workload import MIB, Random, Workload, normal


def field(random: Random, *shape: int) -> dict[str, Array]:
    return {"u": normal(random, *shape)}


def matrix(random: Random, *shape: int) -> dict[str, Array]:
    return {"x": normal(random, *shape)}


def two_matrices(random: Random, *shape: int) -> dict[str, Array]:
    """`a` is used transposed."""
    return {"a": normal(random, *shape[::-1]), "b": normal(random, *shape)}


def double(random: Random, *shape: int) -> dict[str, Array]:
    return {"x": random.uniform(0, 10, shape)}


def boxes(random: Random, *counts: int) -> dict[str, Array]:
    def made(count: int) -> Array:
        corners = random.uniform(0, 100, (count, 2))
        sides = random.uniform(1, 20, (count, 2))
        return np.concatenate([corners, corners + sides], 1).astype(np.float32)

    return {"a": made(counts[0]), "b": made(counts[1])}


def systems(random: Random, count: int, size: int = 8) -> dict[str, Array]:
    """Matrices whose diagonals dominate."""
    matrices = normal(random, count, size, size) + 4 * size * np.eye(size, dtype=np.float32)
    return {"matrices": matrices, "right": normal(random, count, size)}


def integers(random: Random, count: int) -> dict[str, Array]:
    return {"x": random.integers(-(2**31), 2**31, count, np.int32)}


def samples(random: Random, count: int, bins: int) -> dict[str, Array]:
    return {"x": normal(random, count), "edges": np.linspace(-3, 3, bins + 1, dtype=np.float32)}


def points(random: Random, queries: int, count: int) -> dict[str, Array]:
    return {"queries": normal(random, queries, 3), "points": normal(random, count, 3)}


def paths(random: Random, count: int, steps: int) -> dict[str, Array]:
    """Only the size: every contender draws its own numbers."""
    return {"size": np.array([count, steps])}


def waves(random: Random, rows: int, count: int) -> dict[str, Array]:
    """Values at equidistant points, and the cosines and sines of all waves."""
    places = np.arange(count) * (2 * math.pi / count)
    numbers = np.arange(count // 2 + 1)
    weights = np.where((numbers == 0) | (numbers == count // 2), 1, 2)
    angles = places[:, None] * numbers
    scale = np.sqrt(weights / count)
    return {
        "u": normal(random, rows, count),
        "cosines": (np.cos(angles) * scale).astype(np.float32),
        "sines": (np.sin(angles) * scale).astype(np.float32),
        "numbers": numbers.astype(np.float32),
    }


def hidden_markov(random: Random, steps: int, batch: int, states: int) -> dict[str, Array]:
    return {
        "start": normal(random, batch, states),
        "transitions": normal(random, states, states),
        "evidence": normal(random, steps, batch, states),
    }


def neighbours(random: Random, rows: int, width: int, count: int) -> dict[str, Array]:
    return {
        "table": normal(random, rows, width),
        "index": random.integers(0, rows, (rows, count)),
    }


def masked(random: Random, rows: int, columns: int) -> dict[str, Array]:
    return {"x": 3 * normal(random, rows, columns), "mask": random.random((rows, columns)) < 0.7}


def price(data: Mapping[str, Array], results: Sequence[Array]) -> list[Array]:
    """Draws differ: the price is one number, and its standard error a part of the tolerance."""
    return list(results)


Row = partial(Workload, theme="arrays")


def square_stats(size: int, name: str) -> Workload:
    """The plain rows' column statistics, of a square matrix."""
    return Workload(
        name,
        f"column mean and variance, row logsumexp, {size}×{size}",
        lambda random: {"x": 2 + 3 * normal(random, size, size)},
        least_bytes=4 * size * size,
        tolerance=5e-5,
        function="column_stats",
    )


def of(make: Any, *sizes: int) -> Any:
    """Data of these sizes."""
    return lambda random: make(random, *sizes)


ARRAYS = [
    square_stats(2048, "column_stats_square"),
    Row(
        "stencil", "ten five-point steps by slices and concatenation, 512×512", of(field, 512, 512)
    ),
    Row("stencil_3d", "two seven-point steps in a frame of zeros, 128³", of(field, 128, 128, 128)),
    Row(
        "image_filter",
        "separable filter of 7×7 by shifted slices, 1024×1024",
        of(field, 1030, 1030),
    ),
    Row("argmax", "argmax of rows, 4096×1024", of(matrix, 4096, 1024), least_bytes=16 * MIB),
    Row("topk", "greatest 10 of 2,000 in 1,000 rows, and where", of(matrix, 1000, 2000)),
    Row("sort", "sort rows, 1,000×2,000", of(matrix, 1000, 2000)),
    Row("sort_long", "sort a million", of(matrix, 1_000_000), function="sort"),
    Row(
        "cumsum",
        "cumulative sums of rows, 2048×2048",
        of(matrix, 2048, 2048),
        least_bytes=2 * 16 * MIB,
    ),
    Row(
        "cumsum_columns",
        "cumulative sums of columns, 2048×2048",
        of(matrix, 2048, 2048),
        least_bytes=2 * 16 * MIB,
    ),
    Row(
        "column_softmax",
        "softmax of columns, 4096×1024",
        of(matrix, 4096, 1024),
        least_bytes=2 * 16 * MIB,
    ),
    Row(
        "recurrence",
        "64 steps of a recurrence, all states stacked, 32×512",
        of(matrix, 64, 32, 512),
        least_bytes=2 * 4 * MIB,
        tolerance=5e-5,
    ),
    Row(
        "columns",
        "48 functions of a vector side by side, 50,000×48",
        of(field, 50_000),
        least_bytes=4 * 50_000 * 49,
    ),
    Row(
        "box_overlaps", "greatest overlap of each of 1,000 boxes with 1,000", of(boxes, 1000, 1000)
    ),
    Row("float64_sums", "float64 exp·sin, summed over rows, 1000×1000", of(double, 1000, 1000)),
    Row("gather_sum", "sum of 8 gathered rows of 20,000×64", of(neighbours, 20_000, 64, 8)),
    Row("masked_softmax", "softmax where a mask is, 2048×1024", of(masked, 2048, 1024)),
    Row(
        "logsumexp_chain",
        "forward algorithm of a hidden Markov model, 20 steps, 32×64 states",
        of(hidden_markov, 20, 32, 64),
        tolerance=5e-5,
    ),
    Row(
        "solves",
        "10,000 systems of 8×8 by hand-written elimination",
        of(systems, 10_000),
        tolerance=5e-5,
    ),
    Row(
        "vmap_solves",
        "vmap of linalg.solve, 10,000 systems of 8×8",
        of(systems, 10_000),
        tolerance=5e-5,
    ),
    Row(
        "hashing",
        "a hash of 4M integers of 32 bits",
        of(integers, 4 * MIB),
        least_bytes=2 * 16 * MIB,
    ),
    Row("histogram", "histogram by comparison, 100,000 values, 64 bins", of(samples, 100_000, 64)),
    Row(
        "nearest",
        "nearest of 2,000 points by broadcasting, for 1,000",
        of(points, 1000, 2000),
        tolerance=1e-4,
    ),
    Row(
        "monte_carlo",
        "an Asian option's price, 100,000 paths of 16 steps, numbers drawn",
        of(paths, 100_000, 16),
        tolerance=3e-2,
        summary=price,
    ),
    Row(
        "spectral",
        "a step by real waves, 256 rows of 512 points",
        of(waves, 256, 512),
        tolerance=1e-4,
    ),
]
