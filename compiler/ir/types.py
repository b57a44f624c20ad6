"""The type of every value in a graph."""

from __future__ import annotations

import math

from ...runtime.device import CPU, Device
from ...runtime.dtypes import DType
from ...runtime.records import NamedTuple
from .dim import size_text
from .shapes import Shape


class TensorType(NamedTuple):
    """Shape, element type and device of a value.

    >>> from tgraph.runtime.dtypes import float32
    >>> print(TensorType((2, 3), float32))
    float32[2, 3]
    """

    shape: Shape
    dtype: DType
    device: Device = CPU

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)  # as `shapes.numel`, which is one more call

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype, self.device)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype, self.device)

    def with_device(self, device: Device) -> TensorType:
        return TensorType(self.shape, self.dtype, device)

    def __str__(self) -> str:
        where = "" if self.device == CPU else f"@{self.device}"
        return f"{self.dtype.name}[{', '.join(map(size_text, self.shape))}]{where}"


ResultType = TensorType | tuple[TensorType, ...]


class IRTypeError(TypeError):
    """A primitive was applied to types that it does not accept."""


class IRKindError(IRTypeError):
    """What a primitive does is not there for numbers of this kind."""
