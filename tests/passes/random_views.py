"""Random graphs that are rich in what passes rewrite: views, layouts, numbers, products."""

from __future__ import annotations

import numpy as np
from pass_testing import Maker
from tgraph.compiler.ir import Graph, IRTypeError, Node
from tgraph.runtime.dtypes import bool_, float64, int32

_UNARY = ("neg", "abs", "tanh", "copy", "sin")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0)
_SIZES = (1, 1, 2, 3, 4)
_MOST = 400


class RandomGraph:
    """Grows a graph of float64 values by random steps, all from one seed."""

    def __init__(self, seed: int, steps: int = 25) -> None:
        self.rng = np.random.default_rng(seed)
        self.make = Maker()
        self.values: list[Node] = []
        for at in range(4):
            shape = self.shape(int(self.rng.integers(0, 5)))
            self.values.append(self.make.input(*shape, dtype=float64, name=f"x{at}"))
        while len(self.values) < steps:
            step = getattr(self, self.one(_STEPS))
            try:
                node = step(self.one(self.values))
            except (IRTypeError, ValueError):
                continue
            if node is not None and node.type.numel <= _MOST and node.type.ndim <= 7:
                self.values.append(node)

    def graph(self) -> Graph:
        outputs = self.rng.choice(len(self.values), 3)
        return self.make.graph(*(self.values[at] for at in outputs), self.values[-1])

    def one(self, options):
        return options[int(self.rng.integers(len(options)))]

    def shape(self, ndim: int) -> tuple[int, ...]:
        return tuple(self.one(_SIZES) for _ in range(ndim))

    def some_axes(self, x: Node) -> tuple[int, ...]:
        return tuple(axis for axis in range(x.type.ndim) if self.rng.random() < 0.4)

    def fitting(self, x: Node) -> Node:
        """A value that broadcasts against x, or a number."""
        same = [each for each in self.values if each.shape == x.shape]
        if self.rng.random() < 0.2:
            return self.make.number(self.one(_NUMBERS), float64)
        return self.one(same if self.rng.random() < 0.5 else self.values)

    # --- steps ---

    def unary(self, x):
        return getattr(self.make, self.one(_UNARY))(x)

    def binary(self, x):
        operands = [x, self.fitting(x)]
        self.rng.shuffle(operands)
        return getattr(self.make, self.one(_BINARY))(*operands)

    def divide(self, x):
        return self.make.div(x, self.make.number(self.one((2.0, 4.0, 3.0, -0.5)), float64))

    def power(self, x):
        return self.make.pow(self.make.sin(x), self.make.number(self.one((0.0, 1.0, 2.0, 3.0)),
                                                                float64))  # fmt: skip

    def choose(self, x):
        y = self.fitting(x)
        condition = self.make.input(*self.shape(0), dtype=bool_, name=f"c{len(self.values)}")
        return self.make.where(condition, x, y)

    def reduce(self, x):
        name = self.one(("sum", "max", "min", "prod"))
        source = self.make.sin(x) if name == "prod" else x
        keepdims = bool(self.rng.random() < 0.5)
        return getattr(self.make, name)(source, axes=self.some_axes(x), keepdims=keepdims)

    def permute(self, x):
        return self.make.permute(x, axes=tuple(int(a) for a in self.rng.permutation(x.type.ndim)))

    def reshape(self, x):
        left, shape = x.type.numel, []
        while left > 1:
            divisors = [d for d in range(2, left + 1) if left % d == 0]
            shape.append(self.one(divisors))
            left //= shape[-1]
        for _ in range(int(self.rng.integers(0, 3))):
            shape.insert(int(self.rng.integers(len(shape) + 1)), 1)
        return self.make.reshape(x, shape=tuple(shape))

    def broadcast(self, x):
        grown = tuple(self.one(_SIZES) if size == 1 else size for size in x.shape)
        return self.make.broadcast(x, shape=(*self.shape(int(self.rng.integers(0, 2))), *grown))

    def slice(self, x):
        starts = [int(self.rng.integers(0, size + 1)) for size in x.shape]
        stops = [int(self.rng.integers(at, size + 1)) for at, size in zip(starts, x.shape)]
        steps = tuple(self.one((1, 1, 2)) for _ in x.shape)
        return self.make.slice(x, starts=tuple(starts), stops=tuple(stops), steps=steps)

    def update(self, x):
        part = self.slice(x)
        return self.make.slice_update(x, self.make.neg(part), **part.attrs)

    def flip(self, x):
        return self.make.flip(x, axes=self.some_axes(x))

    def pad(self, x):
        low, high, interior = (tuple(self.one((0, 0, 1, 2)) for _ in x.shape) for _ in range(3))
        value = self.one((0.0, -0.0, 1.5))
        return self.make.pad(x, low=low, high=high, interior=interior, value=value)

    def concatenate(self, x):
        axis = int(self.rng.integers(x.type.ndim))
        return self.make.concatenate(x, self.make.neg(x), self.fitting(x), axis=axis)

    def unfold(self, x):
        axes = self.some_axes(x)
        sizes, strides, dilations = (tuple(self.one((1, 2, 3)) for _ in axes) for _ in range(3))
        return self.make.unfold(x, axes=axes, sizes=sizes, strides=strides, dilations=dilations)

    def matmul(self, x):
        y = self.fitting(x)
        flags = {f"transpose_{which}": bool(self.rng.random() < 0.5) for which in "ab"}
        return self.make.matmul(x, y, **flags)

    def product_with_itself(self, x):
        batch = tuple(range(x.type.ndim - 2))
        transposed = self.make.permute(x, axes=(*batch, x.type.ndim - 1, x.type.ndim - 2))
        product = self.make.matmul(transposed, x, transpose_a=False, transpose_b=False)
        return self.make.sum(product, axes=batch, keepdims=False)

    def convolve(self, x):
        w = self.fitting(x)
        spatial = x.type.ndim - 2
        return self.make.convolution(
            x, w, groups=1,
            strides=tuple(self.one((1, 2)) for _ in range(spatial)),
            padding=tuple((self.one((-1, 0, 1, 2)), self.one((-1, 0, 1))) for _ in range(spatial)),
            dilation=tuple(self.one((1, 2)) for _ in range(spatial)),
            input_dilation=tuple(self.one((1, 1, 2)) for _ in range(spatial)),
        )  # fmt: skip

    def through_integers(self, x):
        return self.make.cast(self.make.cast(self.make.tanh(x), dtype=int32), dtype=float64)


_STEPS = (
    "unary", "unary", "binary", "binary", "binary", "divide", "power", "choose", "reduce",
    "reduce", "permute", "permute", "permute", "reshape", "reshape", "broadcast", "slice",
    "update", "flip", "pad", "concatenate", "unfold", "matmul", "matmul", "product_with_itself",
    "convolve", "through_integers",
)  # fmt: skip
