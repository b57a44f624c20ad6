"""Single operations on many elements as plans, in eager mode on the CPU.

NumPy computes on one thread and takes fresh memory, page by page, for every large result. From some
ten thousand elements on a kernel of the compiler is faster for all but a few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import PRIMITIVES, Builder, Family, Graph, Primitive, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.node import attr_key
from ..core.eager_context import EAGER
from ..core.plan_table import Never, Once, PlanTable
from ..core.tensor import Tensor
from ..runtime import interrupts

_tables: dict[Primitive, PlanTable] = {}


class _Plan:
    """A compiled operation, and the types that its key names by id."""

    __slots__ = ("kept", "run")

    def __init__(self, graph: Graph, kept: Any) -> None:
        # Imported here: a program that does everything once compiles nothing.
        with interrupts.held():
            from ..compiler.compile_graph import compile_graph
            from .graph_function import without_large_arena

        self.kept, self.run = kept, without_large_arena(compile_graph(graph)).run


def evaluate(
    primitive: Primitive,
    tensors: tuple[Tensor, ...],
    attrs: dict[str, Any],
    values: list[np.ndarray[Any, Any]],
) -> Any:
    """The result for contiguous `values`, or None where NumPy is to compute it."""
    table = _tables.get(primitive)
    if table is None:
        table = _tables[primitive] = PlanTable()
    parts: list[Any] = [*attrs]
    for value in attrs.values():  # zeros of both signs are not the same padding
        parts.append(attr_key(value) if isinstance(value, float) else value)
    for tensor in tensors:
        parts.append(id(tensor._type))
    key = tuple(parts)
    try:
        plan = table.plans.get(key)
    except TypeError:  # an attribute that cannot be hashed
        return None
    if type(plan) is not _Plan:
        plan = _made(table, key, plan, primitive, tensors, attrs)
        if plan is None:
            return None
    table.hits += 1
    try:
        return plan.run(values)[0]
    except Exception:
        return None  # NumPy's way raises the error that names the user's line


def _made(
    table: PlanTable,
    key: Any,
    found: Any,
    primitive: Primitive,
    tensors: tuple[Tensor, ...],
    attrs: dict[str, Any],
) -> _Plan | None:
    types = [tensor._type for tensor in tensors]
    if found is None:
        table.remember(key, Once(types) if all(t.numel for t in types) else Never(types))
        return None
    if type(found) is not Once:
        return None

    def compiled() -> _Plan:
        nodes = [input_node(f"x{at}", type_) for at, type_ in enumerate(types)]
        plan = _Plan(Graph(nodes, [Builder().apply(primitive, nodes, attrs)]), types)
        table.plans[key] = plan
        return plan

    plan: _Plan | None = table.make(compiled)
    return plan


_FAMILIES = (Family.ELEMENTWISE, Family.REDUCE, Family.GATHER, Family.SCATTER, Family.WINDOW)
_MOVED = (p.flip, p.pad, p.concatenate, p.slice_update)
_FASTER_IN_NUMPY = (p.any_, p.all_)  # which read no further than they have to


def _is_large(primitive: Primitive) -> bool:
    """Whether a kernel computes a primitive faster than NumPy."""
    if primitive in _FASTER_IN_NUMPY:
        return False
    return primitive.family in _FAMILIES or primitive in _MOVED


EAGER.large.update((each, evaluate) for each in PRIMITIVES.values() if _is_large(each))
