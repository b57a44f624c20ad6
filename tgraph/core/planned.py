"""Functions of tensors that run as one plan in eager mode.

A function marked by `planned` runs as it is written the first time that it is called with arguments
of a certain signature, unless they are large. From the second time on it is a compiled plan
(`eager_plan.py`), looked up by that signature: types, strides and what requires grad of tensors, on
a CUDA device whether vectors can be loaded from where they begin, and the values of all else but
floats, which the plan reads at each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from ..compiler.ir import Node, TensorType, promotion
from ..compiler.ir.node import attr_key
from ..compiler.ir.shapes import are_plain
from ..runtime import interrupts
from ..runtime.cuda.arrays import ALIGNMENT
from ..runtime.cuda.launches import LaunchError
from ..runtime.device import META, Device
from ..runtime.dtypes import DType
from ..runtime.meta import MetaArray
from .autocast import run_cast
from .classes import class_of
from .dispatch import refresh_view
from .plan_table import Entry, Never, Once, Plan, PlanTable
from .sparse_tensor import NoElements
from .state import state
from .tensor import PASSED_ON, Tensor
from .traced_float import Specialize

if TYPE_CHECKING:
    from ..compiled.eager_plan import EagerPlan


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def planned(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function of tensors run as one plan in eager mode. A decorator.

    What the function computes depends on its arguments alone (tensors, numbers, and what can be
    hashed), and it gives new tensors. Where it does otherwise (reads other tensors, gives a view of
    an argument, asks for a value, computes on several devices), it runs as it is written; so it
    does in a trace, and on tensors without elements.
    """
    return Planned(function).decorated()


class Planned:
    """A function and its plans.

    With `writes` it writes some of its arguments in place and gives nothing. `reads` gives what
    else its results depend on.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        writes: bool = False,
        reads: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.writes = writes
        self.reads = reads
        self.table = PlanTable()

    def decorated(self) -> Callable[..., Any]:
        """A plain function, which can be a method too, that runs the plans."""
        function = self.function
        reads, writes, name = self.reads, self.writes, self.name

        # The hot path of eager mode: one look at each argument, one in the table, one native call.
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if state.autocast is not None:
                if reads is not None:  # a function of users, whose operations cast by themselves
                    return function(*args, **kwargs)
                return run_cast(name, call, args, kwargs)
            if PASSED_ON and class_of((*args, *kwargs.values())) is not Tensor:
                return function(*args, **kwargs)  # step by step, each of which passes it on
            context = state.context
            if context is not None:
                if writes and not kwargs:
                    return context.update(function, args)
                return function(*args, **kwargs)
            recording = not writes and state.grad_enabled
            if recording and state.saved_hooks is not None:  # which see what each step saves
                return function(*args, **kwargs)
            parts: list[Any] = [recording, promotion.default_dtype, len(args)]
            leaves: Sequence[Any] = args
            if kwargs:
                leaves = (*args, *kwargs.values())
                parts += kwargs
            for each in leaves:
                kind = type(each)
                if isinstance(each, Tensor):
                    value, view = each._value, each._view
                    if type(value) is not _ndarray:
                        if type(value) in _NOT_IN_PLANS:
                            return function(*args, **kwargs)
                        parts.append(value.data.ptr % ALIGNMENT == 0)
                    if view is not None and view.changes != view.memory.changes:
                        refresh_view(each)
                    parts += id(each._type), value.strides, recording and each._requires_grad
                elif kind is float:
                    parts.append(kind)
                elif kind in _BY_IDENTITY:
                    parts.append(id(each))
                elif kind in _PLAIN or (kind is tuple and are_plain(each)):
                    parts += kind, each
                elif kind is list and are_plain(each):
                    parts += kind, tuple(each)
                else:
                    return function(*args, **kwargs)
            if reads is not None:
                parts += map(attr_key, reads())
            key: Any = tuple(parts)
            table = self.table  # not of the closure, whose containers are watched by traces
            plan = table.plans.get(key)
            if type(plan) is _ByValue:
                key = plan.key(key, leaves)
                plan = table.plans.get(key)
            if not isinstance(plan, Plan):
                plan = self._plan(key, args, kwargs)
                if plan is None:
                    return function(*args, **kwargs)
            table.hits += 1
            try:
                return plan(leaves)
            except LaunchError:  # a part of the plan may have run
                raise
            except Exception:
                # As it is written, the function raises the error that names the user's line.
                return function(*args, **kwargs)

        call.follows_autocast = reads is None  # type: ignore[attr-defined]
        return call

    # --- making plans ---

    def _plan(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> EagerPlan | None:
        """A plan for the second call with a signature, for the first one where its arguments are
        large; None where there is none (yet)."""
        leaves, found = (*args, *kwargs.values()), self.table.plans.get(key)
        if found is None:
            kept = _kept(leaves)
            found = Once(kept) if _can_be_planned(leaves) else Never(kept)
            self.table.remember(key, found)
            if _elements(kept) < _LARGE:
                return None
        if type(found) is not Once:
            return None
        plan: EagerPlan | None = self.table.make(lambda: self._made_of(key, args, kwargs))
        return plan

    def _made_of(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> EagerPlan | None:
        # Imported here: a program that does everything once compiles nothing.
        with interrupts.held():
            from ..compiled.eager_plan import Call, EagerPlan, NotPlannableError, trace_call

        count, names, leaves = len(args), tuple(kwargs), (*args, *kwargs.values())

        def build(leaves: Sequence[Any]) -> tuple[Any, Any]:
            return leaves[:count], dict(zip(names, leaves[count:]))

        fixed = key.positions if type(key) is _Values else frozenset()
        floats = frozenset(at for at, each in enumerate(leaves) if type(each) is float)
        call = Call(self.function, self.name, build, floats - fixed, self.writes)
        try:
            traced = trace_call(call, leaves)
        except Specialize as asked:
            general = key.general if type(key) is _Values else key
            positions = fixed.union(source.key for source in asked.sources)
            self.table.plans[general] = _ByValue(_kept(leaves), positions)
            return None
        except Exception:
            # As it is written, the function does it, or raises the error with the user's line.
            self.table.plans[key] = Never(_kept(leaves))
            return None
        try:
            made = EagerPlan(traced, _kept(leaves))
        except NotPlannableError:
            self.table.plans[key] = Never(_kept(leaves))
            return None
        self.table.plans[key] = made
        return made


class _Values(tuple[Any, ...]):
    """A signature together with the values of some floats."""

    general: Any
    positions: frozenset[int]


class _ByValue(Entry):
    """There is a plan for each value of the floats at `positions`, which the function asks for."""

    __slots__ = ("positions",)

    def __init__(self, kept: Any, positions: frozenset[int]) -> None:
        super().__init__(kept)
        self.positions = positions

    def key(self, general: Any, leaves: Sequence[Any]) -> _Values:
        made = _Values((general, *(repr(leaves[at]) for at in sorted(self.positions))))
        made.general, made.positions = general, self.positions
        return made


_LARGE = 1 << 24
"""Elements of arguments from which on a plan is worth compiling for a single call: the memory that
steps hand to each other is in it no longer."""
_ndarray = np.ndarray
_NOT_IN_PLANS = (Node, MetaArray, NoElements)
_PLAIN = frozenset({int, bool, str, type(None)})
_BY_IDENTITY = frozenset({TensorType, DType, Device})


def _kept(leaves: Sequence[Any]) -> list[Any]:
    tensors = (each._type if isinstance(each, Tensor) else each for each in leaves)
    return [each for each in tensors if type(each) in _BY_IDENTITY]


def _elements(kept: Sequence[Any]) -> int:
    return sum(each.numel for each in kept if type(each) is TensorType)


def _can_be_planned(leaves: Sequence[Any]) -> bool:
    kept = _kept(leaves)
    return all(type(each) is not TensorType or each.numel for each in kept) and META not in kept
