"""What runs the stages of a fetch that selects by data, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..compiled.open_call import MAX_SIZES
from ..compiler.ir import Node, effect_of
from ..compiler.ir.dim import Dim, SizeGuard
from ..core.eager_context import EAGER
from ..core.tensor import intern_type, wrap
from ..core.trace_state import TraceError
from ..runtime.arrays import contiguous
from .feeds import check_assumptions, with_count
from .fetch_plan import FetchPlan, FetchStage

if TYPE_CHECKING:
    from .graph_trace import GraphTrace

Array = Any  # of NumPy or CuPy


class StagedExecutable:
    """Runs as the executable of a graph without selections does, which is given no positions.

    `sizes` are those that are known before it runs. What is counted is checked against what the
    graph takes for granted as soon as it is known, and nothing is written before all is.
    """

    def __init__(self, plan: FetchPlan, trace: GraphTrace, sizes: Mapping[Dim, int]) -> None:
        self._plan, self._trace, self._sizes = plan, trace, dict(sizes)
        self._executables: list[dict[tuple[int, ...], Any]] = [{} for _ in plan.stages]
        known = set(trace.sizes.known(sizes))
        self._checks: list[list[SizeGuard]] = []  # behind each stage
        left = [each for each in plan.guards() if not each.size.dims <= known]
        for stage in plan.stages:
            known |= {each.dim for each in stage.selects}
            self._checks.append([each for each in left if each.size.dims <= known])
            left = [each for each in left if not each.size.dims <= known]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The values of the last stage."""
        for executable, arrays, is_last in self._stages(inputs):
            if is_last:
                found: list[Array] = executable.run(arrays)
        return found

    def stages(self, inputs: Sequence[Array]) -> list[tuple[Any, list[Array]]]:
        """The executable of each stage and what it is given; all but the last one have run.

        TraceError where that would do more than compute.
        """
        for stage in self._plan.stages:
            for node in stage.plans.graph.nodes:
                if stage.makes and effect_of(node) != "pure":
                    raise TraceError(
                        "what is selected by data depends on a host_call with an effect, at "
                        f"{node.where}, which would have to run to show the stages behind it"
                    )
        return [(executable, arrays) for executable, arrays, _ in self._stages(inputs)]

    def _stages(self, given: Sequence[Array]) -> Iterator[tuple[Any, list[Array], bool]]:
        """Each stage with its executable; what one computes is there for those behind it."""
        inputs, sizes = list(given), dict(self._sizes)
        kept: dict[Node, Array] = {}
        counts: tuple[int, ...] = ()
        numbers = self._plan.numbers()
        for stage, known, checks in zip(self._plan.stages, self._executables, self._checks):
            executable = known.get(counts)
            if executable is None:
                if len(known) >= MAX_SIZES:
                    known.clear()
                executable = known[counts] = stage.plans.at(self._trace.sizes.known(sizes))
            numbers.put(inputs, self._trace.sizes.known(sizes))
            arrays = [inputs[at] for at in stage.inputs] + [kept[node] for node in stage.kept]
            yield executable, arrays, not stage.makes
            if not stage.makes:
                return
            found = dict(zip(stage.makes, executable.run(arrays), strict=True))
            counts += self._count(stage, found, inputs, sizes)
            kept |= {node: contiguous(array) for node, array in found.items()}
            check_assumptions(self._trace, sizes, checks)

    def _count(
        self,
        stage: FetchStage,
        found: Mapping[Node, Array],
        inputs: list[Array],
        sizes: dict[Dim, int],
    ) -> tuple[int, ...]:
        """Takes in the positions that are found in what a stage has computed."""
        counts = []
        for each in stage.selects:
            mask = found[each.mask]
            type_ = intern_type(mask.shape, each.mask.type.dtype, each.mask.type.device)
            positions = EAGER.positions(wrap(mask, type_), "nonzero()")
            for entry, along in zip(each.inputs, positions, strict=True):
                at = self._plan.number_of.get(entry.node)
                if at is not None:
                    inputs[at] = along._value
            counts.append(len(positions[0]._value))
            with_count(self._trace, sizes, each, counts[-1])
        return tuple(counts)
