"""Spectra of short pieces of a signal, one after another, and the signal of such spectra."""

from __future__ import annotations

import warnings

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import require_tensor
from ..core.public import public
from ..core.tensor import Tensor
from . import creation, fourier, padding
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .complex_numbers import view_as_complex, view_as_real
from .concatenation import stack

_NO_WEIGHT = 1e-11


def _refuse(name: str, x: Tensor, why: str) -> RuntimeError:
    return RuntimeError(f"{name}({x._type.dtype.name}{list(x._type.shape)}): {why}")


def _whole_window(
    name: str, x: Tensor, window: Tensor | None, n_fft: int, win_length: int | None
) -> Tensor | None:
    """The window with zeros on both sides, of `n_fft` elements; None for ones."""
    size = n_fft if win_length is None else win_length
    if not 0 < size <= n_fft:
        raise _refuse(name, x, f"expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is None:
        if size == n_fft:
            return None
        window = creation.ones(size, dtype=x._type.dtype.to_real(), device=x.device)
    elif window._type.shape != (size,):
        raise _refuse(
            name, x, f"expected a 1D window tensor of size equal to win_length={size}, but got "
            f"window with size {list(window._type.shape)}",
        )  # fmt: skip
    left = (n_fft - size) // 2
    return window if size == n_fft else padding.pad(window, (left, n_fft - size - left))


@public(method=True)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of pieces of `n_fft` elements, `hop_length` apart: [..., frequencies, pieces].

    Pieces are multiplied by the `window`, whose `win_length` elements lie in their middle. With
    `center` the first of them lies around the first element, the signal padded on both sides. Of
    real signals the spectra are `onesided`, as those of `tgraph.fft.rfft`. `normalized` divides by
    sqrt(n_fft). Real signals need a `return_complex`: False gives real and imaginary parts as a
    last dimension.

    >>> import tgraph as tg
    >>> found = tg.stft(tg.ones(8), 4, window=tg.hann_window(4), return_complex=True)
    >>> found.shape, found[0, 0].real
    (tgraph.Size([3, 9]), tensor(2.))
    """
    name = "stft"
    is_complex = require_tensor(input, name)._type.dtype.is_complex
    if return_complex is None:
        return_complex = is_complex or (window is not None and window._type.dtype.is_complex)
        if not return_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs"
            )
    if center and align_to_window is not None:
        raise RuntimeError("stft only supports align_to_window for center = False.")
    if not input._type.dtype.is_differentiable or not 1 <= input.ndim <= 2:
        raise _refuse(name, input, "expected a 1D or 2D tensor of floating point or complex values")
    hop = n_fft // 4 if hop_length is None else hop_length
    pieces = m.unsqueeze(input, 0) if input.ndim == 1 else input
    if center:
        pieces = _padded(pieces, n_fft // 2, pad_mode)
    length = pieces._type.shape[1]
    if not 0 < n_fft <= length:
        raise _refuse(name, input, f"expected 0 < n_fft <= {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise _refuse(name, input, f"expected hop_length > 0, but got hop_length={hop}")
    whole = _whole_window(name, input, window, n_fft, win_length)
    if align_to_window:
        pieces = _padded(pieces, (n_fft - (win_length or n_fft)) // 2, pad_mode)
    pieces = m.unfold(pieces, -1, n_fft, hop)
    if whole is not None:
        pieces = e.mul(pieces, whole)
    is_complex = pieces._type.dtype.is_complex
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else "backward"
    found = fourier.along(fourier.as_complex(name, pieces), None, -1, norm, False)
    if onesided or (onesided is None and not is_complex):
        found = fourier.half(found, -1)
    found = m.transpose(found, 1, 2)
    found = m.squeeze(found, 0) if input.ndim == 1 else found
    return found if return_complex else view_as_real(found)


def _padded(x: Tensor, by: int, mode: str) -> Tensor:
    return m.squeeze(padding.pad(m.unsqueeze(x, 0), (by, by), mode), 0)


@public(method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose `stft` is nearest to `input`: pieces added up, over what windows add up to.

    RuntimeError where windows add up to nothing; compiled code gives infinite numbers there. With
    `length` the signal is cut, or has zeros behind it.

    >>> import tgraph as tg
    >>> window = tg.hann_window(4)
    >>> spectra = tg.stft(tg.arange(8.0), 4, window=window, return_complex=True)
    >>> tg.istft(spectra, 4, window=window).round()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    name = "istft"
    if not require_tensor(input, name)._type.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if not input._type.numel or input.ndim not in (2, 3):
        raise _refuse(name, input, "expected a tensor with 2 or 3 dimensions and with elements")
    hop = n_fft // 4 if hop_length is None else hop_length
    points, count = input._type.shape[-2:]
    onesided = points != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if points != wanted:
        raise _refuse(
            name, input, "expected the frequency dimension (3rd to the last) of the input tensor "
            f"to be {wanted} when onesided={onesided}, but got {points}",
        )  # fmt: skip
    if not 0 < hop <= (n_fft if win_length is None else win_length):
        raise _refuse(name, input, f"expected 0 < hop_length <= win_length, but got {hop}")
    whole = _whole_window(name, input, window, n_fft, win_length)
    if whole is None:
        whole = creation.ones(n_fft, dtype=input._type.dtype.to_real(), device=input.device)
    spectra = m.transpose(input if input.ndim == 3 else m.unsqueeze(input, 0), 1, 2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        pieces = fourier.along(spectra, None, -1, norm, True)
    elif whole._type.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    else:
        pieces = fourier.to_real(spectra, n_fft, -1, norm)
    total = n_fft + hop * (count - 1)
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else total - first
    size = min(last, total) - first
    weight = m.expand(e.mul(whole, whole), (1, count, n_fft))
    weights = m.narrow(_added_up(weight, hop, total), 1, first, size)
    context = current_context()
    if not context.tracing and size:
        least = context.host_array(r.amin(e.abs(weights)), "istft()").item()
        if least < _NO_WEIGHT:
            raise _refuse(name, input, f"window overlap add min: {least}")
    signal = m.narrow(_added_up(e.mul(pieces, whole), hop, total), 1, first, size)
    found = e.div(signal, weights)
    if last > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        found = padding.pad(found, (0, last - total))
    return m.squeeze(found, 0) if input.ndim == 2 else found


def _added_up(pieces: Tensor, hop: int, total: int) -> Tensor:
    """[n, count, size] pieces, `hop` apart, as [n, total]."""
    if pieces._type.dtype.is_complex:
        parts = m.movedim(view_as_real(pieces), -1, 0)
        added = [_added_up(m.select(parts, 0, at), hop, total) for at in range(2)]
        return view_as_complex(stack(added, -1))
    attrs = {"axes": (1,), "strides": (hop,), "dilations": (1,)}
    return apply(p.fold, pieces, shape=(pieces._type.shape[0], total), **attrs)
