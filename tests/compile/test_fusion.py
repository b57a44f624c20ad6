"""What becomes one kernel, what does not and for which reason, and where results lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.fusion import fusion, roots
from tgraph.compiler.ir import Builder, Graph, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.kernel.simplify_loops import has_quotients
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.runtime.dtypes import float32

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.tracing import trace

ROWS, WIDTH = 64, 100


@pytest.fixture
def x() -> tg.Tensor:
    return tg.from_numpy(np.random.default_rng(0).standard_normal((ROWS, WIDTH), np.float32))


def compiled(function, *arguments) -> CpuExecutable:
    """The plan of a function that closes over nothing, its results compared with eager ones."""
    executable = compile_graph(trace(function, *arguments))
    found = executable.run([each.numpy() for each in arguments])
    wanted = function(*arguments)
    for have, want in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(have, want.numpy(), rtol=1e-5, atol=1e-5)
    return executable


def reasons(executable: CpuExecutable) -> set[str]:
    return {refusal.reason for refusal in executable.refused}


TARGET = tg.arange(ROWS)
WEIGHTS = tg.ones(WIDTH, WIDTH)
ONE_KERNEL = {
    "softmax": lambda x, w, t: tg.softmax(x, 1),
    "log-softmax and loss": lambda x, w, t: F.cross_entropy(x, t, reduction="none"),
    "layer norm": lambda x, w, t: F.layer_norm(x, (WIDTH,), w[0], w[1]),
    "gather": lambda x, w, t: tg.tanh(tg.gather(x, 1, t.reshape(-1, 1))),
    "index": lambda x, w, t: x[t] * 2 + 1,
    "views": lambda x, w, t: tg.cat([x.t()[1:], F.pad(x.t()[:1], (2, 0))[:, 2:]]).exp(),
    "windows": lambda x, w, t: F.max_pool2d(x.reshape(1, 1, ROWS, WIDTH), 2).abs(),
    "prologue and epilogue": lambda x, w, t: tg.sqrt((x * x + 1).sum(1)) * 3,
    "several results": lambda x, w, t: (tg.sin(x), tg.cos(x), tg.sin(x) * x),
    "a column reduction": lambda x, w, t: tg.exp(x - 1).sum(0),
    "mean and deviation": lambda x, w, t: (x.mean(1), x.std(1), x.amax(1)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name, x):
    assert [info.kind for info in compiled(ONE_KERNEL[name], x, WEIGHTS, TARGET).kernels] == [
        "kernel"
    ]


def test_random_numbers_are_drawn_inside_the_kernel(x):
    executable = compile_graph(trace(lambda x: F.dropout(x, 0.5) * 2, x))
    assert len(executable.kernels) == 1


def test_a_group_is_convex(x):
    """The exponential may not wait for the product that reads it."""
    w = tg.ones(WIDTH, WIDTH)

    def around(x, w):
        y = tg.exp(x)
        return y * 2 + y @ w

    executable = compiled(around, x, w)
    assert [info.name for info in executable.kernels] == ["k0_exp", "matmul", "k2_add"]
    assert "a step that runs on its own stands between them" in reasons(executable)


def test_what_joined_others_waits_for_the_steps_before_them(x):
    """The sum joins the sine that needs the product, and then no more the exponential before."""
    w = tg.ones(WIDTH, WIDTH) / WIDTH

    def around(x, w, y, z):
        return y + z * x, tg.sin((tg.exp(x) @ w) * y * z)

    executable = compiled(around, x, w, x * 2, x + 1)
    assert [info.name for info in executable.kernels] == ["k0_exp", "matmul", "k2_add_sin"]


def test_one_number_is_no_reason_to_become_one_kernel():
    executable = compiled(lambda x, y: y * x.sum(), tg.rand(50), tg.rand(70))
    assert len(executable.kernels) == 2


def test_a_loss_and_its_gradient_read_the_scores_once():
    """What the gradient divides by is not counted together with the loss, which needs the scores.

    To read the scores once saves most, so that is decided first.
    """

    def step(scores, target):
        loss, pullback = tg.vjp(lambda scores: F.cross_entropy(scores, target), scores)
        return loss, pullback(tg.ones(()))[0]

    scores, target = tg.randn(600, 1000), tg.arange(600)
    executable = compiled(step, scores, target)
    (rows,) = [info for info in executable.kernels if scores.shape in _shapes(info.outputs)]
    names = [node.primitive.name for node in rows.nodes]
    assert {"max", "sum", "log"} <= set(names)
    found, wanted = executable.run([scores.numpy(), target.numpy()]), step(scores, target)
    for have, want in zip(found, wanted, strict=True):
        assert tg.allclose(tg.from_numpy(have), want, atol=1e-6)


def _shapes(nodes):
    return [node.shape for node in nodes]


def test_what_neighbours_read_is_computed_once(x):
    """Each step of a stencil would otherwise be computed anew for every neighbour of the next."""

    def longest(count):
        def function(x):
            for _ in range(count):
                inner = x[:-2] + x[2:] - 2 * x[1:-1] + 0.1 * x[1:-1]
                x = tg.cat([x[:1], inner, x[-1:]])
            return x

        kernels = [info.schedule.kernel for info in compiled(function, x).kernels]
        return max(len(list(kernel.instructions())) for kernel in kernels)

    assert longest(6) < 2 * longest(1)


def test_rows_and_columns_of_a_square_stay_apart():
    """One of them would read the matrix in steps of a row."""
    square = tg.randn(60, 60)
    both = compiled(lambda x: (x.mean(0), x.var(0), x.logsumexp(1)), square)
    assert len(both.kernels) == 2
    assert any("different orders" in each for each in reasons(both))
    one = compiled(lambda x: (x.mean(1), x.var(1), x.logsumexp(1)), square)
    assert len(one.kernels) == 1


def test_rows_that_differ_stay_apart(x):
    executable = compiled(lambda x: (x.sum(1), x.sum(0)), x)
    assert len(executable.kernels) == 2 and reasons(executable) == {"their rows differ"}


def test_few_rows_do_not_take_a_long_loop_on_one_thread():
    x = tg.ones(2, 4 * (1 << 15))
    executable = compiled(lambda x: tg.cos(x) * tg.exp(x).sum(1, keepdim=True), x)
    assert [info.name for info in executable.kernels] == ["k0_sum", "k1_sum", "k2_mul"]


def test_masks_are_computed_where_they_are_used():
    """Beside each other at the start they would lie in memory until then."""
    weights = [tg.randn(64, 64) * 0.1 for _ in range(12)]

    def loss(weights, x):
        for each in weights:
            x = F.dropout(tg.tanh(x @ each), 0.5)
        return x.sum()

    step = tg.compile(lambda weights, x: tg.value_and_grad(loss)(weights, x))
    kernels = step.explain(weights, tg.randn(128, 64)).kernels
    drawn = [kernel for kernel in kernels if "random_bits" in kernel.operations]
    assert len(drawn) == len(weights)
    assert all(" x2" not in kernel.operations.partition("random_bits")[2][:3] for kernel in drawn)
    assert all("tanh" in kernel.operations for kernel in drawn)


@pytest.mark.parametrize("function", [tg.softmax, tg.logsumexp, lambda x, dim: x - x.mean(dim)])
def test_a_costly_operand_of_a_column_reduction_is_computed_once(function):
    """Every stage of one kernel would compute it again; rows are kept instead."""
    x = tg.randn(400, 300)
    executable = compiled(lambda x: function(tg.tanh(x), 0), x)
    work = sum(info.flops for info in executable.kernels)
    assert work < 2 * x.numel() * p.tanh.cost + 30 * x.numel()


def test_what_loops_of_one_length_keep_is_not_read_by_those_of_another():
    """The exponential is needed in two loops over `y`, and in one over `z`."""

    def function(x, y, z):
        scale = tg.exp(x)
        scaled = y * scale
        total = scaled.sum(1, keepdim=True)
        return (scaled / total).sin().sum(1, keepdim=True) + z * scale

    executable = compiled(function, tg.rand(64, 1), tg.rand(64, 30), tg.rand(64, 50))
    assert len(executable.kernels) == 1


def test_a_constant_of_two_numbers_is_read_from_memory():
    build = Builder()
    x = input_node("x", TensorType((3, 2), float32))
    pair = build.apply(p.constant, [], {"value": np.float32([1, 2])})
    rows = build.apply(p.broadcast, [pair], {"shape": (3, 2)})
    executable = compile_graph(Graph([x], [build.apply(p.add, [x, rows])]))
    (found,) = executable.run([np.zeros((3, 2), np.float32)])
    assert found.tolist() == [[1, 2]] * 3


def test_a_kernel_has_a_bounded_number_of_results(x):
    executable = compiled(lambda x: tuple(tg.exp(x + n) for n in range(100)), x)
    assert all(len(info.outputs) <= fusion.MAX_ROOTS for info in executable.kernels)
    assert len(executable.kernels) == -(-100 // fusion.MAX_ROOTS)
    assert reasons(executable) == {"the kernel would have too many results"}


def test_a_kernel_has_a_bounded_number_of_operations(x):
    def long(x):
        for number in range(600):
            x = tg.tanh(x * 0.5 + number)
        return x

    executable = compiled(long, x)
    assert len(executable.kernels) > 5
    assert any("more than" in reason for reason in reasons(executable))


def test_caps_only_divide(x, monkeypatch):
    """Whatever the caps, all is computed."""
    for name in ("MAX_VIRTUAL", "MAX_ROOTS", "MAX_READS"):
        monkeypatch.setattr(roots if name == "MAX_VIRTUAL" else fusion, name, 3)
    for function in ONE_KERNEL.values():
        compiled(function, x, WEIGHTS, TARGET)


def test_memory_of_what_is_read_no_more_is_used_again(x):
    def deep(x, w):
        for _ in range(20):
            x = tg.tanh(x @ w)
        return x

    plan = compiled(deep, x, tg.ones(WIDTH, WIDTH)).plan
    assert plan.arena_bytes <= 2 * (4 * ROWS * WIDTH + 64)


def test_memory_of_what_a_step_reads_is_not_used_for_its_result(x):
    w = tg.ones(WIDTH, WIDTH) / WIDTH
    compiled(lambda x, w: (tg.exp(x) @ w) @ w, x, w)


def test_results_are_written_where_they_are_wanted(x):
    """The last step writes into the caller's array: nothing is copied, and no arena is needed."""
    plan = compiled(lambda x, w: (x @ w, tg.exp(x)), x, tg.ones(WIDTH, WIDTH)).plan
    assert plan.arena_bytes == 0 and "copy" not in plan.describe()


# -- threads -----------------------------------------------------------------------------------

SHARED = {
    "elementwise": (lambda x: tg.exp(x) * 2, (400, 700)),
    "rows": (lambda x: tg.softmax(x, 1), (300, 500)),
    "columns": (lambda x: x.sum(0), (3000, 77)),
    "a long sum": (lambda x: x.sum(), (1000, 1001)),
    "few long rows": (lambda x: (x * x).sum(1), (3, 100_000)),
    "transposed": (lambda x: tg.exp(x.t() + 1), (700, 801)),
    "product": (lambda x: x @ x.t(), (200, 300)),
    "wide product": (lambda x: x.t() @ x * 2, (70, 2100)),
    "products": (lambda x: x.view(5, 100, 300) @ x.view(5, 300, 100), (500, 300)),
    "product with a vector": (lambda x: (x @ x[0], x[:, 0] @ x), (1500, 900)),
    "scatter": (lambda x: tg.zeros(10, 300).index_add(0, tg.arange(500) % 10, x), (500, 300)),
    "on the host": (lambda x: tg.sort(x * 2, 1).values.sum(0), (100, 2000)),
}


@pytest.mark.parametrize("name", SHARED)
def test_results_do_not_depend_on_the_number_of_threads(name):
    function, shape = SHARED[name]
    x = tg.from_numpy(np.random.default_rng(1).standard_normal(shape, np.float32))
    plan, before = tg.compile(function), tg.get_num_threads()
    try:
        found = set()
        for count in (1, 2, 3, 7, 2):
            tg.set_num_threads(count)
            result = plan(x)
            parts = result if isinstance(result, tuple) else (result,)
            found.add(b"".join(part.numpy().tobytes() for part in parts))
    finally:
        tg.set_num_threads(before)
    assert len(found) == 1 and len(plan.compiles) == 1


def test_small_loops_stay_on_one_thread():
    """The grain, the least work worth a thread, is above the extent of a small loop."""
    for size, shared in ((1000, False), (1_000_000, True)):
        (step,) = compiled(lambda x: x * 2 + 1, tg.ones(size)).plan.steps
        assert (step.extent > step.grain) == shared


def test_a_group_that_grows_moves_those_behind_it():
    """The positions are read by a write, and by a read of what was computed from that write.

    A kernel that computes both the positions and the read has to run before the write, and cannot;
    it took a merge with a value in between to hide that.
    """

    def function(a, b, c, d, e, at):
        b[1:].mul_(1.42)
        e[at] = e[at] * 0.22
        result = (e @ b).sin()
        c.copy_((c @ b) * 0.1)
        rows = tg.softmax(c.t(), -1)[at]
        a.add_(b * 0.41 + e)
        b.add_(e * 0.21)
        return result, rows

    tg.manual_seed(0)
    tensors = [tg.randn(40, 40) for _ in range(5)]
    at = tg.tensor([3, 0, 17])
    own = [each.clone() for each in tensors]
    expected = function(*own, at)
    found = tg.compile(function)(*tensors, at)
    for have, want in zip((*found, *tensors), (*expected, *own), strict=True):
        assert tg.allclose(have, want, rtol=1e-4, atol=1e-5)


DIVISIONS = {  # and how many kernels
    "padded": (lambda x: F.pad(x, (1, 2)).reshape(-1, 8).flip(1) + 1, 2),
    "transposed": (lambda x: x.mT.reshape(32, -1) * 2, 2),
    "beside a row": (lambda x: (x * x[0]).reshape(32, -1) * 2, 2),
    "alone": (lambda x: (x.exp() * 2 + 1).reshape(32, -1).flip(1) + x.reshape(32, -1), 1),
    "axes taken apart": (lambda x: x.mT.reshape(20, 5, 8, 8) * 2, 1),
    "axes joined": (lambda x: F.pad(x, (1, 2)).reshape(-1) * 2, 1),
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_reshapes_across_axes_do_not_divide(name, x):
    """What would have to divide for every element reads it from memory."""
    function, kernels = DIVISIONS[name]
    executable = compiled(function, x)
    assert len(executable.kernels) == kernels
    schedules = [each.schedule for each in executable.kernels]
    assert not any(has_quotients(schedule.kernel) for schedule in schedules)


def test_what_grows_is_not_stored_to_spare_divisions(x):
    executable = compiled(lambda x: x[:, None].expand(64, 50, 100).reshape(128, -1).amax(1), x)
    assert len(executable.kernels) == 1
