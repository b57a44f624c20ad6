"""The backward pass: walks records from the last made to the first and adds cotangents up."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same, is_one
from ..core.anomaly import mode as anomaly
from ..core.dispatch import apply, edge_of, settled
from ..core.eager_context import current_context
from ..core.grad_mode import unrecorded
from ..core.inplace import assign
from ..core.record import AFTER, BEFORE, FREED, AroundAccumulation, Keeping, Record
from ..core.sparse_tensor import SparseTensor
from ..core.state import state
from ..core.tensor import Tensor


def sum_to(cotangent: Tensor, wanted: TensorType) -> Tensor:
    """Undo broadcasting: sum `cotangent` to the shape of `wanted` and cast it to its dtype."""
    if cotangent._type is wanted:
        return cotangent
    shape = cotangent._type.shape
    if not are_same(shape, wanted.shape):
        lead = len(shape) - len(wanted.shape)
        axes = tuple(range(lead)) + tuple(
            axis
            for axis, size in enumerate(wanted.shape, lead)
            if is_one(size) and not is_one(shape[axis])
        )
        if axes:
            cotangent = apply(p.sum_, cotangent, axes=axes, keepdims=False)
        if not are_same(cotangent._type.shape, wanted.shape):
            cotangent = apply(p.reshape, cotangent, shape=wanted.shape)
    if cotangent._type.dtype is not wanted.dtype:
        cotangent = apply(p.cast, cotangent, dtype=wanted.dtype)
    return cotangent


def added(found: Tensor, cotangent: Tensor) -> Tensor:
    """The sum of two cotangents; a sparse one is added to a dense one."""
    if type(found) is SparseTensor and type(cotangent) is not SparseTensor:
        found, cotangent = cotangent, found
    return apply(p.add, found, cotangent)


class _Pass:
    """One backward pass: the cotangents that wait at records and leaves."""

    def __init__(
        self, roots: list[Any], asked: dict[Any, Tensor], wanted: set[Any] | None, ends_there: bool
    ) -> None:
        self.roots = roots
        self.wanted = wanted
        self.asked = asked
        self.ends_there = ends_there
        self.captured: dict[Any, Tensor] = {}
        self.heap: list[tuple[int, Record]] = []
        self.waiting: dict[Record, list[Tensor | None]] = {}
        self.leaves: dict[int, Tensor] = {}
        self.at_leaf: dict[int, Tensor] = {}
        # Cotangents that nothing else refers to, which a leaf may keep as they are.
        self.fresh: set[int] = set()
        self.context = current_context()

    @functools.cached_property
    def reached(self) -> set[int]:
        """Which records and leaves run in this pass, by id."""
        found: set[int] = set()
        waiting = [edge[0] for edge in self.roots if edge is not None]
        while waiting:
            target = waiting.pop()
            if id(target) in found:
                continue
            found.add(id(target))
            if isinstance(target, Record):
                waiting += [
                    edge[0] for edge in target.edges
                    if edge is not None and (self.wanted is None or _edge_key(edge) in self.wanted)
                ]  # fmt: skip
        return found

    def deliver(self, target: Any, index: int, cotangent: Tensor, fresh: bool) -> None:
        if self.ends_there and (key := _edge_key((target, index))) in self.asked:
            found = self.captured.get(key)
            self.captured[key] = cotangent if found is None else added(found, cotangent)
        elif isinstance(target, Record):
            self._deliver_to_record(target, index, cotangent)
        else:
            self._deliver_to_leaf(target, cotangent, fresh)

    def _deliver_to_record(self, target: Record, index: int, cotangent: Tensor) -> None:
        if type(cotangent) is SparseTensor:  # rules are for plain tensors
            cotangent = cotangent.to_dense()
        slots = self.waiting.get(target)
        if slots is None:
            slots = self.waiting[target] = [None] * len(target.outputs)
            heapq.heappush(self.heap, (-target.order, target))
        found = slots[index]
        slots[index] = cotangent if found is None else apply(p.add, found, cotangent)

    def _deliver_to_leaf(self, leaf: Tensor, cotangent: Tensor, fresh: bool) -> None:
        key = id(leaf)
        found = self.at_leaf.get(key)
        if found is None:
            self.leaves[key] = leaf
        else:
            cotangent, fresh = added(found, cotangent), True
        self.at_leaf[key] = cotangent
        if fresh and cotangent._view is None:
            self.fresh.add(key)
        else:
            self.fresh.discard(key)

    def step(self, retain_graph: bool) -> None:
        """Run the last made of the waiting records."""
        wanted = self.wanted
        _, record = heapq.heappop(self.heap)
        incoming = run_hooks(record, self.waiting.pop(record))
        if self.asked:
            for index, cotangent in enumerate(incoming):
                if cotangent is not None and (id(record), index) in self.asked:
                    self.captured[id(record), index] = cotangent
        edges = record.edges
        if wanted is None:
            mask = [edge is not None for edge in edges]
        else:
            mask = [edge is not None and _edge_key(edge) in wanted for edge in edges]
        if True not in mask:
            return
        if record.freed:
            raise RuntimeError(FREED.format(name=record.name(), site=record.site))
        self.context.backward_of(record.site)
        if record.region is not None:
            record.region.arrived(incoming)
        outgoing = record.cotangents(incoming, mask)
        if record.hooks is not None and AFTER in record.hooks:
            outgoing = _after(record.hooks[AFTER], outgoing, incoming)
        if anomaly.enabled and anomaly.check_nan:
            _check_nan(record, outgoing)
        if not retain_graph:
            record.free()
        known: list[Tensor | None] | None = None  # tensors that others than one leaf may hold
        for edge, given in zip(edges, outgoing, strict=True):
            if edge is None or given is None:
                continue
            target, index = edge
            if isinstance(target, Record):
                type_, fresh = target.outputs[index], False
            else:
                type_, fresh = target._type, record.makes_fresh
            cotangent = given if given._type is type_ else sum_to(given, type_)
            if fresh and cotangent is given:
                known = known or [*incoming, *outgoing]
                fresh = sum(each is given for each in known) == 1
            self.deliver(target, index, cotangent, fresh)


class AfterAccumulation:
    """A hook among those of a leaf that runs when its `.grad` is complete."""

    __slots__ = ("hook",)

    def __init__(self, hook: Any) -> None:
        self.hook = hook


def run_hooks(record: Record, incoming: list[Tensor | None]) -> list[Tensor | None]:
    """Let the hooks of a record's outputs see, and replace, their complete cotangents."""
    if record.hooks is None:
        return incoming
    for index, hooks in record.hooks.items():
        if isinstance(index, int):
            incoming[index] = _hooked(incoming[index], hooks)
    if BEFORE in record.hooks:
        given = tuple(incoming)
        for hook in list(record.hooks[BEFORE].values()):
            given = _replaced(hook(given), given, hook)
        incoming = list(given)
    return incoming


def _after(
    hooks: dict[int, Any], outgoing: Sequence[Tensor | None], incoming: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    """Let the hooks of a record see, and replace, what it computed of what."""
    found, given = tuple(outgoing), tuple(incoming)
    for hook in list(hooks.values()):
        found = _replaced(hook(found, given), found, hook)
    return found


def _replaced(
    returned: Any, before: tuple[Tensor | None, ...], hook: Any
) -> tuple[Tensor | None, ...]:
    """What a hook of a record returned, if it can stand for all cotangents."""
    if returned is None:
        return before
    if not isinstance(returned, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(returned).__name__}'")
    if len(returned) != len(before):
        raise RuntimeError(
            f"hook '{_name_of(hook)}' has returned an incorrect number of values (got "
            f"{len(returned)}, but expected {len(before)})"
        )
    return tuple(
        new if new is None or old is None else _replacement(new, old, hook)
        for new, old in zip(returned, before)
    )


def _hooked(cotangent: Tensor | None, hooks: dict[int, Any]) -> Tensor | None:
    if cotangent is None:
        return None
    for hook in sorted(hooks.values(), key=lambda each: type(each) is Keeping):  # which is last
        if isinstance(hook, (AfterAccumulation, AroundAccumulation)):
            continue
        replaced = hook(cotangent)
        if replaced is not None:
            cotangent = _replacement(replaced, cotangent, hook)
    return cotangent


def _replacement(replaced: Any, cotangent: Tensor, hook: Any) -> Tensor:
    """What a hook returned, if it can stand for the gradient that it was given."""
    name = _name_of(hook)
    if not isinstance(replaced, Tensor):
        raise TypeError(
            f"hook '{name}' must return a Tensor or None, not {type(replaced).__name__}"
        )
    if replaced._type != cotangent._type:
        what = "size" if replaced._type.shape != cotangent._type.shape else "type"
        raise RuntimeError(
            f"hook '{name}' has changed the {what} of value: {cotangent._type} to {replaced._type}"
        )
    return replaced


def _name_of(hook: Any) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def _check_nan(record: Record, outgoing: Sequence[Tensor | None]) -> None:
    """An error where a cotangent has a NaN, as far as its numbers are known."""
    context = current_context()
    with unrecorded():
        for index, each in enumerate(outgoing):
            if each is None or not each._type.dtype.is_differentiable:
                continue
            axes = tuple(range(len(each._type.shape)))
            if context.is_any(apply(p.any_, apply(p.ne, each, each), axes=axes, keepdims=False)):
                raise RuntimeError(
                    f"Function '{record.name()}' returned nan values in its {index}th output. It "
                    f"is the gradient of the operation recorded at {record.site}."
                )


def _edge_key(edge: tuple[Any, int]) -> Any:
    target, index = edge
    return (id(target), index) if isinstance(target, Record) else id(target)


def _paths_to(roots: Sequence[Any], targets: set[Any] | None) -> set[Any]:
    """Keys of the edges from which a target can be reached, the targets' own included.

    None for all leaves, edges to which are taken for targets.
    """
    records: dict[int, Record] = {}
    stack = [edge[0] for edge in roots if isinstance(edge[0], Record)]
    while stack:
        record = stack.pop()
        if id(record) not in records:
            records[id(record)] = record
            for edge in record.edges:
                if edge is not None and isinstance(edge[0], Record):
                    stack.append(edge[0])
    reached = set(targets or ())
    if targets is None:
        edges = [edge for each in records.values() for edge in each.edges if edge is not None]
        reached.update(id(target) for target, _ in edges if isinstance(target, Tensor))
    for record in sorted(records.values(), key=lambda each: each.order):
        for edge in record.edges:
            if edge is not None and _edge_key(edge) in reached:
                reached.update([(id(record), index) for index in range(len(record.outputs))])
                break
    return reached


def run_backward(
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None,
    accumulate: bool,
    ends_there: bool = False,
) -> list[Tensor | None]:
    """Propagate `cotangents` from `outputs`.

    With `accumulate`, adds to `.grad` of the leaves (of `inputs` only, where given); without,
    returns the cotangents of `inputs`, None for those that were not reached. With `ends_there`
    that is what arrives at them, before their hooks, and goes no further to others of them: it is
    the part of a larger pass.
    """
    roots = [edge_of(settled(output)) for output in outputs]
    asked = {_edge_key(_asked_edge(each)): each for each in inputs or ()}
    is_kept = current_context().builds_graph
    wanted = None
    if inputs is not None or is_kept:
        targets = None if inputs is None else set(asked)
        wanted = _paths_to([r for r in roots if r], targets)
    running = _Pass(roots, asked, wanted, ends_there)
    outer, state.backward_pass = state.backward_pass, running
    captured = running.captured
    previous, state.grad_enabled = state.grad_enabled, create_graph
    casting, state.autocast = state.autocast, None  # gradients have the types of what was computed
    try:
        for root, cotangent in zip(roots, cotangents, strict=True):
            if root is not None:
                running.deliver(root[0], root[1], cotangent, fresh=False)
        while running.heap:
            running.step(retain_graph or is_kept)
        for key, leaf in running.leaves.items():
            if inputs is not None and key not in asked:
                continue
            arrived = _hooked(running.at_leaf[key], leaf._hooks or {})
            assert arrived is not None
            captured[key] = arrived
            if accumulate and leaf._requires_grad:
                arrived = _around(leaf, arrived, BEFORE)
                _accumulate(leaf, arrived, key in running.fresh and not leaf._hooks, create_graph)
                for each in list((leaf._hooks or {}).values()):
                    if isinstance(each, AfterAccumulation):
                        each.hook(leaf)
                _around(leaf, arrived, AFTER)
        if accumulate:
            _accumulate_inner(asked, captured, create_graph)
    finally:
        state.grad_enabled, state.autocast = previous, casting
        state.backward_pass = outer
        current_context().backward_of(None)
    return [captured.get(_edge_key(_asked_edge(each))) for each in inputs or ()]


def _around(leaf: Tensor, arrived: Tensor, when: str) -> Tensor:
    """Run the hooks of the node of a leaf; those before it may replace the gradient."""
    for each in list((leaf._hooks or {}).values()):
        if isinstance(each, AroundAccumulation) and each.when == when:
            if when == BEFORE:
                (arrived,) = _replaced(each.hook((arrived,)), (arrived,), each.hook)  # type: ignore[assignment]
            else:
                _replaced(each.hook((), (arrived,)), (), each.hook)
    return arrived


def _asked_edge(tensor: Tensor) -> tuple[Any, int]:
    return edge_of(settled(tensor)) or (tensor, 0)


def _accumulate_inner(
    asked: dict[Any, Tensor], captured: dict[Any, Tensor], create_graph: bool
) -> None:
    """`backward(inputs=...)` also fills `.grad` of tensors that are no leaves."""
    for key, tensor in asked.items():
        if isinstance(key, tuple) and key in captured:
            _accumulate(tensor, captured[key], False, create_graph)


def _accumulate(leaf: Tensor, cotangent: Tensor, fresh: bool, create_graph: bool) -> None:
    context = current_context()
    grad = context.read_grad(leaf)
    if grad is None:
        context.write_grad(leaf, cotangent if fresh else apply(p.copy, cotangent))
    elif create_graph or (type(grad) is SparseTensor and type(cotangent) is not SparseTensor):
        context.write_grad(leaf, added(grad, cotangent))
    elif grad._type is cotangent._type and type(grad) is not SparseTensor:
        assign(grad, added(grad, cotangent), "add_")
    else:
        grad.add_(cotangent)
