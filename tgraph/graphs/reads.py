"""What a run reads of the outside that is neither fed to it nor a variable of its session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiled.call_helpers import random_state
from ..compiler.ir import Node, TensorType
from ..compiler.ir.dim import Dim
from ..core.eager_context import EAGER
from ..core.tensor import Tensor
from ..core.trace_state import Source, TraceError, TraceInput
from ..core.traced_number import number_value
from ..runtime.arrays import place
from ..runtime.device import Device
from ..tracing.open_sizes import dims_of
from ..tracing.trace_context import strides_if_odd

Array = Any  # of NumPy or CuPy


def reader(entry: TraceInput) -> Callable[[], Array]:
    """What gives the array of an input, which is no number."""
    source, key = entry.source, entry.source.key
    if source.kind == "random":
        return lambda: random_state(key)
    if source.kind == "host":
        return key  # type: ignore[no-any-return]
    return lambda: checked(entry.node, key)


def numbers_of(inputs: Sequence[TraceInput]) -> list[tuple[int, Any]]:
    """Which inputs are numbers, and their expressions."""
    return [(at, e.source.key) for at, e in enumerate(inputs) if e.source.kind == "number"]


class NumberReads:
    """Reads the numbers of one run, each of them once: `numbers` are inputs and expressions.

    `devices` tells where each input is wanted.
    """

    def __init__(self, numbers: Sequence[tuple[int, Any]], devices: Sequence[Device]) -> None:
        self._left, self._devices = list(numbers), devices
        self._values: dict[int, Any] = {}  # of functions that give numbers, by their ids
        self._known: Mapping[Dim, int] = {}

    def put(self, inputs: list[Array], known: Mapping[Dim, int]) -> None:
        """Put those among the inputs that can be computed where these sizes are known."""
        if not self._left:
            return
        self._known, numbers, self._left = known, self._left, []
        for at, expression in numbers:
            if known.keys() >= set(dims_of(expression)):
                number = np.array(number_value(expression, self._read))
                inputs[at] = place(number, self._devices[at])
            else:
                self._left.append((at, expression))

    def _read(self, source: Source) -> Any:
        if source.kind == "size":
            return source.key.at(self._known)
        key = id(source.key)
        if key not in self._values:
            self._values[key] = source.key()
        return self._values[key]


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
