"""One compiled plan of a function: what it holds for, and how it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..compiler.ir import Node, TensorType, effect_of, promotion
from ..core.dispatch import settled
from ..core.overlap import origin_of
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import Source
from ..runtime.cuda.precision import get_precision
from ..runtime.device import defaults
from ..tracing.recorded_call import Call
from ..tracing.recording.attributes import EVERY
from ..tracing.recording.guards import GONE, Guard, brief, same_static
from ..tracing.recording.places import Place, moved
from ..tracing.recording.snapshots import ABSENT
from .call_helpers import overlap, root_of
from .call_writer import CallWriter
from .graph_function import GraphFunction

# Inside of this package, so that its lines never pass for the user's.
_GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<compiled call>")


_NO_AXES: Mapping[int, str] = MappingProxyType({})


class Described:
    """What a plan depends on of a tensor. Equal descriptions fit the same plan.

    `axes` may have any size: in the shape stand their names.
    """

    def __init__(self, tensor: Tensor, axes: Mapping[int, str] = _NO_AXES) -> None:
        array = tensor._value
        self.class_ = type(tensor)
        self.axes = axes
        self.type: Any = tensor._type
        if axes:
            shape = tuple(axes.get(axis, size) for axis, size in enumerate(tensor._type.shape))
            self.type = tensor._type.with_shape(shape)  # type: ignore[arg-type]
        self.requires_grad = tensor._requires_grad
        self.is_leaf = tensor._record is None
        self.is_view = tensor._view is not None
        self.hooks = dict(tensor._hooks or {})
        dense = array.flags.c_contiguous
        self.strides = None if dense else tuple(s // array.itemsize for s in array.strides)

    def _key(self) -> Any:
        return (self.class_, self.type, self.requires_grad, self.is_leaf, self.strides, self.hooks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Described) and self._key() == other._key()

    def __str__(self) -> str:
        text = str(self.type)
        if self.class_ is not Tensor:
            text = f"{self.class_.__name__} {text}"
        if self.strides is not None:
            text += f" with strides {self.strides}"
        if not self.requires_grad:
            return text
        text += " requiring grad" if self.is_leaf else " with a history"
        return text + (" and hooks" if self.hooks else "")

    def distance(self, tensor: Tensor) -> int:
        """In how many things `tensor` differs; shape and dtype matter most."""
        now = Described(tensor, self.axes)
        pairs = zip(self._key(), now._key(), strict=True)
        types = zip(self.type, now.type, strict=True)
        return sum(a != b for a, b in pairs) + 2 * sum(a != b for a, b in types)

    def reason(self, name: str, tensor: Tensor) -> str | None:
        """Why `tensor` does not fit, or None."""
        now = Described(tensor, self.axes)
        if now.type.shape != self.type.shape:
            return f"new shape of argument `{name}`: {self.type} -> {now.type}"
        if now.type.dtype is not self.type.dtype:
            return f"new dtype of argument `{name}`: {self.type} -> {now.type}"
        if now.type.device != self.type.device:
            return f"new device of argument `{name}`: {self.type} -> {now.type}"
        return None if now == self else f"argument `{name}` changed: {self} -> {now}"


def _owner(source: Source, leaves: Sequence[Any]) -> Tensor:
    """The tensor whose gradient is meant."""
    owner: Tensor = leaves[source.key] if source.kind == "argument" else source.key
    return owner


def _described_gradient(
    owner: Source, leaves: Sequence[Any], axes: Mapping[int, Mapping[int, str]]
) -> Described | None:
    grad = _owner(owner, leaves)._grad
    if grad is None:
        return None
    return Described(grad, axes.get(owner.key, _NO_AXES) if owner.kind == "argument" else _NO_AXES)


class CompiledCall:
    """A recorded call made ready to be repeated.

    `run(leaves, given)` is the hot path: it returns MISS where the plan does not fit.
    `why_not(leaves)` says in words what does not fit. `places` are read at each call as if what
    lies there were arguments. `axes`, by the positions of arguments, are of open size: `why_not`
    passes over it, as it is asked for all plans of an OpenCall. `types` are those of arguments
    whose sizes are not those of the leaves at hand, as they are open. `same_as` tells for each
    leaf of the traced call where it came first; at hand may be those of another call.
    """

    def __init__(
        self,
        call: Call,
        leaves: Sequence[Any],
        names: Sequence[str],
        numbers: frozenset[int],
        places: Sequence[Place],
        function: GraphFunction,
        guards: Sequence[Guard],
        environment: dict[str, Any],
        eager: Callable[[Sequence[Any], Any], Any],
        reason: str,
        same_as: Sequence[int],
        axes: Mapping[int, Mapping[int, str]],
        types: Mapping[int, TensorType],
    ) -> None:
        self.call, self.function, self.reason = call, function, reason
        self.names, self.numbers, self.places = list(names), numbers, list(places)
        leaves = self.with_places(leaves)
        self.guards, self.environment = list(guards), environment
        self.grad_mode, self.default_dtype = state.grad_enabled, promotion.default_dtype
        self.default_device, self.autocast = defaults.device, state.autocast
        self.matmul_precision = get_precision()
        self._same_as = list(same_as)
        self._leaves = [
            Described(leaf, axes.get(at, _NO_AXES)) if isinstance(leaf, Tensor) else leaf
            for at, leaf in enumerate(leaves)
        ]
        self._tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self._gradients = [_described_gradient(owner, leaves, axes) for owner, _ in call.grads_read]
        self._eager = eager
        writer = CallWriter(
            call, leaves, numbers, self.places, function, guards, environment, eager, types,
            same_as,
        )  # fmt: skip
        self.source = writer.write()
        self.namespace, self._roots = writer.namespace, writer.fixed_roots
        self.own_names = writer.own_names
        self._captured = [(each, Described(each)) for each in writer.captured]
        self._views = [(each, Described(each)) for each in call.trace.views]
        if call.effects.replaced:
            self.namespace["rebind"] = self.rebind
        exec(compile(self.source, _GENERATED, "exec"), self.namespace)
        self.generated: Callable[..., Any] = self.namespace["run"]
        self.run = self._choose_run()

    def _choose_run(self) -> Callable[..., Any]:
        """Eager, if captured tensors that are written share memory unknown to each other."""
        return self._run_eagerly if self._overlaps() else self.generated

    def _overlaps(self) -> bool:
        inputs = self.call.inputs
        written = {write.input for write in self.call.effects.writes if write.output is not None}
        arrays: tuple[list[Any], list[Any]] = ([], [])
        for at, entry in enumerate(inputs):
            if entry.source.kind == "captured" and not entry.shown:
                arrays[0 if at in written else 1].append(entry.source.key._value)
        return overlap(*arrays)

    @property
    def seconds(self) -> tuple[float, float]:
        """How long the compiler took for the plan that calls run."""
        found: tuple[float, float] = self.function.executable.seconds
        return found

    def _run_eagerly(self, leaves: Sequence[Any], given: Any = None) -> Any:
        return self._eager(leaves, given)

    @property
    def effectful_call(self) -> Node | None:
        """A host call, in the function or its gradients, that must not run again."""
        function = self.function
        graphs = [self.call.graph, *([function.joint] if function.differentiable else [])]
        nodes = (node for graph in graphs for each in graph.whole for node in each.nodes)
        return next((node for node in nodes if effect_of(node) != "pure"), None)

    def at(self, leaves: Sequence[Any]) -> CompiledCall:
        """The plan for a call that fits: it is this one. An OpenCall has several."""
        return self

    def with_places(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves, followed by what lies in the places."""
        return [*leaves, *(place.now() for place in self.places)]

    # --- when it does not fit ---

    def why_not(self, leaves: Sequence[Any]) -> str | None:
        """The first thing about a call that the plan does not fit; None where it fits."""
        return next((why for _, why in self.differences(leaves)), None)

    def distance(self, leaves: Sequence[Any]) -> int:
        """How much a call differs from those that the plan fits: 0 where it fits."""
        return sum(weight for weight, _ in self.differences(leaves))

    def differences(self, leaves: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """What about a call the plan does not fit: how much it matters, and in words."""
        leaves = self.with_places(leaves)
        for position, leaf in enumerate(leaves):
            reason = self._argument_reason(position, leaf, leaves)
            if reason is not None:
                before = self._leaves[position]
                both = isinstance(before, Described) and isinstance(leaf, Tensor)
                yield before.distance(leaf) if both else 1, reason
        tensors_fit = all(isinstance(leaves[at], Tensor) for at in self._tensors)
        for reason in (
            self._mode_reason(),
            self._captured_reason(),
            self._gradient_reason(leaves) if tensors_fit else None,
            self._guard_reason(),
        ):
            if reason is not None:
                yield 1, reason

    def _argument_reason(self, position: int, leaf: Any, leaves: Sequence[Any]) -> str | None:
        before, name = self._leaves[position], self.names[position]
        if leaf is GONE:
            return f"`{name}` is gone"
        if position in self.numbers:
            kind = type(before)
            same = type(leaf) is kind
            return None if same else f"`{name}` is no {kind.__name__} any more: {brief(leaf)}"
        if not isinstance(before, Described):
            if same_static(before, leaf):
                return None
            return f"static value `{name}` changed: {brief(before)} -> {brief(leaf)}"
        if not isinstance(leaf, Tensor):
            return f"argument `{name}` is no tensor any more: {brief(leaf)}"
        reason = before.reason(name, settled(leaf)) or self._attribute_reason(position, leaf)
        origin = self.call.origins.get(position)
        if reason is None and origin is not None and origin_of(leaf) != origin:
            return f"`{name}` lies elsewhere in memory: {origin} -> {origin_of(leaf)}"
        return reason or self._identity_reason(position, leaves)

    def _attribute_reason(self, position: int, leaf: Tensor) -> str | None:
        for attribute, read in self.call.attributes.get(position, {}).items():
            if attribute == EVERY:
                if leaf.__dict__:
                    return f"`{self.names[position]}` has attributes now: {[*leaf.__dict__]}"
                continue
            now = leaf.__dict__.get(attribute, ABSENT)
            if not same_static(read, now):
                path = f"{self.names[position]}.{attribute}"
                return f"`{path}` changed: {brief(read)} -> {brief(now)}"
        return None

    def _identity_reason(self, position: int, leaves: Sequence[Any]) -> str | None:
        name, same = self.names[position], self._same_as[position]
        if leaves[same] is not leaves[position]:
            return f"arguments `{self.names[same]}` and `{name}` are no longer one tensor"
        for (one, other), held in self.call.compared.items():
            another = leaves[other] if isinstance(other, int) else other
            if one == position and (leaves[position] is another) is not held:
                return f"whether `{name}` is a certain other tensor changed"
        inputs = self.call.inputs
        writes = self.call.effects.writes
        written = any(inputs[write.input].source.kind == "argument" for write in writes)
        if not written and not self.call.by_identity:
            return None
        for other in range(position):
            if leaves[other] is leaves[position] and self._same_as[other] != same:
                return f"arguments `{self.names[other]}` and `{name}` are one tensor now"
        return None

    def _mode_reason(self) -> str | None:
        if state.grad_enabled is not self.grad_mode:
            return f"gradient mode changed: {self.grad_mode} -> {state.grad_enabled}"
        if state.autocast is not self.autocast:
            return f"autocast changed: {self.autocast} -> {state.autocast}"
        if promotion.default_dtype is not self.default_dtype:
            return f"default dtype changed: {self.default_dtype} -> {promotion.default_dtype}"
        if defaults.device != self.default_device:
            return f"default device changed: {self.default_device} -> {defaults.device}"
        if "matmul_precision()" in self.source and get_precision() != self.matmul_precision:
            return f"matmul precision changed: {self.matmul_precision} -> {get_precision()}"
        return None

    def _captured_reason(self) -> str | None:
        for tensor, before in [*self._captured, *self._views]:
            now = Described(settled(tensor))
            is_view = tensor._view is not None
            if now != before or is_view != before.is_view:
                name = self.call.trace.names.get(id(tensor), "captured")
                return f"captured tensor `{name}` changed: {before} -> {now}"
        return None

    def _gradient_reason(self, leaves: Sequence[Any]) -> str | None:
        """Gradients that are there, or not, other than when the function was traced."""
        for (owner, was_none), before in zip(self.call.grads_read, self._gradients, strict=True):
            grad, name = _owner(owner, leaves)._grad, f"`{self._name(owner)}.grad`"
            if (grad is None) is not was_none:
                had, has = ("no", "a") if was_none else ("a", "no")
                return f"{name}: there was {had} gradient, now there is {has}"
            if grad is not None and before is not None and Described(grad, before.axes) != before:
                return f"{name} changed: {before} -> {Described(grad, before.axes)}"
        return None

    def _name(self, owner: Source) -> str:
        if owner.kind == "argument":
            return self.names[owner.key]
        return self.call.trace.names.get(id(owner.key), "captured")

    def _guard_reason(self) -> str | None:
        for guard in self.guards:
            if not guard.holds(self.environment):
                return guard.reason(self.environment)
        for source, value, name in self.call.trace.static_reads:
            if source.key() != value:
                return f"{name} changed: {brief(value)} -> {brief(source.key())}"
        return None

    def moved_numbers(self, leaves: Sequence[Any]) -> list[int]:
        """Positions of numbers that were fixed in this plan and differ now."""
        return [
            position
            for position, (before, leaf) in enumerate(zip(self._leaves, leaves))
            if position not in self.numbers and moved(before, leaf)
        ]

    def rebind(self) -> bool:
        """Take over the new memory of captured tensors; whether any had new memory."""
        changed = False
        for number, (tensor, _) in enumerate(self._captured):
            if self.namespace[f"A{number}"] is not tensor._value:
                self.namespace[f"A{number}"] = tensor._value
                changed = True
        if changed:
            self._roots.clear()
            roots = [root_of(tensor._value) for tensor, _ in self._captured]
            self._roots.update((id(root), root) for root in roots)
            self.run = self._choose_run()
        return changed
