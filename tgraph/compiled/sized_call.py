"""A recorded call that is compiled once for many sizes.

All that is made of a call, its graph, the text of its hot path and the steps of its plans, is made
with open sizes; what belongs to certain sizes is computed from that, and nothing else is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from ..compiler.compile_graph import compile_for_sizes, compile_graph
from ..compiler.ir import Graph, TensorType
from ..compiler.ir.dim import Dim, Sizes
from ..compiler.ir.size_number import is_expression
from ..compiler.plan.plan_sizes import NotSizedError, PlanSizes, reason_of
from ..compiler.plan.size_code import SizeCode, in_words
from ..compiler.plan.sized_plan import SizedPlan
from ..core.compile_lock import made_once
from ..core.tensor import Size, Tensor, ViewStep
from ..core.views import array_views
from ..tracing.recorded_call import Call
from .call_effects import OpenViews
from .compiled_call import CompiledCall
from .compiled_record import Asked
from .fed import Fed, SizeError
from .graph_function import GraphFunction, Place, odd_strides, without_large_arena

NOT_SIZED = (NotSizedError, SizeError)
"""What says that a graph has to be compiled for each size: it asks for a size's value, or a type
comes out otherwise. Whatever else is raised on the way is an error, of the user's or of ours."""

Alone = Callable[[], tuple[Call, GraphFunction]]


class Refusal:
    """Why there is no SizedCall for sizes for which the compiler decides alike."""

    def __init__(self, sizes: PlanSizes, error: Exception) -> None:
        self.reason = reason_of(error)
        code = SizeCode(sizes.dims)
        code.ask(sizes)
        self._holds = code.giving(True)

    def holds(self, numbers: tuple[int, ...]) -> bool:
        """Whether it is the same for these sizes, in the order of dims."""
        try:
            return bool(self._holds(*numbers))
        except ArithmeticError:
            return False


class SizedCall:
    """One compilation of a call, for all sizes for which the compiler decides alike.

    `make` makes the CompiledCall with the sizes that it is given, which are open ones, those of
    `sizes`; `hints` are the sizes of the call at hand.
    """

    def __init__(
        self, sizes: PlanSizes, hints: Mapping[Dim, int], make: Callable[[Sizes], CompiledCall]
    ) -> None:
        self.sizes = sizes
        self.open = {dim: self.sizes.new(dim.name, size, dim.bounds) for dim, size in hints.items()}
        self.call = make(self.open)  # type: ignore[arg-type]
        self.function = function = self.call.function
        self.plan = function.executable
        if not isinstance(self.plan, SizedPlan):
            raise NotSizedError("there is no plan")
        self._names = [name for name in self.call.own_names if self._is_open(name)]
        self._methods = {
            name: value.__name__
            for name, value in self.call.namespace.items()
            if isinstance(value, MethodType) and value.__self__ in (self.plan, function)
        }
        self.refused: dict[str, None] = {}  # why backward plans are made for each size
        self.backwards: dict[Asked, list[SizedPlan] | None] = {}
        gradients = function.forward.types if function.differentiable else ()
        values = tuple(self.call.namespace[name] for name in self._names)
        code = SizeCode(self.sizes.dims)
        code.ask(self.sizes)
        self._values = code.giving((values, list(function.types), gradients))

    def _is_open(self, name: str) -> bool:
        value = self.call.namespace[name]
        if name == "GRADS":
            return True
        of_sizes = is_expression(value) or type(value) in (TensorType, Size, OpenViews)
        return of_sizes or (type(value) is tuple and any(type(each) is ViewStep for each in value))

    def at(
        self, sizes: Mapping[Dim, int], leaves: Sequence[Any], alone: Alone
    ) -> CallAtSizes | None:
        """The call for some sizes, those of `leaves`; None where the compiler decides otherwise.

        `alone` makes it for those alone, for who looks into it.
        """
        numbers = tuple(sizes[dim] for dim in self.open)
        plan = plan_at(self.plan, numbers)
        if plan is None:
            return None
        found = self._values(*numbers)
        if found is None:
            return None
        values, types, gradients = found
        function = FunctionAtSizes(self, numbers, plan, types, gradients, alone)
        # One object for one type, so that a look at an argument tells that it has it.
        types_now = {leaf._type: leaf._type for leaf in leaves if isinstance(leaf, Tensor)}
        namespace = dict(self.call.namespace)
        for name, value in zip(self._names, values):
            if type(value) is OpenViews:
                value = array_views(value.steps)
            elif type(value) is TensorType:
                value = types_now.get(value, value)
            namespace[name] = value
        for name, method in self._methods.items():
            is_simple = method == "run" and function.outputs.simple
            namespace[name] = plan.run if is_simple else getattr(function, method)
        if "NAMESPACE" in namespace:
            namespace["NAMESPACE"] = namespace
        return CallAtSizes(self.call, namespace, function)

    @property
    def notes(self) -> str:
        """For which sizes it is, in words."""
        return in_words(self.sizes)


def plan_at(plan: SizedPlan, numbers: tuple[int, ...]) -> Any:
    """A plan for some sizes; None where it is another one."""
    found = plan.at(numbers, lambda: plan_alone(plan, numbers))
    return None if found is None else without_large_arena(found)


def plan_alone(plan: SizedPlan, numbers: tuple[int, ...]) -> Any:
    """What the compiler makes of the same graph for some sizes alone."""
    request = plan.request
    made = compile_graph(
        graph_at(request.graph, dict(zip(plan.sizes.dims, numbers))),
        donate=request.donate,
        strides=request.strides,
        overwritten=request.overwritten,
        varying=True,
    )
    return without_large_arena(made)


def graph_at(graph: Graph, sizes: Mapping[Dim, Any]) -> Graph:
    """A graph with others in the place of its sizes."""
    nodes = Fed({}, sizes).apply([*graph.inputs, *graph.outputs])
    count = len(graph.inputs)
    return Graph(nodes[:count], nodes[count:])


class FunctionAtSizes(GraphFunction):
    """The function of a SizedCall at some sizes, with the plan that calls run.

    `types` are those of its outputs, `gradients` of the results of its backward plan.
    """

    def __init__(
        self,
        sized: SizedCall,
        numbers: tuple[int, ...],
        plan: Any,
        types: list[TensorType],
        gradients: tuple[TensorType, ...],
        alone: Alone,
    ) -> None:
        own = vars(self)
        own.update(vars(sized.function))
        for name in ("graph", "fed", "plain", "forward"):  # of open sizes
            own.pop(name, None)
        self.types, self._backwards, self._highers = types, {}, {}
        self._sized, self._numbers, self._alone = sized, numbers, alone
        if self.differentiable:
            forward = sized.function.forward
            own["forward"] = forward._replace(executable=plan, types=gradients)
        else:
            own["plain"] = plan

    @made_once
    def made(self) -> tuple[Call, GraphFunction]:
        """The call for these sizes alone, and its function."""
        return self._alone()

    @made_once
    def graph(self) -> Graph:  # type: ignore[override]
        return self.made[1].graph

    @made_once
    def fed(self) -> Fed:  # type: ignore[override]
        return self.made[1].fed

    @made_once
    def plain(self) -> Any:
        return self.made[1].plain

    @made_once
    def reaches(self) -> dict[int, int]:
        return self._sized.function.reaches

    def _make_backward(self, asked: Asked) -> tuple[Any, list[Place | None]]:
        """Backward plans are for many sizes, too, each for those that it holds for."""
        graph, places = self._sized.function.backward_graph(asked)
        known = self._sized.backwards.setdefault(asked, [])
        for plan in known or ():
            found = plan_at(plan, self._numbers)
            if found is not None:
                return found, places
        hints = dict(zip(self._sized.sizes.dims, self._numbers))
        if known is not None:
            sizes = PlanSizes()
            opened = {dim: sizes.new(dim.name, size, dim.bounds) for dim, size in hints.items()}
            try:
                again = graph_at(graph, opened)
                plan = compile_for_sizes(again, sizes, strides=odd_strides(again))
            except NOT_SIZED as error:
                self._sized.backwards[asked] = None
                self._sized.refused[reason_of(error)] = None
            else:
                known.insert(0, plan)
                return plan_at(plan, self._numbers), places
        alone = graph_at(graph, hints)
        made = compile_graph(alone, strides=odd_strides(alone), varying=True)
        return without_large_arena(made), places


class CallAtSizes(CompiledCall):
    """A SizedCall at some sizes."""

    def __init__(
        self, sized: CompiledCall, namespace: dict[str, Any], function: FunctionAtSizes
    ) -> None:
        own = vars(self)
        own.update(vars(sized))
        del own["call"]
        self._sized, self.function, self.namespace = sized, function, namespace
        of_all = sized.generated
        assert isinstance(of_all, FunctionType)
        self.generated = FunctionType(
            of_all.__code__, namespace, of_all.__name__, of_all.__defaults__
        )
        self.run = self._choose_run()

    @property
    def seconds(self) -> tuple[float, float]:
        return 0.0, 0.0

    @property
    def call(self) -> Call:  # type: ignore[override]
        function = self.function
        assert isinstance(function, FunctionAtSizes)
        return function.made[0]

    def _overlaps(self) -> bool:
        return self._sized._overlaps()
