"""Modules that run on several devices, each with its own arguments."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from ...core.devices import DeviceLike, as_device
from ...core.eager_context import current_context
from ...core.tensor import Tensor
from ...runtime.arrays import current
from ...runtime.device import Device
from ..module import Module


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[DeviceLike] | None = None,
) -> list[Any]:
    """What each module gives for its arguments, a tuple or list of them or a single one.

    They are called in turn, so that random numbers are drawn in the same order each time, and
    compiled code can hold all of them. GPUs work at the same time, as they are not waited for.
    Without `devices`, each runs where its first tensor is.

    The error of a module comes with its number, device and traceback.

    >>> import tgraph as tg
    >>> layers = [tg.nn.ReLU(), tg.nn.Tanh()]
    >>> tg.nn.parallel.parallel_apply(layers, [tg.tensor([-1.0]), tg.zeros(1)])
    [tensor([0.]), tensor([0.])]
    """
    named = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    for what, given in (("inputs", inputs), ("kwargs_tup", named), ("devices", devices)):
        if given is not None and len(given) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} "
                f"{len(given)}"
            )
    places = [None] * len(modules) if devices is None else devices
    parts = zip(modules, inputs, named, places)
    return [_applied(number, *part) for number, part in enumerate(parts)]


def _applied(
    number: int, module: Module, given: Any, named: dict[str, Any], place: DeviceLike
) -> Any:
    device = _device_of(given) if place is None else as_device(place)
    if device is None:
        raise RuntimeError(
            f"in replica {number}, no device was provided and no tensor input was found; device "
            "cannot be resolved"
        )
    if not isinstance(given, (list, tuple)):
        given = (given,)
    with current(device):
        if current_context().tracing:  # where errors tell lines, and some ask for another trace
            return module(*given, **named)
        try:
            return module(*given, **named)
        except Exception as error:
            raise _told(error, f"in replica {number} on device {device}") from error


def _device_of(value: Any) -> Device | None:
    """Where the first tensor is that is found in `value`."""
    if isinstance(value, Tensor):
        return value._type.device
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (list, tuple, dict)):
        return None
    return next((found for found in map(_device_of, inner) if found is not None), None)


class _KeyErrorMessage(str):
    """A text that a KeyError shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def _told(error: Exception, where: str) -> Exception:
    """An error of the same kind that tells where it was raised."""
    lines = "".join(traceback.format_exception(error))
    text: str = f"Caught {type(error).__name__} {where}.\nOriginal {lines}"
    if isinstance(error, KeyError):
        text = _KeyErrorMessage(text)
    try:
        return type(error)(text)
    except TypeError:  # an error that is made of something else
        return RuntimeError(text)
