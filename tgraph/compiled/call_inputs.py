"""What a call of a compiled function gives its plan, as arrays, without calling it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..core.trace_state import Source
from ..core.traced_number import number_value
from ..runtime.arrays import copy_of, strided_copy
from .call_helpers import random_state
from .compiled_call import CompiledCall

Array = np.ndarray[Any, Any]


def call_inputs(plan: CompiledCall, leaves: Sequence[Any]) -> list[Array]:
    """The arrays of all inputs of a plan, which are not copied; `leaves` with those of places."""
    return [input_value(entry.source, leaves) for entry in plan.call.inputs]


def input_value(source: Source, leaves: Sequence[Any]) -> Array:
    """The array of an input that is found at a source."""
    match source.kind:
        case "number":
            return np.array(number_value(source.key, lambda each: _number(each, leaves)))
        case "host":
            return source.key()  # type: ignore[no-any-return]
        case "random":
            return random_state(source.key)
    tensor = tensor_at(source, leaves)
    assert tensor is not None
    array: Array = tensor._value
    return array


def _number(source: Source, leaves: Sequence[Any]) -> Any:
    return leaves[source.key] if source.kind == "number" else source.key()


def tensor_at(source: Source, leaves: Sequence[Any]) -> Tensor | None:
    """The tensor of the outside that is found at a source now."""
    if source.kind == "argument":
        return leaves[source.key]  # type: ignore[no-any-return]
    if source.kind == "captured":
        return source.key  # type: ignore[no-any-return]
    owner = tensor_at(source.key, leaves)
    return None if owner is None else owner._grad


def copies(arrays: Sequence[Array]) -> list[Array]:
    """Copies that lie in memory as the originals do."""
    return [
        copy_of(each) if each.flags.c_contiguous else strided_copy(each, each.strides)
        for each in arrays
    ]
