"""Discrete Fourier transforms: `tgraph.fft`.

`n` (or `s`, for several dimensions) cuts the input, or adds zeros behind it. `norm` says which way
is divided: "backward" (the inverse by n), "forward" (the other way), "ortho" (both by sqrt(n)).

>>> import tgraph as tg
>>> tg.fft.fft(tg.tensor([1.0, 0.0, 0.0, 0.0])).real
tensor([1., 1., 1., 1.])
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable, Sequence
from typing import Any

from .core.complex_parts import conjugate as _conjugate
from .core.keywords import publish as _publish
from .core.keywords import with_keywords as _with_keywords
from .core.out_argument import with_out as _with_out
from .core.tensor import Tensor
from .ops import creation as _creation
from .ops import creation_options as _creation_options
from .ops import fourier as _f
from .ops.concatenation import cat as _cat
from .ops.concatenation import roll as _roll
from .ops.elementwise import mul as _mul
from .runtime.dtypes import DType

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftfreq", "rfftn",
]  # fmt: skip

_Sizes = Sequence[int] | None
_Dims = int | Sequence[int] | None
_LAST = (-2, -1)


# --- one dimension -------------------------------------------------------------------------------


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """sum_j input[j] * exp(-2 * pi * i * j * k / n) for k from 0 to n - 1."""
    return _f.along(_f.as_complex("fft", input), n, dim, _f.norm_of(norm), False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    return _f.along(_f.as_complex("ifft", input), n, dim, _f.norm_of(norm), True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n // 2 + 1 numbers of `fft` of real numbers; the others are their conjugates.

    >>> import tgraph as tg
    >>> tg.fft.rfft(tg.ones(4)).real
    tensor([4., 0., 0.])
    """
    return _f.half(fft(_f.as_real("rfft", input), n, dim, norm), dim)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`, of `n` real numbers, by default twice as many as it gave, less 2."""
    return _f.to_real(_f.as_complex("irfft", input), n, dim, _f.norm_of(norm))


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The `fft` of a signal whose first half is given, and whose spectrum is real."""
    return irfft(_conjugate(_f.as_complex("hfft", input)), n, dim, _f.other_way(norm))


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`."""
    return _conjugate(rfft(_f.as_real("ihfft", input), n, dim, _f.other_way(norm)))


# --- several dimensions --------------------------------------------------------------------------


def _several(x: Tensor, pairs: Any, norm: str | None, inverse: bool) -> Tensor:
    for size, dim in pairs:
        x = _f.along(x, size, dim, _f.norm_of(norm), inverse)
    return x


def fftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """`fft` along several dimensions, by default all."""
    x = _f.as_complex("fftn", input)
    return _several(x, _f.sizes_and_dims(x, s, dim), norm, False)


def ifftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`."""
    x = _f.as_complex("ifftn", input)
    return _several(x, _f.sizes_and_dims(x, s, dim), norm, True)


def rfftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """`rfft` along the last of several dimensions, and `fft` along the others."""
    x = _f.as_real("rfftn", input)
    *others, (size, last) = _f.some_sizes_and_dims("rfftn", x, s, dim)
    return _several(rfft(x, size, last, norm), others, norm, False)


def irfftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    x = _f.as_complex("irfftn", input)
    *others, (size, last) = _f.some_sizes_and_dims("irfftn", x, s, dim)
    return irfft(_several(x, others, norm, True), size, last, norm)


def hfftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """`hfft` along the last of several dimensions, and `fft` along the others."""
    return irfftn(_conjugate(_f.as_complex("hfftn", input)), s, dim, _f.other_way(norm))


def ihfftn(input: Tensor, s: _Sizes = None, dim: _Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`."""
    return _conjugate(rfftn(_f.as_real("ihfftn", input), s, dim, _f.other_way(norm)))


def fft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`fftn` along two dimensions, by default the last."""
    return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`ifftn` along two dimensions, by default the last."""
    return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`rfftn` along two dimensions, by default the last."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`irfftn` along two dimensions, by default the last."""
    return irfftn(input, s, dim, norm)


def hfft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`hfftn` along two dimensions, by default the last."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: _Sizes = None, dim: _Dims = _LAST, norm: str | None = None) -> Tensor:
    """`ihfftn` along two dimensions, by default the last."""
    return ihfftn(input, s, dim, norm)


# --- frequencies ---------------------------------------------------------------------------------


def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, **options: Any
) -> Tensor:
    """The frequencies of what `fft` gives of `n` points `d` apart, negative ones behind.

    >>> import tgraph as tg
    >>> tg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    options.update(dtype=dtype or _creation_options.get_default_dtype(), device=device)
    first = _creation.arange((n - 1) // 2 + 1, **options)
    behind = _creation.arange(-(n // 2), 0, **options)
    return _mul(_cat([first, behind]), _step(n * d))


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, **options: Any
) -> Tensor:
    """The frequencies of what `rfft` gives of `n` points `d` apart."""
    options.update(dtype=dtype or _creation_options.get_default_dtype(), device=device)
    return _mul(_creation.arange(n // 2 + 1, **options), _step(n * d))


def _step(length: float) -> float:
    return 1 / length if length else _math.inf


def fftshift(input: Tensor, dim: _Dims = None) -> Tensor:
    """Negative frequencies before the others.

    >>> import tgraph as tg
    >>> tg.fft.fftshift(tg.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """
    return _shifted(input, dim, lambda size: size // 2)


def ifftshift(input: Tensor, dim: _Dims = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(input, dim, lambda size: (size + 1) // 2)


def _shifted(input: Tensor, dim: _Dims, by: Any) -> Tensor:
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return _roll(input, [by(input._type.shape[each]) for each in dims], dims)


def _as_users_call_it(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if "shift" in name or "freq" in name:
        return _with_keywords(function)
    return _with_out(function, "any")


_publish(globals(), {_name: _as_users_call_it(_name, globals()[_name]) for _name in __all__})
