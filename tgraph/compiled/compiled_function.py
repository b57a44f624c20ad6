"""Compiled functions: what `compile` returns, the plans that it makes and chooses among."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.ir import Graph
from ..compiler.ir.dim import SymInt
from ..core import pytree
from ..core.anomaly import mode as anomaly
from ..core.compile_lock import COMPILE_LOCK, refuse_at_exit
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..runtime.garbage import no_collection
from ..tracing.record_call import called
from ..tracing.recorded_call import Call
from ..tracing.recording.instrument import why_unknown
from ..tracing.recording.places import Place
from .call_helpers import MISS
from .compilations import MANY_PLANS, CompileRecord, assert_compiled, warn_of_many, warn_once
from .compiled_call import CompiledCall
from .dynamic_axes import Open
from .dynamic_axes import Place as AxisPlace
from .fed import Fed
from .function_tracer import FunctionTracer, Recording, rewritings_of
from .graph_function import GraphFunction, prepare
from .open_call import OpenCall, open_axes, types_with
from .staged_call import StagedCall, StagedRun, within
from .stages import staged

if TYPE_CHECKING:
    from .explain import Explanation

AnyPlan = CompiledCall | OpenCall | StagedCall
AnyRun = CompiledCall | StagedRun

MAX_PLANS = 64
"""Plans kept per structure of arguments; the one unused longest goes first."""


class CompiledFunction:
    """What `compile` returns: called like the function itself.

    `compiles` lists a CompileRecord for every plan that was made.
    """

    def __init__(
        self, function: Callable[..., Any], check: bool = False, dynamic: Any = None,
        control_flow: bool = False,
    ) -> None:  # fmt: skip
        if hasattr(function, "__name__"):
            # First, as attributes of the function may have the names of those below: one that
            # wraps a compiled function has all of them.
            functools.update_wrapper(self, function)
        self.function = function
        self.check = check
        self.control_flow = control_flow
        self.dynamic = dynamic
        self._tracer = FunctionTracer(function, dynamic, control_flow)
        self.compiles: list[CompileRecord] = []
        self.enabled = os.environ.get("TGRAPH_COMPILE", "1") != "0"
        # Told of a trace that was refused, after which the function runs eagerly, where there is
        # one; otherwise that is an error.
        self.when_refused: Callable[[CompiledFunction, TraceError], None] | None = None
        self._flat: dict[int, list[AnyPlan]] = {}  # by the number of plain arguments
        self._plans: dict[pytree.TreeSpec, list[AnyPlan]] = {}
        self._latest: Callable[[], AnyRun | None] = lambda: None

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
        if (
            state.context is None
            and self.enabled
            and not anomaly.enabled
            and not self._is_refused()
        ):
            leaves, spec = self._flatten(args, kwargs)
            if _lack_elements(leaves):
                return self.function(*args, **kwargs)
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
        before, rewritings = getattr(context, "rewritings", None), rewritings_of(self.function)
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
        if sys.is_finalizing() or _lack_elements(leaves):  # no plans are made
            return self._eager(leaves, given)
        if self._is_refused():
            return self._call_specially(args, kwargs)
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

    def _is_refused(self) -> bool:
        """Whether this Python is too new to compile for; then all calls run eagerly."""
        reason = why_unknown()
        if reason is None:
            return False
        self.enabled = False
        warn_once(
            f"compiled functions run eagerly: {reason}, or set TGRAPH_COMPILE=0 to run eagerly "
            "without this warning"
        )
        return True

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
        self._tracer.check(leaves, spec)
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
                self._tracer.fix_sizes(
                    plan.axes, spec, f"no plan for these sizes can be made: {error}"
                )
                plan = self._compile(leaves, spec)
                found = plan.at(leaves)
            self._use(plan, spec)
            self._latest = weakref.ref(found)
            return found

    def _compile(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> AnyPlan:
        names = self._tracer.names_of(spec)
        _refuse_arrays(leaves, names)
        open_places = self._open_places(leaves, spec)
        prepare(waited_for=True)
        reason = self._reason(leaves, spec)
        start = time.perf_counter()
        recording = self._tracer.record(leaves, spec, open_places)
        reason += self._tracer.news(recording, spec)
        traced = time.perf_counter()
        try:
            plan = self._made(recording, leaves, names, reason)
        except Exception as error:
            if not recording.axes or isinstance(error, MemoryError):
                raise
            self._tracer.fix_sizes(
                recording.axes, spec, f"no plan for any size can be made: {error}"
            )
            return self._compile(leaves, spec)
        done = time.perf_counter()
        spent = plan.at(leaves).seconds
        self.compiles.append(CompileRecord(plan.reason, traced - start, done - traced, *spent))
        if len(self.compiles) == MANY_PLANS:
            warn_of_many(self.name, self.compiles)
        return plan

    def _made(
        self, recording: Recording, leaves: Sequence[Any], names: Sequence[str], reason: str
    ) -> AnyPlan:
        """The plan of a recorded call, or those of all sizes."""
        call, numbers, places, recorder, axes = recording
        reason += _sizes_text(axes, names)
        same_as = _first_places([*leaves, *(place.now() for place in places)])

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
                    [*same_as, *range(len(same_as), len(leaves) + len(lying))],
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

    def _open_places(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> Open:
        """The axes whose size is left open, unless a plan for many sizes has left this one out."""
        known = self._plans.get(spec, ())
        if any(not isinstance(plan, CompiledCall) and plan.leaves_out(leaves) for plan in known):
            return {}
        return self._tracer.open_places(leaves, spec)

    def _reason(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> str:
        """Why a new plan is needed; notes numbers and places that changed."""
        if not self.compiles:
            return "first call"
        plans = self._plans.get(spec)
        if not plans:
            return "new structure of arguments"
        closest = min(plans, key=lambda plan: plan.distance(leaves))
        reason = closest.why_not(leaves) or "no plan fits"
        moved = (at for plan in plans for at in plan.moved_numbers(leaves))
        self._tracer.note_changes(closest.guards, closest.environment, moved, spec)
        return reason

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
        assert_compiled(self.name, self.compiles, count, "so far")

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
        assert_compiled(self.name, self.compiles[before:], count, "in the block")

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
        plan = self._plans[spec][0]
        notes = [] if isinstance(plan, CompiledCall) else plan.size_notes
        known = {} if isinstance(plan, CompiledCall) else plan.axes
        notes += self._tracer.fixed_sizes(leaves, spec, known)
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
        return self._tracer.record(leaves, spec)

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


def _lack_elements(leaves: Sequence[Any]) -> bool:
    """Whether a call is given tensors on meta, for which there is nothing to compile."""
    return any(isinstance(leaf, Tensor) and leaf._type.device.type == "meta" for leaf in leaves)


def _refuse_arrays(leaves: Sequence[Any], names: Sequence[str]) -> None:
    for leaf, name in zip(leaves, names):
        if isinstance(leaf, np.ndarray):
            raise TypeError(
                f"argument `{name}` of a compiled function is a NumPy array, whose content would "
                "be fixed in the plan; pass tg.from_numpy(...) of it"
            )


def _sizes_text(axes: Mapping[AxisPlace, SymInt], names: Sequence[str]) -> str:
    """What the reason for a plan says of sizes that are open."""
    return "".join(
        f"; `{names[at]}.shape[{axis}]` is any size {size.text}"
        for (at, axis), size in axes.items()
    )


def _first_places(leaves: Sequence[Any]) -> list[int]:
    """For each leaf the first position at which it is found."""
    first = {id(leaf): at for at, leaf in reversed(list(enumerate(leaves)))}
    return [first[id(leaf)] for leaf in leaves]


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
        laid_out=call.given_back,
    )
    function.keeps_arenas = fed is None  # not as many as there are sizes
    return function


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
