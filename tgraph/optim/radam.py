"""Adam with a rectified variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.elementwise import where
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


class RAdam(Optimizer):
    """Adam that divides by the root of v only once enough steps have been seen.

    With m and v as in Adam, ρ∞ = 2 / (1 - β2) - 1 and ρ = ρ∞ - 2 t β2ᵗ / (1 - β2ᵗ): the step is
    lr * m / (1 - β1ᵗ), and where ρ > 5 times r sqrt(1 - β2ᵗ) / (sqrt(v) + eps) with
    r = sqrt((ρ - 4) (ρ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρ)).

    Source: PyTorch's `torch.optim.RAdam`; Liu et al., "On the variance of the adaptive learning
    rate and beyond" (2019).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.grad = tg.ones_like(x)
    >>> tg.optim.RAdam([x], lr=0.5).step()
    >>> x.detach()
    tensor([0.5000])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps")
        check_betas(group)
        check_not_negative(group, "weight_decay")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        for name in ("exp_avg", "exp_avg_sq"):
            if name not in state:
                state[name] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, eps = number(group, "lr"), number(group, "eps")
        beta1, beta2 = number(group, "betas", 0), number(group, "betas", 1)
        decay, ascend = weight_decay(group), choice(group, "maximize")
        decoupled = choice(group, "decoupled_weight_decay")

        def corrections(count: Any) -> tuple[Any, Any, Any]:
            """The step size, what the root of v divides, and whether it does."""
            step_size, left = rate / (1 - beta1**count), 1 - beta2**count
            longest = 2 / (1 - beta2) - 1
            length = longest - 2 * count * beta2**count / left
            adaptive = length > 5
            if adaptive is False:
                return step_size, 0.0, False
            of_all = (longest - 4) * (longest - 2)
            rectified = (length - 4) * (length - 2) * longest / (of_all * length)
            return step_size, (rectified * left) ** 0.5, adaptive

        corrected = StepsTaken(corrections)
        for each in parameters:
            state = self.state[each]
            (step_size, root, adaptive), counted = corrected(state["step"])
            run_update(
                group, _update, each, each.grad, state["exp_avg"], state["exp_avg_sq"], rate,
                beta1, beta2, eps, decay, step_size, root, adaptive, ascend, decoupled,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    mean: Tensor,
    square: Tensor,
    rate: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    step_size: Any,
    root: Any,
    adaptive: Any,
    ascend: bool,
    decoupled: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter."""
    if ascend:
        gradient = -gradient
    if decay is not None and decoupled:
        parameter.mul_(1 - rate * decay)
    elif decay is not None:
        gradient = gradient + parameter * decay
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    step = mean * step_size
    if adaptive is not False:
        scaled = step * (root / (square.sqrt() + eps))
        step = scaled if adaptive is True else where(adaptive, scaled, step)
    parameter.sub_(step)
    if counter is not None:
        counter.fill_(count)
