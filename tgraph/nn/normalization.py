"""Normalisation: shift and scale to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import ones, tensor, zeros
from ..runtime.dtypes import int64
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class LayerNorm(Module):
    """Normalises over the last dimensions, of sizes `normalized_shape`, then w * x + b.

    The variance is the biased one; `eps` is added to it.
    Source: Ba, Kiros and Hinton, "Layer normalization" (2016).

    >>> import tgraph as tg
    >>> tg.nn.LayerNorm(2)(tg.tensor([[1.0, 3.0], [10.0, 30.0]])).detach()
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        is_number = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if is_number else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

        def parameter(make: Any, wanted: bool) -> Parameter | None:
            made = make(self.normalized_shape, device=device, dtype=dtype)
            return Parameter(made) if wanted else None

        self.register_parameter("weight", parameter(ones, elementwise_affine))
        self.register_parameter("bias", parameter(zeros, elementwise_affine and bias))

    def reset_parameters(self) -> None:
        """Set weight to ones and bias to zeros."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


def _reset_affine(module: Any) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class _BatchNorm(Module):
    """What batch normalisation does whatever the number of dimensions."""

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        def made(make: Any) -> Tensor:
            return make(num_features, device=device, dtype=dtype)

        self.register_parameter("weight", Parameter(made(ones)) if affine else None)
        self.register_parameter("bias", Parameter(made(zeros)) if affine and bias else None)
        track = track_running_stats
        self.register_buffer("running_mean", made(zeros) if track else None)
        self.register_buffer("running_var", made(ones) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64) if track else None)

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set weight to ones, bias to zeros, and forget the batches seen so far."""
        self.reset_running_stats()
        _reset_affine(self)

    def _check_input(self, input: Tensor) -> None:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        training = self.training
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / self.num_batches_tracked.to(input.dtype)
        update = not training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if update else None,
            self.running_var if update else None,
            self.weight,
            self.bias,
            training or self.running_mean is None,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L], per channel; see `BatchNorm2d`."""

    def _check_input(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W], per channel, then w * x + b.

    In training, every channel is normalised by mean and variance of the batch, and the running
    statistics move towards these by `momentum` (by 1 / number of batches for None); the running
    variance takes the unbiased one. In evaluation the running statistics are used.

    Source: Ioffe and Szegedy, "Batch normalization" (2015).

    >>> import tgraph as tg
    >>> norm = tg.nn.BatchNorm2d(3)
    >>> _ = norm(tg.ones(2, 3, 4, 4))
    >>> norm.running_mean
    tensor([0.1000, 0.1000, 0.1000])
    """

    def _check_input(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")
