"""The compiler's passes in their order."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from ..runtime import interrupts
from ..runtime.garbage import no_collection
from ..runtime.records import NamedTuple
from .ir import Graph, Primitive, map_whole
from .ir import primitives as p
from .ir.complex_numbers import has_complex
from .ir.graph import MANY_NODES
from .passes.decompose import decompose
from .passes.decompose_positions import decompose_positions
from .passes.eliminate_common import eliminate_common
from .passes.eliminate_dead_code import eliminate_dead_code
from .passes.lay_out_windows import lay_out_windows
from .passes.propagate_layouts import propagate_layouts
from .passes.simplify import simplify
from .passes.simplify_control import simplify_control
from .passes.sort_values import sort_values
from .passes.split_reductions import split_reductions
from .passes.split_scans import split_scans


class Pass(NamedTuple):
    """A named step from graph to graph, and why it stands where it does."""

    name: str
    run: Callable[[Graph], Graph]
    reason: str


def _late(name: str, is_for: Callable[[Graph], bool], reason: str) -> Pass:
    """A pass whose module, of the same name, is imported for the first graph that it is for."""

    def run(graph: Graph) -> Graph:
        if not is_for(graph):
            return graph
        with interrupts.held():
            module = importlib.import_module(f".passes.{name}", __package__)
        changed: Graph = getattr(module, name)(graph)
        return changed

    return Pass(name, run, reason)


def _has(*primitives: Primitive) -> Callable[[Graph], bool]:
    return lambda graph: graph.primitives.issuperset(primitives)


def _is_large(graph: Graph) -> bool:
    return len(graph.nodes) >= MANY_NODES


def _may_have_attention(graph: Graph) -> bool:
    return _has_products_of_weights(graph) or not graph.primitives.isdisjoint(_ATTENTION)


_ATTENTION = (p.attention, p.attention_rows, p.attention_gradient)
_has_products_of_weights = _has(p.matmul, p.exp)

PASSES = (
    # Before the others, behind which nodes no longer stand in the order of the program.
    _late("roll_loops", _is_large, "loops of Python are compiled as one turn"),
    # Before the algebra, which is that of real numbers.
    _late("split_complex", has_complex, "complex values are pairs of real ones from here on"),
    _late("split_repacked", _has(p.repack), "integers of other sizes in the same bytes are shifts"),
    Pass("eliminate_common", eliminate_common, "equal values are one node, large constants too"),
    # Before the algebra, as where a joint graph is divided into plans: there and here alike.
    _late("fuse_attention_gradients", _has_products_of_weights, "gradients store no weights"),
    Pass("simplify", simplify, "one form for each value; fewer, cheaper and safer operations"),
    Pass("simplify_control", simplify_control, "loops carry nothing that stays as it is"),
    _late("keep_products", _has(p.loop), "turns of a gradient read what those before computed"),
    _late("split_state", _has(p.loop), "parts that a loop writes are written where they lie"),
    _late("concatenate_updates", _has(p.slice_update), "slices written in a loop are one whole"),
    Pass("eliminate_dead_code", eliminate_dead_code, "no element is computed that is not read"),
    Pass("sort_values", sort_values, "positions that nobody asks for are not looked for"),
    Pass("decompose", decompose, "convolutions and half products in terms the CPU has"),
    Pass("propagate_layouts", propagate_layouts, "permutes vanish, cancel or become matmul flags"),
    Pass("simplify_again", simplify, "what became constant, or neighbours, when permutes moved"),
    _late("sum_products", _has(p.loop), "products that turns add up are one behind the loop"),
    Pass("simplify_control_again", simplify_control, "what was kept needs no operands any more"),
    _late("sink_biases", _has(p.loop, p.matmul), "turns add what all rows of a product get"),
    # After the permutes found their places, which would move behind the windows again.
    Pass("lay_out_windows", lay_out_windows, "windows that products read lie side by side"),
    Pass("decompose_positions", decompose_positions, "positions of extremes by vectors"),
    # After the algebra, whose rules know its parts, and not the whole.
    _late(
        "fuse_attention", _may_have_attention, "scores are never stored, nor those that are masked"
    ),
    # The algebra would join the pieces again.
    _late("one_pass_statistics", _has(p.sub, p.sum_), "long rows come from memory once"),
    Pass("split_reductions", split_reductions, "long reductions in pieces that threads share"),
    Pass("split_scans", split_scans, "and long scans"),
)

AfterPass = Callable[[str, Graph], None]


def optimize(
    graph: Graph, after: AfterPass | None = None, passes: Sequence[Pass] | None = None
) -> Graph:
    """`graph` after every pass; `after(name, graph)` sees the graph behind each one.

    Passes know nothing of graphs among the attributes of nodes: each runs on them here, too.
    `passes` are all of them unless others are given: a target may leave some out.

    >>> from tgraph.compiler.ir import Builder, TensorType, input_node, primitives as p
    >>> from tgraph.runtime.dtypes import float32
    >>> build, x = Builder(), input_node("x", TensorType((2,), float32))
    >>> twice = build.apply(p.neg, [build.apply(p.neg, [x])])
    >>> print(optimize(Graph([x], [build.apply(p.add, [twice, x])])))
    graph(%x: float32[2])
      %0: float32[2] = add(%x, %x)
      return %0
    """
    with no_collection():
        for step in PASSES if passes is None else passes:
            graph = map_whole(graph, step.run)
            if after is not None:
                after(step.name, graph)
    return graph
