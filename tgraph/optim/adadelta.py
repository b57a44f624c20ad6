"""Adadelta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.fused import fused_update
from .hyperparameters import Group, check_not_negative, choice, number, weight_decay
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class Adadelta(Optimizer):
    """Steps as large as the last ones were, relative to the gradients.

    With g the gradient (plus weight_decay * p): v = rho v + (1 - rho) g²,
    d = sqrt(u + eps) / sqrt(v + eps) * g, u = rho u + (1 - rho) d², p -= lr * d.

    Source: PyTorch's `torch.optim.Adadelta`; Zeiler, "ADADELTA: An adaptive learning rate method"
    (2012).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], dtype=tg.float64, requires_grad=True)
    >>> x.grad = tg.ones_like(x)
    >>> tg.optim.Adadelta([x]).step()
    >>> round(x.item(), 4)
    0.9968
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr")
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"Invalid rho value: {group['rho']}")
        check_not_negative(group, "eps", "weight_decay")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        for name in ("square_avg", "acc_delta"):
            if name not in state:
                state[name] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        numbers = [number(group, each) for each in ("lr", "rho", "eps")]
        decay, ascend = weight_decay(group), choice(group, "maximize")
        count = StepsTaken(lambda count: count)
        for each in parameters:
            state = self.state[each]
            _, counted = count(state["step"])
            run_update(
                group, _update, each, each.grad, state["square_avg"], state["acc_delta"], *numbers,
                decay, ascend,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    square: Tensor,
    steps: Tensor,
    rate: Any,
    rho: Any,
    eps: Any,
    decay: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter, on a device one kernel."""
    if ascend:
        gradient = -gradient
    if decay is not None:
        gradient = gradient + parameter * decay
    square.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
    delta = (steps + eps).sqrt() / (square + eps).sqrt() * gradient
    steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    parameter.sub_(delta * rate)
    if counter is not None:
        counter.fill_(count)
