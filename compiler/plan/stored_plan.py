"""Plans on disk: what one process has found out, and others need not.

A plan is found by its graph (`graph_key`), with the machine and the compiler's own code. It lies
beside the objects of its kernels in the cache of machine code, protected as these are.
"""

from __future__ import annotations

from _blake2 import blake2b  # see `cache`
from collections.abc import Callable, Mapping

from ...runtime import cache, jit
from ...runtime.own_code import own_code
from ..ir import Graph, Node
from ..ir.graph_key import graph_key
from ..kernel.checks import Check, Checks, RoutineCheck
from .output_memory import OutputMemory
from .plan_bytes import Checks as NumberedChecks
from .plan_bytes import NotPlain, from_bytes, to_bytes
from .ready_plan import LatePlan, ReadyPlan
from .request import Request


def key_of(request: Request) -> str | None:
    """What the plan for a request lies under; None where it is not to be stored.

    The machine is no part of it, since who finds nothing need not wait for LLVM to tell it.
    """
    code = own_code()
    given = request.donate, request.strides, request.overwritten
    text = graph_key(request.graph, *given) if code else None
    if text is None:
        return None
    graph = blake2b(text.encode(), digest_size=32).hexdigest()
    return f"plan {code} {graph}{' varying' if request.varying else ''}"


def find(key: str, request: Request, make: Callable[[], ReadyPlan]) -> LatePlan | None:
    """The plan that lies under `key`, if there is one; `make` compiles the graph itself."""
    data = cache.get(key)
    if data is None or not data.startswith(_machine()):
        return None
    plan, checks = from_bytes(data[len(_machine()) :])
    nodes = _all_nodes(request.graph)
    lines = {
        step: [Check(nodes[at].where, message) for at, message in each]
        for step, each in checks.items()
    }
    types = [node.type for node in request.graph.outputs]
    outputs = OutputMemory(types, request.donate, request.strides or {})
    return LatePlan(plan, outputs, lines, make)


def keep(key: str, request: Request, made: ReadyPlan) -> None:
    """Store a plan, unless it has parts that only this process has."""
    try:
        data = to_bytes(made.plan, _numbered(made.checks, request.graph))
    except NotPlain:
        return
    cache.put(key, _machine() + data)


def _machine() -> bytes:
    """What a stored plan begins with: whose code it calls."""
    return f"{jit.target()}\n".encode()


def _numbered(checks: Mapping[int, Checks], graph: Graph) -> NumberedChecks:
    """Checks with a node of the graph in the place of its line."""
    if not checks:
        return {}
    number = {node.where: at for at, node in enumerate(_all_nodes(graph))}
    plain = {step: some for step, some in checks.items() if not isinstance(some, RoutineCheck)}
    if len(plain) < len(checks):
        raise NotPlain("a routine of LAPACK")
    lines = {each.where for some in plain.values() for each in some}
    if not lines <= number.keys():
        raise NotPlain("a check of no line of the program")
    return {
        step: tuple((number[each.where], each.message) for each in some)
        for step, some in plain.items()
    }


def _all_nodes(graph: Graph) -> list[Node]:
    """The nodes of a graph and of those inside it, in an order that equal keys share."""
    return [node for each in graph.whole for node in each.nodes]
