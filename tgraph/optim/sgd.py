"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..creation import zeros_like
from ..runtime.dtypes import float64
from ..tensor import Tensor
from .optimizer import (
    Group,
    Optimizer,
    Parameters,
    check_not_negative,
    choice,
    new_counter,
    number,
    weight_decay,
)


class SGD(Optimizer):
    """Gradient descent, with momentum m, dampening d and weight decay where asked for.

    With g the gradient (plus weight_decay * p): the buffer is b = g at first and then
    b = m b + (1 - d) g; the step is p -= lr b, or p -= lr (g + m b) with `nesterov`.

    Source: PyTorch's `torch.optim.SGD`; Sutskever et al., "On the importance of initialization and
    momentum in deep learning" (2013).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.800000011920929]
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if group["momentum"] and "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(parameter)
            if group["dampening"]:
                state["is_first"] = new_counter(parameter).add_(1)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate = number(group, "lr")
        ascend = choice(group, "maximize")
        decay = weight_decay(group)
        momentum = _Momentum(group) if choice(group, "momentum") else None
        for parameter in parameters:
            direction: Any = -parameter.grad if ascend else parameter.grad
            if decay is not None:
                direction = direction + parameter * decay
            if momentum is not None:
                direction = momentum.applied(direction, self.state[parameter])
            parameter.sub_(direction * rate)


class _Momentum:
    def __init__(self, group: Group) -> None:
        self.factor = number(group, "momentum")
        self.dampening = number(group, "dampening") if choice(group, "dampening") else None
        self.nesterov = choice(group, "nesterov")

    def applied(self, direction: Tensor, state: dict[str, Any]) -> Tensor:
        buffer: Tensor = state["momentum_buffer"]
        added = direction
        if self.dampening is not None:
            share: Any = 1 - self.dampening
            if "is_first" in state:  # the first gradient counts in full
                share = share + state["is_first"].to(float64) * self.dampening
                state["is_first"].zero_()
            added = direction * share
        buffer.mul_(self.factor).add_(added)
        return direction + buffer * self.factor if self.nesterov else buffer
