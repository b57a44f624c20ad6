"""Muon: momentum whose matrix is made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.fused import fused_update
from ..runtime.dtypes import bfloat16
from .hyperparameters import Group, choice, number, setting, weight_decay
from .optimizer import Optimizer, Parameters, run_update


class Muon(Optimizer):
    """Steps along the nearest orthogonal matrix of the momentum, for matrices of hidden layers.

    With g the gradient: b moves towards g by 1 - momentum, the direction is b, or with `nesterov`
    g moved towards b by momentum; `ns_steps` of Newton and Schulz's iteration, in bfloat16, bring
    its singular values close to 1; then p -= lr * weight_decay * p and p -= lr * s * direction. s
    is sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)) where `adjust_lr_fn` is
    "match_rms_adamw". Other parameters want another optimizer, such as AdamW.

    Source: PyTorch's `torch.optim.Muon`; Jordan et al., "Muon: An optimizer for hidden layers in
    neural networks" (2024).

    >>> import tgraph as tg
    >>> x = tg.zeros(2, 2, requires_grad=True)
    >>> x.grad = tg.tensor([[3.0, 0.0], [0.0, 3.0]])
    >>> tg.optim.Muon([x], lr=1.0).step()
    >>> [0.6 < -each < 1.3 for each in x.diagonal().tolist()]
    [True, True]
    """

    takes_complex = False
    counts_steps = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        for name, label in (
            ("lr", "Learning rate"), ("momentum", "momentum"), ("weight_decay", "weight decay"),
        ):  # fmt: skip
            if not group[name] >= 0:
                raise ValueError(f"{label} should be >= 0 but is: {group[name]}")
        adjust = group["adjust_lr_fn"]
        if adjust not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust} is not supported")
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        for each in group["params"]:
            if each.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{each.size()}"
                )

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, momentum, eps = (number(group, each) for each in ("lr", "momentum", "eps"))
        coefficients = [number(group, "ns_coefficients", at) for at in range(3)]
        adjust, steps = setting(group, "adjust_lr_fn"), setting(group, "ns_steps")
        nesterov, decay = choice(group, "nesterov"), weight_decay(group)
        for each in parameters:
            run_update(
                group, _update, each, each.grad, self.state[each]["momentum_buffer"], momentum,
                rate, rate * _scale(each, adjust), decay, eps, *coefficients, steps, nesterov,
            )  # fmt: skip


def _scale(parameter: Tensor, adjust: str | None) -> float:
    rows, columns = parameter.shape
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    buffer: Tensor,
    momentum: Any,
    rate: Any,
    step_size: Any,
    decay: Any,
    eps: Any,
    a: Any,
    b: Any,
    c: Any,
    steps: int,
    nesterov: bool,
) -> None:
    """One step of one parameter."""
    buffer.lerp_(gradient, 1 - momentum)
    direction = gradient.lerp(buffer, momentum) if nesterov else buffer
    x = direction.to(bfloat16)
    is_tall = parameter.shape[0] > parameter.shape[1]
    x = x.t() if is_tall else x
    x = x / x.norm().clamp(min=eps)  # so that no singular value is above 1
    for _ in range(steps):
        gram = x @ x.t()
        x = x * a + (gram * b + gram @ gram * c) @ x
    x = x.t() if is_tall else x
    if decay is not None:
        parameter.mul_(1 - rate * decay)
    parameter.sub_(x.to(parameter.dtype) * step_size)
