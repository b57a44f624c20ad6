"""Graphs that are built up front, and the sessions that run them."""

from __future__ import annotations

import random
import sys
import threading

import numpy as np
import pytest
from tgraph.runtime.device import Device

import tgraph as tg
from tgraph import nn
from tgraph.graphs.on_device import on_device
from tgraph.serialization import LoadError

BATCH = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]


def array(values, dtype=np.float32):
    return np.array(values, dtype)


def test_a_run_computes_what_is_fetched_however_it_is_nested():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 2), "x")
        y = tg.placeholder(tg.float32, (), "y")
        double, other = x * 2, x.sum() + y
    session = tg.Session(g)
    assert session.run(double, {x: BATCH[:1]}).tolist() == [[2.0, 4.0]]  # y is not needed
    found = session.run({"a": [double, (other,)], "x": x}, {x: BATCH, y: 1})
    assert found["a"][0].tolist() == (2 * array(BATCH)).tolist()
    assert found["a"][1][0].item() == 23 and found["x"].tolist() == BATCH
    for value in (tg.tensor(BATCH), array(BATCH), array(BATCH).T.copy().T, BATCH):
        assert session.run((double,), {x: value})[0].tolist() == (2 * array(BATCH)).tolist()


def test_results_share_no_memory():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (2,), "x")
        y = x * 2
        asked = [y, y.detach(), y.view(1, 2), "x", x]
    first, *others = tg.Session(g).run(asked, {x: [1.0, 2.0]})
    first.zero_()
    others[-1].zero_()
    assert [each.flatten().tolist() for each in others[:-1]] == [[2, 4], [2, 4], [1, 2]]


def test_a_dtype_is_checked_however_often_the_shape_was_fed():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (2,), "x")
        y = x * 2
    session = tg.Session(g)
    for _ in range(2):
        assert session.run(y, {x: array([1.0, 2.0])}).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match=r"'x'.* is fed float64\[2\]"):
        session.run(y, {x: array([1.0, 2.0], np.float64)})


def test_what_get_gave_stays_as_it_was():
    n = tg.zeros(2)
    with tg.Graph() as g:
        add = tg.assign(n, n + 1)
    session = tg.Session(g)
    value = session.get(n)
    session.run(add)
    assert value.tolist() == [0, 0] and session.get(n).tolist() == [1, 1]
    value.fill_(5.0)
    assert session.get(n).tolist() == [1, 1]


def test_one_plan_serves_many_sizes():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, ("n", 8), "x")
        y = tg.placeholder(tg.float32, (None, 8), "y")
        out = tg.softmax(x + y, dim=1).sum(dim=0) / x.shape[0]
    session = tg.Session(g)
    for n in (40, 51, 33, 60, 1):
        a, b = np.random.default_rng(n).normal(size=(2, n, 8)).astype(np.float32)
        want = tg.softmax(tg.tensor(a + b), dim=1).sum(dim=0) / n
        np.testing.assert_allclose(session.run(out, {x: a, y: b}).numpy(), want.numpy(), 1e-6)
    (plan,) = g.plans.values()
    assert plan.compiles <= 3  # of sizes from 17 to 64, and of 1


def test_variables_live_in_the_session(tmp_path):
    w = nn.Parameter(tg.tensor([1.0, 2.0]))
    factor = tg.tensor(3.0)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 2), "x")
        loss = ((x @ w) ** 2).mean() * factor
        train = tg.optim.SGD([w], lr=0.001).minimize(loss)
        after = (w * 2).sum()  # behind an operation: as a run finds it
    one, other = tg.Session(g), tg.Session(g)
    assert list(g.variables) == ["w"]
    first = [one.run([train, loss], {x: BATCH})[1].item() for _ in range(3)]
    assert first[0] > first[1] > first[2] and other.run(loss, {x: BATCH}).item() == first[0]
    assert w.tolist() == [1.0, 2.0] and other.get(w).tolist() == [1.0, 2.0]
    assert one.run(after).item() == pytest.approx(2 * one.get("w").numpy().sum())
    one.save(tmp_path / "state.npz")
    other.restore(tmp_path / "state.npz")
    assert other.get(w).tolist() == one.get(w).tolist() != w.tolist()
    assert [each.name for each in tmp_path.iterdir()] == ["state.npz"]
    other.set(w, [0.0, 0.0])
    assert other.run(loss, {x: BATCH}).item() == 0
    other.initialize()
    assert other.run(loss, {x: BATCH}).item() == first[0]
    factor.fill_(6.0)  # no variable: read by each run
    assert other.run(loss, {x: BATCH}).item() == pytest.approx(2 * first[0])
    with pytest.raises(ValueError, match=r"other variables.*missing \['w'\]"):
        np.savez(tmp_path / "else.npz", v=np.zeros(2))
        other.restore(tmp_path / "else.npz")
    with pytest.raises(
        ValueError, match=r"variable 'w' is float32\[2\], and is given float64\[3\]"
    ):
        np.savez(tmp_path / "else.npz", w=np.zeros(3))
        other.restore(tmp_path / "else.npz")


def network(dropout):
    tg.manual_seed(7)
    return nn.Sequential(
        nn.Linear(6, 16, bias=False),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(16, 3),
    )


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_the_numbers_are_those_of_define_by_run(name):
    """With dropout, running statistics, a learning rate that changes, and an epoch's short end."""
    options = {"lr": 0.05, "momentum": 0.9} if name == "SGD" else {"lr": 0.01}
    rng = np.random.default_rng(3)
    batches = [
        (rng.normal(size=(n, 6)).astype(np.float32), rng.integers(0, 3, n)) for n in (8, 8, 5, 8)
    ]
    model = network(0.4)
    optimizer = getattr(tg.optim, name)(model.parameters(), **options)
    want = []
    tg.manual_seed(1)
    for at, (inputs, labels) in enumerate(batches):
        optimizer.param_groups[0]["lr"] = options["lr"] / (1 + at)
        loss = nn.functional.cross_entropy(model(tg.tensor(inputs)), tg.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        want.append(loss.item())
    model.eval()
    want_logits = model(tg.tensor(batches[0][0])).detach().numpy()

    other = network(0.4)
    optimizer = getattr(tg.optim, name)(other.parameters(), **options)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 6), "x")
        y = tg.placeholder(tg.int64, (None,), "y")
        loss = nn.functional.cross_entropy(other(x), y)
        train = optimizer.minimize(loss)
        other.eval()
        logits = other(x)
    session = tg.Session(g)
    tg.manual_seed(1)
    got = []
    for at, (inputs, labels) in enumerate(batches):
        optimizer.param_groups[0]["lr"] = options["lr"] / (1 + at)
        got.append(session.run([train, loss], {x: inputs, y: labels})[1].item())
    np.testing.assert_allclose(got, want, 2e-6)
    found = session.run(logits, {x: batches[0][0]}).numpy()
    np.testing.assert_allclose(found, want_logits, 2e-5, 1e-6)
    session.run(logits, {x: batches[0][0][:1]})  # one row, which training refuses
    for key, value in model.state_dict().items():
        mine = session.get(f"other.{key}").numpy() if f"other.{key}" in g.variables else None
        if mine is not None:
            np.testing.assert_allclose(mine, value.numpy(), 2e-5, 1e-6, err_msg=key)
    assert {"other.0.weight", "other.1.running_mean"} <= set(g.variables)


def test_the_kernels_are_those_of_a_compiled_function():
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.minimize(loss)
        return loss

    x, y = tg.randn(8, 6), tg.randint(0, 3, (8,))
    compiled = tg.compile(step)
    compiled(x, y)
    plan = compiled.plan_for(x, y).function.plain
    with tg.Graph() as g:
        a = tg.placeholder(tg.float32, (8, 6), "x")
        b = tg.placeholder(tg.int64, (8,), "y")
        loss = nn.functional.cross_entropy(model(a), b)
        train = optimizer.minimize(loss)
    made = tg.Session(g).executable([loss, train], {a: x, b: y})
    assert made.program.source == plan.program.source
    assert len(made.kernels) == len(plan.kernels) > 3


def test_writes_are_ordered_as_they_are_written():
    n = tg.tensor([1.0, 2.0])
    with tg.Graph() as g:
        before = n * 10
        n.add_(1)
        between = n * 10
        n[0] = 7.0
        last = n * 10
        with g.operation("reset") as reset:
            n.zero_()
        ones = tg.assign(n, 1.0)
        same = n * 100
        with tg.control_dependencies([reset]):
            zero = n + 5
            other = tg.ones(2)
    session = tg.Session(g)
    assert session.run(before).tolist() == [10, 20] == session.run(before).tolist()
    assert session.run(between).tolist() == [20, 30] and session.get(n).tolist() == [2, 3]
    assert session.run([last, n])[1].tolist() == [7, 4]
    assert session.run([before, same])[1].tolist() == [700, 500]
    assert session.run([reset, before])[1].tolist() == [70, 50]
    assert session.get(n).tolist() == [0, 0]
    session.set(n, [1.0, 1.0])
    assert session.run(other).tolist() == [1, 1] and session.get(n).tolist() == [0, 0]
    assert session.run(zero).tolist() == [5, 5] and n.tolist() == [1, 2]
    with pytest.raises(ValueError, match="write `n` twice"):
        session.run([reset, ones])


def test_draws_are_those_that_eager_code_makes():
    with tg.Graph() as g:
        one, other = tg.rand(3), tg.randn(3)
        third = tg.rand(3)
    session = tg.Session(g)
    tg.manual_seed(5)
    found = [session.run([one, other, third]), session.run(third), session.run([one, third])]
    tg.manual_seed(5)
    want = [[tg.rand(3), tg.randn(3), tg.rand(3)], tg.rand(3), [tg.rand(3), tg.rand(3)]]
    for a, b in zip(tg.pytree.flatten(found)[0], tg.pytree.flatten(want)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)


def test_errors_come_when_the_graph_is_built_and_name_placeholders():
    w = tg.ones(3, 4)
    g = tg.Graph()
    with pytest.raises(RuntimeError, match=r"test_session.py:\d+.*placeholder 'x'.*axis 0"), g:
        x = tg.placeholder(tg.float32, ("batch", 2), "x")
        x @ w
    with (
        pytest.raises(RuntimeError, match=r"tensor a \(batch\).*batch is axis 0 of placeholder"),
        g,
    ):
        x[:, 0] + w[:, 0]
    with pytest.raises(tg.TraceError, match=r"item\(\) needs the value.*made at .*session.run"), g:
        x.sum().item()
    with g:
        total = x.sum()
    with pytest.raises(tg.TraceError, match=r"has no value at .*session.run"):
        total.item()
    with pytest.raises(tg.TraceError, match=r"in another graph"), tg.Graph():
        total + 1
    with (
        pytest.raises(
            tg.TraceError, match=r"__index__ asks for the value of batch.*placeholder 'x'"
        ),
        g,
    ):
        range(x.shape[0])
    with pytest.raises(RuntimeError, match="inside `with graph:`"):
        tg.placeholder(tg.float32, (), "y")
    with g:  # still good
        later = total * 2
    g.finalize()
    with pytest.raises(RuntimeError, match="the graph is final"), g:
        later + 1
    assert tg.Session(g).run(later, {x: [[1, 2]]}).item() == 6


def test_errors_of_runs_name_what_was_expected():
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 2), "x")
        y = tg.placeholder(tg.float32, (None,), "y")
        small = tg.placeholder(tg.uint8, (None,), "small")
        out = (x.sum(dim=1) + y)[4]
    with tg.Graph():
        z = tg.placeholder(tg.float32, (), "z")
    session = tg.Session(g)
    five = np.ones((5, 2), np.float32)
    cases = [
        (ValueError, r"'y', .*\[None\], made at .* not fed.*slice at .* <- add at", out, {x: five}),
        (TypeError, r"'x', float32\[None, 2\].* is fed float64\[5, 2\]", out, {x: np.ones((5, 2))}),
        (TypeError, r"'x'.* is fed int64\[5, 2\]", out, {x: np.ones((5, 2), np.int64)}),
        (ValueError, r"'x'.* is fed float32\[5, 3\]: axis 1 is 3", out,
         {x: np.ones((5, 3), np.float32), y: five[:, 0]}),
        (ValueError, r"axis 0 of placeholder 'y' is fed 4 and axis 0 of placeholder 'x' 5.*py:\d+",
         out, {x: five, y: np.ones(4, np.float32)}),
        (ValueError, r"built for sizes where x\[0\] > 4.*x\[0\] is 3", out,
         {x: five[:3], y: five[:3, 0]}),
        (ValueError, "another graph", z, {}),
        (ValueError, "another graph", out, {z: 1.0}),
        (ValueError, "only placeholders", out, {out: 1.0}),
        (TypeError, "a run fetches tensors", [out, 3], {}),
        (KeyError, "nothing of the name 'inputs.x'; it has 'x', 'y'", "inputs.x", {}),
        (TypeError, r"'x'.* is fed float64\[5, 2\]", out, {"x": np.ones((5, 2))}),
        (ValueError, "'x', .* is fed twice", out, {x: five, "x": five, y: five[:, 0]}),
        (ValueError, r"'small', .* is fed \[1, 300\], which uint8 does not hold", small,
         {small: [1, 300]}),
        (ValueError, r"is fed \[-1\], which uint8 does not hold", small, {small: [-1]}),
    ]  # fmt: skip
    for kind, text, fetches, feeds in cases:
        with pytest.raises(kind, match=text):
            session.run(fetches, feeds)
    assert session.run(out, {x: five, y: five[:, 1]}).item() == 3
    with pytest.raises(ValueError, match="fed twice"):
        tg.function_of(session, out, [x, y, "x"])


def test_a_session_for_each_thread_and_a_function_of_one():
    n = tg.zeros(())
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (), "x")
        add = tg.assign(n, n + x)
    results = {}

    def work(step):
        call = tg.function_of(tg.Session(g), [add, n], x)
        for _ in range(50):
            results[step] = call(step)[1].item()

    threads = [threading.Thread(target=work, args=(step,)) for step in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {step: 50 * step for step in range(1, 5)} and n.item() == 0


def test_sessions_in_threads_draw_different_numbers():
    with tg.Graph() as g:
        drawn = tg.rand(2)
    before, found = tg.default_generator.counter, []
    interval = sys.getswitchinterval()

    def work():
        session = tg.Session(g)
        found.extend(tuple(session.run(drawn).tolist()) for _ in range(2000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    try:
        sys.setswitchinterval(1e-7)
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(set(found)) == 8000 and tg.default_generator.counter == before + 8000


def test_graphs_inside_of_one_another_and_in_parts():
    w = nn.Parameter(tg.tensor(2.0))
    a, b = tg.Graph(), tg.Graph()
    with a:
        x = tg.placeholder(tg.float32, (), "x")
        w_then = w * x
        with b:
            y = tg.placeholder(tg.float32, (), "y")
            w.data.mul_(10)
            other = w * y
        again = w * x
        assert tg.Session(b).run([other, w], {y: 3})[0].item() == 60  # inside of `with`
    with a:
        (w * x).backward()
        slope = w.grad
    assert w.grad is None and w._version == 0
    assert [each.item() for each in tg.Session(a).run([w_then, again, slope], {x: 5})] == [
        10,
        10,
        5,
    ]


def test_what_is_told_of_a_run():
    with tg.Graph() as g, tg.name_scope("outer"):
        x = tg.placeholder(tg.float32, (None, 4), "x")
        y = tg.softmax(x, dim=1)
    session = tg.Session(g)
    explanation = session.explain(y, {x: np.ones((64, 4), np.float32)}, measure=True)
    assert explanation.seconds > 0 and explanation.bytes > 0
    assert "outer.x" in str(g.ir(y)) and "outer.x" in tg.draw(g)
    assert all(node.where.module == "outer" for node in g.ir(y).nodes)


def test_host_calls_are_made_by_the_operations_that_they_belong_to():
    seen = []

    def tell(tensor, mark):
        tg.tracing.host_call(lambda a: seen.append(f"{mark}{a:.0f}"), tensor, effect="ordered")

    w = nn.Parameter(tg.tensor(1.0))
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (), "x")
        tell(x, "x")
        train = tg.optim.SGD([w], lr=1.0).minimize(w * x)
        with g.operation("tell") as told:
            tell(w, "w")
        with tg.control_dependencies([told]):
            tell(x, "after ")
            double = x * 2
    session = tg.Session(g)
    runs = ((x, ""), (told, "w1"), (train, "x3"), (double, "w-2"), ([told, train], "w-2 x3"))
    for fetches, want in runs:
        seen.clear()
        session.run(fetches, {x: 3})
        assert sorted(seen) == want.split()


def test_variables_of_any_name_and_type_are_saved(tmp_path):
    file = nn.Parameter(tg.ones(3, dtype=tg.bfloat16))
    turned = nn.Parameter(tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t())
    flag = tg.tensor([True, False])
    several = [nn.Parameter(tg.tensor(float(at))) for at in range(3)]
    with tg.Graph() as g:
        total = file.sum() + turned.sum()
        for each in several:
            total = total + each * 2
        swap = tg.assign(flag, ~flag)
    session, other = tg.Session(g), tg.Session(g)
    assert list(g.variables) == ["file", "turned", "each", "each_2", "each_3", "flag"]
    session.run(swap)
    session.set(turned, [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    session.set("each_3", 9)
    session.save(tmp_path / "state")
    other.restore(tmp_path / "state")
    for name in g.variables:
        assert other.get(name).tolist() == session.get(name).tolist()
    assert other.run(total).item() == 3 + 15 + 2 + 18 and other.get(file).dtype is tg.bfloat16
    with pytest.raises(KeyError, match="no variable other; it has file, turned"):
        session.get("other")


def test_damaged_files_of_variables_change_nothing(tmp_path):
    w = nn.Parameter(tg.arange(40.0))
    with tg.Graph() as g:
        w.sum()
    session, path = tg.Session(g), tmp_path / "state"
    session.save(path)
    content, source = path.read_bytes(), random.Random(3)
    session.set(w, tg.ones(40))
    np.save(tmp_path / "array.npy", np.ones(3))
    damaged = [b"", b"PK", b"no such file", (tmp_path / "array.npy").read_bytes()]
    for at in range(0, len(content), 7):
        changed = bytearray(content)
        changed[at] ^= 1 << source.randrange(8)
        damaged += [content[:at], bytes(changed)]
    refused = 0
    for each in damaged:
        path.write_bytes(each)
        try:
            session.restore(path)
        except (LoadError, ValueError):  # or of other variables, where a name is damaged
            refused += 1
            assert session.get(w).tolist() == [1.0] * 40
        else:
            session.set(w, tg.ones(40))
    assert refused > len(damaged) // 2


def test_averages_follow_a_step():
    w = nn.Parameter(tg.tensor([1.0, 2.0]))
    average = w.detach().clone()
    with tg.Graph() as g:
        train = tg.optim.SGD([w], lr=1.0).minimize(w.sum())
        with tg.control_dependencies([train]), g.operation("average") as averaged:
            average.lerp_(w.detach(), 0.5)
    session = tg.Session(g)
    session.run(averaged)
    assert session.get(w).tolist() == [0.0, 1.0] and session.get(average).tolist() == [0.5, 1.5]


def test_state_and_runs_stand_where_they_can_be_meant():
    with tg.Graph() as g:
        layer = nn.Linear(2, 2)
        x = tg.placeholder(tg.float32, (None, 2), "x")
        y = layer(x)
    session = tg.Session(g)
    with pytest.raises(tg.TraceError, match=r"being traced.*once for all calls"):
        tg.compile(lambda a: a + session.run(y, {x: BATCH}))(tg.ones(2))
    with pytest.raises(RuntimeError, match="traced"):
        tg.compile(lambda a: g.__enter__() and a)(tg.ones(2))
    failed = []

    def build():
        try:
            g.__enter__()
        except RuntimeError as error:
            failed.append(str(error))

    with g:
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert failed == ["the graph is being built by another thread"]
    for count in range(300):
        session.run({"y": y, "count": [y] * (count % 3)}, {x: np.ones((2 + count, 2), np.float32)})
    assert len(session._runs) <= 256
    (plan, *_) = g.plans.values()
    assert len(plan.stages[0].plans._plans) <= 64
    session.close()
    for use in (
        lambda: session.run(y, {x: [[1.0, 2.0]]}),
        lambda: session.explain(y, {x: [[1.0, 2.0]]}),
        lambda: session.get("layer.weight"),
        lambda: session.set("layer.bias", [1.0, 2.0]),
        session.initialize,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_a_partial_run_does_in_steps_what_one_run_does():
    seen = []
    with tg.Graph() as g:
        a, b = (tg.placeholder(tg.float32, ("n",), name) for name in "ab")
        c = tg.placeholder(tg.float32, (), "c")
        w = nn.Parameter(tg.tensor(2.0))
        noise = tg.rand(3)
        hidden = (a * w).exp() + noise.sum()
        top, where = hidden.topk(1)
        tg.tracing.host_call(lambda value: seen.append(value[0]), top, effect="ordered")
        total = tg.variable(0.0, "total")
        total.add_(top[0])
        first = hidden * total
        tg.optim.SGD([w], lr=0.1).minimize((hidden * b).sum(), "train")
        with tg.control_dependencies([g["train"]]):
            after = w * c
        last = first.sum() + w * 100 + where.float().sum() + tg.rand(3).sum() * 0 + noise[0] + a[0]
    fed = {a: array([0.1, 0.2]), b: array([1.0, 2.0]), c: array(3.0)}
    fetches = [hidden, first, after, last, noise, "train"]
    one, several = tg.Session(g), tg.Session(g)
    tg.manual_seed(1)
    want = one.run(fetches, fed)
    tg.manual_seed(1)
    partial = several.partial(fetches, [a, b, "c"])
    found = [partial.run(hidden, {a: fed[a]})]
    fed[a][:] = 7.0  # held as it was
    found += partial.run([first, "train", first], {b: fed[b]})[:1]
    assert several.get(w).item() == one.get(w).item() != 2.0
    several.set(w, 55.0)  # read before
    with pytest.raises(ValueError, match=r"'c'.* is not fed"):
        partial.run(after)
    rest = partial.run([last, noise, ()])
    several.set(w, one.get(w))
    found += partial.run(after, {"c": 3.0}), *rest[:2]
    for each, other in zip(found, want[:5], strict=True):
        np.testing.assert_allclose(each.numpy(), other.numpy(), 1e-6)
    assert len(seen) == 2 and several.get(total).item() == one.get(total).item()
    for fetch, feeds in ((last, {}), ([], {a: fed[a]}), (total, {})):
        with pytest.raises(ValueError, match=r"none of the f.* that this partial run has left"):
            partial.run(fetch, feeds)


def test_a_graph_is_moved_to_a_device_as_a_whole():
    """What it computes there is tested with the stand-in of a device, `test_sessions_cuda.py`."""
    device = Device("cuda", 0)
    with tg.Graph() as g:
        x = tg.placeholder(tg.float32, (None, 2), "x")
        turned = nn.Parameter(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        _, rows = tg.scan(lambda c, row: (c + tg.rand(2), c * row), tg.zeros(2), x @ turned.t())
        picked = tg.cond(x.sum() > 0, lambda: rows.sum(0), lambda: tg.arange(2.0))
        told = tg.tracing.host_call(lambda a: a, picked, results=picked)
        tg.tracing.host_call(print, told, effect="ordered")
        train = tg.optim.SGD([turned], lr=0.1).minimize(rows.mean())
        noise = tg.randn(3)
    part = g.ir([told, train, noise])
    moved = on_device(part, device)
    moved.verify()
    inner = [each for graph in moved.whole for each in (*graph.inputs, *graph.nodes)]
    types = [t for n in inner for t in (n.type if type(n.type) is tuple else [n.type])]
    assert len(moved.nodes) == len(part.nodes) and len(moved.whole) == len(part.whole) > 3
    assert {each.device for each in types} == {device}
    with pytest.raises(RuntimeError, match="cuda"):
        tg.Session(g, device="cuda:63")
