"""Compiled functions on a CUDA device: here one that is the host (see `cuda_tools.fake_device`)."""

from __future__ import annotations

import gc
import threading
import traceback

import numpy as np
import pytest
from cuda_tools import fake_cupy, shim
from cuda_tools.fake_device import installed
from sampling import rotating
from test_ops import (
    COMPILED,
    SMOOTH,
    Gradients,
    as_tuple,
    check_values,
    ids,
    tensors,
)
from tgraph.compiler.placement import PlacedExecutable
from tgraph.runtime.cuda import backend, failures

import tgraph as tg
from tgraph import nn
from tgraph.compiled.compile import compile as compiled

F = tg.nn.functional
# Units of the dtype's spacing: CUDA's float functions are allowed two more than ours.
SLACK = 16
CALLS = 3  # launched, captured, replayed


@pytest.fixture(params=[pytest.param("at_once", marks=pytest.mark.slow), "late"])
def cuda(request):
    """The machine's own device, or one that works at once, or as late as CUDA allows.

    A step that does not wait shows where work is late; at once is what the long form has besides.
    """
    if backend.why_unavailable() is None:
        if request.param == "at_once":
            pytest.skip("a real device works when it likes")
        yield
        return
    if shim.available() is not None:
        pytest.skip(shim.available())
    with installed(lazy=request.param == "late"):
        yield


def on_device(x):
    return x.detach().cuda().requires_grad_(x.requires_grad)


def executable_of(function):
    """The one executable of a compiled function without gradients."""
    return plans_of(function)[0].function.executable


def plans_of(function):
    """The plans of a compiled function, the last used first."""
    return [plan for plans in function._plans.values() for plan in plans]


def same(found, expected, tolerance, what):
    assert found.device == tg.device("cuda:0"), what
    check_values(found.detach().cpu().numpy(), expected.detach().numpy(), tolerance, what)


# -- every operation -------------------------------------------------------------------------

DERIVED = [case for case in SMOOTH if case.compiles]


@pytest.mark.slow
@pytest.mark.parametrize("cuda", ["late"], indirect=True)
# Some rows: kernels of more of them run in test_operations.py.
@pytest.mark.parametrize("case", rotating(COMPILED, 6), ids=ids)
def test_forward(cuda, case):
    inputs = tensors(case.arrays(case.dtypes[0]))
    expected = as_tuple(case.function(*inputs))
    function = compiled(case.function)
    for _ in range(CALLS):
        found = as_tuple(function(*map(on_device, inputs)))
        for have, want in zip(found, expected, strict=True):
            same(have, want, case.tolerance + SLACK, case.name)


@pytest.mark.slow
@pytest.mark.parametrize("cuda", ["late"], indirect=True)
@pytest.mark.parametrize(
    "case", rotating([case for case in SMOOTH if case.compiles][1:], 6), ids=ids
)
def test_gradient(cuda, case):
    """Differentiated inside a compiled function."""
    row = Gradients(case)
    expected = row.first(*row.arguments())

    def first(*arguments):
        points, cotangents = arguments[: len(row.points)], arguments[len(row.points) :]
        inputs = [tg.from_numpy(np.array(each)).cuda() for each in row.inputs]
        for at, point in zip(row.moving, points, strict=True):
            inputs[at] = point
        results = as_tuple(case.function(*inputs))
        floats = tuple(each for each in results if each.dtype is tg.float64)
        return tg.autograd.grad(floats, points, cotangents, materialize_grads=True)

    function = compiled(first)
    for _ in range(CALLS):
        found = function(*map(on_device, row.arguments()))
        for have, want in zip(found, expected, strict=True):
            same(have, want, 1e6, case.name)


# -- plans -----------------------------------------------------------------------------------


def normalised(x, y):
    return tg.softmax(x * 2 + y, -1), (x * y).sum(0)


def test_a_plan_is_launched_then_captured_then_replayed(cuda):
    function = compiled(normalised)
    x, y = tg.randn(4, 8), tg.randn(4, 8)
    there = on_device(x), on_device(y)
    held = []
    for _ in range(5):
        held = [each.cpu() for each in function(*there)]  # the outputs' memory is free again
    for have, want in zip(held, normalised(x, y), strict=True):
        check_values(have.numpy(), want.numpy(), 32, "replayed")
    (frame,) = executable_of(function).executables[0].plan._frames.values()
    assert any(frame.graphs.values())


def test_results_keep_their_values_and_may_be_inputs_again(cuda):
    double = compiled(lambda x: x * 2)
    x = tg.ones(100).cuda()
    first = double(x)
    results = [first]
    for _ in range(6):
        results.append(double(results[-1]))
    assert [each[0].item() for each in results] == [2.0 ** (n + 1) for n in range(7)]


def test_gradients_accumulate_over_calls(cuda):
    w = tg.ones(3).cuda().requires_grad_()
    step = compiled(lambda x: ((w * x).sum()).backward())
    for _ in range(4):
        step(tg.tensor([1.0, 2.0, 3.0]).cuda())
    assert w.grad.tolist() == [4.0, 8.0, 12.0]


def test_backward_through_a_compiled_function(cuda):
    def layer(x, w):
        return tg.softmax(tg.relu(x @ w), -1).square().sum()

    x, w = tg.randn(5, 4), tg.randn(4, 6)
    expected = [each.requires_grad_() for each in (x.clone(), w.clone())]
    layer(*expected).backward()
    function = compiled(layer)
    for _ in range(CALLS):
        found = [on_device(each).requires_grad_() for each in (x, w)]
        function(*found).backward()
        for have, want in zip(found, expected, strict=True):
            same(have.grad, want.grad, 64, "gradient")


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_training_step_is_one_plan(cuda, name):
    """With dropout, a rate that changes, and targets that are checked."""

    def trained(device, decorate):
        tg.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.5),
                              nn.Linear(16, 4)).to(device)  # fmt: skip
        optimizer = getattr(tg.optim, name)(model.parameters(), lr=1e-2)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = decorate(step)
        rng = np.random.default_rng(0)
        x = tg.from_numpy(rng.standard_normal((32, 8)).astype(np.float32)).to(device)
        y = tg.from_numpy(rng.integers(0, 4, 32)).to(device)
        losses = []
        for count in range(6):
            if count == 3:
                optimizer.param_groups[0]["lr"] = 5e-3
            losses.append(step(x, y).item())
        return losses, [each.detach().cpu().numpy() for each in model.parameters()], step

    eager, parameters, _ = trained("cpu", lambda step: step)
    losses, found, step = trained("cuda", compiled)
    np.testing.assert_allclose(losses, eager, rtol=1e-5)
    for have, want in zip(found, parameters, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-6)
    executables = [call.function.executable for call in plans_of(step)]
    assert all(len(each.segments) == 1 for each in executables)
    (frame,) = executables[-1].executables[0].plan._frames.values()
    assert any(frame.graphs.values())


def test_parameters_are_updated_in_place(cuda):
    w = tg.ones(64, 64).cuda()
    step = compiled(lambda g: w.sub_(g * 0.5))
    address = w._value.data.ptr
    for _ in range(CALLS):
        step(tg.ones(64, 64).cuda())
    assert w._value.data.ptr == address
    assert w[0, 0].item() == -0.5
    (step_,) = executable_of(step).executables[0].plan.steps
    assert len(step_.args) == 2  # the gradient, and what is read and written


# -- what goes in ----------------------------------------------------------------------------


def test_views_that_begin_anywhere(cuda):
    """Kernels load vectors of 16 bytes: what begins elsewhere is copied."""
    whole = tg.arange(65).float()
    there = whole.cuda()
    function = compiled(lambda x: x * 2 + 1)
    for first in (0, 1, 3):
        same(function(there[first : first + 60]), whole[first : first + 60] * 2 + 1, 0, str(first))


def test_a_view_that_begins_anywhere_is_written(cuda):
    whole = tg.zeros(33).cuda()
    function = compiled(lambda x: x.add_(1))
    for _ in range(CALLS):
        function(whole[1:33])
    assert whole.tolist() == [0.0] + [3.0] * 32


@pytest.mark.parametrize("layout", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[:, 3:]])
def test_strided_arguments(cuda, layout):
    x = tg.randn(12, 16)
    function = compiled(lambda x: (tg.softmax(x, -1), x.sum(0), x @ x.t()))
    for _ in range(CALLS):
        for have, want in zip(function(layout(x.cuda())), function(layout(x)), strict=True):
            same(have, want, 64, "strided")


def test_numbers_of_the_host_are_fed_anew(cuda):
    function = compiled(lambda x, rate: x * rate + rate**2)
    x = tg.ones(4)
    for rate in (1.0, 2.0, 3.0, 4.0, 5.0):
        same(function(x.cuda(), rate), x * rate + rate**2, 8, f"rate {rate}")
    assert len(executable_of(function).segments) == 1


def test_random_numbers_are_those_of_the_cpu(cuda):
    def noise(x):
        return F.dropout(x, 0.3) + tg.rand(5, 7, device=x.device)

    def also_here(x):
        return noise(x) + tg.rand(7).to(x.device) + tg.rand(7, device=x.device)

    for drawn, devices in ((noise, ["cuda:0"]), (also_here, ["cpu", "cuda:0", "cuda:0"])):
        function = compiled(drawn)
        tg.manual_seed(3)
        expected = [drawn(tg.ones(5, 7)) for _ in range(4)]
        tg.manual_seed(3)
        for want in expected:
            same(function(tg.ones(5, 7).cuda()), want, 8, "random")
        found = executable_of(function)
        assert [str(each.device) for each in found.segments] == devices
        # All counters are made of the state that the call began with, where they are needed.
        sources = [node for each in found.segments for node in each.sources]
        read = [node for node in sources if found.inputs[1] in (node, *node.inputs)]
        assert len(read) == len(set(devices)) and not any(node.shape == () for node in sources)


def test_small_tensors_of_the_host_inside(cuda):
    table = tg.arange(5).float()  # captured, on the CPU
    function = compiled(lambda x: x + table.cuda())
    for count in range(4):
        table.fill_(count)
        assert function(tg.zeros(5).cuda()).tolist() == [count] * 5


# -- several devices -------------------------------------------------------------------------


def test_work_on_the_host_and_on_two_devices(cuda):
    if tg.cuda.device_count() < 2:
        pytest.skip("this machine has one CUDA device")

    def function(x):
        y = x.exp()  # on the host
        z = (y.cuda(0) * 2).sum(0)
        u = z.cuda(1) + 1
        return y, z, u, (u.cpu() + y).sin()

    x = tg.randn(6, 3)
    placed = compiled(function)
    for _ in range(CALLS):
        found, expected = placed(x), function(x)
        assert [each.device for each in found] == [each.device for each in expected]
        for have, want in zip(found, expected, strict=True):
            check_values(have.cpu().numpy(), want.cpu().numpy(), 32, "placed")
    assert isinstance(executable_of(placed), PlacedExecutable)
    assert [str(each.device) for each in executable_of(placed).segments] == [
        "cpu", "cuda:0", "cuda:1", "cpu",
    ]  # fmt: skip


def test_a_tensor_of_the_host_takes_a_result_of_the_device(cuda):
    total = tg.zeros(3)
    function = compiled(lambda x: total.add_((x * 2).cpu()))
    for _ in range(CALLS):
        function(tg.ones(3).cuda())
    assert total.tolist() == [6.0, 6.0, 6.0]


# -- checks ----------------------------------------------------------------------------------


def test_a_position_outside_is_an_error_with_the_line(cuda):
    table = tg.randn(10, 4).cuda()
    look_up = compiled(lambda at: table[at] * 2)
    good, bad = tg.tensor([1, 9]).cuda(), tg.tensor([1, 10]).cuda()
    for _ in range(CALLS):
        look_up(good)
    result = look_up(bad)
    with pytest.raises(IndexError, match=r"index 10 is out of bounds.*size 10[^$]*test_compiled"):
        result.cpu()
    assert look_up(good).shape == (2, 4)  # told once
    tg.cuda.synchronize()


def test_a_failed_check_is_told_by_synchronize_and_by_the_next_call(cuda):
    table = tg.randn(10, 4).cuda()
    look_up = compiled(lambda at: table[at] * 2)
    bad = tg.tensor([-11]).cuda()
    look_up(bad)
    with pytest.raises(IndexError):
        tg.cuda.synchronize()
    look_up(bad)
    backend.cupy().cuda.Device(0).synchronize()  # which knows nothing of checks
    with pytest.raises(IndexError):
        look_up(bad)


def test_nothing_is_overwritten_after_a_failed_check(cuda):
    table = tg.ones(10, 4).cuda()
    seen = tg.zeros(4).cuda()

    @compiled
    def step(at):
        rows = table[at]
        table.mul_(2)
        seen.add_(rows.sum(0))
        return rows

    good, bad = tg.tensor([1, 2]).cuda(), tg.tensor([1, 12]).cuda()
    step(good)
    step(bad)
    with pytest.raises(IndexError):
        tg.cuda.synchronize()
    assert table[0, 0].item() == 2.0
    assert seen.tolist() == [2.0] * 4
    for _ in range(CALLS):
        step(good)
    assert table[0, 0].item() == 16.0


@pytest.mark.parametrize("before", range(CALLS))
def test_calls_behind_a_reported_failure_overwrite_again(cuda, before):
    """On a stream that does not wait for the default one; launched, captured and replayed."""
    stream = tg.cuda.Stream()
    with stream:
        table, seen = tg.ones(10, 4).cuda(), tg.zeros(4).cuda()
        good, bad = tg.tensor([1, 2]).cuda(), tg.tensor([1, 12]).cuda()

        @compiled
        def step(at):
            seen.add_(table[at].sum(0))

        for _ in range(before):
            step(good)
        step(bad)
        with pytest.raises(IndexError):
            step(good)  # of which nothing is left
            stream.synchronize()
        for count in range(1, CALLS + 1):
            step(good)
            assert seen.tolist() == [2.0 * (before + count)] * 4


def test_nobody_waits_for_a_plan_to_begin(cuda):
    """Neither for its status, when it is new, nor after a failure."""
    if backend.cupy() is not fake_cupy.cupy:
        pytest.skip("a GPU does not count how often it is waited for")
    table, bad, good = tg.randn(10, 4).cuda(), tg.tensor([12]).cuda(), tg.tensor([1]).cuda()
    look_up = compiled(lambda at: table[at] * 2)
    tg.cuda.synchronize()
    waits = fake_cupy.machine.sync_count
    look_up(bad)
    assert fake_cupy.machine.sync_count == waits
    with pytest.raises(IndexError):
        tg.cuda.synchronize()
    waits = fake_cupy.machine.sync_count
    look_up(good)
    assert fake_cupy.machine.sync_count == waits
    tg.cuda.synchronize()


# -- memory ----------------------------------------------------------------------------------


def test_no_memory_is_left(cuda):
    def run():
        function = compiled(normalised)
        for _ in range(5):
            function(tg.randn(64, 64).cuda(), tg.randn(64, 64).cuda())
        del function
        gc.collect()
        tg.cuda.synchronize()

    run()
    before = tg.cuda.memory_allocated()
    for _ in range(3):
        run()
    assert tg.cuda.memory_allocated() == before


def test_recompiles_for_another_device(cuda):
    function = compiled(lambda x: x + 1)
    assert function(tg.ones(2)).device == tg.device("cpu")
    assert function(tg.ones(2).cuda()).device == tg.device("cuda:0")
    if tg.cuda.device_count() > 1:
        assert function(tg.ones(2).cuda(1)).device == tg.device("cuda:1")
    assert "new device of argument `x`" in function.compiles[1].reason


@pytest.mark.parametrize("shape", [(7, 5), (300, 33), (4, 2000), (3000, 4)])
def test_reductions_update_in_place(cuda, shape):
    """A mean and a sum over each axis, written over what one thread alone has read."""
    rows, columns = tg.ones(shape[0]).cuda(), tg.ones(shape[1]).cuda()
    mean = tg.zeros(*shape).cuda()

    @compiled
    def step(x):
        rows.mul_(0.5).add_(x.sum(1))
        columns.sub_(x.mean(0) * columns)
        mean.mul_(0.9).add_(tg.softmax(x, -1) * 0.1)

    x = tg.randn(*shape)
    want = [np.ones(shape[0]), np.ones(shape[1]), np.zeros(shape)]
    for _ in range(CALLS):
        step(x.cuda())
        want[0] = want[0] * 0.5 + x.sum(1).numpy()
        want[1] = want[1] - x.mean(0).numpy() * want[1]
        want[2] = want[2] * 0.9 + tg.softmax(x, -1).numpy() * 0.1
    for have, expected in zip((rows, columns, mean), want, strict=True):
        np.testing.assert_allclose(have.cpu().numpy(), expected, rtol=1e-3, atol=1e-4)
    steps = executable_of(step).executables[0].plan.steps
    assert sum("copy" in each.name for each in steps) <= 1


# -- what a review found ---------------------------------------------------------------------


def test_two_tensors_change_places_across_devices(cuda):
    x, y = tg.ones(3), tg.zeros(3).cuda()

    @compiled
    def swap():
        kept = x.cuda()
        x.copy_(y)
        y.copy_(kept)

    swap()
    assert x.tolist() == [0.0] * 3 and y.tolist() == [1.0] * 3
    swap()
    assert x.tolist() == [1.0] * 3 and y.tolist() == [0.0] * 3


def test_a_copy_by_way_of_the_host_keeps_the_old_value(cuda):
    x = tg.ones(3).cuda()

    @compiled
    def step():
        before = x.cpu().cuda()
        x.add_(1)
        return before

    for count in range(CALLS):
        assert step().tolist() == [count + 1.0] * 3
    assert x.tolist() == [4.0] * 3


def test_a_failure_outlives_its_plan(cuda):
    table, bad = tg.randn(4, 2).cuda(), tg.tensor([9]).cuda()
    compiled(lambda at: table[at] * 2)(bad)
    gc.collect()
    tg.cuda.empty_cache()
    with pytest.raises(IndexError, match="index 9"):
        tg.cuda.synchronize()
    tg.cuda.synchronize()


def test_every_failure_is_told(cuda, monkeypatch):
    table = tg.randn(4, 2).cuda()
    first, second = compiled(lambda at: table[at] * 2), compiled(lambda at: table[at].sum())
    seven, eight = tg.tensor([7]).cuda(), tg.tensor([8]).cuda()
    with monkeypatch.context() as patch:  # as if the host had not yet heard of the first
        patch.setattr(failures, "report", lambda: None)
        first(seven)
        second(eight)
    told = []
    for _ in range(2):
        with pytest.raises(IndexError) as caught:
            tg.cuda.synchronize()
        told.append(str(caught.value)[:7])
    assert told == ["index 7", "index 8"]


def test_nothing_of_the_host_is_overwritten_either(cuda):
    table, count = tg.ones(4, 2).cuda(), tg.zeros(1)

    @compiled
    def step(at):
        count.add_(1)
        rows = table[at].sum().cpu()
        table.mul_(2)
        return rows

    step(tg.tensor([1]).cuda())
    with pytest.raises(IndexError):
        step(tg.tensor([5]).cuda()).item()
    tg.cuda.synchronize()
    assert count.item() == 1.0 and table[0, 0].item() == 2.0


def test_read_only_memory_of_the_host_is_not_overwritten(cuda):
    """Nor is anything else, before the eager code that tells of it."""
    there = tg.ones(3).cuda()
    function = tg.compile(lambda here, x: (there.add_(x), here.copy_(x.cpu())))
    function(tg.zeros(3), tg.ones(3).cuda())
    array = np.frombuffer(bytes(np.zeros(3, np.float32)), np.float32)
    with pytest.raises(RuntimeError, match="read-only"):
        function(tg.from_numpy(array), tg.ones(3).cuda())
    assert there.tolist() == [3.0] * 3 and array.tolist() == [0.0] * 3


def test_values_made_once_are_there_for_every_stream(cuda):
    x = tg.ones(1000).cuda()
    with tg.cuda.Stream():
        x * 3.25
    assert (x * 3.25)[0].item() == 3.25
    rows = [[1.0, 5.0, 2.0]] * 3
    function = compiled(lambda x: x + tg.tensor(rows, device="cuda"))
    with tg.cuda.Stream():
        function(tg.zeros(3, 3).cuda())
    assert function(tg.zeros(3, 3).cuda()).tolist() == rows
    tg.cuda.synchronize()  # before the memory goes that the other streams read


def test_results_that_are_kept_do_not_keep_graphs_from_being_used(cuda):
    """As in a training loop that collects its losses: each has an address of its own."""
    w = tg.ones(64, 64).cuda()

    @compiled
    def step(x):
        w.mul_(0.5)
        return (w * x).sum(), x.mean(0)

    x = tg.ones(64, 64).cuda()
    losses = [step(x) for _ in range(6)]
    wanted = [64 * 64 * 0.5 ** (count + 1) for count in range(6)]
    assert [loss.item() for loss, _ in losses] == wanted
    assert all(mean.tolist() == [1.0] * 64 for _, mean in losses)
    (frame,) = executable_of(step).executables[0].plan._frames.values()
    assert len(frame.graphs) == 1 and all(frame.graphs.values())


def test_a_buffer_that_is_only_written(cuda):
    buffer = tg.zeros(4, 4).cuda()
    step = compiled(lambda x: buffer.copy_(x * 2))
    address = buffer._value.data.ptr
    for count in range(CALLS):
        step(tg.full((4, 4), float(count)).cuda())
        assert buffer._value.data.ptr == address and buffer[0, 0].item() == 2 * count
    assert len(executable_of(step).executables[0].plan.steps) == 1


def test_a_plan_keeps_memory_for_some_streams_only(cuda):
    function = compiled(normalised)
    x, y = tg.randn(4, 8).cuda(), tg.randn(4, 8).cuda()
    function(x, y)
    streams = [tg.cuda.Stream() for _ in range(12)]
    for stream in streams:
        with stream:
            held = function(x, y)
        stream.synchronize()
        del held
    assert len(executable_of(function).executables[0].plan._frames) == 8


def test_one_value_twice_on_another_device(cuda):
    if tg.cuda.device_count() < 2:
        pytest.skip("this machine has one CUDA device")
    function = compiled(lambda x: (x + 1, x + 1), check=True)
    for _ in range(CALLS):
        found = function(tg.zeros(3).cuda(1))
        for each in found:
            assert each._value.device.id == 1 and each.tolist() == [1.0] * 3


def test_check_leaves_no_failure_behind(cuda):
    table = tg.randn(4, 2).cuda()
    function = compiled(lambda at: table[at] * 2, check=True)
    function(tg.tensor([1]).cuda())
    with pytest.raises(IndexError):
        function(tg.tensor([6]).cuda())
    function(tg.tensor([1]).cuda())


def test_threads_may_capture_at_once(cuda):
    # Captures of the runtime are relaxed: other threads may allocate meanwhile.
    fake_cupy.machine.strict_capture = False
    functions = [compiled(lambda x, k=k: (x * k + 1).sum()) for k in range(4)]
    wrong = []

    def run(k):
        try:
            for _ in range(6):
                found = functions[k](tg.ones(32).cuda()).item()
                if found != 32 * (k + 1):
                    wrong.append((k, found))
        except Exception:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_optimizer_takes_its_state_along(cuda):
    def trained(device, state=None):
        tg.manual_seed(0)
        layer = nn.Linear(3, 2).to(device)
        optimizer = tg.optim.AdamW(layer.parameters(), lr=0.1)
        if state is not None:
            optimizer.load_state_dict(state)
        for _ in range(2):
            optimizer.zero_grad()
            layer(tg.ones(4, 3).to(device)).square().sum().backward()
            optimizer.step()
        return layer, optimizer

    _, optimizer = trained("cpu")
    expected, _ = trained("cpu", optimizer.state_dict())
    found, _ = trained("cuda", optimizer.state_dict())
    np.testing.assert_allclose(
        found.weight.detach().cpu().numpy(), expected.weight.detach().numpy(), rtol=1e-5
    )


def test_a_transpose_that_overwrites_behind_a_check(cuda):
    w, y = tg.zeros(96, 96).cuda(), tg.rand(96, 96).cuda()

    @compiled
    def step(at):
        total = y[at].sum() + w[at].sum()
        w.copy_(y.t())
        return total

    for count in range(CALLS):
        step(tg.tensor([count]).cuda()).item()
    assert bool((w == y.t()).all())


def test_batches_of_nothing(cuda):
    layer = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).cuda()
    function = compiled(lambda x: (layer(x), x.sum(0) + 1, x.prod()))
    outputs, total, product = function(tg.zeros(0, 3).cuda())
    assert outputs.shape == (0, 2) and outputs.is_cuda
    assert total.tolist() == [1.0] * 3 and product.item() == 1.0


def test_kernels_and_products_are_explained_but_not_measured(cuda):
    function = compiled(lambda x, w: tg.softmax(x @ w, dim=-1))
    x, w = tg.ones(8, 16).cuda(), tg.ones(16, 4).cuda()
    kinds = {kernel.kind: kernel.schedule for kernel in function.explain(x, w).kernels}
    assert kinds["gemm"] == "cuBLAS float32 8 x 4 x 16 (m x n x k)"
    assert "blocks of" in kinds["kernel"]
    with pytest.raises(NotImplementedError, match=r"on the CPU only.*explain\(\)"):
        function.explain(x, w, measure=True)
