"""The plan of a kernel: what its stages make, and the elements that they need for it.

Lowering fills it in (`lower`), and the instructions are written from it (`lower_instructions`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from ...runtime.records import record
from ..ir import Node
from .index import Axis, Coords, Index, Mask
from .views import Need, operand_needs

Element = tuple[Node, Coords]


@record()
class Target:
    """Something that a stage makes of a value."""

    value: Need

    @property
    def needs(self) -> tuple[Need, ...]:
        return (self.value,)


@record()
class Compute(Target):
    """The value is only computed; later stages read it where it is saved."""


@record()
class Store(Target):
    """The value becomes the element of `node` at `coords`."""

    node: Node
    coords: Coords


@record()
class Reduce(Target):
    """The value is folded into the element of the reduction `node` at `coords`."""

    node: Node
    coords: Coords


@record()
class SumOfRows(Target):
    """What rows give for the element of `node` at `coords`, which mention the first of their axes
    alone, is added up there."""

    node: Node
    coords: Coords


@record()
class Contract(Target):
    """Products of `value` and `right` are added up to the element of `node` at `coords`."""

    right: Need
    node: Node
    coords: Coords

    @property
    def needs(self) -> tuple[Need, ...]:
        return self.value, self.right


@record()
class Scan(Target):
    """The value is taken into those before: that is the element of `node` at `coords`, which later
    targets of the stage may read.

    `other` is what the elements start with, or, in a linear scan, what the one before is
    multiplied by.
    """

    node: Node
    coords: Coords
    other: Need | None
    stored: bool

    @property
    def needs(self) -> tuple[Need, ...]:
        return (self.value,) if self.other is None else (self.value, self.other)


@record()
class Scatter(Target):
    """The value is written into `node`, or added to it, at `coords`, which `positions` tell."""

    node: Node
    coords: Coords
    positions: tuple[Need, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        return (*self.positions, self.value)


class StagePlan:
    """What one stage makes and, per node, where it is needed.

    `finished` are reductions that earlier stages have completed and this one stores.
    """

    def __init__(self, number: int, axes: tuple[Axis, ...], targets: list[Target]) -> None:
        self.number = number
        self.axes = axes
        self.targets = targets
        self.finished: list[Store] = []
        self.needs: dict[Node, dict[tuple[Coords, Mask], None]] = {}
        self._operands: dict[Need, Sequence[Need]] = {}

    def operands(self, need: Need) -> Sequence[Need]:
        """The elements from which one that the stage computes is made."""
        found = self._operands.get(need)
        if found is None:
            found = self._operands[need] = operand_needs(*need)
        return found

    def need(self, node: Node, coords: Coords, mask: Mask) -> None:
        self.needs.setdefault(node, {})[coords, mask] = None


@record()
class SavedRow:
    """A value that the stage `stage` leaves for later ones, at `slot` of scratch row `number`."""

    number: int
    stage: int
    slot: Index


@record()
class KernelPlan:
    """Everything that is decided about a kernel before its instructions are written.

    `nodes` are computed inside it; `results` number the elements of its reductions, `running` those
    of its scans, `summed` the scratch rows in which sums of rows grow. `rounded` are
    nodes of 16-bit floats that later instructions read as such, not as float32.
    """

    nodes: Collection[Node]
    stages: Sequence[StagePlan]
    results: Mapping[Element, int]
    running: Mapping[Element, int]
    saved: Mapping[Element, SavedRow]
    summed: Mapping[Element, int] = field(default_factory=dict)
    rounded: Collection[Node] = ()
