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

import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    ModuleType,
    TracebackType,
)
from typing import Any

import numpy as np

from . import pytree
from .compile_lock import COMPILE_LOCK, refuse_at_exit
from .compiler.ir import Graph, Node
from .derivation import Derivation, derive_what_can_be
from .dispatch import EAGER, current_context, settled, use_context
from .linalg import trace as matrix_trace
from .nn.module import Module
from .recording.guards import is_a, is_static
from .recording.places import Place, standing_in
from .recording.recorder import Recorder
from .recording.snapshots import (
    ABSENT,
    AttributesSnapshot,
    PlaceWrite,
    SlotsSnapshot,
    Snapshot,
    snapshot_of,
)
from .runtime.dtypes import DType
from .state import state
from .tensor import Step, Tensor, View, shared_storage, storage_of
from .trace_context import Trace
from .trace_state import HandleState, Source, TraceError, TraceInput
from .traced_float import Specialize
from .traced_number import TracedNumber

__all__ = [
    "Call", "Effects", "Ref", "Source", "Specialize", "Trace", "TraceError",
    "host", "host_constant", "host_scalar", "is_tracing", "record_call", "suspend_tracing", "trace",
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


def host(function: Callable[[], Any]) -> Any:
    """What `function()` gives, a tensor or a number: called at every call of a compiled function.

    For what is not recorded: the clock, files, random numbers of others. In eager code simply
    `function()`. It must give the same type each time; numbers may be computed with, while asking
    for their value is a TraceError.

    >>> import tgraph as tg
    >>> import itertools
    >>> count = itertools.count(1)
    >>> f = tg.compile(lambda x: x * tg.host(lambda: next(count)))
    >>> f(tg.ones(2)), f(tg.ones(2))
    (tensor([1., 1.]), tensor([2., 2.]))
    """
    context = current_context()
    if not isinstance(context, Trace):
        return function()
    if state.recorder is None:
        return context.host_value(function)
    with state.recorder.suspended():
        return context.host_value(function)


# --- what a recorded call means ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ref:
    """What stands at one leaf of a result, or in a gradient, after a call.

    `kind` is one of: "output" (number `key` of the graph's outputs, a new tensor), "outside" (the
    tensor found at the Source `key`), "view" (`steps` applied to the Ref `key`), "number" (the
    Python number that the expression `key` gives), "static" (the object `key` itself), "made" (a
    copy of `key.value`, which the function made), "container" (made of the structure and Refs that
    are the `key`, and found in several places), "given" (the container among the arguments that
    the text `key` reaches). `leaf` says that a new tensor requires grad without a history;
    `history` is the output whose history a view gets. `apart` says that a view counts writes for
    itself, as `.data` does. A tensor of a class of its own is made by `like`.
    """

    kind: str
    key: Any
    steps: tuple[Step, ...] = ()
    differentiable: bool = True
    leaf: bool = False
    history: int | None = None
    apart: bool = False
    like: TensorOfClass | None = None


@dataclass(frozen=True, eq=False)
class TensorOfClass:
    """A tensor of a subclass, such as a Parameter, and the attributes that the user gave it."""

    kind: type
    attributes: dict[str, Any]

    def of(self, tensor: Tensor) -> Tensor:
        """`tensor`, which nobody else has, as one of the class."""
        made: Tensor = self.kind.__new__(self.kind)
        for name in _TENSOR_SLOTS:
            setattr(made, name, getattr(tensor, name))
        if self.attributes:
            made.__dict__.update(self.attributes)
        return made


_TENSOR_SLOTS = [name for name in Tensor.__slots__ if name[:2] != "__"]


@dataclass(frozen=True, eq=False)
class Write:
    """Memory that the call overwrites: input number `input` becomes output number `output`."""

    input: int
    output: int | None  # None: only counted as written
    times: int  # as which it counts; not at all where it was written through .data
    written: Any


@dataclass(frozen=True, eq=False)
class Made:
    """An object that the traced function made; copies share the objects of the outside with it."""

    value: Any
    outside: list[Any]

    def copy(self) -> Any:
        if isinstance(self.value, np.ndarray):
            return self.value.copy()
        return deepcopy(self.value, {id(each): each for each in self.outside})


@dataclass(frozen=True, eq=False)
class Change:
    """Something that the call writes into a Python object: a PlaceWrite whose value is refs.

    `holder` is the object, or the text that reaches a container among the arguments. Without a
    `tree` nothing is left at the place.
    """

    kind: str
    holder: Any
    key: Any
    tree: pytree.TreeSpec | None
    refs: list[Ref]
    is_given: bool = False


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
    # Python objects written into
    changes: list[Change] = field(default_factory=list)


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
    # Positions of leaves behind the arguments that the function did not read.
    unread: list[int]
    # Position of a tensor among the leaves -> attributes of the user's that were read of it.
    attributes: dict[int, dict[str, Any]]
    # What reaches the containers among the arguments that can be written into, and those of the
    # outside that the function met: a call gives none of these, and none twice.
    containers: list[str]
    met: list[Any]
    # (position of a tensor, another position or a tensor of the outside) -> whether they were one.
    compared: dict[tuple[int, int | Tensor], bool]

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
            given = _Given((args, kwargs), spec)
            roots = [(getattr(function, "__name__", "function"), function)]
            roots += [(n, x) for n, x in zip(names[:count], leaves) if not isinstance(x, Tensor)]
            recorder.leaves = {
                id(each): (at, leaf) for at, (each, leaf) in enumerate(zip(stand_ins, leaves))
            }
            with standing_in(places, stand_ins[count:]), recorder.recording(roots):
                collected = _Collector(trace, recorder, given)
                returned = function(*args, **kwargs)
                collected.survey(returned)
                results, tree = pytree.flatten(returned, collected.is_whole)
                refs = [collected.ref(leaf) for leaf in results]
                changes = collected.changes()
                effects = collected.effects()
                effects.changes = changes
            read = collected.gradients_read()
            asked = asked_of(trace.inputs)
            derived = _derived(trace, collected.differentiable if gradients else {}, asked)
        except Exception as error:
            written = trace.has_written() or recorder.has_written
            if written and not isinstance(error, TraceError):
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
    unread = [at for at in range(count, len(leaves)) if id(stand_ins[at]) not in recorder.stand_ins]
    attributes = {
        at: recorder.tensor_reads[id(each)]
        for at, each in enumerate(stand_ins)
        if id(each) in recorder.tensor_reads
    }
    return Call(
        trace, graph, inputs, tree, refs, effects, read, final, asked, *derived, unread, attributes,
        list(given.codes.values()), [each for each in recorder.outside() if _is_mutable(each)],
        recorder.compared,
    )  # fmt: skip


class _Given:
    """The containers among the arguments, as the function got them."""

    def __init__(self, arguments: Any, spec: pytree.TreeSpec) -> None:
        self.codes: dict[int, str] = {}  # id of a container -> the text that reaches the user's
        self._snapshots: list[tuple[Snapshot, str]] = []
        for container, code in pytree.containers(arguments, spec, "given"):
            if code == "given" or code in ("given[0]", "given[1]"):
                continue
            if not _is_mutable(container):
                continue
            self.codes[id(container)] = code
            if isinstance(container, (dict, list)):
                snapshot = snapshot_of(container, code.removeprefix("given"))
                assert snapshot is not None
                self._snapshots.append((snapshot, code))
            if not isinstance(container, (dict, list)):
                self._snapshots.append((SlotsSnapshot(container, code), code))
            if hasattr(container, "__dict__"):
                self._snapshots.append((AttributesSnapshot(vars(container), code), f"vars({code})"))

    def writes(self) -> Iterator[tuple[PlaceWrite, str]]:
        for snapshot, code in self._snapshots:
            for write in snapshot.writes():
                yield write, code


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


def _handle(trace: Trace, key: int) -> Tensor:
    """The tensor of the outside, or the stand-in, whose id is `key`."""
    entry = trace.by_handle.get(key)
    if entry is not None and entry.handle is not None:
        return entry.handle
    return trace.journal[key].tensor


def _refuse_hidden_tensors(result: Any, is_outside: Callable[[Any], bool]) -> None:
    """TypeError for a value with traced tensors where they are not looked for."""
    if inspect.isgenerator(result) or _holds_traced(result, is_outside):
        raise TypeError(
            f"a traced function made a {type(result).__name__}, in which its tensors are not "
            "found. Return tensors in tuples, lists, dicts or dataclasses, or make it known with "
            "tg.pytree.register()."
        )


def _holds_traced(value: Any, is_outside: Callable[[Any], bool]) -> bool:
    """Whether a tensor or number of the trace can be reached from a value."""
    seen, waiting = set(), [value]
    while waiting:
        each = waiting.pop()
        if type(each) is TracedNumber:
            return True
        if isinstance(each, Tensor):
            if type(each._value) is Node:
                return True
            continue
        if isinstance(each, _NOT_ENTERED) or id(each) in seen or is_outside(each):
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):  # but for its globals
            waiting += [each.__closure__, each.__defaults__, each.__kwdefaults__, each.__dict__]
        elif isinstance(each, np.ndarray):
            waiting += each.flat if each.dtype == object else ()
        else:
            waiting += gc.get_referents(each)
    return False


_NOT_ENTERED = (type, ModuleType, CodeType, FrameType, TracebackType, str, bytes, int, float)


def _is_mutable(value: Any) -> bool:
    """Whether something can be written into that is no tensor."""
    return not is_a(value, (tuple, frozenset, *_NOT_ENTERED))


def _is_fixed(value: Any) -> bool:
    """Whether a value can be given out again and again."""
    return is_static(value) or isinstance(
        value, (type, FunctionType, ModuleType, BuiltinFunctionType)
    )


class _Collector:
    """Gives every tensor that leaves the trace its meaning, and the graph its outputs."""

    def __init__(self, trace: Trace, recorder: Recorder, given: _Given) -> None:
        self.trace, self.recorder, self.given = trace, recorder, given
        self.nodes: list[Node] = []
        self.differentiable: dict[int, Tensor] = {}
        self._refs: dict[int, Ref] = {}
        self._kept: list[Any] = []  # so that ids stay theirs
        self._counted: set[int] = set()  # storages that count for themselves
        self._writes: list[tuple[PlaceWrite, Any, bool]] = []
        self._leaving: set[int] = set()  # ids of tensors that are seen after the call
        self._views: dict[int, set[int]] = {}  # id of a tensor -> ids of views of it that leave
        self._shared: set[int] = set()  # ids of new containers that lie in several places
        self._plains: dict[int, Ref | None] = {}  # None while one is made

    def survey(self, returned: Any) -> None:
        """Look at all that leaves the trace, before anything of it gets its meaning."""
        self._writes = [(write, write.holder, False) for write in self.recorder.writes()]
        self._writes += [(write, code, True) for write, code in self.given.writes()]
        waiting, met = [returned, *(write.value for write, *_ in self._writes)], set()
        while waiting:
            value = waiting.pop()
            if isinstance(value, Tensor):
                self._leaves_trace(value)
                continue
            children = pytree.children(value)
            if children is None or self.is_whole(value):
                continue
            if id(value) not in met:
                met.add(id(value))
                waiting.extend(children)
            else:
                self._shared.add(id(value))

    def ref(self, value: Any) -> Ref:
        if type(value) is TracedNumber:
            value.check()
            return Ref("number", value.expression)
        if not isinstance(value, Tensor):
            return self._plain(value)
        found = self._refs.get(id(value))
        if found is None:
            self._kept.append(value)
            found = self._refs[id(value)] = self._ref(settled(value))
        return found

    def _leaves_trace(self, tensor: Tensor) -> None:
        """So does the memory of a tensor: what two views show is made once for both."""
        self._leaving.add(id(tensor))
        while tensor._view is not None:
            base = tensor._view.base
            views = self._views.setdefault(id(base), set())
            views.add(id(tensor))
            if len(views) > 1:
                self._leaving.add(id(base))
            tensor = base

    def is_whole(self, value: Any) -> bool:
        """Whether a container is not to be made anew, or once for several places."""
        is_known = self.recorder.is_outside(value) or id(value) in self.given.codes
        return is_known or id(value) in self._shared

    def _plain(self, value: Any) -> Ref:
        """A value that is no tensor: immutable or of the outside, or made anew by each call."""
        if id(value) in self.given.codes:
            return Ref("given", self.given.codes[id(value)])
        if self.recorder.is_outside(value):
            return Ref("static", value)
        if id(value) in self._shared:
            return self._once(value, self._container)
        _refuse_hidden_tensors(value, self.recorder.is_outside)
        return Ref("static", value) if _is_fixed(value) else self._once(value, self._made)

    def _once(self, value: Any, make: Callable[[Any], Ref]) -> Ref:
        """One Ref for all places where an object lies."""
        key = id(value)
        if key not in self._plains:
            self._kept.append(value)
            self._plains[key] = None
            self._plains[key] = make(value)
        found = self._plains[key]
        if found is None:
            raise TypeError(f"the {type(value).__name__} contains itself")
        return found

    def _container(self, value: Any) -> Ref:
        is_itself = iter([True])  # asked of first
        leaves, tree = pytree.flatten(
            value, lambda each: not next(is_itself, False) and self.is_whole(each)
        )
        return Ref("container", (tree, [self.ref(each) for each in leaves]))

    def _made(self, value: Any) -> Ref:
        made = Made(value, self.recorder.outside())
        try:
            made.copy()
        except Exception as error:
            raise TypeError(
                f"a traced function made a {type(value).__name__}, which cannot be made anew at "
                f"each call ({error}); return tensors, numbers and containers of them"
            ) from error
        return Ref("made", made)

    def changes(self) -> list[Change]:
        """What the function wrote into Python objects of the outside, and its arguments."""
        return [self._change(*each) for each in self._writes]

    def _change(self, write: PlaceWrite, holder: Any, is_given: bool) -> Change:
        key = write.key
        if write.value is ABSENT:
            return Change(write.kind, holder, key, None, [], is_given)
        values, tree = pytree.flatten(write.value, self.is_whole)
        try:
            refs = [self.ref(value) for value in values]
        except TypeError as error:
            site = self.recorder.sites.get(id(write.holder), "an unknown line")
            raise TraceError(
                f"a compiled function cannot repeat what it writes to `{write.path}` at {site}: "
                f"{error}"
            ) from None
        return Change(write.kind, holder, key, tree, refs, is_given)

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
        return Ref("output", number, leaf=leaf, like=self._like(tensor))

    def _like(self, tensor: Tensor) -> TensorOfClass | None:
        if type(tensor) is Tensor:
            return None
        attributes = dict(getattr(tensor, "__dict__", {}))
        _refuse_hidden_tensors(attributes, self.recorder.is_outside)
        return TensorOfClass(type(tensor), attributes)

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
        if self._is_outside(base) or id(base) in self._refs or id(base) in self._leaving:
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
    recorder = Recorder()
    trace = Trace(recorder.names)
    return record_call(function, leaves, spec, names, trace, recorder, gradients=False).graph


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
