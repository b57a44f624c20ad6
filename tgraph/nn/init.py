"""Filling parameters with their first values, in place, at once and outside of the gradient.

The formulas are those of PyTorch's `torch.nn.init`; each function names their source.
"""

from __future__ import annotations

import functools
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.from_data import from_numpy
from ..ops.generator import Generator
from ..ops.random import rand

_F = TypeVar("_F", bound=Callable[..., Tensor])


class _Skipping(threading.local):
    on = False


_skipping = _Skipping()


@contextmanager
def skipped() -> Iterator[None]:
    """Inside, functions of this module leave tensors as they are."""
    before, _skipping.on = _skipping.on, True
    try:
        yield
    finally:
        _skipping.on = before


def _at_once(fill: _F) -> _F:
    """What fills a tensor outside of the gradient, also where a graph is built up front."""

    @functools.wraps(fill)
    def run(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if _skipping.on:
            return tensor
        with current_context().making_state(tensor), no_grad():
            return fill(tensor, *args, **kwargs)

    return run  # type: ignore[return-value]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are to be scaled.

    >>> calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """By the name that PyTorch's programs know: `fan_in_and_out`."""
    return fan_in_and_out(tensor)


def fan_in_and_out(tensor: Tensor) -> tuple[int, int]:
    """Connections into and out of a unit, for a weight [out, in, *window]."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, "
            f"got shape {list(tensor.shape)}"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


@_at_once
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_at_once
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@_at_once
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of which those outside [a, b] are left out.

    Drawn as the inverse of the normal distribution function at uniform numbers.
    """
    from scipy.special import ndtr, ndtri

    low, high = ndtr((a - mean) / std), ndtr((b - mean) / std)
    drawn = _doubles(tensor.uniform_(0.0, 1.0, generator=generator))
    values = mean + std * ndtri(low + drawn * (high - low))
    return tensor.copy_(from_numpy(np.clip(values, a, b)))


def _doubles(tensor: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = tensor.detach().cpu().numpy()
    return array.astype(np.float64)


@_at_once
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@_at_once
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(from_numpy(np.eye(*tensor.shape)))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers in ±gain * sqrt(6 / (fan in + fan out)).

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks" (2010).
    """
    bound = gain * math.sqrt(6.0 / sum(fan_in_and_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of deviation gain * sqrt(2 / (fan in + fan out)); see `xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fan_in_and_out(tensor))), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """One of `fan_in_and_out`, by the name that PyTorch's programs know."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fan_in_and_out(tensor)[0 if mode.lower() == "fan_in" else 1]


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers in ±gain * sqrt(3 / fan).

    Source: He et al., "Delving deep into rectifiers" (2015).
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers of deviation gain / sqrt(fan); see `kaiming_uniform_`."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity), generator)


@_at_once
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A random matrix [rows, the rest] with orthonormal rows or columns, times `gain`.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks" (2013).
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor.shape[0]
    drawn = _doubles(tensor.normal_(0.0, 1.0, generator=generator))
    matrix = drawn.reshape(rows, -1)
    wide = matrix.shape[0] < matrix.shape[1]
    q, r = np.linalg.qr(matrix.T if wide else matrix)
    q = q * np.sign(np.diag(r))
    result = np.ascontiguousarray(q.T if wide else q).reshape(drawn.shape)
    return tensor.copy_(from_numpy(gain * result))


@_at_once
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight [out, in, *window] so that it passes its channels on.

    >>> import tgraph as tg
    >>> dirac_(tg.empty(2, 2, 3))[0].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = np.zeros(tensor.shape)
    size = tensor.shape[0] // groups
    middle = tuple(each // 2 for each in tensor.shape[2:])
    for group in range(groups):
        for at in range(min(size, tensor.shape[1])):
            values[(group * size + at, at, *middle)] = 1
    return tensor.copy_(from_numpy(values))


@_at_once
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with normal numbers, and a share of each column with zeros.

    Source: Martens, "Deep learning via Hessian-free optimization" (2010).
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    values = _doubles(tensor.normal_(0.0, std, generator=generator))
    places = _doubles(rand(rows, columns, generator=generator)).argsort(axis=0)
    zeros = places[: math.ceil(sparsity * rows)]
    np.put_along_axis(values, zeros, 0.0, axis=0)
    return tensor.copy_(from_numpy(values))


def _deprecated(fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
    name = fill.__name__

    @functools.wraps(fill)
    def run(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return fill(*args, **kwargs)

    run.__name__ = name[:-1]
    return run


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
