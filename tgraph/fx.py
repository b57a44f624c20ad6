"""What libraries that know PyTorch's `fx` ask for; graphs come from `tgraph.trace`."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["symbolic_trace", "wrap"]


def wrap(fn_or_name: Any) -> Any:
    """The function itself: tracing needs no marks here."""
    return fn_or_name


def symbolic_trace(root: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: `tgraph.trace(function, *tensors)` gives graphs, of other nodes."""
    raise NotImplementedError(
        "fx.symbolic_trace: graphs of modules that Python code rewrites are not here; "
        "tgraph.trace(function, *tensors) gives a graph, tgraph.compile compiles one"
    )
