"""Applications of an `autograd.Function`, and what they leave for its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.dispatch import zeros_of
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple
from .custom_call import Cotangents, CustomCall, Forward, call_custom

if TYPE_CHECKING:
    from .function import Function, FunctionRecord


class FunctionCtx:
    """What `forward` leaves for `backward`; attributes may be set on it freely."""

    def __init__(self) -> None:
        self._to_save: tuple[Tensor | None, ...] = ()
        self._for_forward: tuple[Tensor | None, ...] | None = None
        self._record: FunctionRecord | None = None
        self._non_differentiable: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, which reads them from `saved_tensors`."""
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved; RuntimeError if it was overwritten or freed since."""
        if self._record is None:
            return self._to_save
        return self._record.restored()

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `jvp`, which reads them from `saved_tensors`."""
        self._for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self._non_differentiable = {id(each) for each in tensors}

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that `forward` wrote to these inputs in place; they must be returned."""
        self._dirty = {id(each) for each in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without cotangent."""
        self._materialize = value


class VmapInfo(NamedTuple):
    """What `vmap` of a Function is told: how many examples, and how random numbers are drawn."""

    batch_size: int
    randomness: str


class FunctionCall(CustomCall):
    """One application of a Function in a lifted context, which a context below has to know of."""

    def __init__(
        self, function: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.applied, self.args, self.kwargs = function, args, kwargs
        self.name = function.__name__
        self.at = [at for at, each in enumerate(args) if isinstance(each, Tensor)]
        self.is_single = False
        self.results: list[Any] = []  # of `forward`, and where tensors are among them
        self.places: list[int] = []

    def run(self, context: Any, tensors: Sequence[Tensor]) -> list[Tensor] | None:
        """The outputs; None where the context computes the function as it is written."""
        if context.name == "vmap" and self.applied.vmap is not None:
            found: list[Tensor] = context.custom_by_user(self, tensors, self._batched)
            return found
        return None if context.runs_as_written(tensors) else call_custom(self, tensors)

    def _given(self, tensors: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        found = list(others)
        for at, each in zip(self.at, tensors, strict=True):
            found[at] = each
        return found

    def _taken(self, result: Any) -> list[Tensor]:
        self.is_single = not isinstance(result, (tuple, list))
        self.results = [result] if self.is_single else list(result)
        self.places = [at for at, each in enumerate(self.results) if isinstance(each, Tensor)]
        return [self.results[at] for at in self.places]

    def filled(self, outputs: Sequence[Tensor]) -> Any:
        """The result, of the form that `forward` gives."""
        for at, each in zip(self.places, outputs, strict=True):
            self.results[at] = each
        return self.results[0] if self.is_single else tuple(self.results)

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(
            isinstance(each, Tensor) and each._type.dtype.is_differentiable
            for each in self._given(tensors, self.args)
        )
        result = self.applied.run_forward(ctx, tuple(self._given(tensors, self.args)), self.kwargs)
        if ctx._dirty:
            raise NotImplementedError(
                f"autograd.Function {self.name}, at {user_site()}, marks an input dirty, which it "
                "writes in place: no transform around a gradient knows how. Give a new tensor."
            )
        outputs = self._taken(result)
        kept = [each for each in ctx._to_save if each is not None]
        holes = [each is None for each in ctx._to_save]
        live = [id(each) not in ctx._non_differentiable for each in outputs]
        return Forward(outputs, kept, (ctx, holes, live, [each._type for each in outputs]))

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        ctx, holes, live, types = rest
        kept = iter(residuals)
        ctx._to_save = tuple(None if hole else next(kept) for hole in holes)
        ctx.needs_input_grad = tuple(self._given(wanted, [False] * len(self.args)))
        given = [each if is_live else None for each, is_live in zip(cotangents, live, strict=True)]
        if ctx._materialize:
            given = [
                zeros_of(type_) if each is None else each
                for each, type_ in zip(given, types, strict=True)
            ]
        incoming = [None] * len(self.results)
        for at, each in zip(self.places, given, strict=True):
            incoming[at] = each
        result = self.applied.backward(ctx, *incoming)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(found) < len(self.args) or any(each is not None for each in found[len(self.args) :]):
            raise RuntimeError(
                f"function {self.name}Backward returned an incorrect number of gradients (expected "
                f"{len(self.args)}, got {len(found)})"
            )
        return [found[at] for at in self.at]

    def tangents(
        self, primals: Sequence[Tensor], tangents: Cotangents
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        if self.applied.jvp is None:
            return super().tangents(primals, tangents)
        outputs, kept, (ctx, holes, live, _) = self.forward(primals)
        left = iter(kept)
        ctx._to_save = tuple(None if hole else next(left) for hole in holes)
        if ctx._for_forward is not None:
            ctx._to_save = ctx._for_forward
        result = self.applied.jvp(ctx, *self._given(tangents, [None] * len(self.args)))
        pushed = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(pushed) != len(outputs):
            raise RuntimeError(
                f"autograd.Function {self.name}: jvp gave {len(pushed)} tangents of "
                f"{len(outputs)} outputs, at {user_site()}"
            )
        return outputs, [each if is_live else None for each, is_live in zip(pushed, live)]

    def _batched(
        self, size: int, randomness: str, dims: Sequence[int | None], tensors: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[int | None]]:
        """By the rule of the user: outputs below, and the axis of the examples in each."""
        places = tuple(self._given(dims, [None] * len(self.args)))
        args = self._given(tensors, self.args)
        found = self.applied.vmap(VmapInfo(size, randomness), places, *args, **self.kwargs)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise RuntimeError(
                f"autograd.Function {self.name}: vmap must give a pair of outputs and out_dims, "
                f"at {user_site()}"
            )
        outputs = self._taken(found[0])
        out_dims = found[1] if isinstance(found[1], (tuple, list)) else [found[1]] * len(outputs)
        if len(out_dims) != len(self.results):
            out_dims = [*out_dims, *[None] * (len(self.results) - len(out_dims))]
        return outputs, [out_dims[at] for at in self.places]
