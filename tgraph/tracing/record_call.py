"""Runs a function once, and records what it does to tensors and to Python objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import Graph, TensorType
from ..core import pytree
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.context import use_context
from ..core.dispatch import settled
from ..core.eager_context import EAGER
from ..core.overlap import Origin
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import Rewrite, Source, TraceAgain, TraceError, TraceInput
from ..core.traced_float import Specialize
from ..runtime.records import record
from .collector import Collector, Given, is_mutable
from .recorded_call import Call
from .recording.places import Place, standing_in
from .recording.recorder import Recorder
from .selections import of_no_call
from .trace_context import Trace
from .traced_gradients import TracedGradients, trace_possible_gradients


def record_call(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    spec: pytree.TreeSpec,
    names: Sequence[str],
    trace: Trace,
    recorder: Recorder,
    numbers: frozenset[int] = frozenset(),
    gradients: bool = True,
    places: Sequence[Place] = (),
) -> Call:
    """Record `function` called with `leaves` put together to (args, kwargs) by `spec`.

    Tensors among the leaves become inputs, and so do the numbers at the positions `numbers`; all
    else is passed as it is. Leaves behind those of `spec` are what lies in the `places`. What
    Python code reads is told by `recorder`. Nothing outside changes, whether the function returns
    or raises. With `gradients`, those of outputs that require grad are recorded as well. One call
    at a time is recorded: others would see the tensors that it changes for a while.
    """
    refuse_at_exit()
    previous = state.context
    with COMPILE_LOCK:
        try:
            state.context = trace
            stand_ins = _stand_ins(trace, leaves, names, numbers)
            count = spec.count
            args, kwargs = spec.unflatten(stand_ins[:count])
            given = Given((args, kwargs), spec)
            roots = [(getattr(function, "__name__", "function"), function)]
            roots += [(n, x) for n, x in zip(names[:count], leaves) if not isinstance(x, Tensor)]
            recorder.touched = trace.root.journal
            recorder.leaves = {
                id(each): (at, leaf) for at, (each, leaf) in enumerate(zip(stand_ins, leaves))
            }
            for at, (each, name) in enumerate(zip(stand_ins, names, strict=True)):
                if isinstance(each, Tensor):
                    recorder.names.setdefault(id(each), name)
                    recorder.attributes_of_leaves.setdefault(id(each.__dict__), (at, id(each)))
            with standing_in(places, stand_ins[count:]), recorder.recording(roots):
                collected = Collector(trace, recorder, given)
                returned = function(*args, **kwargs)
                collected.survey(returned)
                results, tree = pytree.flatten(returned, collected.is_whole)
                refs = [collected.ref(leaf) for leaf in results]
                changes = collected.changes()
                effects = collected.effects()
                effects.changes = changes
                if trace.last_token is not None:
                    collected.output(trace.last_token)
                read = collected.gradients_read()
                first = -len(collected.leaves)
                made = dict(enumerate(collected.leaves, first))
                asked = asked_of(trace.inputs)
                asked.update((number, handle) for number, (_, handle) in made.items())
                outputs = collected.differentiable if gradients else {}
                derived = _derived(trace, recorder, outputs, asked)
        except Exception as error:
            written = trace.has_written() or recorder.has_written
            if written and not isinstance(error, TraceError):
                error.raised_after_writes = True  # type: ignore[attr-defined]
            raise
        finally:
            state.context = previous  # before any call, at which Ctrl-C may come
            trace.sizes.is_over = True
            try:
                final = trace.roll_back()
            except (KeyboardInterrupt, MemoryError):
                trace.roll_back()  # it may not have come to its end
                raise
    graph = Graph([entry.node for entry in trace.inputs], collected.nodes)
    inputs = list(trace.inputs)
    unread = [at for at in range(count, len(leaves)) if id(stand_ins[at]) not in recorder.stand_ins]
    attributes = {
        at: recorder.tensor_reads[id(each)]
        for at, each in enumerate(stand_ins)
        if id(each) in recorder.tensor_reads
    }
    return Call(
        trace, graph, inputs, tree, refs, effects, read, final, asked,
        [ref for ref, _ in made.values()], *derived, unread, attributes,
        origins_of(trace),
        [*given.codes.values(), *recorder.attributes_looked_at()],
        [*filter(is_mutable, recorder.outside()), *recorder.attributes_met()], recorder.compared,
    )  # fmt: skip


def _derived(
    trace: Trace, recorder: Recorder, outputs: dict[int, Tensor], asked: dict[int, Tensor]
) -> tuple[dict[int, Tensor], TracedGradients | None, dict[int, str]]:
    return trace_possible_gradients(trace, recorder, outputs, asked) if outputs else ({}, None, {})


def origins_of(trace: Trace) -> dict[int, Origin]:
    """Positions of arguments whose place in memory was asked for -> what it was."""
    found = ((entry.source, trace.origins.get(id(entry.handle))) for entry in trace.inputs)
    return {
        source.key: origin
        for source, origin in found
        if origin is not None and source.kind == "argument"
    }


def asked_of(inputs: Sequence[TraceInput]) -> dict[int, Tensor]:
    """Input number -> what gradients with respect to it are asked of."""
    return {
        number: entry.differentiable
        for number, entry in enumerate(inputs)
        if entry.differentiable is not None
    }


def _stand_ins(
    trace: Trace, leaves: Sequence[Any], names: Sequence[str], numbers: frozenset[int]
) -> list[Any]:
    """The leaves as the function sees them; one tensor given twice is one handle."""
    made: dict[int, Tensor] = {}
    result: list[Any] = []
    for position, (leaf, name) in enumerate(zip(leaves, names, strict=True)):
        source = Source("argument", position)
        if isinstance(leaf, Tensor):
            if id(leaf) not in made:
                made[id(leaf)] = trace.argument(source, settled_outside(leaf), name)
            result.append(made[id(leaf)])
        elif position in numbers:
            result.append(trace.number(Source("number", position), type(leaf), name))
        else:
            result.append(leaf)
    return result


def settled_outside(tensor: Tensor) -> Tensor:
    """`tensor`, up to date with writes to its memory, as eager code sees it."""
    with use_context(EAGER):
        EAGER.value_of(tensor)
        return settled(tensor)


def is_module(function: Any) -> bool:
    """Whether it is a `tgraph.nn.Module`, asked without importing that, which takes long."""
    return hasattr(type(function), "named_parameters")


def called(function: Any) -> Any:
    """What runs when `function` is called: a module's `forward`, which has the signature."""
    return function.forward if is_module(function) else function


def leaf_names(function: Callable[..., Any], spec: pytree.TreeSpec) -> list[str]:
    """What the user calls each leaf of (args, kwargs)."""
    args, kwargs = spec.children
    try:
        parameters = list(inspect.signature(called(function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in positional]
    found = []
    for at, child in enumerate(args.children):
        found += child.paths(names[at] if at < len(names) else f"args[{at - len(names)}]")
    for name, child in zip(kwargs.meta, kwargs.children, strict=True):
        found += child.paths(str(name))
    return found


class TracedGraph(Graph):
    """The graph of a `function`, and the `leaves` that it was called with, put together by `spec`.

    A tensor among the leaves is left as its type and whether it requires grad, the same one for a
    tensor that was given twice. `selects` is the line that selects by data, if any does.
    """

    def __init__(
        self,
        graph: Graph,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        spec: pytree.TreeSpec,
        names: Sequence[str],
        selects: str,
    ) -> None:
        super().__init__(graph.inputs, graph.outputs)
        given = {
            id(each): Argument(each._type, each._requires_grad, name)
            for each, name in reversed(list(zip(leaves, names, strict=True)))
            if isinstance(each, Tensor)
        }
        self.function, self.spec, self._selects = function, spec, selects
        self.leaves = [given.get(id(each), each) for each in leaves]

    def of_known_sizes(self) -> TracedGraph:
        """The same; TraceError where data decide a size."""
        if self._selects:
            raise TraceError(
                f"the function selects by data at {self._selects}, so that its sizes are known "
                "only when it is called: tg.compile(function).explain(...) shows what runs then"
            )
        return self


@record(eq=False)
class Argument:
    """A tensor that a traced function was given."""

    type: TensorType
    requires_grad: bool
    name: str


def traced_graph(
    function: Callable[..., Any], leaves: Sequence[Any], spec: pytree.TreeSpec
) -> TracedGraph:
    """The graph of a function called with `leaves`; see `tracing.trace`."""
    names, rewritings = leaf_names(function, spec), None
    static: frozenset[Source] = frozenset()
    begun = 0
    while True:
        recorder = Recorder()
        trace = Trace(recorder.names, static, count=of_no_call)
        if rewritings is not None:
            trace.rewritings, recorder.rewritten = rewritings, rewritings.code_of
        try:
            call = record_call(function, leaves, spec, names, trace, recorder, gradients=False)
        except Rewrite as asked:
            rewritings = asked.rewritings
        except Specialize as needed:
            static |= needed.sources
        except TraceAgain as asked:
            begun += 1
            asked.check(begun)
        else:
            selections = list(trace.selections.values())
            trace.sizes.is_over = False  # who looks at the graph may ask
            graph = Graph(call.graph.inputs, [*call.graph.outputs, *(s.mask for s in selections)])
            selects = selections[0].where if selections else ""
            return TracedGraph(graph, function, leaves, spec, names, selects)
