"""The graph of a function that was traced, as sessions run it."""

from __future__ import annotations

from typing import Any

from ..core import pytree
from ..core.tensor import Tensor
from ..tracing.record_call import Argument, TracedGraph
from .graph import Graph
from .lookup import identity
from .placeholder import placeholder


def graph_of(traced: TracedGraph) -> Graph:
    """The graph of the traced function, which is called with placeholders for its tensors.

    These have the names of its arguments, what it gives has the name "result", with the place in
    it where it is a container. All that it writes is an operation of the function's name.
    """
    graph = Graph()
    fed: dict[int, Tensor] = {}
    with graph:
        for each in traced.leaves:
            if isinstance(each, Argument) and id(each) not in fed:
                fed[id(each)] = placeholder(
                    each.type.dtype,
                    each.type.shape,
                    each.name,
                    device=each.type.device,
                    requires_grad=each.requires_grad,
                )
        given = [fed.get(id(each), each) for each in traced.leaves]
        args, kwargs = traced.spec.unflatten(given)
        with graph.operation(getattr(traced.function, "__name__", "function")):
            graph.results = traced.function(*args, **kwargs)
        _name(graph.results)
    return graph


def _name(results: Any) -> None:
    leaves, tree = pytree.flatten(results)
    for path, each in zip(tree.paths("result"), leaves, strict=True):
        if isinstance(each, Tensor):
            identity(each, path)
