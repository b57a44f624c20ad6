"""Compiled functions: what `compile` returns, the plans that it makes and chooses among."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.ir import Graph
from ..compiler.ir.dim import Dim, SizeGuard, SymInt
from ..core import pytree
from ..core.anomaly import mode as anomaly
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.provenance import is_internal
from ..core.state import state
from ..core.trace_state import RecompileWarning, Rewrite, Source, TraceError
from ..core.traced_float import Specialize
from ..runtime.garbage import no_collection
from ..runtime.records import NamedTuple, record
from ..tracing.record_call import called, leaf_names, record_call
from ..tracing.recorded_call import Call
from ..tracing.recording.places import Place, Places, is_number
from ..tracing.recording.recorder import Recorder
from ..tracing.selections import settle
from ..tracing.trace_context import Trace
from .call_helpers import MISS
from .compiled_call import CompiledCall
from .dynamic_axes import DynamicAxes, Open
from .dynamic_axes import Place as AxisPlace
from .fed import Fed
from .graph_function import GraphFunction, prepare
from .open_call import OpenCall, open_axes, types_with
from .staged_call import StagedCall, StagedRun, within
from .stages import positions_now, staged

if TYPE_CHECKING:
    from .explain import Explanation

AnyPlan = CompiledCall | OpenCall | StagedCall
AnyRun = CompiledCall | StagedRun

MAX_PLANS = 64
"""Plans kept per structure of arguments; the one unused longest goes first."""
MANY_PLANS = 8
"""So many plans of one function are warned of."""


@record()
class CompileRecord:
    """One compilation: why it was needed and how long its parts took, in seconds.

    `compile_seconds` is all but the trace, `optimize_seconds` and `codegen_seconds` are in it. A
    backward plan is made when it is first needed and not counted.
    """

    reason: str
    trace_seconds: float
    compile_seconds: float
    optimize_seconds: float
    codegen_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.reason} (trace {self.trace_seconds:.3f} s, "
            f"optimize {self.optimize_seconds:.3f} s, codegen {self.codegen_seconds:.3f} s)"
        )


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


class CompiledFunction:
    """What `compile` returns: called like the function itself.

    `compiles` lists a CompileRecord for every plan that was made.
    """

    def __init__(
        self, function: Callable[..., Any], check: bool = False, dynamic: Any = None,
        control_flow: bool = False,
    ) -> None:  # fmt: skip
        self.function = function
        self.check = check
        self.control_flow = control_flow
        self.dynamic = dynamic
        self._axes = DynamicAxes(function, dynamic)
        self.compiles: list[CompileRecord] = []
        self.enabled = os.environ.get("TGRAPH_COMPILE", "1") != "0"
        # Told of a trace that was refused, after which the function runs eagerly, where there is
        # one; otherwise that is an error.
        self.when_refused: Callable[[CompiledFunction, TraceError], None] | None = None
        self._flat: dict[int, list[AnyPlan]] = {}  # by the number of plain arguments
        self._plans: dict[pytree.TreeSpec, list[AnyPlan]] = {}
        # Positions of numbers that changed, and of those whose value the function asks for.
        self._moving: dict[pytree.TreeSpec, set[int]] = {}
        self._fixed: dict[pytree.TreeSpec, set[int]] = {}
        self._announced: dict[pytree.TreeSpec, set[int]] = {}
        # Axes named in `dynamic` whose size the function asks for, and where.
        self._fixed_sizes: dict[pytree.TreeSpec, dict[AxisPlace, str]] = {}
        self._names: dict[pytree.TreeSpec, list[str]] = {}
        self._places = Places()
        self._latest: Callable[[], AnyRun | None] = lambda: None
        if hasattr(function, "__name__"):
            functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    # --- calling ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.context is not None or not self.enabled or self.check or anomaly.enabled:
            return self._call_specially(args, kwargs)
        if not kwargs:
            for plan in self._flat.get(len(args), ()):
                result = plan.run(args)
                if result is not MISS:
                    return result
        return self._call_slowly(args, kwargs)

    def _call_specially(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if state.context is None and self.enabled and not anomaly.enabled:
            leaves, spec = self._flatten(args, kwargs)
            plan = self._plan_or_error(leaves, spec, (args, kwargs))
            from .check import run_checked

            def checked(plan: CompiledCall) -> Any:
                eager = functools.partial(self.function, *args, **kwargs)
                return run_checked(plan, self.name, leaves, eager)

            return within(plan, leaves, checked)
        # Inside a trace the function becomes a part of what is traced.
        if self.control_flow:
            return self._call_rewritten(args, kwargs)
        return self.function(*args, **kwargs)

    def _call_rewritten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As a part of a trace, in which functions may ask to be rewritten meanwhile."""
        context: Any = state.context
        before, rewritings = getattr(context, "rewritings", None), _rewritings(self.function)
        if state.recorder is None:  # as in a graph that is built
            return rewritings.function_of(self.function)(*args, **kwargs)
        context.rewritings = rewritings
        try:
            return self.function(*args, **kwargs)
        finally:
            context.rewritings = before

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, spec = self._flatten(args, kwargs)
        given = (args, kwargs)
        for plan in self._plans.get(spec, ()):
            result = plan.run(leaves, given)
            if result is not MISS:
                self._use(plan, spec)
                return result
        if sys.is_finalizing():  # no plans are made any more
            return self._eager(leaves, given)
        try:
            plan = self._plan_or_error(leaves, spec, given)
        except TraceError as error:
            if self.when_refused is None:
                raise
            self.when_refused(self, error)
            self.enabled = False
            return self._eager(leaves, given)
        result = plan.run(leaves, given)
        return self._eager(leaves, given) if result is MISS else result

    def _plan_or_error(self, leaves: Sequence[Any], spec: pytree.TreeSpec, given: Any) -> AnyRun:
        """The plan; or the function's own error, after what it wrote before it."""
        try:
            return self._plan(leaves, spec)
        except Exception as error:
            if hasattr(error, "raised_after_writes"):
                self._eager(leaves, given)
            raise

    def _eager(self, leaves: Sequence[Any], given: Any) -> Any:
        args, kwargs = (leaves, {}) if given is None else given
        return self.function(*args, **kwargs)

    def _flatten(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Any], pytree.TreeSpec]:
        """Leaves and structure; keywords in one order, unless the function can tell which."""
        if len(kwargs) > 1 and not self._sees_order:
            kwargs = dict(sorted(kwargs.items()))
        return pytree.flatten((args, kwargs))

    @functools.cached_property
    def _sees_order(self) -> bool:
        try:
            parameters = inspect.signature(called(self.function)).parameters.values()
        except (TypeError, ValueError):
            return True
        return any(each.kind is each.VAR_KEYWORD for each in parameters)

    # --- plans ---

    def _use(self, plan: AnyPlan, spec: pytree.TreeSpec) -> None:
        """Put a plan first."""
        plans = [plan, *(each for each in self._plans.get(spec, ()) if each is not plan)]
        self._plans[spec] = plans[:MAX_PLANS]
        args, kwargs = spec.children
        if not kwargs.children and all(child == pytree.LEAF for child in args.children):
            self._flat[len(args.children)] = self._plans[spec]

    def _plan(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> AnyRun:
        """The plan for a call, made if there is none."""
        refuse_at_exit()
        if self._axes:
            names = self._names_of(spec)
            self._axes.check(self._axes.places(leaves, names), leaves, names)
        with COMPILE_LOCK, no_collection():
            for plan in self._plans.get(spec, ()):
                if plan.why_not(leaves) is None:
                    plan.rebind()
                    break
            else:
                plan = self._compile(leaves, spec)
            try:
                found = plan.at(leaves)
            except Exception as error:
                if not isinstance(plan, OpenCall) or isinstance(error, MemoryError):
                    raise
                self._plans[spec].remove(plan)
                self._fix_sizes(plan.axes, spec, f"no plan for these sizes can be made: {error}")
                plan = self._compile(leaves, spec)
                found = plan.at(leaves)
            self._use(plan, spec)
            self._latest = weakref.ref(found)
            return found

    def _names_of(self, spec: pytree.TreeSpec) -> list[str]:
        """What the user calls each leaf."""
        if spec not in self._names:
            self._names[spec] = leaf_names(self.function, spec)
        return self._names[spec]

    def _compile(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> AnyPlan:
        names = self._names_of(spec)
        _refuse_arrays(leaves, names)
        open_places = self._open_places(leaves, spec, names)
        prepare(waited_for=True)
        reason = self._reason(leaves, spec)
        start = time.perf_counter()
        recording = self._record(leaves, spec, names, open_places)
        reason += self._news(recording.numbers, spec, names) + self._places.news(recording.places)
        traced = time.perf_counter()
        try:
            plan = self._made(recording, leaves, names, reason)
        except Exception as error:
            if not recording.axes or isinstance(error, MemoryError):
                raise
            self._fix_sizes(recording.axes, spec, f"no plan for any size can be made: {error}")
            return self._compile(leaves, spec)
        done = time.perf_counter()
        spent = plan.at(leaves).seconds
        self.compiles.append(CompileRecord(plan.reason, traced - start, done - traced, *spent))
        if len(self.compiles) == MANY_PLANS:
            self._warn_of_many()
        return plan

    def _made(
        self, recording: Recording, leaves: Sequence[Any], names: Sequence[str], reason: str
    ) -> AnyPlan:
        """The plan of a recorded call, or those of all sizes."""
        call, numbers, places, recorder, axes = recording
        reason += _sizes_text(axes, names)

        def function(call: Call, fed: Fed | None) -> GraphFunction:
            return _as_function(call, self.name, fed)

        def build(
            call: Call, more: Mapping[AxisPlace, SymInt], handed: Sequence[Place]
        ) -> CompiledCall | OpenCall:
            """The plan of a call, or of a stage of it that is given more by earlier ones."""
            lying, every = [*places, *handed], {**axes, **more}
            labels = [*names, *(place.path for place in lying)]

            def make(call: Call, fed: Fed | None, leaves: Sequence[Any]) -> CompiledCall:
                values = [*leaves, *(place.now() for place in lying)] if more else leaves
                types = types_with(fed, every, values) if fed and fed.open else {}
                made = function(call, fed)
                _ = made.executable
                return CompiledCall(
                    call,
                    leaves,
                    labels,
                    numbers,
                    lying,
                    made,
                    list(recorder.guards.values()),
                    recorder.namespace,
                    self._eager,
                    reason,
                    open_axes(every),
                    types,
                )

            if not every:
                return make(call, None, leaves)
            return OpenCall(call, every, make, function, labels, leaves, lying)

        if not call.trace.selections:
            return build(call, {}, ())
        given = len(leaves) + len(places)
        return StagedCall(staged(call, given), given, build, leaves)

    def _open_places(
        self, leaves: Sequence[Any], spec: pytree.TreeSpec, names: Sequence[str]
    ) -> Open:
        """The axes whose size is left open in a trace of this call."""
        places = self._axes.places(leaves, names)
        known = self._plans.get(spec, ())
        if any(not isinstance(plan, CompiledCall) and plan.leaves_out(leaves) for plan in known):
            return {}
        fixed = self._fixed_sizes.setdefault(spec, {})
        return {place: size for place, size in places.items() if place not in fixed}

    def _record(
        self,
        leaves: Sequence[Any],
        spec: pytree.TreeSpec,
        names: Sequence[str],
        open_places: Open = MappingProxyType({}),
    ) -> Recording:
        """Trace the function, again where a number or size turns out to have to be a fixed one."""
        static: frozenset[Source] = frozenset()
        fixed_sizes: dict[AxisPlace, str] = {}
        rewritings = _rewritings(self.function) if self.control_flow else None
        joined: dict[Dim, Dim] = {}
        asks_counts = False
        while True:
            fixed = self._fixed.setdefault(spec, set())
            places = self._places.take()
            values = [*leaves, *(place.now() for place in places)]
            moving = set(self._moving.get(spec, ())) - fixed
            moving |= {at for at in range(len(leaves), len(values)) if is_number(values[at])}
            recorder = Recorder()
            count = functools.partial(positions_now, values)
            trace = Trace(recorder.names, static, f"'{self.name}'", count=count)
            if rewritings is not None:
                trace.rewritings, recorder.rewritten = rewritings, rewritings.code_of
            trace.sizes.asks_counts = asks_counts
            still = {at: size for at, size in open_places.items() if at not in fixed_sizes}
            axes = trace.sizes.open(still, leaves, self._axes.sizes(still, leaves), joined)
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

    def _fix_sizes(self, axes: Iterable[AxisPlace], spec: pytree.TreeSpec, why: str) -> None:
        """Sizes of these axes are fixed in plans from now on."""
        self._fixed_sizes.setdefault(spec, {}).update(dict.fromkeys(axes, why))

    def _fix(
        self, positions: Iterable[int], fixed: set[int], places: Sequence[Place], count: int
    ) -> None:
        """The numbers at these positions are fixed from now on."""
        fixed.update(at for at in positions if at < count)
        self._places.fix(places[at - count] for at in positions if at >= count)

    def _reason(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> str:
        """Why a new plan is needed; notes numbers and places that changed."""
        if not self.compiles:
            return "first call"
        plans = self._plans.get(spec)
        if not plans:
            return "new structure of arguments"
        closest = min(plans, key=lambda plan: plan.distance(leaves))
        reason = closest.why_not(leaves) or "no plan fits"
        self._places.note(closest.guards, closest.environment)
        moving = self._moving.setdefault(spec, set())
        moving.update(at for plan in plans for at in plan.moved_numbers(leaves))
        return reason

    def _news(self, numbers: frozenset[int], spec: pytree.TreeSpec, names: Sequence[str]) -> str:
        """What the reason for a plan says of arguments that are inputs for the first time."""
        announced = self._announced.setdefault(spec, set())
        new = sorted(at for at in numbers if at < len(names) and at not in announced)
        announced.update(new)
        changed = ", ".join(f"`{names[at]}`" for at in new)
        return f"; {changed} is an input from now on" if new else ""

    def _warn_of_many(self) -> None:
        """Name what changes most often, and the way out."""
        counts = Counter(_subject(record.reason) for record in self.compiles[1:])
        subject, count = counts.most_common(1)[0]
        warnings.warn(
            f"'{self.name}' was compiled {len(self.compiles)} times, {count} of them for this "
            f"reason: {subject} (last: {self.compiles[-1].reason}). {_way_out(subject)} "
            "`compiles` of the compiled function lists all reasons.",
            RecompileWarning,
            stacklevel=_user_level(),
        )

    # --- how often it was compiled ---

    def assert_compiles(self, count: int) -> None:
        """AssertionError, with the reason for each, unless it was compiled `count` times so far.

        What counts are the records in `compiles`, each of which is a trace: a function that was
        compiled for sizes that vary, and called with a thousand of them, has one.

        >>> import tgraph as tg
        >>> f = tg.compile(lambda x: x.sum(), dynamic={"x": 0})
        >>> totals = [f(tg.ones(n)) for n in range(100)]
        >>> f.assert_compiles(1)
        """
        _assert_compiled(self.name, self.compiles, count, "so far")

    @contextmanager
    def assert_new_compiles(self, count: int = 0) -> Iterator[None]:
        """A `with` block at whose end AssertionError is raised, with the reason for each, unless
        the function was compiled `count` times in it.

        >>> import tgraph as tg
        >>> f = tg.compile(lambda x: x.sum())
        >>> with f.assert_new_compiles(1):
        ...     total = f(tg.ones(3))
        >>> with f.assert_new_compiles(0):
        ...     total = f(tg.ones(4))
        Traceback (most recent call last):
            ...
        AssertionError: '<lambda>' was compiled once in the block, not 0 times:
          new shape of argument `x`: float32[3] -> float32[4]
        """
        before = len(self.compiles)
        yield
        _assert_compiled(self.name, self.compiles[before:], count, "in the block")

    # --- looking inside ---

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that a call with these arguments runs, as it was traced."""
        return self.plan_for(*args, **kwargs).call.graph

    def explain(self, *args: Any, measure: bool = False, **kwargs: Any) -> Explanation:
        """What a call with these arguments runs: its kernels, their operations, bytes, schedules.

        A schedule tells in a line which loops are vectorised and how wide, where they are cut and
        tiled, and how many threads may share the work. Nothing runs, unless with `measure`: then
        each kernel is run again and again, alone, on the given arguments and copies of what it
        writes, with all threads. The report has its median time and the share that it reaches of
        this machine's bandwidth (for as many bytes, so that of a cache where they fit into it) or
        of its peak in a matrix product, whichever is nearer. Both are measured once. No tensor,
        gradient, object or random generator changes. NotImplementedError for plans on other devices
        than the CPU.

        >>> import tgraph as tg
        >>> f = tg.compile(lambda x: tg.softmax(x, dim=-1))
        >>> (kernel,) = f.explain(tg.ones(64, 512)).kernels
        >>> kernel.operations, kernel.bytes
        ('max, sub, exp, sum, div', 262144)
        >>> kernel.schedule
        'vectorised along j0 < 512 (... lanes); 64 tasks for up to ... threads'
        """
        leaves, spec = self._flatten(args, kwargs)
        plan = self._plan(leaves, spec)
        from .explain import explain_plan

        notes = self._size_notes(leaves, spec)
        given = leaves if measure else None
        return within(
            plan,
            leaves,
            lambda last: explain_plan(self.name, plan.reason, last, given, notes, plan),
        )

    def _size_notes(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> tuple[str, ...]:
        """Which sizes named in `dynamic` are open in the plan of a call, and why others are not."""
        names = self._names_of(spec)
        plan, fixed = self._plans[spec][0], self._fixed_sizes.get(spec, {})
        notes = [] if isinstance(plan, CompiledCall) else plan.size_notes
        known = {} if isinstance(plan, CompiledCall) else plan.axes
        for at, axis in self._axes.places(leaves, names):
            if (at, axis) not in known:
                size = leaves[at].shape[axis]
                why = fixed.get((at, axis), "it is singled out by what is assumed of other sizes")
                notes.append(f"{names[at]}.shape[{axis}] is fixed to {size}: {why}")
        return tuple(notes)

    @property
    def latest(self) -> AnyRun | None:
        """The plan that was made last, if it is still there."""
        return self._latest()

    def plan_for(self, *args: Any, **kwargs: Any) -> AnyRun:
        """The plan that a call with these arguments runs, made if there is none."""
        return self._plan(*self._flatten(args, kwargs))

    def recording_for(self, *args: Any, **kwargs: Any) -> Recording:
        """A call with these arguments as it is traced; no plan is made of it."""
        leaves, spec = self._flatten(args, kwargs)
        return self._record(leaves, spec, leaf_names(self.function, spec))

    def __repr__(self) -> str:
        return f"<compiled {self.name}, {len(self.compiles)} plans>"

    # --- copies: the function, without its plans ---

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return self._of(deepcopy(self.function, memo))

    def _of(self, function: Callable[..., Any]) -> CompiledFunction:
        """Another function, compiled as this one is."""
        made = type(self)(function, self.check, self.dynamic, self.control_flow)
        made.enabled, made.when_refused = self.enabled, self.when_refused
        return made

    def __reduce__(self) -> Any:
        # A decorated function is found under its own name, where the plain one is not.
        name = getattr(self, "__qualname__", None)
        if getattr(sys.modules.get(self.__module__), name or "", None) is self:
            return name
        return type(self), (self.function, self.check, self.dynamic, self.control_flow)

    # --- methods ---

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A compiled method of one instance, with its own plans."""
        if instance is None:
            return self
        attributes = getattr(instance, "__dict__", None)
        if not isinstance(attributes, dict):  # slots, or the class of a class method
            return MethodType(self, instance)
        held = attributes.get(_METHODS)
        if held is None or held.instance is not instance:
            held = attributes[_METHODS] = _Methods(instance)
        found = held.methods.get(id(self))
        if found is None:
            found = held.methods[id(self)] = self._of(MethodType(self.function, instance))
        return found


_METHODS = "_compiled_methods"


class _Methods:
    """The compiled methods of one instance; a copy of the instance begins with none."""

    def __init__(self, instance: Any) -> None:
        self.instance = instance
        self.methods: dict[int, CompiledFunction] = {}

    def __reduce__(self) -> Any:
        return (_Methods, (None,))

    def __deepcopy__(self, memo: Any) -> _Methods:
        return _Methods(None)


def _assert_compiled(name: str, records: Sequence[CompileRecord], count: int, when: str) -> None:
    if len(records) == count:
        return
    times = {1: "once"}.get(len(records), f"{len(records)} times")
    wanted = {1: "once"}.get(count, f"{count} times")
    reasons = "".join(f"\n  {each.reason}" for each in records)
    raise AssertionError(
        f"'{name}' was compiled {times} {when}, not {wanted}{':' if reasons else ''}{reasons}"
    )


def _subject(reason: str) -> str:
    """A reason without the values that changed."""
    return reason.partition("; ")[0].partition(": ")[0]


def _way_out(subject: str) -> str:
    if "shape" in subject:
        return (
            "Name the axes whose size varies in compile(..., dynamic={...}) (explain() says what "
            "fixes one), pad tensors to a few sizes, or compile a function for each."
        )
    if "another object" in subject or "structure" in subject:
        return "Make the object once, outside of the function, and keep it."
    return "Pass what changes as a tensor, or keep it out of the compiled function."


def _user_level() -> int:
    """How many callers up the user's code stands, for a warning of the function that asks."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame.f_back is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _refuse_arrays(leaves: Sequence[Any], names: Sequence[str]) -> None:
    for leaf, name in zip(leaves, names):
        if isinstance(leaf, np.ndarray):
            raise TypeError(
                f"argument `{name}` of a compiled function is a NumPy array, whose content would "
                "be fixed in the plan; pass tg.from_numpy(...) of it"
            )


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


def _sizes_text(axes: Mapping[AxisPlace, SymInt], names: Sequence[str]) -> str:
    """What the reason for a plan says of sizes that are open."""
    return "".join(
        f"; `{names[at]}.shape[{axis}]` is any size {size.text}"
        for (at, axis), size in axes.items()
    )


def _as_function(call: Call, name: str, fed: Fed | None) -> GraphFunction:
    """The graph of a call as a function; with `fed` for some of many sizes."""
    function = GraphFunction(
        call.graph,
        call.trace,
        call.final,
        call.differentiable,
        call.asked,
        call.traced_gradients,
        call.donate,
        name,
        fed,
    )
    function.keeps_arenas = fed is None  # not as many as there are sizes
    return function


def _rewritings(function: Any) -> Any:
    """What knows the functions that are rewritten, among them this one."""
    from ..rewriting.rewritings import REWRITINGS

    code = getattr(getattr(called(function), "__func__", called(function)), "__code__", None)
    if code is not None:
        REWRITINGS.add(code)
    return REWRITINGS


def compiled(
    function: Callable[..., Any], check: bool, dynamic: Any = None,
    control_flow: bool = False,
) -> CompiledFunction:  # fmt: skip
    """The compiled form of a function, or of one that is compiled already."""
    if isinstance(function, CompiledFunction):
        function = function.function
    made = CompiledFunction(function, check, dynamic, control_flow)
    if made.enabled:
        prepare()
    return made
