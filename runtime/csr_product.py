"""A sparse matrix times a dense one as a step of plans, and in eager mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import csr_native, parallel
from .memo import Memo
from .out_of_bounds_error import OutOfBoundsError
from .parallel import shared_out
from .plan import Plan
from .plan_steps import STATUS_SLOT, ArrayRef, BufferRef, KernelStep

Array = np.ndarray[Any, Any]

UNITS = 64
"""Rows are cut into so many units with about as many elements."""
SHARE = 1 << 14
"""Multiplications that are worth a thread."""

ROW_POINTERS = "csr_matmul: row pointers must go from 0 to {} and never become smaller"


def can_multiply(shapes: tuple[tuple[int, ...], ...], strides: tuple[int, ...], dtype: str) -> bool:
    """Whether native code does operands of these shapes; `strides` of the dense one, in elements.

    Nothing is computed of what has no elements, and a row of the dense matrix lies side by side.
    """
    (ends,), (count,), _, (height, width) = shapes
    side_by_side = width < 2 or strides[1] == 1
    return (
        csr_native.can_multiply(dtype) and side_by_side and min(count, height, width, ends - 1) > 0
    )


def product_step(
    operands: tuple[ArrayRef, ...], result: BufferRef, rows: int, transposed: bool
) -> KernelStep:
    """The step of a product for which `can_multiply` holds; its `rows` are those of the result."""
    rowptr, columns, values, dense = operands
    dtype, index = values.dtype.name, columns.dtype.name
    height, (count,), width = rowptr.shape[0] - 1, columns.shape, dense.shape[1]
    wide = rows if transposed else dense.shape[0]
    units, grain = _units_and_grain(height, count, width, transposed)
    places = (*(each.ref for each in operands), result, BufferRef(STATUS_SLOT))
    strides = tuple(_stride(each) for each in operands)
    return KernelStep(
        "csr_matmul",
        csr_native.load(dtype, index, transposed),
        places,
        units,
        grain,
        (height, count, wide, width, units, *strides),
    )


def _stride(array: ArrayRef) -> int:
    if array.strides is None:
        return array.shape[1] if len(array.shape) == 2 else 1
    return array.strides[0] // array.dtype.itemsize


def _units_and_grain(height: int, count: int, width: int, transposed: bool) -> tuple[int, int]:
    """How many units there are, and how many are worth a thread.

    Of a transposed matrix as many as threads: each range of them looks through all columns.
    """
    units = UNITS
    if transposed:
        units = min(1 << (parallel.get_num_threads() - 1).bit_length(), UNITS)
    return units, max(1, SHARE * units // ((height + count) * width))


def summary(dtype: str, height: int, count: int, width: int, transposed: bool) -> str:
    """A line for people."""
    units, grain = _units_and_grain(height, count, width, transposed)
    turned = "the transpose of " if transposed else ""
    return (
        f"{turned}{count:,} {dtype} in {height:,} rows, times {width:,} columns; "
        f"{shared_out(units, grain, 'unit')}"
    )


# -- eager mode ------------------------------------------------------------------------------

_plans: Memo[tuple[Any, ...], Plan] = Memo(256)


def product(
    rowptr: Array, columns: Array, values: Array, dense: Array, rows: int, transposed: bool
) -> Array:
    """The product, for arrays for which `can_multiply` holds once they are contiguous."""
    operands = tuple(map(np.ascontiguousarray, (rowptr, columns, values, dense)))
    key = (values.dtype, columns.dtype, columns.shape, rowptr.shape, dense.shape, rows, transposed)
    plan = _plans.get(key)
    if plan is None:
        given = tuple(
            ArrayRef(BufferRef(1 + at), each.shape, each.dtype) for at, each in enumerate(operands)
        )
        plan = _plans.keep(key, Plan([product_step(given, BufferRef(5), rows, transposed)], 0, 6))
    result = np.empty((rows, dense.shape[1]), dense.dtype)
    if plan.run((*operands, result)):
        raise _error(*plan.status[:3].tolist())
    return result


def _error(code: int, position: int, size: int) -> Exception:
    if code == csr_native.BAD_ROWS:
        return OutOfBoundsError(ROW_POINTERS.format(size))
    return OutOfBoundsError(f"csr_matmul: column index {position} is not from 0 to {size - 1}")
