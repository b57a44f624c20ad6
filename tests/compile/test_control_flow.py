"""`cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`: eager, compiled, differentiated."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from control_cases import CASES, CELL, Function, derivatives, loss, newton, of, products

import tgraph as tg
from tgraph.core import pytree


def check_same(found: Any, expected: Any) -> None:
    (ours, spec), (theirs, other) = pytree.flatten(found), pytree.flatten(expected)
    assert spec == other
    for one, each in zip(ours, theirs, strict=True):
        if each is not None:
            assert one.dtype is each.dtype
            np.testing.assert_allclose(
                one.detach().numpy(), each.detach().numpy(), rtol=1e-9, atol=1e-11
            )


@pytest.mark.parametrize("name", CASES)
def test_compiled_is_eager_and_so_are_gradients(name: str) -> None:
    function, args = CASES[name]
    check_same(tg.compile(derivatives(function))(*args), derivatives(function)(*args))


@pytest.mark.parametrize("name", ["recurrent", "captured by one"])
def test_gradients_through_a_compiled_call(name: str) -> None:
    function, args = CASES[name]
    total = loss(function)
    compiled = tg.compile(total)

    def gradients(function: Function) -> Any:
        leaves = [each.clone().requires_grad_() for each in args] + list(CELL.parameters())
        first = tg.autograd.grad(
            function(*leaves[: len(args)]), leaves, create_graph=True, allow_unused=True
        )
        used = [each for each in first if each is not None]
        second = tg.autograd.grad(sum((x**2).sum() for x in used), leaves, allow_unused=True)
        return list(first), list(second)

    check_same(gradients(compiled), gradients(total))


def test_results_are_those_of_numpy() -> None:
    xs, a = of(5, 2), of(3)
    expected = np.cumprod(xs.numpy(), 0)
    last, rows = tg.compile(products)(xs)
    np.testing.assert_allclose(rows["all"].numpy(), expected)
    np.testing.assert_allclose(last.numpy(), expected[-1])
    np.testing.assert_allclose(tg.compile(newton)(a).numpy(), np.sqrt(a.numpy()))


def test_results_own_their_memory() -> None:
    def f(x: tg.Tensor) -> Any:
        return tg.cond(x.sum() > 0, lambda x: x, lambda x: x, (x,)), tg.fori_loop(0, 0, max, x)

    x = tg.ones(2)
    for function in (f, tg.compile(f)):
        for each in function(x):
            each.add_(1)
        assert tg.equal(x, tg.ones(2))


# --- random numbers ------------------------------------------------------------------------------


def draws_of_a_branch(x: tg.Tensor) -> Any:
    made = tg.cond(x.sum() > 0, lambda: tg.rand(2), lambda: tg.randn(2) * tg.rand(2))
    return made, tg.rand(2)


def draws_of_loops(x: tg.Tensor) -> Any:
    def body(x: tg.Tensor, n: tg.Tensor) -> Any:
        return tg.cond(n < 2, lambda: x * tg.rand(2), lambda: x + 1), n + 1

    noise = tg.map(lambda row: tg.nn.functional.dropout(row, 0.5, True), x + tg.ones(4, 2))
    free = tg.while_loop(lambda x, n: n < 5, body, (x, 0))
    bound = tg.while_loop(lambda x, n: n < 5, body, (x, 0), max_iterations=9)
    return free, bound, noise, tg.rand(2)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("function", [draws_of_a_branch, draws_of_loops])
def test_streams_are_those_of_eager_code(function: Function, sign: int) -> None:
    compiled, x = tg.compile(function), tg.full((2,), 1.0 * sign)
    for seed in (1, 2):
        found = []
        for each in (function, compiled):
            tg.manual_seed(seed)
            found.append((each(x), tg.rand(3)))  # the generator goes on from where they end
        check_same(found[1], found[0])


def test_gradients_see_the_numbers_that_were_drawn() -> None:
    def f(w: tg.Tensor) -> tg.Tensor:
        def step(c: tg.Tensor, _: None) -> Any:
            return c * w + tg.rand(2), tg.nn.functional.dropout(c * w, 0.5, True)

        return tg.scan(step, w, length=4)[1].sum()

    found = []
    for each in (tg.grad(f), tg.compile(tg.grad(f))):
        tg.manual_seed(3)
        found.append((each(tg.ones(2)), tg.rand(2)))
    assert tg.allclose(found[0][0], found[1][0]) and tg.equal(found[0][1], found[1][1])


SEEN_BY_NONE = tg.zeros(2)


def without_turns(xs: tg.Tensor) -> Any:
    """Results of no turns, of a body that draws, and writes, and so on."""

    def step(c: tg.Tensor, x: tg.Tensor) -> Any:
        SEEN_BY_NONE.add_(1)
        return c + x.sum() * tg.rand(2), {"a": x > 1, "b": (x.sum().to(tg.int32), None, CELL(x))}

    found = tg.scan(step, xs.new_ones(2), xs), tg.map(lambda x: (x, x.sum()), xs)
    nested = tg.map(lambda x: tg.scan(lambda c, y: (c, y * x), x, xs.double())[1], xs)
    last = tg.fori_loop(3, 3, lambda i, c: c + 1, xs.sum(0)), tg.scan(step, xs.new_ones(2), xs)[0]
    return found, nested, last, tg.scan(lambda c, _: (c, c), 0.5, length=0), tg.rand(2)


def test_loops_of_no_turns() -> None:
    for xs in (of(0, 3), of(0, 3).requires_grad_()):
        results = []
        for function in (without_turns, tg.compile(without_turns)):
            tg.manual_seed(1)
            results.append(function(xs))
        check_same(results[1], results[0])
        assert [tuple(x.shape) for x in pytree.leaves(results[0]) if x is not None] == [
            tuple(x.shape) for x in pytree.leaves(results[1]) if x is not None
        ]
        (_, rows), mapped = results[0][0]
        assert rows["a"].shape == (0, 3) and rows["a"].dtype is tg.bool
        assert rows["b"][2].shape == (0, 3) and mapped[1].shape == (0,)
        assert results[0][1].shape == (0, 0, 3)
    assert tg.equal(SEEN_BY_NONE, tg.zeros(2))


# --- plans ---------------------------------------------------------------------------------------


def train(xs: tg.Tensor) -> tg.Tensor:
    weight = of(2, 8).float().requires_grad_()

    def step(state: Any, x: tg.Tensor) -> Any:
        h, c = state
        i, f, o, g = (x + h @ weight).split(2, -1)
        c = tg.sigmoid(f) * c + tg.sigmoid(i) * tg.tanh(g)
        h = tg.sigmoid(o) * tg.tanh(c)
        return (h, c), h

    zero = tg.zeros(3, 2)
    total = tg.scan(step, (zero, zero), xs)[1].square().sum()
    return tg.autograd.grad(total, weight)[0]


def test_a_turn_does_the_same_whatever_the_length() -> None:
    """Steps, and the bytes that each of them moves: rows are written where they lie."""
    texts = []
    for length in (20, 200):
        compiled, xs = tg.compile(train), tg.ones(length, 3, 8) / length
        assert tg.allclose(compiled(xs), train(xs), rtol=1e-4)
        text = re.sub(r"/.*:\d+", "", str(compiled.explain(xs)))
        assert text.count("[loop]") == 2
        texts.append(re.findall(r"loop\d+_body.*\n.*moved", text))
    assert texts[0] == texts[1] and len(texts[0]) > 10
    assert not [each for each in texts[0] if "kB" in each or "MB" in each]
    assert not re.findall(r"_full.*\n.*[kM]B moved", text)  # zeros that rows would begin with


@pytest.mark.parametrize(
    ("first", "second", "also_read", "adds"),
    [
        ((16,), (16,), False, 0),
        ((16,), (3, 16), False, 1),  # no row of its own for each turn
        ((16,), (1,), False, 1),
        ((16,), (16,), True, 1),
    ],
    ids=["biases", "of a batch", "a number", "read by others"],
)
def test_turns_add_the_biases_of_rows(
    first: tuple[int, ...], second: tuple[int, ...], also_read: bool, adds: int
) -> None:
    """In the order in which they were added; not where others read the sums, or they differ."""
    xs, weight = of(5, 3, 8).float(), of(8, 16, seed=1).float()
    biases = of(*first, seed=2).float(), of(*second, seed=3).float()

    def f(xs: tg.Tensor, weight: tg.Tensor, one: tg.Tensor, other: tg.Tensor) -> Any:
        rows = (xs.reshape(15, 8) @ weight + one).reshape(5, 3, 16) + other
        found = tg.scan(lambda c, row: (c * 0.5 + row, row - c), tg.zeros(3, 16), rows)
        return (*found, rows) if also_read else found

    compiled, given = tg.compile(f), (xs, weight, *biases)
    for found, expected in zip(compiled(*given), f(*given), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    text = str(compiled.explain(*given))
    assert len(re.findall(r" k\d+_(?:add|matmul_add|add_matmul)\w* \[", text)) == adds


def test_a_position_that_is_computed_is_written_in_place() -> None:
    def f(cache: tg.Tensor) -> tg.Tensor:
        def body(n: tg.Tensor, cache: tg.Tensor) -> Any:
            cache = cache.index_copy(0, (n * 7 % 1000).reshape(1), cache.new_ones(1, 4))
            return n + 1, cache

        return tg.while_loop(lambda n, _: n < 3, body, (0, cache))[1]

    compiled, cache = tg.compile(f), tg.zeros(1000, 4)
    assert tg.equal(compiled(cache), f(cache))
    moved = re.findall(r"body.*index_put.*\n\s*(.*) moved", str(compiled.explain(cache)))
    assert moved and not [each for each in moved if "k" in each]


def test_weights_are_packed_before_the_loop() -> None:
    """Not in each turn; one that a turn makes, or that is a part of the state, is not."""
    weight, other = of(64, 96).float(), of(96, 64, seed=1).float()

    def f(x: tg.Tensor) -> Any:
        def turn(c: tg.Tensor, w: tg.Tensor) -> Any:
            inner = tg.fori_loop(0, 2, lambda i, c: tg.tanh(c @ weight.t() / 64 @ w.t()), c)
            made = tg.tanh(inner @ weight.t() @ other.t() / 6e3)
            return made, tg.cos(w) * made.mean()

        return tg.while_loop(lambda c, w: c[0, 0] < 9, turn, (x, other), max_iterations=3)

    def few(x: tg.Tensor) -> tg.Tensor:
        return tg.fori_loop(0, 3, lambda i, c: tg.tanh(c @ weight.t() @ other.t() / 6e3), x)

    for function in (f, few):
        x = of(4, 96, seed=3).float()
        for found, expected in zip(
            pytree.leaves(tg.compile(function)(x)), pytree.leaves(function(x)), strict=True
        ):
            assert tg.allclose(found, expected, rtol=1e-4, atol=1e-5)
    text = str(tg.compile(few).explain(of(4, 96).float()))
    assert text.count("pack [pack]") == 2
    assert text.index("pack [pack]") < text.index("loop1_condition")


def test_sizes_that_vary() -> None:
    def f(x: tg.Tensor) -> Any:
        def total(x: tg.Tensor) -> tg.Tensor:
            return tg.scan(lambda c, r: (c + r, c * r), x.sum(0) * 0, x)[1].sum()

        return total(x), tg.grad(total)(x), tg.fori_loop(0, x.shape[0], lambda i, c: c + i, 0)

    compiled = tg.compile(f, dynamic={"x": 0})
    for size in (3, 5, 1, 0, 4):
        check_same(compiled(of(size, 2)), f(of(size, 2)))
    assert "any size" in str(compiled.explain(of(4, 2)))


def test_graphs_that_are_built_run_loops_and_branches() -> None:
    weight = of(3).requires_grad_()

    def results(xs: tg.Tensor) -> list[tg.Tensor]:
        last, rows = tg.scan(lambda h, x: (tg.tanh(h * weight + x),) * 2, weight * 0, xs)
        chosen = tg.cond(last.sum() > 0, lambda: last * weight, lambda: -last)
        turns = tg.while_loop(lambda n: n < 10, lambda n: n * 2 + 1, 0)
        total = rows.square().sum() + chosen.sum()
        return [chosen, rows, turns, *tg.autograd.grad(total, [weight])]

    with tg.Graph() as graph:
        xs = tg.placeholder(tg.float64, [None, 3], "xs")
        fetched = results(xs)
    with tg.Session(graph) as session:
        for size in (2, 5):
            check_same(session.run(fetched, {xs: -of(size, 3)}), results(-of(size, 3)))


# --- errors --------------------------------------------------------------------------------------

SEEN = [0]


def _counts(x: tg.Tensor) -> Any:
    count = 0

    def row(x: tg.Tensor) -> tg.Tensor:
        nonlocal count
        count += 1
        return x

    return tg.map(row, x) * count


def _appends(x: tg.Tensor) -> Any:
    rows: list[tg.Tensor] = []
    tg.map(lambda row: (rows.append(1), row)[1], x)  # type: ignore[func-returns-value]
    return len(rows) * x


def _takes(x: tg.Tensor) -> Any:
    numbers = iter([1, 2, 3])
    return tg.map(lambda row: row * next(numbers), x)


def _stores(x: tg.Tensor) -> Any:
    return tg.map(lambda row: (SEEN.__setitem__(0, 1), row)[1], x)  # type: ignore[func-returns-value]


class _Slots:
    __slots__ = ("count",)


def _changes_what_it_made(x: tg.Tensor) -> Any:
    made = _Slots()
    made.count = 0

    def row(x: tg.Tensor) -> tg.Tensor:
        made.count += 1
        return x

    return tg.map(row, x) * made.count


def _fills(x: tg.Tensor) -> Any:
    array = np.zeros(1)

    def row(x: tg.Tensor) -> tg.Tensor:
        array[0] += 1
        return x

    return tg.map(row, x) * array[0]


def _keeps(x: tg.Tensor) -> Any:
    tg.map(lambda row: setattr(CELL, "seen", row) or row, x)
    return x


ERRORS: list[tuple[Function, type[Exception], str]] = [
    (
        lambda x: tg.cond(x.sum() > 0, lambda: {"a": x, "b": x[0]}, lambda: {"a": x, "b": x}),
        TypeError, r"\['b'\] is of type float32\[3\], but float32\[\] in .*test_control_flow.py:",
    ),
    (
        lambda x: tg.cond(x.sum() > 0, lambda: (x, x), lambda: x),
        TypeError, r"float32\[3\], but .* is \(float32\[3\], float32\[3\]\)",
    ),
    (
        lambda x: tg.while_loop(lambda a, n: n < 3, lambda a, n: (a, n + 0.5), (x, 0)),
        TypeError, r"\[1\] is of type float32\[\], but int64\[\] in the state before it",
    ),
    (lambda x: tg.scan(lambda c, x: c + x, x[0], x), TypeError, "must give a pair"),
    (lambda x: tg.scan(lambda c, x: (c, x), 0.0, x, 4), ValueError, "has 3 rows, expected 4"),
    (lambda x: tg.scan(lambda c, x: (c, x), x, None, -1), ValueError, "no negative length"),
    (lambda x: tg.fori_loop(0, 2, lambda i, c: c, "text"), TypeError, "got str at"),
    (_counts, tg.TraceError, "changes the variable count"),
    (_appends, tg.TraceError, "changes the variable rows"),
    (_takes, tg.TraceError, "may take from the iterator"),
    (_stores, tg.TraceError, "changes a global variable"),
    (_changes_what_it_made, tg.TraceError, "changes the variable made"),
    (_fills, tg.TraceError, "changes the variable array"),
    (_keeps, tg.TraceError, "changes a global variable"),
    (lambda x: tg.map(lambda r: r if r > 0 else -r, x), tg.TraceError, r"bool\(\)"),
    (
        lambda x: tg.while_loop(lambda c: c < tg.rand(()), lambda c: c + 1, x[0]),
        tg.TraceError, "drawn in the condition",
    ),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(ERRORS)))
def test_what_is_refused(at: int) -> None:
    function, error, message = ERRORS[at]
    seen = list(SEEN)
    with pytest.raises(error, match=message):
        tg.compile(function)(tg.ones(3))
    assert seen == SEEN and not hasattr(CELL, "seen")
