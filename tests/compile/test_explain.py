"""explain() and graph() of compiled functions, and the text of traced graphs."""

import tgraph as tg


def test_explain_lists_kernels_with_lines_and_sizes():
    def function(x, y):
        z = (x * 2).exp()
        return (z.sum(1) + z @ y).tanh()

    compiled = tg.compile(function)
    report = compiled.explain(tg.ones(8, 4), tg.ones(4))
    text = str(report)
    assert text.startswith("function (compiled for: first call)\nplan: ")
    operations = ", ".join(kernel.operations for kernel in report.kernels)
    for name in ("exp", "sum", "tanh", "matmul"):
        assert name in operations
    first = function.__code__.co_firstlineno
    assert f"{__file__}:{first + 1}" in text and f"{__file__}:{first + 2}" in text
    assert report.bytes > 8 * 4 * 4 and report.flops > 8 * 4
    assert "moved" in text and "flop" in text
    assert len(compiled.compiles) == 1
    compiled(tg.ones(8, 4), tg.ones(4))
    assert len(compiled.compiles) == 1


def test_explain_shows_forward_and_backward():
    w = tg.ones(4, requires_grad=True)
    compiled = tg.compile(lambda x: (x * w).exp().sum())
    report = compiled.explain(tg.ones(3, 4))
    assert [plan.title for plan in report.plans] == ["forward", "backward"]
    assert "exp" in report.plans[0].kernels[0].operations


def test_explain_gives_reasons_for_refused_fusions():
    def function(x):
        return x - x.sum(0) + x.sum(1, keepdim=True).exp()

    report = tg.compile(function).explain(tg.ones(64, 64))
    for refusal in report.refused:
        assert refusal.reason and refusal.reason in str(report)
    assert bool(report.refused) == ("not fused:" in str(report))


def test_explaining_does_not_run():
    state = tg.zeros(2)
    compiled = tg.compile(lambda x: state.add_(x))
    compiled.explain(tg.ones(2))
    compiled.graph(tg.ones(2))
    assert state.tolist() == [0, 0] and state._version == 0


def test_graph_and_trace_name_inputs():
    model = tg.nn.Sequential(tg.nn.Linear(2, 3))
    rate = tg.zeros(())

    def function(batch, *, scale):
        return model(batch["x"]) * scale + rate

    text = str(tg.trace(function, {"x": tg.ones(1, 2)}, scale=2.0))
    assert text.splitlines()[0].startswith("graph(%batch['x']: float32[1, 2], ")
    graph = tg.compile(function).graph({"x": tg.ones(1, 2)}, scale=2.0)
    names = [node.attrs["name"] for node in graph.inputs]
    assert names == ["batch['x']", "model.0.weight", "model.0.bias", "rate"]
    modules = {node.where.module for node in graph.nodes if node.primitive.name == "matmul"}
    assert modules == {"0"}


def test_trace_shows_effects_as_outputs():
    w = tg.ones(2, requires_grad=True)
    count = tg.zeros(2)

    def step(x):
        loss = (w * x).sum()
        loss.backward()
        count.add_(1)
        return loss

    graph = tg.trace(step, tg.ones(2))
    graph.verify()
    assert [node.shape for node in graph.outputs] == [(), (2,), (2,)]
    assert w.grad is None and count.tolist() == [0, 0]


def test_the_trace_of_a_matrix_is_still_its_trace():
    assert tg.trace(tg.ones(3, 3)).item() == 3
