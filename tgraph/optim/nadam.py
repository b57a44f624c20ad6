"""Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import ones, zeros_like
from ..ops.fused import fused_update
from ..runtime.dtypes import float32, float64
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


class NAdam(Optimizer):
    """Adam that looks ahead along its momentum, as Nesterov's method does.

    With g the gradient (plus weight_decay * p, unless that is decoupled) at step t, m and v as in
    Adam, and μ(t) = β1 (1 - 0.96^(t ψ) / 2), where ψ is `momentum_decay`, and M the product of μ so
    far: p -= lr ((1 - μ(t)) / (1 - M) g + μ(t + 1) / (1 - M μ(t + 1)) m) / (sqrt(v / (1 - β2ᵗ)) +
    eps).

    Source: PyTorch's `torch.optim.NAdam`; Dozat, "Incorporating Nesterov momentum into Adam"
    (2016).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.grad = tg.ones_like(x)
    >>> tg.optim.NAdam([x], lr=0.5).step()
    >>> x.detach()
    tensor([0.4718])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps")
        check_betas(group)
        check_not_negative(group, "weight_decay", "momentum_decay")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "mu_product" not in state:
            state["mu_product"] = ones((), dtype=float32, device=parameter._type.device)
            state["exp_avg"] = zeros_like(parameter)
            state["exp_avg_sq"] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, eps, fall = (number(group, each) for each in ("lr", "eps", "momentum_decay"))
        beta1, beta2 = number(group, "betas", 0), number(group, "betas", 1)
        decay, ascend = weight_decay(group), choice(group, "maximize")
        decoupled = choice(group, "decoupled_weight_decay")

        def momentum(count: Any) -> Any:
            return beta1 * (1 - 0.5 * 0.96 ** (count * fall))

        def corrections(count: Any) -> tuple[Any, Any, Any]:
            return momentum(count), momentum(count + 1), (1 - beta2**count) ** 0.5

        corrected = StepsTaken(corrections)
        for each in parameters:
            state = self.state[each]
            (now, then, root), counted = corrected(state["step"])
            run_update(
                group, _update, each, each.grad, state["mu_product"], state["exp_avg"],
                state["exp_avg_sq"], rate, beta1, beta2, eps, decay, now, then, root, ascend,
                decoupled,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    product: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    momentum: Any,
    momentum_next: Any,
    root: Any,
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
    factor = momentum.to(float32) if isinstance(momentum, Tensor) else momentum
    so_far = product.mul_(factor).to(float64)
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    denominator = square.sqrt() / root + eps
    ahead = rate * momentum_next / (1 - so_far * momentum_next)
    parameter.sub_(gradient / denominator * (rate * (1 - momentum) / (1 - so_far)))
    parameter.sub_(mean / denominator * ahead)
    if counter is not None:
        counter.fill_(count)
