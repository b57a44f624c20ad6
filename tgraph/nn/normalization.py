"""Normalisation: shift and scale to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import ones, zeros
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


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions, then w * x.

    `eps` is added to the mean square; that of the dtype for None.
    Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).

    >>> import tgraph as tg
    >>> tg.nn.RMSNorm(2)(tg.tensor([[1.0, 7.0]])).detach()
    tensor([[0.2000, 1.4000]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        is_number = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if is_number else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = ones(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(weight) if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Set weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalises each of `num_groups` groups of channels of each sample, then w * x + b.

    Source: Wu and He, "Group normalization" (2018).

    >>> import tgraph as tg
    >>> tg.nn.GroupNorm(1, 2)(tg.tensor([[[1.0], [3.0]]])).detach().flatten()
    tensor([-1.0000,  1.0000])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine

        def parameter(make: Any, wanted: bool) -> Parameter | None:
            return Parameter(make(num_channels, device=device, dtype=dtype)) if wanted else None

        self.register_parameter("weight", parameter(ones, affine))
        self.register_parameter("bias", parameter(zeros, affine and bias))

    def reset_parameters(self) -> None:
        """Set weight to ones and bias to zeros."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by (k + alpha * the mean square of `size` neighbouring channels) ** beta.

    Source: Krizhevsky, Sutskever and Hinton, "ImageNet classification" (2012).

    >>> import tgraph as tg
    >>> tg.nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)(tg.ones(1, 1, 2))
    tensor([[[0.5000, 0.5000]]])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
