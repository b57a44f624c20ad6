"""Primitives without tensor inputs, random bits and the selector of results.

- `input(name, index, type)`: a value fed from outside; every one is distinct;
- `constant(value)`: a NumPy array; `full(shape, value, dtype, device)`: one Python scalar;
- `iota(size, dtype, device)`: 0, 1, ..., size-1;
- `random_bits(key, counter; shape, device)`: uniform uint32 bits by Philox 4x32-10. Both are
  int64[]: the seed of a generator, and the number that tells this draw from its others. Whoever
  draws goes on with `counter + 1`, a value like any other, which a loop can carry;
- `get(tuple; index)`: one result of a tuple-typed node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...runtime.device import CPU
from ...runtime.dtypes import from_numpy_dtype, int64, uint32
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType


def _infer_input(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    declared: TensorType = attrs["type"]
    return declared


def _infer_constant(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    value = attrs["value"]
    return TensorType(value.shape, from_numpy_dtype(value.dtype), attrs.get("device", CPU))


def _infer_full(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    return TensorType(attrs["shape"], attrs["dtype"], attrs.get("device", CPU))


def _infer_iota(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if attrs["dtype"].is_complex:
        raise IRTypeError(f"expected a real dtype, got {attrs['dtype']}")
    return TensorType((attrs["size"],), attrs["dtype"], attrs.get("device", CPU))


def _infer_random_bits(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    for name, each in zip(("key", "counter"), types, strict=True):
        if each.shape != () or each.dtype is not int64:
            raise IRTypeError(f"random_bits expected a {name} of type int64[], got {each}")
    return TensorType(attrs["shape"], uint32, attrs.get("device", types[0].device))


def _infer_get(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    results = cast(tuple[TensorType, ...], types[0])  # the type of a tuple-typed node
    return results[attrs["index"]]


input_ = register(Primitive("input", Family.SOURCE, _infer_input, arity=0, exact=True))
constant = register(Primitive("constant", Family.SOURCE, _infer_constant, arity=0, exact=True))
full = register(Primitive("full", Family.SOURCE, _infer_full, arity=0, exact=True))
iota = register(Primitive("iota", Family.SOURCE, _infer_iota, arity=0, exact=True))
random_bits = register(
    Primitive("random_bits", Family.RANDOM, _infer_random_bits, arity=2, exact=True, cost=80)
)
get = register(Primitive("get", Family.GET, _infer_get, arity=1, exact=True))
