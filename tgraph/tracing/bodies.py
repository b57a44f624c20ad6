"""Bodies of branches and loops: functions that are recorded into graphs of their own.

While a body is traced, nodes go into the builder of its `Scope`. A tensor that was made elsewhere
stands there for an input of its own, and is read by the branch or loop as an operand. Its history
is that of a `Boundary` meanwhile, so that gradients end where the body does.

A body is differentiated by the records that it left, as everything is: so `detach()`, `no_grad()`
and custom functions count inside, too. Its gradient is a body over the same scope, and so are
gradients of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..autograd.engine import run_backward, sum_to
from ..autograd.pushing import key_of, tangents_along
from ..compiler.ir import Graph, TensorType, input_node
from ..compiler.ir import primitives as p
from ..core.dispatch import edge_of, make_source, settled, twin_of
from ..core.state import state
from ..core.tensor import Tensor, intern_type
from ..runtime.dtypes import int64
from .body_writes import Watch, refuse_attributes, refusing_writes
from .outside_writes import Written
from .reached import Ends, ends_of
from .regions import deriving, outside_of_regions
from .scopes import Scope

if TYPE_CHECKING:
    from .trace_context import Trace


def _history(tensor: Tensor) -> tuple[Any, int]:
    return tensor._record, tensor._index


class Body:
    """A traced body: handles of what it takes and gives, inside its scope.

    The first of both are what is `changed` of the outside: counters of generators that it draws
    from, and tensors that it writes, of which `written` tells more by their ids.
    """

    def __init__(
        self, trace: Trace, scope: Scope, parameters: Sequence[Tensor], outputs: Sequence[Tensor],
        changed: Sequence[Any] = (), written: dict[int, Written] | None = None,
    ) -> None:  # fmt: skip
        """The scope must be entered."""
        self.changed = list(changed)
        self.written = written or {}
        self.trace = trace
        self.scope = scope
        self.parameters = list(parameters)
        self.outputs = [_as_it_is(trace, each) for each in outputs]
        given = {each._value for each in parameters}
        captured = [each for each in scope.captured.values() if each.node not in given]
        self.reads = [each.tensor for each in captured]  # tensors of the outside
        self.captured = [each.operand for each in captured]  # as they were when it was recorded
        self._derived: dict[Any, Body] = {}
        self.moved: list[bool] = []  # which results have tangents, of one that is `pushed`
        self._ends: list[Ends] | None = None

    @property
    def types(self) -> list[TensorType]:
        return [each._type for each in self.outputs]

    def histories(self, operands: Sequence[bool], captured: Sequence[Tensor]) -> list[bool]:
        """Which outputs have a history where these parameters do, and `captured` as they are."""
        if self._ends is None:
            self._ends = ends_of(self.outputs)
        having = {
            id(each._record)
            for each, has_history in zip(self.parameters, operands, strict=True)
            if has_history
        }
        for each in captured:
            if each._requires_grad and id(each) in self.scope.operands:
                having.add(id(self.scope.operands[id(each)].twin._record))
        return [not each.isdisjoint(having) for each in self._ends]

    def graph(self, captured: Sequence[Tensor]) -> Graph:
        """As a graph of the parameters and of `captured`, which may be more than it reads."""
        inputs = [each._value for each in self.parameters]
        own = set(map(id, self.captured))
        for each in captured:
            is_own = id(each) in own
            inputs.append(
                self.scope.operands[id(each)].node if is_own else input_node("unread", each._type)
            )
        return Graph(inputs, [each._value for each in self.outputs])

    def gradient(
        self, wanted: Sequence[bool], captured: Sequence[Tensor], given: Sequence[bool],
        onward: bool = True,
    ) -> Body:  # fmt: skip
        """The body of the vector-Jacobian products.

        It takes what this one takes, and cotangents of the outputs that are `given`; it gives those
        of the parameters that are `wanted`, and those of `captured`, zeros where there are none.
        It has derivatives itself if it is to go `onward`.
        """
        return self._once(self._gradient, wanted, captured, given, onward)

    def pushed(self, moved: Sequence[bool], captured: Sequence[Tensor], onward: bool) -> Body:
        """The body of the Jacobian-vector products.

        It takes what this one takes, and tangents of the parameters that are `moved` and of
        `captured`; it gives what this one gives, and tangents of the results that are `moved` then.
        """
        return self._once(self._pushed, moved, captured, onward)

    def _once(self, derive: Callable[..., Body], *what: Any) -> Body:
        key = derive.__name__, *(_key_part(each) for each in what), state.grad_enabled
        found = self._derived.get(key)
        if found is None:
            where = self.trace.where
            with self.scope.entered(self.trace), deriving(self.trace), refusing_writes():
                found = self._derived[key] = derive(*what)
            self.trace.where = where
        return found

    def _pushed(self, moved: Sequence[bool], captured: Sequence[Tensor], onward: bool) -> Body:
        begins = [
            each for each, is_moved in zip(self.parameters, moved, strict=True) if is_moved
        ] + [self.scope.operands[id(each)].twin for each in captured]
        tangents = [
            self.scope.parameter(each._type, f"d_given{at}", onward)
            for at, each in enumerate(begins)
        ]
        given = {
            key: tangent
            for each, tangent in zip(begins, tangents, strict=True)
            if (key := key_of(edge_of(each))) is not None
        }
        edges = list(map(edge_of, self.outputs))
        found, again = tangents_along(edges, given)
        outputs = [
            again.get(key_of(edge), each)  # type: ignore[arg-type]
            for edge, each in zip(edges, self.outputs, strict=True)
        ]
        pushed = [*outputs, *(each for each in found if each is not None)]
        made = Body(self.trace, self.scope, [*self.parameters, *tangents], pushed)
        made.moved = [each is not None for each in found]
        return made

    def _gradient(
        self, wanted: Sequence[bool], captured: Sequence[Tensor], given: Sequence[bool],
        onward: bool,
    ) -> Body:  # fmt: skip
        outputs = [each for each, is_given in zip(self.outputs, given, strict=True) if is_given]
        incoming = [
            self.scope.parameter(each._type, f"d_output{at}", onward)
            for at, each in enumerate(outputs)
        ]
        asked: list[Tensor | TensorType] = [
            each if each._requires_grad else each._type
            for each, is_wanted in zip(self.parameters, wanted, strict=True)
            if is_wanted
        ]
        for each in captured:
            found_here = self.scope.operands.get(id(each))
            has_history = found_here is not None and found_here.twin._requires_grad
            asked.append(found_here.twin if has_history else each._type)
        handles = [each for each in asked if isinstance(each, Tensor)]
        live = [
            (output, cotangent)
            for output, cotangent in zip(outputs, incoming, strict=True)
            if output._requires_grad
        ]
        found: list[Tensor | None] = [None] * len(handles)
        if live and handles:
            heads, cotangents = zip(*live, strict=True)
            found = run_backward(heads, cotangents, True, onward, handles, False)
        left, gradients = iter(found), []
        for one in asked:
            type_ = one._type if isinstance(one, Tensor) else one
            gradient = next(left) if isinstance(one, Tensor) else None
            gradients.append(zeros(type_) if gradient is None else sum_to(gradient, type_))
        return Body(self.trace, self.scope, [*self.parameters, *incoming], gradients)


def _key_part(what: Any) -> Any:
    if isinstance(what, bool):
        return what
    return tuple(each if isinstance(each, bool) else id(each) for each in what)


def _as_it_is(trace: Trace, tensor: Tensor) -> Tensor:
    """A handle of the value that a tensor has now, in the running scope, and of its history."""
    return twin_of(tensor, trace.value_of(settled(tensor)))


def zeros(type_: TensorType) -> Tensor:
    value = False if type_.dtype.kind == "bool" else 0
    return make_source(p.full, type_.device, shape=type_.shape, value=value, dtype=type_.dtype)


def trace_body(
    trace: Trace,
    function: Callable[..., Sequence[Tensor]],
    types: Sequence[TensorType],
    watched: Sequence[Callable[..., Any]] = (),
    requires_grad: bool | Sequence[bool] = True,
    over: Any = None,
) -> Body:
    """Trace `function`, which takes tensors of `types` and gives tensors.

    `requires_grad` tells with respect to which derivatives may be asked. Tensors of the outside may
    be those of `over`, a lifted context over the trace. TraceError where it leaves something behind
    in Python objects that the functions `watched` reach, as each turn of a loop would.
    """
    watch, written, moved = Watch(watched), list[Tensor](), list[Tensor]()
    while True:
        scope = Scope(trace.scope, over)
        with scope.entered(trace), outside_of_regions():
            scope.expect_gradients(trace, written, moved)
            body = _trace_body(trace, scope, function, types, requires_grad)
            watch.check()
            scope.pure = "the gradient of the body of a branch or loop"
        if not scope.is_wrong and len(scope.moved) == len(moved):
            return body
        moved = scope.moved
        written = list(scope.written.values())


def _trace_body(
    trace: Trace, scope: Scope, function: Callable[..., Sequence[Tensor]],
    types: Sequence[TensorType], requires_grad: bool | Sequence[bool],
) -> Body:  # fmt: skip
    """Into a scope that is `is_wrong` afterwards if it did not know what the body writes."""
    flags = [requires_grad] * len(types) if isinstance(requires_grad, bool) else requires_grad
    given = [
        scope.parameter(each, f"given{at}", flag)
        for at, (each, flag) in enumerate(zip(types, flags, strict=True))
    ]
    parameters = [_as_it_is(trace, each) for each in given]  # which may be written
    outputs = list(function(*given))
    if scope.over is None:
        refuse_attributes(outputs)
    scope.check_touched()
    written = {}
    for key, each in scope.written.items():
        twin = scope.captured[key].twin
        if each._requires_grad and not twin._requires_grad:  # so it does at the next turn
            trace.carry(each, requires_grad=True)
            scope.is_wrong = True
        written[key] = Written(
            each._version - scope.journal[key].version, _history(each) != _history(twin)
        )
    draws = scope.draws.values()
    counters = [scope.draws_from[id(each.generator)] for each in draws]
    taken = [*counters, *(scope.captured[key].twin for key in written), *parameters]
    left = [*(each.counter for each in draws), *scope.written.values(), *outputs]
    changed = [*(each.generator for each in draws), *scope.written.values()]
    return Body(trace, scope, taken, left, changed, written)


def giving(body: Body, make: Callable[[], Sequence[Tensor]]) -> Body:
    """A body that computes the same and gives what `make` makes of it, in its scope."""
    count = len(body.changed)
    with body.scope.entered(body.trace):
        made = [*body.outputs[:count], *make()]
        return Body(
            body.trace, body.scope, body.parameters, made, body.changed, body.written
        )  # fmt: skip


def changed_by(bodies: Sequence[Body]) -> list[Any]:
    """The generators, and then the tensors of the outside, that any of the bodies changes."""
    found = {id(each): each for body in bodies for each in body.changed}
    return sorted(found.values(), key=lambda each: isinstance(each, Tensor))


def changing(bodies: Sequence[Body], changed: Sequence[Any]) -> list[Body]:
    """The bodies as such that take and give all that is `changed`, also by others."""
    return [_changing(each, changed) for each in bodies]


def decision_of(condition: Body, changed: Sequence[Any]) -> Body:
    """A condition, which changes nothing, of a loop whose body changes the outside."""
    made = _changing(condition, changed)
    made.outputs = condition.outputs
    return made


def _changing(body: Body, changed: Sequence[Any]) -> Body:
    if list(map(id, body.changed)) == list(map(id, changed)):
        return body
    count = len(body.changed)
    given = dict(zip(map(id, body.changed), body.parameters))
    left = dict(zip(map(id, body.changed), body.outputs))
    trace, scope = body.trace, body.scope
    with scope.entered(trace):
        for each in changed:
            if id(each) not in given:
                given[id(each)] = left[id(each)] = _passed_on(trace, scope, each)
        return Body(
            trace, scope, [*(given[id(each)] for each in changed), *body.parameters[count:]],
            [*(left[id(each)] for each in changed), *body.outputs[count:]], changed, body.written,
        )  # fmt: skip


def _passed_on(trace: Trace, scope: Scope, changed: Any) -> Tensor:
    """A parameter for what only other bodies change."""
    if not isinstance(changed, Tensor):
        return scope.parameter(intern_type((), int64), "counter", False)
    if id(changed) in scope.captured:
        return scope.captured[id(changed)].twin
    requires_grad = changed._requires_grad or trace.carried[id(changed)].requires_grad
    return scope.parameter(changed._type, "carried", requires_grad)


def union_of(bodies: Sequence[Body]) -> list[Tensor]:
    """What any of the bodies captures, each once."""
    found = {id(each): each for body in bodies for each in body.captured}
    return list(found.values())
