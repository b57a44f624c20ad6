"""Lowering of scatters: a kernel that copies the base, then writes at positions that are data.

The axes that are not indexed are rows, which threads share; along the indexed ones the writes of a
row happen one after another in order. So several writes to one place give the same result on
every run, and without `accumulate` the last one wins.
"""

from __future__ import annotations

from typing import Any

from ..ir import Node
from .index import Axis, Index, Loaded, flatten, of_axis
from .kernel import Instr, compute_dtype
from .lower import Buffer, Coords, Lowering, Root, _Body, _StagePlan


class ScatterLowering(Lowering):
    """Builds the Kernel of one `index_put` or `scatter_add`."""

    def _row_axes(self) -> tuple[tuple[Axis, ...], Axis | None]:
        node = self.roots[0].node
        self.is_row = _row_dims(node)
        sizes = [n for n, is_row in zip(node.shape, self.is_row, strict=True) if is_row]
        return tuple(Axis(f"i{number}", size) for number, size in enumerate(sizes)), None

    def _plan_stages(self) -> list[_StagePlan]:
        root = self.roots[0]
        self.copy_coords = self._coords(root.node.shape, "c")
        base, *positions, values = root.node.inputs
        copying = _StagePlan(0, self.copy_coords[1])
        copying.need(base, self.copy_coords[0], ())
        writing = _StagePlan(1, ())
        if root.node.primitive.name == "scatter_add":
            coords, writing.axes = self._coords(values.shape, "w")
            needs = [(positions[0], coords), (values, coords)]
        else:
            needs, writing.axes = self._put_needs(root.node)
        self.writes = needs
        for node, coords in needs:
            writing.need(node, coords, ())
        for plan in (copying, writing):
            self._spread_needs(plan)
        copying.targets = [(root, self.copy_coords[0], self.copy_coords[0])]
        writing.targets = [(root, coords, ()) for _, coords in needs[-1:]]
        return [copying, writing]

    def _coords(self, shape: tuple[int, ...], stem: str) -> tuple[Coords, tuple[Axis, ...]]:
        """Coordinates in `shape` whose row axes are the kernel's, and the axes of the rest."""
        rows = iter(self.row_axes)
        axes: list[Axis] = []
        coords: list[Index] = []
        for size, is_row in zip(shape, self.is_row, strict=True):
            if is_row:
                coords.append(of_axis(next(rows)))
                continue
            axes.append(Axis(f"{stem}{len(axes)}", size))
            coords.append(of_axis(axes[-1]))
        return tuple(coords), tuple(axes)

    def _put_needs(self, node: Node) -> tuple[list[tuple[Node, Coords]], tuple[Axis, ...]]:
        _, *positions, values = node.inputs
        axis = node.attrs["axis"]
        axes = tuple(Axis(f"w{number}", n) for number, n in enumerate(positions[0].shape))
        inside = tuple(map(of_axis, axes))
        rows = tuple(map(of_axis, self.row_axes))
        needs = [(each, inside) for each in positions]
        return [*needs, (values, (*rows[:axis], *inside, *rows[axis:]))], axes

    def _target_needs(self, plan: _StagePlan, target: Any) -> list[Any]:
        if plan.number == 0:
            return [(target[0].node.inputs[0], target[1], ())]
        return [(node, coords, ()) for node, coords in self.writes]

    def _emit_root(
        self, body: _Body, root: Root, coords: Coords, result: Coords, values: Any
    ) -> None:
        node = root.node
        if result:  # the stage that copies
            self._store(body, node, coords, values[node.inputs[0], coords, ()])
            return
        *positions, (source, at) = self.writes
        target = list(at)
        axis = node.attrs["axis"]
        loaded = [
            Index({Loaded((each, where, ()), node.shape[axis + number]): 1})
            for number, (each, where) in enumerate(positions)
        ]
        taken = 1 if node.primitive.name == "scatter_add" else len(positions[0][1])
        target[axis : axis + taken] = loaded
        buffer = Buffer.contiguous(node.shape)
        index = self.resolve(body, flatten(target, buffer.strides), values)
        accumulate = node.attrs.get("accumulate", True)
        param = self.param(node, buffer, written=True)
        body.add(
            Instr(
                "store",
                (values[source, at, ()],),
                compute_dtype(node.type.dtype),
                param,
                index,
                value="add" if accumulate else "put",
            )
        )

    def _group_nodes(self) -> list[Node]:
        return [node for node in super()._group_nodes() if node is not self.roots[0].node]

    def check(self) -> None:
        self.nodes = self._group_nodes()
        self.level = self.levels()
        self._plan_stages()


def _row_dims(node: Node) -> tuple[bool, ...]:
    """Which axes of the result no position selects, so that they can be shared by threads."""
    axis = node.attrs["axis"]
    if node.primitive.name == "index_put":
        count = len(node.inputs) - 2
        return tuple(not axis <= each < axis + count for each in range(node.type.ndim))
    index = node.inputs[1]
    whole = all(size == index.shape[each] for each, size in enumerate(node.shape) if each != axis)
    return tuple(whole and each != axis for each in range(node.type.ndim))
