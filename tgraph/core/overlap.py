"""Writes in place whose operands lie in the memory that is written, refused as PyTorch does.

An operand that is exactly what is written is fine: each element is read before it is overwritten.
One that is only a part of it, or turned, has no such order; the result would depend on who works
first. What PyTorch finds too hard to tell, which are operands with gaps, it lets pass, and so do
we: here an operation reads all of its operands before it writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..compiler.ir.layouts import step_start
from ..runtime.arrays import address_of
from ..runtime.meta import MetaArray
from ..runtime.records import NamedTuple
from .tensor import Tensor, root_of, stride_step, strides_of


class Span(NamedTuple):
    """Where a tensor lies in the memory of its root, in elements."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill a stretch of memory, each in a place of its own."""
        expected = 1
        for stride, size in sorted(zip(self.strides, self.shape)):
            if size > 1:
                if stride != expected:
                    return False
                expected *= size
        return 0 not in self.shape

    @property
    def end(self) -> int:
        """Behind the last element of a dense span."""
        end = self.start + 1
        for stride, size in zip(self.strides, self.shape):
            end += stride * (size - 1)
        return end

    def is_laid_out_as(self, other: Span) -> bool:
        """Whether every element of both lies at the same place."""
        if self.start != other.start or self.shape != other.shape:
            return False
        each = zip(self.shape, self.strides, other.strides)
        return all(size == 1 or mine == its for size, mine, its in each)


class Origin(NamedTuple):
    """Where a tensor lies in the memory that others share: see `origin_of`."""

    offset: int
    nbytes: int
    is_view: bool

    def __str__(self) -> str:
        kind = "a view" if self.is_view else "no view"
        return f"{kind}, from element {self.offset} of {self.nbytes} bytes"


def origin_of(tensor: Tensor) -> Origin:
    """Where a tensor with memory begins in its storage, in elements, how large that is, and whether
    the tensor shows a part of another one."""
    root, value = root_of(tensor), tensor._value
    offset = 0
    if root is not tensor and value.size and not isinstance(value, MetaArray):
        offset = (address_of(value) - address_of(root._value)) // value.itemsize
    elif root is not tensor:
        offset = span_of(tensor).start
    return Origin(offset, root._type.nbytes, tensor._is_view())


def span_of(tensor: Tensor) -> Span:
    """Where `tensor` lies, from the steps that lead to it: known in a trace too."""
    view = tensor._view
    if view is None:
        return Span(0, tensor._type.shape, strides_of(tensor))
    start, shape, strides = span_of(view.base)
    for step in view.steps:
        if step.operands:
            raise RuntimeError(
                "where x[i] begins in memory, with a tensor i of a traced function, is known when "
                "the compiled function runs. clone() it first."
            )
        start = step_start(step.primitive, step.attrs, start, shape, strides)
        shape, strides = stride_step(step, shape, strides)
    return Span(start, shape, strides)


def refuse_overlap(target: Tensor, operands: Iterable[Any], whole: bool = False) -> None:
    """RuntimeError for an operand that shares some elements with `target`, which is written.

    With `whole`, for one that shares all of them, too.
    """
    root = root_of(target)
    for each in operands:
        if not isinstance(each, Tensor) or root_of(each) is not root:
            continue
        if _is_row(target) or _is_row(each):
            continue  # where it lies, data tell
        if (whole or each is not target) and _overlap(span_of(target), span_of(each), whole):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to "
                "tensor refer to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )


def _is_row(tensor: Tensor) -> bool:
    view = tensor._view
    while view is not None:
        if any(step.operands for step in view.steps):
            return True
        view = view.base._view
    return False


def _overlap(target: Span, operand: Span, whole: bool) -> bool:
    if not target.is_dense or not operand.is_dense:
        return False
    if target.is_laid_out_as(operand):
        return whole
    return target.start < operand.end and operand.start < target.end
