"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.fused import fused_update
from ..runtime.dtypes import float64
from .hyperparameters import Group, check_not_negative, choice, number, weight_decay
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import new_counter


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

    counts_steps = False

    takes_sparse_gradients = True

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        self._firsts: dict[Tensor, Tensor] = {}  # whether the next step is the first, as 1 or 0

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if group["momentum"] and "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(parameter)
            if group["dampening"]:
                self._firsts[parameter] = new_counter(parameter).add_(1)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate = number(group, "lr")
        ascend = choice(group, "maximize")
        decay = weight_decay(group)
        momentum = _Momentum(group) if choice(group, "momentum") else None
        for parameter in parameters:
            buffer = share = None
            if momentum is not None:
                state = self.state[parameter]
                buffer = state["momentum_buffer"]
                share = momentum.share(self._firsts.get(parameter))
            run_update(
                group,
                _update,
                parameter,
                parameter.grad,
                buffer,
                rate,
                decay,
                None if momentum is None else momentum.factor,
                share,
                momentum is not None and momentum.nesterov,
                ascend,
            )

    def _other_tensors(self) -> list[Tensor]:
        return list(self._firsts.values())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for parameter, first in self._firsts.items():  # a buffer that was loaded holds a gradient
            if "momentum_buffer" in self.state.get(parameter, ()):
                with no_grad():
                    first.zero_()


class _Momentum:
    def __init__(self, group: Group) -> None:
        self.factor = number(group, "momentum")
        self.dampening = number(group, "dampening") if choice(group, "dampening") else None
        self.nesterov = choice(group, "nesterov")

    def share(self, first: Tensor | None) -> Any:
        """How much of a gradient is added to the buffer; None for all of it."""
        if self.dampening is None:
            return None
        share: Any = 1 - self.dampening
        if first is not None:  # the first gradient counts in full
            share = share + first.to(float64) * self.dampening
            first.zero_()
        return share


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    buffer: Tensor | None,
    rate: Any,
    decay: Any,
    factor: Any,
    share: Any,
    nesterov: bool,
    ascend: bool,
) -> None:
    """One step of one parameter, on a device one kernel."""
    direction = -gradient if ascend else gradient
    if decay is not None:
        direction = direction + parameter * decay
    if buffer is not None:
        buffer.mul_(factor).add_(direction if share is None else direction * share)
        direction = direction + buffer * factor if nesterov else buffer
    parameter.sub_(direction * rate)
