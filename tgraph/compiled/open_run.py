"""The hot path of an OpenCall: from the sizes of a call to the run of the plan for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..tracing.recording.places import Place
from .call_helpers import MISS
from .compiled_call import CompiledCall

MOST_NAMES = 24
"""Of plans with more names of their own, the look-up of a plan is a small part of a call."""

_GENERATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<open call>")
_CHOOSER = """def run(leaves, given=None):
    try:
        {values}found = RUNS[{key}]
    except (KeyError, AttributeError, IndexError):
        return MISS
    return found(leaves, given)
"""
_LOOK_UP = """    try:
        own = LATEST[0]
        if {new}:
            own = OWN.get({key})
            if own is not None:
                LATEST[0] = own
    except (AttributeError, IndexError):
        return MISS
    if own is None:
        return OTHERS(leaves, given)
    {names}, = own
"""


class OpenRun:
    """`run(leaves, given)` of the plans for all sizes; MISS where there is none, or it misses.

    `axes` tell the sizes: positions of leaves, and axes. Plans look at shapes themselves, so that
    an axis for each size is enough to find one. What lies in the `places` follows the leaves.
    """

    def __init__(self, axes: Sequence[tuple[int, int]], places: Sequence[Place]) -> None:
        self._axes = list(axes)
        self._places = places
        self._runs: dict[Any, Callable[..., Any]] = {}
        self._own: _OwnRun | None = None
        self._chooser = self.run = self._written()

    def _written(self) -> Callable[..., Any]:
        values = "values" if self._places else "leaves"
        sizes = [f"{values}[{at}]._type.shape[{axis}]" for at, axis in self._axes]
        text = _CHOOSER.format(
            values="values = [*leaves, *[place.now() for place in PLACES]]; "
            if self._places
            else "",
            key=", ".join(sizes),
        )
        names: dict[str, Any] = {"RUNS": self._runs, "PLACES": self._places, "MISS": MISS}
        return _executed(text, names)

    def put(self, sizes: tuple[int, ...], plan: CompiledCall) -> None:
        """Let a plan run where the axes have certain sizes."""
        key = sizes[0] if len(sizes) == 1 else sizes
        self._runs[key] = plan.run
        if self._places:
            return
        if self._own is None or not self._own.takes(plan):
            self._own = _OwnRun.made_for(plan, self._axes, self._chooser)
        if self._own is None:
            self.run = self._chooser
        else:
            self._own.put(key, plan)
            self.run = self._own.run

    def drop(self, sizes: tuple[int, ...]) -> None:
        key = sizes[0] if len(sizes) == 1 else sizes
        self._runs.pop(key, None)
        if self._own is not None:
            self._own.drop(key)

    def clear(self) -> None:
        self._runs.clear()
        self._own, self.run = None, self._chooser


class _OwnRun:
    """One function for plans whose texts are the same, which looks up what each has of its own.

    That takes less than to look up a function, and to call that. Where the types of arguments are
    those of the call before, nothing is looked up.
    """

    def __init__(
        self,
        plan: CompiledCall,
        axes: Sequence[tuple[int, int]],
        types: Mapping[int, str],
        others: Callable[..., Any],
    ) -> None:
        self._source, self._names = plan.source, plan.own_names
        self._values: dict[Any, tuple[Any, ...]] = {}
        self._latest: list[Any] = [(None,) * len(self._names)]
        head, first, *rest = plan.source.splitlines(keepends=True)
        key = ", ".join(f"a{at}._type.shape[{axis}]" for at, axis in axes)
        look_up = _LOOK_UP.format(
            new=" or ".join(
                f"a{at}._type is not own[{self._names.index(name)}]" for at, name in types.items()
            ),
            key=f"({key})" if len(axes) > 1 else key,
            names=", ".join(self._names),
        )
        self._namespace = namespace = dict(plan.namespace)
        namespace |= {"OWN": self._values, "LATEST": self._latest, "OTHERS": others, "MISS": MISS}
        self.run = _executed("".join([head, first, look_up, *rest]), namespace)
        code = self.run.__code__  # type: ignore[attr-defined]
        self._shared = [name for name in code.co_names if name in plan.namespace]

    @classmethod
    def made_for(
        cls, plan: CompiledCall, axes: Sequence[tuple[int, int]], others: Callable[..., Any]
    ) -> _OwnRun | None:
        """None where a plan has no such function, or it would not pay."""
        if plan.run is not plan.generated or len(plan.own_names) > MOST_NAMES:
            return None
        leaves = dict.fromkeys(at for at, _ in axes)
        found = {at: re.search(rf"\ba{at}\._type is (k\d+) or", plan.source) for at in leaves}
        types = {at: match[1] for at, match in found.items() if match is not None}
        if len(types) < len(leaves) or "NAMESPACE" in plan.namespace:
            return None
        return cls(plan, axes, types, others)

    def takes(self, plan: CompiledCall) -> bool:
        """Whether a plan runs as the first one does, but for what it has of its own."""
        return (
            plan.run is plan.generated
            and plan.source == self._source
            and all(plan.namespace.get(name) is self._namespace[name] for name in self._shared)
        )

    def put(self, key: Any, plan: CompiledCall) -> None:
        self._values[key] = tuple(plan.namespace[name] for name in self._names)

    def drop(self, key: Any) -> None:
        self._values.pop(key, None)
        self._latest[0] = (None,) * len(self._latest[0])


def _executed(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(text, _GENERATED, "exec"), names)
    found: Callable[..., Any] = names["run"]
    return found
