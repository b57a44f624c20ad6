"""From a graph to something that runs.

Passes and code generation are imported where there is no plan on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..runtime import gemm_native, interrupts
from ..runtime.device import CPU
from ..runtime.garbage import no_collection
from .ir import Graph, Node
from .ir import primitives as p
from .ir.graph import MANY_NODES
from .moved_graph import with_one_host
from .plan import stored_plan
from .plan.executable import Executable
from .plan.ready_plan import ReadyPlan
from .plan.request import Request

if TYPE_CHECKING:
    from .passes.roll_loops import Rolled
    from .placement import PlacedExecutable
    from .plan.plan_sizes import PlanSizes
    from .plan.sized_plan import SizedPlan


@no_collection()
def compile_graph(
    graph: Graph,
    *,
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    overwritten: Iterable[int] = (),
    varying: bool = False,
    eager: bool = False,
    aligned: bool = True,
) -> Executable | PlacedExecutable:
    """Make `graph` ready to run on its devices.

    `donate` maps outputs to the inputs whose memory they take. `strides`, in elements, tells which
    inputs are not dense. A call raises ReadOnlyError, and does nothing, where an input that is
    donated, or is one of `overwritten`, must not be written. `varying` says that the same graph
    comes with size after size, `eager` that the plan is one of eager mode. On a device, arrays are
    `aligned` to vectors, or are copied.
    """
    start = time.perf_counter()
    graph = with_one_host(graph)
    request = Request(graph, donate, strides, tuple(overwritten), (), varying, eager, aligned)
    key = stored_plan.key_of(request)
    found = None if key is None else stored_plan.find(key, request, lambda: _made_whole(request))
    if found is not None:
        found.seconds = (0.0, time.perf_counter() - start)
        return found
    _prepare_products(graph)
    made = maker()(request)
    if key is not None and isinstance(made, ReadyPlan):
        stored_plan.keep(key, request, made)
    return made


@no_collection()
def compile_for_sizes(
    graph: Graph,
    sizes: PlanSizes,
    *,
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    overwritten: Iterable[int] = (),
) -> SizedPlan:
    """One plan for a graph whose `sizes` are open, in place of one for each of them.

    It is the plan that `compile_graph` makes for the sizes that are given as hints, and for all
    others for which the compiler decides as it does for those. NotSizedError where something cannot
    do without numbers.
    """
    graph = with_one_host(graph)
    _prepare_products(graph)
    with interrupts.held():
        from .make_executable import make_sized

    return make_sized(Request(graph, donate, strides, tuple(overwritten)), sizes)


def _made_whole(request: Request) -> ReadyPlan:
    made = maker()(request)
    assert isinstance(made, ReadyPlan)
    return made


def _prepare_products(graph: Graph) -> None:
    """Begin with what takes longest, while the compiler itself is still imported."""
    made_of = (p.matmul, p.attention_rows, p.attention_gradient)
    nodes = [node for each in graph.whole for node in each.nodes]
    products = [node.inputs[0].type for node in nodes if node.primitive in made_of]
    for dtype in {type_.dtype for type_ in products if type_.device is CPU}:
        gemm_native.prepare(dtype.name)


def joined_gradients(graph: Graph) -> dict[Node, Node]:
    """What stands for nodes of `graph`, which has values and gradients, where these share work.

    Attention is joined with its gradients, and loops keep products for theirs.
    """
    new: dict[Node, Node] = {}
    if graph.primitives.issuperset((p.matmul, p.exp)):
        with interrupts.held():
            from .passes import fuse_attention_gradients

        new = fuse_attention_gradients.fused_gradients(graph)
    if p.loop in graph.primitives:
        with interrupts.held():
            from .passes import keep_products

        joined = graph.with_outputs([new.get(each, each) for each in graph.outputs])
        kept = keep_products.kept_products(joined)
        if kept:
            new = {node: kept.get(new.get(node, node), node) for node in graph.nodes}
    return new


def rolled_loops(graph: Graph) -> Rolled | None:
    """What stands for `graph` where it repeats itself, as loops of Python leave it, if it does."""
    if len(graph.nodes) < MANY_NODES:
        return None
    with interrupts.held():
        from .passes import roll_loops

    return roll_loops.rolled_loops(graph)


def without_zeros(graph: Graph, zeros: Collection[Node]) -> Graph:
    """`graph` without some inputs, which are zero, and without what is linear in them."""
    with interrupts.held():
        from .passes import symbolic_zeros

    return symbolic_zeros.symbolic_zeros(graph, zeros)


def maker() -> Callable[[Request], Executable | PlacedExecutable]:
    """`make_executable`, with passes and code generators, which are imported now."""
    with interrupts.held():
        from .make_executable import make_executable

    return make_executable
