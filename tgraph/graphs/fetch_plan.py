"""The plans for what is fetched, in stages where it selects by data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..compiled.fed import Fed, type_at
from ..compiled.graph_function import Outputs
from ..compiled.stages import StageCut, cut_at
from ..compiler.ir import Graph, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import Dim, SizeGuard
from ..core.tensor import intern_type
from ..runtime.device import CPU, Device
from ..runtime.records import NamedTuple, replace
from ..tracing.open_sizes import dims_of
from ..tracing.selections import Counted, Selection
from .needed import Needed
from .on_device import on_device
from .reads import NumberReads, numbers_of
from .size_plans import SizePlans

if TYPE_CHECKING:
    from .graph_trace import GraphTrace


class FetchStage(NamedTuple):
    """A part of a run: what computes the nodes `makes` from some inputs, by their numbers, and the
    nodes `kept`, which earlier stages have made; positions are looked for in what it `selects` by.

    The last stage makes none: it gives what is fetched.
    """

    plans: SizePlans
    inputs: list[int]
    kept: list[Node]
    makes: tuple[Node, ...]
    selects: tuple[Selection, ...]


class FetchPlan:
    """What computes some nodes of a graph, for all sizes of what is fed and selected.

    What the graph has on the CPU is on `device`. All stages but the last only compute; that one
    has all effects.
    """

    def __init__(self, needed: Needed, trace: GraphTrace, device: Device) -> None:
        self.needed, self._sizes = needed, trace.sizes
        graph = needed.graph if device is CPU else on_device(needed.graph, device)
        count = len(graph.outputs) - len(needed.selections)
        self.inputs, self.nodes, masks = graph.inputs, graph.outputs[:count], graph.outputs[count:]
        donate = {needed.first_write + at: source for at, (_, source) in enumerate(needed.writes)}
        self.outputs = Outputs(self.nodes, donate)
        self.number_of = {node: at for at, node in enumerate(self.inputs)}
        self._numbers = numbers_of(needed.inputs)
        self._guards: tuple[int, list[SizeGuard]] | None = None
        cuts = self._cuts(masks) or [StageCut((), set(), (), ())]
        self.stages = [self._stage(each) for each in cuts]

    def _cuts(self, masks: Sequence[Node]) -> list[StageCut]:
        if not masks:
            return []
        own = dict(zip((entry.node for entry in self.needed.inputs), self.inputs, strict=True))
        selections = [
            each._replace(
                mask=mask,
                inputs=tuple(replace(e, node=own.get(e.node, e.node)) for e in each.inputs),
            )
            for each, mask in zip(self.needed.selections, masks, strict=True)
        ]
        numbers = {self.inputs[at]: expression for at, expression in self._numbers}
        return cut_at(selections, Counted(selections, numbers), self.outputs.nodes)

    def _stage(self, cut: StageCut) -> FetchStage:
        given = [node for node in cut.reads if node.primitive is not p.input_]
        kept = {node: input_node("kept", node.type, node.where) for node in given}
        numbers = [at for at, node in enumerate(self.inputs) if not cut.makes or node in cut.inputs]
        same = {node: node for node in self.inputs}
        ends = Fed({**same, **kept}).apply(cut.makes or self.outputs.nodes)
        graph = Graph([*(self.inputs[at] for at in numbers), *kept.values()], ends)
        request: dict[str, Any] = {}
        if not cut.makes:  # it has all inputs, so that these have the same numbers
            written = {source for _, source in self.needed.writes}
            request = {"donate": self.outputs.donate, "overwritten": written}
        plans = SizePlans(graph, self._sizes, **request)
        return FetchStage(plans, numbers, given, cut.makes, cut.selects)

    def guards(self) -> list[SizeGuard]:
        """What the part of the graph takes for granted of sizes."""
        count = self._sizes.questions
        if self._guards is None or self._guards[0] != count:
            self._guards = count, self._sizes.assumed_by(self.needed.readers)
        return self._guards[1]

    def types(self, known: Mapping[Dim, int]) -> list[TensorType]:
        """Those of `nodes` where sizes are known; open where a selection has to be made first."""
        types = [each.type for each in self.nodes]
        return [
            intern_type(*type_at(each, known)) if known.keys() >= set(dims_of(each)) else each
            for each in types
        ]

    @property
    def has_numbers(self) -> bool:
        return bool(self._numbers)

    def numbers(self) -> NumberReads:
        """What reads the numbers that one run computes with."""
        return NumberReads(self._numbers, [node.type.device for node in self.inputs])

    @property
    def compiles(self) -> int:
        """How often the compiler has run."""
        return sum(each.plans.compiles for each in self.stages)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why sizes are compiled for one by one, if they are."""
        return tuple(dict.fromkeys(note for each in self.stages for note in each.plans.notes))
