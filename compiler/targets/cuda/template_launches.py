"""The launches of hand-written kernels: what they read, what they need beside it, what they write.

A node that they compute becomes one or several launches. Memory that only these share lies in the
arena and is given back behind the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....runtime.records import NamedTuple, record
from ...fusion.fused_graph import FusedGraph
from ...ir import Node
from ...ir import primitives as p
from ...kernel.checks import Check
from ...kernel.kernel import compute_dtype
from ...kernel.memory_views import View, strided_view
from .convolution_schedule import convolution_of, operand_of, schedule_convolution
from .rules import CudaRules, scatter_steps, starts_from_number
from .scatter_schedule import (
    AtomicSchedule,
    CountSchedule,
    JoinSchedule,
    PlaceSchedule,
    Positions,
    Scatter,
    StartSchedule,
    SumSchedule,
    Values,
)
from .template import TemplateSchedule


@record()
class Workspace:
    """Memory that launches of one node share."""

    name: str
    nbytes: int


class TemplateLaunch(NamedTuple):
    """A launch of `schedule`: its arguments are nodes in memory, workspaces, or None, the status.

    `name` is what it does to the node; `bytes` and `flops` are what it moves and computes.
    """

    name: str
    schedule: TemplateSchedule
    args: Sequence[Node | Workspace | None]
    bytes: int
    flops: int


def template_launches(fused: FusedGraph, node: Node) -> list[TemplateLaunch]:
    """The launches that compute `node`, in order."""
    if node.primitive is p.convolution:
        return list(_convolution(fused, node))
    return list(_scatter(fused, node))


def _convolution(fused: FusedGraph, node: Node) -> Iterator[TemplateLaunch]:
    (x, x_view), (w, w_view) = (_view_of(fused, node, each) for each in node.inputs)
    operands = operand_of(x_view, fused.rules.buffer(x)), operand_of(w_view, fused.rules.buffer(w))
    problem = convolution_of(node, *operands)
    schedule, total = schedule_convolution(problem)
    read = sum(each.type.nbytes for each in node.inputs)
    if total is None:
        yield TemplateLaunch("", schedule, (x, w, node), read + node.type.nbytes, problem.flops)
        return
    param = schedule.kernel.params[2]
    shared = Workspace("parts", param.elements * param.dtype.itemsize)
    yield TemplateLaunch("", schedule, (x, w, shared), read + shared.nbytes, problem.flops)
    moved = shared.nbytes + node.type.nbytes
    yield TemplateLaunch("sum", total, (shared, node), moved, param.elements)


# -- additions at positions ------------------------------------------------------------------


def _scatter(fused: FusedGraph, node: Node) -> Iterator[TemplateLaunch]:
    """The result starts; positions are sorted; neighbours are summed, and runs joined."""
    problem, positions, values = _scatter_problem(fused, node)
    base = [] if problem.base is not None else [_view_of(fused, node, node.inputs[0])[0]]
    moved = node.type.nbytes * (1 + len(base))
    yield TemplateLaunch("start", StartSchedule(problem), (*base, node), moved, 0)
    checks = tuple(Check(node.where) for _ in positions)
    if problem.is_atomic:
        schedule = AtomicSchedule(problem, checks)
        added = problem.count * problem.columns
        read = sum(each.type.nbytes for each in node.inputs[1:])
        moved = read + added * problem.dtype.itemsize
        yield TemplateLaunch("atomic", schedule, (*positions, values, node, None), moved, added)
        return
    ints = 4 * problem.count
    found = (Workspace("rows", ints), Workspace("order", ints))
    yield from _sort(problem, checks, positions, found)
    arguments: tuple[Node | Workspace, ...] = (values, *found, node)
    moved = 2 * ints + problem.count * problem.columns * problem.dtype.itemsize * 2
    flops = problem.count * problem.columns
    if problem.pieces == 1:
        yield TemplateLaunch("sum", SumSchedule(problem), arguments, moved, flops)
        return
    size = compute_dtype(problem.dtype).itemsize
    shared = Workspace("parts", problem.partials * size)
    yield TemplateLaunch("sum", SumSchedule(problem), (*arguments, shared), moved, flops)
    yield TemplateLaunch(
        "join", JoinSchedule(problem), (shared, found[0], node), shared.nbytes, problem.partials
    )


def _sort(
    problem: Scatter,
    checks: tuple[Check, ...],
    positions: Sequence[Node],
    found: tuple[Workspace, Workspace],
) -> Iterator[TemplateLaunch]:
    """The passes of the sort; the last one leaves rows and their order in `found`."""
    ints = 4 * problem.count
    other = (Workspace("rows_between", ints), Workspace("order_between", ints))
    counts = Workspace("counts", 4 * problem.counted)
    alone = problem.sort_blocks == 1
    read = sum(each.type.nbytes for each in positions)
    for number in range(problem.passes):
        from_rows, to = (other, found) if (problem.passes - number) % 2 else (found, other)
        source = positions if number == 0 else from_rows[:1]
        status = (None,) if number == 0 else ()
        first = () if number else checks
        name = f"{number}" if problem.passes > 1 else ""
        if not alone:
            schedule = CountSchedule(problem, number, first)
            arguments = (*source, counts, *status)
            yield TemplateLaunch(f"count{name}", schedule, arguments, read, 0)
        order = from_rows[1:] if number else ()
        extra = () if alone else (counts,)
        yield TemplateLaunch(
            f"place{name}",
            PlaceSchedule(problem, number, first if alone else ()),
            (*source, *order, *extra, *to, *status),
            read + 2 * ints,
            0,
        )
        read = 2 * ints


def _scatter_problem(fused: FusedGraph, node: Node) -> tuple[Scatter, list[Node], Node]:
    """The sizes of a scatter, and what lies in memory for its positions and its values."""
    rules = fused.rules
    assert isinstance(rules, CudaRules)
    form = rules.scatters[node]
    places: list[Node] = []
    steps: list[tuple[int, ...]] = []
    for number, operand in enumerate(node.inputs[1:], 1):
        base, view = _view_of(fused, node, operand)
        found = scatter_steps(node, form, number, view)
        assert found is not None, f"{operand} cannot be read in {base}"
        places.append(base)
        steps.append((*found, view[1], fused.rules.buffer(base).elements))
    positions = tuple(
        Positions(place.type.dtype, size, factor, *step)
        for place, size, factor, step in zip(places, form.sizes, form.factors, steps)
    )
    start = node.inputs[0].attrs["value"] if starts_from_number(node) else None
    problem = Scatter(
        node.type.dtype, form.count, form.rows, form.lead, form.width, positions, form.digits,
        Values(*steps[-1]), start,
    )  # fmt: skip
    return problem, places[:-1], places[-1]


def _view_of(fused: FusedGraph, step: Node, operand: Node) -> tuple[Node, View]:
    """The node in memory that has an operand of a hand-written kernel, and where."""
    base = fused.in_memory(fused.rules.step_operand(step, operand))
    view = strided_view(operand, base, fused.rules.buffer(base))
    assert view is not None, f"{operand} is no view of {base}"
    return base, view
