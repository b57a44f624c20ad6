"""The standard's extension `fft`: discrete Fourier transforms, as `tgraph.fft` has them.

>>> import tgraph as tg
>>> tg.array_api.fft.rfft(tg.ones(4)).real
tensor([4., 0., 0.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import fft as _fft
from ..core.devices import DeviceLike
from ..core.tensor import Tensor
from ..runtime.dtypes import DType

_ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
__all__ = [*_ALONG_ONE, *_ALONG_SEVERAL, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _along_one(name: str) -> Callable[..., Tensor]:
    own = getattr(_fft, name)

    def call(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return own(x, n, axis, norm)

    return _named(call, name)


def _along_several(name: str) -> Callable[..., Tensor]:
    own = getattr(_fft, name)

    def call(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return own(x, s, axes, norm)

    return _named(call, name)


def _named(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`tgraph.fft.{name}`, by the standard's names of arguments."
    return call


globals().update({name: _along_one(name) for name in _ALONG_ONE})
globals().update({name: _along_several(name) for name in _ALONG_SEVERAL})


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """The frequencies of `fft` of `n` numbers at distances `d`."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """The frequencies of `rfft` of `n` numbers at distances `d`."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequencies in order, with zero in the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)
