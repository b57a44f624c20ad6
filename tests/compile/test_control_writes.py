"""Bodies of branches and loops that write tensors which they have not made: eager = compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.core import pytree

Function = Callable[..., Any]
Made = tuple[Function, list[tg.Tensor]]


def of(*shape: int, seed: int = 0) -> tg.Tensor:
    return tg.tensor(np.random.default_rng(seed).uniform(0.4, 1.6, shape))


def counter() -> Made:
    """`n += 1` on a tensor of the outside, on a view of it, and on a number of the trace."""
    n = tg.zeros(2, dtype=tg.int64)
    first = n[0]

    def f(x: tg.Tensor) -> Any:
        local = tg.tensor(0)

        def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
            nonlocal n
            n += 1
            first.add_(local)
            local.add_(i)
            return c * x[0] + first

        return tg.fori_loop(0, 3, body, x[0]), local, first * 1

    return f, [n, first]


def batch_norm() -> Made:
    module = tg.nn.BatchNorm1d(3).double()

    def f(x: tg.Tensor) -> Any:
        def step(c: tg.Tensor, r: tg.Tensor) -> Any:
            rows = r * of(4, 3)
            return tg.cond(c.sum() > 3, lambda: c, lambda: c + module(rows).sum(0)), module(rows)

        return tg.scan(step, x[0], x)

    return f, list(module.buffers())


def cache() -> Made:
    """Elements at positions that are data, and views made before, of which one is transposed."""
    rows = tg.zeros(6, 3).double()
    middle, turned = rows[2:4], rows.t()

    def f(x: tg.Tensor) -> Any:
        def body(i: tg.Tensor, s: tg.Tensor) -> tg.Tensor:
            before = middle.sum()
            rows[i] = x[i] + s
            turned[0, 1] += 2
            return s + before + middle.sum() + turned.sum()

        return tg.fori_loop(0, 4, body, 0.0 * x.sum()), middle * 1, turned.sum()

    return f, [rows, middle, turned]


def branches() -> Made:
    one, other = tg.zeros(3).double(), tg.ones(2).double()
    tail = one[1:]

    def f(x: tg.Tensor) -> Any:
        def yes() -> tg.Tensor:
            one.add_(x[0])
            return tail * 2

        def no() -> tg.Tensor:
            other.mul_(3)
            return tail + other

        found = [tg.cond(x.sum() > bound, yes, no) for bound in (0, 9, 2)]
        return found, tg.switch(tg.tensor(1), [yes, no, yes]), tail + other

    return f, [one, other, tail]


def nested() -> Made:
    total, n = tg.zeros(3).double(), tg.zeros((), dtype=tg.int64)

    def f(x: tg.Tensor) -> Any:
        made, count = x[0] * 2, tg.tensor(0)
        first = made[0]

        def doubled(t: tg.Tensor) -> tg.Tensor:
            total[0].mul_(2)
            return t + first

        def outer(s: tg.Tensor) -> tg.Tensor:
            def inner(j: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
                total.add_(t)
                n.add_(1)
                made.mul_(1.5)
                return tg.cond(n % 2 == 0, lambda: doubled(t), lambda: t - total.sum())

            count.add_(1)
            return tg.fori_loop(0, 2, inner, s + count)

        def turn(i: tg.Tensor, s: tg.Tensor) -> Any:
            return i + 1, outer(s)

        return (
            tg.while_loop(lambda i, s: (i < 3) & (first < 12), turn, (0, x[0])),
            made,
            first,
            count,
        )

    return f, [total, n]


def aliases() -> Made:
    """What is written is also the state, and each result."""
    t = tg.ones(3).double()

    def f(x: tg.Tensor) -> Any:
        def step(c: tg.Tensor, r: tg.Tensor) -> Any:
            t.add_(r)
            return t, t

        def more(c: tg.Tensor) -> tg.Tensor:
            t.add_(c)
            return t

        def bounded(c: tg.Tensor) -> tg.Tensor:
            c.mul_(2)
            return t.add_(c)

        found = tg.scan(step, t, x), tg.while_loop(lambda c: c.sum() < 99, more, x[0].abs() + 1)
        return found, tg.while_loop(lambda c: t.sum() < 999, bounded, x[1], max_iterations=3)

    return f, [t]


def given() -> Made:
    """What a body is given is the loop's own."""

    def f(x: tg.Tensor) -> Any:
        def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
            v = c[0]
            c.add_(1)
            c[0] = 7.0
            return c * v

        return tg.fori_loop(0, 3, body, x), tg.map(lambda r: r.mul_(2), x), x

    return f, []


def descent() -> Made:
    weight = tg.ones(3).double().requires_grad_()

    def f(x: tg.Tensor) -> Any:
        def body(i: tg.Tensor, last: tg.Tensor) -> tg.Tensor:
            loss = ((weight * x[0] - 3) ** 2).sum()
            (grad,) = tg.autograd.grad(loss, weight)
            with tg.no_grad():
                weight.sub_(0.1 * grad)
            return loss.detach()

        return tg.fori_loop(0, 5, body, 0.0 * x.sum()), (weight * x[0]).sum()

    return f, [weight]


def data() -> Made:
    t = tg.ones(3).double().requires_grad_()
    shared = t.data

    def f(x: tg.Tensor) -> Any:
        def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
            shared.add_(x[i])
            t.data.mul_(2)
            return c + t.detach()

        return tg.fori_loop(0, 3, body, 0 * x[0])

    return f, [t, shared]


CASES: list[Callable[[], Made]] = [
    counter, batch_norm, cache, branches, nested, aliases, given, descent, data,
]  # fmt: skip


def values(of_all: Any) -> list[np.ndarray[Any, Any]]:
    return [x.detach().numpy().copy() for x in pytree.leaves(of_all) if isinstance(x, tg.Tensor)]


def check_close(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_compiled_code_leaves_what_eager_code_leaves(make: Callable[[], Made]) -> None:
    (eager, expected), (function, found) = make(), make()
    compiled = tg.compile(function)
    for x in (of(4, 3), -of(4, 3, seed=1), of(4, 3, seed=2)):
        check_close(values(compiled(x)), values(eager(x)))
        check_close(values(found), values(expected))
        for one, other in zip(found, expected, strict=True):
            assert one.requires_grad is other.requires_grad and one.is_leaf is other.is_leaf


@pytest.mark.parametrize("make", [counter, cache, branches, nested])
def test_graphs_write_their_variables(make: Callable[[], Made]) -> None:
    (eager, expected), (function, found) = make(), make()
    with tg.Graph() as graph:
        x = tg.placeholder(tg.float64, [None, 3], "x")
        results = [each for each in pytree.leaves(function(x)) if isinstance(each, tg.Tensor)]
        fetched = results, [each * 1 for each in found]
    with tg.Session(graph) as session:
        for given in (of(4, 3), -of(4, 3, seed=1)):
            check_close(values(session.run(fetched, {x: given})), values((eager(given), expected)))


def gradients(x: tg.Tensor, w: tg.Tensor) -> Any:
    """Sums and rows that are written in place have the history of all turns."""
    total, rows = tg.zeros(3).double(), tg.zeros(4, 3).double()
    constant = tg.zeros(3).double()

    def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
        total.add_(w * x[i])
        rows[i] = total + w
        with tg.no_grad():
            constant.add_(w)
        rows[0].mul_(w)
        return tg.cond(i > 1, lambda: c.mul_(w), lambda: (total.mul_(w), c)[1])

    last = tg.fori_loop(0, 4, body, x[0])
    assert total.requires_grad and rows.requires_grad and not constant.requires_grad
    loss = (total * last * constant).sum() + (rows * rows).sum()
    return loss, tg.autograd.grad(loss, [w, x])


def test_gradients_of_what_was_written() -> None:
    def f(x: tg.Tensor, w: tg.Tensor) -> Any:
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        return gradients(x, w)

    args = of(4, 3), of(3, seed=1)
    check_close(values(tg.compile(f)(*args)), values(f(*args)))


def _written_behind(x: tg.Tensor, w: tg.Tensor) -> Any:
    """What bodies read and are given, and what shows it, is written afterwards."""
    made, other, rows = x * 2, x * 3, x + w
    part = made[:1]
    one = tg.cond(x.sum() > 0, lambda given: given + made + other[:1] + w, lambda g: g, (x * 5,))
    two = tg.scan(lambda c, r: (c * 0.5 + r, part + r), other[0], rows)
    two[0].mul_(2)
    made.mul_(3)
    part[0] = 5.0
    other[1:] = w
    rows.zero_()
    with tg.no_grad():
        w.add_(1)
    return one, two, part


def _after_a_turn(x: tg.Tensor, w: tg.Tensor) -> Any:
    """What is read first has a history at the next turn, as views of it have."""
    a, b, before = tg.ones(3).double(), tg.ones(3).double(), x * 2
    last, part = b[2:], before[0]
    part.add_(1)  # so that what it shows is derived again

    def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
        a.mul_(b.sum())
        a[1:].add_(last)
        b[1:] = before.sum() * part[:2] * w[1:]
        return c + last

    return tg.fori_loop(0, 3, body, w), a, b, last, part


@pytest.mark.parametrize("function", [_written_behind, _after_a_turn])
def test_gradients_know_what_was_read(function: Function) -> None:
    def total(x: tg.Tensor, w: tg.Tensor) -> tg.Tensor:
        return sum((each * each).sum() for each in pytree.leaves(function(x, w)))  # type: ignore[return-value]

    def leaves() -> list[tg.Tensor]:
        return [each.requires_grad_() for each in (of(4, 3), of(3, seed=1))]

    def run(total: Function) -> Any:
        args = leaves()
        found = tg.autograd.grad(total(*args), args, create_graph=True)
        return found, tg.autograd.grad(sum((x**2).sum() for x in found), args)

    def inside(x: tg.Tensor, w: tg.Tensor) -> Any:
        return tg.autograd.grad(total(x, w), [x, w])

    expected = run(total)
    check_close(values(run(tg.compile(total))), values(expected))
    check_close(values(tg.compile(inside)(*leaves())), values(expected[0]))


def test_what_is_read_of_tensors_was_there_before() -> None:
    """A body gives what it captures a history of its own, which is no fact of the outside."""
    w = of(3).requires_grad_()

    def body(i: tg.Tensor, s: tg.Tensor) -> tg.Tensor:
        made = s + w
        return made * 2 if w.requires_grad and w.is_leaf else made

    compiled = tg.compile(lambda x: tg.fori_loop(0, 2, body, x))
    for x in (of(3), of(3, seed=1)):
        compiled(x)
    assert len(compiled.compiles) == 1


# --- programs at random --------------------------------------------------------------------------


class Program:
    """Statements over named tensors: writes, loops and branches that hold statements."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.block = self.make(3, 2)

    def pick(self, choices: str) -> str:
        return str(self.random.choice(choices.split()))

    def make(self, count: int, depth: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for _ in range(count):
            kind = self.pick("write write write loop scan while cond" if depth else "write")
            if kind == "write":
                names = "a row tail turned b made part c"
                how = self.pick("add mul copy put")
                found.append((kind, how, self.pick(names), self.pick(names)))
            else:
                found.append((kind, self.make(2, depth - 1), self.make(1, depth - 1)))
        return found


def bounded_of(block: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same without loops that have no gradient."""
    return [
        each
        if each[0] == "write"
        else (each[0].replace("while", "loop"), *map(bounded_of, each[1:]))
        for each in block
    ]


def run(block: list[tuple[Any, ...]], names: dict[str, tg.Tensor]) -> tg.Tensor:
    """Run statements; gives a number that depends on what was seen on the way."""
    seen = names["a"].sum() * 0
    for kind, one, other, *source in block:
        if kind == "write":
            (name,) = source
            write(one, names[other], names[name])
            seen = seen * 0.5 + names[name].sum() - names[other].sum()
        else:
            seen = run_nested(kind, one, other, names, seen)
    return seen


def run_nested(
    kind: str, one: Any, other: Any, names: dict[str, tg.Tensor], seen: tg.Tensor
) -> tg.Tensor:
    if kind == "loop":
        return tg.fori_loop(0, 2, lambda i, s: s * 0.5 + i + run(one, names), seen)
    if kind == "scan":
        total, each = tg.scan(
            lambda s, r: (s * 0.5 + run(one, names), r * names["part"]), seen, names["b"]
        )
        return total + each.sum()
    if kind == "while":
        return tg.while_loop(
            lambda n, s: (n < 2) & (names["row"].sum() < 9),
            lambda n, s: (n + 1, s * 0.5 + run(one, names)), (0, seen),
        )[1]  # fmt: skip
    return seen + tg.cond(
        names["tail"].sum() > 4, lambda: run(one, names), lambda: run(other, names)
    )


def write(how: str, target: tg.Tensor, source: tg.Tensor) -> None:
    value = (source.sum() * 0.3).tanh()
    if how == "add":
        target.add_(value)
    elif how == "mul":
        target.mul_(value + 0.9)
    elif how == "copy":
        target.copy_(value.expand(target.shape))
    else:
        target.reshape(-1)[(value > 0).to(tg.int64) * (target.numel() - 1)] = value


def program(seed: int, bounded: bool = False) -> Made:
    a, b, block = of(3, 2), of(4, seed=1), Program(seed).block
    block = bounded_of(block) if bounded else block
    names = {"a": a, "row": a[0], "tail": a[1:], "turned": a.t(), "b": b}

    def f(x: tg.Tensor) -> Any:
        made = x * 2
        inside = names | {"made": made, "part": made[0], "c": tg.tensor(0.5, dtype=tg.float64)}
        return run(block, inside), list(inside.values())

    return f, [a, b]


@pytest.mark.parametrize("seed", range(12))
def test_programs_at_random(seed: int) -> None:
    (eager, expected), (function, found) = program(seed), program(seed)
    compiled = tg.compile(function)
    for x in (of(2, 2), -of(2, 2, seed=3)):
        check_close(values(compiled(x)), values(eager(x)))
        check_close(values(found), values(expected))


@pytest.mark.parametrize("seed", [0, 28, 40, 78])  # each was wrong once
def test_gradients_at_random(seed: int) -> None:
    def gradient(compile: Callable[[Function], Function], inside: bool) -> Any:
        function, _ = program(seed, bounded=True)

        def total(x: tg.Tensor) -> tg.Tensor:
            found, left = function(x)
            return found + sum(each.sum() for each in left)

        def derived(x: tg.Tensor) -> Any:
            return tg.autograd.grad(total(x), x)

        x = of(2, 2).requires_grad_()
        return compile(derived)(x) if inside else tg.autograd.grad(compile(total)(x), x)

    expected = values(gradient(lambda f: f, True))
    check_close(values(gradient(tg.compile, True)), expected)
    check_close(values(gradient(tg.compile, False)), expected)


# --- errors --------------------------------------------------------------------------------------

OUTSIDE, LEAF = tg.zeros(3), tg.zeros(3, requires_grad=True)


def _condition_writes(x: tg.Tensor) -> Any:
    return tg.while_loop(lambda c: OUTSIDE.add_(c).sum() < 3, lambda c: c + 1, x)


def _wants_gradients(x: tg.Tensor) -> Any:
    return tg.fori_loop(0, 2, lambda i, c: (OUTSIDE.requires_grad_(), c)[1], x)


def _hooks(x: tg.Tensor) -> Any:
    return tg.map(lambda r: (LEAF.register_hook(print), r + LEAF)[1], x.expand(2, 3))


def _reads_what_is_overwritten(x: tg.Tensor) -> Any:
    total, w = x * 2, x.clone().requires_grad_()

    def body(i: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
        product = total * w
        total.add_(1)
        return c + product

    return tg.autograd.grad(tg.fori_loop(0, 2, body, x).sum(), w)


def _of_examples(x: tg.Tensor) -> Any:
    def each(x: tg.Tensor) -> tg.Tensor:
        made = x * 2
        return tg.cond(x > 0, lambda: made.add_(1), lambda: made * 3)

    return tg.vmap(each)(x)


def _loops_of_examples(x: tg.Tensor) -> Any:
    def each(x: tg.Tensor) -> tg.Tensor:
        made = x * 2
        return tg.while_loop(lambda c: c < 3, lambda c: c + made.add_(1), x)

    return tg.vmap(each)(x)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_of_examples, NotImplementedError, "examples go different ways"),
        (_loops_of_examples, NotImplementedError, "examples go different ways"),
        (_condition_writes, tg.TraceError, "in the condition of while_loop, at .*_writes.py:"),
        (_wants_gradients, tg.TraceError, "changes requires_grad or hooks"),
        (_hooks, tg.TraceError, "changes requires_grad or hooks"),
        (_reads_what_is_overwritten, RuntimeError, "modified by an inplace .*_writes.py:"),
        (
            lambda x: tg.map(lambda r: LEAF.add_(r), x.expand(2, 3)),
            RuntimeError, "a leaf Variable that requires grad",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(function: Function, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tg.compile(function)(tg.ones(3))
    assert tg.equal(OUTSIDE, tg.zeros(3)) and not OUTSIDE.requires_grad and not LEAF._hooks
