"""The steps of matrix products, and of what runs as a Python function over arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...runtime.arrays import copy_elements, evaluate, module_of
from ...runtime.plan_steps import GemmStep, PythonStep, RoutineStep, merged_batch
from ..ir import Node, TensorType
from ..ir.types import ResultType
from ..kernel.checks import RoutineCheck
from .operands import Operands


def product_step(operands: Operands, node: Node) -> GemmStep:
    """The step of a matrix product."""
    a, b = node.inputs
    left = operands.matrix(node, a, node.attrs["transpose_a"])
    right = operands.matrix(node, b, node.attrs["transpose_b"])
    *lead, m, n = node.shape
    k = a.shape[-2] if node.attrs["transpose_a"] else a.shape[-1]
    batch = []
    out_stride = m * n
    for axis in range(len(lead) - 1, -1, -1):
        from_end = axis - len(lead)
        entry = (lead[axis], left.stride(from_end), right.stride(from_end), out_stride)
        out_stride *= lead[axis]
        batch.append(entry)
    return GemmStep(
        "matmul", node.type.dtype.name, m, n, k, left.ref, right.ref, operands.place[node],
        left.transposed, right.transposed, left.leading, right.leading, max(n, 1),
        merged_batch(batch[::-1]), spread_a=left.spread, spread_b=right.spread,
    )  # fmt: skip


def primitive_step(operands: Operands, node: Node) -> PythonStep:
    """A step that computes one primitive with the array module of its device."""
    function = partial(_run_primitive, node.primitive.name, dict(node.attrs))
    results = (operands.result(node),)
    return PythonStep(node.primitive.name, function, operands.arrays(node), results)


def call_step(operands: Operands, node: Node, results: Sequence[Node]) -> PythonStep:
    """A Python function or a routine of a library, for those of its `results` that are read."""
    read = {each.attrs["index"]: each for each in results}
    wanted = tuple(sorted(read))
    outputs = tuple(operands.result(read[at]) for at in wanted)
    name = str(node.attrs.get("name", node.primitive.name))
    attrs, count = dict(node.attrs), len(node.inputs)
    function = partial(_run_several, node.primitive.name, attrs, wanted, count)
    return PythonStep(name, function, operands.arrays(node), outputs)


def routine_step(operands: Operands, node: Node, results: Sequence[Node], site: int) -> RoutineStep:
    """Routines of a library on a CUDA device; `site` numbers what it checks, if it does."""
    types: ResultType = node.type
    if isinstance(types, TensorType):
        count, read = 1, {0: operands.result(node)}
    else:
        count = len(types)
        read = {each.attrs["index"]: operands.result(each) for each in results}
    name = node.primitive.name
    return RoutineStep(
        name, name, operands.arrays(node), tuple(read.get(at) for at in range(count)),
        tuple(node.attrs.items()), site,
    )  # fmt: skip


def routine_check(node: Node) -> RoutineCheck | None:
    """What a factorization checks, if it does."""
    function = node.attrs.get("check")
    if not function:
        return None
    return RoutineCheck(node.primitive.name, function, node.inputs[0].type.ndim > 2, node.where)


def _run_primitive(name: str, attrs: Mapping[str, Any], *arrays: Any) -> None:
    *inputs, output = arrays
    copy_elements(output, evaluate(name, inputs, attrs, module_of(output)))


def _run_several(
    name: str, attrs: Mapping[str, Any], wanted: Sequence[int], count: int, *arrays: Any
) -> None:
    results = evaluate(name, arrays[:count], attrs, module_of(arrays[0]))
    for number, output in zip(wanted, arrays[count:], strict=True):
        copy_elements(output, results[number])
