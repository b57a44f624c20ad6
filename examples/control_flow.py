"""Branches and loops that tensors decide, in plain Python and by the words of tgraph.

    python examples/control_flow.py            # or with --quick

Each program is written twice: in Python, compiled with `control_flow=True`, and by hand with
`tg.cond`, `tg.while_loop` and `tg.scan`. Both run without Python in the loop, and give the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, cast

import tgraph as tg
from tgraph import Tensor

# --- Newton's iteration to a tolerance ----------------------------------------------------------


@tg.compile(control_flow=True)
def newton(a: Tensor) -> tuple[Tensor, Any]:
    x, turns = a, 0
    while (x * x - a).abs() > 1e-5 * a:
        x = (x + a / x) / 2
        turns += 1
    return x, turns


@tg.compile
def newton_by_hand(a: Tensor) -> Any:
    return tg.while_loop(
        lambda x, turns: (x * x - a).abs() > 1e-5 * a,
        lambda x, turns: ((x + a / x) / 2, turns + 1),
        (a, 0),
    )


# --- gradient descent that stops by itself, with gradients through it -----------------------------

TURNS = 200


@tg.compile(control_flow=True)
def descent(x: Tensor, rate: Tensor) -> Tensor:
    for _ in range(TURNS):
        step = rate * (x - 3)
        if step.abs().max() < 1e-4:
            break
        x = x - step
    return x


@tg.compile
def descent_by_hand(x: Tensor, rate: Tensor) -> Any:
    def goes_on(x: Tensor) -> Any:
        return (rate * (x - 3)).abs().max() >= 1e-4

    return tg.while_loop(goes_on, lambda x: x - rate * (x - 3), x, max_iterations=TURNS)


# --- a recurrent network over padded rows ---------------------------------------------------------


class Cell(tg.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.of_state = tg.nn.Linear(size, size)
        self.of_row = tg.nn.Linear(size, size)

    def forward(self, h: Tensor, row: Tensor) -> Tensor:
        return tg.tanh(self.of_state(h) + self.of_row(row))


class Reader(tg.nn.Module):
    """The states after each row; rows of zeros at the end are padding and change nothing."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.cell = Cell(size)

    def forward(self, rows: Tensor) -> Tensor:
        h, states = rows[0] * 0, []
        for row in rows:
            if row.abs().sum() > 0:
                h = self.cell(h, row)
            states.append(h)
        return tg.stack(states)

    def by_hand(self, rows: Tensor) -> Any:
        def step(h: Tensor, row: Tensor) -> Any:
            h = tg.cond(row.abs().sum() > 0, lambda: self.cell(h, row), lambda: h.clone())
            return h, h

        return tg.scan(step, rows[0] * 0, rows)[1]


# --- sampling until the end of a sentence ---------------------------------------------------------


@tg.compile(control_flow=True)
def sample(table: Tensor, end: Tensor) -> tuple[Any, Any]:
    """Walks along a table of scores with noise; gives a number made of the tokens, and how many."""
    token: Any = tg.tensor(0)
    total: Any = 0
    count: Any = 0
    while count < 20:
        noise = tg.rand(table.shape[1])
        token = (table[token] + noise).argmax()
        if token == end:
            break
        total = total * 3 + token
        count += 1
    return total, count


def seconds(function: Callable[..., Any], *args: Any, repeat: int) -> float:
    function(*args)
    start = time.perf_counter()
    for _ in range(repeat):
        function(*args)
    return (time.perf_counter() - start) / repeat


def main(quick: bool) -> None:
    repeat = 3 if quick else 200
    for number in (2.0, 1e4):
        root, turns = newton(tg.tensor(number))
        assert tg.allclose(root, newton_by_hand(tg.tensor(number))[0])
        print(f"root of {number:g}: {root.item():.6g} after {int(turns)} turns")
    print(f"  compiled {len(newton.compiles)} time")

    rate = tg.tensor(0.1, requires_grad=True)
    gradients: list[Any] = []
    for function in (descent, descent_by_hand):
        found = function(tg.zeros(2), rate)
        gradients += tg.autograd.grad(found.sum(), [rate])
    assert tg.allclose(gradients[0], gradients[1], rtol=1e-4)
    print(f"descent: the end moves by {gradients[0].item():.4g} per unit of the rate")

    tg.manual_seed(0)
    model = Reader(8 if quick else 64)
    rows = tg.randn(12 if quick else 100, 8 if quick else 64)
    rows[-3:] = 0
    reader, by_hand = tg.compile(model, control_flow=True), tg.compile(model.by_hand)
    with tg.no_grad():
        expected = model(rows)
        assert tg.allclose(reader(rows), expected, atol=1e-5)
        assert tg.allclose(by_hand(rows), expected, atol=1e-5)
        for name, each in (("Python", model), ("rewritten", reader), ("by hand", by_hand)):
            print(f"  {name:10} {1e6 * seconds(each, rows, repeat=repeat):8.1f} us")

    table, compiled = tg.randn(5, 5), cast(Any, sample)
    for seed in range(3):
        tg.manual_seed(seed)
        total, count = sample(table, tg.tensor(4))
        tg.manual_seed(seed)
        assert (int(total), int(count)) == tuple(map(int, compiled.function(table, tg.tensor(4))))
        print(f"sentence {seed}: {int(count)} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    main(parser.parse_args().quick)
