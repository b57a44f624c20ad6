"""Resilient backpropagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import full_like, ones_like, zeros_like
from ..ops.elementwise import sign, where
from ..ops.fused import fused_update
from .hyperparameters import Group, check_not_negative, choice, number
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class Rprop(Optimizer):
    """Steps against the sign of the gradient, each element with a step size of its own.

    It grows by the second of `etas` while the sign stays, and shrinks by the first where it
    changes, which also skips one step; it stays between the two `step_sizes`, and begins with lr.

    Source: PyTorch's `torch.optim.Rprop`; Riedmiller and Braun, "A direct adaptive method for
    faster backpropagation learning: the RPROP algorithm" (1993).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, 1.0], requires_grad=True)
    >>> x.grad = tg.tensor([3.0, -1.0])
    >>> tg.optim.Rprop([x], lr=0.5).step()
    >>> x.detach()
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr")
        minus, plus = group["etas"]
        if not 0 < minus < 1 < plus:
            raise ValueError(f"Invalid eta values: {minus}, {plus}")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "prev" not in state:
            rate = float(group["lr"])
            state["prev"] = zeros_like(parameter)
            state["step_size"] = full_like(
                parameter, complex(rate, rate) if parameter.is_complex() else rate
            )

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        etas = number(group, "etas", 0), number(group, "etas", 1)
        sizes = number(group, "step_sizes", 0), number(group, "step_sizes", 1)
        ascend, count = choice(group, "maximize"), StepsTaken(lambda count: count)
        for each in parameters:
            state = self.state[each]
            _, counted = count(state["step"])
            run_update(
                group, _update, each, each.grad, state["prev"], state["step_size"], *etas, *sizes,
                ascend,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    previous: Tensor,
    size: Tensor,
    minus: Any,
    plus: Any,
    smallest: Any,
    largest: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter, on a device one kernel."""
    if ascend:
        gradient = -gradient
    agreement, one = gradient * previous, ones_like(gradient)
    factor = where(agreement > 0, one * plus, where(agreement < 0, one * minus, one))
    size.copy_((size * factor).clamp(smallest, largest))
    gradient = where(agreement < 0, zeros_like(gradient), gradient)
    parameter.sub_(sign(gradient) * size)
    previous.copy_(gradient)
    if counter is not None:
        counter.fill_(count)
