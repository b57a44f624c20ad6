"""What compiled code computes and moves, counted: no more than a few times what eager code does.

Counts, not clocks: of operations with multiplicity and of bytes, as `kernel_needs` finds them for
the kernels of a plan, beside those of a kernel for each operation, as eager code runs them. Starts
of kernels are left out, so that the small inputs of the tables stand for large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from opcases import CASES
from random_graphs.check import program_of_seed
from tgraph.compiler.fusion.fused_graph import FusedGraph, GroupKernels
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.fusion.machine import Machine
from tgraph.compiler.fusion.roots import Roots
from tgraph.compiler.fusion.rules import FusionRules, is_virtual_source
from tgraph.compiler.ir import Family, Graph
from tgraph.compiler.kernel.kernel_io import own_root
from tgraph.compiler.kernel.kernel_needs import KernelNeeds
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.plan.planning import planned_graph
from tgraph.compiler.targets.cpu.machine import CPU
from tgraph.compiler.targets.cpu.rules import CpuRules

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.tracing import trace

TIMES = 1.5
"""The price of compiled code in that of eager code, at most."""
COMPUTED = 4
"""How often an operation may be computed for each time that eager code computes it."""
FEW = 64
"""Operations for each element of the results that need no reason: indices, masks, short sums."""

MACHINE = replace(CPU, start=0.0, units=1, levels=((inf, CPU.levels[1][1]),))


class Rules(CpuRules):
    machine: Machine = MACHINE


def rules_of(graph: Graph) -> FusionRules:
    return Rules(planned_graph(graph, {}, MACHINE))


def operations(needs: Iterable[KernelNeeds]) -> int:
    return sum(count for each in needs for _, count in each.operations)


def fused_needs(fused: FusedGraph) -> list[KernelNeeds]:
    found = [fused.assess(group).needs for group in fused.groups if group.kind != "step"]
    return [needs for needs in found if needs is not None]


def eager_needs(rules: FusionRules) -> list[KernelNeeds]:
    """Those of a kernel for each operation; views cost nothing, nor do numbers written in."""
    roots, kernels = Roots(rules), GroupKernels(rules)
    graph = rules.graph
    computed = [
        node
        for node in graph.nodes
        if node not in roots.fixed
        and not is_virtual_source(node)
        and (node.primitive.family is not Family.VIEW or node in roots.wanted)
    ]
    roots.choose(computed)
    found = []
    for node in computed:
        kind = "scatter" if node.primitive.family is Family.SCATTER else "kernel"
        assessed = kernels.assess(kind, [own_root(node)], roots.has_memory)
        assert not assessed.refusal and assessed.needs is not None, node
        found.append(assessed.needs)
    return found


def offences(graph: Graph) -> str:
    """What compiled code of a graph does too much of; "" if nothing."""
    rules = rules_of(graph)
    fused, alone = fuse(rules), eager_needs(rules)
    together = fused_needs(fused)
    price, before = (sum(map(MACHINE.price, each)) for each in (together, alone))
    computed, once = operations(together), operations(alone)
    elements = sum(node.type.numel for node in rules.graph.outputs)
    if computed > COMPUTED * once + FEW * elements:
        return f"{computed} operations instead of {once}"
    if price > TIMES * before + MACHINE.operation * 4 * FEW * elements:
        return f"price {price:.1f} instead of {before:.1f}"
    return ""


def traced(function: Callable[..., Any], arguments: Sequence[tg.Tensor]) -> Graph:
    return optimize(trace(function, *arguments))


@pytest.mark.parametrize("case", [case for case in CASES if case.compiles], ids=lambda c: c.name)
def test_no_operation_costs_more_than_in_eager_mode(case):
    arguments = [tg.from_numpy(each) for each in case.arrays(case.dtypes[0])]
    assert not offences(traced(case.function, arguments))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(8))
def test_no_random_graph_costs_more_than_in_eager_mode(chunk):
    found = {
        seed: offences(optimize(program_of_seed(seed).graph())) for seed in range(chunk, 800, 8)
    }
    assert not {seed: each for seed, each in found.items() if each}


def stencil(x: tg.Tensor, steps: int) -> tg.Tensor:
    for _ in range(steps):
        x = F.pad((x[:-2] + x[2:]) * 0.5 - x[1:-1], (1, 1))
    return x


def doubled(x: tg.Tensor, steps: int) -> tg.Tensor:
    """Each step reads the one before at two places: 2 ** steps operations if all were one."""
    for number in range(steps):
        x = tg.tanh(x + x.roll(1 + number, 0))
    return x


def padded_pieces(x: tg.Tensor, pieces: int) -> tg.Tensor:
    """Each element of the result chooses among all pieces, which are views of one value."""
    padded = F.pad(tg.exp(x).reshape(-1, 16), (8, 9, 1, 2))
    return tg.cat([padded] * pieces)


def written(x: tg.Tensor, pieces: int, columns: bool) -> tg.Tensor:
    out = tg.zeros(4096, pieces) if columns else tg.zeros(pieces, 4096)
    for at in range(pieces):
        out[(slice(None), at) if columns else at] = x * at
    return out


CHAINS = {
    "rows written": lambda x, n: written(x, n, False),
    "columns written": lambda x, n: written(x, n, True),
    "stacked": lambda x, n: tg.stack([x * at for at in range(n)], 1),
    "padded pieces": padded_pieces,
    "cumsum": lambda x, n: x.cumsum(0),
    "stencil": stencil,
    "doubled": doubled,
    "column softmax": lambda x, n: tg.softmax(tg.tanh(x).reshape(-1, 8), 0),
    "windows": lambda x, n: tg.exp(x).unfold(0, 16, 1).amax(1),
    "powers of a matrix": lambda x, n: (
        tg.exp(x.reshape(-1, 8)).unsqueeze(0) * x[:n].reshape(n, 1, 1)
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_not_computed_again_and_again(name):
    """Operations and loads for each element do not grow with the length of a chain."""
    computed, read = [], []
    for length in (2, 12):
        graph = traced(lambda x, n=length: CHAINS[name](x, n), [tg.randn(4096)])
        found = fused_needs(fuse(rules_of(graph)))
        elements = max(4096, graph.outputs[0].type.numel)
        computed.append(operations(found) / elements)
        read.append(sum(each.accesses for needs in found for each in needs.reads) / elements)
    assert computed[1] <= 8 * computed[0]
    assert read[1] <= 8 * read[0]


def test_pieces_of_pieces_are_chosen_once():
    """Windows, and what pads them, would choose among all 16 for each element they read."""

    def windows(x: tg.Tensor) -> tg.Tensor:
        whole = tg.cat([tg.cat([x] * 4)] * 4, 1)
        return F.pad(whole.unfold(0, 3, 1).sum(-1).round(), (9, 9, 9, 9))

    assert not offences(traced(windows, [tg.randn(2, 4)]))
