"""Branches and loops over arrays; their graphs come as functions, called as array functions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .array_functions_elementwise import Array, Function

Run = Callable[..., tuple[Array, ...]]


def _branch(xp: Any, index: Array, *operands: Array, branches: Sequence[Run]) -> tuple[Array, ...]:
    return branches[min(max(int(index), 0), len(branches) - 1)](xp, *operands)


def _loop(xp: Any, *operands: Array, condition: Run, body: Run, carried: int) -> tuple[Array, ...]:
    state, captures = operands[:carried], operands[carried:]
    while bool(condition(xp, *state, *captures)[0]):
        state = body(xp, *state, *captures)
    return state


FUNCTIONS: dict[str, Function] = {"branch": _branch, "loop": _loop}
