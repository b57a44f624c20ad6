"""Gradients that are sparse tensors, as those of `Embedding(sparse=True)`."""

from __future__ import annotations

from typing import Any

from ..core.sparse_tensor import SparseTensor, with_elements
from ..core.tensor import Tensor


def is_sparse(gradient: Any) -> bool:
    """Whether a gradient lists the places where it is not zero."""
    return type(gradient) is SparseTensor


def summed(gradient: Any, ascend: bool) -> tuple[SparseTensor, Tensor]:
    """A gradient with each place once, and its values; their opposites where `ascend`."""
    once = gradient.coalesce()
    return once, -once.values() if ascend else once.values()


def taken(x: Tensor, places: SparseTensor) -> Tensor:
    """The elements of a tensor at the places of a gradient."""
    return x.sparse_mask(places).values()


def add_at(x: Tensor, places: SparseTensor, elements: Tensor) -> None:
    """Add to a tensor in place, at the places of a gradient."""
    x.add_(with_elements(places, elements))
