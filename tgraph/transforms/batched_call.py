"""Calls with rules of their own on many examples: such a call in the context below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..autograd.custom_call import Cotangents, CustomCall, Forward
from ..autograd.engine import sum_to
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, settled
from ..core.eager_context import constant
from ..core.tensor import Tensor
from .batch_rules import spread

if TYPE_CHECKING:
    from .batching import BatchContext


class BatchedCall(CustomCall):
    """What a call does to examples, which those tensors that are `batched` have in front."""

    def __init__(self, call: CustomCall, context: BatchContext, batched: Sequence[bool]) -> None:
        self.call, self.batched, self.name = call, tuple(batched), call.name
        self._context = type(context), context.size, context.randomness

    def _entered(self) -> BatchContext:
        kind, size, randomness = self._context
        return kind(size, randomness)

    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        context = self._entered()
        with context.entered():
            outputs = self.call.function(self._own(context, tensors))
            return lowered_examples(context, outputs)

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        context = self._entered()
        with context.entered():
            outputs, residuals, rest = self.call.forward(self._own(context, tensors))
            made = lowered_examples(context, outputs)
            return Forward(made, *self._left(context, tensors, residuals, rest))

    def _left(
        self, context: BatchContext, tensors: Sequence[Tensor], residuals: Sequence[Tensor],
        rest: Any,
    ) -> tuple[list[Tensor], Any]:  # fmt: skip
        flags = [context.is_batched(each) for each in residuals]
        below = [context.lowered_tensor(each) for each in residuals]
        # The context itself is kept: what else the backward pass reads may hold tensors of it.
        return below, (context, flags, [each._type for each in tensors], rest)

    def left(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        context = self._entered()
        with context.entered():
            return self._left(context, tensors, *self.call.left(self._own(context, tensors)))

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        context, flags, types, inner = rest
        with context.entered():
            kept = [lifted(context, *pair) for pair in zip(residuals, flags, strict=True)]
            given = [None if each is None else context.batch(each) for each in cotangents]
            found = self.call.backward(kept, inner, given, wanted)
            own = [
                type_.with_shape(type_.shape[1:]) if is_batched else type_
                for type_, is_batched in zip(types, self.batched, strict=True)
            ]
            summed = [
                None if each is None else settled(sum_to(each, type_))
                for each, type_ in zip(found, own, strict=True)
            ]
        return [
            None if each is None else of_input(context, each, is_batched)
            for each, is_batched in zip(summed, self.batched, strict=True)
        ]

    def tangents(
        self, primals: Sequence[Tensor], tangents: Cotangents
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        context = self._entered()
        with context.entered():
            given = [
                None if each is None else lifted(context, each, is_batched)
                for each, is_batched in zip(tangents, self.batched, strict=True)
            ]
            outputs, pushed = self.call.tangents(self._own(context, primals), given)
            below = [
                None if each is None else lowered_examples(context, [each])[0] for each in pushed
            ]
            return lowered_examples(context, outputs), below

    def _own(self, context: BatchContext, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [lifted(context, *pair) for pair in zip(tensors, self.batched, strict=True)]


def lifted(context: BatchContext, below: Tensor, is_batched: bool) -> Tensor:
    return context.batch(below) if is_batched else context.shared(below)


def lowered_examples(context: BatchContext, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What tensors are below, with the examples in front of each."""
    found = []
    for each in map(settled, tensors):
        below = context.lowered_tensor(each)
        with context.lowered():
            found.append(below if context.is_batched(each) else spread(below, context.size))
    return found


def of_input(context: BatchContext, cotangent: Tensor, is_batched: bool) -> Tensor:
    """The cotangent, below, of an operand that is batched or is one for all examples."""
    below, has_examples = context.lowered_tensor(cotangent), context.is_batched(cotangent)
    if is_batched:
        return below if has_examples else spread(below, context.size)
    if has_examples:
        return apply(p.sum_, below, axes=(0,), keepdims=False)
    return apply(p.mul, below, constant(context.size, below.dtype, below.device))
