"""Calls of functions that bring their own rule of differentiation, in any context.

A `CustomCall` is one call: what it computes, what its forward pass leaves for the backward pass
(the *residuals*), and its rules. Where a gradient is recorded, it is one record, a `CustomRecord`.
A lifted context makes of a call one of the context below: batched examples are again such a call,
so that gradients asked outside go through the same rules.

Second gradients differentiate the rule itself, as a function of cotangents and residuals. So these
are computed again from the inputs then, recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply, edge_of, settled, unpack, without_history, without_record
from ..core.eager_context import current_context
from ..core.provenance import user_site
from ..core.record import Record, Saved
from ..core.saved_tensors import pack_saved, packs
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple
from .transposing import transposed

Cotangents = Sequence[Tensor | None]


class Forward(NamedTuple):
    """What a forward pass gives: outputs, residuals, and what else the backward pass reads."""

    outputs: list[Tensor]
    residuals: list[Tensor]
    rest: Any


class CustomCall:
    """One call of a function with a rule of its own."""

    name: str

    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, where no gradient is asked."""
        return self.forward(tensors).outputs

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        raise NotImplementedError

    def left(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        """What the forward pass leaves for the backward pass: residuals, and what else it reads."""
        made = self.forward(tensors)
        return made.residuals, made.rest

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """A cotangent, or None, for each of the tensors."""
        raise NotImplementedError

    def tangents(
        self, primals: Sequence[Tensor], tangents: Cotangents
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """Outputs and their tangents; here those that follow from `backward`, by transposing it."""
        made = self.forward(primals)
        wanted = [each is not None for each in tangents]

        def pull(cotangents: Cotangents) -> list[Tensor | None]:
            return self.backward(made.residuals, made.rest, cotangents, wanted)

        known = [*primals, *made.residuals]
        found = transposed(pull, made.outputs, tangents, known)
        is_recorded = state.grad_enabled and any(each._requires_grad for each in primals)
        return call_custom(self, primals) if is_recorded else made.outputs, found


class CustomRecord(Record):
    """A call that is differentiated by its own rule; residuals are found when first asked for,
    where the forward pass ran in a context below."""

    __slots__ = ("call", "inputs", "residuals", "rest")

    makes_fresh = False

    def __init__(
        self, call: CustomCall, tensors: Sequence[Tensor], outputs: Sequence[Tensor],
        made: Forward | None,
    ) -> None:  # fmt: skip
        edges = tuple(map(edge_of, tensors))
        super().__init__(edges, tuple(each._type for each in outputs), user_site())
        self.call = call
        self.inputs: list[Saved] | None = list(map(Saved, tensors))
        self.residuals = None if made is None else list(map(Saved, made.residuals))
        self.rest = None if made is None else made.rest
        if state.saved_hooks is not None and (hooks := packs()) is not None:
            for saved in self.saved_values():
                pack_saved(saved, hooks)

    def name(self) -> str:
        return f"{self.call.name}Backward"

    def cotangents(self, incoming: list[Tensor | None], wanted: Sequence[bool]) -> Cotangents:
        if self.residuals is not None and not state.grad_enabled:
            residuals, rest = [unpack(each, self) for each in self.residuals], self.rest
        else:
            residuals, rest = self.call.left(self.given())
        return self.call.backward(residuals, rest, incoming, wanted)

    def given(self) -> list[Tensor]:
        """What the function was called with."""
        assert self.inputs is not None
        return [settled(unpack(each, self)) for each in self.inputs]

    def saved_values(self) -> list[Saved]:
        return [*(self.inputs or ()), *(self.residuals or ())]

    def free(self) -> None:
        self.freed = True
        self.inputs = self.residuals = self.rest = None


def call_custom(call: CustomCall, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of a call in the current context, recorded where a gradient may be asked."""
    context = current_context()
    if context.lifts:
        found: list[Tensor] = context.custom(call, tensors)
        return found
    return run_recorded(call, tensors)


def run_recorded(call: CustomCall, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The call as operations of the current context, and as one record of it."""
    recording = _is_recorded(tensors)
    given = [without_record(settled(each)) for each in tensors]
    made = call.forward(given) if recording else Forward(call.function(given), [], None)
    _check_outputs(call, made.outputs)
    own = {id(each) for each in given}
    outputs = [own_handle(each, id(each) in own) for each in made.outputs]
    if recording:
        attach_custom(call, tensors, outputs, made)
    return outputs


def _is_recorded(tensors: Sequence[Tensor]) -> bool:
    return state.grad_enabled and any(settled(each)._requires_grad for each in tensors)


def _check_outputs(call: CustomCall, outputs: Sequence[Tensor]) -> None:
    """No gradient is lost: the rule knows of arguments only, all of which are constants here."""
    if any(settled(each)._requires_grad for each in outputs):
        raise RuntimeError(
            f"{call.name}, at {user_site()}, reads a tensor that requires grad and is none of its "
            "arguments, of which its rule knows nothing. Pass it as an argument, or "
            "stop_gradient() it."
        )


def own_handle(output: Tensor, is_input: bool = False) -> Tensor:
    """A handle of an output that nobody else has, and memory that shows no other's."""
    if is_input or output._view is not None:
        return apply(p.copy, output)
    twin = without_history(output)
    twin._view = None
    return twin


def attach_custom(
    call: CustomCall, tensors: Sequence[Tensor], outputs: Sequence[Tensor], made: Forward | None
) -> None:
    """Record that `call` made `outputs` of `tensors`, where a gradient of them may be asked."""
    if not _is_recorded(tensors):
        return
    record = CustomRecord(call, tensors, outputs, made)
    for at, each in enumerate(outputs):
        if each._type.dtype.is_differentiable:
            each._record, each._index, each._requires_grad = record, at, True
