"""Loops of Python, compiled as one turn and turn by turn: `python -m benchmarks.python_loops`.

CPU seconds of the first call, in a process of its own without a cache, and microseconds of steady
calls, in turns in one process, medians. "Rolled" is what `tg.compile` does with turns that are
alike; "written out" is the same function with the pass switched off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 30
HEADS = ("rolled s", "written s", "rolled us", "written us")


def _lstm(tg: Any, turns: int, trained: bool) -> tuple[Callable[..., Any], list[Any]]:
    batch, width = 8, 32

    def states(xs: Any, w: Any, u: Any, b: Any) -> Any:
        h, c, found = tg.zeros(batch, width), tg.zeros(batch, width), []
        for t in range(turns):
            i, f, o, g = (xs[t] @ w + h @ u + b).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            found.append(h)
        return tg.stack(found)

    def step(xs: Any, *parameters: Any) -> Any:
        loss = states(xs, *parameters).square().mean()
        return tg.autograd.grad(loss, parameters)

    sizes = (width, 4 * width), (width, 4 * width), (4 * width,)
    parameters = [(tg.randn(*size) / 6).requires_grad_(trained) for size in sizes]
    return step if trained else states, [tg.randn(turns, batch, width), *parameters]


def _dropout(tg: Any, turns: int) -> tuple[Callable[..., Any], list[Any]]:
    def function(x: Any, w: Any) -> Any:
        for _ in range(turns):
            x = tg.nn.functional.dropout((x @ w).relu(), 0.1) + x * 0.5
        return x

    return function, [tg.randn(32, 64), tg.randn(64, 64) / 8]


def _parts(tg: Any, turns: int) -> tuple[Callable[..., Any], list[Any]]:
    """Gradients of a batch in parts, added up."""
    nn, f = tg.nn, tg.nn.functional
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    parameters = list(model.parameters())

    def function(xs: Any, ys: Any) -> Any:
        total: list[Any] = [tg.zeros_like(each) for each in parameters]
        for t in range(turns):
            part = slice(8 * t, 8 * (t + 1))
            loss = f.cross_entropy(model(xs[part]), ys[part])
            found = tg.autograd.grad(loss, parameters)
            total = [one + other for one, other in zip(total, found, strict=True)]
        return total

    return function, [tg.randn(8 * turns, 16), tg.randint(0, 4, (8 * turns,))]


def _descent(tg: Any, turns: int) -> tuple[Callable[..., Any], list[Any]]:
    """Gradients through steps of descent."""

    def function(x: Any, y: Any, w: Any) -> Any:
        moved = w
        for _ in range(turns):
            loss = ((x @ moved).tanh() - y).square().mean()
            moved = moved - 0.1 * tg.autograd.grad(loss, moved, create_graph=True)[0]
        return tg.autograd.grad(((x @ moved).tanh() - y).square().mean(), w)

    return function, [tg.randn(64, 8), tg.randn(64, 4), tg.randn(8, 4).requires_grad_()]


def _sinkhorn(tg: Any, turns: int) -> tuple[Callable[..., Any], list[Any]]:
    def function(cost: Any) -> Any:
        kernel, u = (-10 * cost).exp(), tg.ones(64)
        for _ in range(turns):
            v = 1 / (kernel.T @ u)
            u = 1 / (kernel @ v)
        return u, v

    return function, [tg.rand(64, 64)]


CASES: dict[str, Callable[[Any, int], tuple[Callable[..., Any], list[Any]]]] = {
    "lstm": lambda tg, turns: _lstm(tg, turns, False),
    "lstm step": lambda tg, turns: _lstm(tg, turns, True),
    "dropout": _dropout,
    "parts of a batch": _parts,
    "through descent": _descent,
    "sinkhorn": _sinkhorn,
}


def _switch(is_rolled: bool) -> None:
    from tgraph.compiler.passes import roll_loops

    roll_loops.FEWEST_NODES = roll_loops.MANY_NODES if is_rolled else sys.maxsize


def first_call(name: str, turns: int, is_rolled: bool) -> float:
    """CPU seconds of the first call; for a process that has not compiled before."""
    import tgraph as tg

    _switch(is_rolled)
    tg.compile(lambda x: (x @ x).sum() + 1)(tg.ones(4, 4))  # imports, and what is made once
    function, arguments = CASES[name](tg, turns)
    start = time.process_time()
    tg.compile(function)(*arguments)
    return time.process_time() - start


def steady_calls(name: str, turns: int, rounds: int = ROUNDS) -> list[float]:
    """Microseconds of a call, rolled and written out; an error where results differ."""
    import tgraph as tg

    function, arguments = CASES[name](tg, turns)
    calls, results = [], []
    for is_rolled in (True, False):
        _switch(is_rolled)
        calls.append(tg.compile(lambda *given: function(*given)))
        tg.manual_seed(0)
        found = calls[-1](*arguments)
        results.append(found if isinstance(found, (tuple, list)) else [found])
    for one, other in zip(*results, strict=True):
        if not tg.allclose(one, other, rtol=1e-3, atol=1e-4):
            raise ValueError(f"{name}: results differ by {(one - other).abs().max().item()}")
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for call, found in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(*arguments)
            found.append(1e6 * (time.perf_counter() - start))
    return [statistics.median(each) for each in times]


def measure(name: str, turns: int) -> list[float]:
    """The numbers of `HEADS`."""
    firsts = [_apart("first_call", name, turns, is_rolled) for is_rolled in (True, False)]
    return [*firsts, *_apart("steady_calls", name, turns)]


def _apart(what: str, *arguments: Any) -> Any:
    text = "import json; from benchmarks import python_loops as p; "
    text += f"print(json.dumps(p.{what}(*{arguments!r})))"
    found = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, "TGRAPH_CACHE_DIR": ""},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(found.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--turns", default="25,100,200")
    options = parser.parse_args()
    print(f"{'':20}{'turns':>6}" + "".join(f"{each:>12}" for each in HEADS))
    for name in options.cases or CASES:
        for turns in map(int, options.turns.split(",")):
            first, written, *calls = measure(name, turns)
            times = "".join(f"{each:12.0f}" for each in calls)
            print(f"{name:20}{turns:6}{first:12.2f}{written:12.2f}{times}", flush=True)


if __name__ == "__main__":
    main()
