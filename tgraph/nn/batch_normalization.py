"""Normalisation per channel over whole batches, with running statistics."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import empty, ones, zeros
from ..ops.from_data import tensor
from ..runtime.dtypes import int64
from . import functional as F
from . import init
from .lazy import LazyModuleMixin
from .module import Module
from .parameter import Parameter, UninitializedBuffer, UninitializedParameter

Buffer = Tensor | None


class NormBase(Module):
    """What batch and instance normalisation have: weights and running statistics by channel."""

    _version = 2
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Buffer
    running_var: Buffer
    num_batches_tracked: Buffer

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

        self.register_parameter("weight", Parameter(made(empty)) if affine else None)
        self.register_parameter("bias", Parameter(made(empty)) if affine and bias else None)
        track = track_running_stats
        self.register_buffer("running_mean", made(zeros) if track else None)
        self.register_buffer("running_var", made(ones) if track else None)
        self.register_buffer("num_batches_tracked", _no_batches(device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set weight to ones, bias to zeros, and forget the batches seen so far."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        """Of states from before `num_batches_tracked` was part of them, that is kept."""
        key = prefix + "num_batches_tracked"
        is_old = (local_metadata.get("version") or 0) < 2
        if is_old and self.num_batches_tracked is not None and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


def _no_batches(device: Any) -> Tensor:
    return tensor(0, dtype=int64, device=device)


class BatchNormBase(NormBase):
    """What batch normalisation does whatever the number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training = self.training
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if training and self.track_running_stats and self.num_batches_tracked is not None:
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
            training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )


class LazyNormBase(LazyModuleMixin, NormBase):
    """Norms whose `num_features` is the number of channels of the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        options = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = _no_batches(device)

    def reset_parameters(self) -> None:
        """Set first values, once there are parameters."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Take `num_features` from `input`, then set first values."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for each in (self.weight, self.bias, self.running_mean, self.running_var):
            if each is not None:
                each.materialize((self.num_features,))
        self.reset_parameters()


class _Of1d(NormBase):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class _Of2d(NormBase):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class _Of3d(NormBase):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class BatchNorm1d(_Of1d, BatchNormBase):
    """Batch normalisation of [N, C] or [N, C, L], per channel; see `BatchNorm2d`."""


class BatchNorm2d(_Of2d, BatchNormBase):
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


class BatchNorm3d(_Of3d, BatchNormBase):
    """Batch normalisation of [N, C, D, H, W], per channel; see `BatchNorm2d`."""


class LazyBatchNorm1d(_Of1d, LazyNormBase, BatchNormBase):
    """A `BatchNorm1d` for as many channels as its first input has."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_Of2d, LazyNormBase, BatchNormBase):
    """A `BatchNorm2d` for as many channels as its first input has.

    >>> import tgraph as tg
    >>> norm = tg.nn.LazyBatchNorm2d()
    >>> _ = norm(tg.ones(2, 3, 4, 4))
    >>> norm
    BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_Of3d, LazyNormBase, BatchNormBase):
    """A `BatchNorm3d` for as many channels as its first input has."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(BatchNormBase):
    """Batch normalisation of any number of dimensions; in one process as `BatchNorm1d` to `3d`.

    Statistics are those of this process: there are no others yet that a group could be of.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with a `SyncBatchNorm` in the place of every batch normalisation.

        >>> from tgraph import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(net)[1].num_features
        3
        """
        found = module
        if isinstance(module, BatchNormBase):
            found = cls(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            names = "weight", "bias", "running_mean", "running_var", "num_batches_tracked"
            for name in names:
                setattr(found, name, getattr(module, name))
            found.training = module.training
        for name, child in module.named_children():
            found.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return found


# What PyTorch calls them.
_NormBase, _BatchNorm, _LazyNormBase = NormBase, BatchNormBase, LazyNormBase
