"""Adagrad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation import full_like
from ..ops.fused import fused_update
from ..tracing.api import suspend_tracing
from .hyperparameters import Group, check_not_negative, choice, number, weight_decay
from .optimizer import Optimizer, Parameters, run_update
from .sparse_gradients import add_at, is_sparse, summed, taken
from .step_counter import StepsTaken, new_counter, share_counters


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients.

    With g the gradient (plus weight_decay * p) at step t: v += g²,
    p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(v) + eps).

    Source: PyTorch's `torch.optim.Adagrad`; Duchi et al., "Adaptive subgradient methods for online
    learning and stochastic optimization" (2011).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.grad = tg.full_like(x, 3.0)
    >>> tg.optim.Adagrad([x], lr=0.5).step()
    >>> x.detach()
    tensor([0.5000])
    """

    takes_sparse_gradients = True

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        with suspend_tracing(), no_grad():  # the state is there from the start, as in PyTorch
            for group in self.param_groups:
                for each in group["params"]:
                    self.state[each]["step"] = new_counter(each)
                    self._new_state(group, each, self.state[each])
                share_counters(self.state[each] for each in group["params"])

    def _check_group(self, group: Group) -> None:
        check_not_negative(
            group, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"
        )

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "sum" not in state:
            first = self.defaults["initial_accumulator_value"]
            state["sum"] = full_like(
                parameter, complex(first, first) if parameter.is_complex() else first
            )

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, fall, eps = (number(group, each) for each in ("lr", "lr_decay", "eps"))
        decay, ascend = weight_decay(group), choice(group, "maximize")
        rate_now = StepsTaken(lambda count: rate / (1 + (count - 1) * fall))
        for each in parameters:
            state = self.state[each]
            now, counted = rate_now(state["step"])
            run_update(
                group,
                _update_places if is_sparse(each.grad) else _update,
                each,
                each.grad,
                state["sum"],
                now,
                eps,
                decay,
                ascend,
                counted=counted,
            )


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    total: Tensor,
    rate: Any,
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
    total.addcmul_(gradient, gradient)
    parameter.sub_(gradient / (total.sqrt() + eps) * rate)
    if counter is not None:
        counter.fill_(count)


def _update_places(
    parameter: Tensor,
    gradient: Any,
    total: Tensor,
    rate: Any,
    eps: Any,
    decay: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step by a sparse gradient, which leaves all other places alone."""
    if decay is not None:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    places, values = summed(gradient, ascend)
    add_at(total, places, values * values)
    add_at(parameter, places, -values / (taken(total, places).sqrt() + eps) * rate)
    if counter is not None:
        counter.fill_(count)
