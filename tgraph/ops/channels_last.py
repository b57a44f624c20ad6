"""Images whose channels lie side by side in memory, and results that lie as they do.

PyTorch's "channels last": what its convolutions, pools and the like give for such tensors lies so,
too. Ours are computed by rows, and copied; in compiled code that is no copy, but the order in which
the result is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..compiler.ir import primitives as p
from ..compiler.ir.layouts import result_strides
from ..compiler.ir.shapes import are_same
from ..core.dispatch import apply
from ..core.memory_format import MemoryFormat, channels_last, channels_last_3d
from ..core.tensor import Tensor, strides_of
from .movement import contiguous, is_contiguous

_F = TypeVar("_F", bound=Callable[..., Any])
_FORMATS = {4: channels_last, 5: channels_last_3d}


def format_of(tensor: Any) -> MemoryFormat | None:
    """Channels last, of images or volumes, where a tensor lies so and not by rows."""
    if not isinstance(tensor, Tensor):
        return None
    form = _FORMATS.get(len(tensor._type.shape))
    if form is None or is_contiguous(tensor) or not is_contiguous(tensor, memory_format=form):
        return None
    return form


def in_order_of(found: Tensor, like: Tensor) -> Tensor:
    """A result that lies in memory as a new tensor like another one of its shape does."""
    shape = found._type.shape
    strides = result_strides(p.copy, {}, shape, [(shape, strides_of(like))])
    if are_same(strides, strides_of(found)):
        return found
    return apply(p.copy, found, strides=strides)


def keeps_channels_last(function: _F) -> _F:
    """`function`, whose results lie channels last where its first argument does."""

    @functools.wraps(function)
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        form = format_of(input)
        found = function(input, *args, **kwargs)
        return found if form is None else laid(found, form)

    return call  # type: ignore[return-value]


def laid_as(found: Tensor, *operands: Any) -> Tensor:
    """A result that lies channels last where one of the operands does."""
    forms = [form for form in map(format_of, operands) if form is not None]
    made: Tensor = laid(found, forms[0]) if forms else found
    return made


def laid(found: Any, form: MemoryFormat) -> Any:
    """A result, or a tuple of them, in a memory format, where it has as many dimensions."""
    if isinstance(found, tuple):
        made = [laid(each, form) for each in found]
        return type(found)(*made) if hasattr(found, "_fields") else tuple(made)
    fits = isinstance(found, Tensor) and form.fits(len(found._type.shape))
    return contiguous(found, memory_format=form) if fits else found
