"""Custom gradients: `autograd.Function`, with PyTorch's interface."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.dispatch import edge_read, settled, unpack, without_history, zeros_of
from ..core.eager_context import current_context
from ..core.grad_mode import is_grad_enabled, no_grad
from ..core.provenance import user_site
from ..core.record import FREED, Edge, Record, Saved
from ..core.saved_tensors import pack_saved, packs
from ..core.state import state
from ..core.tensor import Tensor, wrap
from .function_call import FunctionCall, FunctionCtx


class FunctionRecord(Record):
    """One application of a Function."""

    __slots__ = ("ctx", "function", "saved")

    makes_fresh = False

    def __init__(
        self,
        edges: tuple[Edge, ...],
        outputs: Sequence[Tensor],
        function: type[Function],
        ctx: FunctionCtx,
    ) -> None:
        super().__init__(edges, tuple(each._type for each in outputs), user_site())
        self.function = function
        self.ctx = ctx
        places = {id(each): at for at, each in enumerate(outputs)}
        self.saved: list[Any] = [
            None if each is None else self._save(each, places.get(id(each)))
            for each in ctx._to_save
        ]
        if state.saved_hooks is not None and (hooks := packs()) is not None:
            for saved in self.saved_values():
                pack_saved(saved, hooks)
        ctx._to_save = ()
        ctx._record = self

    def _save(self, tensor: Tensor, output: int | None) -> tuple[Saved, int | None]:
        """An output is saved without its record, which would refer to itself."""
        if output is None:
            return Saved(tensor), None
        return Saved(without_history(tensor)), output

    def restored(self) -> tuple[Tensor | None, ...]:
        if self.freed:
            raise RuntimeError(FREED.format(name=self.name(), site=self.site))
        return tuple(None if each is None else self._restore(*each) for each in self.saved)

    def _restore(self, saved: Saved, output: int | None) -> Tensor:
        kept = settled(unpack(saved, self))
        if output is None:
            return kept
        twin = wrap(kept._value, kept._type)
        twin._storage, twin._view = kept._storage, kept._view
        twin._record, twin._index, twin._requires_grad = self, output, True
        return twin

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        given = list(incoming)
        if self.ctx._materialize:
            given = [
                zeros_of(type_) if each is None and type_.dtype.is_differentiable else each
                for each, type_ in zip(incoming, self.outputs)
            ]
        result = self.function.backward(self.ctx, *given)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        count = len(self.edges)
        if len(found) > count and all(each is None for each in found[count:]):
            found = found[:count]
        if len(found) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(found)})"
            )
        for at, each in enumerate(found):
            self._check(each, at)
        return found

    def _check(self, gradient: Any, at: int) -> None:
        edge = self.edges[at]
        if gradient is None or edge is None:
            return
        if not isinstance(gradient, Tensor):
            raise TypeError(
                f"function {self.name()} returned a {type(gradient).__name__} as gradient {at}, "
                "expected a Tensor or None"
            )
        target, index = edge
        wanted = target._type if isinstance(target, Tensor) else target.outputs[index]
        lead = gradient.ndim - wanted.ndim
        sizes = gradient._type.shape[max(lead, 0) :]
        if lead < 0 or any(a not in (1, b) for a, b in zip(wanted.shape, sizes)):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {at} - got "
                f"{list(gradient._type.shape)} but expected shape compatible with "
                f"{list(wanted.shape)}"
            )

    def saved_values(self) -> list[Saved]:
        return [each[0] for each in self.saved if each is not None]

    def __getattr__(self, name: str) -> Any:
        """What the forward pass left at `ctx`, which is PyTorch's node itself."""
        if name.startswith("__") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def free(self) -> None:
        if self.saved:
            self.freed = True
            self.saved = []


class Function:
    """A function with a gradient of its own. Subclass it, and call it through `apply`.

    >>> import tgraph as tg
    >>> class Cube(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * 3 * x**2
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: `forward(ctx, *inputs)`, or without ctx beside `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save for backward, where `forward` does not take a ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient (or None) for each input of `forward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    # Rules of their own that subclasses may have, as in PyTorch: `jvp(ctx, *grad_inputs)` gives
    # tangents of outputs, from one or None for each input; without, they follow from `backward`.
    # `vmap(info, in_dims, *args)` gives outputs for many examples, and `out_dims`; without,
    # `forward` and `backward` run on tensors of which each example has its own.
    jvp: Any = None
    vmap: Any = None
    generate_vmap_rule = True

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` without recording, and record this function in its place."""
        ctx = FunctionCtx()
        tensors = [each for each in args if isinstance(each, Tensor)]
        context = current_context()
        if context.lifts:
            called = FunctionCall(cls, args, kwargs)
            found = called.run(context, tensors)
            if found is not None:
                return called.filled(found)
        ctx.needs_input_grad = tuple(
            isinstance(each, Tensor) and settled(each)._requires_grad for each in args
        )
        recording = state.grad_enabled and any(each._requires_grad for each in tensors)
        edges = tuple(edge_read(each) if isinstance(each, Tensor) else None for each in args)
        previous, state.grad_enabled = state.grad_enabled, False
        try:
            result = cls.run_forward(ctx, args, kwargs)
        finally:
            state.grad_enabled = previous
        if not recording:
            return result
        return _recorded(cls, ctx, edges, args, result)

    @classmethod
    def run_forward(cls, ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args, **kwargs)
        result = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, result)
        return result


def _recorded(
    cls: type[Function],
    ctx: FunctionCtx,
    edges: tuple[Edge, ...],
    args: tuple[Any, ...],
    result: Any,
) -> Any:
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    inputs = {id(each) for each in args if isinstance(each, Tensor)}
    for at, each in enumerate(results):
        if isinstance(each, Tensor) and id(each) in inputs and id(each) not in ctx._dirty:
            twin = each.view_as(each)
            ctx._to_save = tuple(each if kept is each else kept for kept in ctx._to_save)
            results[at] = twin.detach()
    tensors = [each for each in results if isinstance(each, Tensor)]
    record = FunctionRecord(edges, tensors, cls, ctx)
    for at, each in enumerate(tensors):
        if each._type.dtype.is_differentiable and id(each) not in ctx._non_differentiable:
            current_context().touch(each)
            each._record, each._index, each._requires_grad = record, at, True
            each._view = None if id(each) not in inputs else each._view
    return tuple(results) if isinstance(result, (tuple, list)) else results[0]


class _Once(Function):
    """What a gradient gives that has none itself."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """For the `backward` of a Function whose own gradient is not right: it has none.

    >>> import tgraph as tg
    >>> from tgraph.autograd.function import once_differentiable
    >>> class Double(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, grad_output):
    ...         return grad_output * 2
    >>> x = tg.ones(2, requires_grad=True)
    >>> tg.autograd.grad(Double.apply(x).sum(), x)
    (tensor([2., 2.]),)
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any) -> Any:
        with no_grad():
            result = fn(ctx, *args)
        if not is_grad_enabled() or not any(
            isinstance(each, Tensor) and each.requires_grad for each in args
        ):
            return result
        found = result if isinstance(result, tuple) else (result,)
        made = [
            _Once.apply(each.detach().requires_grad_()) if isinstance(each, Tensor) else each
            for each in found
        ]
        return tuple(made) if isinstance(result, tuple) else made[0]

    return backward
