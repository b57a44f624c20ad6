"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.grad_mode import enable_grad, no_grad
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..ops.complex_numbers import view_as_real
from ..ops.concatenation import cat
from ..ops.creation import zeros_like
from ..tracing.api import is_tracing
from .hyperparameters import Group, check_not_negative
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, Parameters


class LBFGS(Optimizer):
    """Steps along the gradient times an inverse Hessian, estimated from the last changes of both.

    A step takes a closure that computes the loss and its gradients, and calls it many times: for
    `max_iter` iterations and `max_eval` calls (5 / 4 of these by default) at most, or until no
    gradient is above `tolerance_grad` or no change above `tolerance_change`. An iteration moves by
    lr, the first one by less; with `line_search_fn="strong_wolfe"` a line search chooses how far.
    There is one group of parameters. The closure may be a compiled function; a step as a whole
    decides by values what it does next, and is not compiled.

    Source: PyTorch's `torch.optim.LBFGS`; Nocedal and Wright, "Numerical optimization" (2006).

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
    >>> optimizer = tg.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    17.0
    >>> bool((abs(x - 3) < 0.01).all())
    True
    """

    counts_steps = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _check_group(self, group: Group) -> None:
        check_not_negative(group, "lr")

    @property
    def _params(self) -> list[Tensor]:
        parameters: list[Tensor] = self.param_groups[0]["params"]
        return parameters

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` iterations; gives what the closure gave first."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        if is_tracing():
            raise TraceError(
                "LBFGS.step() decides by the values of losses and gradients what it does next, and "
                "cannot be compiled. Compile the closure instead, and call step() as usual."
            )
        return _Iterations(self, closure).run()

    # --- parameters as one vector ---

    def _gather(self) -> Tensor:
        """All gradients, zeros where there is none."""
        found = [zeros_like(each) if each.grad is None else each.grad for each in self._params]
        return cat([_real(each).reshape(-1) for each in found])

    def _move(self, length: Any, direction: Tensor) -> None:
        offset = 0
        for each in map(_real, self._params):
            part = direction[offset : offset + each.numel()].reshape(each.shape)
            each.add_(part * length)
            offset += each.numel()


class _Iterations:
    """One step: iterations that share the state of the optimizer."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.optimizer = optimizer
        self.group = optimizer.param_groups[0]
        self.state = optimizer.state[optimizer._params[0]]
        self.rate = float(self.group["lr"])
        self.closure = closure

    def run(self) -> Any:
        group, state = self.group, self.state
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._evaluate()
        loss, calls = float(first), 1
        state["func_evals"] += 1
        gradient = self.optimizer._gather()
        if self._is_optimal(gradient):
            return first
        previous_loss, direction, length = state.get("prev_loss"), state.get("d"), state.get("t")
        for turn in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient, direction, length)
            state["prev_flat_grad"], previous_loss = gradient.clone(), loss
            length = self.rate
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / float(gradient.abs().sum())) * self.rate
            slope = float(gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            made, is_last = 0, turn == group["max_iter"]
            if group["line_search_fn"] is not None:
                start = Point(0, loss, gradient, slope)
                found, made = self._search(start, direction, length, group["max_eval"] - calls)
                length, loss, gradient = found.length, found.loss, found.gradient
                self.optimizer._move(length, direction)
            else:
                self.optimizer._move(length, direction)
                if not is_last:  # which nobody would look at
                    loss, made = float(self._evaluate()), 1
                    gradient = self.optimizer._gather()
            calls += made
            state["func_evals"] += made
            moved = float((direction * length).abs().max())
            if is_last or calls >= group["max_eval"] or self._is_optimal(gradient):
                break
            if moved <= group["tolerance_change"]:
                break
            if abs(loss - previous_loss) < group["tolerance_change"]:
                break
        state.update(d=direction, t=length, prev_loss=previous_loss)
        for name in ("old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"):
            state[name] = state.pop(name, None)  # in PyTorch's order
        return first

    def _evaluate(self) -> Any:
        with enable_grad():
            return self.closure()

    def _is_optimal(self, gradient: Tensor) -> bool:
        return float(gradient.abs().max()) <= self.group["tolerance_grad"]

    def _direction(self, gradient: Tensor, direction: Any, length: Any) -> Tensor:
        """Minus the inverse Hessian times the gradient, by the recursion over two loops."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], direction * length
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(changes) == self.group["history_size"]:
                for each in (changes, steps, inverses):
                    each.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        shares = state.setdefault("al", [None] * self.group["history_size"])
        result = -gradient
        for at in reversed(range(len(changes))):
            shares[at] = steps[at].dot(result) * inverses[at]
            result = result - changes[at] * shares[at]
        result = result * state["H_diag"]
        for at in range(len(changes)):
            share = changes[at].dot(result) * inverses[at]
            result = result + steps[at] * (shares[at] - share)
        return result

    def _search(self, start: Point, direction: Tensor, length: Any, most: int) -> tuple[Point, int]:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        optimizer = self.optimizer
        kept = [each.clone() for each in optimizer._params]

        def at(length: Any) -> Point:
            optimizer._move(length, direction)
            loss = float(self._evaluate())
            gradient = optimizer._gather()
            for each, value in zip(optimizer._params, kept, strict=True):
                each.copy_(value)
            return Point(length, loss, gradient, float(gradient.dot(direction)))

        reach = float(direction.abs().max())
        tolerance = self.group["tolerance_change"]
        return strong_wolfe(at, start, length, reach, most, tolerance=tolerance)


def _real(tensor: Tensor) -> Tensor:
    return view_as_real(tensor) if tensor.is_complex() else tensor
