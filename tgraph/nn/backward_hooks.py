"""Hooks of modules that see the gradients of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.function import Function
from ..core.state import state
from ..core.tensor import Tensor

Gradients = tuple[Any, ...]


class _Through(Function):
    """Gives tensors as they are, and their gradients through a function."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(each for each in tensors if not each.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return (None, *ctx.seen(grad_outputs))


class BackwardHooks:
    """The hooks of one call of a module.

    Gradients of outputs come first. They are kept until those of the inputs are there, which hooks
    see together with them.
    """

    def __init__(self, module: Any, hooks: Sequence[Any], before: Sequence[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.before = before
        self.grad_outputs: Gradients | None = None
        self.has_inputs = False

    def of_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients the hooks see."""

        def seen(gradients: Gradients) -> Gradients:
            if self.grad_outputs is None:
                return gradients  # they came past the outputs, as second gradients do
            return self._call(gradients)

        passed, self.has_inputs = _passed(args, seen)
        return passed

    def of_outputs(self, result: Any) -> Any:
        """The result of the module, whose gradients the hooks see first."""

        def seen(gradients: Gradients) -> Gradients:
            for hook in self.before:
                given = hook(self.module, gradients)
                if given is not None:
                    gradients = _as_many(given, gradients, "Backward pre hook", "grad_output")
            self.grad_outputs = gradients
            if not self.has_inputs:
                self._call(())
            return gradients

        if isinstance(result, Tensor):
            return _passed((result,), seen)[0][0]
        if not isinstance(result, tuple):
            return result
        passed, _ = _passed(result, seen)
        return passed if type(result) is tuple else type(result)(*passed)

    def _call(self, gradients: Gradients) -> Gradients:
        for hook in self.hooks:
            given = hook(self.module, gradients, self.grad_outputs)
            if given is not None:
                if not self.has_inputs:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
                gradients = _as_many(given, gradients, "Backward hook", "grad_input")
        self.grad_outputs = None
        return gradients


def _as_many(given: Any, gradients: Gradients, kind: str, what: str) -> Gradients:
    found = (given,) if isinstance(given, Tensor) else tuple(given)
    if len(found) != len(gradients):
        raise RuntimeError(
            f"{kind} returned an invalid number of {what}, got {len(found)}, but expected "
            f"{len(gradients)}"
        )
    return found


def _passed(
    values: tuple[Any, ...], seen: Callable[[Gradients], Gradients]
) -> tuple[tuple[Any, ...], bool]:
    """The values, of which gradients of tensors go through `seen`; whether any has one."""
    places = [at for at, each in enumerate(values) if isinstance(each, Tensor)]
    if not state.grad_enabled or not any(values[at].requires_grad for at in places):
        return values, False

    def of_tensors(gradients: Gradients) -> Gradients:
        spread: list[Any] = [None] * len(values)
        for at, gradient in zip(places, gradients):
            spread[at] = gradient
        found = seen(tuple(spread))
        return tuple(found[at] for at in places)

    tensors = _Through.apply(of_tensors, *(values[at] for at in places))
    passed = list(values)
    for at, tensor in zip(places, tensors):
        passed[at] = tensor
    return tuple(passed), True
