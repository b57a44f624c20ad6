"""What a row of the tables is, and data that many rows begin with."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .case import Array

Random = np.random.Generator
MIB = 1 << 20


@dataclass(frozen=True)
class Workload:
    """One row of the tables.

    name: of the functions that implement it; `title` says what is computed.
    make: the data from a random generator.
    tolerance: greatest error relative to the greatest value of an output.
    least_bytes: what must be read and written at least, where memory is the bound; else 0.
    steps: calls made before the results are compared (training steps change their parameters).
    function: the name of its functions, where it is not that of the row.
    theme: the package that has the contenders' functions.
    summary: what is compared of data and results, where they are drawn at random: a statistic.
    """

    name: str
    title: str
    make: Callable[[Random], dict[str, Array]]
    tolerance: float = 2e-5
    least_bytes: int = 0
    steps: int = 1
    function: str = ""
    theme: str = "contenders"
    summary: Callable[[Mapping[str, Array], Sequence[Array]], list[Array]] | None = None

    @property
    def implementation(self) -> str:
        """Name of the function in each contender's module."""
        return self.function or self.name

    def data(self) -> dict[str, Array]:
        """The same arrays for every contender."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


def parameters(data: Mapping[str, Array]) -> list[str]:
    """Names of the trainable parameters in `data`: weights and biases, in order."""
    return [name for name in data if name.endswith(("_w", "_b"))]


def normal(random: Random, *shape: int) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def linear(random: Random, name: str, inputs: int, outputs: int) -> dict[str, Array]:
    """Weights (outputs, inputs) and biases, uniform as PyTorch's Linear begins."""
    bound = 1 / math.sqrt(inputs)
    return {
        f"{name}_w": random.uniform(-bound, bound, (outputs, inputs)).astype(np.float32),
        f"{name}_b": random.uniform(-bound, bound, outputs).astype(np.float32),
    }


def filters(random: Random, name: str, inputs: int, outputs: int) -> dict[str, Array]:
    bound = 1 / math.sqrt(9 * inputs)
    return {
        f"{name}_w": random.uniform(-bound, bound, (outputs, inputs, 3, 3)).astype(np.float32),
        f"{name}_b": random.uniform(-bound, bound, outputs).astype(np.float32),
    }


def norm(random: Random, name: str, size: int) -> dict[str, Array]:
    return {
        f"{name}_w": 1 + 0.1 * normal(random, size),
        f"{name}_b": 0.1 * normal(random, size),
    }
