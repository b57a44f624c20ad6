"""Matrices that several products multiply are packed once.

A product packs its second operand in the order in which tiles read it (`runtime/gemm_packing.py`).
With few rows that takes a good part of its time, and where a loop was written out, as over the
steps of a recurrent network, each step would pack the same weights anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ....runtime import gemm_native, gemm_text, jit
from ....runtime.plan_steps import BufferRef, GemmStep, KernelStep
from ....runtime.records import replace
from ...ir import Graph, Node
from ...ir import primitives as p

FEWEST_PRODUCTS = 3
MOST_ROWS = 96
MIN_ELEMENTS = 1 << 12
MOST_DEPTH = 1 << 12
"""Rows of a panel: what tiles read of it is to stay in the caches."""

Operand = tuple[Node, bool]
"""A matrix, and whether it is multiplied transposed."""


def operand_of(product: Node) -> Operand:
    return product.inputs[1], product.attrs["transpose_b"]


def shared_operands(graph: Graph) -> Counter[Operand]:
    """How many products with few rows multiply each matrix, where these are enough."""
    found = Counter(operand_of(node) for node in graph.nodes if _has_few_rows(node))
    return Counter({each: count for each, count in found.items() if count >= FEWEST_PRODUCTS})


def fixed_operands(graph: Graph, fixed: Sequence[Node]) -> list[Operand]:
    """The matrices among `fixed` that products with few rows multiply."""
    products = filter(_has_few_rows, graph.nodes)
    return list(dict.fromkeys(operand_of(n) for n in products if n.inputs[1] in fixed))


def _has_few_rows(node: Node) -> bool:
    if node.primitive is not p.matmul or node.type.ndim != 2:
        return False
    return 1 < node.shape[0] <= MOST_ROWS and node.inputs[1].type.numel >= MIN_ELEMENTS


def can_share(product: Node, step: GemmStep) -> bool:
    """Whether a product with few rows packs B, in whole panels."""
    if not _has_few_rows(product) or step.batch or step.spread_b or step.alpha != 1:
        return False
    of = gemm_text.tiles(step.dtype, jit.vector_bytes())
    packs = step.transpose_b or of.packs_straight(step.m, step.k, step.ldb)
    return packs and step.n % of.columns == 0 and 1 < step.k <= MOST_DEPTH


def packing_step(step: GemmStep, panels: BufferRef) -> KernelStep:
    """The step that packs B of a product into `panels`, as many bytes as B has."""
    return KernelStep(
        "pack",
        gemm_native.load_packing(step.dtype),
        (step.b, panels),
        step.n // _columns(step.dtype),
        max(1, MIN_ELEMENTS // (step.k * _columns(step.dtype))),
        (step.k, *((1, step.ldb) if step.transpose_b else (step.ldb, 1))),
    )


def with_panels(step: GemmStep, panels: BufferRef) -> GemmStep:
    """The product with what was packed."""
    return replace(step, b=panels, packed_b=True)


def panels_summary(matrix: Node) -> str:
    """A line for people."""
    columns = _columns(matrix.type.dtype.name)
    return f"a matrix in panels of {columns} columns, for several generated products"


def _columns(dtype: str) -> int:
    return gemm_text.tiles(dtype, jit.vector_bytes()).columns
