"""How optimizers read and check hyperparameters, which compiled steps read anew at each call."""

from __future__ import annotations

from typing import Any

from ..core.state import state
from ..core.tensor import Tensor
from ..core.traced_number import TracedNumber
from ..tracing.api import host_constant, host_scalar, is_tracing

Group = dict[str, Any]


def number(group: Group, name: str, index: int | None = None) -> Any:
    """A hyperparameter, or one of a tuple of them; in a compiled step, as it is at each call."""
    value = group[name] if index is None else group[name][index]
    if isinstance(value, (Tensor, TracedNumber)):
        return value
    if not is_tracing() or _is_written_inside(group, name):
        return float(value)  # whole numbers would be fixed in plans
    if index is None:
        return host_scalar(lambda: group[name])
    return host_scalar(lambda: group[name][index])


def choice(group: Group, name: str) -> bool:
    """Whether a hyperparameter is set or not zero: decides which operations run."""
    value = group.get(name)
    if isinstance(value, Tensor):
        return True
    if _is_written_inside(group, name):
        return bool(value)
    return bool(host_constant(lambda: bool(group.get(name)), f"whether an optimizer has {name}"))


def setting(group: Group, name: str) -> Any:
    """A hyperparameter that is no number: what operations run depends on its value."""
    if _is_written_inside(group, name):
        return group[name]
    return host_constant(lambda: group[name], f"the {name} of an optimizer")


def _is_written_inside(group: Group, name: str) -> bool:
    """Whether a compiled function wrote a hyperparameter before its step, which then reads that."""
    return state.recorder is not None and state.recorder.is_written(group, name)


def weight_decay(group: Group) -> Any:
    """The weight decay, None for none. A compiled step has room for it even while it is 0."""
    if not is_tracing() and not choice(group, "weight_decay"):
        return None
    return number(group, "weight_decay")


# Computed with numbers in eager mode and with tensors in a compiled step.


def at_least(value: Any, low: Any) -> Any:
    """The larger of a number and another one."""
    return value.clamp(min=low) if isinstance(value, Tensor) else max(value, low)


def at_most(value: Any, high: Any) -> Any:
    """The smaller of a number and another one."""
    return value.clamp(max=high) if isinstance(value, Tensor) else min(value, high)


# --- checks --------------------------------------------------------------------------------------


def check_rate(group: Group) -> None:
    """ValueError for a learning rate that is a tensor of several elements."""
    rate = group.get("lr")
    if isinstance(rate, Tensor) and rate.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_not_negative(group: Group, *names: str) -> None:
    """ValueError unless the hyperparameters are numbers from 0 up."""
    for name in names:
        value = group[name]
        if not isinstance(value, Tensor) and not value >= 0:
            label = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {label}: {value}")


def check_betas(group: Group) -> None:
    """ValueError unless both betas are from 0 up and below 1."""
    for index, beta in enumerate(group["betas"]):
        if not isinstance(beta, Tensor) and not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_ways(group: Group) -> None:
    """RuntimeError for ways to run a step that exclude each other."""
    if group.get("fused") and group.get("differentiable"):
        raise RuntimeError("`fused` does not support `differentiable`")
    if group.get("fused") and group.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
