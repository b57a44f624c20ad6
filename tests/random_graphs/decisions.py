"""Random programs that decide on values that round, differentiated outside of compiled code.

What an engine decides on a rounded value depends on how it rounds, so eager code is no reference
for it. But a call and its backward pass must decide alike: the gradient of `(decision *
scale).sum()` with respect to `scale` is the decision itself, to the last bit. The values are
normalised before, and the function reads state that changes between its calls. Its other
gradients and what it made of the state alone are those of eager code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tgraph.compiler.ir import Graph
from tgraph.compiler.ir import primitives as p

import tgraph as tg
from tgraph.core.dispatch import apply
from tgraph.nn import functional as F

from .check import program_of_seed
from .program import mantissa

EPS = 0.01  # large, for gradients of what has no variance that are not mere noise
AMPLIFIED = 1 / EPS**1.5  # what two normalisations make of gradients, of which little may be left
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
NORMALISATIONS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda v: v,
    "layer_norm": lambda v: F.layer_norm(v, v.shape[-1:], eps=EPS),
    "layer_norm of silu": lambda v: F.layer_norm(F.silu(v), v.shape[-1:], eps=EPS),
    "layer_norm of all axes": lambda v: F.layer_norm(v, v.shape, eps=EPS),
    "rms_norm": lambda v: F.rms_norm(v, v.shape[-1:], eps=EPS),
    "normalize": lambda v: F.normalize(v, dim=-1, eps=EPS),
    "standardised": lambda v: (v - v.mean(0)) / (v.var(0, unbiased=False) + EPS).sqrt(),
    "softmax": lambda v: v.softmax(-1),
    "log_softmax of gelu": lambda v: F.gelu(v).log_softmax(0),
    "norm of norm": lambda v: F.normalize(
        F.layer_norm(v, v.shape[-1:], eps=EPS).tanh(), dim=0, eps=EPS
    ),
}
MOST_DECISIONS = 3
MOST_CHANGES = 2
STEPS = 15
# Other engines round otherwise: how far gradients may be off, as a multiple of what rounding the
# inputs anew makes of them in eager code.
NOISE = 64
RUNS_OF_NOISE = 5


class State:
    """What a program reads beside its arguments."""

    def __init__(self, norms: Sequence[str]) -> None:
        self.norms = list(norms)
        self.factor, self.count = 1.0, 1
        self.shift = tg.tensor(0.5, dtype=tg.float64, requires_grad=True)
        self.rows: list[Any] = []
        self.options: dict[Any, Any] = {}
        self.noise: Callable[[Any], Any] | None = None

    def scaled(self, value: Any) -> Any:
        if self.noise is not None:
            value = value + (self.noise(value.detach()) - value.detach())
        return value * self.factor

    def seen(self) -> Any:
        """A number of all that changes but the values' own."""
        found = self.shift * self.count + len(self.rows)
        for row in self.rows:
            found = found + row * self.factor
        return found * 2 if self.options.get("twice") else found


def _put(name: str, value: Callable[[State], Any]) -> Callable[[State], None]:
    return lambda state: setattr(state, name, value(state))


CHANGES: dict[str, Callable[[State], None]] = {
    "another factor": _put("factor", lambda state: state.factor + 0.25),
    "another count": _put("count", lambda state: state.count + 1),
    "another tensor": _put("shift", lambda state: (state.shift.detach() + 1).requires_grad_()),
    "other numbers in a tensor": lambda state: state.shift.data.add_(0.5),
    "one tensor more": lambda state: state.rows.append(tg.tensor(0.25, dtype=tg.float64)),
    "no tensors": lambda state: state.rows.clear(),
    "an option": lambda state: state.options.update(twice=True),
    "no option": lambda state: state.options.clear(),
    "other normalisations": lambda state: state.norms.reverse(),
    "a normalisation less": lambda state: state.norms.__setitem__(0, "nothing"),
}


def check_decisions(seed: int) -> str | None:
    """What went wrong with the program of a seed, or None."""
    program = program_of_seed(seed, steps=STEPS)
    if program.hazard:
        return None
    pick = random.Random(seed)
    floats = [v for v in program.values if v.is_float and v.ndim and v.node.type.numel]
    if not floats:
        return None
    inexact = [v for v in floats if not v.exact] or floats
    number = pick.randrange(1, MOST_DECISIONS + 1)
    nodes = [pick.choice(inexact).node for _ in range(number)]
    decisions = [pick.choice(sorted(DECISIONS)) for _ in range(number)]
    state = State([pick.choice(sorted(NORMALISATIONS)) for _ in range(number)])
    graph = Graph(program.inputs, nodes)
    constants = {
        node: tg.tensor(node.attrs["value"]) for node in graph.nodes if node.primitive is p.constant
    }

    def function(arguments: list[Any], scales: list[Any]) -> Any:
        values = [
            NORMALISATIONS[name](state.scaled(value))
            for value, name in zip(_values(graph, arguments, constants), state.norms, strict=True)
        ]
        made = [DECISIONS[name](v).to(tg.float64) for v, name in zip(values, decisions)]
        seen = state.seen()
        loss = sum((d * s).sum() for d, s in zip(made, scales, strict=True)) + seen
        return loss + sum(_weighted(value) for value in values), made, seen

    eps = max(2.0 ** -mantissa(each.dtype) for each in program.values if each.is_float)
    compiled = tg.compile(function)
    arrays = [np.array(each, order="C") for each in program.arrays]
    wrong = _compare(compiled, function, arrays, state, eps)
    history: list[str] = []
    if wrong is None and pick.randrange(2):
        history = [pick.choice(sorted(CHANGES)) for _ in range(pick.randrange(1, MOST_CHANGES + 1))]
        for change in history:
            CHANGES[change](state)
        wrong = _compare(compiled, function, arrays, state, eps)
    if wrong is None:
        return None
    made = [f"{d} of {n} of {node.primitive.name} {node.type}"
            for d, n, node in zip(decisions, state.norms, nodes)]  # fmt: skip
    return f"{wrong}; changed {history}; {made}"


def _weighted(value: Any) -> Any:
    """A sum with a weight for each element, for which what is normalised has a gradient."""
    weights = tg.arange(value.numel(), dtype=tg.float64).cos().reshape(value.shape)
    return (value.to(tg.float64) * weights).sum()


def _compare(
    compiled: Any, function: Any, arrays: list[Any], state: State, eps: float
) -> str | None:
    wanted = _run(function, arrays, state, None)
    found = _run(compiled, arrays, state, [each.shape for each in wanted.made])
    for number, (decision, gradient) in enumerate(zip(found.made, found.scales, strict=True)):
        wrong = int((decision != gradient).sum())
        if wrong:
            return f"backward() decides {wrong} of {decision.size} elements of {number} otherwise"
    if found.seen != wanted.seen or found.shift != wanted.shift:
        return f"state: {found.seen}, {found.shift} instead of {wanted.seen}, {wanted.shift}"
    for number, (have, want) in enumerate(zip(found.gradients, wanted.gradients, strict=True)):
        off = _distance(have, want)
        allowed = NOISE * eps * max(AMPLIFIED, np.abs(want).max(initial=0))
        if off <= allowed:
            continue
        allowed += NOISE * _noise(function, arrays, state, eps, number, want)
        if not off <= allowed:
            return f"the gradient of input {number} is off by {off:.3g}, allowed {allowed:.3g}"
    return None


class _Found:
    """What a call and its `backward()` outside left."""

    made: list[Any]
    scales: list[Any]
    seen: float
    shift: float
    gradients: list[Any]


def _run(function: Any, arrays: list[Any], state: State, shapes: list[Any] | None) -> _Found:
    arguments = [tg.from_numpy(each.copy()) for each in arrays]
    for each in arguments:
        each.requires_grad_(each.is_floating_point())
    scales = [tg.ones(each, dtype=tg.float64, requires_grad=True) for each in shapes or ()]
    state.shift.grad = None
    ones = [tg.ones((), dtype=tg.float64)] * len(state.norms)
    loss, made, seen = function(arguments, scales or ones)
    loss.backward()
    found = _Found()
    found.made = [each.detach().numpy() for each in made]
    found.scales = [each.grad.numpy() for each in scales]
    found.seen, found.shift = seen.item(), state.shift.grad.item()
    found.gradients = [
        np.zeros(each.shape) if each.grad is None else each.grad.double().numpy()
        for each in arguments
        if each.requires_grad
    ]
    return found


def _noise(
    function: Any, arrays: list[Any], state: State, eps: float, number: int, wanted: Any
) -> float:
    """How far the gradient of an input is off when inputs and values are rounded otherwise."""
    rng = np.random.default_rng(number)

    def moved(array: Any) -> Any:
        share = eps * rng.choice([-1.0, 1.0, 2.0], array.shape)
        return np.asarray(array.astype(np.float64) * (1 + share)).astype(array.dtype)

    most = 0.0
    for _ in range(RUNS_OF_NOISE):
        inputs = [
            moved(each) if tg.from_numpy(each).is_floating_point() else each for each in arrays
        ]
        state.noise = lambda value: tg.from_numpy(moved(value.numpy()))
        found = _run(function, inputs, state, None).gradients[number]
        state.noise = None
        most = max(most, _distance(found, wanted))
    return most


def _distance(one: Any, other: Any) -> float:
    """The largest difference; what is infinite or not a number in both does not differ."""
    differs = ~((one == other) | (np.isnan(one) & np.isnan(other)))
    return float(np.abs(one[differs] - other[differs]).max(initial=0))


def _values(graph: Graph, arguments: list[Any], constants: dict[Any, Any]) -> list[Any]:
    """The graph's outputs as tensors, by the operations that users' functions consist of."""
    values = {**constants, **dict(zip(graph.inputs, arguments, strict=True))}
    for node in graph.nodes:
        if node in values:
            continue
        operands = [values[each] for each in node.inputs]
        if node.primitive is p.get:
            values[node] = operands[0][node.attrs["index"]]
        elif node.primitive is p.host_call:  # which has no gradient
            operands = [each.detach() for each in operands]
            values[node] = apply(node.primitive, *operands, **node.attrs)
        else:
            values[node] = apply(node.primitive, *operands, **node.attrs)
    return [values[node] for node in graph.outputs]
