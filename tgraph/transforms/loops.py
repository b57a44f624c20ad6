"""Loops that end by values which nobody knows yet: loops of a trace that lies below.

Their state is what that of the loop is made of, and so their bodies are what the bodies of the loop
do to it. Examples go on until all are done; those that are done keep the state that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..autograd.transforms import ends_since
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, edge_of, settled, zeros_of
from ..core.provenance import user_site
from ..core.record import Edge, Record, next_order
from ..core.state import state
from ..core.tensor import Tensor
from ..ops.loops import while_loop
from .batch_rules import spread
from .batched_call import lifted

if TYPE_CHECKING:
    from .batching import BatchContext
    from .forward import JvpContext

Decide = Callable[..., Tensor]
Advance = Callable[..., Sequence[Tensor]]


class MoreExamples(Exception):
    """A turn made tensors of the state batched that were none: `flags` tells all that are.

    `context` is that whose turn it was, of several that lie over each other.
    """

    def __init__(self, context: BatchContext, flags: list[bool]) -> None:
        self.context, self.flags = context, flags


class LoopRecord(Record):
    """A loop over what lies below, which keeps no states here, and so has no gradient."""

    __slots__ = ()

    def name(self) -> str:
        return "WhileLoopBackward"

    def cotangents(self, incoming: Any, wanted: Sequence[bool]) -> NoReturn:
        raise NotImplementedError(
            f"while_loop, at {self.site}: inside of vmap or jvp, as in vmap(grad(f)) or "
            "hessian(f), there is no gradient of a compiled loop whose number of turns is not "
            "known; pass max_iterations, or use fori_loop with Python ints or scan, or detach "
            "what it reads"
        )


def any_example(context: BatchContext, decision: Tensor) -> Tensor:
    """A single bool below: whether it is true of any example."""
    below = context.lowered_tensor(settled(decision))
    if not context.is_batched(decision):
        return below
    return apply(p.any_, below, axes=(0,), keepdims=False)


def batched_loop(
    context: BatchContext, decide: Decide, advance: Advance, carried: Sequence[Tensor],
    flags: Sequence[bool],
) -> list[Tensor]:  # fmt: skip
    """The last state of examples, of which each has its own of those that are flagged."""
    first, captured = next_order(), list[Edge]()

    def own(below: Sequence[Tensor]) -> list[Tensor]:
        return [lifted(context, *pair) for pair in zip(below, flags, strict=True)]

    def goes_on(*below: Tensor) -> Tensor:
        with context.entered():
            decision = settled(decide(*own(below)))
            with context.lowered():
                return any_example(context, decision)

    def turn(*below: Tensor) -> tuple[Tensor, ...]:
        with context.entered():
            before = own(below)
            decision = settled(decide(*before))
            after = [settled(each) for each in advance(*before)]
            captured.extend(ends_since(first, after))
            if context.is_batched(decision):
                after = [apply(p.where, decision, *pair) for pair in zip(after, before)]
            found = [context.is_batched(each) or flag for each, flag in zip(after, flags)]
            if found != list(flags):
                raise MoreExamples(context, found)
            return tuple(_of_all(context, each, flag) for each, flag in zip(after, flags))

    with context.lowered():
        found = while_loop(
            goes_on, turn, tuple(map(_of_all, [context] * len(flags), carried, flags))
        )
    results = own(found)
    return _without_gradient([*map(edge_of, carried), *captured], results)


def _of_all(context: BatchContext, tensor: Tensor, is_batched: bool) -> Tensor:
    below = context.lowered_tensor(settled(tensor))
    if not is_batched or context.is_batched(tensor):
        return below
    with context.lowered():
        return spread(below, context.size)


def dual_loop(
    context: JvpContext, decide: Decide, advance: Advance, carried: Sequence[Tensor]
) -> list[Tensor]:
    """The last state and its tangents; all floats have some."""
    first, captured = next_order(), list[Edge]()
    count = len(carried)
    smooth = [each._type.dtype.is_differentiable for each in carried]

    def own(below: Sequence[Tensor]) -> list[Tensor]:
        tangents = iter(below[count:])
        return [
            context.dual(each, next(tangents) if is_smooth else None)
            for each, is_smooth in zip(below, smooth)
        ]

    def pairs(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        parts = [context.parts(each) for each in tensors]
        with context.lowered():
            tangents = [
                zeros_of(primal._type) if tangent is None else tangent
                for (primal, tangent), is_smooth in zip(parts, smooth)
                if is_smooth
            ]
        return (*(primal for primal, _ in parts), *tangents)

    def goes_on(*below: Tensor) -> Tensor:
        with context.entered():
            return context.parts(decide(*own(below)))[0]

    def turn(*below: Tensor) -> tuple[Tensor, ...]:
        with context.entered():
            after = [settled(each) for each in advance(*own(below))]
            captured.extend(ends_since(first, after))
            return pairs(after)

    begin = pairs(carried)
    with context.lowered():
        found = while_loop(goes_on, turn, begin)
    return _without_gradient([*map(edge_of, carried), *captured], own(found))


def _without_gradient(sources: Sequence[Edge], results: list[Tensor]) -> list[Tensor]:
    """Results that have a history, which cannot be gone back, where what they are made of has."""
    edges = tuple(edge for edge in sources if edge is not None)
    if not edges or not state.grad_enabled:
        return results
    record = LoopRecord(edges, tuple(each._type for each in results), user_site())
    for at, each in enumerate(results):
        if each._type.dtype.is_differentiable:
            each._record, each._index, each._requires_grad = record, at, True
    return results
