"""Finding placeholders, tensors, operations and variables of a graph by their names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from ..core.context import Context
from ..core.eager_context import current_context
from ..core.state import state
from ..core.tensor import Tensor

if TYPE_CHECKING:
    from .graph_trace import GraphTrace


def plain(name: str) -> str:
    """A name as graphs have it: `/` separates like the point, and TensorFlow's `:0` is nothing."""
    return name.removesuffix(":0").replace("/", ".")


def scoped(name: str) -> str:
    """A name behind that of the scope."""
    own = plain(name)
    return f"{state.module_path}.{own}" if state.module_path else own


def named(trace: GraphTrace, name: str) -> Any:
    """What has a name in the graph; KeyError tells which names are like it."""
    wanted = plain(name)
    found = trace.labels.get(wanted)
    if found is None:
        variables = trace.graph.variables
        found = variables.get(wanted)
        if found is None:
            every = [*trace.labels, *variables]
            near = difflib.get_close_matches(wanted, every, 3, 0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
            known = hint or f"it has {', '.join(map(repr, every[:20])) or 'no names'}"
            raise KeyError(f"the graph has nothing of the name {name!r}; {known}")
    return found


def identity(input: Tensor, name: str = "identity") -> Tensor:
    """`input` itself, which has a name in the graph under construction from now on.

    The name stands behind those of scopes, separated by points (`/` will do, too). Runs are asked
    for it by name, and `graph[name]` gives the tensor. Where no graph is built, nothing is named.

    >>> import tgraph as tg
    >>> with tg.Graph() as g, tg.name_scope("metrics"):
    ...     x = tg.placeholder(tg.float32, (None,), "x")
    ...     largest = tg.identity(x.max(), "largest")
    >>> tg.Session(g).run("metrics/largest", {"metrics/x": [1.0, 3.0, 2.0]})
    tensor(3.)
    """
    context: Context = current_context()
    if context.builds_graph:
        context.label(input, name)
    return input
