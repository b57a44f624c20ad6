"""Rates and momenta that rise and fall together, in opposite directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..hyperparameters import Group
from ..optimizer import Optimizer
from .base import (
    LRScheduler,
    Rates,
    check_optimizer,
    for_each_group,
    function_state,
    set_value,
)


class _WithMomentum(LRScheduler):
    """A scheduler that sets the momentum, or the first of the betas, too."""

    cycle_momentum: bool
    use_beta1: bool

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults

    def _begin_momentum(self, optimizer: Optimizer, high: list[Any], low: list[Any]) -> None:
        for most, least, group in zip(high, low, optimizer.param_groups, strict=True):
            self._set_momentum(group, most)
            group["max_momentum"], group["base_momentum"] = most, least

    def _set_momentum(self, group: Group, momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Rates that go up from `base_lr` to `max_lr` and down again, again and again.

    The height of a cycle stays ("triangular"), halves with each ("triangular2") or falls with each
    epoch by `gamma` ("exp_range"); or `scale_fn` tells it, of the cycle or of the iteration. The
    momentum falls while the rate rises.
    Source: Smith, "Cyclical learning rates for training neural networks" (2015).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(optimizer, self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high a cycle is, by its number or by that of the iteration."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        is_rising = place <= self.step_ratio
        share = place / self.step_ratio if is_rising else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            lowest, highest = self.base_momentums, self.max_momentums
            for group, low, high in zip(self.optimizer.param_groups, lowest, highest, strict=True):
                self._set_momentum(group, high - (high - low) * share * scale)
        return [
            low + (high - low) * share * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        del state["_scale_fn_custom"]
        state["_scale_fn_custom"] = function_state(self._scale_fn_custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = dict(state_dict)
        saved = given.pop("_scale_fn_custom")
        vars(self).update(given)
        if saved is not None:
            vars(self._scale_fn_custom).update(saved)


class OneCycleLR(_WithMomentum):
    """Rates that rise to `max_lr` and fall far below where they began, in `total_steps` steps.

    `pct_start` of them are the rise, from max_lr / div_factor; the fall ends at that over
    `final_div_factor`. With `three_phase` the rate first comes back to where it began. The momentum
    goes the other way.
    Source: Smith and Topin, "Super-convergence: Very fast training of neural networks using large
    learning rates" (2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        highest = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for high, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            high = for_each_group("max_momentum", optimizer, max_momentum)
            low = for_each_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                self._begin_momentum(optimizer, high, low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        begin = 0.0
        for phase in self._schedule_phases:
            if self.last_epoch <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (self.last_epoch - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group, phase, "lr", share))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group, phase, "momentum", share))
        return rates

    def _between(self, group: Group, phase: dict[str, Any], name: str, share: float) -> Any:
        start, end = group[phase[f"start_{name}"]], group[phase[f"end_{name}"]]
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _total(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    def positive(name: str, value: Any) -> int:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total_steps is not None:
        return positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)


def _phases(total: int, rise: float, three: bool) -> list[dict[str, Any]]:
    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": rates[0],
            "end_lr": rates[1],
            "start_momentum": momenta[0],
            "end_momentum": momenta[1],
        }

    low, high = "base_momentum", "max_momentum"
    up = phase(float(rise * total) - 1, ("initial_lr", "max_lr"), (high, low))
    if not three:
        return [up, phase(total - 1, ("max_lr", "min_lr"), (low, high))]
    return [
        up,
        phase(float(2 * rise * total) - 2, ("max_lr", "initial_lr"), (low, high)),
        phase(total - 1, ("initial_lr", "min_lr"), (high, high)),
    ]
