"""Activations as `nn.functional` has them: in place by name, softmax without a dimension."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.autocast import with_autocast
from ..core.tensor import Tensor
from ..runtime.dtypes import DType
from . import activations as a
from . import shrinking
from .generator import Generator


def relu_(input: Tensor) -> Tensor:
    """`relu`, written over its argument."""
    return a.relu(input, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, written over its argument."""
    return a.elu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """`selu`, written over its argument."""
    return a.selu(input, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, written over its argument."""
    return a.celu(input, alpha, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, written over its argument."""
    return a.leaky_relu(input, negative_slope, inplace=True)


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`rrelu`, written over its argument."""
    return shrinking.leaked(input, lower, upper, training, generator, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, written over its argument.

    >>> import tgraph as tg
    >>> x = tg.tensor([-2.0, 0.5])
    >>> tg.nn.functional.hardtanh_(x) is x, x
    (True, tensor([-1.0000,  0.5000]))
    """
    return a.hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, written over its argument."""
    return a.threshold(input, threshold, value, inplace=True)


def _dim(dim: int | None, ndim: int, name: str, level: int) -> int:
    """The dimension, or the one that PyTorch once took where none was given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=level,
    )
    return 0 if ndim in (0, 1, 3) else 1


@with_autocast
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: Any = 3, dtype: DType | None = None
) -> Tensor:
    """exp(x) over its sum along `dim`: positive numbers that add up to 1."""
    return a.softmax(input, _dim(dim, input.ndim, "softmax", _stacklevel), dtype)


@with_autocast
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: Any = 3, dtype: DType | None = None
) -> Tensor:
    """The logarithm of softmax, without underflow."""
    return a.log_softmax(input, _dim(dim, input.ndim, "log_softmax", _stacklevel), dtype)


@with_autocast
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: Any = 3, dtype: DType | None = None
) -> Tensor:
    """The softmax of -x."""
    return a.softmin(input, _dim(dim, input.ndim, "softmin", _stacklevel), dtype)
