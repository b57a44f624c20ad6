"""One run of a part of a graph, made ready to be repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..compiler.ir import Node
from ..compiler.ir.dim import Dim, is_open
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import TraceError
from ..runtime.arrays import contiguous, copy_of, place
from ..runtime.device import CPU, Device
from ..tracing.recording.guards import brief
from .fetch_plan import FetchPlan
from .fetches import Fetches
from .graph_trace import GraphTrace
from .placeholder import Placeholder
from .reads import reader
from .staged_executable import StagedExecutable
from .variables import Variables

Array = Any  # of NumPy or CuPy


_DRAWING = threading.RLock()
"""Held from the reading of a generator's counter to its writing: sessions share generators."""


class Run:
    """Runs a plan on arrays of certain shapes, with the variables of one session."""

    def __init__(
        self,
        asked: Fetches,
        fed: Sequence[Placeholder],
        plan: FetchPlan,
        sizes: Mapping[Dim, int],
        variables: Variables,
        trace: GraphTrace,
        held: Mapping[Node, Array] = MappingProxyType({}),
    ) -> None:
        known = trace.sizes.known(sizes)
        is_staged, types = len(plan.stages) > 1, plan.types(known)
        self.plan = plan
        self.executable: Any = (
            StagedExecutable(plan, trace, sizes) if is_staged else plan.stages[0].plans.at(known)
        )
        self._asked, self._held = asked, fed  # so that ids stay theirs
        self._lock = variables.lock
        self._static = trace.static_reads
        needed, nodes = plan.needed, [each.node for each in fed]
        self._draws, self._counted = needed.draws, needed.counted
        self._template: list[Array] = [None] * len(needed.inputs)
        self._fed: list[tuple[int, int]] = []
        self._placed: list[tuple[int, Device]] = []  # what is fed to, or read for, other devices
        self._reads: list[tuple[int, Callable[[], Array]]] = []
        # The sizes that numbers are computed with here; stages compute theirs.
        self._known = None if is_staged or not plan.has_numbers else known
        for at, (entry, node) in enumerate(zip(needed.inputs, plan.inputs, strict=True)):
            if entry.source.kind in ("selected", "number"):  # put in when known
                continue
            is_held = entry.source.kind == "held"
            if is_held and entry.source.key in held:
                self._template[at] = held[entry.source.key]
                continue
            if entry.source.kind == "captured" and variables.has(entry.source.key):
                self._template[at] = variables.array_for(entry.node, entry.source.key)
                continue
            stands_for = entry.source.key if is_held else entry.node
            if stands_for in nodes:
                self._fed.append((nodes.index(stands_for), at))
            else:
                self._reads.append((at, reader(entry)))
            if node.type.device is not CPU:
                self._placed.append((at, node.type.device))
        self._expand = None if plan.outputs.simple else plan.outputs.expand
        first = asked.places[0] if asked.is_single else None
        self._single: tuple[int, Any] | None = None
        if isinstance(first, int) and not any(map(is_open, types[first].shape)):
            self._single = first, types[first]
        self._results = list(_results(asked.places, types, variables))
        self._build = _builder(asked)
        self._execute = self.executable.run
        self._rests = bool(self._draws or self._counted or self._expand)

    def __call__(self, arrays: Sequence[Array]) -> Any:
        if self._static:
            self._check_static()
        with self._lock:
            if self._rests:
                values = self._run_with_rest(arrays)
            else:
                values = self._execute(self.inputs(arrays))
            if self._single is not None:
                at, type_ = self._single
                return wrap(values[at], type_)
            return self._build([make(values) for make in self._results])

    def _check_static(self) -> None:
        for source, value, name in self._static:
            if source.key() != value:
                raise _changed(name, value, source.key())

    def _run_with_rest(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the plan, moves generators on, and gives an array for each output."""
        if not self._counted:
            with _DRAWING:
                inputs = self.inputs(arrays)
                for generator, count in self._draws:
                    generator.counter += count
            return self._values(inputs)
        with _DRAWING:
            inputs = self.inputs(arrays)
            values = self._values(inputs)
            for generator, at in self._counted:
                generator.counter = int(values[at])
            for generator, count in self._draws:
                generator.counter += count
            return values

    def _values(self, inputs: list[Array]) -> list[Array]:
        values: list[Array] = self._execute(inputs)
        return values if self._expand is None else self._expand(values, inputs)

    def stages(self, arrays: Sequence[Array]) -> list[tuple[Any, list[Array]]]:
        """The executable of each stage and what it is given; nothing is written."""
        inputs = self.inputs(arrays)
        executable = self.executable
        if isinstance(executable, StagedExecutable):
            return executable.stages(inputs)
        return [(executable, inputs)]

    def inputs(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays of all inputs of the plan, but of what its stages find."""
        inputs = self._template.copy()
        for at, number in self._fed:
            array = arrays[at]
            inputs[number] = array if array.flags.c_contiguous else contiguous(array)
        if self._reads:
            for number, read in self._reads:
                inputs[number] = read()
        if self._known is not None:
            self.plan.numbers().put(inputs, self._known)
        for number, device in self._placed:
            if type(inputs[number]) is np.ndarray:
                inputs[number] = place(contiguous(inputs[number]), device)
        return inputs


def _builder(asked: Fetches) -> Callable[[list[Any]], Any]:
    """Puts results together as the fetches are nested."""
    if asked.is_single:
        return lambda results: results[0]
    if asked.tree.container in (list, tuple) and asked.is_flat:
        return asked.tree.container
    return asked.tree.unflatten


def _results(
    places: Sequence[int | Tensor | None], types: Sequence[Any], variables: Variables
) -> Iterator[Callable[[Sequence[Array]], Any]]:
    """What gives each result from the values of a plan, all with memory of their own."""
    given: set[int] = set()
    for each in places:
        if isinstance(each, int) and each in given:
            yield _copied(_result(each, types, variables))
        else:
            yield _result(each, types, variables)
        if isinstance(each, int):
            given.add(each)


def _copied(make: Callable[[Sequence[Array]], Tensor]) -> Callable[[Sequence[Array]], Tensor]:
    def made(values: Sequence[Array]) -> Tensor:
        result = make(values)
        return wrap(copy_of(result._value), result._type)

    return made


def _result(place: int | Tensor | None, types: Sequence[Any], variables: Variables) -> Any:
    if place is None:
        return lambda values: None
    if isinstance(place, Tensor):
        return lambda values: variables.get(place)
    type_ = types[place]
    if any(map(is_open, type_.shape)):  # counted by the run
        return lambda values: wrap(
            values[place], intern_type(values[place].shape, type_.dtype, type_.device)
        )
    return lambda values: wrap(values[place], type_)


def _changed(name: str, before: Any, now: Any) -> TraceError:
    return TraceError(
        f"{name} changed since the graph was built: {brief(before)} -> {brief(now)}. It decides "
        "which operations there are: build the graph again."
    )
