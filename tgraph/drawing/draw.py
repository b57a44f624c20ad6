"""`draw`: pictures of graphs, functions, compiled functions and gradient histories."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..compiler.ir import Graph
from ..core.tensor import Tensor

_FORMATS = {".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot"}


class Svg(str):
    """The text of a picture, which notebooks show as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def draw(
    obj: Any,
    path: str | os.PathLike[str] | None = None,
    *args: Any,
    collapse: str | None = None,
    **kwargs: Any,
) -> Svg | None:
    """Draw `obj`: the text of an SVG, or None once it is written to `path`.

    `obj` is

    - a graph, as `tg.trace` gives it;
    - a `tg.Graph`: all of it, or what is needed for the fetches that `args` has;
    - a function (or module), which is traced with `args` and `kwargs` and not optimised;
    - a compiled function: the plan for a call with `args` and `kwargs`, with a frame around the
      operations of each fused kernel; the plan that was made last where none are given;
    - a program, as `tg.tracing.program` and `tg.cuda.program` give it;
    - a tensor: the operations that its `backward()` goes through, back to the leaves.

    Boxes show operation, type and the line of the user's program; hovering over one in a browser
    shows the rest. `collapse` puts boxes together: one for each "kernel", "module" or "line".
    Pictures of more than 2,000 boxes are put together anyway, and say so. The ending of `path`
    chooses the format: `.svg`, `.png`, or `.dot` for Graphviz' text.

    Needs `pip install tgraph[draw]`, except for `.dot`; a RuntimeError says what is missing.

    >>> import tgraph as tg
    >>> svg = tg.draw(lambda x: tg.relu(x).sum(), None, tg.ones(3))
    >>> "sum" in svg
    True
    """
    # Imported here, as most programs draw nothing.
    from .dot import render, to_dot
    from .picture import bundled, limited, shortened
    from .picture import collapse as collapsed

    format = "svg" if path is None else _format(path)
    picture = _picture(obj, args, kwargs)
    if collapse is not None:
        picture = collapsed(picture, collapse)
    text = to_dot(shortened(bundled(limited(picture))))
    data = text.encode() if format == "dot" else render(text, format)
    if path is None:
        return Svg(data.decode())
    Path(path).write_bytes(data)
    return None


def _format(path: str | os.PathLike[str]) -> str:
    found = _FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise ValueError(
            f"tg.draw expected a path that ends in {', '.join(_FORMATS)}, got {os.fspath(path)!r}"
        )
    return found


def _picture(obj: Any, args: Any, kwargs: Any) -> Any:
    from ..compiled.compiled_function import CompiledFunction
    from ..compiled.optimized_module import OptimizedModule
    from ..compiler.plan.program import Program
    from ..compiler.plan.ready_plan import ReadyPlan
    from ..graphs.graph import Graph as BuiltGraph
    from .autograd_picture import autograd_picture
    from .built_picture import built_picture
    from .function_picture import compiled_picture, traced_picture
    from .graph_picture import executable_picture, graph_picture

    if isinstance(obj, BuiltGraph):
        return built_picture(obj, *args, **kwargs)
    if isinstance(obj, (Graph, Program, ReadyPlan, Tensor)) and (args or kwargs):
        raise TypeError(
            f"tg.draw takes arguments for functions only, got some for a {type(obj).__name__}"
        )
    if isinstance(obj, Graph):
        return graph_picture(obj)
    if isinstance(obj, (Program, ReadyPlan)):
        return executable_picture(obj)
    if isinstance(obj, Tensor):
        return autograd_picture(obj, _names_of_caller())
    if isinstance(obj, OptimizedModule):
        obj = obj._compiled
    if isinstance(obj, CompiledFunction):
        return compiled_picture(obj, args, kwargs)
    if callable(obj):
        return traced_picture(obj, args, kwargs)
    raise TypeError(
        "tg.draw expected a Graph, a function, a compiled function, a program or a Tensor, got "
        f"{type(obj).__name__}"
    )


def _names_of_caller() -> dict[int, str]:
    """What the caller of `draw` calls the tensors that it knows, by id."""
    frame = sys._getframe(3)
    return dict(_names_in({**frame.f_globals, **frame.f_locals}))


def _names_in(namespace: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    from ..nn.module import Module

    for name, value in namespace.items():
        if isinstance(value, Module):
            for path, tensor in (*value.named_parameters(), *value.named_buffers()):
                yield id(tensor), f"{name}.{path}"
    # A variable's own name is the better one, so it comes last.
    for name, value in namespace.items():
        if isinstance(value, Tensor):
            yield id(value), name
