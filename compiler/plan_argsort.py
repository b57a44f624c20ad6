"""How putting rows in order becomes a native step: its ways, and how rows are shared by threads."""

from __future__ import annotations

from math import prod

from ..runtime.order_native import BY_BYTES, INSERTED, SELECTED, entry_bytes, load
from ..runtime.parallel import shared_out
from ..runtime.plan_steps import ArrayRef, BufferRef, KernelStep
from .ir import Node
from .memory_views import merged_axes

FEW = 40
"""Elements that are put in order by insertion."""
MOST_SELECTED, MANY_FOR_ONE = 64, 4
"""So few wanted elements are selected, where there are so many times as many."""
UNITS = 64
"""Units of rows, each of which has lists of its own, while these take few bytes."""
MOST_LIST_BYTES = 16 << 20
SHARE = 1 << 14
"""Elements that are worth a thread."""

_WAYS = {INSERTED: "insertion", SELECTED: "selection", BY_BYTES: "bytes of keys"}


def argsort_step(node: Node, operand: ArrayRef, result: BufferRef, lists: BufferRef) -> KernelStep:
    """The step that finds `node` in rows that lie in memory like `operand`."""
    (x,) = node.inputs
    *lead, length = x.shape
    item = operand.dtype.itemsize
    assert operand.strides is not None
    *moves, stride = (each // item for each in operand.strides)
    batch = merged_axes(list(zip(lead, moves)))
    rows, units = prod(lead), _units(node)
    words = (length, node.attrs["count"], stride, rows, units, _way(node), len(batch))
    return KernelStep(
        "argsort",
        load(x.type.dtype.name, node.attrs["descending"]),
        (operand.ref, result, lists),
        units,
        _grain(node),
        (*words, *(word for axis in batch for word in axis)),
    )


def argsort_summary(node: Node) -> str:
    """A line for people: the way, and how rows are shared."""
    (x,) = node.inputs
    rows = prod(x.shape[:-1])
    return (
        f"{_WAYS[_way(node)]}: first {node.attrs['count']:,} of {x.shape[-1]:,} {x.type.dtype.name}"
        f" in {rows:,} rows; {shared_out(_units(node), _grain(node), 'unit')}"
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


def _way(node: Node) -> int:
    length, count = node.inputs[0].shape[-1], node.attrs["count"]
    if length <= FEW:
        return INSERTED
    selects = count <= MOST_SELECTED and length >= MANY_FOR_ONE * count
    return SELECTED if selects else BY_BYTES
