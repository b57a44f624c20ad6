"""What data select in a graph: `x[mask]`, `nonzero`, `unique`, and what comes of them in runs."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from selection_cases import FUNCTIONS, data, random_program, tensors

import tgraph as tg
from tgraph import nn

F = nn.functional


def same(found, want, tolerance=1e-3):
    found, want = (tg.pytree.leaves(each) for each in (found, want))
    for one, other in zip(found, want, strict=True):
        if isinstance(other, tg.Tensor):
            one, other = one.numpy(), other.detach().numpy()
            assert one.shape == other.shape and one.dtype == other.dtype
            most = max(1.0, abs(other).max(initial=0))
            np.testing.assert_allclose(one, other, tolerance, tolerance * most)


@pytest.mark.parametrize(
    "name", ["computed", "put back", "one of another", "by its number", "random", "by one truth"]
)
def test_any_number_may_be_selected(name):
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (6, 4), "x")
        out = [e for e in tg.pytree.leaves(FUNCTIONS[name](x)) if isinstance(e, tg.Tensor)]
    session = tg.Session(g)
    for given in tensors(6, 4):
        tg.manual_seed(0)
        found = session.run(out, {x: given})
        tg.manual_seed(0)
        want = tg.pytree.leaves(FUNCTIONS[name](given))
        same(found, [each for each in want if isinstance(each, tg.Tensor)])


def check_program(seed, sizes=(5, 1, 0, 17, 6)):
    """With gradients of two orders, in one run or one fetch after another."""

    def program(x, derive):
        total, last = random_program(seed)(x)
        (slope,) = derive(total + last.square().sum(), x)
        squares = slope.square().sum()
        return [total, last, slope, *(derive(squares, x) if squares.requires_grad else ())]

    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 4), "x")
        fetches = program(x, tg.gradients)
    session = tg.Session(g)
    for n in sizes:
        given = data(n + seed, n, 4)
        partial, order = session.partial(fetches, [x]), sorted(range(len(fetches)), key=str)
        feeds = [{x: given}, *({} for _ in fetches)]
        steps = {at: partial.run(fetches[at], feeds[k]) for k, at in enumerate(order[::-1])}
        derive = lambda y, x: tg.autograd.grad(y, [x], create_graph=True)  # noqa: E731
        want = program(given.clone().requires_grad_(), derive)
        same(session.run(fetches, {x: given}), want)
        same([steps[at] for at in range(len(fetches))], want)


def test_a_random_program():
    check_program(4, (5, 0))


@pytest.mark.slow
def test_many_random_programs():
    for seed in range(4):
        check_program(seed)


class Counts(nn.Module):
    """Writes a buffer that decides what is selected later in the same step, and in the next."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("limit", tg.tensor(-0.5))
        self.register_buffer("seen", tg.tensor(0))

    def forward(self, x, y):
        known = y >= 0
        noise = tg.rand(x.shape[0], 1) * 0.1
        scores = self.layer(F.dropout(x[x.amax(1) > self.limit], 0.2))
        self.seen.add_(scores.shape[0])
        self.limit.add_(0.1 * scores.detach()[scores.detach()[:, 0] > 0].sum().tanh())
        loss = F.cross_entropy(self.layer(x + noise)[known], y[known])
        return loss + scores[scores > self.limit].square().sum() * 0.01


def test_a_training_step_is_that_of_eager_code():
    rows = [(data(at, n, 4), tg.arange(n) % 4 - 1) for at, n in enumerate([9, 8])]

    def made():
        tg.manual_seed(1)
        model = Counts()
        return model, tg.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    model, optimizer = made()
    want = []
    for x, y in rows:
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        want.append([loss, model.seen.clone(), model.limit.clone()])
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, ("n", 4), "x")
        y = tg.placeholder(tg.int64, ("n",), "y")
        model, optimizer = made()
        loss = model(x, y)
        train = optimizer.minimize(loss, "train")
    session = tg.Session(g)
    for (a, b), each in zip(rows, want, strict=True):
        found = session.run([loss, model.seen, model.limit, train], {x: a, y: b})
        same(found[:3], each)
    (plan,) = g.plans.values()
    assert len(plan.stages) == 4


def test_what_depends_on_a_number_alone_is_computed_behind_it():
    factors = iter([2.0, 3.0, 5.0, 7.0])  # the first is that of the building
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None,), "x")
        factor = tg.host(lambda: next(factors))
        chosen = x[x > 0]
        ones = tg.zeros(chosen.shape[0]) + 1
        both = x * (factor * chosen.shape[0]) - x * (factor * x.shape[0])
        which, many = tg.unique(chosen, return_counts=True)
        with tg.control_dependencies([tg.assign(tg.variable(0, "runs"), x.shape[0])]):
            (late,) = (x.abs() > 1).nonzero(as_tuple=True)
        double = x * factor
    session = tg.Session(g)
    for values in ([1.0, -2.0, 1.0], [-1.0], []):
        given = tg.tensor(values)
        assert session.run(ones, {x: given}).tolist() == [1.0] * values.count(1.0)
        same(session.run([which, many], {x: given}),
             tg.unique(given[given > 0], return_counts=True))  # fmt: skip
    assert session.run([late, "runs"], {x: [1.0, -2.0, 3.0]})[0].tolist() == [1, 2]
    assert session.get("runs").item() == 3
    found, one = session.run([both, double], {x: [1.0, 2.0, -1.0]})
    first = one[0].item()  # one number for all of a run
    assert first in (2.0, 3.0, 5.0) and found.tolist() == [-first, -2 * first, first]


def test_numbers_that_do_not_fit_are_errors_before_anything_is_written():
    with tg.Graph() as g:
        x, y = (tg.placeholder(tg.float32, (None,), name) for name in "xy")
        alone = x[x > 0].sum() * y[y > 0].sum()
        total = tg.variable(0.0, "total")
        pairs = (x[x > 0] * y[y > 0]).sum()
        halves = y[y < 0].reshape(-1, 2).sum(1)
        write = tg.assign(total, pairs + halves.sum() * 0)
        size = tg.ones(y.shape[0])
    session = tg.Session(g)
    session.run(write, {x: [2.0, -1.0], y: [3.0, -1.0, -1.0]})
    same(session.run([halves, total], {y: [1.0, -1.0, -2.0]}), [tg.tensor([-3.0]), tg.tensor(6.0)])
    here = re.escape(__file__)
    for feeds, message in (
        ({x: [2.0, 1.0], y: [3.0]}, f"1 elements are selected at {here}:.* where 2 have to be"),
        ({x: [2.0], y: [3.0, -1.0]}, "others come of what is fed: .*count.* is 1"),
    ):
        with pytest.raises(ValueError, match=message):
            session.run(write, feeds)
        assert session.get(total).item() == 6.0
    with pytest.raises(ValueError, match=r"size y\[0\], axis 0 of placeholder 'y'"):
        session.run(size)
    with pytest.raises(ValueError, match=r"'y'.* is not fed.* <- index at "):
        session.run(pairs, {x: [2.0]})
    before = session.run(alone, {x: [1.0], y: [2.0]})
    assert before.item() == 2.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: len(range(x[x > 0].shape[0])), "the number of elements that are selected at "),
        (lambda x: tg.cond(x.sum() > 0, lambda: x[x > 0].sum(), lambda: 0), "nonzero"),
        (lambda x: nn.Parameter(x[x > 0]), "first value of a Parameter"),
        (lambda x: x[x > 0] @ tg.ones(3, 3), "count is the number of elements that are sel"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(function, message):
    with pytest.raises(RuntimeError, match=message) as raised, tg.Graph():
        function(tg.placeholder(tg.float32, (8,), "x"))
    assert f"{__file__}:{function.__code__.co_firstlineno}" in str(raised.value)


def test_a_traced_function_selects_in_sessions_of_threads():
    scale = nn.Parameter(tg.tensor(1.0))

    def step(x):
        kept = x[x > 0.5] * scale
        scale.data.add_(kept.shape[0])
        return kept, tg.nonzero(x > 0.5)

    traced = tg.trace(step, tg.ones(9))
    assert "%positions0: int64[count]" in str(traced)
    with pytest.raises(tg.TraceError, match=r"selects by data at .*explain"):
        tg.tracing.program(step, tg.ones(9))
    graph, failures = tg.Session(traced).graph, []

    def work(session, seed):
        try:
            now = 1.0
            call = tg.function_of(session, [graph.results, graph["step"]], "x")
            for at in range(20):
                x = data(seed + at, 9)
                (kept, where), _ = call(x)
                same([kept, where], [x[x > 0.5] * now, tg.nonzero(x > 0.5)])
                now += len(kept)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(tg.Session(graph), n)) for n in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures and scale.item() == 1.0


def test_few_compilations_serve_all_numbers_and_are_explained():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 4), "x")
        limit = tg.placeholder(tg.float32, (), "limit")
        some = (x * 3)[x > limit].tanh()
        out = FUNCTIONS["computed"](x)
    session, elements = tg.Session(g), tg.arange(800.0).reshape(200, 4)
    for n in [*range(20), *range(20, 800, 97)]:
        assert len(session.run(some, {x: elements, limit: 799.0 - n})) == n
    (plan,) = g.plans.values()
    assert plan.compiles <= 6
    found = session.explain(out, {x: data(0)}, measure=True)
    assert [each.title for each in found.plans] == ["stage 1", "plan"]
    (tanh,) = [each for plan in found.plans for each in plan.kernels if "tanh" in each.operations]
    assert tanh in found.plans[0].kernels  # computed once
    assert session.executable(out, {x: data(0)}).kernels
    assert "positions" in str(g.ir(out))
