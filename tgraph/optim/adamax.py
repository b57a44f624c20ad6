"""Adamax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.elementwise import maximum
from ..ops.fused import fused_update
from .hyperparameters import (
    Group,
    check_betas,
    check_not_negative,
    choice,
    number,
    weight_decay,
)
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class Adamax(Optimizer):
    """Adam with a decaying maximum of the gradient in the place of the mean of its square.

    With g the gradient (plus weight_decay * p) at step t: m = β1 m + (1 - β1) g,
    u = max(β2 u, |g| + eps), p -= lr / (1 - β1ᵗ) * m / u.

    Source: PyTorch's `torch.optim.Adamax`; Kingma and Ba, "Adam: A method for stochastic
    optimization" (2014).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.grad = tg.full_like(x, 3.0)
    >>> tg.optim.Adamax([x], lr=0.5).step()
    >>> x.detach()
    tensor([0.5000])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps")
        check_betas(group)
        check_not_negative(group, "weight_decay")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        for name in ("exp_avg", "exp_inf"):
            if name not in state:
                state[name] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, eps = number(group, "lr"), number(group, "eps")
        beta1, beta2 = number(group, "betas", 0), number(group, "betas", 1)
        decay, ascend = weight_decay(group), choice(group, "maximize")
        step_size = StepsTaken(lambda count: rate / (1 - beta1**count))
        for each in parameters:
            state = self.state[each]
            now, counted = step_size(state["step"])
            run_update(
                group, _update, each, each.grad, state["exp_avg"], state["exp_inf"], now, beta1,
                beta2, eps, decay, ascend,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    mean: Tensor,
    largest: Tensor,
    step_size: Any,
    beta1: Any,
    beta2: Any,
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
    mean.lerp_(gradient, 1 - beta1)
    largest.copy_(maximum(largest * beta2, gradient.abs() + eps))
    parameter.sub_(mean / largest * step_size)
    if counter is not None:
        counter.fill_(count)
