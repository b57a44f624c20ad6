"""What a scaler does to gradients and steps: code that compiled functions take for constant."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.comparison import isfinite
from ..ops.elementwise import where
from ..ops.fused import fused_update
from ..optim.optimizer import Optimizer
from ..runtime.dtypes import float32

_used: weakref.WeakSet[Any] = weakref.WeakSet()


def mark_used(scaler: Any) -> None:
    """The scaler has scaled something."""
    _used.add(scaler)


def is_used(scaler: Any) -> bool:
    """Whether the scaler has scaled something."""
    return scaler in _used


def gradients(optimizer: Optimizer) -> Iterable[Tensor]:
    """The gradients of all parameters that have one."""
    for group in optimizer.param_groups:
        for each in group["params"]:
            if each.grad is not None:
                yield each.grad


@fused_update
def unscale(gradient: Tensor, found: Tensor, inverse: Tensor) -> None:
    """Divide one gradient, and set `found` to 1 where it is not finite."""
    bad = (~isfinite(gradient)).any().to(float32)
    found.copy_(where(bad > 0, bad, found))
    gradient.mul_(inverse)


def step_where(finite: Tensor, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
    """A step of which only a plan knows whether it is taken: values of before are kept or not."""
    known = optimizer._tensors_of_a_step()
    before = [each.clone() for each in known]
    result = optimizer.step(*args, **kwargs)
    made = {id(each) for each in optimizer._tensors_of_a_step()} - set(map(id, known))
    if made:
        raise RuntimeError(
            f"GradScaler.step: {type(optimizer).__name__} makes its state in its first step, which "
            "a compiled function cannot skip. Take one step before you compile, or define "
            "`_new_state` and `_update_group` instead of `step`."
        )
    with no_grad():
        for each, old in zip(known, before, strict=True):
            each.copy_(where(finite, each, old))
    return result
