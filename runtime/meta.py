"""Arrays without elements, which tensors on `meta` hold: shape, dtype and order in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from .dtypes import DType


class NoElementsError(NotImplementedError, AttributeError):
    """Something asked for elements of a tensor on `meta`."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"Cannot copy out of meta tensor; no data! ({what} needs elements, and tensors on the "
            "device 'meta' have none; make them elsewhere, as Module.to_empty(device=...) does)"
        )


class MetaFlags:
    """What `flags` of an array tell."""

    __slots__ = ("c_contiguous",)
    aligned = writeable = True

    def __init__(self, c_contiguous: bool) -> None:
        self.c_contiguous = c_contiguous


class MetaArray:
    """What is known of an array that has no memory. It is told its strides in elements.

    It answers what arrays of NumPy and CuPy are asked of their memory. NoElementsError for all
    else.
    """

    __slots__ = ("__weakref__", "dtype", "ptr", "shape", "strides")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DType | np.dtype[Any],
        strides: Sequence[int] | None = None,
        start: int = 0,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype.numpy if isinstance(dtype, DType) else dtype
        steps = _row_major(self.shape) if strides is None else strides
        self.strides = tuple(step * self.dtype.itemsize for step in steps)
        self.ptr = start * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def flags(self) -> MetaFlags:
        wanted = [step * self.itemsize for step in _row_major(self.shape)]
        steps = zip(self.shape, self.strides, wanted)
        in_order = all(size == 1 or step == its for size, step, its in steps)
        return MetaFlags(in_order or 0 in self.shape)

    @property
    def data(self) -> MetaArray:
        """Where it begins, as arrays of CuPy tell: `array.data.ptr`."""
        return self

    @property
    def device(self) -> AbstractContextManager[None]:
        return nullcontext()

    def copy(self, order: str = "C") -> MetaArray:
        """Another one, in row-major order."""
        return MetaArray(self.shape, self.dtype)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoElementsError(f"'{name}'")

    def __getitem__(self, key: object) -> NoReturn:
        raise NoElementsError("reading a part")

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NoElementsError("an array")


def _row_major(shape: Sequence[int]) -> list[int]:
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * max(1, shape[axis + 1])
    return steps
