"""DenseNet: each layer sees the results of all before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ... import nn
from ...core.tensor import Tensor
from ...nn import functional as F
from ...ops.concatenation import cat
from ...utils.checkpoint import checkpoint
from .builders import builder

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]


class _DenseLayer(nn.Module):
    def __init__(
        self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        width = bn_size * growth_rate
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, width, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, growth_rate, kernel_size=3, padding=1, bias=False)
        self.drop_rate = float(drop_rate)
        self.memory_efficient = memory_efficient

    def _bottleneck(self, *inputs: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(cat(inputs, 1))))

    def forward(self, input: Tensor | list[Tensor]) -> Tensor:
        features = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(each.requires_grad for each in features):
            narrow = checkpoint(self._bottleneck, *features, use_reentrant=False)
        else:
            narrow = self._bottleneck(*features)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, self.drop_rate, self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    _version = 2

    def __init__(
        self, num_layers: int, num_input_features: int, bn_size: int, growth_rate: int,
        drop_rate: float, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        for at in range(num_layers):
            width = num_input_features + at * growth_rate
            layer = _DenseLayer(width, growth_rate, bn_size, drop_rate, memory_efficient)
            self.add_module(f"denselayer{at + 1}", layer)

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Blocks of dense layers, between which channels and sizes are halved.

    >>> import tgraph as tg
    >>> DenseNet(8, (1, 1), 16, num_classes=5)(tg.ones(1, 3, 32, 32)).shape
    tgraph.Size([1, 5])
    """

    def __init__(
        self, growth_rate: int = 32, block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64, bn_size: int = 4, drop_rate: float = 0,
        num_classes: int = 1000, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        first = nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False)
        self.features = nn.Sequential(
            OrderedDict[str, nn.Module](
                conv0=first, norm0=nn.BatchNorm2d(num_init_features), relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
            )
        )  # fmt: skip
        width = num_init_features
        for at, count in enumerate(block_config, 1):
            block = _DenseBlock(count, width, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{at}", block)
            width += count * growth_rate
            if at < len(block_config):
                self.features.add_module(f"transition{at}", _Transition(width, width // 2))
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        self.classifier = nn.Linear(width, num_classes)
        for each in self.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight)
            elif isinstance(each, nn.BatchNorm2d):
                nn.init.constant_(each.weight, 1)
                nn.init.constant_(each.bias, 0)
            elif isinstance(each, nn.Linear):
                nn.init.constant_(each.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        out = F.adaptive_avg_pool2d(F.relu(self.features(x)), (1, 1))
        return self.classifier(out.flatten(1))


@builder
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@builder
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@builder
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@builder
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)
