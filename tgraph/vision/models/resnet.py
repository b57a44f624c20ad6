"""Residual networks: ResNet, ResNeXt, Wide ResNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...core.tensor import Tensor
from .builders import builder

__all__ = [
    "BasicBlock",
    "Bottleneck",
    "ResNet",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]  # fmt: skip

Norm = Callable[..., nn.Module]


def conv3x3(
    in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A window of 3 x 3 with borders that keep the size."""
    return nn.Conv2d(
        in_planes, out_planes, 3, stride, dilation, dilation=dilation, groups=groups, bias=False
    )


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A linear map of the channels."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions beside the identity."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + identity)


class Bottleneck(nn.Module):
    """Three convolutions beside the identity; that in the middle has fewer channels, and the
    stride."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + identity)


class ResNet(nn.Module):
    """Four stages of blocks, each but the first of half the size and twice the channels.

    >>> import tgraph as tg
    >>> ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)(tg.ones(2, 3, 32, 32)).shape
    tgraph.Size([2, 5])
    """

    def __init__(
        self, block: type[BasicBlock | Bottleneck], layers: Sequence[int], num_classes: int = 1000,
        zero_init_residual: bool = False, groups: int = 1, width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, got "
                f"{replace_stride_with_dilation}"
            )
        self._norm_layer = norm_layer
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._set_first_values(zero_init_residual)

    def _set_first_values(self, zero_init_residual: bool) -> None:
        for each in self.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(each, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(each.weight, 1)
                nn.init.constant_(each.bias, 0)
        if zero_init_residual:  # each block begins as the identity
            for each in self.modules():
                if isinstance(each, Bottleneck):
                    nn.init.constant_(each.bn3.weight, 0)
                elif isinstance(each, BasicBlock):
                    nn.init.constant_(each.bn2.weight, 0)

    def _make_layer(
        self, block: type[BasicBlock | Bottleneck], planes: int, blocks: int, stride: int = 1,
        dilate: bool = False,
    ) -> nn.Sequential:  # fmt: skip
        previous_dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        out_planes = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != out_planes:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, out_planes, stride), self._norm_layer(out_planes)
            )
        first = block(
            self.inplanes, planes, stride, downsample, self.groups, self.base_width,
            previous_dilation, self._norm_layer,
        )  # fmt: skip
        self.inplanes = out_planes
        others = [
            block(
                out_planes, planes, groups=self.groups, base_width=self.base_width,
                dilation=self.dilation, norm_layer=self._norm_layer,
            )
            for _ in range(1, blocks)
        ]  # fmt: skip
        return nn.Sequential(first, *others)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


@builder
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@builder
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@builder
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@builder
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@builder
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@builder
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-50: 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4, **kwargs)


@builder
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt-101: 32 groups of 8 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8, **kwargs)


@builder
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-101: 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4, **kwargs)


@builder
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """ResNet-50 of twice the width."""
    return ResNet(Bottleneck, [3, 4, 6, 3], width_per_group=128, **kwargs)


@builder
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """ResNet-101 of twice the width."""
    return ResNet(Bottleneck, [3, 4, 23, 3], width_per_group=128, **kwargs)
