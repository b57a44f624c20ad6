"""How a product with a sparse matrix becomes a step of native code, over operands as they lie."""

from __future__ import annotations

from ....runtime import csr_product
from ....runtime.plan_steps import ArrayRef, BufferRef, KernelStep
from ...ir import Node
from ...kernel.checks import Check


def is_native(operands: tuple[ArrayRef, ...]) -> bool:
    """Whether native code computes it; a Python function over arrays does the others."""
    dense = operands[3]
    assert dense.strides is not None
    strides = tuple(each // dense.dtype.itemsize for each in dense.strides)
    shapes = tuple(each.shape for each in operands)
    return csr_product.can_multiply(shapes, strides, dense.dtype.name)


def sparse_step(node: Node, operands: tuple[ArrayRef, ...], result: BufferRef) -> KernelStep:
    """The step that computes `node`."""
    return csr_product.product_step(operands, result, **node.attrs)


def checks_of(node: Node) -> tuple[Check, Check]:
    """What the native code looks at: columns, and row pointers."""
    count = node.inputs[1].shape[0]
    return Check(node.where), Check(node.where, csr_product.ROW_POINTERS.format(count))


def flops_of(node: Node) -> int:
    """Multiplications and additions."""
    return 2 * node.inputs[1].shape[0] * node.shape[1]


def sparse_summary(node: Node) -> str:
    """A line for people."""
    rowptr, columns, values, _ = node.inputs
    return csr_product.summary(
        values.type.dtype.name, rowptr.shape[0] - 1, columns.shape[0], node.shape[1],
        node.attrs["transposed"],
    )  # fmt: skip
