"""Helpers over the gradients and values of many parameters at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.concatenation import cat, stack
from ...ops.creation import tensor as make_tensor
from ...ops.elementwise import clamp
from ...ops.reductions import amax, norm

Tensors = Tensor | Iterable[Tensor]


def _gradients(parameters: Tensors) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [each.grad for each in given if each.grad is not None]


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients so that their norm, as of one long vector, is at most `max_norm`.

    Returns the norm before. Works in compiled functions, but for `error_if_nonfinite`, which
    looks at the value.

    >>> import tgraph as tg
    >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
    >>> (0.5 * x * x).sum().backward()
    >>> tg.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return make_tensor(0.0)
    norms = stack([_norm(each, float(norm_type)) for each in gradients])
    total = _norm(norms, float(norm_type))
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    factor = clamp(max_norm / (total + 1e-6), max=1.0)
    for each in gradients:
        each.mul_(factor)
    return total


def _norm(x: Tensor, order: float) -> Tensor:
    return amax(x.abs()) if order == float("inf") else norm(x, order)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float) -> None:
    """Limit every element of every gradient to [-clip_value, clip_value]."""
    for each in _gradients(parameters):
        each.copy_(clamp(each, -clip_value, clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters as one vector."""
    return cat([each.reshape(-1) for each in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of `vec` into the parameters, in their order."""
    given = list(parameters)
    wanted = sum(each.numel() for each in given)
    if vec.ndim != 1 or vec.numel() != wanted:
        raise RuntimeError(
            f"vector_to_parameters(): expected a vector of {wanted} elements, got shape "
            f"{list(vec.shape)}"
        )
    start = 0
    for each in given:
        part = vec[start : start + each.numel()]
        each.copy_(part.reshape(each.shape))
        start += each.numel()
