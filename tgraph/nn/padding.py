"""Borders around an input, or less of it where an amount is negative."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module
from .sizes import Sizes, as_sizes


class _PadNd(Module):
    """`padding` is one amount for all sides, or (low, high) of the last dimension, and so on."""

    _count = 0
    _mode = ""

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = as_sizes(padding, 2 * self._count)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        least = self._count + 1
        if input.ndim not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.ndim}D input)")
        return F.pad(input, self.padding, "circular")


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _ConstantPadNd(Module):
    _count = 0

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__()
        self.value = value
        self.padding = as_sizes(padding, 2 * self._count)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class CircularPad1d(_CircularPadNd):
    """The other end of the input around it, along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.CircularPad1d((1, 2))(tg.arange(3.0)[None])
    tensor([[2., 0., 1., 2., 0., 1.]])
    """

    _count = 1


class CircularPad2d(_CircularPadNd):
    """The other end of the input around it, along the last two dimensions."""

    _count = 2


class CircularPad3d(_CircularPadNd):
    """The other end of the input around it, along the last three dimensions."""

    _count = 3


class ConstantPad1d(_ConstantPadNd):
    """`value` around the input, along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.ConstantPad1d((1, -1), 7.0)(tg.arange(3.0)[None])
    tensor([[7., 0., 1.]])
    """

    _count = 1


class ConstantPad2d(_ConstantPadNd):
    """`value` around the input, along the last two dimensions."""

    _count = 2


class ConstantPad3d(_ConstantPadNd):
    """`value` around the input, along the last three dimensions."""

    _count = 3


class ReflectionPad1d(_ReflectionPadNd):
    """The input mirrored at its edges around it, along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.ReflectionPad1d(2)(tg.arange(3.0)[None])
    tensor([[2., 1., 0., 1., 2., 1., 0.]])
    """

    _count = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The input mirrored at its edges around it, along the last two dimensions."""

    _count = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The input mirrored at its edges around it, along the last three dimensions."""

    _count = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The edges of the input around it, along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.ReplicationPad1d((1, 2))(tg.arange(3.0)[None])
    tensor([[0., 0., 1., 2., 2., 2.]])
    """

    _count = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The edges of the input around it, along the last two dimensions."""

    _count = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The edges of the input around it, along the last three dimensions."""

    _count = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around the input, along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.ZeroPad1d((1, 2))(tg.arange(3.0)[None])
    tensor([[0., 0., 1., 2., 0., 0.]])
    """

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the input, along the last two dimensions."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the input, along the last three dimensions."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
