"""Averages of the parameters that a model has gone through: stochastic weight averaging and EMA."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm
from ..nn.module import Module
from ..ops.elementwise import where
from ..ops.from_data import tensor
from ..runtime.dtypes import int64
from ..tracing.api import is_tracing
from .lr_scheduler.base import LRScheduler, Rates, for_each_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential mean of one tensor: decay * mean + (1 - decay) * now."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return ema_param * decay + current_param * (1 - decay)

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Exponential means of many tensors, which are written in place."""
    one = get_ema_avg_fn(decay)

    @no_grad()
    def ema_update(
        ema_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], _: Any
    ) -> None:
        for mean, now in zip(ema_param_list, current_param_list, strict=True):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(one(mean, now, _))

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of one tensor over all times that it was averaged."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn() -> Averages:
    """Means of many tensors over all times that they were averaged, which are written in place."""
    one = get_swa_avg_fn()

    @no_grad()
    def swa_update(
        averaged_param_list: Sequence[Tensor],
        current_param_list: Sequence[Tensor],
        num_averaged: Any,
    ) -> None:
        for mean, now in zip(averaged_param_list, current_param_list, strict=True):
            mean.copy_(one(mean, now, num_averaged))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are means of those that the model goes through.

    `update_parameters(model)` takes the ones of now into account, eagerly or in a compiled training
    step. The mean is over all updates, unless `avg_fn` (of a tensor) or `multi_avg_fn` (of lists)
    says otherwise. Buffers are copied, or averaged too with `use_buffers`.

    Source: PyTorch's `torch.optim.swa_utils`; Izmailov et al., "Averaging weights leads to wider
    optima and better generalization" (2018).

    >>> import tgraph as tg
    >>> model = tg.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for weight in (1.0, 2.0, 3.0):
    ...     with tg.no_grad():
    ...         _ = model.weight.fill_(weight)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of `model` into account as they are now."""
        pairs = [
            (mean.detach(), now.detach().to(mean.device))
            for mean, now in zip(_tensors(self.module, self.use_buffers),
                                 _tensors(model, self.use_buffers), strict=True)
        ]  # fmt: skip
        if is_tracing():  # where nobody knows whether this is the first time
            self._average(pairs)
            for mean, now in pairs:
                mean.copy_(where(self.n_averaged == 0, now, mean))
        elif self.n_averaged == 0:
            for mean, now in pairs:
                mean.copy_(now)
        else:
            self._average(pairs)
        if not self.use_buffers:
            for mean, now in zip(self.module.buffers(), model.buffers(), strict=True):
                mean.detach().copy_(now.detach())
        self.n_averaged += 1

    def _average(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        if self.multi_avg_fn is None:
            one = self.avg_fn or get_swa_avg_fn()
            for mean, now in pairs:
                mean.copy_(one(mean, now, self.n_averaged.to(mean.device)))
            return
        alike: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        for pair in pairs:
            alike.setdefault((pair[0].device, pair[0].dtype), []).append(pair)
        for (device, _), group in alike.items():
            means, current = map(list, zip(*group, strict=True))
            self.multi_avg_fn(means, current, self.n_averaged.to(device))


def _tensors(model: Module, with_buffers: bool) -> Iterable[Tensor]:
    return itertools.chain(model.parameters(), model.buffers() if with_buffers else ())


_NORMS = (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm)


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute running statistics of batch norms anew, from all batches of `loader`.

    A batch is a tensor, or a list or tuple whose first element is.
    """
    norms = [each for each in model.modules() if isinstance(each, _NORMS)]
    if not norms:
        return
    was_training, momenta = model.training, [each.momentum for each in norms]
    for each in norms:
        each.reset_running_stats()
        each.momentum = None  # type: ignore[assignment]
    model.train()
    try:
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    finally:
        for each, momentum in zip(norms, momenta, strict=True):
            each.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the rate of now to `swa_lr` in `anneal_epochs`, and stays there.

    >>> import tgraph as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        if self._anneal_strategy == "linear":
            return done
        return (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> Rates:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, share = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, goal = group["lr"], group["swa_lr"]
            first = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * share + first * (1 - share))
        return rates
