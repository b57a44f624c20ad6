"""A residual network of small images in training, over whatever computes its layers.

He et al., "Deep Residual Learning for Image Recognition" (2016): a stem, stages of blocks of two
3×3 convolutions, each stage twice as wide as the one before and its images half as high, whose
first block has a 1×1 convolution beside it; batch norm behind each convolution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from ..case import Array
from ..workload import Random, linear, norm, normal


class Layers(Protocol):
    """What a library has to bring."""

    def convolve(self, x: Any, weight: Any, stride: int) -> Any:
        """Padded so that only the stride makes the image smaller."""

    def norm(self, x: Any, name: str, weight: Any, bias: Any) -> Any:
        """Batch norm by the batch's own statistics."""

    def relu(self, x: Any) -> Any: ...

    def add(self, x: Any, y: Any) -> Any: ...

    def pool(self, x: Any) -> Any:
        """The mean of each channel of each image."""

    def linear(self, x: Any, weight: Any, bias: Any) -> Any: ...


class TorchLayers:
    """In PyTorch's interface, which tgraph has too."""

    def __init__(self, library: Any, p: Mapping[str, Any]) -> None:
        self.F = library.nn.functional
        self.relu, self.linear = self.F.relu, self.F.linear
        norms = [name.removesuffix("_w") for name in p if name.endswith("norm_w")]
        self.running = {
            name: [make(len(p[f"{name}_w"])) for make in (library.zeros, library.ones)]
            for name in norms
        }

    def convolve(self, x: Any, weight: Any, stride: int) -> Any:
        return self.F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def norm(self, x: Any, name: str, weight: Any, bias: Any) -> Any:
        return self.F.batch_norm(x, *self.running[name], weight, bias, training=True)

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def pool(self, x: Any) -> Any:
        return self.F.adaptive_avg_pool2d(x, 1).flatten(1)


def data(
    random: Random, batch: int, size: int, width: int, stages: int, blocks: int
) -> dict[str, Array]:
    """Images, labels and parameters; `blocks` is of a stage, `width` of the first."""
    found = {
        "x": normal(random, batch, 3, size, size),
        "labels": random.integers(0, 10, batch),
        **_convolution(random, "stem", 3, width, 3),
    }
    inputs = width
    for number in range(stages * blocks):
        name, outputs = f"block{number}", width << number // blocks
        found |= _convolution(random, f"{name}a", inputs, outputs, 3)
        found |= _convolution(random, f"{name}b", outputs, outputs, 3)
        if inputs != outputs:
            found |= _convolution(random, f"{name}skip", inputs, outputs, 1)
        inputs = outputs
    return {**found, **linear(random, "head", inputs, 10)}


def _convolution(
    random: Random, name: str, inputs: int, outputs: int, size: int
) -> dict[str, Array]:
    """Weights as He et al. begin, and those of the norm behind them."""
    scale = math.sqrt(2 / (inputs * size * size))
    weight = normal(random, outputs, inputs, size, size)
    weight *= scale
    return {f"{name}_w": weight, **norm(random, f"{name}_norm", outputs)}


def forward(layers: Layers, p: Mapping[str, Any], x: Any) -> Any:
    """The scores of the images `x`; how many blocks there are, the names of `p` tell."""
    h = layers.relu(_normed(layers, p, x, "stem", 1))
    number = 0
    while f"block{number}a_w" in p:
        name = f"block{number}"
        skips = f"{name}skip_w" in p
        stride = 2 if skips else 1
        inner = layers.relu(_normed(layers, p, h, f"{name}a", stride))
        beside = _normed(layers, p, h, f"{name}skip", stride) if skips else h
        h = layers.relu(layers.add(_normed(layers, p, inner, f"{name}b", 1), beside))
        number += 1
    return layers.linear(layers.pool(h), p["head_w"], p["head_b"])


def _normed(layers: Layers, p: Mapping[str, Any], x: Any, name: str, stride: int) -> Any:
    h = layers.convolve(x, p[f"{name}_w"], stride)
    return layers.norm(h, f"{name}_norm", p[f"{name}_norm_w"], p[f"{name}_norm_b"])
