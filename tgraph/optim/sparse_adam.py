"""Adam for gradients most of whose rows are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.elementwise import where
from ..ops.fused import fused_update
from .hyperparameters import Group, check_betas, choice, number
from .optimizer import Optimizer, Parameters, run_update
from .sparse_gradients import add_at, is_sparse, summed, taken
from .step_counter import StepsTaken


class SparseAdam(Optimizer):
    """Adam that leaves rows alone, with their means, for which there is no gradient.

    A sparse gradient, such as that of `Embedding(sparse=True)`, changes the rows that it lists. Of
    a dense one, as compiled code has, which PyTorch's does not take, a row (what lies at one
    position of the first axis) is taken to be there where any of its elements is not zero. The two
    differ for a row that was looked up and whose gradient is exactly zero.

    Source: PyTorch's `torch.optim.SparseAdam`.

    >>> import tgraph as tg
    >>> x = tg.ones(2, 1, requires_grad=True)
    >>> optimizer = tg.optim.SparseAdam([x], lr=0.5)
    >>> for gradient in ([[1.0], [1.0]], [[1.0], [0.0]]):
    ...     x.grad = tg.tensor(gradient)
    ...     optimizer.step()
    >>> [round(each, 3) for each in x.flatten().tolist()]
    [0.0, 0.5]
    """

    takes_sparse_gradients = True

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)

    def _check_parameter(self, parameter: Any) -> None:
        if isinstance(parameter, Tensor) and parameter.is_complex():
            raise ValueError("SparseAdam does not support complex parameters")
        if isinstance(parameter, Tensor) and parameter.is_sparse:
            raise ValueError("SparseAdam requires dense parameter tensors, got a sparse one")
        super()._check_parameter(parameter)

    def _check_group(self, group: Group) -> None:
        for name, label in (("lr", "learning rate"), ("eps", "epsilon value")):
            if not group[name] > 0:
                raise ValueError(f"Invalid {label}: {group[name]}")
        check_betas(group)

    def _new_state(self, group: Group, parameter: Tensor, state: dict[str, Any]) -> None:
        for name in ("exp_avg", "exp_avg_sq"):
            if name not in state:
                state[name] = zeros_like(parameter)

    def state_dict(self) -> dict[str, Any]:
        """As of any optimizer; numbers of steps are plain ones, as in PyTorch's."""
        result = super().state_dict()
        for at, values in result["state"].items():
            result["state"][at] = {**values, "step": int(values["step"])}
        return result

    def _update_group(self, group: Group, parameters: Sequence[Tensor]) -> None:
        rate, eps = number(group, "lr"), number(group, "eps")
        beta1, beta2 = number(group, "betas", 0), number(group, "betas", 1)
        ascend = choice(group, "maximize")
        step_size = StepsTaken(lambda count: rate * (1 - beta2**count) ** 0.5 / (1 - beta1**count))
        for each in parameters:
            state = self.state[each]
            now, counted = step_size(state["step"])
            update = _update_places if is_sparse(each.grad) else _update
            run_update(
                group, update, each, each.grad, state["exp_avg"], state["exp_avg_sq"], now, beta1,
                beta2, eps, ascend,
                counted=counted,
            )  # fmt: skip


@fused_update
def _update(
    parameter: Tensor,
    gradient: Any,
    mean: Tensor,
    square: Tensor,
    step_size: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step of one parameter."""
    if ascend:
        gradient = -gradient
    there = gradient != 0
    if there.ndim > 1:
        there = there.any(dim=tuple(range(1, there.ndim)), keepdim=True)
    mean.copy_(where(there, mean.lerp(gradient, 1 - beta1), mean))
    square.copy_(where(there, square.lerp(gradient * gradient, 1 - beta2), square))
    step = mean / (square.sqrt() + eps) * step_size
    parameter.sub_(where(there, step, zeros_like(step)))
    if counter is not None:
        counter.fill_(count)


def _update_places(
    parameter: Tensor,
    gradient: Any,
    mean: Tensor,
    square: Tensor,
    step_size: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    ascend: bool,
    counter: Tensor | None = None,
    count: Any = 0.0,
) -> None:
    """One step by a sparse gradient, which leaves all other places alone."""
    places, values = summed(gradient, ascend)
    add_at(mean, places, (values - taken(mean, places)) * (1 - beta1))
    add_at(square, places, (values * values - taken(square, places)) * (1 - beta2))
    step = taken(mean, places) / (taken(square, places).sqrt() + eps) * step_size
    add_at(parameter, places, -step)
    if counter is not None:
        counter.fill_(count)
