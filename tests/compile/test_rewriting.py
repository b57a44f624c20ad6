"""`tg.compile(control_flow=True)`: Python's `if`, `while` and `for` on tensors."""

from __future__ import annotations

from typing import Any

import pytest
import random_control
from control_programs import PROGRAMS, a_queue_of_variables, helper

import tgraph as tg
from tgraph.core import pytree

IDS = [each[0].__name__ for each in PROGRAMS]


def fresh(args: tuple[Any, ...], grad: bool) -> tuple[Any, ...]:
    return tuple(
        each.detach().clone().requires_grad_(grad and each.is_floating_point())
        if isinstance(each, tg.Tensor)
        else each
        for each in args
    )


def same(one: Any, other: Any, atol: float = 1e-5) -> None:
    """Equal values; a number of Python's may be a tensor in compiled code."""
    left, right = pytree.leaves(one), pytree.leaves(other)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        if isinstance(a, tg.Tensor):
            assert a.dtype is b.dtype
            assert a.shape == b.shape
        if isinstance(b, tg.Tensor):
            assert tg.allclose(tg.as_tensor(a).to(tg.float64), b.to(tg.float64), atol=atol)
        else:
            assert a == b


def gradients(function: Any, args: tuple[Any, ...]) -> list[Any]:
    given = fresh(args, grad=True)
    leaves = [each for each in pytree.leaves(function(*given)) if isinstance(each, tg.Tensor)]
    total = sum((each * each).sum() for each in leaves if each.requires_grad)
    if not isinstance(total, tg.Tensor):
        total = tg.zeros((), requires_grad=True)
    wanted = [each for each in given if isinstance(each, tg.Tensor) and each.requires_grad]
    found = tg.autograd.grad(total, wanted, allow_unused=True)
    return [tg.zeros_like(x) if each is None else each for x, each in zip(wanted, found)]


@pytest.mark.parametrize(("function", "inputs", "grad"), PROGRAMS, ids=IDS)
def test_programs(function: Any, inputs: list[tuple[Any, ...]], grad: bool) -> None:
    """Compiled once, they give what they give in Python."""
    compiled = tg.compile(function, control_flow=True)
    for args in inputs:
        same(function(*fresh(args, False)), compiled(*fresh(args, False)))
    assert len(compiled.compiles) == 1, compiled.compiles
    if grad:
        compiled = tg.compile(function, control_flow=True)
        for args in inputs:
            for one, other in zip(gradients(function, args), gradients(compiled, args)):
                assert tg.allclose(one, other, atol=1e-5)
        assert len(compiled.compiles) == 1


@pytest.mark.parametrize("chunk", range(4))
def test_random_programs(chunk: int, request: pytest.FixtureRequest) -> None:
    """`--graphs 100000` runs more of them, `--seed` others."""
    count, first = request.config.getoption("graphs") // 100, request.config.getoption("seed")
    for seed in range(first + chunk * count, first + (chunk + 1) * count):
        run_random_program(seed)


def run_random_program(seed: int) -> None:
    has_gradients = seed % 3 == 0
    text = random_control.Writer(seed).text()
    function = random_control.function_of(text, f"program {seed}")
    compiled = tg.compile(function, control_flow=True)
    try:
        for given in range(4):
            args = (*random_control.arguments(given), seed % 2 == 0)
            same(function(*fresh(args, False)), compiled(*fresh(args, False)), atol=1e-8)
            if has_gradients:
                pairs = zip(gradients(function, args), gradients(compiled, args), strict=True)
                assert all(tg.allclose(*pair, atol=1e-8) for pair in pairs)
        assert len(compiled.compiles) == 1 + has_gradients
    except BaseException as error:
        error.add_note(f"seed {seed}:\n{text}")
        raise


def test_modules_and_methods() -> None:
    """What a call leaves in attributes is chosen as variables are; all functions that are called
    are rewritten."""

    class Cell(tg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tg.nn.Linear(2, 2)
            self.turns = 0

        def forward(self, x: Any) -> Any:
            if self.training:
                self.turns = 0
            while x.norm() < 3:
                x = x + self.inner(x).square()
                self.turns += 1
            self.last = x if x.sum() > 0 else -x
            return x

        def extra_repr(self) -> str:
            return super().extra_repr()

    class Deep(Cell):
        def forward(self, x: Any) -> Any:
            if x.sum() < 1:
                x = x + self.inner(x) if x.sum() > 0 else -x
            for _ in range(2):
                if x.norm() > 4:
                    break
                x = x * len(super().extra_repr() or "12")
            return super().forward(x)

    tg.manual_seed(0)
    model = Deep()
    compiled = tg.compile(model, control_flow=True)
    for x in (tg.tensor([1.0, 0.2]), tg.tensor([5.0, 1.0]), tg.tensor([-0.5, -1.0])):
        with tg.no_grad():
            expected = model(x), model.last, model.turns
            found = compiled(x), model.last, model.turns
        same(expected, found)
    assert len(compiled.compiles) == 1


def step_back(x: Any) -> Any:
    return x - 1 if x > 0 else x


def loops_in_rows(row: Any) -> Any:
    turns, total = 0, 0
    while row.sum() < 10 and turns < 4:
        row = row * 2 if row[0] > 0 else row + 1
        turns += 1
    for i, x in enumerate(row):
        if x > 5:
            break
        total = total + x * (i + turns)
    return total


@tg.compile(control_flow=True)
def settled(x: Any) -> Any:
    while x > 1:
        x = step_back(x)
    return x


def test_inside_of_others() -> None:
    """In plain compiled functions, in graphs that are traced or built, and under transforms."""
    outer = tg.compile(lambda x: settled(x) * 2)
    for each in (3.5, -1.0):
        same(settled.function(tg.tensor(each)) * 2, outer(tg.tensor(each)))
    assert len(outer.compiles) == 1
    assert "loop" in str(tg.trace(settled, tg.tensor(1.0)))
    with tg.Graph() as graph:
        x = tg.placeholder(tg.float32, [], "x")
        y = x * 2
        z = tg.compile(lambda x: x if x > 0 else -x, control_flow=True)(y)
    found = tg.Session(graph).run(z, {x: tg.tensor(-3.0)})
    same(tg.tensor(6.0), found)
    batch = tg.tensor([[1.0, 2.0], [-3.0, 1.0]])
    for function in (helper, loops_in_rows):
        mapped = tg.compile(lambda xs, each=function: tg.vmap(each)(xs), control_flow=True)
        same(tg.stack([function(x) for x in batch]), mapped(batch))
    queue = tg.compile(lambda xs: tg.vmap(a_queue_of_variables)(xs), control_flow=True)
    last, given = queue(tg.tensor([3.0, 0.5]))
    for at, start in enumerate((3.0, 0.5)):
        same(a_queue_of_variables(tg.tensor(start)), (last[at], given[at]))


def test_lists_that_grow() -> None:
    @tg.compile(control_flow=True)
    def f(xs: Any) -> Any:
        outs, h = [xs[0] * 0], xs[0] * 0
        numbers = []
        for i, x in enumerate(xs):
            h = tg.tanh(h + x)
            outs.append(h)
            outs.append(x)
            numbers.append(i)
        return tg.stack(outs), numbers

    xs = tg.randn(5, 3)
    same(f.function(xs), f(xs))


def test_only_what_asks_is_rewritten() -> None:
    """A loop of Python's is written out, whatever the function does beside it."""

    @tg.compile(control_flow=True)
    def f(x: Any, layers: Any) -> Any:
        for weight in layers:
            x = x * weight if isinstance(weight, float) else x
        return x if x.sum() > 0 else -x

    same(tg.tensor([6.0]), f(tg.tensor([1.0]), [2.0, 3.0]))
    branches = [each for each in f.graph(tg.tensor([1.0]), [2.0, 3.0]).nodes if each.type]
    assert sum(each.primitive.name == "branch" for each in branches) == 1
    assert not any(each.primitive.name == "loop" for each in branches)
