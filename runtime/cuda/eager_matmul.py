"""Matrix products of arrays on a device, by the library that compiled plans use.

Operands are taken as they lie where the library can read them so: views of transposed or sliced
matrices and broadcast batches cost no copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan_steps import BufferRef, GemmStep
from . import backend
from .precision import get_precision
from .products import Product, prepare, workspaces_of

Array = Any  # of CuPy

DTYPES = ("float32", "float64", "float16", "bfloat16")
KEPT_PRODUCTS = 4096


def matmul(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array | None:
    """The product of two (batches of) matrices; None for dtypes that the library has not.

    Half types are summed in float32.
    """
    if a.dtype.name not in DTYPES:
        return None
    cupy = backend.cupy()
    m, k = a.shape[-2:][:: -1 if transpose_a else 1]
    n = b.shape[-2 if transpose_b else -1]
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if 0 in (*lead, m, n, k):
        return cupy.zeros((*lead, m, n), a.dtype)
    (a, left), (b, right) = _readable(a), _readable(b)
    c = cupy.empty((*lead, m, n), a.dtype)
    steps = zip(lead, _batch(a, lead), _batch(b, lead), _batch(c, lead))
    step = GemmStep(
        "matmul", a.dtype.name, m, n, k, BufferRef(0), BufferRef(1), BufferRef(2),
        transpose_a != left[0], transpose_b != right[0], left[1], right[1], max(n, 1),
        tuple(each for each in steps if each[0] != 1),
    )  # fmt: skip
    stream = cupy.cuda.get_current_stream().ptr
    _product(step, a.device.id).launch(a.data.ptr, b.data.ptr, c.data.ptr, stream)
    return c


def _readable(x: Array) -> tuple[Array, tuple[bool, int]]:
    """A matrix that the library can read, copied if need be.

    Also whether it lies in memory transposed, and the elements from row to row there.
    """
    found = _layout(x)
    if found is None:
        x = x.copy(order="C")
        found = _layout(x)
        assert found is not None
    return x, found


def _layout(x: Array) -> tuple[bool, int] | None:
    rows, columns = x.shape[-2:]
    down, along = (stride // x.itemsize for stride in x.strides[-2:])
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, max(down if rows > 1 else 0, columns, 1)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return True, max(along if columns > 1 else 0, rows, 1)
    return None


def _batch(x: Array, lead: tuple[int, ...]) -> list[int]:
    """The elements from item to item of a batch along its dimensions; 0 where it is broadcast."""
    own = x.shape[:-2]
    found = [0] * (len(lead) - len(own))
    found += [0 if size == 1 else stride // x.itemsize for size, stride in zip(own, x.strides)]
    return found


def _product(step: GemmStep, device: int) -> Product:
    kept = backend.kept().setdefault("eager products", {})
    key = step, device, get_precision()
    found: Product | None = kept.get(key)
    if found is None:
        if len(kept) >= KEPT_PRODUCTS:
            kept.clear()
        found = kept[key] = prepare(step, device, workspaces_of(device))
    return found
