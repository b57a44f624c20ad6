"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import full, ones, zeros_like
from ..ops.elementwise import where
from ..ops.fused import fused_update
from ..runtime.dtypes import float32, float64
from .hyperparameters import (
    Group,
    at_least,
    check_not_negative,
    choice,
    number,
    weight_decay,
)
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class ASGD(Optimizer):
    """Gradient descent that keeps a mean of all parameters it has been through, from step t0 on.

    With g the gradient (plus weight_decay * p) at step t: p -= η (λ p + g), the mean "ax" moves
    towards p by μ; then η = lr / (1 + λ lr t)^alpha and μ = 1 / max(1, t - t0).

    Source: PyTorch's `torch.optim.ASGD`; Polyak and Juditsky, "Acceleration of stochastic
    approximation by averaging" (1992).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.grad = tg.ones_like(x)
    >>> optimizer = tg.optim.ASGD([x], lr=0.5, lambd=0)
    >>> optimizer.step()
    >>> x.detach(), optimizer.state[x]["ax"]
    (tensor([0.5000]), tensor([0.5000]))
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "weight_decay")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "ax" in state:
            return
        device = parameter._type.device
        rate = float(group["lr"])
        state["eta"] = full((), rate, dtype=float32, device=device)
        state["mu"] = ones((), dtype=float32, device=device)
        state["ax"] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, lambd, alpha, start = (number(group, each) for each in ("lr", "lambd", "alpha", "t0"))
        decay, ascend = weight_decay(group), choice(group, "maximize")

        def next_factors(count: Any) -> tuple[Any, Any]:
            return rate / (1 + lambd * rate * count) ** alpha, 1 / at_least(count - start, 1.0)

        factors = StepsTaken(next_factors)
        for each in parameters:
            state = self.state[each]
            (eta, mu), counted = factors(state["step"])
            run_update(
                group, _update, each, each.grad, state["eta"], state["mu"], state["ax"], lambd,
                decay, eta, mu, ascend,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    eta: Tensor,
    mu: Tensor,
    average: Tensor,
    lambd: Any,
    decay: Any,
    next_eta: Any,
    next_mu: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter."""
    if ascend:
        gradient = -gradient
    if decay is not None:
        gradient = gradient + parameter * decay
    rate = eta.to(float64)
    parameter.mul_(1 - rate * lambd)
    parameter.sub_(gradient * rate)
    average.copy_(where(mu == 1, parameter, average + (parameter - average) * mu))
    eta.fill_(next_eta)
    mu.fill_(next_mu)
    if counter is not None:
        counter.fill_(count)
