"""The plans for what is fetched: one for many sizes where that can be, else one for each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from ..compiled.fed import type_at
from ..compiled.graph_function import Outputs, odd_strides, prepare
from ..compiled.open_call import MAX_SIZES, MOST_REFUSALS, MOST_SIZED
from ..compiled.sized_call import Refusal, graph_at, plan_at
from ..compiler.compile_graph import compile_for_sizes, compile_graph
from ..compiler.ir import Graph, TensorType
from ..compiler.ir.dim import Dim, SizeGuard
from ..compiler.plan.plan_sizes import PlanSizes
from ..compiler.plan.sized_plan import SizedPlan
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.context import use_context
from ..core.eager_context import EAGER
from ..core.tensor import intern_type
from ..runtime.device import CPU, Device
from ..runtime.garbage import no_collection
from .graph_sizes import GraphSizes
from .needed import Needed
from .on_device import on_device


class _Asked(Mapping[Dim, Any]):
    """Sizes that notes which of them are asked for."""

    def __init__(self, sizes: Mapping[Dim, Any]) -> None:
        self.sizes = sizes
        self.dims: dict[Dim, None] = {}

    def __getitem__(self, dim: Dim) -> Any:
        self.dims[dim] = None
        return self.sizes[dim]

    def __iter__(self) -> Iterator[Dim]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return 1


class FetchPlan:
    """What computes some nodes of a graph, for all sizes of what is fed.

    `alike` gives for each dim the one that stands for all that are equal to it. What the graph has
    on the CPU is on `device`.
    """

    def __init__(self, needed: Needed, alike: Mapping[Dim, Dim], device: Device) -> None:
        self.needed, self._alike = needed, alike
        graph = needed.graph if device is CPU else on_device(needed.graph, device)
        first = len(graph.outputs) - len(needed.writes)
        donate = {first + at: source for at, (_, source) in enumerate(needed.writes)}
        self.nodes = graph.outputs
        self.outputs = Outputs(graph.outputs, donate)
        self.graph = Graph(graph.inputs, self.outputs.nodes)
        self._dims: list[Dim] | None = None  # those that something depends on
        self._plans: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self._sized: list[SizedPlan] = []
        self._refusals: list[Refusal] = []
        self._guards: tuple[int, list[SizeGuard]] | None = None
        self.compiles = 0  # how often the compiler has run

    def guards(self, sizes: GraphSizes) -> list[SizeGuard]:
        """What the part of the graph takes for granted of sizes."""
        count = sizes.questions
        if self._guards is None or self._guards[0] != count:
            self._guards = count, sizes.assumed_by(self.needed.readers)
        return self._guards[1]

    def at(self, sizes: Mapping[Dim, int]) -> tuple[Any, list[TensorType]]:
        """The executable, and the types of `nodes`, where the sizes of dims are known."""
        known = {dim: sizes[one] for dim, one in self._alike.items() if one in sizes}
        refuse_at_exit()
        with COMPILE_LOCK, no_collection(), use_context(EAGER):
            if self._dims is None:
                asked = _Asked(known)
                graph_at(self.graph, asked)
                self._dims = list(dict.fromkeys(self._alike[each] for each in asked.dims))
            numbers = tuple(known[dim] for dim in self._dims)
            found = self._plans.get(numbers)
            if found is None:
                found = self._plans[numbers] = self._made(numbers, known)
                if len(self._plans) > MAX_SIZES:
                    self._plans.popitem(last=False)
        types = [intern_type(*type_at(each.type, known)) for each in self.nodes]
        return found, types

    def _made(self, numbers: tuple[int, ...], known: Mapping[Dim, int]) -> Any:
        prepare(waited_for=True)
        if not self._dims:
            self.compiles += 1
            return compile_graph(self.graph, **self._request)
        for at, plan in enumerate(self._sized):
            found = plan_at(plan, numbers)
            if found is not None:
                self._sized.insert(0, self._sized.pop(at))
                return found
        self.compiles += 1
        if len(self._refusals) <= MOST_REFUSALS and not any(
            each.holds(numbers) for each in self._refusals
        ):
            found = self._sized_at(numbers)
            if found is not None:
                return found
        return compile_graph(graph_at(self.graph, known), **self._request, varying=True)

    def _sized_at(self, numbers: tuple[int, ...]) -> Any:
        """From a compilation for many sizes that is made now; None where there can be none."""
        assert self._dims
        opened = PlanSizes()
        own = {dim: opened.new(dim.name, size) for dim, size in zip(self._dims, numbers)}
        open_sizes = {dim: own[one] for dim, one in self._alike.items() if one in own}
        try:
            plan = compile_for_sizes(graph_at(self.graph, open_sizes), opened, **self._request)
        except Exception as error:  # such as that of code which takes a size for a number
            if isinstance(error, MemoryError):
                raise
            self._refusals.append(Refusal(opened, error))
            return None
        self._sized = [plan, *self._sized][:MOST_SIZED]
        return plan_at(plan, numbers)

    @property
    def _request(self) -> dict[str, Any]:
        written = {source for _, source in self.needed.writes}
        return {
            "donate": self.outputs.donate,
            "strides": odd_strides(self.graph),
            "overwritten": written,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Why sizes are compiled for one by one, if they are."""
        return tuple(dict.fromkeys(f"a plan for each size: {e.reason}" for e in self._refusals))
