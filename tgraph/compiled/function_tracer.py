"""The traces of a compiled function: what is an input in them, and what has to be fixed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..compiler.ir.dim import Dim, SizeGuard, SymInt
from ..core import pytree
from ..core.trace_state import Rewrite, Source, TraceAgain, TraceError
from ..core.traced_float import Specialize
from ..runtime.records import NamedTuple
from ..tracing.record_call import called, leaf_names, record_call
from ..tracing.recorded_call import Call
from ..tracing.recording.guards import Guard
from ..tracing.recording.places import Place, Places, is_number
from ..tracing.recording.recorder import Recorder
from ..tracing.selections import settle
from ..tracing.trace_context import Trace
from .dynamic_axes import DynamicAxes, Open
from .dynamic_axes import Place as AxisPlace
from .stages import positions_now


class Recording(NamedTuple):
    """One call as it was traced, and what the function read by itself (`recorder`).

    `numbers` are the positions of leaves that are inputs although they are plain numbers; what
    lies in the `places` follows those of the call. `axes` are of open size.
    """

    call: Call
    numbers: frozenset[int]
    places: list[Place]
    recorder: Recorder
    axes: dict[AxisPlace, SymInt]


class FunctionTracer:
    """Traces a function for its calls, and knows what is an input in the traces of one structure.

    Numbers are plain ones until they have changed, then inputs; those whose value the function asks
    for are fixed again. So are the sizes of `axes`, which are open from the start.
    """

    def __init__(self, function: Callable[..., Any], dynamic: Any, control_flow: bool) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.control_flow = control_flow
        self.axes = DynamicAxes(function, dynamic)
        # Positions of numbers that changed, and of those whose value the function asks for.
        self._moving: dict[pytree.TreeSpec, set[int]] = {}
        self._fixed: dict[pytree.TreeSpec, set[int]] = {}
        self._announced: dict[pytree.TreeSpec, set[int]] = {}
        # Axes named in `dynamic` whose size the function asks for, and where.
        self._fixed_sizes: dict[pytree.TreeSpec, dict[AxisPlace, str]] = {}
        self._names: dict[pytree.TreeSpec, list[str]] = {}
        self._places = Places()

    def names_of(self, spec: pytree.TreeSpec) -> list[str]:
        """What the user calls each leaf."""
        if spec not in self._names:
            self._names[spec] = leaf_names(self.function, spec)
        return self._names[spec]

    def check(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> None:
        """Refuse arguments whose axes are not what `dynamic` says of them."""
        if self.axes:
            names = self.names_of(spec)
            self.axes.check(self.axes.places(leaves, names), leaves, names)

    def open_places(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> Open:
        """The axes whose size is left open in a trace of this call."""
        fixed = self._fixed_sizes.setdefault(spec, {})
        places = self.axes.places(leaves, self.names_of(spec))
        return {place: size for place, size in places.items() if place not in fixed}

    def record(
        self,
        leaves: Sequence[Any],
        spec: pytree.TreeSpec,
        open_places: Open = MappingProxyType({}),
    ) -> Recording:
        """Trace the function, again where a number or size turns out to have to be a fixed one."""
        static: frozenset[Source] = frozenset()
        fixed_sizes: dict[AxisPlace, str] = {}
        names = self.names_of(spec)
        rewritings = rewritings_of(self.function) if self.control_flow else None
        joined: dict[Dim, Dim] = {}
        asks_counts = False
        begun = 0
        while True:
            fixed = self._fixed.setdefault(spec, set())
            places = self._places.take()
            values = [*leaves, *(place.now() for place in places)]
            moving = {*self._moving.get(spec, ()), *range(len(leaves), len(values))} - fixed
            moving = {at for at in moving if is_number(values[at])}
            recorder = Recorder()
            count = functools.partial(positions_now, values)
            trace = Trace(recorder.names, static, f"'{self.name}'", count=count)
            if rewritings is not None:
                trace.rewritings, recorder.rewritten = rewritings, rewritings.code_of
            trace.sizes.asks_counts = asks_counts
            still = {at: size for at, size in open_places.items() if at not in fixed_sizes}
            axes = trace.sizes.open(still, leaves, self.axes.sizes(still, leaves), joined)
            labels = [*names, *(place.path for place in places)]
            try:
                call = record_call(
                    self.function, values, spec, labels, trace, recorder, frozenset(moving),
                    places=places,
                )  # fmt: skip
                settle(trace)
            except Specialize as needed:
                static |= {source for source in needed.sources if source.kind == "host"}
                asked = {each.key for each in needed.sources if each.kind == "number"}
                self._fix(asked, fixed, places, len(leaves))
                sizes = {each.key for each in needed.sources if each.kind == "size"}
                fixed_sizes.update(dict.fromkeys(_with(sizes, axes), trace.sizes.refused))
                continue
            except Rewrite as asked:
                rewritings = asked.rewritings
                continue
            except TraceAgain as asked:
                begun += 1
                asked.check(begun)
                continue
            except Exception as error:
                if trace.selections and not asks_counts and not isinstance(error, TraceError):
                    asks_counts = True
                    continue
                if axes and not isinstance(error, MemoryError):
                    accident = trace.sizes.accident
                    if accident is not None:  # the sizes have to be equal, as they are
                        fixed_sizes.update(_settled(accident, axes, trace.sizes.said, joined))
                        continue
                    fixed_sizes.update(dict.fromkeys(axes, f"a trace for any size fails: {error}"))
                    continue
                if not moving:
                    raise
                # What some code takes for a plain number is one now: the error is told by that.
                self._fix(moving, fixed, places, len(leaves))
                continue
            if axes and not trace.sizes.hold(trace.sizes.hints):  # equal to something by accident
                open_places = {}
                continue
            self._fixed_sizes.setdefault(spec, {}).update(fixed_sizes)
            self._places.forget(places[at - len(leaves)] for at in call.unread)
            return Recording(call, frozenset(moving), places, recorder, axes)

    def fix_sizes(self, axes: Iterable[AxisPlace], spec: pytree.TreeSpec, why: str) -> None:
        """Sizes of these axes are fixed in plans from now on."""
        self._fixed_sizes.setdefault(spec, {}).update(dict.fromkeys(axes, why))

    def _fix(
        self, positions: Iterable[int], fixed: set[int], places: Sequence[Place], count: int
    ) -> None:
        """The numbers at these positions are fixed from now on."""
        fixed.update(at for at in positions if at < count)
        self._places.fix(places[at - count] for at in positions if at >= count)

    def note_changes(
        self,
        guards: Iterable[Guard],
        namespace: dict[str, Any],
        numbers: Iterable[int],
        spec: pytree.TreeSpec,
    ) -> None:
        """Remember the guarded places and the numbers that differ from those of a plan."""
        self._places.note(guards, namespace)
        self._moving.setdefault(spec, set()).update(numbers)

    def news(self, recording: Recording, spec: pytree.TreeSpec) -> str:
        """What the reason for a plan says of what is an input for the first time."""
        names, announced = self.names_of(spec), self._announced.setdefault(spec, set())
        new = sorted(at for at in recording.numbers if at < len(names) and at not in announced)
        announced.update(new)
        changed = ", ".join(f"`{names[at]}`" for at in new)
        told = f"; {changed} is an input from now on" if new else ""
        return told + self._places.news(recording.places)

    def fixed_sizes(
        self, leaves: Sequence[Any], spec: pytree.TreeSpec, known: Collection[AxisPlace]
    ) -> Iterator[str]:
        """Why sizes named in `dynamic` that are not `known` to a plan are fixed there."""
        names, fixed = self.names_of(spec), self._fixed_sizes.get(spec, {})
        for at, axis in self.axes.places(leaves, names):
            if (at, axis) not in known:
                size = leaves[at].shape[axis]
                why = fixed.get((at, axis), "it is singled out by what is assumed of other sizes")
                yield f"{names[at]}.shape[{axis}] is fixed to {size}: {why}"


def _with(dims: Collection[Dim], axes: Mapping[AxisPlace, SymInt]) -> list[AxisPlace]:
    """The axes whose sizes are computed from some of these dims."""
    return [place for place, size in axes.items() if not size.dims.isdisjoint(dims)]


def _settled(
    accident: SizeGuard,
    axes: Mapping[AxisPlace, SymInt],
    said: Mapping[Dim, Dim],
    joined: dict[Dim, Dim],
) -> dict[AxisPlace, str]:
    """Two names for a size that has to be one become one; other sizes are fixed, which is told."""
    dims = [dim for dim in said if (dim,) in accident.size.terms]
    if len(accident.size.terms) == 2 == len(dims) and sum(accident.size.terms.values()) == 0:
        joined[said[dims[1]]] = said[dims[0]]
        return {}
    why = f"{accident._replace(relation='==')} has to hold at {accident.where}"
    return dict.fromkeys(_with(accident.size.dims, axes), why)


def rewritings_of(function: Any) -> Any:
    """What knows the functions that are rewritten, among them this one."""
    from ..rewriting.rewritings import REWRITINGS

    code = getattr(getattr(called(function), "__func__", called(function)), "__code__", None)
    if code is not None:
        REWRITINGS.add(code)
    return REWRITINGS
