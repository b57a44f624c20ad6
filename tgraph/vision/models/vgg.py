"""VGG, with and without batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import nn
from ...core.tensor import Tensor
from .builders import builder

__all__ = [
    "VGG", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip

cfgs: dict[str, list[int | str]] = {
    "A": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "B": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "D": [
        64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M",
    ],
    "E": [
        64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M",
        512, 512, 512, 512, "M",
    ],
}  # fmt: skip
"""The channels of the convolutions; "M" is a pooling."""


class VGG(nn.Module):
    """`features`, pooled to 7 x 7, and three linear layers."""

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )  # fmt: skip
        if init_weights:
            self._set_first_values()

    def _set_first_values(self) -> None:
        for each in self.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(each, nn.BatchNorm2d):
                nn.init.constant_(each.weight, 1)
            elif isinstance(each, nn.Linear):
                nn.init.normal_(each.weight, 0, 0.01)
            else:
                continue
            if each.bias is not None:
                nn.init.constant_(each.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """The convolutions of one of `cfgs`.

    >>> len(make_layers([8, "M", 16]))
    5
    """
    layers: list[nn.Module] = []
    channels = 3
    for each in cfg:
        if isinstance(each, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, each, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(each))
        layers.append(nn.ReLU(inplace=True))
        channels = each
    return nn.Sequential(*layers)


@builder
def vgg11(**kwargs: Any) -> VGG:
    """VGG-11."""
    return VGG(make_layers(cfgs["A"]), **kwargs)


@builder
def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG-11 with batch normalization."""
    return VGG(make_layers(cfgs["A"], True), **kwargs)


@builder
def vgg13(**kwargs: Any) -> VGG:
    """VGG-13."""
    return VGG(make_layers(cfgs["B"]), **kwargs)


@builder
def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG-13 with batch normalization."""
    return VGG(make_layers(cfgs["B"], True), **kwargs)


@builder
def vgg16(**kwargs: Any) -> VGG:
    """VGG-16."""
    return VGG(make_layers(cfgs["D"]), **kwargs)


@builder
def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG-16 with batch normalization."""
    return VGG(make_layers(cfgs["D"], True), **kwargs)


@builder
def vgg19(**kwargs: Any) -> VGG:
    """VGG-19."""
    return VGG(make_layers(cfgs["E"]), **kwargs)


@builder
def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG-19 with batch normalization."""
    return VGG(make_layers(cfgs["E"], True), **kwargs)
