"""Contexts that stand over another one.

A lifted context computes with tensors of the context below: the value of each of its tensors is
made of them. Every operation on its tensors comes through `apply` like any other, and the rule of
its primitive says which operations below give the result. What is below may be a lifted context
itself, a trace, or eager mode, so that transforms nest, and compile.

A tensor that is not its own is one of the context below, or of those under that. Values never
change: a write in place gives the tensor, and the views of its memory, a new value. Written tensors
of the outside are written by the context below.

A tensor requires grad here where what it is made of does, so that gradients asked inside know of
gradients that may be asked outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..compiler.ir import Primitive, TensorType
from ..compiler.ir import primitives as p
from ..core.carried_number import CarriedNumber
from ..core.context import Context
from ..core.dispatch import settled
from ..core.eager_context import EAGER
from ..core.inplace import assign, written_through
from ..core.provenance import Site, user_site
from ..core.state import state
from ..core.tensor import Lifted, Tensor, root_of, wrap
from ..core.trace_state import Boundary
from ..core.views import would_alias
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType


class OuterHistory(Boundary):
    """The history that a tensor has outside of a transformed function."""

    __slots__ = ("transform",)

    def __init__(self, type_: TensorType, transform: str) -> None:
        super().__init__(type_, "an argument")
        self.transform = transform

    def name(self) -> str:
        return "OutsideOfTheTransform"

    def cotangents(self, incoming: Any, wanted: Sequence[bool]) -> list[Tensor | None]:
        raise RuntimeError(
            f"{self.transform}: backward() in the function, at {user_site()}, reached an argument "
            "that was computed outside of it. Call backward() outside, or use tg.grad inside."
        )


class LiftedContext(Context):
    """What all lifted contexts share. `name` is that of the transform, for errors."""

    tracing = True
    lifts = True
    name = "a transform"

    def __init__(self) -> None:
        self.below: Any = state.context
        self.fixed = -1  # serial of the last value that must not be written

    @property
    def base(self) -> Context:
        """The lowest context: a trace, or the eager one."""
        found = self.under
        while found.lifts:
            found = found.under  # type: ignore[attr-defined]
        return found

    @property
    def pushes(self) -> bool:
        """Whether tangents are computed here, or in any context below."""
        below = self.under
        return below.lifts and below.pushes  # type: ignore[attr-defined, no-any-return]

    # --- levels ---

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Run what follows in this context, over the one that is current."""
        previous, before = state.context, self.below
        self.below, state.context = previous, self
        try:
            yield
        finally:
            self.below, state.context = before, previous

    @contextmanager
    def lowered(self) -> Iterator[None]:
        previous, state.context = state.context, self.below
        try:
            yield
        finally:
            state.context = previous

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Run what follows in this context, from one below that it called."""
        previous, state.context = state.context, self
        try:
            yield
        finally:
            state.context = previous

    @property
    def under(self) -> Context:
        """The context below."""
        found: Context = self.below or EAGER
        return found

    def owns(self, tensor: Tensor) -> bool:
        value = tensor._value
        return isinstance(value, Lifted) and value.context is self

    def may_reshape(self, tensor: Tensor) -> bool:
        return self.owns(tensor)

    def as_lifted(self, tensor: Tensor) -> Any:
        """The value here of a tensor of the outside."""
        raise NotImplementedError

    def value_of(self, tensor: Tensor) -> Any:
        return tensor._value if self.owns(tensor) else self.as_lifted(tensor)

    def made(self, value: Lifted, type_: TensorType, requires_grad: bool = False) -> Tensor:
        """A new tensor of this context; it has a history outside where it `requires_grad`."""
        result = wrap(value, type_)
        if requires_grad:
            result._record, result._requires_grad = OuterHistory(type_, self.name), True
        return result

    def lowered_tensor(self, tensor: Tensor) -> Tensor:
        """What a tensor is made of, as far as memory goes; itself where it is of the outside."""
        found: Tensor = settled(tensor)._value.below if self.owns(tensor) else tensor
        return found

    def runs_as_written(self, tensors: Sequence[Tensor]) -> bool:
        """Whether no context below has to know of the rule by which a function of `tensors` is
        differentiated: then the function may run here, operation by operation."""
        below = map(self.lowered_tensor, tensors)
        recorded = state.grad_enabled and any(each._requires_grad for each in below)
        return not (recorded or self.under.lifts)

    # --- values that the host reads or makes ---

    def readable(self, tensor: Tensor, operation: str) -> Tensor:
        """The tensor below whose elements are those of `tensor`; an error if there is none."""
        return self.lowered_tensor(tensor)

    def has_value(self, tensor: Tensor) -> bool:
        return self.under.has_value(self.lowered_tensor(tensor))

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        below = self.readable(tensor, operation)
        with self.lowered():
            return self.under.host_array(settled(below), operation)

    def positions(self, tensor: Tensor, operation: str) -> tuple[Tensor, ...]:
        below = self.readable(tensor, operation)
        with self.lowered():
            found = self.under.positions(settled(below), operation)
        return tuple(self.own(each) for each in found)

    def own(self, tensor: Tensor) -> Tensor:
        """A tensor of the context below as one of this context."""
        return self.made(self.as_lifted(tensor), tensor._type)

    def not_rewritten(self, operation: str) -> str:
        return self.under.not_rewritten(operation)

    def allow_iteration(self) -> None:
        self.under.allow_iteration()

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        if type(value) is CarriedNumber:
            return value.to(dtype, device)
        return self.own(self.under.constant(value, dtype, device))

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        return self.own(self.under.array_constant(array, device))

    def reads_current_device(self, current: Callable[[], int]) -> None:
        self.under.reads_current_device(current)

    def host_number(self, getter: Callable[[], float], dtype: DType | None) -> Any:
        return self.under.host_number(getter, dtype)

    def host_constant(self, getter: Callable[[], Any], name: str) -> Any:
        return self.under.host_constant(getter, name)

    def host_value(self, function: Callable[[], Any]) -> Any:
        return self.under.host_value(function)

    def gradients_off(self) -> None:
        self.under.gradients_off()

    def allow_draws(self) -> None:
        self.under.allow_draws()

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        self.allow_draws()
        with self.lowered():
            return self.under.draw_from(generator, device)

    def random_state(self, generator: Any) -> Tensor:
        with self.lowered():
            return self.under.random_state(generator)

    def restart(self, generator: Any, random_state: Tensor) -> None:
        with self.lowered():
            self.under.restart(generator, random_state)

    def seeded(self, generator: Any, seed: int) -> None:
        with self.lowered():
            self.under.seeded(generator, seed)

    def token(self, device: Device) -> Tensor:
        with self.lowered():
            return self.under.token(device)

    def ordered(self, token: Tensor) -> None:
        with self.lowered():
            self.under.ordered(self.lowered_tensor(token))

    def region(self, policy: Any) -> AbstractContextManager[bool]:
        return self.under.region(policy)

    def named(self, tensor: Tensor, name: str) -> None:
        self.under.named(self.lowered_tensor(tensor), name)

    def serial(self) -> int:
        return self.under.serial()

    # --- branches and loops of a trace ---

    def loop_below(
        self, decide: Callable[..., Tensor], advance: Callable[..., Sequence[Tensor]],
        carried: Sequence[Tensor], watched: Sequence[Callable[..., Any]] = (),
        checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """A loop of the trace below, whose functions are recorded there."""
        base, types = self.base, [each._type for each in carried]

        def loop(*tensors: Tensor) -> list[Tensor]:
            body = base.body(advance, types, watched)
            condition = base.body(lambda *state_: [decide(*state_)], types, ())
            return base.loop(condition, body, tensors, None, checkpoints)

        return base.run_above(self, loop, carried, "WhileLoop")

    def was_moved(self, tensor: Tensor) -> bool:
        """Whether a tensor from outside of the transformed functions got a tangent in one."""
        return self.under.lifts and self.under.was_moved(tensor)  # type: ignore[attr-defined, no-any-return]

    def as_read(self, tensor: Tensor, operand: Tensor) -> Tensor:
        """`operand`, the value of a tensor of the outside, with the tangents that this one has."""
        if not self.under.lifts:
            return operand
        with self.lowered():
            return self.under.as_read(tensor, operand)  # type: ignore[attr-defined, no-any-return]

    def greatest_below(self, count: Tensor) -> Tensor:
        """A number of the trace below: the greatest of all examples."""
        with self.lowered():
            found = self._greatest(count)
            return self.under.greatest_below(found) if self.under.lifts else found  # type: ignore

    def _greatest(self, count: Tensor) -> Tensor:
        return self.lowered_tensor(count)

    # --- mutation ---

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        return primitive is not p.reshape or would_alias(source, attrs["shape"])

    def memory_of(self, tensor: Tensor) -> Any:
        return None if self.owns(tensor) else self.under.memory_of(tensor)

    def touch(self, tensor: Tensor) -> None:
        if not self.owns(tensor):
            self.under.touch(tensor)

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        view = tensor._view
        if view is None or not view.apart:
            tensor._value = self.value_of(derived)
            return
        view.changes = view.memory.changes  # of which it sees the value; it has its own derivatives
        tensor._value = self.rewritten_value(tensor, derived, True)

    def write(self, tensor: Tensor, new: Tensor) -> None:
        root = root_of(tensor)
        is_own = self.owns(root)
        if self.fixed >= 0 and not (is_own and root._value.serial > self.fixed):
            raise NotImplementedError(
                f"{self.name}: a branch or loop writes a tensor of type {root._type}, which it has "
                f"not made, in place, at {user_site()}. Here examples go different ways, of which "
                "all are computed: let the branch or loop return the new value instead."
            )
        if not is_own:
            self._write_outside(tensor, new)
            return
        view = tensor._view
        if view is None:
            tensor._value = self._written(tensor, new, False)
            return
        # Contexts below record it; what this one records of it is dropped with its handle.
        whole = written_through(view.base, view.steps, new) if view.steps else new
        tensor._value = self.value_of(new) if view.apart else self._written(tensor, new, False)
        value = self._written(view.base, whole, view.apart)
        if view.base._view is None:
            view.base._value = value
        else:
            self.write(view.base, wrap(value, whole._type))

    def _written(self, before: Tensor, new: Tensor, apart: bool) -> Any:
        """The value of `new` where it is written over `before`: with derivatives of its own, unless
        nothing is recorded."""
        if state.grad_enabled and not apart:
            return self.value_of(new)
        return self.rewritten_value(before, new, apart)

    @contextmanager
    def selecting(self) -> Iterator[None]:
        before, self.fixed = self.fixed, next(Lifted.serials)
        try:
            yield
        finally:
            self.fixed = before

    def _write_outside(self, tensor: Tensor, new: Tensor) -> None:
        """A write into memory that was there before the transformed function was called."""
        root = root_of(tensor)
        if state.grad_enabled and (new._requires_grad or tensor._requires_grad):
            raise NotImplementedError(
                f"{self.name}: a tensor of type {root._type} from outside of the function is "
                f"written in place, at {user_site()}, where a gradient is recorded. Return the new "
                "value from the function instead, or write it under no_grad()."
            )
        target = self.lowered_tensor(tensor)
        value = self.writable_outside(tensor, target, new)
        with self.lowered():
            assign(target, value, "a write in place")
        if self.owns(tensor):
            tensor._value = self.as_lifted(target)

    def writable_outside(self, tensor: Tensor, target: Tensor, new: Tensor) -> Tensor:
        """What is written below, into `target`, for a write of `new` into `tensor`."""
        return self.lowered_tensor(new)

    # --- gradients ---

    def backward_of(self, site: Site | None) -> None:
        self.under.backward_of(site)

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        return tensor._grad if self.owns(tensor) else self.under.read_grad(tensor)

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if self.owns(tensor):
            tensor._grad = grad
            return
        if grad is not None and self.owns(grad):
            raise RuntimeError(
                f"{self.name}: backward() in the function, at {user_site()}, would write .grad of "
                f"a tensor of type {tensor._type} from outside of it. Use tg.grad, and return the "
                "gradient, or call backward() outside."
            )
        self.under.write_grad(tensor, grad)
