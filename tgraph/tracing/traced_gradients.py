"""Gradients inside a trace: the same engine and rules as in eager code, recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..autograd.api import retains_grad
from ..autograd.engine import run_backward
from ..compiler.ir import Node
from ..core.record import Keeping, Record
from ..core.sparse_tensor import NotOnSparseError, SparseTensor
from ..core.tensor import Tensor, wrap
from ..core.trace_state import HandleState, Source, TraceError
from ..runtime.records import NamedTuple
from .recording.recorder import Recorder
from .regions import deriving
from .trace_context import Trace, handle_of

NO_INPUT = "the result of a compiled function depends on nothing outside that requires grad"


class TracedGradients(NamedTuple):
    """Cotangents of outputs, and the gradients that follow for inputs, as handles in a trace.

    Gradients may be sparse tensors, whose parts are handles (see `parts_of`).
    """

    cotangents: list[Tensor]
    gradients: list[Tensor | None]
    token: Node | None = None
    """Of the last ordered host call that deriving them made, in a rule of the user's."""

    @property
    def are_sparse(self) -> bool:
        """Whether some are."""
        return any(isinstance(each, SparseTensor) for each in self.gradients)


def parts_of(gradient: Tensor) -> list[Node]:
    """The values that a gradient is made of: of a sparse one its positions and elements."""
    if isinstance(gradient, SparseTensor):
        return [each._value for each in (*gradient._positions, gradient._elements)]
    return [gradient._value]


def trace_gradients(
    trace: Trace,
    outputs: Mapping[int, Tensor],
    asked: Mapping[int, Tensor],
    create_graph: bool,
    token: Node | None,
    sparse: bool = False,
) -> TracedGradients:
    """The gradients of `outputs` with respect to `asked`; the trace must be the running context.

    `token` is that of the last ordered host call of what is differentiated. Hooks of leaves of the
    outside are left out: they run when the gradient arrives in earnest. With `sparse`, those that
    are sparse in eager code are so here, unless a step on their way knows no sparse tensors. What
    `retaining` tells of keeps the gradients that arrive in earnest, not these.
    """
    if sparse:
        trace.deriving_sparse = True
        try:
            return trace_gradients(trace, outputs, asked, create_graph, token)
        except NotOnSparseError:
            pass
        finally:
            trace.deriving_sparse = False
    outside = [each for number, each in asked.items() if number >= 0]
    hooks = [(each, each._hooks) for each in outside if each._record is None]
    kept = [_without_keeping(outputs[number]) for number in retaining(outputs)]
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
        for record, index, table in kept:
            record.hooks[index] = table
        last, trace.last_token = trace.last_token, before
    return TracedGradients(cotangents, found, None if last is token else last)


def retaining(outputs: Mapping[int, Tensor]) -> list[int]:
    """The outputs of which `retain_grad()` was asked, and into which no gradient of others comes.

    Their gradients are what arrives from outside of the call.
    """
    asked = {number: each for number, each in outputs.items() if retains_grad(each)}
    if not asked:
        return []
    inner: set[tuple[int, int]] = set()
    waiting, seen = [each._record for each in outputs.values()], set[int]()
    while waiting:
        record = waiting.pop()
        if isinstance(record, Record) and id(record) not in seen:
            seen.add(id(record))
            edges = [edge for edge in record.edges if edge is not None]
            inner.update((id(target), index) for target, index in edges)
            waiting += [target for target, _ in edges]
    return [n for n, each in asked.items() if (id(each._record), each._index) not in inner]


def _without_keeping(output: Tensor) -> tuple[Record, int, dict[int, Any]]:
    """Take the hook of `retain_grad()` away; gives the record, the output and all of its hooks."""
    record, index = output._record, output._index
    table = record.hooks[index]
    record.hooks[index] = {key: each for key, each in table.items() if type(each) is not Keeping}
    return record, index, table


def _cotangent(trace: Trace, number: int, output: Tensor) -> Tensor:
    entry = trace.new_input(Source("cotangent", number), f"d_output{number}", output._type)
    trace.inputs.remove(entry)  # fed by the backward pass, not by the call
    return wrap(entry.node, entry.node.type)


def trace_possible_gradients(
    trace: Trace, recorder: Recorder, outputs: dict[int, Tensor], asked: dict[int, Tensor]
) -> tuple[dict[int, Tensor], TracedGradients | None, dict[int, str]]:
    """The outputs that have gradients, those gradients, and why others have none.

    Most often these come from a graph that the traced function has used up itself, by backward().
    Code of the user's that runs here, in hooks and custom gradients, is recorded by `recorder`.
    """
    if not asked:
        return {}, None, dict.fromkeys(outputs, NO_INPUT)

    def derive(these: Mapping[int, Tensor]) -> TracedGradients | str:
        tensors = _Tensors(trace, outputs.values())
        return _gradients_or_why(trace, recorder, tensors, these, asked)

    found = derive(outputs)
    if isinstance(found, TracedGradients):
        return outputs, found, {}
    freed: dict[int, str] = {}
    for number, output in outputs.items():
        alone = derive({number: output})
        if isinstance(alone, str):
            freed[number] = alone
    left = {number: each for number, each in outputs.items() if number not in freed}
    if not left:
        return {}, None, freed
    found = derive(left)
    if isinstance(found, str):
        return {}, None, {**freed, **dict.fromkeys(left, found)}
    return left, found, freed


def _gradients_or_why(
    trace: Trace,
    recorder: Recorder,
    tensors: _Tensors,
    outputs: Mapping[int, Tensor],
    asked: Mapping[int, Tensor],
) -> TracedGradients | str:
    """The gradients, or why there are none. What deriving them writes is undone."""
    with recorder.undoing() as first_write:
        try:
            found = trace_gradients(trace, outputs, asked, False, trace.last_token, sparse=True)
        except TraceError:
            raise
        except RuntimeError as error:
            tensors.undo()
            return str(error)
        what = first_write() or tensors.first_write()
    if not what:
        return found
    tensors.undo()
    return (
        f"the gradient of what {trace.function} returned, compiled, runs code of yours (a hook, "
        f"or the backward of an autograd.Function) that writes {what}. The plan of a gradient "
        "computes tensors alone, so that this would happen once, and not at each backward(). Call "
        "backward() inside of the compiled function, which repeats what is written there, or "
        'write from tg.tracing.host_call(..., effect="ordered"), or do not compile the function.'
    )


class _Tensors:
    """What a trace has written of tensors and generators so far, to be told from what follows."""

    def __init__(self, trace: Trace, outputs: Iterable[Tensor]) -> None:
        self.trace = trace
        self.retaining = [(each, each._grad) for each in outputs if each._hooks is not None]
        held = [entry.handle for entry in trace.inputs if entry.handle is not None]
        held += [before.tensor for before in trace.journal.values()]
        self.states = {id(each): HandleState.of(each) for each in held}
        self.grads = self._grads()
        self.draws = {key: (use.calls, use.counter) for key, use in trace.draws.generators.items()}

    def _grads(self) -> dict[int, Any]:
        """What was written into gradients, by the id of their tensors."""
        trace = self.trace
        written = [key for key, access in trace.grads.items() if access.written]
        grads = {key: handle_of(trace, key)._grad for key in written}
        return {key: (id(each), getattr(each, "_value", None)) for key, each in grads.items()}

    def first_write(self) -> str:
        """Something that was written since; "" where nothing was."""
        trace = self.trace
        later = [before for key, before in trace.journal.items() if key not in self.states]
        for state in (*self.states.values(), *later):
            if state.is_written:
                return f"a tensor, `{trace.name_of(state.tensor)}`, in place"
        for key, now in self._grads().items():
            if self.grads.get(key) != now:
                return f"`{trace.name_of(handle_of(trace, key))}.grad`"
        for each, before in self.retaining:
            if each._grad is not before:
                return "the gradient of a result, of which retain_grad() was asked"
        for key, use in trace.draws.generators.items():
            if self.draws.get(key, (0, None))[0] != use.calls:
                return "the state of a generator of random numbers, from which it draws"
        return ""

    def undo(self) -> None:
        for each in self.states.values():
            each.restore()
        for tensor, grad in self.retaining:
            tensor._grad = grad
        for key, (calls, counter) in self.draws.items():
            self.trace.draws.generators[key].calls = calls
            self.trace.draws.generators[key].counter = counter
