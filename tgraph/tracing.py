"""Run a function once to record what it does to tensors.

`trace` gives the graph of a function to look at. `record_call` is what `compile` builds on: the
graph, where its inputs are read, what its outputs mean, and what else the function changed.

Some helpers serve code that keeps state between calls, such as optimizers: under
`suspend_tracing()` tensors are computed at once, so that state made inside a traced function is
real; `host_scalar(getter)` reads a hyperparameter anew at every call of the compiled function, so
that changing it needs no new compilation; `host_constant(getter)` fixes one, and compiles anew
when it has changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from . import pytree
from .compile_lock import COMPILE_LOCK, refuse_at_exit
from .compiler.ir import Graph, Node
from .derivation import Derivation, derive_what_can_be
from .dispatch import EAGER, current_context, settled, use_context
from .linalg import trace as matrix_trace
from .nn.module import Module
from .runtime.dtypes import DType
from .state import state
from .tensor import Step, Tensor, View, shared_storage, storage_of
from .trace_context import Trace
from .trace_state import HandleState, Source, TraceError, TraceInput
from .traced_float import Specialize, TracedFloat

__all__ = [
    "Call", "Effects", "Ref", "Source", "Specialize", "Trace", "TraceError",
    "host_constant", "host_scalar", "is_tracing", "record_call", "suspend_tracing", "trace",
]  # fmt: skip


def is_tracing() -> bool:
    """Whether operations of this thread are recorded into a graph now."""
    return current_context().tracing


class suspend_tracing(use_context):
    """Compute at once inside the block, also in a traced function.

    For state that outlives the call, made on first use: what is made here is a real tensor, which
    a compiled function finds by identity and writes in place. Values of traced tensors cannot be
    used inside.

    >>> import tgraph as tg
    >>> state = {}
    >>> @tg.compile
    ... def count(x):
    ...     if not state:
    ...         with tg.tracing.suspend_tracing():
    ...             state["n"] = tg.zeros(())
    ...     state["n"].add_(1)
    ...     return x * state["n"]
    >>> count(tg.ones(2)), count(tg.ones(2)), state["n"]
    (tensor([1., 1.]), tensor([2., 2.]), tensor(2.))
    """

    def __init__(self) -> None:
        super().__init__(EAGER)


def host_scalar(getter: Callable[[], float], dtype: DType | None = None) -> Any:
    """The number that `getter()` gives now and at every later call of the compiled function.

    Outside of a trace simply `getter()`. Inside, something that behaves like a Python float in
    arithmetic with numbers and tensors (with `dtype`: a tensor of no dimensions of that type);
    comparing it, or asking for its value, fixes it, and a change then compiles anew.
    """
    context = current_context()
    return context.host_number(getter, dtype) if isinstance(context, Trace) else getter()


def host_constant(getter: Callable[[], Any], name: str = "a setting") -> Any:
    """What `getter()` gives, fixed in the compiled function while it gives an equal value.

    For choices that decide which operations run: a change compiles anew, for the reason that
    `name` changed. Outside of a trace simply `getter()`.
    """
    context = current_context()
    return context.host_constant(getter, name) if isinstance(context, Trace) else getter()


# --- what a recorded call means ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ref:
    """What stands at one leaf of a result, or in a gradient, after a call.

    `kind` is one of: "output" (number `key` of the graph's outputs, a new tensor), "outside" (the
    tensor found at the Source `key`), "view" (`steps` applied to the Ref `key`), "number" (output
    `key` as a Python float), "static" (the object `key` itself). `leaf` says that a new tensor
    requires grad without a history; `history` is the output whose history a view gets. `apart` says
    that a view counts writes for itself, as `.data` does.
    """

    kind: str
    key: Any
    steps: tuple[Step, ...] = ()
    differentiable: bool = True
    leaf: bool = False
    history: int | None = None
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Write:
    """Memory that the call overwrites: input number `input` becomes output number `output`."""

    input: int
    output: int | None  # None: only counted as written
    times: int  # as which it counts; not at all where it was written through .data
    written: Any


@dataclass(eq=False)
class Effects:
    """What a call changes besides computing its result."""

    writes: list[Write] = field(default_factory=list)
    # (owner, what its .grad becomes; None for no gradient)
    grads: list[tuple[Source, Ref | None]] = field(default_factory=list)
    # (owner, requires_grad) of leaves
    flags: list[tuple[Source, bool]] = field(default_factory=list)
    # (owner, output) whose history becomes that of the output
    histories: list[tuple[Source, int]] = field(default_factory=list)
    # (view that counts for itself, how often it was written, where)
    counts: list[tuple[Source, int, Any]] = field(default_factory=list)
    # (generator, calls drawn, seed where the call sets one)
    generators: list[tuple[Any, int, int | None]] = field(default_factory=list)


@dataclass(eq=False)
class Call:
    """One recorded call of a function."""

    trace: Trace
    graph: Graph
    inputs: list[TraceInput]
    result: pytree.TreeSpec
    refs: list[Ref]
    effects: Effects
    # What was read of gradients: (owner, whether there was none).
    grads_read: list[tuple[Source, bool]]
    final: list[HandleState]
    # Input number -> what gradients with respect to it are asked of.
    asked: dict[int, Tensor]
    # Outputs that can be differentiated: number -> the handle in the trace.
    differentiable: dict[int, Tensor]
    derivation: Derivation | None
    # Outputs that require grad, yet cannot be differentiated, and why.
    freed: dict[int, str]

    @property
    def donate(self) -> dict[int, int]:
        """Output number -> the input whose memory it is written into."""
        writes = self.effects.writes
        return {write.output: write.input for write in writes if write.output is not None}


def record_call(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    spec: pytree.TreeSpec,
    names: Sequence[str],
    trace: Trace,
    floats: frozenset[int] = frozenset(),
    gradients: bool = True,
) -> Call:
    """Record `function` called with `leaves` put together to (args, kwargs) by `spec`.

    Tensors among the leaves become inputs, and so do the floats at the positions `floats`; all
    else is passed as it is. Nothing outside changes, whether the function returns or raises. With
    `gradients`, those of outputs that require grad are recorded as well. One call at a time is
    recorded: others would see the tensors that it changes for a while.
    """
    refuse_at_exit()
    previous = state.context
    with COMPILE_LOCK:
        try:
            state.context = trace
            args, kwargs = spec.unflatten(_stand_ins(trace, leaves, names, floats))
            results, tree = pytree.flatten(function(*args, **kwargs))
            collected = _Collector(trace)
            refs = [collected.ref(leaf) for leaf in results]
            effects = collected.effects()
            read = collected.gradients_read()
            asked = asked_of(trace.inputs)
            derived = _derived(trace, collected.differentiable if gradients else {}, asked)
        except Exception as error:
            if not isinstance(error, TraceError) and trace.has_written():
                error.raised_after_writes = True  # type: ignore[attr-defined]
            raise
        finally:
            state.context = previous  # before any call, at which Ctrl-C may come
            try:
                final = trace.roll_back()
            except (KeyboardInterrupt, MemoryError):
                trace.roll_back()  # it may not have come to its end
                raise
    graph = Graph([entry.node for entry in trace.inputs], collected.nodes)
    inputs = list(trace.inputs)
    return Call(trace, graph, inputs, tree, refs, effects, read, final, asked, *derived)


def _derived(
    trace: Trace, outputs: dict[int, Tensor], asked: dict[int, Tensor]
) -> tuple[dict[int, Tensor], Derivation | None, dict[int, str]]:
    return derive_what_can_be(trace, outputs, asked) if outputs else ({}, None, {})


def asked_of(inputs: Sequence[TraceInput]) -> dict[int, Tensor]:
    """Input number -> what gradients with respect to it are asked of."""
    return {
        number: entry.differentiable
        for number, entry in enumerate(inputs)
        if entry.differentiable is not None
    }


def _stand_ins(
    trace: Trace, leaves: Sequence[Any], names: Sequence[str], floats: frozenset[int]
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
        elif position in floats:
            result.append(trace.float_input(Source("float", position), name))
        else:
            result.append(leaf)
    return result


def settled_outside(tensor: Tensor) -> Tensor:
    """`tensor`, up to date with writes to its memory, as eager code sees it."""
    with use_context(EAGER):
        EAGER.value_of(tensor)
        return settled(tensor)


def _handle(trace: Trace, key: int) -> Tensor:
    """The tensor of the outside, or the stand-in, whose id is `key`."""
    entry = trace.by_handle.get(key)
    if entry is not None and entry.handle is not None:
        return entry.handle
    return trace.journal[key].tensor


def _refuse_hidden_tensors(result: Any) -> None:
    """TypeError for a result with traced tensors where they are not looked for."""
    if isinstance(result, (set, frozenset)):
        held: Any = result
    elif isinstance(result, (type, FunctionType, ModuleType)):
        return
    else:
        held = getattr(result, "__dict__", {}).values()
    traced = (isinstance(each, Tensor) and type(each._value) is Node for each in held)
    if inspect.isgenerator(result) or any(traced):
        raise TypeError(
            f"a traced function returned a {type(result).__name__}, in which its tensors are not "
            "found. Return tensors in tuples, lists, dicts or dataclasses, or make it known with "
            "tg.pytree.register()."
        )


class _Collector:
    """Gives every tensor that leaves the trace its meaning, and the graph its outputs."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nodes: list[Node] = []
        self.differentiable: dict[int, Tensor] = {}
        self._refs: dict[int, Ref] = {}
        self._kept: list[Any] = []  # so that ids stay theirs
        self._counted: set[int] = set()  # storages that count for themselves

    def ref(self, value: Any) -> Ref:
        if type(value) is TracedFloat:
            value.check()
            return Ref("number", self.output(value.node))
        if not isinstance(value, Tensor):
            _refuse_hidden_tensors(value)
            return Ref("static", value)
        found = self._refs.get(id(value))
        if found is None:
            self._kept.append(value)
            found = self._refs[id(value)] = self._ref(settled(value))
        return found

    def _ref(self, tensor: Tensor) -> Ref:
        if self._is_outside(tensor):
            return Ref("outside", self.trace.owner(tensor))
        view = tensor._view
        if view is not None and self._leaves(view.base):
            return self._view(tensor, view)
        number = self.output(self.trace.value_of(tensor))
        leaf = tensor._requires_grad and tensor._record is None
        if tensor._requires_grad and not leaf:
            self.differentiable[number] = tensor
        return Ref("output", number, leaf=leaf)

    def _view(self, tensor: Tensor, view: View) -> Ref:
        base, history = self.ref(view.base), None
        own = tensor._requires_grad and not follows_its_base(tensor)
        if own and tensor._record is not None:
            history = self.output(self.trace.value_of(tensor))
            self.differentiable[history] = tensor
        leaf = own and history is None
        apart = storage_of(tensor) is not storage_of(view.base)
        return Ref("view", base, view.steps, view.differentiable, leaf, history, apart)

    def _leaves(self, base: Tensor) -> bool:
        """Whether a base is seen after the call, itself or through what it is a view of."""
        if self._is_outside(base) or id(base) in self._refs:
            return True
        return base._view is not None and self._leaves(base._view.base)

    def _is_outside(self, tensor: Tensor) -> bool:
        return type(tensor._value) is not Node or id(tensor) in self.trace.arguments

    def output(self, node: Node) -> int:
        """The number of a new output that gives `node`."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    # --- effects ---

    def gradients_read(self) -> list[tuple[Source, bool]]:
        """(owner, whether there was none) of the gradients that were read as they came."""
        trace = self.trace
        return [
            (trace.owner(_handle(trace, key)), access.was_none)
            for key, access in trace.grads.items()
            if access.read
        ]

    def effects(self) -> Effects:
        trace, found = self.trace, Effects()
        for number, entry in enumerate(trace.inputs):
            if entry.handle is not None:
                self._changes(number, entry, entry.handle, found)
        for key, access in trace.grads.items():
            if access.written:
                self._grad(_handle(trace, key), found)
        for before in trace.journal.values():
            tensor = before.tensor
            if id(tensor) not in trace.by_handle and not follows_its_base(tensor):
                self._changed_outside(tensor, before, found)
        uses = trace.generators.values()
        found.generators = [(use.generator, use.calls, use.seed) for use in uses]
        return found

    def _grad(self, owner: Tensor, found: Effects) -> None:
        grad = owner._grad
        ref = None if grad is None else self.ref(grad)
        found.grads.append((self.trace.owner(owner), ref))

    def _changes(self, number: int, entry: TraceInput, handle: Tensor, found: Effects) -> None:
        trace = self.trace
        before = trace.journal.get(id(handle))
        storage, node = storage_of(handle), trace.value_of(handle)
        times = storage.version - (0 if before is None else before.version)
        changed = times or storage.changes > (0 if before is None else before.changes)
        if changed and not entry.shown:
            output = None if node is entry.node else self.output(node)
            found.writes.append(Write(number, output, times, storage.written))
        if handle._record is not entry.record:
            assert handle._requires_grad and handle._record is not None
            self._history(entry.source, handle, node, found)
        elif handle._requires_grad is not (entry if before is None else before).requires_grad:
            found.flags.append((entry.source, handle._requires_grad))

    def _changed_outside(self, tensor: Tensor, before: HandleState, found: Effects) -> None:
        """Changes of a tensor that is no input: a detached view, or never read."""
        source = self.trace.owner(tensor)
        storage = storage_of(tensor)
        times = storage.version - before.version
        own = storage is not shared_storage(tensor) and id(storage) not in self._counted
        if own and times:
            self._counted.add(id(storage))
            found.counts.append((source, times, storage.written))
        if tensor._record is not before.record:
            self._history(source, tensor, self.trace.value_of(tensor), found)
        elif tensor._requires_grad is not before.requires_grad:
            found.flags.append((source, tensor._requires_grad))

    def _history(self, source: Source, handle: Tensor, node: Node, found: Effects) -> None:
        output = self.output(node)
        self.differentiable[output] = handle
        found.histories.append((source, output))


def follows_its_base(tensor: Tensor) -> bool:
    """Whether the history of a tensor is that of another, which it is a view of."""
    view = tensor._view
    return view is not None and view.differentiable and view.base._requires_grad


# --- looking at a graph --------------------------------------------------------------------------


def trace(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The graph of `function(*args, **kwargs)`, which is run once without computing anything.

    (Of a tensor instead of a function: the sum of its diagonal.)

    Outputs are the tensors of the result, then new values of arguments and of tensors of the
    outside that the function changes in place, then gradients that its `backward()` leaves.

    >>> import tgraph as tg
    >>> print(tg.trace(lambda x: (x * 2).sum(), tg.ones(3)))
    graph(%x: float32[3])
      %0: float32[] = full(dtype=float32, shape=(), value=2.0)
      %1: float32[3] = mul(%x, %0)
      %2: float32[] = sum(%1; axes=(0,), keepdims=False)
      return %2
    """
    if isinstance(function, Tensor):
        return matrix_trace(function)
    if is_tracing():
        raise TraceError("tg.trace cannot be called in a function that is being traced")
    leaves, spec = pytree.flatten((args, kwargs))
    names = leaf_names(function, spec)
    return record_call(function, leaves, spec, names, Trace(), gradients=False).graph


def leaf_names(function: Callable[..., Any], spec: pytree.TreeSpec) -> list[str]:
    """What the user calls each leaf of (args, kwargs)."""
    args, kwargs = spec.children
    called = function.forward if isinstance(function, Module) else function
    try:
        parameters = list(inspect.signature(called).parameters.values())
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
