"""Scaling of losses, so that small gradients do not become zero in float16."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from ..core.devices import as_device
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.comparison import isfinite
from ..ops.creation import full, zeros
from ..ops.elementwise import where
from ..optim.optimizer import Optimizer
from ..runtime.cuda.devices import is_available
from ..runtime.dtypes import float16, float32, float64, int32
from ..tracing.api import host_scalar, is_tracing, suspend_tracing
from .scaled_steps import gradients, is_used, mark_used, step_where, unscale

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scales losses up and gradients down again, and skips steps with infinite gradients.

    `scale(loss).backward()`, then `step(optimizer)`, then `update()`: the scale is multiplied by
    `backoff_factor` after a step that was skipped, and by `growth_factor` after `growth_interval`
    steps that were not. `unscale_(optimizer)` divides gradients before the step, to clip them. All
    of it may be in a compiled training step: there a step that is skipped is computed and not
    taken, and neither the scale nor the factors compile anything when they change.

    Without a GPU a scaler for "cuda" warns and does nothing; `GradScaler("cpu")` works anywhere.

    Source: PyTorch's `torch.amp.GradScaler`; Micikevicius et al., "Mixed precision training"
    (2017).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer, scaler = tg.optim.SGD([x], lr=0.5), GradScaler("cpu", init_scale=4.0)
    >>> for factor in (1.0, tg.inf):
    ...     optimizer.zero_grad()
    ...     scaler.scale((x * factor).sum()).backward()
    ...     scaler.step(optimizer)
    ...     scaler.update()
    >>> x.item(), scaler.get_scale()
    (0.5, 2.0)
    """

    _scale: Tensor
    _growth_tracker: Tensor
    _stages: dict[Any, str]  # how far an optimizer is in its step
    _found: dict[Any, Tensor]  # whether its gradients are infinite, as 1 or 0

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not is_available():
            warnings.warn(
                "GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._make()

    def scale(self, outputs: Any) -> Any:
        """A tensor, or those of a container, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            mark_used(self)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _make(self) -> None:
        with suspend_tracing():
            device = as_device(self._device)
            self._scale = full((), self._init_scale, dtype=float32, device=device)
            tracker = self._init_growth_tracker
            self._growth_tracker = full((), tracker, dtype=int32, device=device)
        self._stages = {}
        self._found = {}

    def _check_used(self, method: str) -> None:
        if not is_used(self):
            raise AssertionError(
                f"Attempted {method}, but nothing was scaled. This may indicate your script did "
                "not use scaler.scale(loss or outputs) earlier in the iteration."
            )

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, once in a step."""
        if not self._enabled:
            return
        self._check_used("unscale_")
        stage = self._stages.get(optimizer, READY)
        if stage == UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage == STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            inverse = self._scale.to(float64).reciprocal().to(float32)
            found = zeros((), dtype=float32, device=self._scale.device)
            for each in gradients(optimizer):
                if each.dtype is float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                own = found if each.device == found.device else found.to(each.device)
                unscale(each, own, inverse.to(each.device))
                if own is not found:
                    found.copy_(own)
        self._found[optimizer] = found
        self._stages[optimizer] = UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale gradients, unless that is done, and take a step if all of them are finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_used("step")
        stage = self._stages.get(optimizer, READY)
        if stage == STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage == READY:
            self.unscale_(optimizer)
        if not any(True for _ in gradients(optimizer)):
            raise AssertionError("No inf checks were recorded for this optimizer.")
        found, result = self._found[optimizer], None
        if is_tracing():
            result = step_where(found == 0, optimizer, args, kwargs)
        elif not found.item():
            result = optimizer.step(*args, **kwargs)
        self._stages[optimizer] = STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Change the scale by what the steps since the last update found."""
        if not self._enabled:
            return
        self._check_used("update")
        scale, tracker = self._scale, self._growth_tracker
        with no_grad():
            if isinstance(new_scale, Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element tensor with "
                        "requires_grad=False."
                    )
                scale.copy_(new_scale.reshape(()))
            elif new_scale is not None:
                scale.fill_(new_scale)
            else:
                self._follow(scale, tracker)
        self._stages.clear()
        self._found.clear()

    def _follow(self, scale: Tensor, tracker: Tensor) -> None:
        if not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        found: Any = sum(each.to(scale.device) for each in self._found.values())
        growth = host_scalar(lambda: float(self._growth_factor))
        backoff = host_scalar(lambda: float(self._backoff_factor))
        interval = host_scalar(lambda: float(self._growth_interval))
        skipped, steps = found > 0, tracker + 1
        is_due = steps.to(float64) == interval
        grown = scale * growth
        grown = where(is_due & isfinite(grown), grown, scale)
        scale.copy_(where(skipped, scale * backoff, grown))
        tracker.copy_(where(skipped | is_due, tracker * 0, steps))

    # --- settings ---

    def get_scale(self) -> float:
        """The scale as a number, 1 where the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return float(self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Let the scale grow by another factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale falls by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Let the scale fall by another factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Let the scale grow after another number of steps."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        return int(self._growth_tracker.item()) if self._enabled else 0

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    # --- saving ---

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors and the number of steps, empty where the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, ours or PyTorch's."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._scale.fill_(state_dict["scale"])
        self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self._enabled:
            if self._stages:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            for name in ("_scale", "_growth_tracker", "_stages", "_found"):
                del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._enabled:
            self._make()
