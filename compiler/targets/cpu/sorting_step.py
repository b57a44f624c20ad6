"""How putting rows in order becomes a step: its ways, and how rows are shared by threads.

Positions are found by generated code, elements are put in order by NumPy's functions, which the
native runner calls. Two kinds of rows are left to a Python function: those of 16-bit floats, and
few long ones, which it cuts into parts for all threads.
"""

from __future__ import annotations

from math import prod

from ....runtime import order_native, selection_native, sort_native
from ....runtime.numpy_sort import sort_function
from ....runtime.order_native import BY_BYTES, INSERTED, MOST_ELEMENTS, SELECTED, entry_bytes
from ....runtime.parallel import shared_out
from ....runtime.plan_steps import ArrayRef, BufferRef, KernelStep
from ...ir import Node
from ...ir import primitives as p
from ...kernel.memory_views import merged_axes

FEW = 40
"""Elements that are put in order by insertion."""
MOST_SELECTED, MANY_FOR_ONE = 64, 4
"""So few wanted elements are selected, where there are so many times as many."""
UNITS = 64
"""Units of rows, each of which has lists of its own, while these take few bytes."""
MOST_LIST_BYTES = 16 << 20
SHARE = 1 << 14
"""Elements whose positions are worth a thread to find."""
SORTED_SHARE = 1 << 11
"""Elements that are worth a thread to put in order."""
FEW_ROWS, LONG_ROW = 8, 1 << 17
"""So few rows of so many elements are cut into parts for threads."""

_WAYS = {INSERTED: "insertion", SELECTED: "selection", BY_BYTES: "bytes of keys"}


def argsort_step(node: Node, operand: ArrayRef, result: BufferRef, lists: BufferRef) -> KernelStep:
    """The step that finds `node` in rows that lie in memory like `operand`."""
    (x,) = node.inputs
    *lead, length = x.shape
    stride, batch = _rows(operand)
    rows, units = prod(lead), _units(node)
    words = (length, node.attrs["count"], stride, rows, units, _way(node))
    return KernelStep(
        "argsort",
        order_native.load(x.type.dtype.name, node.attrs["descending"]),
        (operand.ref, result, lists),
        units,
        _grain(node),
        (*words, *batch),
    )


def selection_step(node: Node, operand: ArrayRef, result: BufferRef) -> KernelStep:
    """The step that finds an element by its rank in rows that lie in memory like `operand`."""
    (x,) = node.inputs
    stride, batch = _rows(operand)
    return KernelStep(
        "select_nth",
        selection_native.load(x.type.dtype.name),
        (operand.ref, result),
        prod(x.shape[:-1]),
        max(1, SHARE // x.shape[-1]),
        (x.shape[-1], node.attrs["rank"], stride, *batch),
    )


def sort_step(node: Node, operand: ArrayRef, result: BufferRef) -> KernelStep:
    """The step that puts the elements of rows that lie like `operand` in order."""
    dtype = node.type.dtype.name
    stride, batch = _rows(operand)
    return KernelStep(
        "sort",
        sort_native.load(dtype, node.attrs["descending"]),
        (operand.ref, result),
        prod(node.shape[:-1]),
        _sorted_grain(node),
        (node.shape[-1], stride, sort_function(dtype), *batch),
    )


def is_native(node: Node) -> bool:
    """Whether a native step puts rows in order; see the top of this file."""
    (x,) = node.inputs
    *lead, length = x.shape
    if node.primitive is not p.sort:
        return length < MOST_ELEMENTS
    is_cut = prod(lead) < FEW_ROWS and length >= LONG_ROW
    return sort_native.can_sort(x.type.dtype.name) and not is_cut


def _rows(operand: ArrayRef) -> tuple[int, list[int]]:
    """How many elements it is from one to the next, and how rows lie: the words of a batch."""
    item = operand.dtype.itemsize
    assert operand.strides is not None
    *moves, stride = (each // item for each in operand.strides)
    batch = merged_axes(list(zip(operand.shape, moves)))
    return stride, [len(batch), *(word for axis in batch for word in axis)]


def sorting_summary(node: Node) -> str:
    """A line for people: the way, and how rows are shared."""
    (x,) = node.inputs
    rows = prod(x.shape[:-1])
    elements = f"{x.shape[-1]:,} {x.type.dtype.name} in {rows:,} rows"
    if node.primitive is p.sort:
        return f"NumPy's sort: {elements}; {shared_out(rows, _sorted_grain(node), 'row')}"
    if node.primitive is p.select_nth:
        way = "insertion" if x.shape[-1] <= selection_native.FEW else "bytes of keys"
        shared = shared_out(rows, max(1, SHARE // x.shape[-1]), "row")
        return f"selection by {way}: one of {elements}; {shared}"
    return (
        f"{_WAYS[_way(node)]}: first {node.attrs['count']:,} of {elements}; "
        f"{shared_out(_units(node), _grain(node), 'unit')}"
    )


def lists_bytes(node: Node) -> int:
    """What the lists of all units take."""
    return _units(node) * _unit_bytes(node)


def _unit_bytes(node: Node) -> int:
    (x,) = node.inputs
    return 2 * x.shape[-1] * entry_bytes(x.type.dtype.name)


def _units(node: Node) -> int:
    rows = prod(node.shape[:-1])
    return max(1, min(rows, UNITS, MOST_LIST_BYTES // _unit_bytes(node)))


def _grain(node: Node) -> int:
    """How many units are worth a thread."""
    return max(1, SHARE * _units(node) // node.inputs[0].type.numel)


def _sorted_grain(node: Node) -> int:
    """How many rows are worth a thread."""
    return max(1, SORTED_SHARE // node.shape[-1])


def _way(node: Node) -> int:
    length, count = node.inputs[0].shape[-1], node.attrs["count"]
    if length <= FEW:
        return INSERTED
    selects = count <= MOST_SELECTED and length >= MANY_FOR_ONE * count
    return SELECTED if selects else BY_BYTES
