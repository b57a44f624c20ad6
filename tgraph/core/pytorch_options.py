"""Options of PyTorch's `compile` that programs give, and that change nothing here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class PyTorchOptions(TypedDict, total=False):
    """What PyTorch's `compile` takes besides: see `compile`."""

    fullgraph: bool
    backend: str
    mode: str | None
    options: Mapping[str, Any] | None
    disable: bool


_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def check_options(
    backend: Any = "inductor", mode: str | None = None, options: Mapping[str, Any] | None = None
) -> None:
    """An error for what PyTorch refuses, and for backends that are functions."""
    if not isinstance(backend, str):
        raise NotImplementedError(
            f"compile: backend={backend!r} would be given PyTorch's graphs, which are not there: "
            "tgraph.trace(function, *tensors) gives tgraph's"
        )
    if mode not in _MODES:
        raise RuntimeError(
            f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}"
        )
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
