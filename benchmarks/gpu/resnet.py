"""ResNet-18 for inference, over whatever computes its layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

EPSILON = 1e-5
# Of each residual block: its width over the first one's, and its stride.
BLOCKS = [(1, 1), (1, 1), (2, 2), (2, 1), (4, 2), (4, 1), (8, 2), (8, 1)]


class Layers(Protocol):
    """What a library has to bring."""

    def convolve(self, x: Any, weight: Any, stride: int) -> Any:
        """Padded so that only the stride makes the image smaller."""

    def norm(self, x: Any, scale: Any, shift: Any, mean: Any, var: Any) -> Any:
        """Batch norm with these statistics."""

    def relu(self, x: Any) -> Any: ...

    def pool(self, x: Any) -> Any:
        """The greatest of windows of 3×3, two apart, padded by one."""

    def linear(self, x: Any, weight: Any, bias: Any) -> Any: ...


class TorchLayers:
    """In PyTorch's functional interface, which tgraph has too."""

    def __init__(self, functional: Any) -> None:
        self.F = functional
        self.relu, self.linear = functional.relu, functional.linear

    def convolve(self, x: Any, weight: Any, stride: int) -> Any:
        return self.F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def norm(self, x: Any, scale: Any, shift: Any, mean: Any, var: Any) -> Any:
        return self.F.batch_norm(x, mean, var, scale, shift, eps=EPSILON)

    def pool(self, x: Any) -> Any:
        return self.F.max_pool2d(x, 3, 2, 1)


def convolutions(width: int) -> dict[str, tuple[int, int, int, int]]:
    """Outputs, inputs, size of the filter, and how many times smaller the result is per side."""
    found = {"stem": (width, 3, 7, 2)}
    inputs, reduced = width, 4
    for number, (factor, stride) in enumerate(BLOCKS):
        outputs, reduced = factor * width, reduced * stride
        found[f"block{number}a"] = (outputs, inputs, 3, reduced)
        found[f"block{number}b"] = (outputs, outputs, 3, reduced)
        if stride > 1:
            found[f"block{number}skip"] = (outputs, inputs, 1, reduced)
        inputs = outputs
    return found


def forward(layers: Layers, p: Mapping[str, Any]) -> Any:
    """The scores of the images `p["x"]`."""
    h = layers.pool(layers.relu(_convolved(layers, p, p["x"], "stem", 2)))
    for number, (_, stride) in enumerate(BLOCKS):
        name = f"block{number}"
        inner = layers.relu(_convolved(layers, p, h, f"{name}a", stride))
        skipped = _convolved(layers, p, h, f"{name}skip", stride) if stride > 1 else h
        h = layers.relu(_convolved(layers, p, inner, f"{name}b", 1) + skipped)
    return layers.linear(h.mean((2, 3)), p["head_w"], p["head_b"])


def _convolved(layers: Layers, p: Mapping[str, Any], x: Any, name: str, stride: int) -> Any:
    statistics = (p[f"{name}_{each}"] for each in ("scale", "shift", "mean", "var"))
    return layers.norm(layers.convolve(x, p[f"{name}_w"], stride), *statistics)
