"""Steps of attention, sparse products, rows in order, factorizations: native code, no kernels.

All of it is imported for the first graph that has one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ....runtime.order import put_in_order
from ....runtime.plan_steps import BufferRef, KernelStep, PythonStep
from ...ir import Family, Node
from ...ir import primitives as p
from ...plan.library_steps import routine_check
from ...plan.step_info import LibraryStep
from . import attention_step, factorization_step, sorting_step, sparse_step

if TYPE_CHECKING:
    from .plan_builder import CpuPlanBuilder


def step_of(builder: CpuPlanBuilder, node: Node) -> LibraryStep | None:
    """The step that computes a node; None where NumPy or LAPACK is called by Python."""
    if node.primitive.family is Family.SORT:
        return _sorting(builder, node)
    if node.primitive.family is Family.SPARSE:
        return _sparse_product(builder, node)
    if node.primitive.family is not Family.LIBRARY:
        tell = partial(attention_step.attention_summary, node)
        step = _attention(builder, node)
        return LibraryStep(step, "attention", attention_step.flops_of(node), tell)
    return _factorization(builder, node) if factorization_step.is_native(node) else None


def _attention(builder: CpuPlanBuilder, node: Node) -> KernelStep:
    """Attention, it with what its gradient needs, or that."""
    arrays = builder.operands.arrays(node)
    if node.primitive is p.attention:
        return attention_step.attention_step(node, arrays, [builder.place[node]])
    places = _places_of_results(builder, node)
    if node.primitive is p.attention_gradient:
        gradients = [places.get(index) for index in range(3)]
        return attention_step.attention_gradient_step(node, arrays, gradients)
    rows = [places[1]] if 1 in places else []
    return attention_step.attention_step(node, arrays, [places.get(0), *rows])


def _places_of_results(builder: CpuPlanBuilder, call: Node) -> Mapping[int, BufferRef]:
    return {each.attrs["index"]: builder.place[each] for each in builder.results(call)}


def _sparse_product(builder: CpuPlanBuilder, node: Node) -> LibraryStep | None:
    operands = builder.operands.arrays(node)
    if not sparse_step.is_native(operands):
        return None
    builder.library_checks[len(builder.steps)] = sparse_step.checks_of(node)
    step = sparse_step.sparse_step(node, operands, builder.place[node])
    tell = partial(sparse_step.sparse_summary, node)
    return LibraryStep(step, "library", sparse_step.flops_of(node), tell)


def _sorting(builder: CpuPlanBuilder, node: Node) -> LibraryStep | None:
    if sorting_step.is_native(node):
        step = _native_sorting(builder, node)
        return LibraryStep(step, "sort", 0, partial(sorting_step.sorting_summary, node))
    if node.primitive is not p.sort:
        return None
    function = partial(put_in_order, descending=node.attrs["descending"])
    operands, results = builder.operands.arrays(node), (builder.operands.result(node),)
    return LibraryStep(PythonStep("sort", function, operands, results), "python")


def _native_sorting(builder: CpuPlanBuilder, node: Node) -> KernelStep:
    (operand,) = builder.operands.arrays(node)
    result = builder.place[node]
    if node.primitive is p.sort:
        return sorting_step.sort_step(node, operand, result)
    if node.primitive is p.select_nth:
        return sorting_step.selection_step(node, operand, result)
    with builder.arena.borrowed(sorting_step.lists_bytes(node)) as lists:
        return sorting_step.argsort_step(node, operand, result, lists)


def _factorization(builder: CpuPlanBuilder, node: Node) -> LibraryStep:
    is_one = node in builder.place
    places = {0: builder.place[node]} if is_one else _places_of_results(builder, node)
    operands = builder.operands.arrays(node)
    found = factorization_step.factorization_of(node, operands)
    results = factorization_step.places_of_results(found, places)
    if (check := routine_check(node)) is not None:
        builder.library_checks[len(builder.steps)] = check
    with builder.arena.borrowed(found.scratch_bytes(results)) as scratch:
        step = found.step([each.ref for each in operands], results, scratch)
    return LibraryStep(step, "library", found.flops, found.summary)
