"""Normalisation per channel of each sample."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.tensor import Tensor
from ..ops import movement as m
from . import functional as F
from .batch_normalization import LazyNormBase, NormBase


class _InstanceNorm(NormBase):
    """What instance normalisation does whatever the number of dimensions."""

    spatial: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        one, batch = self.spatial + 1, self.spatial + 2
        if input.ndim not in (one, batch):
            raise ValueError(f"expected {one}D or {batch}D input (got {input.ndim}D input)")

    def _check_channels(self, input: Tensor) -> None:
        axis = input.ndim - self.spatial - 1
        found = input.shape[axis]
        if found == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={axis} to match num_features"
                f" ({self.num_features}), but got: {found}."
            )
        warnings.warn(
            f"input's size at dim={axis} does not match num_features. "
            "You can silence this warning by not passing in num_features, "
            "which is not used because affine=False",
            stacklevel=3,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_channels(input)
        if input.ndim == self.spatial + 1:
            return m.squeeze(self._normalized(m.unsqueeze(input, 0)), 0)
        return self._normalized(input)

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [N, C, L] or [C, L]; see `InstanceNorm2d`."""

    spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each sample of [N, C, H, W] with mean 0 and variance 1, then w * x + b.

    Also of one sample, [C, H, W]. With `track_running_stats` the mean statistics of the samples
    are kept as batch normalisation keeps its own, and used in evaluation.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance normalization" (2016).

    >>> import tgraph as tg
    >>> tg.nn.InstanceNorm2d(1)(tg.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[-1.0000,  1.0000]]]])
    """

    spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W] or [C, D, H, W]; see `InstanceNorm2d`."""

    spatial = 3


class LazyInstanceNorm1d(LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` for as many channels as its first input has."""

    spatial = 1
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` for as many channels as its first input has."""

    spatial = 2
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` for as many channels as its first input has."""

    spatial = 3
    cls_to_become = InstanceNorm3d
