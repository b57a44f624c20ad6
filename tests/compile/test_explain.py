"""explain() and graph() of compiled functions, and the text of traced graphs."""

import re

import pytest
from sampling import rotating
from test_ops import COMPILED, ids, tensors

import tgraph as tg

F = tg.nn.functional
# The kinds of steps of which it is told how they run.
HAVE_SCHEDULES = ("kernel", "gemm", "attention", "sort", "library")


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


def test_explain_tells_the_prices_by_which_fusion_decided():
    x = tg.ones(500, 300)
    report = tg.compile(lambda x: tg.softmax(tg.tanh(x), 0)).explain(x)
    text = str(report)
    assert all(kernel.apart >= kernel.price > 0 for kernel in report.kernels)
    assert any(kernel.apart > kernel.price for kernel in report.kernels)
    assert "; price " in text and ", apart " in text
    assert any(re.match(r"one kernel would take .*, two ", each.reason) for each in report.refused)
    products = tg.compile(lambda x: x @ x.t()).explain(x).kernels
    assert [(kernel.kind, kernel.price) for kernel in products] == [("gemm", 0)]


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


# -- schedules --------------------------------------------------------------------------------


def schedules(function, *arguments):
    """The schedule lines of a function's kernels; lanes are those of the machine."""
    report = tg.compile(function).explain(*arguments)
    for kernel in report.kernels:
        assert kernel.schedule in str(report)
    return [re.sub(r"\d+ lanes", "W lanes", kernel.schedule) for kernel in report.kernels]


def windows(x):
    padded = F.pad(x, (2, 2, 2, 2))
    return padded[2:, 1:] * 2


def strided(x):
    return tg.autograd.grad(F.avg_pool2d(x, 2).sum(), x)[0]


ORDER, SCALE, SHIFT = tg.randperm(300), tg.randn(300), tg.randn(300)
SCHEDULES = {
    "rows": (lambda x: x.sum(1), (1000, 1000), ["along j0 < 1,000 (W lanes); 1,000 tasks for"]),
    "columns": (lambda x: x.sum(0), (999, 1000), ["along i0 < 1,000 (W lanes); tiles of 256; 4 t"]),
    "elements": (tg.exp, (1000, 1000), ["along i0 < 1,000,000 (W lanes); 1,000,000 elements for"]),
    "transposed": (
        lambda x: (x.t() + 1).contiguous(), (512, 512),
        ["tiles of 64 x 64; 1 transposed in a buffer; 64 tasks"],
    ),
    "gathered columns": (
        lambda x: tg.softmax(x[ORDER] * SCALE[:, None] + SHIFT[:, None], 0),
        (300, 200),
        ["along i0 < 200 (W lanes); tiles"],
    ),
    "reshaped across": (
        lambda x: x.reshape(-1, 36).flip(1).amax(0), (30, 40, 60), ["along i0 < 36 (W lanes); ti"],
    ),
    "parts": (
        lambda x: tg.cat([x[:, 1:], x[:, :-1] * 2], 1), (500, 700), ["i1 in 2 parts; 500 tasks"],
    ),
    "boxes": (windows, (500, 700), ["i1 in 3 parts; rows in 1 box and the rest; 502 tasks"]),
    "phases": (strided, (4, 4, 64, 64), ["2 phases; rows in 2 boxes"]),
    "chunks": (lambda x: tg.cumsum(x.exp(), 1).log(), (100, 5000), ["scans in chunks of 512; 1"]),
    "scan": (lambda x: tg.cumsum(x, 1), (100, 5000), ["not vectorised; step by step along j0 <"]),
    "one task": (lambda x: x + 1, (8,), ["8 elements on one thread"]),
    "nothing to do": (lambda x: x + 1, (0, 3), []),
    "product": (lambda x: x @ x, (128, 128), ["generated product: float32 128 x 128 x 128 (m x n"]),
    "batch": (lambda x: x @ x, (4, 8, 8), ["float32 4 x 8 x 8 x 8 (batch x m x n x k); "]),
    "vector": (lambda x: x @ x[0], (512, 512), ["BLAS, matrix times vector: float32 512 x 1"]),
    "function": (lambda x: tg.sort(x).values, (9,), [""]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_told_in_a_line(name):
    function, shape, expected = SCHEDULES[name]
    x = tg.randn(shape).requires_grad_(name == "phases")
    found = schedules(function, x)
    for text in expected:
        assert any(text in line for line in found), found
    assert all("\n" not in line for line in found)


# What is told depends on kernels and schedules, of which rows share most.
@pytest.mark.parametrize("case", rotating(COMPILED, 10), ids=ids)
def test_every_operation_is_explained(case):
    report = tg.compile(case.function).explain(*tensors(case.arrays(case.dtypes[0])))
    text = str(report)
    assert report.name in text
    for kernel in report.kernels:
        assert f"{kernel.name} [{kernel.kind}]" in text
        assert bool(kernel.schedule) == (kernel.kind in HAVE_SCHEDULES)


def test_operations_count_where_they_stand():
    """A root of one number is not taken again for every element."""
    scale = tg.tensor(2.0)
    alone = tg.compile(lambda x: x * scale).explain(tg.ones(1000)).flops
    beside = tg.compile(lambda x: x * (scale.sqrt() + 1)).explain(tg.ones(1000)).flops
    assert 1000 == alone < beside < 1100


def test_copies_are_told_of():
    """What cannot be computed in the memory that it replaces is copied there."""
    a, b = tg.zeros(100), tg.ones(100)

    def swap():
        old = a.flip(0)
        a.copy_(b.flip(0))
        b.copy_(old)

    report = tg.compile(swap).explain()
    copies = [kernel for kernel in report.kernels if kernel.kind == "copy"]
    assert copies and all(kernel.bytes == 800 for kernel in copies)
