"""Lowering of scatters: a kernel that copies the base, then writes at positions that are data.

The axes that are not indexed are rows, which threads share; along the indexed ones the writes of a
row happen one after another in order. So several writes to one place give the same result on
every run, and without `accumulate` the last one wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Node
from ..ir import primitives as p
from .index import Axis, Coords, Index, Loaded, of_axis
from .lower import Lowering
from .stages import Scatter, StagePlan, Store
from .views import Need


class ScatterLowering(Lowering):
    """Builds the Kernel of one `index_put` or `scatter_add`."""

    def choose_rows(self) -> tuple[tuple[Axis, ...], Axis | None]:
        node = self.roots[0].node
        sizes = [n for n, is_row in zip(node.shape, _row_dims(node), strict=True) if is_row]
        return tuple(Axis(f"i{number}", size) for number, size in enumerate(sizes)), None

    def group_nodes(self) -> list[Node]:
        """The scatter itself is made by effects, so no value of it is computed."""
        return [node for node in super().group_nodes() if node is not self.roots[0].node]

    def plan_stages(self) -> list[StagePlan]:
        node = self.roots[0].node
        put = node.primitive is p.index_put
        stages = [self._copying(node), self._putting(node) if put else self._adding(node)]
        for stage in stages:
            self.spread_needs(stage)
        return stages

    def _copying(self, node: Node) -> StagePlan:
        coords, axes = self._coords(node, node.shape, "c")
        return StagePlan(0, axes, [Store((node.inputs[0], coords, ()), node, coords)])

    def _adding(self, node: Node) -> StagePlan:
        """A stage over the elements of the values, each with its own position."""
        _, index, values = node.inputs
        coords, axes = self._coords(node, values.shape, "w")
        position = (index, coords, ())
        at = list(coords)
        at[node.attrs["axis"]] = _loaded(node, [position])[0]
        target = Scatter((values, coords, ()), node, tuple(at), (position,))
        return StagePlan(1, axes, [target])

    def _putting(self, node: Node) -> StagePlan:
        """A stage over the positions, which select a point of one or several axes."""
        _, *indices, values = node.inputs
        axis = node.attrs["axis"]
        axes = tuple(Axis(f"w{number}", n) for number, n in enumerate(indices[0].shape))
        inside = tuple(map(of_axis, axes))
        rows = tuple(map(of_axis, self.row_axes))
        positions: list[Need] = [(each, inside, ()) for each in indices]
        value = (values, (*rows[:axis], *inside, *rows[axis:]), ())
        at = (*rows[:axis], *_loaded(node, positions), *rows[axis:])
        return StagePlan(1, axes, [Scatter(value, node, at, tuple(positions))])

    def _coords(
        self, node: Node, shape: tuple[int, ...], stem: str
    ) -> tuple[Coords, tuple[Axis, ...]]:
        """Coordinates in `shape` whose row axes are the kernel's, and the axes of the rest."""
        rows = iter(self.row_axes)
        axes: list[Axis] = []
        coords: list[Index] = []
        for size, is_row in zip(shape, _row_dims(node), strict=True):
            if is_row:
                coords.append(of_axis(next(rows)))
                continue
            axes.append(Axis(f"{stem}{len(axes)}", size))
            coords.append(of_axis(axes[-1]))
        return tuple(coords), tuple(axes)


def _loaded(node: Node, positions: Sequence[Need]) -> list[Index]:
    """Positions along the indexed axes of `node`, as index expressions."""
    axis = node.attrs["axis"]
    return [
        Index({Loaded(position, node.shape[axis + number]): 1})
        for number, position in enumerate(positions)
    ]


def _row_dims(node: Node) -> tuple[bool, ...]:
    """Which axes of the result no position selects, so that they can be shared by threads."""
    axis = node.attrs["axis"]
    if node.primitive is p.index_put:
        count = len(node.inputs) - 2
        return tuple(not axis <= each < axis + count for each in range(node.type.ndim))
    index = node.inputs[1]
    whole = all(size == index.shape[each] for each, size in enumerate(node.shape) if each != axis)
    return tuple(whole and each != axis for each in range(node.type.ndim))
