"""`assert_close`: tensors that are equal within the tolerance of their types."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.promotion import promote_types
from ..core.tensor import Tensor
from ..ops.elementwise import cast
from ..ops.from_data import as_tensor
from ..runtime.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)

_TOLERANCES = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7), complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7),
}  # fmt: skip
"""Relative and absolute: PyTorch's."""


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """AssertionError unless `actual` and `expected` are close: |a - e| <= atol + rtol * |e|.

    Tensors, what becomes a tensor, and sequences and mappings of such. `rtol` and `atol` are those
    of the dtype unless both are given.

    >>> import tgraph as tg
    >>> tg.testing.assert_close(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 2.0 + 1e-7]))
    >>> tg.testing.assert_close(tg.tensor([1.0]), tg.tensor([1.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 1 (100.0%)
    Greatest absolute difference: 0.5 at index (0,) (up to 1e-05 allowed)
    Greatest relative difference: 0.3333333333333333 at index (0,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    checks = {"device": check_device, "dtype": check_dtype, "stride": check_stride}
    problem = _problem(actual, expected, (rtol, atol, equal_nan), checks, "")
    if problem is None:
        return
    raise AssertionError(msg(problem) if callable(msg) else msg or problem)


_FORMER_TOLERANCES = {float16: (1e-3, 1e-3), float32: (1e-4, 1e-5), float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """`assert_close` of values alone, with wider tolerances; deprecated, as in PyTorch."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    actual = as_tensor(actual)
    expected = as_tensor(expected, None if isinstance(expected, Tensor) else actual.dtype)
    if rtol is None and atol is None:
        found = [_FORMER_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*found, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


def _problem(actual: Any, expected: Any, how: Any, checks: Any, path: str) -> str | None:
    where = f"\n\nThe failure occurred for item {path}" if path else ""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        keys: Any = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return (
                f"The keys of the mappings do not match: {sorted(map(str, actual))} != "
                f"{sorted(map(str, expected))}{where}"
            )
        keys = list(actual)
    elif actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}{where}"
    else:
        found = _of_tensors(_tensor_of(actual), _tensor_of(expected), how, checks)
        return found and found + where
    parts = (_problem(actual[key], expected[key], how, checks, f"{path}[{key!r}]") for key in keys)
    return next((each for each in parts if each is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _tensor_of(value: Any) -> Tensor:
    return value.detach() if isinstance(value, Tensor) else as_tensor(value)


def _of_tensors(actual: Tensor, expected: Tensor, how: Any, checks: Any) -> str | None:
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    for name, is_checked in checks.items():
        pair = [each.stride() if name == "stride" else getattr(each, name)
                for each in (actual, expected)]  # fmt: skip
        if is_checked and pair[0] != pair[1]:
            return f"The values for attribute '{name}' do not match: {pair[0]} != {pair[1]}."
    if actual.is_meta or expected.is_meta:  # there are no numbers to compare
        return None
    rtol, atol, equal_nan = how
    if rtol is None:
        tolerances = [_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*tolerances, strict=True))
    common = promote_types(actual.dtype, expected.dtype)
    if common in (float16, bfloat16):
        common = float32
    one, other = (cast(each.cpu(), common).numpy() for each in (actual, expected))
    close = np.isclose(one, other, rtol, atol, equal_nan=equal_nan)
    if close.all():
        return None
    return _told(one, other, close, rtol, atol)


def _told(one: Any, other: Any, close: Any, rtol: float, atol: float) -> str:
    if not one.shape:
        return (
            f"Scalars are not close!\n\nExpected {other.item()} but got {one.item()}.\n"
            f"Absolute difference: {abs(one.item() - other.item())} (up to {atol} allowed)"
        )
    kind = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        absolute = np.abs(one.astype(kind) - other.astype(kind))
        relative = absolute / np.abs(other.astype(kind))
    absolute[close], relative[close] = 0, 0
    wrong = int((~close).sum())
    share = 100 * wrong / close.size
    lines = [
        f"Tensor-likes are not {'close' if rtol or atol else 'equal'}!", "",
        f"Mismatched elements: {wrong} / {close.size} ({share:.1f}%)",
    ]  # fmt: skip
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        with_nan = np.where(np.isnan(values), math.inf, values)
        at = tuple(int(each) for each in np.unravel_index(int(with_nan.argmax()), values.shape))
        lines.append(
            f"Greatest {name} difference: {values[at].item()} at index {at} (up to {limit} allowed)"
        )
    return "\n".join(lines)
