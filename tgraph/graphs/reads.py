"""What a run reads of the outside that is neither fed to it nor a variable of its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled.call_helpers import random_state
from ..compiler.ir import Node, TensorType
from ..core.eager_context import EAGER
from ..core.tensor import Tensor
from ..core.trace_state import Source, TraceError, TraceInput
from ..core.traced_number import number_value
from ..tracing.trace_context import strides_if_odd

Array = Any  # of NumPy or CuPy


def reader(entry: TraceInput) -> Callable[[], Array]:
    """What gives the array of an input."""
    source, key = entry.source, entry.source.key
    if source.kind == "number":
        return lambda: np.array(number_value(key, _number))
    if source.kind == "random":
        return lambda: random_state(key)
    if source.kind == "host":
        return key  # type: ignore[no-any-return]
    return lambda: checked(entry.node, key)


def _number(source: Source) -> Any:
    return source.key()


def checked(node: Node, tensor: Tensor) -> Array:
    """The array of a tensor of the outside, which has to be of the type that it had."""
    array = EAGER.value_of(tensor)
    check_array(node, tensor._type, array)
    return array


def check_array(node: Node, type_: TensorType, array: Array | None) -> None:
    """TraceError unless an array, of `type_`, is what the input `node` stands for.

    None for one on another device, where it is contiguous.
    """
    if type_ is not node.type and type_ != node.type:
        raise TraceError(
            f"`{node.attrs['name']}`, which the graph reads, is of another type now: "
            f"{node.type} -> {type_}"
        )
    if array is None:
        return
    strides = node.attrs.get("strides")
    is_dense = strides is None and array.flags.c_contiguous
    if not is_dense and strides_if_odd(array) != strides:
        raise TraceError(
            f"`{node.attrs['name']}`, which the graph reads, lies otherwise in memory "
            "now; clone() it before the graph is built"
        )
