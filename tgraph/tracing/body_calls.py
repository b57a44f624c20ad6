"""Bodies of a trace that are called in contexts over it: by `vmap`, by `jvp`, and by both.

What is recorded is about one example, and knows of no tangent: its graph is run operation by
operation in a lifted context, and its derivatives are those of the body, which belong to the trace.
So examples are batched after all derivatives were taken: that some are done, and keep the state
that they have, is nothing that a gradient goes through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..autograd.custom_call import Cotangents, CustomCall, Forward, call_custom
from ..compiler.ir import Family, Graph, Node
from ..compiler.ir import primitives as p
from ..core.context import use_context
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.grad_mode import unrecorded
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.vjp_rules import Attrs, Wanted
from ..core.vjp_rules import Cotangents as Incoming
from .bodies import Body, trace_body

if TYPE_CHECKING:
    from .trace_context import Trace


def run_above(
    trace: Trace, context: Any, function: Callable[..., Sequence[Tensor]],
    tensors: Sequence[Tensor], name: str,
) -> list[Tensor]:  # fmt: skip
    """What `function` gives for `tensors` of `context`, which stands over the trace."""
    with _recording(trace, _goes_onward(state.grad_enabled)):
        derived = [each._requires_grad or context.pushes for each in tensors]
        types = [each._type for each in tensors]
        body = trace_body(trace, function, types, (), derived, context)
        uses = trace._counters(body.changed)  # nothing else of the outside may be changed
    captured = map(context.as_read, body.reads, body.captured)
    operands = [*(use.counter for use in uses), *tensors, *captured]
    found = call_custom(BodyCall(body, name), operands)
    counters = [context.greatest_below(each) for each in found[: len(uses)]]
    trace._drawn(uses, counters)
    return found[len(uses) :]


@contextmanager
def _recording(trace: Trace, derives: bool) -> Iterator[None]:
    """Record into the trace, with derivatives if it `derives`."""
    previous, state.grad_enabled = state.grad_enabled, derives
    try:
        with use_context(trace):
            yield
    finally:
        state.grad_enabled = previous


def _goes_onward(recorded: bool) -> bool:
    """Whether derivatives may be asked of what is computed now."""
    context = current_context()
    return recorded or (context.lifts and context.pushes)


class BodyCall(CustomCall):
    """A body, given its parameters and what it captured."""

    def __init__(self, body: Body, name: str) -> None:
        self.body, self.name = body, name
        self.graph = body.graph(body.captured)

    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        with unrecorded():
            return replayed(self.body.trace, self.graph, tensors)

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        return Forward(self.function(tensors), *self.left(tensors))

    def left(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        return list(tensors), None

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        incoming = [each for each in cotangents if each is not None]
        count = len(self.body.parameters)
        gradient = self._derived(
            Body.gradient, [*residuals, *incoming], wanted[:count], self._chosen(wanted[count:]),
            [each is not None for each in cotangents],
        )  # fmt: skip
        found = iter(self._call(gradient, residuals, incoming))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def tangents(
        self, primals: Sequence[Tensor], tangents: Cotangents
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        given = [each for each in tangents if each is not None]
        moved, count = [each is not None for each in tangents], len(self.body.parameters)
        pushed = self._derived(
            Body.pushed, [*primals, *given], moved[:count], self._chosen(moved[count:])
        )
        found = self._call(pushed, primals, given)
        results = len(self.body.outputs)
        left = iter(found[results:])
        return found[:results], [next(left) if has else None for has in pushed.moved]

    def _chosen(self, flags: Sequence[bool]) -> list[Tensor]:
        return [each for each, flag in zip(self.body.captured, flags, strict=True) if flag]

    def _derived(self, derive: Any, tensors: Sequence[Tensor], *what: Any) -> Body:
        onward = _goes_onward(state.grad_enabled and any(each._requires_grad for each in tensors))
        with _recording(self.body.trace, onward):
            found: Body = derive(self.body, *what, onward)
        return found

    def _call(self, body: Body, known: Sequence[Tensor], more: Sequence[Tensor]) -> list[Tensor]:
        """What a derivative gives for what this call was given, and `more`."""
        count = len(self.body.parameters)
        own = dict(zip(map(id, self.body.captured), known[count:], strict=True))
        captured = [own.get(id(each), each) for each in body.captured]
        return call_custom(BodyCall(body, self.name), [*known[:count], *more, *captured])


def replayed(trace: Trace, graph: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What a graph of the trace gives: as its nodes there, as operations in a context over it."""
    is_above = current_context() is not trace
    made: dict[Node, Any] = dict(zip(graph.inputs, tensors, strict=True))
    before = trace.where
    try:
        for node in graph.nodes:
            if node not in made:
                trace.where = node.where
                operands = [made[each] for each in node.inputs]
                made[node] = (_applied if is_above else _rebuilt)(trace, node, operands)
    finally:
        trace.where = before
    return [made[each] for each in graph.outputs]


def _rebuilt(trace: Trace, node: Node, operands: Sequence[Any]) -> Any:
    """A handle of a node that is made again in the running scope, the node itself if it has several
    results."""
    inputs = [trace.value_of(each) if isinstance(each, Tensor) else each for each in operands]
    made = trace.rebuild(node, inputs)
    return made if type(node.type) is tuple else wrap(made, node.type)


def _applied(trace: Trace, node: Node, operands: Sequence[Any]) -> Any:
    if node.primitive.family is Family.SOURCE:  # one for all examples, without tangents
        return _rebuilt(trace, node, ())
    if node.primitive is p.get:
        return operands[0][node.attrs["index"]]
    return apply(node.primitive, *operands, **node.attrs)


# --- rules of a trace in a context over it -------------------------------------------------------


def at_home(rule: Callable[..., Incoming]) -> Callable[..., Incoming]:
    """A rule of what was recorded in a trace, for cotangents of any context over it.

    There it is a body of its own: `jacrev` calls it for many cotangents at once.
    """

    @functools.wraps(rule)
    def run(
        cotangents: Incoming, outputs: Sequence[Any], inputs: Sequence[Any], attrs: Attrs,
        wanted: Wanted,
    ) -> Incoming:  # fmt: skip
        context = current_context()
        if not context.lifts:
            return rule(cotangents, outputs, inputs, attrs, wanted)
        is_given: list[bool] = []

        def home(*given: Tensor) -> list[Tensor]:
            left = iter(given)
            whole = [None if each is None else next(left) for each in cotangents]
            found = rule(whole, outputs, inputs, attrs, wanted)
            is_given[:] = [each is not None for each in found]
            return [each for each in found if each is not None]

        given = [each for each in cotangents if each is not None]
        made = iter(context.base.run_above(context, home, given, "Gradient"))
        return [next(made) if each else None for each in is_given]

    return run
