"""explain(measure=True): times of kernels, shares of what is possible, and nothing changed."""

import math

import numpy as np
import pytest
from tgraph.compiler.targets.cpu import machine_speed
from tgraph.compiler.targets.cpu.step_times import repeated, step_times
from tgraph.runtime.plan_steps import ARENA_SLOT, references

import tgraph as tg


def speeds(report):
    found = [kernel.speed for kernel in report.kernels]
    assert found and all(each is not None for each in found)
    return found


def check_report(report):
    """Positive times, a share of the nearer limit, and totals that are those of the kernels."""
    for kernel in report.kernels:
        speed = kernel.speed
        assert 0 < speed.seconds < math.inf
        assert 0 < speed.share < 100 and speed.limit in ("bandwidth", "peak")
        amount = kernel.bytes if speed.limit == "bandwidth" else kernel.flops
        assert speed.share == pytest.approx(amount / speed.seconds / speed.possible)
    assert report.seconds == pytest.approx(sum(kernel.seconds for kernel in report.kernels))
    assert report.seconds == pytest.approx(sum(plan.seconds for plan in report.plans))
    assert report.bytes == sum(kernel.bytes for kernel in report.kernels)
    text = str(report)
    assert text.count("% of bandwidth (") + text.count("% of peak (") == len(report.kernels)


def test_kernels_products_and_functions_are_measured():
    def function(x, w):
        y = tg.softmax(x @ w, dim=-1)
        return y, tg.sort(y.sum(0)).values, tg.sort(y[0].half()).values, tg.cumsum(y, 0)

    report = tg.compile(function).explain(tg.randn(96, 64), tg.randn(64, 80), measure=True)
    check_report(report)
    assert {"gemm", "kernel", "sort", "python"} <= {kernel.kind for kernel in report.kernels}


def test_what_is_not_measured_says_so():
    report = tg.compile(lambda x: x + 1).explain(tg.ones(4))
    assert report.seconds == 0 and report.kernels[0].speed is None
    assert "% of" not in str(report)


def test_both_plans_are_measured():
    w = tg.randn(64, 32, requires_grad=True)
    compiled = tg.compile(lambda x: tg.tanh(x @ w).sum())
    report = compiled.explain(tg.randn(16, 64), measure=True)
    check_report(report)
    assert [plan.title for plan in report.plans] == ["forward", "backward"]
    assert all(plan.seconds > 0 for plan in report.plans)
    assert w.grad is None


def test_measuring_leaves_everything_as_it_is():
    tg.manual_seed(3)
    model = tg.nn.Sequential(tg.nn.Linear(8, 16), tg.nn.Dropout(0.5), tg.nn.Linear(16, 4))
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)
    seen = []
    total = tg.zeros(())

    @tg.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = tg.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total.add_(loss.detach())
        x.mul_(0.5)
        seen.append(1)
        return loss

    x, y = tg.randn(32, 8), tg.arange(32) % 4

    def world():
        tensors = [x, y, total, *model.parameters(), *model.buffers()]
        tensors += [each.grad for each in model.parameters() if each.grad is not None]
        values = [np.array(each.detach().numpy()) for each in tensors]
        values += [
            np.array(value.numpy() if isinstance(value, tg.Tensor) else value)
            for entry in optimizer.state_dict()["state"].values()
            for value in entry.values()
        ]
        versions = [each._version for each in tensors]
        return values, versions, tg.get_rng_state().tolist(), len(seen)

    step(x, y)
    before = world()
    check_report(step.explain(x, y, measure=True))
    after = world()
    assert before[1:] == after[1:]
    for one, other in zip(before[0], after[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(step.compiles) == 1


def test_updates_in_place_start_from_the_same_numbers():
    """After all its runs a step has run once: twice as much, not 2 ** n times."""
    state = tg.ones(4096)
    compiled = tg.compile(lambda: state.mul_(2).add_(1) * 3)
    check_report(compiled.explain(measure=True))
    assert state.tolist() == [1] * 4096
    executable = compiled.latest.function.executable
    array = np.ones(4096, np.float32)
    step_times(executable, [array])
    np.testing.assert_array_equal(array, 3)


def test_steps_do_not_use_the_arena_of_a_plan():
    executable = tg.compile(lambda x: (x @ x).sum(0) @ x).plan_for(tg.ones(8, 8)).function.plain
    plan = executable.plan
    assert plan.arena_bytes
    moved = repeated(plan, plan.steps, np.empty(plan.arena_bytes, np.uint8), 3)
    assert len(moved.steps) == 3 * len(plan.steps)
    for step in moved.steps:
        assert all(ref.slot != ARENA_SLOT for ref in references(step))


def test_strided_arguments_and_empty_results():
    x = tg.randn(64, 48).t()
    report = tg.compile(lambda x, e: (x * 2, e + 1, x[:, :0].exp())).explain(
        x, tg.zeros(0, 3), measure=True
    )
    assert report.seconds > 0
    assert all(speed.seconds >= 0 for speed in speeds(report))


def test_what_a_call_raises_is_raised():
    rows = tg.compile(lambda x, i: x[i] * 2)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        rows.explain(tg.ones(4, 4), tg.tensor([0, 9]), measure=True)


def test_several_plans_of_one_function():
    compiled = tg.compile(lambda x: (x * 2).sum())
    check_report(compiled.explain(tg.ones(8, 8), measure=True))
    check_report(compiled.explain(tg.ones(64), measure=True))
    assert len(compiled.compiles) == 2


def test_the_machine_is_measured_once(monkeypatch):
    first = machine_speed.bandwidth(1 << 16), machine_speed.peak("float32")
    monkeypatch.setattr(machine_speed, "_best", None)
    assert (machine_speed.bandwidth(1 << 16), machine_speed.peak("float32")) == first
    assert min(first) > 0
