"""How many steps parameters have taken: one counter for all that have taken the same.

Bias corrections are computed once for each counter, so a compiled step over many parameters has
them once. A counter is shared by parameters of one group that have always stepped together; those
that step while others wait get one of their own first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from ..core.tensor import Storage, Tensor, storage_of
from ..ops.creation import zeros
from ..runtime.dtypes import float32, float64
from ..tracing.api import is_tracing, suspend_tracing

State = dict[str, Any]
"""The state of a parameter, with its counter as "step"."""


Counted = tuple[Tensor | None, float]
"""A counter that an update is to write, and what it then holds; None for none."""
NOT_COUNTED: Counted = (None, 0.0)


def new_counter(parameter: Tensor) -> Tensor:
    """The number of steps of a parameter, 0 so far. float32, as in PyTorch."""
    counter = zeros((), dtype=float32, device=parameter._type.device)
    remember_count(counter, 0.0)
    return counter


def count_step(counter: Tensor) -> tuple[Any, Tensor | None]:
    """Count one more step. Gives the count, a number, or a tensor in a compiled step.

    On a device the counter itself is given too: the update is to write the count there. Nobody
    waits for the device, except where others have written the counter.
    """
    if not is_tracing() and not counter.is_cpu:
        return _known_count(counter) + 1, counter
    counter.add_(1)
    return counter.to(float64) if is_tracing() else counter.item(), None


class StepsTaken:
    """Counts one more step of each counter that it is called with, once.

    Gives `derive` of the count, a number, or a tensor in a compiled step; and what the update is to
    write, a counter on a device and its count, or None and 0 where that is done.
    """

    def __init__(self, derive: Callable[[Any], Any]) -> None:
        self._derive = derive
        self._found: dict[int, Any] = {}

    def __call__(self, counter: Tensor) -> tuple[Any, Counted]:
        if id(counter) in self._found:
            return self._found[id(counter)], NOT_COUNTED
        with no_grad():
            count, written = count_step(counter)
            found = self._found[id(counter)] = self._derive(count)
        return found, NOT_COUNTED if written is None else (written, count)


def share_counters(states: Iterable[State]) -> None:
    """One counter for states whose counters hold the same, on each device."""
    found: dict[Any, Tensor] = {}
    for each in states:
        counter = each.get("step")
        if isinstance(counter, Tensor):
            with suspend_tracing():
                key = (counter._type.device, _known_count(counter))
            each["step"] = found.setdefault(key, counter)


def part_counters(stepping: Sequence[State], waiting: Iterable[State]) -> bool:
    """New counters for states that share theirs with some that do not step. Whether there were any.

    A trace that has counted steps with the shared ones begins anew, as later calls do not.
    """
    staying = {id(each["step"]) for each in waiting if "step" in each}
    parted: dict[int, Tensor] = {}
    shared: dict[int, Tensor] = {}
    for each in stepping:
        counter = each.get("step")
        if id(counter) in staying:
            if id(counter) not in parted:
                with suspend_tracing():
                    parted[id(counter)] = counter.clone()
            each["step"] = parted[id(counter)]
            shared[id(counter)] = counter
    for counter in shared.values():
        current_context().no_longer_used(counter)
    return bool(parted)


def own_counters(states: Iterable[State]) -> None:
    """A counter for each state, which can then be written without regard for others."""
    for each in states:
        if isinstance(each.get("step"), Tensor):
            each["step"] = _copy_of(each["step"])


def with_own_counters(states: Iterable[State]) -> list[State]:
    """The states, with a copy of the counter in those that share it with one before."""
    seen: set[int] = set()
    result = []
    for each in states:
        counter = each.get("step")
        if isinstance(counter, Tensor) and id(counter) in seen:
            each = {**each, "step": _copy_of(counter)}
        seen.add(id(counter))
        result.append(each)
    return result


def _copy_of(counter: Any) -> Tensor:
    with suspend_tracing():
        copy: Tensor = counter.clone()
    if is_tracing():
        copy.copy_(counter)
    return copy


# id of a counter on a device -> itself, its storage, the version that this has, what it holds
_counts: dict[int, tuple[weakref.ref[Tensor], Storage, int, float]] = {}


def remember_count(counter: Tensor, count: float) -> None:
    """What a counter on a device holds now, as long as nobody writes it."""
    if counter.is_cpu:
        return
    key, storage = id(counter), storage_of(counter)
    reference = weakref.ref(counter, lambda _: _counts.pop(key, None))
    _counts[key] = (reference, storage, storage.version, count)


def _known_count(counter: Tensor) -> float:
    found = _counts.get(id(counter))
    if found is not None:
        reference, storage, version, count = found
        if reference() is counter and storage is counter._storage and storage.version == version:
            return count
    return float(counter.item())
