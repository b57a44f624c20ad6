"""Programs as they are written for TensorFlow 1: all of them made inside of `with graph:`."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


class Scaled(nn.Module):
    """A module of a user's, whose first values are made in all the ways that there are."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tg.randn(4, 3) * 0.1 + tg.eye(4, 3))
        self.gain = nn.Parameter(tg.empty(3))
        nn.init.normal_(self.gain, 1.0, 0.1)
        with tg.no_grad():
            self.weight[0].mul_(2.0)
        self.weight.data.add_(tg.rand(3))
        self.register_buffer("mean", tg.linspace(0, 1, 3))
        self.drawn = float(tg.rand(()).item())
        self.parts = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])

    def forward(self, x):
        x = x @ self.weight * self.gain - self.mean * self.drawn
        for each in self.parts:
            x = each(x).tanh()
        return x


def first_values():
    """Modules, parameters and buffers, as tensors in one order."""
    tg.manual_seed(11)
    model = nn.Sequential(Scaled(), nn.BatchNorm1d(3), nn.Linear(3, 2), nn.Embedding(5, 2))
    table = nn.Parameter(tg.rand(2, 3).t() * 2)
    half = nn.Parameter(tg.tensor([1, 2]).half() / 3, requires_grad=False)
    model[2].apply(lambda each: nn.init.xavier_uniform_(each.weight, gain=2.0))
    other = copy.deepcopy(model[2])
    third = nn.Linear(3, 2)
    third.load_state_dict(other.state_dict())
    third.register_buffer("scale", table.detach()[0] * half.float().mean())
    return model, [*model.state_dict().values(), table, half, *other.parameters(), *third.buffers()]


def test_first_values_are_those_of_eager_code():
    with tg.Graph() as g:
        made_model, made = first_values()
        x = tg.placeholder(tg.float32, (None, 4), "x")
        out = made_model[2](made_model[1](made_model[0](x)))
        counter = tg.default_generator.counter
    model, want = first_values()
    assert tg.default_generator.counter == counter > 10
    for one, other in zip(made, want, strict=True):
        assert type(one) is type(other) and one.dtype is other.dtype
        assert one.requires_grad is other.requires_grad
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
    found = tg.Session(g).run(out, {x: X})
    expected = model[2](model[1](model[0](tg.tensor(X))))
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), 1e-5, 1e-6)
    assert g.ir(out).inputs and "random_state" not in str(g.ir())  # no draw is left in the graph


def test_first_values_are_made_once_and_runs_go_on_from_them():
    with tg.Graph() as g:
        tg.manual_seed(5)
        noise = tg.rand(2)
        w = nn.Parameter(tg.rand(2))
        with tg.name_scope("average"):
            kept = tg.variable(w * 2, "of_w", dtype=tg.float64)
            layer = nn.Linear(2, 2)
        step = tg.variable(0, "step")
        train = tg.optim.SGD([w], lr=1.0).minimize(layer(w * kept.float()).sum(), "train")
        with tg.control_dependencies([train]):
            count = tg.assign(step, step + 1, name="count")
            late = nn.Parameter(tg.zeros(2))
            total = (late + w).sum() + noise.sum() * 0
    want = tg.rand(2, generator=tg.Generator().manual_seed(5))
    assert w.tolist() == want.tolist() and kept.tolist() == [2 * each for each in w.tolist()]
    session = tg.Session(g)
    session.run([count, total])
    session.run("count")
    assert session.get("step").item() == 2 and session.get(w).tolist() != w.tolist()
    assert list(g.variables) == [
        "w", "average.of_w", "step", "average.layer.weight", "average.layer.bias", "late",
    ]  # fmt: skip
    assert session.get("average.of_w").tolist() == kept.tolist()
    refused = {
        "placeholder 'x'": lambda: nn.Parameter(x * 2),
        r"depends on the size x_2\[0\]": lambda: tg.variable(tg.zeros(x.shape[0])),
        "a run writes into `step`": lambda: nn.Parameter(step.add_(1).float()),
        "first values are given": lambda: nn.init.zeros_(w * 2),
        "first values are given .*py": lambda: nn.init.zeros_(w.data),
    }
    for text, make in refused.items():
        with pytest.raises(tg.TraceError, match=text), g:
            x = tg.placeholder(tg.float32, (None,), "x")
            make()
    layer.double()
    for use in (lambda: tg.Session(g).run(total), g.__enter__):
        with pytest.raises(tg.TraceError, match=r"layer.weight.* is of another type now"):
            use()


def test_first_values_count_as_writes_outside_of_the_graph():
    w, v = nn.Parameter(tg.ones(2)), tg.zeros(2)
    square = (w * w).sum()
    with tg.Graph() as g:
        before = w * 10 + v
        v.add_(w)  # in the graph alone
        nn.init.constant_(w, 3.0)
        nn.init.constant_(v, 5.0)
        after = w * 10 + v
        assert v.requires_grad
    assert w.tolist() == [3.0, 3.0] and v.tolist() == [5.0, 5.0] and not v.requires_grad
    assert (w._version, v._version) == (1, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    found = tg.Session(g).run([before, after, v])
    assert [each.tolist() for each in found] == [[35.0, 35.0], [38.0, 38.0], [8.0, 8.0]]


def test_gradients_of_whatever_a_graph_computes():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 4), "x")
        other = tg.placeholder(tg.float32, (), "other")
        net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
        hidden = net[1](net[0](x))
        score = net[2](hidden)
        to_x, to_hidden = tg.gradients(score, [x, hidden])
        penalty = ((to_x.norm(dim=1) - 1) ** 2).mean()
        (bend,) = tg.gradients(penalty, net[0].weight)
        weighted = tg.gradients([score, hidden], [x, other], [score.detach(), None], "zero")
        (none,) = tg.gradients(score, other)
        rows = tg.vmap(lambda each: tg.gradients(hidden, x, each.expand(hidden.shape))[0])(
            tg.eye(3)
        )
        score.sum().backward()  # whose histories stay
        by_backward = net[0].weight.grad
        train = tg.optim.SGD(net.parameters(), lr=0.1).minimize(penalty)
        seen = tg.variable([0.0] * 4, "seen")
        product = (x * seen).sum() * net[2].bias
        seen.add_(x.mean(0))
        with tg.control_dependencies([train]):
            product.backward()  # asks nothing of what was written since
        for each, error in (
            (tg.ones(2), "no history"), (x.detach(), "no history"), (seen.data, "no history"),
            (tg.placeholder(tg.int64, (), "i"), "has no gradients"), (2.0, "not a tensor"),
        ):  # fmt: skip
            with pytest.raises((RuntimeError, TypeError), match=error):
                tg.gradients(score, each)
        with pytest.raises(RuntimeError, match="depends on none"):
            tg.optim.SGD(net.parameters(), lr=0.1).minimize(other * 2)
    assert none is None
    found = tg.Session(g).run(
        [to_x, to_hidden, bend, *weighted, by_backward, by_backward, rows],
        {x: X, other: 1.0},
    )
    free = tg.tensor(X, requires_grad=True)
    mid = net[1](net[0](free))
    out = net[2](mid)
    ones = tg.ones_like(out)
    want_x, want_mid = tg.autograd.grad(out, [free, mid], ones, create_graph=True)
    cost = ((want_x.norm(dim=1) - 1) ** 2).mean()
    (want_bend,) = tg.autograd.grad(cost, net[0].weight, retain_graph=True)
    want = [want_x, want_mid, want_bend]
    want += tg.autograd.grad([out, mid], free, [out.detach(), tg.ones_like(mid)], retain_graph=True)
    want.append(tg.tensor(0.0))
    want += [tg.autograd.grad(out.sum(), net[0].weight, retain_graph=True)[0]] * 2
    each = [tg.autograd.grad(mid[:, at].sum(), free, retain_graph=True)[0] for at in range(3)]
    want.append(tg.stack(each))
    for one, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(one.numpy(), expected.detach().numpy(), 1e-5, 1e-6)


def drawing(x, other):
    """Draws before, in and behind branches and loops, of two generators, and one in a loop's."""
    first = tg.rand(2)

    def turn(c, row):
        c = c + tg.randn(2) * row + tg.rand(2, generator=other)
        return c, tg.cond(c.sum() > 0, lambda: tg.rand(()), lambda: row.sum())

    last, rows = tg.scan(turn, tg.zeros(2), x)
    between = tg.rand(2, generator=other)
    chosen = tg.cond(x.sum() > 0, lambda: tg.rand(2), lambda: tg.rand(2) + tg.rand(2))
    state = tg.tensor(0), tg.zeros(2)
    waited = tg.while_loop(lambda n, v: v.sum() < 4, lambda n, v: (n + 1, v + tg.rand(2)), state)
    return [first, last, rows, between, chosen, *waited, tg.rand(2)]


def test_draws_in_branches_and_loops_are_fresh_at_each_turn_and_run():
    other = tg.Generator()
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 1), "x")
        out = drawing(x, other)
        initial = nn.Parameter(tg.fori_loop(0, 3, lambda at, v: v + tg.rand(2), tg.zeros(2)))
    session = tg.Session(g)
    for rows in ([1.0, 2.0, 3.0], [-1.0], [2.0, -3.0]):
        fed = np.array(rows, np.float32)[:, None]
        states = []
        ways = [
            lambda fed=fed: session.run(out, {x: fed}),
            lambda fed=fed: drawing(tg.tensor(fed), other),
        ]
        for run in ways:
            tg.manual_seed(1)
            other.manual_seed(4)
            first, again = run(), run()
            assert all(
                a.tolist() != b.tolist() for a, b in zip(first[1:], again[1:]) if a.numel() > 1
            )
            last = session.run(out[-1]) if not states else tg.rand(2)
            states.append([*first, *again, last, tg.get_rng_state(), other.get_state()])
        for one, expected in zip(*states, strict=True):
            np.testing.assert_allclose(one.numpy(), expected.numpy(), 1e-5)
    assert 0 < initial.sum().item() < 6


def test_what_bodies_write_belongs_to_their_results():
    def program(n, m, x):
        def add():
            n.add_(x.sum())
            return n * 1

        def turn(at, c):
            m.add_(c)
            return c + 1

        return tg.cond(x.sum() > 0, add, lambda: n * 2), tg.fori_loop(0, 3, turn, x.sum())

    for values in ([1.0, 2.0], [-1.0, -2.0]):
        n, m, mine, own = (tg.zeros(()) for _ in range(4))
        with tg.Graph() as g:
            x = tg.placeholder(tg.float32, (2,), "x")
            with g.operation("both"):
                chosen, looped = program(n, m, x)
            alone = n * 1
        session = tg.Session(g)
        for fetches in ([chosen, looped, "both"], [looped, chosen]):
            found = session.run([*fetches, n, m], {x: values})
            want = program(mine, own, tg.tensor(values))
            assert {found[0].item(), found[1].item()} == {each.item() for each in want}
            assert [each.item() for each in found[-2:]] == [mine.item(), own.item()]
        session.run(chosen, {x: values})
        assert session.get(m).item() == own.item() and session.run(alone).item() >= mine.item()


def test_names_are_of_scopes_and_find_what_they_name():
    with tg.Graph() as g:
        with tg.name_scope("outer/scope"):
            deep = tg.variable(3.0, "a/b")
        with tg.name_scope("input"):
            x = tg.placeholder(tg.float32, (None, 2), "x")
        w = tg.variable([1.0, 2.0], "w", requires_grad=True)
        with tg.name_scope("summaries"):
            loss = tg.identity((x @ w).sum(), "loss")
            tg.identity(loss * 2, "loss")
        step = tg.optim.SGD([w], lr=0.5).minimize(loss)
        tg.group(step, name="all/steps")
        with pytest.raises(ZeroDivisionError), g.operation("broken"):
            raise ZeroDivisionError
    assert g.names[:4] == ["input.x", "summaries.loss", "summaries.loss_2", "SGD"]
    assert g.names[4:] == ["all.steps", "outer.scope.a.b", "w"]
    assert g["summaries/loss"] is loss and g["SGD"] is step and g["w"] is w and g["input/x:0"] is x
    session = tg.Session(g)
    session.set("outer/scope/a/b", 4.0)
    assert session.get("outer/scope.a.b").item() == session.run("outer/scope/a/b:0").item() == 4
    assert g["outer/scope/a/b"] is deep
    feeds = {"input/x": [[1.0, 1.0]]}
    for _ in range(2):
        found = session.run({"a": "summaries/loss", "b": ["summaries.loss_2"]}, feeds)
        assert found["a"].item() == 3 and found["b"][0].item() == 6
    assert session.run(["all/steps", "w"], {x: [[1.0, 0.0]]})[1].tolist() == [0.5, 2.0]
    assert tg.function_of(session, "summaries/loss", "input/x")([[2.0, 0.0]]).item() == 1
    with pytest.raises(KeyError, match=r"'summary/los'; did you mean 'summaries.loss'"):
        session.run("summary/los")
    with pytest.raises(KeyError, match="nothing of the name 'x'"):
        session.run(loss, {"x": 1})
    with pytest.raises(ValueError, match="only placeholders can be fed"):
        session.run(loss, {"summaries/loss": 1.0})
    assert tg.identity(tg.ones(1), "eager").item() == 1


def test_a_session_runs_what_was_traced():
    w = nn.Parameter(tg.tensor([1.0, 2.0]))
    optimizer = tg.optim.SGD([w], lr=0.5)
    count = tg.zeros(())

    def step(x, *more, scale=2.0):
        loss = (x["left"] * w * scale).sum() + more[0].sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        count.add_(1)
        return {"loss": loss, "w": w * 1}

    given = tg.ones(2)
    traced = tg.trace(step, {"left": given}, given, scale=3.0)
    assert "%x['left']: float32[2]" in str(traced) and w.tolist() == [1.0, 2.0]
    session, other = tg.Session(traced), tg.Session(traced)
    for each in (session, other):
        feeds = {"x['left']": [1.0, 0.0]}
        first = each.run(["result['loss']", "step", "w"], feeds)
        assert first[0].item() == 4.0 and first[2].tolist() == [-0.5, 2.0]
        again = each.run([each.graph.results, each.graph["step"], count], feeds)
        assert again[0]["loss"].item() == -0.5 and again[0]["w"].tolist() == [-2.0, 2.0]
        assert again[2].item() == 2
    assert w.tolist() == [1.0, 2.0] and count.item() == 0
    single = tg.Session(tg.trace(nn.Linear(2, 1), given))
    assert single.run("result", {"input": [0.0, 0.0]}).shape == (1,)
    with pytest.raises(TypeError, match=r"what tg.trace gives, got a function"):
        tg.Session(step)


def test_placeholders_with_defaults():
    w = nn.Parameter(tg.tensor([1.0, 2.0]))
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, ("n", 2), "x")
        keep = tg.placeholder_with_default(1.0, "keep")
        one = tg.ones(())  # not fed, though it is equal
        noise = tg.placeholder_with_default(tg.randn(x.shape[0], 2), "noise")
        both = tg.placeholder_with_default(tg.cat([x, x]).sum(1) * w[0], "both")
        flag = tg.placeholder_with_default(False, "flag")
        out = tg.cond(flag, lambda: (x + noise).sum(1) * keep + one, lambda: x.sum(1) * 0)
        slopes = tg.gradients((both * keep).sum() + (x @ w).sum(), [keep, both, w])
    session, fed = tg.Session(g), {x: X[:3, :2]}
    tg.manual_seed(3)
    found = session.run([out, keep, both, slopes], fed)
    rows = np.concatenate([X[:3, :2]] * 2).sum(1)
    assert found[0].tolist() == [0, 0, 0] and found[1].item() == 1
    np.testing.assert_allclose(found[2].numpy(), rows, 1e-6)
    np.testing.assert_allclose(found[3][0].numpy(), rows.sum(), 1e-5)
    np.testing.assert_allclose(found[3][2].numpy(), X[:3, :2].sum(0), 1e-5)
    drawn = session.run([out, noise], {**fed, flag: True, keep: 2.0})
    counter = tg.default_generator.counter
    want = (X[:3, :2] + drawn[1].numpy()).sum(1) * 2 + 1
    np.testing.assert_allclose(drawn[0].numpy(), want, 1e-5)
    given = np.ones((3, 2), np.float32)
    feeds = {"x": fed[x], "noise": given, "flag": True}
    want = (X[:3, :2] + 1).sum(1) + 1
    np.testing.assert_allclose(session.run(out, feeds).numpy(), want, 1e-5)
    assert tg.default_generator.counter == counter  # nothing was drawn
    assert session.run(both, {**fed, both: np.arange(6.0, dtype=np.float32)}).tolist()[5] == 5
    partial = session.partial([both, out], [x, noise, both, flag])
    partial.run(both, {both: np.zeros(6, np.float32), x: fed[x]})
    np.testing.assert_allclose(partial.run(out, {noise: given, flag: True}).numpy(), want, 1e-5)
    for rows, told in ((4, r"axis 0 of placeholder 'both' is fed 4, and is to be 2 . n"), (7, "7")):
        with pytest.raises(ValueError, match=told):
            session.run(both, {**fed, both: np.zeros(rows, np.float32)})
    with pytest.raises(ValueError, match="which nothing that is fed tells"):
        session.run(both, {both: np.zeros(6, np.float32)})
