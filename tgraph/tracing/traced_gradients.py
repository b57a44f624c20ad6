"""Gradients inside a trace: the same engine and rules as in eager code, recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..autograd.engine import run_backward
from ..compiler.ir import Node
from ..core.tensor import Tensor, wrap
from ..core.trace_state import Source, TraceError
from ..runtime.records import NamedTuple
from .regions import deriving
from .trace_context import Trace

NO_INPUT = "the result of a compiled function depends on nothing outside that requires grad"


class TracedGradients(NamedTuple):
    """Cotangents of outputs, and the gradients that follow for inputs, as handles in a trace."""

    cotangents: list[Tensor]
    gradients: list[Tensor | None]
    token: Node | None = None
    """Of the last ordered host call that deriving them made, in a rule of the user's."""


def trace_gradients(
    trace: Trace,
    outputs: Mapping[int, Tensor],
    asked: Mapping[int, Tensor],
    create_graph: bool,
    token: Node | None,
) -> TracedGradients:
    """The gradients of `outputs` with respect to `asked`; the trace must be the running context.

    `token` is that of the last ordered host call of what is differentiated. Hooks of leaves are
    left out: they run when the gradient arrives in earnest.
    """
    hooks = [(each, each._hooks) for each in asked.values() if each._record is None]
    cotangents = [_cotangent(trace, number, each) for number, each in outputs.items()]
    for each in cotangents:
        each._requires_grad = create_graph
    before, trace.last_token = trace.last_token, token
    try:
        for handle, _ in hooks:
            handle._hooks = None
        with deriving(trace):
            found = run_backward(
                list(outputs.values()), cotangents, True, create_graph, list(asked.values()), False
            )
    finally:
        for handle, held in hooks:
            handle._hooks = held
        last, trace.last_token = trace.last_token, before
    return TracedGradients(cotangents, found, None if last is token else last)


def _cotangent(trace: Trace, number: int, output: Tensor) -> Tensor:
    entry = trace.new_input(Source("cotangent", number), f"d_output{number}", output._type)
    trace.inputs.remove(entry)  # fed by the backward pass, not by the call
    return wrap(entry.node, entry.node.type)


def trace_possible_gradients(
    trace: Trace, outputs: dict[int, Tensor], asked: dict[int, Tensor]
) -> tuple[dict[int, Tensor], TracedGradients | None, dict[int, str]]:
    """The outputs that have gradients, those gradients, and why others have none.

    Most often these come from a graph that the traced function has used up itself, by backward().
    """
    if not asked:
        return {}, None, dict.fromkeys(outputs, NO_INPUT)
    why = _why_not(trace, outputs, asked)
    if isinstance(why, TracedGradients):
        return outputs, why, {}
    freed: dict[int, str] = {}
    for number, output in outputs.items():
        found = _why_not(trace, {number: output}, asked)
        if isinstance(found, str):
            freed[number] = found
    left = {number: each for number, each in outputs.items() if number not in freed}
    gradients = trace_gradients(trace, left, asked, False, trace.last_token) if left else None
    return left, gradients, freed


def _why_not(trace: Trace, outputs: dict[int, Tensor], asked: dict[int, Tensor]) -> Any:
    """The gradients, or why there are none."""
    try:
        return trace_gradients(trace, outputs, asked, False, trace.last_token)
    except TraceError:
        raise
    except RuntimeError as error:
        return str(error)
