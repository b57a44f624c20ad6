"""Bodies of branches and loops: functions that are recorded into graphs of their own.

While a body is traced, nodes go into the builder of its `Scope`. A tensor that was made elsewhere
stands there for an input of its own, and is read by the branch or loop as an operand. Its history
is that of a `Boundary` meanwhile, so that gradients end where the body does.

A body is differentiated by the records that it left, as everything is: so `detach()`, `no_grad()`
and custom functions count inside, too. Its gradient is a body over the same scope, and so are
gradients of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..autograd.engine import run_backward, sum_to
from ..compiler.ir import Builder, Graph, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.size_number import is_expression
from ..core.dispatch import make_source, settled
from ..core.provenance import user_site
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import Boundary, GeneratorUse, TraceError
from ..runtime.dtypes import int64
from ..runtime.records import record
from .body_writes import Watch

if TYPE_CHECKING:
    from .trace_context import Trace


@record(eq=False, frozen=False)
class Captured:
    """A tensor of the outside of a body, and what stands for it inside.

    `twin` is asked for its gradient; None where it needs none. `held` is the history that the
    tensor has outside, while the body is traced.
    """

    tensor: Tensor
    node: Node
    twin: Tensor | None = None
    held: Any = None


class Scope:
    """Where nodes are recorded: the traced function itself, or a body inside of it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.builder = Builder()
        self.own: set[Node] = set()
        self.constants: dict[Any, Node] = {}
        self.captured: dict[int, Captured] = {}  # by the id of the tensor outside
        self.parameters: set[int] = set()  # ids of the handles given to the body
        self.draws: dict[int, GeneratorUse] = {}
        self.draws_from: dict[int, Tensor] = {}  # id of a generator -> its counter, as given
        self.no_draws = ""  # why none may be drawn here

    def parameter(self, type_: TensorType, name: str, requires_grad: bool) -> Tensor:
        handle = wrap(self.input(type_, name), type_)
        if requires_grad and type_.dtype.is_differentiable:
            handle._record, handle._requires_grad = Boundary(type_, name), True
        self.parameters.add(id(handle))
        return handle

    def input(self, type_: TensorType, name: str) -> Node:
        node = input_node(name, type_)
        self.own.add(node)
        return node

    def capture(self, trace: Trace, tensor: Tensor) -> Node:
        """What stands for a tensor that was made outside."""
        found = self.captured.get(id(tensor))
        if found is not None:
            return found.node
        assert self.outer is not None
        with trace.within(self.outer):
            settled(tensor)
            node = trace.value_of(tensor)
        if _is_number(node) and not tensor._requires_grad:
            made = self.builder.rebuild(node, ())
            self.own.add(made)
            return made
        name = node.attrs.get("name", "captured")
        found = Captured(tensor, self.input(tensor._type, name))
        if tensor._requires_grad:
            found.twin = wrap(found.node, tensor._type)
            found.twin._record, found.twin._requires_grad = Boundary(tensor._type, name), True
            found.held = _history(tensor)
            _restore(tensor, (found.twin._record, 0))
        self.captured[id(tensor)] = found
        return found.node

    @contextmanager
    def entered(self, trace: Trace) -> Iterator[None]:
        """Record into this scope."""
        for each in self.captured.values():
            if each.twin is not None:
                each.held = _history(each.tensor)
                _restore(each.tensor, (each.twin._record, 0))
        try:
            with trace.within(self):
                yield
        finally:
            for each in self.captured.values():
                if each.twin is not None and each.held is not None:
                    _restore(each.tensor, each.held)
                    each.held = None

    def use(self, outer: GeneratorUse) -> GeneratorUse:
        """A generator inside of this body, whose counter is given to the body and comes back."""
        counter = self.parameter(outer.counter._type, "counter", False)
        self.draws_from[id(outer.generator)] = counter
        return GeneratorUse(outer.generator, outer.key, counter)

    def check_write(self, tensor: Tensor) -> None:
        """TraceError where a body writes what was not made in it."""
        base = tensor
        while base._view is not None:
            base = base._view.base
        if type(base._value) is Node and base._value in self.own:
            if id(base) not in self.parameters:
                return
            what, way = "a value that it was given", "clone() it first, and return what it becomes"
        else:
            what = "a tensor of the outside"
            way = "make it part of the state that the body takes and returns"
        raise TraceError(
            f"the body of a branch or loop writes {what} in place, at {user_site()}; {way}"
        )


def _is_number(node: Node) -> bool:
    """Whether it is cheaper to make again; an expression of sizes belongs to the graph around."""
    return node.primitive is p.full and not is_expression(node.attrs["value"]) and not node.shape


def _history(tensor: Tensor) -> tuple[Any, int]:
    return tensor._record, tensor._index


def _restore(tensor: Tensor, history: tuple[Any, int]) -> None:
    tensor._record, tensor._index = history


class Body:
    """A traced body: handles of what it takes and gives, inside its scope.

    The first of both are counters, one for each of the `generators` that it draws from.
    """

    def __init__(
        self, trace: Trace, scope: Scope, parameters: Sequence[Tensor], outputs: Sequence[Tensor],
        generators: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """The scope must be entered."""
        self.generators = list(generators)
        self.trace = trace
        self.scope = scope
        self.parameters = list(parameters)
        self.outputs = [_as_it_is(trace, each) for each in outputs]
        self.captured = [each.tensor for each in scope.captured.values()]
        self._gradients: dict[Any, Body] = {}

    @property
    def types(self) -> list[TensorType]:
        return [each._type for each in self.outputs]

    @property
    def requires_grad(self) -> bool:
        return any(each._requires_grad for each in self.outputs)

    def graph(self, captured: Sequence[Tensor]) -> Graph:
        """As a graph of the parameters and of `captured`, which may be more than it reads."""
        inputs = [each._value for each in self.parameters]
        own = set(map(id, self.captured))
        for each in captured:
            is_own = id(each) in own
            inputs.append(
                self.scope.captured[id(each)].node if is_own else input_node("unread", each._type)
            )
        return Graph(inputs, [each._value for each in self.outputs])

    def gradient(
        self, wanted: Sequence[bool], captured: Sequence[Tensor], given: Sequence[bool]
    ) -> Body:
        """The body of the vector-Jacobian products.

        It takes what this one takes, and cotangents of the outputs that are `given`; it gives those
        of the parameters that are `wanted`, and those of `captured`, zeros where there are none.
        """
        key = tuple(wanted), tuple(map(id, captured)), tuple(given)
        found = self._gradients.get(key)
        if found is None:
            where = self.trace.where
            with self.scope.entered(self.trace):
                found = self._gradients[key] = self._gradient(wanted, captured, given)
            self.trace.where = where
        return found

    def _gradient(
        self, wanted: Sequence[bool], captured: Sequence[Tensor], given: Sequence[bool]
    ) -> Body:
        outputs = [each for each, is_given in zip(self.outputs, given, strict=True) if is_given]
        incoming = [
            self.scope.parameter(each._type, f"d_output{at}", True)
            for at, each in enumerate(outputs)
        ]
        asked: list[Tensor | TensorType] = [
            each for each, is_wanted in zip(self.parameters, wanted, strict=True) if is_wanted
        ]
        for each in captured:
            of_scope = self.scope.captured.get(id(each))
            twin = None if of_scope is None else of_scope.twin
            asked.append(each._type if twin is None else twin)
        handles = [each for each in asked if isinstance(each, Tensor)]
        live = [
            (output, cotangent)
            for output, cotangent in zip(outputs, incoming, strict=True)
            if output._requires_grad
        ]
        found: list[Tensor | None] = [None] * len(handles)
        if live and handles:
            heads, cotangents = zip(*live, strict=True)
            found = run_backward(heads, cotangents, True, True, handles, False)
        left, gradients = iter(found), []
        for one in asked:
            type_ = one._type if isinstance(one, Tensor) else one
            gradient = next(left) if isinstance(one, Tensor) else None
            gradients.append(zeros(type_) if gradient is None else sum_to(gradient, type_))
        return Body(self.trace, self.scope, [*self.parameters, *incoming], gradients)


def _as_it_is(trace: Trace, tensor: Tensor) -> Tensor:
    """A handle of the value that a tensor has now, in the running scope, and of its history."""
    node = trace.value_of(settled(tensor))
    twin = wrap(node, tensor._type)
    twin._record, twin._index = _history(tensor)
    twin._requires_grad = tensor._requires_grad
    return twin


def zeros(type_: TensorType) -> Tensor:
    value = False if type_.dtype.kind == "bool" else 0
    return make_source(p.full, type_.device, shape=type_.shape, value=value, dtype=type_.dtype)


def trace_body(
    trace: Trace,
    function: Callable[..., Sequence[Tensor]],
    types: Sequence[TensorType],
    watched: Sequence[Callable[..., Any]] = (),
    requires_grad: bool = True,
) -> Body:
    """Trace `function`, which takes tensors of `types` and gives tensors.

    TraceError where it leaves something behind in Python objects that the functions `watched`
    reach, as each turn of a loop would.
    """
    scope = Scope(trace.scope)
    watch = Watch(watched)
    with scope.entered(trace):
        given = [
            scope.parameter(each, f"given{at}", requires_grad) for at, each in enumerate(types)
        ]
        outputs = list(function(*given))
        counters = [scope.draws_from[each] for each in scope.draws]
        outputs = [*(each.counter for each in scope.draws.values()), *outputs]
        drawn = [each.generator for each in scope.draws.values()]
        body = Body(trace, scope, [*counters, *given], outputs, drawn)
        watch.check()
        scope.no_draws = "the gradient of the body of a branch or loop"
        return body


def drawing(bodies: Sequence[Body], generators: Sequence[Any]) -> list[Body]:
    """The bodies with counters for all the `generators`, also those that they do not draw from."""
    return [_drawing(each, generators) for each in bodies]


def decision_of(condition: Body, generators: Sequence[Any]) -> Body:
    """A condition, which draws nothing, of a loop whose body draws from `generators`."""
    made = _drawing(condition, generators)
    made.outputs = condition.outputs
    return made


def _drawing(body: Body, generators: Sequence[Any]) -> Body:
    if body.generators == list(generators):
        return body
    count = len(body.generators)
    given = dict(zip(map(id, body.generators), body.parameters))
    left = dict(zip(map(id, body.generators), body.outputs))
    trace, scope = body.trace, body.scope
    with scope.entered(trace):
        for each in generators:
            if id(each) not in given:
                counter = scope.parameter(intern_type((), int64), "counter", False)
                given[id(each)] = left[id(each)] = counter
        return Body(
            trace, scope, [*(given[id(each)] for each in generators), *body.parameters[count:]],
            [*(left[id(each)] for each in generators), *body.outputs[count:]], generators,
        )  # fmt: skip


def union_of(bodies: Sequence[Body]) -> list[Tensor]:
    """What any of the bodies captures, each once."""
    found = {id(each): each for body in bodies for each in body.captured}
    return list(found.values())
