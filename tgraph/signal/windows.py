"""Windows for spectra of signals: `tgraph.signal.windows`.

`sym` windows fall off to both sides alike, for filters; without it the last element is left out, so
that the window can be repeated, for spectra. Their greatest value is 1, where `M` is odd.

>>> import tgraph as tg
>>> tg.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core.keywords import publish as _publish
from ..core.keywords import with_keywords as _with_keywords
from ..core.layouts import strided
from ..core.tensor import Tensor
from ..ops import creation as _creation
from ..ops import creation_options as _creation_options
from ..ops import elementwise as _e
from ..ops.bessel_functions import i0 as _i0
from ..runtime.dtypes import DType, float32, float64
from ..runtime.records import NamedTuple as _NamedTuple

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class _Line(_NamedTuple):
    """How many numbers, and where they are."""

    size: int
    options: dict[str, Any]

    def over(self, first: float, by: float) -> Tensor:
        """`size` numbers from `first` on, each `by` more."""
        last = first + (self.size - 1) * by
        return _creation.linspace(first, last, self.size, **self.options)

    @property
    def ones(self) -> Tensor:
        """What all windows of one element are, and those of none."""
        return _creation.ones(self.size, **self.options)


def _line(
    name: str,
    M: int,
    dtype: DType | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool | None = False,
) -> _Line:
    wanted = _creation_options.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if wanted not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {wanted}")
    if not isinstance(requires_grad, (bool, type(None))):
        raise TypeError(
            f"{name}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}"
        )
    return _Line(M, {"dtype": wanted, "device": device, "requires_grad": requires_grad})


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """exp(-|n - center| / tau).

    >>> import tgraph as tg
    >>> tg.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    line = _line("exponential", M, **options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if not M:
        return line.ones
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2
    return _e.exp(_e.neg(_e.abs(line.over(-center / tau, 1 / tau))))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """sin(pi * (n + 1 / 2) / M)."""
    line = _line("cosine", M, **options)
    turn = math.pi / max(M + 1 if not sym and M > 1 else M, 1)
    return _e.sin(line.over(0.5 * turn, turn)) if M else line.ones


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-(n / std)**2 / 2), n from the middle on."""
    line = _line("gaussian", M, **options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if not M:
        return line.ones
    middle = (M if not sym and M > 1 else M - 1) / 2
    scale = 1 / (std * math.sqrt(2))
    at = line.over(-middle * scale, scale)
    return _e.exp(_e.neg(_e.mul(at, at)))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """i0(beta * sqrt(1 - x**2)) / i0(beta), x from -1 to 1.

    >>> import tgraph as tg
    >>> tg.signal.windows.kaiser(3, beta=1.0)
    tensor([0.7898, 1.0000, 0.7898])
    """
    line = _line("kaiser", M, **options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return line.ones
    at = line.over(-1.0, 2 / (M - 1 if sym else M))
    arch = _e.sqrt(_e.clamp(_e.sub(1, _e.mul(at, at)), min=0))
    whole = _creation.full((), beta, dtype=line.options["dtype"], device=line.options["device"])
    return _e.div(_i0(_e.mul(arch, beta)), _i0(whole))


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.54 - 0.46 * cos(2 * pi * n / (M - 1))."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 * cos(2 * pi * n / (M - 1))."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_cosine` of 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """1 - |x|, x from -1 to 1."""
    line = _line("bartlett", M, **options)
    if M < 2:
        return line.ones
    return _e.sub(1, _e.abs(line.over(-1.0, 2 / (M - 1 if sym else M))))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """sum_i (-1)**i * a[i] * cos(2 * pi * i * n / (M - 1)).

    >>> import tgraph as tg
    >>> tg.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    line = _line("general_cosine", M, **options)
    if M < 2:
        return line.ones
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    at = line.over(0.0, 2 * math.pi / (M - 1 if sym else M))
    found = _e.add(_e.mul(at, 0.0), weights[0])
    for times, weight in enumerate(weights[1:], 1):
        found = _e.add(found, _e.mul(_e.cos(_e.mul(at, times)), (-1) ** times * weight))
    return found


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) * cos(2 * pi * n / (M - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_cosine` of 0.3635819, 0.4891775, 0.1365995 and 0.0106411."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


_publish(globals(), {_name: _with_keywords(globals()[_name]) for _name in __all__})
