"""Functions of elements on a CUDA device: each becomes one kernel, and its gradient another.

The function is run once per signature in a context that records scalars (`fused_expression.py`),
what it does to one element. These become a `cupy.ElementwiseKernel`, which CuPy launches on
operands of any strides (`fused_program.py`). Where gradients are wanted, one step is recorded,
whose backward pass is the gradient of the scalars, again as one kernel, and so on for every order
(`fused_gradient.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import Node, TensorType, promotion
from ..compiler.ir.node import attr_key
from ..core import pytree
from ..core.context import use_context
from ..core.dispatch import settled
from ..core.eager_context import raise_leaked
from ..core.operands import plain_scalar
from ..core.state import state
from ..core.tensor import Tensor
from ..core.traced_float import Specialize
from ..runtime.device import CPU
from .fused_call import numbers_read, with_plans
from .fused_expression import Expression, NotElementwiseError
from .fused_gradient import Derivative, is_made_of_primitives
from .fused_program import Argument, Output, Program, Traced, compiled, execute

_KEPT = 256
"""Signatures for which a function is remembered."""


class Fused:
    """What runs a fused function on a CUDA device, and remembers what it is there."""

    def __init__(
        self, function: Callable[..., Any], sums: bool = False, writes: bool = False
    ) -> None:
        self.function = function
        self.sums = sums
        self.writes = writes
        self._programs: dict[Any, Program] = {}
        self._derivatives: dict[Any, Derivative | None] = {}
        self._fixed: dict[pytree.TreeSpec, set[int]] = {}

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result, for arguments with a tensor on a CUDA device."""
        given, spec = pytree.flatten((args, kwargs))
        leaves = [plain_scalar(each) for each in given]
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        for each in tensors:
            settled(each)
            if type(each._value) is Node:
                raise_leaked(each)
        recording = state.grad_enabled and not self.writes
        wanted = frozenset(
            at
            for at, each in enumerate(leaves)
            if recording and isinstance(each, Tensor) and each._requires_grad
        )
        abstract = [each._type if isinstance(each, Tensor) else each for each in leaves]
        if not _go_together(abstract):
            return self.function(*args, **kwargs)
        program = self.program(abstract, spec)
        if any(type_.device is CPU for type_ in program.types):
            return self.function(*args, **kwargs)
        derivative = None
        if wanted:
            derivative = self._derivative(abstract, spec, wanted)
            if derivative is None:
                return self.function(*args, **kwargs)
        outputs = execute(program, leaves)
        if derivative is not None:
            derivative.attach(leaves, outputs)
        results: list[Any] = []
        for each in program.results:
            if type(each) is Output:
                each = outputs[each.number]
            elif type(each) is Argument:
                each = given[each.position]
            results.append(each)
        return program.spec.unflatten(results)

    # --- signatures ---

    def _key(self, abstract: Sequence[Any], spec: pytree.TreeSpec) -> Any:
        fixed = self._fixed.get(spec, ())
        read = tuple(map(attr_key, numbers_read(self.function)))
        kinds = (
            type(each) if _is_number(each) and at not in fixed else _leaf_key(each)
            for at, each in enumerate(abstract)
        )
        return (spec, promotion.default_dtype, read, *kinds)

    def program(self, abstract: Sequence[Any], spec: pytree.TreeSpec) -> Program:
        """What is done with leaves of these types; NotElementwiseError where nothing can be."""
        key = self._key(abstract, spec)
        found = self._programs.get(key)
        if found is None:
            previous, state.grad_enabled = state.grad_enabled, False
            try:
                found = compiled(self.traced(abstract, spec))
            finally:
                state.grad_enabled = previous
            if len(self._programs) >= _KEPT:
                self._programs.clear()
            self._programs[self._key(abstract, spec)] = found
        return found

    def traced(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int] = frozenset()
    ) -> Traced:
        """The function's scalars; leaves at the positions `wanted` require grad."""
        while True:
            fixed = self._fixed.setdefault(spec, set())
            context = Expression(self.name, self.sums, self.writes)
            try:
                with use_context(context):
                    return self._traced(context, abstract, spec, wanted, fixed)
            except Specialize as asked:
                if not asked.sources - fixed:
                    raise
                fixed.update(asked.sources)

    def _traced(
        self,
        context: Expression,
        abstract: Sequence[Any],
        spec: pytree.TreeSpec,
        wanted: frozenset[int],
        fixed: set[int],
    ) -> Traced:
        given: list[Any] = []
        positions: list[int] = []
        for at, each in enumerate(abstract):
            if type(each) is TensorType:
                handle = context.argument(each)
                handle._requires_grad = at in wanted
                given.append(handle)
                positions.append(at)
            elif _is_number(each) and at not in fixed:
                given.append(context.number(each, at))
                positions.append(at)
            else:
                given.append(each)
        args, kwargs = spec.unflatten(given)
        results, tree = pytree.flatten(self.function(*args, **kwargs))
        return Traced(context, given, positions, results, tree)

    # --- gradients ---

    def _derivative(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int]
    ) -> Derivative | None:
        """The gradient with respect to some leaves; None where it cannot be fused."""
        key = (self._key(abstract, spec), wanted)
        if key not in self._derivatives:
            if len(self._derivatives) >= _KEPT:
                self._derivatives.clear()
            made = self._differentiated(abstract, spec, wanted)
            self._derivatives[self._key(abstract, spec), wanted] = made
            return made
        return self._derivatives[key]

    def _differentiated(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int]
    ) -> Derivative | None:
        if any(abstract[at].device is CPU for at in wanted):
            return None
        previous, state.grad_enabled = state.grad_enabled, True
        try:
            traced = self.traced(abstract, spec, wanted)
        finally:
            state.grad_enabled = previous
        outputs: dict[int, int] = {}
        for at, place in enumerate(self.program(abstract, spec).results):
            made = type(place) is Output and place.number not in outputs.values()
            if made and traced.results[at]._requires_grad:
                outputs[at] = place.number
        made_here = [traced.results[at] for at in outputs]
        if not is_made_of_primitives(made_here):
            return None  # with rules that may do anything
        types = tuple(each._type for each in made_here)
        derivative = Derivative(
            self.name, self.function, spec, sorted(wanted), outputs, types, _fused_gradient
        )
        if outputs:
            try:
                derivative.prepare(abstract)
            except NotElementwiseError:
                return None
        return derivative


def _fused_gradient(backward: Callable[..., Any]) -> tuple[Fused, Callable[..., Any]]:
    made = Fused(backward, sums=True)
    return made, with_plans(backward, lambda: made)


def _go_together(abstract: Sequence[Any]) -> bool:
    """Whether a kernel can read all the tensors: on one device, or without dimensions."""
    types = [each for each in abstract if type(each) is TensorType]
    there = {each.device for each in types if each.device is not CPU}
    return len(there) == 1 and not any(each.device is CPU and each.shape for each in types)


def _is_number(value: Any) -> bool:
    """Whether a leaf can be an argument of a kernel."""
    return type(value) is float or (type(value) is int and -(2**63) <= value < 2**63)


def _leaf_key(leaf: Any) -> Any:
    if type(leaf) is TensorType:
        return leaf
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"arguments of a fused function are tensors, numbers and what can be hashed, not "
            f"{type(leaf).__name__}"
        ) from None
    return type(leaf), attr_key(leaf)
