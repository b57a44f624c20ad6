"""Windows for spectra of signals: vectors that fall off to both sides."""

from __future__ import annotations

import math
from typing import Any

from ..core.operands import cast
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, float64
from . import creation, creation_options
from . import elementwise as e
from .bessel_functions import i0


def _phase(name: str, size: int, periodic: bool, options: dict[str, Any]) -> tuple[Tensor, Any]:
    """Places from 0 to 1, and the dtype of the result; one element less without its end."""
    dtype = creation_options.as_dtype(options.get("dtype")) or creation_options.get_default_dtype()
    if size < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got {size}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype.name}")
    places = creation.arange(size, dtype=float64, device=options.get("device"))
    if size == 1:
        return e.add(places, 0.5), dtype
    return e.div(places, max(size if periodic else size - 1, 1)), dtype


def _finished(window: Tensor, dtype: DType, options: dict[str, Any]) -> Tensor:
    made = cast(window, dtype)
    return made.requires_grad_() if options.get("requires_grad") else made  # type: ignore[attr-defined]


@public()
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """sin(pi * x)**2; `periodic`, without its last element.

    >>> import tgraph as tg
    >>> tg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hamming_window(window_length, periodic, 0.5, 0.5, **options)


@public()
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Tensor:
    """alpha - beta * cos(2 * pi * x).

    >>> import tgraph as tg
    >>> tg.hamming_window(3, periodic=False)
    tensor([0.0800, 1.0000, 0.0800])
    """
    x, dtype = _phase("hamming_window", window_length, periodic, options)
    found = e.sub(alpha, e.mul(e.cos(e.mul(x, 2 * math.pi)), beta))
    if window_length == 1:
        found = creation.ones_like(found)
    return _finished(found, dtype, options)


@public()
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 * cos(2 * pi * x) + 0.08 * cos(4 * pi * x).

    >>> import tgraph as tg
    >>> tg.blackman_window(4)[1:3]
    tensor([0.3400, 1.0000])
    """
    x, dtype = _phase("blackman_window", window_length, periodic, options)
    first = e.mul(e.cos(e.mul(x, 2 * math.pi)), 0.5)
    found = e.add(e.sub(0.42, first), e.mul(e.cos(e.mul(x, 4 * math.pi)), 0.08))
    return _finished(found, dtype, options)


@public()
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """1 - |2 * x - 1|.

    >>> import tgraph as tg
    >>> tg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    x, dtype = _phase("bartlett_window", window_length, periodic, options)
    return _finished(e.sub(1, e.abs(e.sub(e.mul(x, 2), 1))), dtype, options)


@public()
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """i0(beta * sqrt(1 - (2 * x - 1)**2)) / i0(beta).

    >>> import tgraph as tg
    >>> tg.kaiser_window(4, beta=1.0)
    tensor([0.7898, 0.9450, 1.0000, 0.9450])
    """
    x, dtype = _phase("kaiser_window", window_length, periodic, options)
    side = e.sub(e.mul(x, 2), 1)
    arch = e.sqrt(e.clamp(e.sub(1, e.mul(side, side)), min=0))
    scale = i0(creation.full((), beta, dtype=float64, device=x.device))
    return _finished(e.div(i0(e.mul(arch, beta)), scale), dtype, options)
