"""Gives all that leaves a trace its meaning: results, gradients, and what was written."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
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

from ..compiler.ir import Node
from ..compiler.ir.dim import SymInt
from ..core import pytree
from ..core.carried_number import CarriedNumber
from ..core.dispatch import settled
from ..core.tensor import Size, Tensor, View, is_parted, shared_storage, storage_of
from ..core.trace_state import HandleState, Source, TraceError, TraceInput
from ..core.traced_number import TracedNumber
from ..core.views import data
from .recorded_call import Change, Effects, Made, Ref, TensorOfClass, Write, follows_its_base
from .recording.guards import is_a, is_static
from .recording.questions import NUMBERS
from .recording.recorder import Recorder
from .recording.snapshots import (
    ABSENT,
    AttributesSnapshot,
    PlaceWrite,
    SlotsSnapshot,
    Snapshot,
    snapshot_of,
)
from .trace_context import Trace, handle_of


class Given:
    """The containers among the arguments, as the function got them."""

    def __init__(self, arguments: Any, spec: pytree.TreeSpec) -> None:
        self.codes: dict[int, str] = {}  # id of a container -> the text that reaches the user's
        self._snapshots: list[tuple[Snapshot, str]] = []
        for container, code in pytree.containers(arguments, spec, "given"):
            if code == "given" or code in ("given[0]", "given[1]"):
                continue
            if not is_mutable(container):
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
        if type(each) in NUMBERS:
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


def _is_place(view: View) -> bool:
    """Whether it is known where in memory a view lies: of a row that data choose it is not."""
    return not any(step.operands for step in view.steps)


def is_mutable(value: Any) -> bool:
    """Whether something can be written into that is no tensor."""
    return not is_a(value, (tuple, frozenset, *_NOT_ENTERED))


def _is_fixed(value: Any) -> bool:
    """Whether a value can be given out again and again."""
    return is_static(value) or isinstance(
        value, (type, FunctionType, ModuleType, BuiltinFunctionType)
    )


class Collector:
    """Gives every tensor that leaves the trace its meaning, and the graph its outputs."""

    def __init__(self, trace: Trace, recorder: Recorder, given: Given) -> None:
        self.trace, self.recorder, self.given = trace, recorder, given
        self.nodes: list[Node] = []
        self.differentiable: dict[int, Tensor] = {}
        self.leaves: list[tuple[Ref, Tensor]] = []  # that the function made, and their handles
        self._grads: list[tuple[Ref, Ref]] = []  # of tensors that the function made
        self._parted: list[Ref] = []  # views of memory that their bases have no more
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
        of_leaves = self.recorder.attributes_of_leaves
        for write in self.recorder.writes():
            position, _ = of_leaves.get(id(write.holder), (None, None))
            holder = write.holder if position is None else f"a{position}.__dict__"
            self._writes.append((write, holder, position is not None))
        self._writes += [(write, code, True) for write, code in self.given.writes()]
        waiting, met = [returned, *(write.value for write, *_ in self._writes)], set()
        while waiting:
            value = waiting.pop()
            if isinstance(value, Tensor):
                if id(value) not in met:
                    met.add(id(value))
                    waiting += self._attributes_of_result(value)
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

    def _attributes_of_result(self, tensor: Tensor) -> list[Any]:
        """The values of what the function gave a tensor of its own, which each call repeats."""
        own = tensor.__dict__
        if not own or self._is_outside(tensor):
            return []
        for key, value in own.items():
            write = PlaceWrite(own, "item", key, value, f"the {type(tensor).__name__}.{key}")
            self._writes.append((write, tensor, False))
        return [*own.values()]

    def ref(self, value: Any) -> Ref:
        if type(value) is CarriedNumber:
            value = value.tensor
        if type(value) is TracedNumber:
            value.check()
            return Ref("number", value.expression)
        if type(value) is SymInt:
            return Ref("number", Source("size", value))
        if type(value) is Size and any(type(each) is SymInt for each in value):
            return Ref("shape", value)
        if not isinstance(value, Tensor):
            return self._plain(value)
        found = self._refs.get(id(value))
        if found is None:
            self._kept.append(value)
            found = self._refs[id(value)] = self._ref(settled(value))
            if found.kind != "outside" and value._grad is not None:
                self._grads.append((found, self.ref(value._grad)))
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
        if isinstance(holder, Tensor):
            holder = self.ref(holder)
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
        if view is not None and is_parted(view):
            if self._is_outside(view.base):
                found = self._view(tensor, view)
                self._parted.append(found)
                return found
        elif view is not None and _is_place(view) and self._leaves(view.base):
            return self._view(tensor, view)
        number = self.output(self.trace.value_of(tensor))
        leaf = tensor._requires_grad and tensor._record is None
        if tensor._requires_grad and not leaf:
            self.differentiable[number] = tensor
        like = None if type(tensor) is Tensor else TensorOfClass(type(tensor))
        new = Ref("output", number, leaf=leaf, like=like, version=tensor._version)
        return self._noted(new, tensor)

    def _noted(self, ref: Ref, tensor: Tensor) -> Ref:
        """`ref`; where it is a leaf that the function made, gradients may be asked of it."""
        if ref.leaf:
            self.leaves.append((ref, tensor))
        return ref

    def _view(self, tensor: Tensor, view: View) -> Ref:
        base, history = self.ref(view.base), None
        own = tensor._requires_grad and not follows_its_base(tensor)
        if own and tensor._record is not None:
            history = self.output(self.trace.value_of(tensor))
            self.differentiable[history] = tensor
        leaf = own and history is None
        apart = storage_of(tensor) is not storage_of(view.base)
        kind = type(tensor)
        like = TensorOfClass(kind) if Tensor is not kind or type(view.base) is not Tensor else None
        ref = Ref("view", base, view.steps, view.differentiable, leaf, history, apart, like)
        return self._noted(ref, tensor)

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
            (trace.owner(handle_of(trace, key)), access.was_none)
            for key, access in trace.grads.items()
            if access.read
        ]

    def effects(self) -> Effects:
        trace, found = self.trace, Effects()
        found.differentiates = trace.differentiates
        self._check_hooks()
        found.grads.extend(self._grads)
        for tensor in list(trace.replaced.tensors.values()):
            trace.check_view(tensor)
            found.replaced.append((trace.owner(tensor), self.ref(data(tensor))))
        found.parted = self._parted
        for number, entry in enumerate(trace.inputs):
            if entry.handle is not None:
                self._changes(number, entry, entry.handle, found)
        for key, access in trace.grads.items():
            if access.written:
                self._grad(handle_of(trace, key), found)
        for before in trace.journal.values():
            tensor = before.tensor
            if id(tensor) not in trace.by_handle and not follows_its_base(tensor):
                self._changed_outside(tensor, before, found)
        for use in trace.draws.generators.values():
            counter = self.output(trace.value_of(use.counter)) if use.counts else None
            found.generators.append((use.generator, use.calls, use.seed, counter))
        return found

    def _check_hooks(self) -> None:
        """TraceError for hooks of leaves of the outside that a call would have to add or remove."""
        trace = self.trace
        hooks = [(each.tensor, each.hooks_held) for each in trace.journal.values()]
        for entry in trace.inputs:
            given = trace.arguments.get(id(entry.handle))
            if entry.handle is not None and given is not None:
                hooks.append((entry.handle, given._hooks))
        for tensor, before in hooks:
            now = tensor._hooks or {}
            new = next((now[key] for key in now if key not in (before or {})), None)
            if new is not None and tensor._record is None:
                code = getattr(new, "__code__", None)
                where = f", of {code.co_filename}:{code.co_firstlineno}," if code else ""
                raise TraceError(
                    f"a compiled function leaves a hook{where} at `{trace.name_of(tensor)}`, a "
                    "tensor of the outside, which each call would have to do anew. Register it "
                    "outside of the compiled function, or at a result of an operation, or "
                    "remove() it before the function ends."
                )
            if tensor._record is None and not now.keys() >= (before or {}).keys():
                raise TraceError(
                    f"a compiled function removes a hook of `{trace.name_of(tensor)}`, a tensor of "
                    "the outside, which each call would have to do anew. Remove it outside of the "
                    "compiled function."
                )

    def _grad(self, owner: Tensor, found: Effects) -> None:
        grad = owner._grad
        ref = None if grad is None else self.ref(grad)
        found.grads.append((self.trace.owner(owner), ref))

    def _changes(self, number: int, entry: TraceInput, handle: Tensor, found: Effects) -> None:
        trace = self.trace
        before = trace.journal.get(id(handle))
        storage, node = storage_of(handle), trace.value_of(handle)
        times = storage.version - (0 if before is None else before.version)
        if id(handle) in trace.replaced.tensors:
            written = trace.replaced.written.get(id(handle))
            if times or written is not None:
                output = None if written is None else self.output(written)
                found.writes.append(Write(number, output, times, storage.written))
            self._flag_or_history(entry, handle, node, found)
            return
        changed = times or storage.changes > (0 if before is None else before.changes)
        if changed and not entry.shown:
            output = None if node is entry.node else self.output(node)
            found.writes.append(Write(number, output, times, storage.written))
        self._flag_or_history(entry, handle, node, found)

    def _flag_or_history(
        self, entry: TraceInput, handle: Tensor, node: Node, found: Effects
    ) -> None:
        before = self.trace.journal.get(id(handle))
        if handle._record is not entry.record:
            self._history(entry.source, handle, node, found)
        elif handle._requires_grad is not (entry if before is None else before).requires_grad:
            found.flags.append((entry.source, handle._requires_grad))
            if handle._requires_grad:
                entry.differentiable = handle

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
        if handle._record is None:
            if handle._requires_grad:
                raise TraceError(
                    f"a compiled function calls detach_() and then requires_grad_() of "
                    f"`{self.trace.name_of(handle)}`, a tensor of the outside. Call one of them "
                    "outside of the compiled function."
                )
            found.detached.append(source)
            return
        output = self.output(node)
        self.differentiable[output] = handle
        found.histories.append((source, output))
