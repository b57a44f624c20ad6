"""What libraries that know PyTorch's `fx` ask for; graphs come from `tgraph.trace`."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Graph", "GraphModule", "Node", "Proxy", "Tracer", "symbolic_trace", "wrap"]


class _NotHere:
    """What programs ask values whether they are; nothing is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        symbolic_trace(None)


class Proxy(_NotHere):
    """A value while PyTorch traces a module; none is here."""


class Graph(_NotHere):
    """A graph of Python code; none is here."""


class Node(_NotHere):
    """A node of such a graph; none is here."""


class GraphModule(_NotHere):
    """A module that is such a graph; none is here."""


class Tracer(_NotHere):
    """What makes such a graph."""


def wrap(fn_or_name: Any) -> Any:
    """The function itself: tracing needs no marks here."""
    return fn_or_name


def symbolic_trace(root: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: `tgraph.trace(function, *tensors)` gives graphs, of other nodes."""
    raise NotImplementedError(
        "fx.symbolic_trace: graphs of modules that Python code rewrites are not here; "
        "tgraph.trace(function, *tensors) gives a graph, tgraph.compile compiles one"
    )
