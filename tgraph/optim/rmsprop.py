"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.fused import fused_update
from .hyperparameters import Group, check_not_negative, choice, number
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of the squared gradient.

    With g the gradient (plus weight_decay * p): v = alpha v + (1 - alpha) g², less the square of
    a running mean of g if `centered`; the step is g / (sqrt(v) + eps), through a momentum buffer
    where `momentum` is not 0.

    Source: PyTorch's `torch.optim.RMSprop`; Tieleman and Hinton, "Lecture 6.5: RMSprop" (2012).
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "alpha", "eps", "weight_decay", "momentum")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        wanted = {
            "square_avg": True,
            "momentum_buffer": group["momentum"] != 0,
            "grad_avg": group["centered"],
        }
        for name, needed in wanted.items():
            if needed and name not in state:
                state[name] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        step = _Step(group)
        for parameter in parameters:
            step.take(parameter, self.state[parameter])


class _Step:
    """The hyperparameters of one group, read once for all its parameters."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.count = StepsTaken(lambda count: count)
        self.rate, self.alpha, self.eps = (number(group, each) for each in ("lr", "alpha", "eps"))
        self.decay = number(group, "weight_decay") if choice(group, "weight_decay") else None
        self.momentum = number(group, "momentum") if choice(group, "momentum") else None
        self.centered = choice(group, "centered")
        self.ascend = choice(group, "maximize")

    def take(self, parameter: Tensor, state: dict[str, Any]) -> None:
        _, counted = self.count(state["step"])
        run_update(
            self.group,
            _update,
            parameter,
            parameter.grad,
            state["square_avg"],
            state["grad_avg"] if self.centered else None,
            None if self.momentum is None else state["momentum_buffer"],
            self.rate,
            self.alpha,
            self.eps,
            self.decay,
            self.momentum,
            self.ascend,
            counted=counted,
        )


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    square: Tensor,
    mean: Tensor | None,
    buffer: Tensor | None,
    rate: Any,
    alpha: Any,
    eps: Any,
    decay: Any,
    momentum: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter, on a device one kernel."""
    if ascend:
        gradient = -gradient
    if decay is not None:
        gradient = gradient + parameter * decay
    square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
    if mean is not None:
        mean.lerp_(gradient, 1 - alpha)
        square = square - mean * mean
    direction = gradient / (square.sqrt() + eps)
    if buffer is not None:
        direction = buffer.mul_(momentum).add_(direction)
    parameter.sub_(direction * rate)
    if counter is not None:
        counter.fill_(count)
