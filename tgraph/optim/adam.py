"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.grad_mode import no_grad
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
from .step_counter import count_step, remember_count


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square.

    With g the gradient (plus weight_decay * p) at step t:
    m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g²,
    p -= lr * m / (1 - β1ᵗ) / (sqrt(v / (1 - β2ᵗ)) + eps). `amsgrad` takes the largest v so far.

    Parameters of a group that have taken the same steps share one tensor as their "step" in
    `state`, where PyTorch's have one each; in `state_dict()` they have one each here, too.

    Source: PyTorch's `torch.optim.Adam`; Kingma and Ba, "Adam: A method for stochastic
    optimization" (2014); Reddi et al., "On the convergence of Adam and beyond" (2018).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = tg.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.5000, -2.5000])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps", "weight_decay")
        check_betas(group)

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "exp_avg" not in state:
            state["exp_avg"] = zeros_like(parameter)
            state["exp_avg_sq"] = zeros_like(parameter)
        if group["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = zeros_like(parameter)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        step = _Step(group)
        for parameter in parameters:
            step.take(parameter, self.state[parameter])


class AdamW(Adam):
    """Adam, with weight decay as a step of its own: p -= lr * weight_decay * p comes first.

    Source: PyTorch's `torch.optim.AdamW`; Loshchilov and Hutter, "Decoupled weight decay
    regularization" (2017).
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class _Step:
    """The hyperparameters of one group, read once for all its parameters."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.rate = number(group, "lr")
        self.beta1, self.beta2 = number(group, "betas", 0), number(group, "betas", 1)
        self.eps = number(group, "eps")
        self.decay = weight_decay(group)
        self.amsgrad = choice(group, "amsgrad")
        self.ascend = choice(group, "maximize")
        self.decoupled = choice(group, "decoupled_weight_decay")
        self.counted: dict[int, tuple[Any, Any, Any, None]] = {}  # by the id of a counter

    def take(self, parameter: Tensor, state: dict[str, Any]) -> None:
        step_size, root, count, counter = self._corrections(state["step"])
        run_update(
            self.group,
            _update,
            parameter,
            parameter.grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["max_exp_avg_sq"] if self.amsgrad else None,
            self.rate,
            self.beta1,
            self.beta2,
            self.eps,
            self.decay,
            step_size,
            root,
            self.ascend,
            self.decoupled,
            counter,
            count,
        )
        if counter is not None:
            remember_count(counter, count)

    def _corrections(self, counter: Tensor) -> tuple[Any, Any, Any, Tensor | None]:
        """What the means are scaled by, and the count, with the counter if that has to be written.

        The first parameter of those that share a counter counts the step.
        """
        found = self.counted.get(id(counter))
        if found is None:
            with no_grad():
                count, written = count_step(counter)
            step_size = self.rate / (1 - self.beta1**count)
            found = step_size, (1 - self.beta2**count) ** 0.5, count, None
            self.counted[id(counter)] = found
            return (*found[:3], written)
        return found


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    mean: Tensor,
    square: Tensor,
    largest: Tensor | None,
    rate: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    step_size: Any,
    root: Any,
    ascend: bool,
    decoupled: bool,
    counter: Tensor | None,
    count: Any,
) -> None:
    """One step of one parameter, on a device one kernel; `counter` is then to hold `count`."""
    if ascend:
        gradient = -gradient
    if decay is not None and decoupled:
        parameter.mul_(1 - rate * decay)
    elif decay is not None:
        gradient = gradient + parameter * decay
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    if largest is not None:
        square = largest.copy_(maximum(largest, square))
    denominator = square.sqrt() / root + eps
    parameter.sub_(mean / denominator * step_size)
    if counter is not None:
        counter.fill_(count)
