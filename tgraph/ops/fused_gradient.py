"""The gradient of a fused function, itself fused, and the step as which a call is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import api
from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import broadcast as broadcast_shapes
from ..core import pytree
from ..core.dispatch import PrimitiveRecord, apply, edge_of, unpack
from ..core.eager_context import constant
from ..core.provenance import user_site
from ..core.record import Edge, Record, Saved
from ..core.state import state
from ..core.tensor import Tensor
from .fused_expression import Expression


class Derivative:
    """The gradient of a fused function for one signature, itself a fused function.

    It takes the leaves of the arguments and one cotangent for each output that can be
    differentiated, and gives the cotangents of the leaves `wanted`. `fuse` makes a fused function.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        spec: pytree.TreeSpec,
        wanted: Sequence[int],
        outputs: dict[int, int],
        types: tuple[TensorType, ...],
        fuse: Callable[[Callable[..., Any]], tuple[Any, Callable[..., Any]]],
    ) -> None:
        self.name = name
        self.function = function
        self.spec = spec
        self.wanted = tuple(wanted)
        self.outputs = outputs  # leaf of the result -> number of the output
        self.types = types
        self.reads: frozenset[int] = frozenset()

        def backward(*given: Any) -> Any:
            return self._gradient(given)

        backward.__name__ = f"{name}_backward"
        self.fused, self.call = fuse(backward)

    def prepare(self, abstract: Sequence[Any]) -> None:
        """Find out what is read; NotElementwiseError where the gradient is not elementwise."""
        given = [*abstract, *self.types]
        spec = pytree.flatten((tuple(range(len(given))), {}))[1]
        self.reads = self.fused.program(given, spec).reads

    def _gradient(self, given: Sequence[Any]) -> tuple[Tensor | None, ...]:
        count = len(given) - len(self.types)
        leaves, cotangents = list(given[:count]), given[count:]
        onward, state.grad_enabled = state.grad_enabled, True
        try:
            for at in self.wanted:
                leaves[at] = apply(p.copy, leaves[at])
                leaves[at]._requires_grad = True
            args, kwargs = self.spec.unflatten(leaves)
            results = pytree.leaves(self.function(*args, **kwargs))
            found = api.grad(
                [results[at] for at in self.outputs],
                [leaves[at] for at in self.wanted],
                cotangents,
                create_graph=onward,
                allow_unused=True,
            )
            context = state.context
            if isinstance(context, Expression):
                # Sums wait until after the kernel, which gives what is to be added up.
                shapes = [each._type.shape for each in given if isinstance(each, Tensor)]
                shape = broadcast_shapes(*shapes)
                found = tuple(None if each is None else _spread(each, shape) for each in found)
        finally:
            state.grad_enabled = onward
        return found

    def attach(self, leaves: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Record one step that made `outputs` from `leaves`."""
        if not self.outputs:
            return
        record = FusedRecord(self, leaves)
        for index, number in enumerate(self.outputs.values()):
            made = outputs[number]
            made._record, made._index, made._requires_grad = record, index, True


def _spread(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    if gradient._type.shape == shape:
        return gradient
    return apply(p.broadcast, gradient, shape=shape)


class FusedRecord(Record):
    """The call of a fused function: tensors that its gradient reads are Saved."""

    __slots__ = ("derivative", "leaves")

    def __init__(self, derivative: Derivative, leaves: Sequence[Any]) -> None:
        edges: tuple[Edge, ...] = tuple(edge_of(leaves[at]) for at in derivative.wanted)
        super().__init__(edges, derivative.types, user_site())
        self.derivative = derivative
        self.leaves: list[Any] | None = [
            (Saved(each) if at in derivative.reads else each._type)
            if isinstance(each, Tensor)
            else each
            for at, each in enumerate(leaves)
        ]

    def name(self) -> str:
        words = self.derivative.name.split("_")
        return f"{''.join(word.capitalize() for word in words)}Backward0"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        assert self.leaves is not None
        leaves = [self._leaf(each) for each in self.leaves]
        given = [
            _zeros(type_) if each is None else each
            for each, type_ in zip(incoming, self.outputs, strict=True)
        ]
        return list(self.derivative.call(*leaves, *given))

    def _leaf(self, kept: Any) -> Any:
        if type(kept) is Saved:
            return unpack(kept, self)
        return _zeros(kept) if type(kept) is TensorType else kept

    def saved_values(self) -> list[Saved]:
        return [each for each in self.leaves or () if type(each) is Saved]

    def free(self) -> None:
        if self.saved_values():
            self.freed = True
            self.leaves = None


def _zeros(type_: TensorType) -> Tensor:
    """Zeros that take no memory, in place of what is not read or was not reached."""
    zero = constant(0, type_.dtype, type_.device)
    return apply(p.broadcast, zero, shape=type_.shape) if type_.shape else zero


def is_made_of_primitives(results: Sequence[Tensor]) -> bool:
    """Whether the history of results has rules of our own alone, which are elementwise."""
    seen: set[int] = set()
    stack: list[Any] = [each._record for each in results]
    while stack:
        record = stack.pop()
        if record is None or isinstance(record, Tensor) or id(record) in seen:
            continue
        if type(record) is not PrimitiveRecord:
            return False
        seen.add(id(record))
        stack += [edge[0] for edge in record.edges if edge is not None]
    return True
