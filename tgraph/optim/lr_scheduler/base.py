"""What schedulers of learning rates share."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ..hyperparameters import Group
from ..optimizer import Optimizer

Rates = list[Any]


class LRScheduler:
    """Base class. Subclasses define `get_lr`, which gives the rate of each group.

    It finds the rates before this step in `self.optimizer.param_groups`, the first ones in
    `self.base_lrs`, and in `self.last_epoch` how many steps there were. `self._is_initial` tells
    that the scheduler is being made.

    >>> import tgraph as tg
    >>> class Halving(LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    last_epoch: int
    _step_count: int
    _last_lr: Rates
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    "scheduler with last_epoch >= 0; load the state of the optimizer first"
                )
        self.base_lrs: Rates = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> Rates:
        """The rate of each group for `self.last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch and set the rates."""
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr() if epoch is None or closed_form is None else closed_form()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = values(self.optimizer, "lr")

    def _now(self) -> Rates:
        """The rates before this step."""
        return values(self.optimizer, "lr")

    def _times(self, factor: float) -> Rates:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def get_last_lr(self) -> Rates:
        """The rates set last, one per group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; functions are left out."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, ours or PyTorch's."""
        vars(self).update(state_dict)


def check_optimizer(optimizer: Any) -> None:
    """TypeError for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def warn_of_epoch() -> None:
    """An epoch was given to `step`, which PyTorch warns of."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
        "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
        "epoch is different from None, the closed form is used instead of the new chainable form, "
        "where available.",
        UserWarning,
        stacklevel=3,
    )


def copied(value: Any) -> Any:
    """A hyperparameter apart from the group that has it."""
    return value.clone() if isinstance(value, Tensor) else value


def values(optimizer: Optimizer, name: str) -> Rates:
    """A hyperparameter of each group."""
    return [copied(group[name]) for group in optimizer.param_groups]


@no_grad()
def set_value(group: Group, name: str, value: Any) -> None:
    """Set a hyperparameter, in place where it is a tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def for_each_group(name: str, optimizer: Optimizer, given: Any) -> list[Any]:
    """One value for all groups, or one for each."""
    count = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [copied(given) for _ in range(count)]
    if len(given) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(given)} "
            f"values, param_groups has {count}."
        )
    return list(map(copied, given))


# --- functions of users, of whose state only that of objects is saved ----------------------------


def functions(optimizer: Optimizer, given: Any) -> list[Callable[[int], float]]:
    """One function of the epoch for all groups, or one for each."""
    count = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
    return list(given)


def function_state(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object, None of a function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(vars(function))


def load_functions(own: Sequence[Any], states: Sequence[dict[str, Any] | None]) -> None:
    """Give callable objects the attributes that were saved."""
    for function, saved in zip(own, states, strict=True):
        if saved is not None:
            vars(function).update(saved)
