"""Random convolutions, with all attributes and with operands that are views."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
from kernel_cases import Make
from tgraph.compiler.ir import Graph, Node, TensorType, input_node
from tgraph.compiler.ir.contractions import convolved_size
from tgraph.runtime.dtypes import DType, float32


class Shapes(NamedTuple):
    """The operands of a convolution as its attributes want them."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    attrs: dict[str, Any]


class Many(Make):
    """Makes graphs of any number of inputs."""

    def input(self, *shape: int, dtype: DType = float32) -> Node:
        self.inputs.append(input_node(f"x{len(self.inputs)}", TensorType(shape, dtype)))
        return self.inputs[-1]


def attrs_of(spatial: int, **given: Any) -> dict[str, Any]:
    """Attributes; those that are not given change nothing."""
    ones = (1,) * spatial
    plain = {"strides": ones, "padding": ((0, 0),) * spatial, "dilation": ones,
             "input_dilation": ones, "groups": 1}  # fmt: skip
    return {**plain, **given}


def random_shapes(rng: random.Random, largest: int = 400) -> Shapes:
    """A convolution with at least one place in its result and at most `largest`."""
    while True:
        spatial = rng.choice((1, 2, 2, 2, 3))
        most = {1: 24, 2: 9, 3: 5}[spatial]
        sizes = [rng.randint(1, most) for _ in range(spatial)]
        taps = [rng.randint(1, 4) for _ in range(spatial)]
        attrs = attrs_of(
            spatial,
            strides=tuple(rng.choice((1, 1, 2, 3)) for _ in sizes),
            padding=tuple((rng.randint(-2, 3), rng.randint(-2, 3)) for _ in sizes),
            dilation=tuple(rng.choice((1, 1, 2, 3)) for _ in sizes),
            input_dilation=tuple(rng.choice((1, 1, 2, 3)) for _ in sizes),
            groups=rng.choice((1, 1, 1, 2, 3)),
        )
        out = [
            convolved_size(*each)
            for each in zip(sizes, taps, attrs["strides"], attrs["padding"], attrs["dilation"],
                            attrs["input_dilation"])
        ]  # fmt: skip
        if min(out) < 1 or np.prod(out) > largest:
            continue
        groups = attrs["groups"]
        channels, outputs = rng.randint(1, 6), rng.randint(1, 9)
        x = (rng.randint(1, 3), channels * groups, *sizes)
        return Shapes(x, (outputs * groups, channels, *taps), attrs)


def convolution(make: Make, shapes: Shapes, dtype: DType = float32, view: str = "") -> Node:
    """A convolution of two inputs; `view` is how these lie: swapped, flipped, sliced."""
    x_shape, w_shape, attrs = shapes
    spatial = tuple(range(2, len(x_shape)))
    match view:
        case "swapped":
            x = make.permute(make.input(x_shape[1], x_shape[0], *x_shape[2:], dtype=dtype),
                             axes=(1, 0, *spatial))  # fmt: skip
            taps_first = make.input(*w_shape[2:], w_shape[0], w_shape[1], dtype=dtype)
            count = len(spatial)
            w = make.permute(taps_first, axes=(count, count + 1, *range(count)))
        case "flipped":
            x = make.flip(make.input(*x_shape, dtype=dtype), axes=spatial)
            w = make.flip(make.input(*w_shape, dtype=dtype), axes=spatial)
        case "sliced":
            whole = make.input(*(2 * size + 1 for size in x_shape), dtype=dtype)
            x = make.slice(whole, starts=(1,) * whole.type.ndim, stops=whole.shape,
                           steps=(2,) * whole.type.ndim)  # fmt: skip
            w = make.input(*w_shape, dtype=dtype)
        case _:
            x, w = make.input(*x_shape, dtype=dtype), make.input(*w_shape, dtype=dtype)
    return make.convolution(x, w, **attrs)


def graph_of(shapes: Shapes, dtype: DType = float32, view: str = "") -> Graph:
    """A graph of one convolution."""
    make = Make()
    return make.graph(convolution(make, shapes, dtype, view))
