"""MobileNet V2: windows for each channel between linear maps of the channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...core.tensor import Tensor
from ..ops import Conv2dNormActivation
from .builders import builder, make_divisible

__all__ = ["MobileNetV2", "mobilenet_v2"]

Norm = Callable[..., nn.Module]
# How often wider inside, channels, blocks, stride of the first.
_SETTING = [
    [1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2],
    [6, 320, 1, 1],
]  # fmt: skip


class InvertedResidual(nn.Module):
    """Channels are made many, seen through windows each by itself, and made few again."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Norm | None = None
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        width = round(inp * expand_ratio)
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, width, 1, 1, None, 1, norm_layer, nn.ReLU6))
        layers += [
            Conv2dNormActivation(width, width, 3, stride, None, width, norm_layer, nn.ReLU6),
            nn.Conv2d(width, oup, 1, bias=False), norm_layer(oup),
        ]  # fmt: skip
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNet V2, of which `width_mult` scales the channels."""

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None, round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None, norm_layer: Norm | None = None,
        dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        setting = _SETTING if inverted_residual_setting is None else inverted_residual_setting
        if len(setting) == 0 or len(setting[0]) != 4:
            raise ValueError(
                "inverted_residual_setting should be non-empty or a 4-element list, got "
                f"{inverted_residual_setting}"
            )
        channels = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        layers = [Conv2dNormActivation(3, channels, 3, 2, None, 1, norm_layer, nn.ReLU6)]
        for ratio, wanted, count, stride in setting:
            width = make_divisible(wanted * width_mult, round_nearest)
            for at in range(count):
                step = 1 if at else stride
                layers.append(
                    block(channels, width, step, expand_ratio=ratio, norm_layer=norm_layer)
                )
                channels = width
        last = self.last_channel
        layers.append(Conv2dNormActivation(channels, last, 1, 1, None, 1, norm_layer, nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(last, num_classes))
        for each in self.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight, mode="fan_out")
            elif isinstance(each, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(each.weight)
            elif isinstance(each, nn.Linear):
                nn.init.normal_(each.weight, 0, 0.01)
            else:
                continue
            if each.bias is not None:
                nn.init.zeros_(each.bias)

    def forward(self, x: Tensor) -> Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(pooled.flatten(1))


@builder
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNet V2."""
    return MobileNetV2(**kwargs)
