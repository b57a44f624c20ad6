"""Kernels with a contraction: what they compute, by their interpreter, and what tells of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernel_cases import Make
from tgraph.compiler.graph_interpreter import Interpreter
from tgraph.compiler.ir import Graph, Node
from tgraph.compiler.kernel.kernel import Kernel
from tgraph.compiler.kernel.kernel_interpreter import interpret_kernel
from tgraph.compiler.kernel.kernel_io import BufferLayout, CannotFuse, Root
from tgraph.compiler.kernel.kernel_work import operations
from tgraph.compiler.kernel.lower import Lowering
from tgraph.compiler.kernel.simplify_loops import simplify_loops
from tgraph.compiler.targets.cpu.contraction_schedule import schedule_contraction
from tgraph.runtime.dtypes import bfloat16, float16, float32, float64

SIZES = [(5, 6, 7), (1, 4, 3), (8, 1, 2), (3, 4, 1), (3, 4, 0), (0, 4, 3), (3, 0, 2)]
LEADS = [((), ()), ((2,), (2,)), ((3,), ()), ((1, 3), (2, 1)), ((), (2,))]


def contraction(case: int) -> tuple[Graph, list[Root]]:
    """A product, and what elementwise nodes make of it and of what lies beside it."""
    rng = np.random.default_rng(case)
    make, dtype = Make(), (float32, float64, float16, bfloat16)[case % 4]
    m, n, k = SIZES[case % len(SIZES)]
    left, right = LEADS[case % len(LEADS)]
    ta, tb = rng.integers(0, 2, 2)
    x = make.input(*left, *((k, m) if ta else (m, k)), dtype=dtype)
    y = make.input(*right, *((n, k) if tb else (k, n)), dtype=dtype)
    operand: Node = x
    if case % 3 == 0:  # lies transposed in memory, and is computed on the way
        axes = (*range(len(left)), len(left) + 1, len(left))
        operand, ta = make.abs(make.permute(x, axes=axes)), 1 - ta
    product = make.matmul(operand, y, transpose_a=bool(ta), transpose_b=bool(tb))
    bias, beside = make.input(n, dtype=dtype), make.input(*product.shape, dtype=dtype)
    found = make.tanh(make.add(product, bias))
    results = [make.mul(found, beside)]
    if case % 2:
        results.append(make.cast(make.sub(product, beside), dtype=float64))
    if case % 5 == 0 and found.type.numel:
        results.append(make.reshape(make.neg(found), shape=(found.type.numel,)))
    whole = (True,) * product.type.ndim
    is_stored = case % 7 == 0
    roots = [Root(each, (True,) * each.type.ndim) for each in results]
    outputs = [*results, product] if is_stored else results
    return make.graph(*outputs), [*roots, Root(product, whole, is_stored)]


def lowered(graph: Graph, roots: list[Root], strided: bool) -> tuple[Lowering, Kernel]:
    """With inputs that have gaps, in front and between elements, if `strided`."""

    def layout(node: Node) -> BufferLayout:
        dense = BufferLayout.contiguous(node.shape)
        if not strided or node not in graph.inputs:
            return dense
        return BufferLayout(tuple(2 * each for each in dense.strides), 3, 2 * dense.elements + 3)

    order = {node: at for at, node in enumerate(graph.nodes)}
    lowering = Lowering(
        "k", roots, lambda node: layout(node) if node in graph.inputs else None, layout, order,
        save_rows=False,
    )  # fmt: skip
    return lowering, lowering.run()


def run(graph: Graph, lowering: Lowering, kernel: Kernel) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays, buffers = {}, {}
    for node in lowering.param_nodes:
        assert node is not None
        param = kernel.params[lowering.param_nodes.index(node)]
        buffers[node] = rng.standard_normal(param.elements).astype(param.dtype.numpy)
        if node in graph.inputs:
            layout = lowering.layout_of(node)
            strides = [stride * buffers[node].itemsize for stride in layout.strides]
            view = np.lib.stride_tricks.as_strided
            arrays[node] = view(buffers[node][layout.offset :], node.shape, strides)
    interpret_kernel(kernel, [buffers[node] for node in lowering.param_nodes])
    given = [arrays.get(each, np.zeros(each.shape, each.type.dtype.numpy)) for each in graph.inputs]
    wanted = Interpreter(graph).run(given)
    for node, want in zip(graph.outputs, wanted, strict=True):
        have = buffers[node].reshape(node.shape)
        eps = {float16: 2e-3, bfloat16: 2e-2}.get(graph.inputs[0].type.dtype, 1e-5)
        differ = np.abs(have.astype(np.float64) - want.astype(np.float64))
        assert not differ.size or differ.max() <= eps * (1 + np.abs(want).astype(float).max())
    return list(buffers.values())


@pytest.mark.parametrize("strided", [False, True])
def test_contractions_compute_what_their_graphs_do(strided: bool) -> None:
    for case in range(140):
        graph, roots = contraction(case)
        lowering, kernel = lowered(graph, roots, strided)
        assert sum(each.contraction is not None for each in kernel.stages) == 1
        both = [run(graph, lowering, each) for each in (kernel, simplify_loops(kernel))]
        for one, other in zip(*both, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_text_tells_operands_and_epilogue() -> None:
    make = Make()
    x, y, bias = make.input(2, 5, 7), make.input(4, 7), make.input(4)
    product = make.matmul(x, y, transpose_a=False, transpose_b=True)
    root = make.maximum(make.add(product, bias), 0.0)
    roots = [Root(root, (True,) * 3), Root(product, (True,) * 3, False)]
    _, kernel = lowered(make.graph(root), roots, False)
    assert str(kernel) == (
        "kernel k(in0: float32[28], in1: float32[70], in2: float32[4], out3: float32[40] out)\n"
        "  rows i0 < 2, i1 < 5, i2 < 4\n"
        "  stage j0 < 7:\n"
        "    %0 = load in0[7*i2 + j0]\n"
        "    %1 = load in1[35*i0 + 7*i1 + j0]\n"
        "    r0 = contract float32 %1, %0\n"
        "  stage:\n"
        "    %0 = float32 0.0\n"
        "    %1 = load in2[i2]\n"
        "    %2 = r0\n"
        "    %3 = add %2, %1\n"
        "    %4 = maximum %3, %0\n"
        "    out3[20*i0 + 4*i1 + i2] = %4"
    )
    assert operations(kernel) == 2 * 40 * 7 + 3 * 40


def test_a_product_is_read_at_its_own_elements() -> None:
    make = Make()
    x, y = make.input(4, 4), make.input(4, 4)
    product = make.matmul(x, y, transpose_a=False, transpose_b=False)
    turned = make.exp(make.permute(product, axes=(1, 0)))
    roots = [Root(turned, (True, True)), Root(product, (True, True), False)]
    with pytest.raises(CannotFuse, match="another row than the one being computed"):
        lowered(make.graph(turned), roots, False)


def test_products_that_tiles_of_the_cpu_do_not_compute_are_refused() -> None:
    """Those of `contraction` that have too few rows, sums or types, or operands on the way."""
    reasons = set()
    for case, strided in itertools.product(range(12), (False, True)):
        try:
            schedule_contraction(lowered(*contraction(case), strided)[1])
        except CannotFuse as error:
            reasons.add(str(error))
    assert len(reasons) == 3
