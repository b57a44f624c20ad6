"""A recorded call that runs in stages, as the sizes of later ones are counted by earlier ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..compiler.ir import Node
from ..compiler.ir.dim import SymInt, is_open
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.eager_context import EAGER
from ..core.tensor import Tensor
from ..runtime.garbage import no_collection
from ..tracing.recorded_call import Call
from ..tracing.recording.guards import Guard
from ..tracing.recording.places import Place
from .call_helpers import MISS
from .compiled_call import CompiledCall
from .open_call import OpenCall
from .stages import Stage

AnyPlan = CompiledCall | OpenCall


class Handed(threading.local):
    """What a stage is given by earlier ones, in the thread that runs it."""

    values: Sequence[Tensor] = ()

    @contextmanager
    def given(self, stage: Stage, values: Mapping[Node, Tensor]) -> Iterator[None]:
        self.values = [values[node] for node in stage.reads]
        try:
            yield
        finally:
            self.values = ()

    def places(self, count: int) -> list[Place]:
        """Where it lies, for the call of the stage."""
        return [Place(f"selected{at}", self, f".values[{at}]") for at in range(count)]


class StagedCall:
    """Stands among the plans of a function.

    `build(call, axes, places)` makes the plan of a stage: its `axes` are of open size, and what is
    handed to it lies in `places`. `given` is the number of arguments and places of the function.
    All stages run once, as later ones are made for what earlier ones count. Only the last one has
    effects, so that a call that turns out not to fit has changed nothing.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        given: int,
        build: Callable[[Call, Mapping[tuple[int, int], SymInt], Sequence[Place]], AnyPlan],
        leaves: Sequence[Any],
    ) -> None:
        self._stages: list[tuple[Stage, AnyPlan, Handed]] = []
        values: dict[Node, Tensor] = {}
        for stage in stages:
            handed = Handed()
            axes = {
                (given + at, axis): size
                for at, node in enumerate(stage.reads)
                for axis, size in enumerate(node.type.shape)
                if is_open(size)
            }
            with handed.given(stage, values):
                plan = build(stage.call, axes, handed.places(len(stage.reads)))
                self._stages.append((stage, plan, handed))
                if stage.makes:
                    _count(stage, _known_or_new(plan, leaves), values)
                else:
                    self._run_at = StagedRun(self, plan.at(leaves), [])
        self._why: str | None = None  # an earlier stage did not fit the last time
        self._first, self._last = self._stages[0][1], self._stages[-1][1]

    def run(self, leaves: Sequence[Any], given: Any = None) -> Any:
        """MISS where the call does not fit."""
        return self._through(leaves, lambda plan: _known_or_new(plan, leaves, given))

    def _through(
        self,
        leaves: Sequence[Any],
        last: Callable[[AnyPlan], Any],
        before: Callable[[AnyPlan], Any] = lambda plan: None,
    ) -> Any:
        """Runs all stages but the last, and `last` on the plan of that; MISS where they do not
        fit. What they are handed is there meanwhile, and when `before` has run for each."""
        values: dict[Node, Tensor] = {}
        for stage, plan, handed in self._stages:
            with handed.given(stage, values):
                if not stage.makes:
                    return last(plan)
                results = _known_or_new(plan, leaves)
                if results is MISS:
                    self._why = plan.why_not(leaves)
                    return MISS
                before(plan)
            _count(stage, results, values)
        raise AssertionError("there is a last stage")

    def at(self, leaves: Sequence[Any]) -> StagedRun:
        """What a call that fits runs."""
        earlier: list[CompiledCall] = []
        found = self._through(
            leaves, lambda plan: plan.at(leaves), lambda plan: earlier.append(plan.at(leaves))
        )
        self._run_at = StagedRun(self, found, earlier)
        return self._run_at

    def within(self, leaves: Sequence[Any], action: Callable[[CompiledCall], Any]) -> Any:
        """What `action` gives for the plan of the last stage, while that is handed its values."""
        return self._through(leaves, lambda plan: action(plan.at(leaves)))

    def why_not(self, leaves: Sequence[Any]) -> str | None:
        why = self._first.why_not(leaves)
        if why is not None:
            return why
        found = self._through(leaves, lambda plan: (plan.why_not(leaves),))
        return self._why if found is MISS else found[0]

    def distance(self, leaves: Sequence[Any]) -> int:
        return self._first.distance(leaves)

    def leaves_out(self, leaves: Sequence[Any]) -> bool:
        return isinstance(self._first, OpenCall) and self._first.leaves_out(leaves)

    @property
    def size_notes(self) -> list[str]:
        """Which sizes this holds for, in words."""
        notes = self._last.size_notes if isinstance(self._last, OpenCall) else []
        counted = [each for stage, _, _ in self._stages for each in stage.selects]
        told = [f"{each.dim.name} is counted at {each.where}" for each in counted]
        return told + [each for each in notes if not each.startswith("selected")]

    @property
    def axes(self) -> Any:
        return self._first.axes if isinstance(self._first, OpenCall) else {}

    @property
    def reason(self) -> str:
        return self._first.reason

    @property
    def guards(self) -> list[Guard]:
        return self._first.guards

    @property
    def environment(self) -> dict[str, Any]:
        return self._first.environment

    def moved_numbers(self, leaves: Sequence[Any]) -> list[int]:
        return self._first.moved_numbers(leaves)

    def rebind(self) -> None:
        for _, plan, _ in self._stages:
            plan.rebind()


class StagedRun:
    """What one call of a StagedCall runs; of what is told of a plan, it tells that of the last."""

    def __init__(
        self, whole: StagedCall, last: CompiledCall, earlier: Sequence[CompiledCall]
    ) -> None:
        self.run, self.within, self._last, self.earlier = whole.run, whole.within, last, earlier

    def __getattr__(self, name: str) -> Any:
        return getattr(self._last, name)


def within(
    plan: CompiledCall | StagedRun,
    leaves: Sequence[Any],
    action: Callable[[CompiledCall], Any],
) -> Any:
    """What `action` gives for a plan, or for that of the last stage, which can be run there."""
    return plan.within(leaves, action) if isinstance(plan, StagedRun) else action(plan)


def _known_or_new(plan: AnyPlan, leaves: Sequence[Any], given: Any = None) -> Any:
    """The result of a plan, which is made if it is one for other sizes; MISS if it does not fit."""
    results = plan.run(leaves, given)
    if results is not MISS:
        return results
    refuse_at_exit()
    with COMPILE_LOCK, no_collection():
        if plan.why_not(leaves) is not None:
            return MISS
        plan.rebind()
        found = plan.at(leaves)
    return found.run(leaves, given)


def _count(stage: Stage, results: Sequence[Tensor], values: dict[Node, Tensor]) -> None:
    """Takes in what a stage has computed, and the positions that are found in it."""
    values.update(zip(stage.makes, results, strict=True))
    for each in stage.selects:
        found = EAGER.positions(values[each.mask], "nonzero()")
        values.update(zip((entry.node for entry in each.inputs), found, strict=True))
