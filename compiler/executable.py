"""A compiled graph: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime import memory
from ..runtime.plan import Plan
from .fusion import Fuser, Refusal
from .ir import Graph, TensorType
from .plan_builder import StepInfo
from .plan_builder_cpu import CpuPlanBuilder
from .planning import Planning

Array = np.ndarray[Any, Any]


class Executable:
    """A graph that has been fused and generated.

    `run` takes one array per graph input and gives one per output. Outputs own fresh memory,
    except donated ones: those are written into the array of the input that they replace, which is
    returned for them. `overwritten` are the inputs that are written, by the plan or by who calls
    it: where one is read-only, `run` raises ReadOnlyError and does nothing. `kernels` tells of each
    step, also of those with nothing to do, which the plan does not have; `info_of_step` has what is
    told by the plan's steps. `refused` tells of each fusion that was not made.
    `seconds` is how long optimising, and fusing and generating, took. `refuses_gaps`: where an
    array is not C-contiguous for which no strides were given, `run` raises NotDenseError and does
    nothing.
    """

    refuses_gaps = True

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        overwritten: Iterable[int] = (),
    ) -> None:
        self.seconds = (0.0, 0.0)
        self.planning = Planning(graph, donate, strides)
        self.graph, self.donate = self.planning.graph, self.planning.donate
        fuser = Fuser(self.planning.planned, self.planning.inputs)
        fusion = fuser.run()
        self.refused: list[Refusal] = fusion.refusals
        builder = CpuPlanBuilder(self.planning.planned, fuser, fusion, self.planning.places)
        numel = [node.type.numel for node in graph.inputs]
        written = {*overwritten, *self.donate.values()}
        self.plan: Plan = builder.build(number for number in written if numel[number])
        self.kernels: list[StepInfo] = builder.infos
        self.info_of_step = builder.info_of_step
        fresh = self.planning.types(self.planning.fresh)
        self._fresh = [
            (memory.allocator(type_.nbytes), type_.shape, type_.dtype.numpy) for type_ in fresh
        ]
        self._simple = not (self.planning.donate or self.planning.empty)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on `inputs`; the error of a failed check, such as a position outside its axis."""
        fresh = [empty(shape, dtype) for empty, shape, dtype in self._fresh]
        stopped = self.plan.run((*inputs, *fresh))
        if stopped:
            self._raise(stopped)
        return fresh if self._simple else self.planning.results(inputs, fresh, _empty)

    def _raise(self, stopped: int) -> None:
        code, position, size = (int(word) for word in self.plan.status[:3])
        info = self.info_of_step.get(stopped - 1)
        assert info is not None and info.kernel is not None
        raise info.kernel.checks[code - 1].error(position, size)


def _empty(type_: TensorType) -> Array:
    return np.empty(type_.shape, type_.dtype.numpy)
