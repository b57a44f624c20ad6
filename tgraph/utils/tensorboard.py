"""Events for TensorBoard, written by tensorboardX where it is installed.

    from tgraph.utils.tensorboard import SummaryWriter

    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)

`pip install tensorboardX` gives the writer, `pip install tensorboard` what shows the events.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from ..core import pytree
from ..core.tensor import Tensor
from ..runtime.dtypes import bfloat16

__all__ = ["SummaryWriter"]  # noqa: F822 - made when it is asked for


def _as_array(value: Any) -> Any:
    """The NumPy array of a tensor; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype is bfloat16 else value).numpy()


def _of_arrays(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of tensorboardX, which takes arrays, for tensors, also in containers."""

    @functools.wraps(method)
    def add(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.map(_as_array, (args, kwargs))
        return method(self, *args, **kwargs)

    return add


def _add_graph(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: `tgraph.draw` draws graphs."""
    raise NotImplementedError(
        "SummaryWriter.add_graph: graphs are not written for TensorBoard; tgraph.draw(model(x), "
        "path) draws one"
    )


@functools.cache
def _writer() -> type:
    try:
        base = importlib.import_module("tensorboardX").SummaryWriter
    except ModuleNotFoundError as error:
        if error.name != "tensorboardX":
            raise
        raise ModuleNotFoundError(
            "tgraph.utils.tensorboard.SummaryWriter needs the package tensorboardX: "
            "pip install tensorboardX", name="tensorboardX",
        ) from None  # fmt: skip
    names = [name for name in dir(base) if name.startswith("add_")]
    methods = {name: _of_arrays(getattr(base, name)) for name in names}
    methods |= {"add_graph": _add_graph, "__module__": __name__, "__doc__": base.__doc__}
    return type("SummaryWriter", (base,), methods)


def __getattr__(name: str) -> Any:
    if name != "SummaryWriter":  # whose base may not be there
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _writer()
