"""Learning rates that change from epoch to epoch.

A scheduler sets `group["lr"]` of its optimizer, when it is made and at every `step()`. Formulas and
names are those of PyTorch's `torch.optim.lr_scheduler`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Group, Optimizer


class LRScheduler:
    """Base class. Subclasses define `_rate`, from the rate that a group has now."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group["initial_lr"] = group["lr"]
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in param_groups"
                    f"[{index}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def _rate(self, group: Group, index: int) -> float:
        raise NotImplementedError

    def step(self) -> None:
        """Go on by one epoch and set the rates."""
        self.last_epoch += 1
        for index, group in enumerate(self.optimizer.param_groups):
            group["lr"] = self._rate(group, index)

    def get_last_lr(self) -> list[float]:
        """The rates set last, one per group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the scheduler; the optimizer and functions are left out."""
        left_out = ("optimizer", "lr_lambdas")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        vars(self).update(state_dict)


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs.

    >>> import tgraph as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, group: Group, index: int) -> float:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return group["lr"] * self.gamma if due else group["lr"]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, group: Group, index: int) -> float:
        return group["lr"] * self.gamma if self.last_epoch > 0 else group["lr"]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave from the first rate down to `eta_min` at epoch `T_max`, and up again.

    rate = eta_min + (first rate - eta_min) * (1 + cos(pi * epoch / T_max)) / 2, computed from the
    rate before, so that other schedulers may change it too.
    Source: Loshchilov and Hutter, "SGDR: Stochastic gradient descent with warm restarts" (2016).
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, group: Group, index: int) -> float:
        epoch, rate = self.last_epoch, group["lr"]
        if epoch == 0:
            return rate
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            height = self.base_lrs[index] - self.eta_min
            return rate + height * (1 - math.cos(math.pi / self.T_max)) / 2
        now = 1 + math.cos(math.pi * epoch / self.T_max)
        before = 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return now / before * (rate - self.eta_min) + self.eta_min


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch, one for all groups or one for each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        given = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(given) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
        self.lr_lambdas = given
        super().__init__(optimizer, last_epoch)

    def _rate(self, group: Group, index: int) -> float:
        return self.base_lrs[index] * self.lr_lambdas[index](self.last_epoch)
