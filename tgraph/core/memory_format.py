"""The orders in which elements can be asked to lie in memory."""

from __future__ import annotations

from ..compiler.ir.shapes import contiguous_strides


class MemoryFormat:
    """An order of dimensions in memory, such as `tgraph.channels_last`.

    >>> import tgraph as tg
    >>> x = tg.ones(2, 3, 4, 5).contiguous(memory_format=tg.channels_last)
    >>> x.stride(), x.is_contiguous(), x.is_contiguous(memory_format=tg.channels_last)
    ((60, 1, 15, 3), False, True)
    """

    __slots__ = ("_name", "_order")

    def __init__(self, name: str, order: tuple[int, ...] = ()) -> None:
        self._name = name
        self._order = order

    def __repr__(self) -> str:
        return f"tgraph.{self._name}"

    def __reduce__(self) -> str:
        return self._name

    def axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The dimensions of `shape`, the slowest first; RuntimeError for another number of them."""
        if not self.fits(len(shape)):
            raise RuntimeError(
                f"required rank {len(self._order)} tensor to use {self._name} format, got a tensor "
                f"of shape {list(shape)}"
            )
        return self._order or tuple(range(len(shape)))

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Those of a tensor of `shape`."""
        axes = self.axes(shape)
        if not self._order:
            return contiguous_strides(shape)
        found, step = {}, 1
        for axis in reversed(axes):  # axes without elements are stepped over with 0, as there
            found[axis] = step
            step = step * shape[axis]
        return tuple(found[axis] for axis in range(len(shape)))

    def fits(self, ndim: int) -> bool:
        """Whether tensors of `ndim` dimensions can have it."""
        return not self._order or ndim == len(self._order)


contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last", (0, 2, 3, 1))
channels_last_3d = MemoryFormat("channels_last_3d", (0, 2, 3, 4, 1))
