"""Additions at positions in one form: rows of a result, and which row each addition goes to.

`index_put` with `accumulate` adds rows at positions along some axes; what stands before these axes
is the same again for every slice. `scatter_add` adds single elements, each with a position of its
own, unless the positions are those of one row after another (expanded along the other axes).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....runtime.records import record
from ...ir import Node
from ...ir import primitives as p
from ...ir.shapes import contiguous_strides, numel
from .scatter_schedule import Digit

Ints = tuple[int, ...]

# Below this many additions and copies one after another, a thread per row is soon done.
SERIAL_STEPS = 64
# With as many threads, each with rows that are not whole sectors of memory, sorting is no gain.
MANY_THREADS = 1 << 14
SECTOR_BYTES = 32
_LIMIT = 1 << 31


@record()
class ScatterForm:
    """The shapes of additions to `lead` x `rows` x `width` elements.

    `index_axes` are the axes of the positions that count additions, `value_axes` how the axes of
    the values are divided: those of slices, of additions, of a row. Positions along an axis of
    `sizes` are `factors` rows apart.
    """

    lead: int
    rows: int
    width: int
    count: int
    sizes: Ints
    factors: Ints
    digits: tuple[Digit, ...]
    index_axes: Ints
    value_axes: tuple[int, int]
    threads: int
    serial: int

    @property
    def fits(self) -> bool:
        """Whether rows and additions have 32-bit numbers."""
        return 0 < self.count < _LIMIT // 2 and 0 < self.rows < _LIMIT


def adds(node: Node) -> bool:
    """Whether a node adds at positions."""
    return node.primitive is p.scatter_add or (
        node.primitive is p.index_put and bool(node.attrs["accumulate"])
    )


def scatter_form(node: Node, expanded: bool) -> ScatterForm:
    """The form of additions; `expanded` tells that positions differ along their axis only."""
    if node.primitive is p.index_put:
        return _of_rows(node, node.inputs[1].shape, len(node.inputs) - 2, None)
    index = node.inputs[1]
    if expanded:
        axis = node.attrs["axis"]
        return _of_rows(node, (index.shape[axis],), 1, (axis,))
    return _of_elements(node)


def _of_rows(node: Node, index: Ints, indexed: int, index_axes: Ints | None) -> ScatterForm:
    axis, shape = node.attrs["axis"], node.shape
    sizes = shape[axis : axis + indexed]
    lead, width = numel(shape[:axis]), numel(shape[axis + indexed :])
    rows, count = numel(sizes), numel(index)
    return ScatterForm(
        lead, rows, width, count, sizes, contiguous_strides(sizes), (),
        tuple(range(len(index))) if index_axes is None else index_axes,
        (axis, axis + len(index)), lead * width, rows + count,
    )  # fmt: skip


def _of_elements(node: Node) -> ScatterForm:
    """Every element is a row: additions are numbered along all axes of the positions."""
    axis, shape = node.attrs["axis"], node.shape
    index = node.inputs[1].shape
    strides, below = contiguous_strides(shape), contiguous_strides(index)
    digits = tuple(
        Digit(below[each], index[each], strides[each])
        for each in range(len(shape))
        if each != axis and index[each] > 1
    )
    count, rows = numel(index), numel(shape)
    # The generated kernel shares the other axes among threads where all of them are whole.
    whole = all(n == index[each] for each, n in enumerate(shape) if each != axis)
    threads = rows // shape[axis] if whole and shape[axis] else 1
    return ScatterForm(
        1, rows, 1, count, (shape[axis],), (strides[axis],), digits,
        tuple(range(len(index))), (0, len(index)), threads, (rows + count) // max(threads, 1),
    )  # fmt: skip


def is_worth_a_sort(node: Node, form: ScatterForm) -> bool:
    """Whether sorting is faster than a thread per row that adds one after another."""
    if not form.fits or form.serial <= SERIAL_STEPS:
        return False
    whole_sectors = form.width * node.type.dtype.itemsize >= SECTOR_BYTES
    return whole_sectors or form.threads < MANY_THREADS


def flat_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The step from one element to the next in row-major order, if it is always the same."""
    step, covered = 1, 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if covered and stride != step * covered:
            return None
        if not covered:
            step, covered = stride, 1
        covered *= size
    return step
