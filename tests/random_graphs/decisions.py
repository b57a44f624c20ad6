"""Random programs that decide on values that round, differentiated outside of compiled code.

What an engine decides on a rounded value depends on how it rounds, so eager code is no reference.
But a call and its backward pass must decide alike: the gradient of `(decision * scale).sum()` with
respect to `scale` is the decision itself, to the last bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from tgraph.compiler.ir import Graph
from tgraph.compiler.ir import primitives as p

import tgraph as tg
from tgraph.dispatch import apply

from .check import program_of_seed

DECISIONS: dict[str, Callable[[Any], Any]] = {
    "extreme": lambda v: v == v.amax(-1, keepdim=True),
    "least": lambda v: v == v.amin(0, keepdim=True),
    "position": lambda v: v.argmax(-1),
    "order": lambda v: v.argsort(-1),
    "sign": lambda v: (v - v.mean(-1, keepdim=True)).sign(),
    "above": lambda v: v > v.flip(0),
    "floor": lambda v: (v * 37).floor(),
    "integers": lambda v: (v * 11).to(tg.int64),
    "again": lambda v: v * 3 / 3 == v,
    "relu": lambda v: (v - v.flip(-1)).clamp(min=0) > 0,
    "top": lambda v: v >= v.topk(1, dim=-1).values,
}
MOST_DECISIONS = 4


def check_decisions(seed: int) -> str | None:
    """What went wrong with the program of a seed, or None."""
    program = program_of_seed(seed, steps=25)
    if program.hazard:
        return None
    pick = random.Random(seed)
    floats = [v for v in program.values if v.is_float and v.ndim and v.node.type.numel]
    if not floats:
        return None
    inexact = [v for v in floats if not v.exact] or floats
    chosen = [
        (pick.choice(inexact).node, pick.choice(sorted(DECISIONS)))
        for _ in range(pick.randrange(1, MOST_DECISIONS + 1))
    ]
    graph = Graph(program.inputs, [node for node, _ in chosen])

    def function(arguments: list[Any], scales: list[Any]) -> Any:
        values = _values(graph, arguments)
        made = [DECISIONS[name](v).to(tg.float64) for v, (_, name) in zip(values, chosen)]
        loss = sum((d * s).sum() for d, s in zip(made, scales, strict=True))
        return loss + sum(v.to(tg.float64).sum() * 0.1 for v in values), made

    return _compare(function, program.arrays, chosen)


def _compare(function: Any, arrays: Any, chosen: Any) -> str | None:
    arguments = [tg.from_numpy(np.array(each, order="C")) for each in arrays]
    for each in arguments:
        each.requires_grad_(each.is_floating_point())
    shapes = [
        each.shape for each in function(arguments, [tg.ones((), dtype=tg.float64)] * len(chosen))[1]
    ]
    scales = [tg.ones(shape, dtype=tg.float64).requires_grad_() for shape in shapes]
    loss, made = tg.compile(function)(arguments, scales)
    loss.backward()
    for (node, name), decision, scale in zip(chosen, made, scales, strict=True):
        wrong = decision.detach().numpy() != scale.grad.numpy()
        if wrong.any():
            return (
                f"{name} of {node.primitive.name} {node.type}: {int(wrong.sum())} of {wrong.size} "
                "elements are decided otherwise by the backward pass"
            )
    return None


def _values(graph: Graph, arguments: list[Any]) -> list[Any]:
    """The graph's outputs as tensors, by the operations that users' functions consist of."""
    values = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.nodes:
        if node in values:
            continue
        operands = [values[each] for each in node.inputs]
        if node.primitive is p.constant:
            values[node] = tg.tensor(node.attrs["value"])
        elif node.primitive is p.get:
            values[node] = operands[0][node.attrs["index"]]
        else:
            values[node] = apply(node.primitive, *operands, **node.attrs)
    return [values[node] for node in graph.outputs]
