"""`repr` of tensors, in PyTorch's layout: four digits, columns aligned, large ones summarised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiler.ir import Node, promotion
from ..runtime.arrays import to_host
from ..runtime.device import CPU
from ..runtime.dtypes import DType, bool_, int64
from ..runtime.meta import MetaArray
from ..runtime.records import record, replace
from .dispatch import settled
from .record import type_name
from .tensor import PASSED_ON, Lifted, Tensor

Array = np.ndarray[Any, Any]


@record()
class PrintOptions:
    """Digits behind the point, elements above which is summarised, shown at each end, columns."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; `profile` is "default", "short" or "full"."""
    global _options
    profiles = {
        "default": PrintOptions(),
        "short": PrintOptions(precision=2, edgeitems=2),
        "full": PrintOptions(threshold=math.inf),
    }
    chosen = profiles[profile] if profile is not None else _options
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _options = replace(chosen, **changed, sci_mode=sci_mode)


class _Formatter:
    """How the numbers of one tensor print: as integers, with fixed digits or with exponents."""

    def __init__(self, shown: Array, dtype: DType) -> None:
        self.floating = dtype.is_floating_point
        self.whole = False
        self.scientific = False
        values = shown.reshape(-1)
        if not self.floating:
            self.width = max((len(str(value)) for value in values.tolist()), default=1)
            return
        wide = values.astype(np.float64)
        usual = wide[np.isfinite(wide) & (wide != 0)]
        self._choose(np.abs(usual), bool(np.isfinite(wide).any()))
        self.width = max((len(self._text(value)) for value in usual.tolist()), default=1)

    def _choose(self, sizes: Array, any_finite: bool) -> None:
        """By the sizes of the finite elements that are not 0."""
        if sizes.size == 0:
            self.whole = any_finite
            return
        smallest, largest = float(sizes.min()), float(sizes.max())
        self.whole = bool((sizes == np.ceil(sizes)).all())
        wide = largest / smallest > 1000 or largest > 1e8
        self.scientific = wide if self.whole else wide or smallest < 1e-4
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode

    def _text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        if self.whole:
            text = f"{value:.0f}"
            return text if not math.isfinite(value) else text + "."
        return f"{value:.{_options.precision}f}"

    def format(self, value: Any) -> str:
        text = self._text(float(value)) if self.floating else str(value)
        return text.rjust(self.width)


class _PairFormatter:
    """How complex numbers print: each part with the others of its kind."""

    floating = True

    def __init__(self, shown: Array, dtype: DType) -> None:
        self._real = _Formatter(shown.real, dtype.to_real())
        self._imag = _Formatter(shown.imag, dtype.to_real())
        self.width = self._real.width + self._imag.width + 1

    def format(self, value: Any) -> str:
        imag = self._imag.format(value.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{self._real.format(value.real)}{sign}{imag}j"


def _vector(values: Array, indent: int, formatter: Any, summarise: bool) -> str:
    per_line = max(1, (_options.linewidth - indent) // (formatter.width + 2))
    edge = _options.edgeitems
    items = values.tolist() if not formatter.floating else list(values)
    if summarise and len(items) > 2 * edge:
        cells = [formatter.format(item) for item in items[:edge]]
        cells += [" ..."]
        cells += [formatter.format(item) for item in items[-edge:]]
    else:
        cells = [formatter.format(item) for item in items]
    lines = [cells[at : at + per_line] for at in range(0, len(cells), per_line)]
    separator = ",\n" + " " * (indent + 1)
    return "[" + separator.join(", ".join(line) for line in lines) + "]"


def _text_of(array: Array, indent: int, formatter: Any, summarise: bool) -> str:
    if array.ndim == 0:
        return formatter.format(array.item() if not formatter.floating else array[()])
    if array.ndim == 1:
        return _vector(array, indent, formatter, summarise)
    edge = _options.edgeitems
    if summarise and len(array) > 2 * edge:
        parts = [_text_of(each, indent + 1, formatter, True) for each in array[:edge]]
        parts += ["..."]
        parts += [_text_of(each, indent + 1, formatter, True) for each in array[-edge:]]
    else:
        parts = [_text_of(each, indent + 1, formatter, summarise) for each in array]
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _shown(array: Array) -> Array:
    """The elements that a summary shows, which decide the columns."""
    edge = _options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            ends = [*range(edge), *range(size - edge, size)]
            array = array.take(ends, axis=axis)
    return array


def format_array(array: Array, dtype: DType, indent: int) -> str:
    """The elements of an array as text, lines after the first indented."""
    if array.size == 0:
        return "[]"
    summarise = array.size > _options.threshold
    shown = _shown(array) if summarise else array
    formatter: _Formatter | _PairFormatter
    formatter = (_PairFormatter if dtype.is_complex else _Formatter)(shown, dtype)
    return _text_of(array, indent, formatter, summarise)


def tensor_repr(self: Tensor, name: str = "") -> str:
    """The elements, and what sets this tensor apart from a plain one; `name` is that of a class."""
    value, dtype = self._value, self._type.dtype
    prefix = f"{name or (type(self).__name__ if type(self) in PASSED_ON else 'tensor')}("
    if isinstance(value, Node):
        return f"<traced tensor {self._type} from {value.where}>"
    if isinstance(value, Lifted):
        return f"<tensor {self._type} in {value.context.name}, from {value.where}>"
    is_meta = type(value) is MetaArray
    value = value if is_meta else to_host(value)
    text = "..." if is_meta else format_array(value, dtype, len(prefix))
    suffixes = []
    if self._type.device is not CPU:
        suffixes.append(f"device='{self._type.device}'")
    if is_meta or (value.size == 0 and value.shape != (0,)):
        suffixes.append(f"size={tuple(value.shape)}")
    usual = (promotion.default_dtype,) if value.size == 0 else (
        promotion.default_dtype, promotion.default_complex(), int64, bool_)  # fmt: skip
    if dtype not in usual:
        suffixes.append(f"dtype={dtype}")
    record = settled(self)._record
    if record is not None:
        suffixes.append(f"grad_fn=<{type_name(record.name())}>")
    elif self._requires_grad:
        suffixes.append("requires_grad=True")
    return with_suffixes(prefix + text, suffixes, len(prefix)) + ")"


def with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """A text with more behind it, with line breaks where PyTorch has them.

    It counts two more of the last line.
    """
    line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        length = len(suffix.replace("=tgraph.", "=torch."))
        if line + length + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            line = indent + length
        else:
            text += ", " + suffix
            line += length + 2
    return text


def tensor_format(self: Tensor, specification: str) -> str:
    """`format(x, ".3f")` of a 0-d tensor formats its number; a Parameter is shown."""
    if not self._type.shape and isinstance(self._value, (Node, Lifted)):
        return tensor_repr(self)
    if not self._type.shape and (specification or type(self) is Tensor):
        return format(self.item(), specification)
    if specification:
        raise TypeError(
            f"unsupported format string passed to Tensor.__format__ for shape {list(self.shape)}"
        )
    return str(self)
