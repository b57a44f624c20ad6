"""Limits on the gradients of many parameters at once."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

from ...core.grad_mode import no_grad
from ...core.planned import planned
from ...core.tensor import Tensor
from ...ops.concatenation import stack
from ...ops.elementwise import clamp
from ...ops.from_data import tensor as make_tensor
from ...ops.fused import fused_update
from ...ops.norms import norm
from ...ops.reductions import amax
from ...runtime.device import Device

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Any]:
    found = [each.grad for each in _listed(parameters)]
    return [each for each in found if each is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors, as of one long vector. `foreach` changes nothing.

    >>> import tgraph as tg
    >>> tg.nn.utils.get_total_norm([tg.tensor([3.0]), tg.tensor([4.0])])
    tensor(5.)
    """
    given = _listed(tensors)
    if not given:
        return make_tensor(0.0)
    order, device = float(norm_type), given[0].device
    norms = [_on(_norm(each, order), device) for each in given]
    total = _norm(stack(norms), order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _on(x: Tensor, device: Device) -> Tensor:
    return x if x.device == device else x.to(device)


@planned
def _norm(x: Tensor, order: float) -> Tensor:
    return amax(x.abs()) if order == float("inf") else norm(x, order)


@fused_update
def _scale(x: Tensor, factor: Tensor) -> None:
    x.mul_(factor)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients, whose norm is `total_norm`, so that it is at most `max_norm`."""
    _scale_all(_gradients(parameters), max_norm, total_norm)


def _scale_all(gradients: Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    factor = clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for each in gradients:
        _scale(each, _on(factor, each.device))


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
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
    given = _listed(parameters)
    if not given and isinstance(parameters, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    gradients = _gradients(given)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite, foreach)
    _scale_all(gradients, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of every gradient to [-clip_value, clip_value]."""
    for each in _gradients(parameters):
        each.copy_(clamp(each, -clip_value, clip_value))
