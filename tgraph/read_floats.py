"""Floats that a compiled function reads from closures, globals and attributes, and that change.

At first such a float is fixed in the plan, guarded by value. Once it has changed it becomes an
input: while the function is traced, a TracedFloat stands in its place (`standing_in`), and every
call reads the place anew. A float whose value the function asks for stays fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .guards import Guard, Watch, same_static
from .trace_context import Trace
from .trace_state import Source
from .traced_float import Specialize, TracedFloat

Place = tuple[int, str]
"""Where a value is read: the id of the object that holds it, and the rest of the code."""

_CODE = re.compile(r"(h\d+)((?:\[.*\]|\.cell_contents))", re.DOTALL)


@dataclass(frozen=True, eq=False)
class FloatRead:
    """A float that is read through Python and fed to the plan at each call."""

    path: str
    code: str
    namespace: dict[str, Any]
    place: Place

    def getter(self) -> Callable[[], float]:
        read: Callable[[], float] = eval(f"lambda: {self.code}", self.namespace)
        return read

    def now(self) -> Any:
        return Guard(self.path, self.code, None, False).now(self.namespace)

    def put(self, value: Any) -> None:
        exec(f"{self.code} = value", self.namespace, {"value": value})


@dataclass(eq=False)
class FloatReads:
    """What is known of the floats that one function reads."""

    _moving: dict[Place, Any] = field(default_factory=dict)  # place -> its holder, kept alive
    _fixed: set[Place] = field(default_factory=set)
    _taken: list[FloatRead] = field(default_factory=list)  # the last ones
    _announced: set[Place] = field(default_factory=set)

    def note(self, guards: Iterable[Guard], namespace: dict[str, Any]) -> None:
        """Remember the floats among guarded values that have changed."""
        for guard in guards:
            found = _CODE.fullmatch(guard.code)
            if type(guard.expected) is not float or found is None:
                continue
            holder = namespace[found[1]]
            if isinstance(holder, tuple):
                continue
            if type(now := guard.now(namespace)) is float and not same_static(guard.expected, now):
                self._moving[id(holder), found[2]] = holder

    def take(self, watch: Watch) -> list[FloatRead]:
        """The floats that are to be inputs; only their type is guarded from now on."""
        reads = []
        for code, guard in list(watch.guards.items()):
            found = _CODE.fullmatch(code)
            if type(guard.expected) is not float or found is None:
                continue
            place = (id(watch.namespace[found[1]]), found[2])
            if place in self._moving and place not in self._fixed:
                reads.append(FloatRead(guard.path, code, watch.namespace, place))
                kind = Guard(f"type({guard.path})", f"type({code})", float, False)
                watch.guards[code] = kind
        self._taken = reads
        return reads

    def fix(self, reads: Iterable[FloatRead]) -> None:
        """Their values were asked for: fixed numbers from now on."""
        self._fixed.update(read.place for read in reads)

    def news(self) -> str:
        """What the reason for a plan says of floats that are inputs for the first time."""
        new = [each for each in self._taken if each.place not in self._announced | self._fixed]
        self._announced.update(each.place for each in new)
        return "".join(f"; `{each.path}` is an input from now on" for each in new)


@contextmanager
def standing_in(trace: Trace, reads: list[FloatRead]) -> Iterator[None]:
    """Traced floats in the places of floats; Specialize where the function left one behind."""
    before: list[tuple[FloatRead, Any, Any]] = []
    left: frozenset[Source] = frozenset()
    try:
        for read in reads:
            getter = read.getter()
            stand_in = trace.host_number(getter, None, read.path)
            before.append((read, getter(), stand_in))
            read.put(stand_in)
        yield
    finally:
        for read, value, stand_in in before:
            now = read.now()
            if type(now) is TracedFloat:
                read.put(value)
                if now is not stand_in:
                    left |= now.sources
    if left:
        raise Specialize(left)
