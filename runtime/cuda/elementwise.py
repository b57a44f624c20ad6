"""Elementwise kernels from text, launched by CuPy on arrays of any strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import backend
from .arrays import Array, cupy_array, may_share_memory
from .launches import LaunchError

# Without fast math. CuPy itself appends -ftz=true, and the last word counts: denormal results of
# float32 become zero, as in all that it computes eagerly. Contraction is the compiler's default;
# said here as in `nvrtc`.
OPTIONS = ("-fmad=true", "-prec-div=true", "-prec-sqrt=true")


class Text(NamedTuple):
    """What an `ElementwiseKernel` is made of.

    `read` are the numbers of the inputs that are its parameters. 16-bit floats are parameters of
    the type uint16.
    """

    in_params: str
    out_params: str
    operation: str
    name: str
    preamble: str
    read: tuple[int, ...]


def launch(
    text: Text,
    inputs: Sequence[Any],
    outs: Sequence[Array],
    singles: Sequence[Array] = (),
    fresh: bool = True,
) -> None:
    """Write `outs`, to whose shape `inputs` broadcast, on the current device and stream.

    `inputs` are arrays, numbers, and NumPy scalars; `singles` are the outputs that are one element.
    Unless the outputs are `fresh`, they may lie in the memory of inputs; where they overlap in
    another way than element by element, the input is copied first.
    """
    values = [_parameter(each) for each in inputs]
    targets = [_parameter(each) for each in outs]
    if not fresh:
        for at, value in enumerate(values):
            if type(value) is cupy_array() and any(_is_torn(value, out) for out in targets):
                values[at] = value.copy()
    driver = backend.driver()
    try:
        _kernel(text)(*values, *(int(each.data.ptr) for each in singles), *targets)
    except driver.CUDADriverError as error:
        elements = f"{targets[0].size:,} elements"
        raise LaunchError(f"launch of kernel {text.name} over {elements}: {error}") from error


def _parameter(value: Any) -> Any:
    """Arrays and scalars of 16-bit floats as their bits."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.itemsize != 2 or dtype.kind in "iub":
        return value
    return value.view(np.uint16)


def _is_torn(value: Array, out: Array) -> bool:
    """Whether an element of `value` may be overwritten before it is read."""
    if value.data.ptr == out.data.ptr and value.strides == out.strides:
        return bool(value.shape != out.shape)
    return may_share_memory(value, out)


def _kernel(text: Text) -> Any:
    kept = backend.kept()
    key = ("elementwise", *text[:4])
    found = kept.get(key)
    if found is None:
        found = kept[key] = backend.cupy().ElementwiseKernel(
            text.in_params,
            text.out_params,
            text.operation,
            text.name,
            preamble=text.preamble,
            no_return=True,
            options=OPTIONS,
        )
    return found
