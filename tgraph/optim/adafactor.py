"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dtype_info import finfo
from ..core.tensor import Tensor
from ..ops.creation import zeros, zeros_like
from ..ops.fused import fused_update
from ..runtime.dtypes import float32
from .hyperparameters import (
    Group,
    at_most,
    choice,
    number,
    setting,
    weight_decay,
)
from .optimizer import Optimizer, Parameters, run_update
from .step_counter import StepsTaken


class Adafactor(Optimizer):
    """Adam without a mean, whose mean of squares is kept as a row and a column.

    With g the gradient at step t and w = t^beta2_decay: p -= lr * weight_decay * p; the means of g²
    along rows, R, and columns, C, move towards those of this step by w, and v is R C over the mean
    of R; of a vector, v is the mean of g² itself. With u = g / sqrt(v), the step is
    min(lr, 1 / sqrt(t)) * max(eps2, rms(p)) / max(1, rms(u) / d) * u.

    Source: PyTorch's `torch.optim.Adafactor`; Shazeer and Stern, "Adafactor: Adaptive learning
    rates with sublinear memory cost" (2018).

    >>> import tgraph as tg
    >>> x = tg.ones(2, 3, requires_grad=True)
    >>> x.grad = tg.ones_like(x)
    >>> optimizer = tg.optim.Adafactor([x], lr=0.5)
    >>> optimizer.step()
    >>> x[0].detach(), optimizer.state[x]["col_var"]
    (tensor([0.5000, 0.5000, 0.5000]), tensor([[1., 1., 1.]]))
    """

    takes_complex = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_group(self, group: Group) -> None:
        rate, (eps1, eps2) = group["lr"], group["eps"]
        if not rate >= 0:
            raise ValueError(f"Learning rate should be >= 0 but is: {rate}")
        if not group["beta2_decay"] <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {group['beta2_decay']}")
        if eps1 is not None and not eps1 >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps1}")
        if not eps2 >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps2}")
        if not group["d"] >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {group['d']}")
        if not group["weight_decay"] >= 0:
            raise ValueError(f"weight_decay should be >= 0 but is: {group['weight_decay']}")

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        if "variance" in state or "row_var" in state:
            return
        if parameter.ndim < 2:
            state["variance"] = zeros_like(parameter)
            return
        shape, type_ = parameter.shape, parameter._type
        state["row_var"] = zeros(*shape[:-1], 1, dtype=type_.dtype, device=type_.device)
        state["col_var"] = zeros(*shape[:-2], 1, shape[-1], dtype=type_.dtype, device=type_.device)

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, fall, limit = (number(group, each) for each in ("lr", "beta2_decay", "d"))
        given = setting(group, "eps")[0]
        eps2 = number(group, "eps", 1)
        decay, ascend = weight_decay(group), choice(group, "maximize")
        factors = StepsTaken(lambda count: (count**fall, at_most(count**-0.5, rate)))
        for each in parameters:
            state = self.state[each]
            (share, relative), counted = factors(state["step"])
            eps1 = finfo(each.dtype).eps if given is None else given
            run_update(
                group, _update, each, each.grad, state.get("row_var"), state.get("col_var"),
                state.get("variance"), share, relative, float(eps1), eps2, limit, rate, decay,
                ascend,
                counted=counted,
            )  # fmt: skip


def _root_mean_square(x: Tensor) -> Tensor:
    x = x.to(float32) if x.element_size() < 4 else x
    return (x * x).mean().sqrt()


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    rows: Tensor | None,
    columns: Tensor | None,
    variance: Tensor | None,
    share: Any,
    relative: Any,
    eps1: Any,
    eps2: Any,
    limit: Any,
    rate: Any,
    decay: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter."""
    if ascend:
        gradient = -gradient
    size = _root_mean_square(parameter).clamp(min=eps2) * relative
    if decay is not None:
        parameter.mul_(1 - rate * decay)
    square = gradient * gradient
    if variance is None:
        assert rows is not None and columns is not None
        rows.lerp_(square.mean(-1, keepdim=True), share)
        columns.lerp_(square.mean(-2, keepdim=True), share)
        estimate = rows * columns / rows.mean(-2, keepdim=True).clamp(min=eps1)
    else:
        estimate = variance.lerp_(square, share)
    update = gradient * estimate.clamp(min=eps1 * eps1).rsqrt()
    denominator = (_root_mean_square(update) / limit).clamp(min=1)
    parameter.sub_(update * (size / denominator))
    if counter is not None:
        counter.fill_(count)
