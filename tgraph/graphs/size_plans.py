"""The plans of one graph for the sizes that come: one for many where that can be."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from ..compiled.graph_function import odd_strides, prepare
from ..compiled.open_call import MAX_SIZES, MOST_REFUSALS, MOST_SIZED
from ..compiled.sized_call import NOT_SIZED, Refusal, graph_at, plan_at
from ..compiler.compile_graph import compile_for_sizes, compile_graph
from ..compiler.ir import Graph
from ..compiler.ir.dim import Dim
from ..compiler.plan.plan_sizes import PlanSizes
from ..compiler.plan.sized_plan import SizedPlan
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.context import use_context
from ..core.eager_context import EAGER
from ..runtime.garbage import no_collection
from .graph_sizes import GraphSizes


class _Asked(Mapping[Dim, Any]):
    """Sizes that notes which of them are asked for."""

    def __init__(self, known: Mapping[Dim, Any], sizes: GraphSizes) -> None:
        self.known, self.sizes = known, sizes
        self.dims: dict[Dim, None] = {}

    def __getitem__(self, dim: Dim) -> Any:
        self.dims[dim] = None
        if dim not in self.known:
            raise ValueError(
                f"what is fetched depends on the size {dim.name}, {self.sizes.axes_of[dim]}, which "
                "nothing that is fed tells: feed that placeholder, too"
            )
        return self.known[dim]

    def __iter__(self) -> Iterator[Dim]:
        return iter(self.known)

    def __len__(self) -> int:
        return 1


class SizePlans:
    """Plans of a graph whose open sizes are some of `sizes`; `request` goes to the compiler."""

    def __init__(self, graph: Graph, sizes: GraphSizes, **request: Any) -> None:
        self.graph, self._sizes = graph, sizes
        # For each dim the one that stands for all that are equal to it, when plans begin.
        self._alike = {dim: sizes.one_of(dim) for dim in list(sizes.dims)}
        self._request = {**request, "strides": odd_strides(graph)}
        self._dims: list[Dim] | None = None  # those that something depends on
        self._plans: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self._sized: list[SizedPlan] = []
        self._refusals: list[Refusal] = []
        self.compiles = 0  # how often the compiler has run

    def at(self, known: Mapping[Dim, int]) -> Any:
        """The executable where these sizes are known; ValueError where it needs others."""
        refuse_at_exit()
        with COMPILE_LOCK, no_collection(), use_context(EAGER):
            if self._dims is None:
                asked = _Asked(known, self._sizes)
                graph_at(self.graph, asked)
                self._dims = list(dict.fromkeys(self._alike[each] for each in asked.dims))
            numbers = tuple(known[dim] for dim in self._dims)
            found = self._plans.get(numbers)
            if found is None:
                found = self._plans[numbers] = self._made(numbers, known)
                if len(self._plans) > MAX_SIZES:
                    self._plans.popitem(last=False)
        return found

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
        except NOT_SIZED as error:
            self._refusals.append(Refusal(opened, error))
            return None
        self._sized = [plan, *self._sized][:MOST_SIZED]
        return plan_at(plan, numbers)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why sizes are compiled for one by one, if they are."""
        return tuple(dict.fromkeys(f"a plan for each size: {e.reason}" for e in self._refusals))
