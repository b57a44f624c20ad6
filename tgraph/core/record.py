"""What the forward pass remembers for the backward pass.

A record is what PyTorch calls `grad_fn`: which operation made a tensor, from what, and the values
its gradient rule (`vjp_rules.py`) asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from .state import state
from .tensor import Tensor

# Where a cotangent goes: output number `index` of a Record, or a leaf tensor.
Edge = tuple[Any, int] | None

_order = itertools.count()


def next_order() -> int:
    """A number between those of the records made before and those made later."""
    return next(_order)


class Record:
    """An operation that happened. `edges` lead to where the cotangents of its inputs go.

    Records are numbered as they are made and are only ever made after those they lead to, so that
    descending `order` is a topological order.
    """

    __slots__ = ("__weakref__", "edges", "freed", "hooks", "order", "outputs", "region", "site")

    # Whether `cotangents` makes new tensors, to which nobody else holds on.
    makes_fresh = True
    # Whether its rule knows saved tensors by their identity.
    keeps_handles = False

    def __init__(self, edges: tuple[Edge, ...], outputs: tuple[TensorType, ...], site: Any) -> None:
        self.edges = edges
        self.outputs = outputs
        self.site = site
        self.order = next(_order)
        self.hooks: dict[int, dict[int, Any]] | None = None  # output -> {handle id: hook}
        self.freed = False
        self.region = state.region  # which computes again what is saved, where there is one

    def name(self) -> str:
        """Such as "MulBackward0"."""
        raise NotImplementedError

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        """One cotangent (or None) per edge, where it is wanted.

        Its shape may be any to which the input was broadcast.
        """
        raise NotImplementedError

    def saved_values(self) -> Sequence[Saved]:
        """The tensors kept for the backward pass."""
        return ()

    def free(self) -> None:
        """Drop the saved values, if there are any, after which the record cannot run again."""

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The records that this one leads to, as PyTorch shows them."""
        return tuple(
            (None, 0) if edge is None else (_as_function(edge[0]), edge[1]) for edge in self.edges
        )

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class AccumulateGrad:
    """How `next_functions` shows the leaf tensor at the end of an edge."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[()]:
        return ()

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


def _as_function(target: Record | Tensor) -> Any:
    return AccumulateGrad(target) if isinstance(target, Tensor) else target


class Saved:
    """A tensor kept for the backward pass, with the version its memory had.

    An output is kept without its record, which would refer to itself; `unpack` puts it back.
    """

    __slots__ = ("storage", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        storage = tensor._storage
        self.version = 0 if storage is None else storage.version
