"""`transfer(x; device)`: the same value in the memory of another device."""

from __future__ import annotations

from collections.abc import Sequence

from .primitive import Attrs, Family, Primitive, register
from .types import TensorType


def _infer_transfer(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    return types[0].with_device(attrs["device"])


transfer = register(Primitive("transfer", Family.TRANSFER, _infer_transfer, arity=1, exact=True))
