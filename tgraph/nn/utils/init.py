"""Modules without first values."""

from __future__ import annotations

import inspect
from typing import Any

from .. import init
from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters and buffers have no first values yet.

    >>> import tgraph as tg
    >>> tg.nn.utils.skip_init(tg.nn.Linear, 2, 3).weight.shape
    tgraph.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    kwargs.setdefault("device", "cpu")
    with init.skipped():
        return module_cls(*args, **kwargs)
