"""Arguments in parts for several devices, and results of several devices as one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.devices import DeviceLike, as_device
from ...core.operands import on_device
from ...core.tensor import Tensor
from ...ops.concatenation import cat
from ...ops.movement import chunk
from ...runtime.device import Device


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[DeviceLike], dim: int = 0) -> Any:
    """`inputs` in parts, one for each device: tensors are cut along `dim`, and moved there.

    Lists, tuples and dicts are taken apart; what is no tensor is given to all devices as it is.
    Where `dim` is too short for a part for each device, there are fewer parts.

    >>> import tgraph as tg
    >>> parts = tg.nn.parallel.scatter({"x": tg.arange(3), "n": 2}, ["cpu:0", "cpu:1"])
    >>> [(each["x"].tolist(), each["n"]) for each in parts]
    [([0, 1], 2), ([2], 2)]
    """
    return _scattered(inputs, [as_device(each) for each in target_gpus], dim)


def _scattered(value: Any, devices: Sequence[Device], dim: int) -> Any:
    if isinstance(value, Tensor):
        parts = chunk(value, len(devices), dim)
        return tuple(on_device(part, device) for part, device in zip(parts, devices))

    def columns(values: Any) -> list[tuple[Any, ...]]:
        return list(zip(*[_scattered(each, devices, dim) for each in values]))

    if _is_named(value):
        return [type(value)(*each) for each in columns(value)]
    if isinstance(value, tuple) and value:
        return columns(value)
    if isinstance(value, list) and value:
        return [list(each) for each in columns(value)]
    if isinstance(value, dict) and value:
        return [type(value)(zip(value, each)) for each in columns(value.values())]
    return [value for _ in devices]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[DeviceLike],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional arguments and those by name, as `scatter` gives them, as many of each."""
    given = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    given += [()] * (len(named) - len(given))
    named += [{}] * (len(given) - len(named))
    return tuple(given), tuple(named)


def gather(outputs: Sequence[Any], target_device: DeviceLike, dim: int = 0) -> Any:
    """What several devices gave, as one result on `target_device`: tensors one behind another.

    Lists, tuples and dicts are put together from theirs. Numbers become a vector, with a warning.

    >>> import tgraph as tg
    >>> tg.nn.parallel.gather([tg.ones(2, device="cpu:1"), tg.zeros(1)], "cpu:1")
    tensor([1., 1., 0.], device='cpu:1')
    """
    return _gathered(outputs, as_device(target_device), dim)


def _gathered(outputs: Sequence[Any], device: Device, dim: int) -> Any:
    first = outputs[0]

    def inner(columns: Any) -> Any:
        return (_gathered(each, device, dim) for each in columns)

    if isinstance(first, Tensor):
        return _joined([on_device(each, device) for each in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        make: Callable[..., Any] = type(first)
        return make(zip(first, inner([each[key] for each in outputs] for key in first)))
    if _is_named(first):
        return type(first)(*inner(zip(*outputs, strict=True)))
    if isinstance(first, (list, tuple)):
        return type(first)(inner(zip(*outputs, strict=True)))
    raise TypeError(
        f"gather(): expected tensors, None, or lists, tuples and dicts of them, got "
        f"{type(first).__name__}; let the module return a tensor in its place"
    )


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    if dim == 0 and all(each.ndim == 0 for each in parts):
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will "
            "instead unsqueeze and return a vector.",
            stacklevel=2,
        )
        parts = [each.reshape(1) for each in parts]
    return cat(parts, dim)
