"""Functions that run as one plan in eager mode on a device: their launches, and their numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from eager_tools import Counted, same, settled, swish
from test_ops import check_values
from tgraph.runtime.cuda import failures
from tgraph.runtime.cuda.direct_plan import DirectPlan

import tgraph as tg
from tgraph.core.context import use_context
from tgraph.core.eager_context import EAGER

pytest_plugins = ["cuda_tools.device"]

F = tg.nn.functional


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def plainly(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives as it is written."""
    with use_context(EAGER):
        return function(*args)


# -- launches --------------------------------------------------------------------------------


def test_a_call_is_one_launch(cuda: Any, counted: Counted) -> None:
    """From the second call on; NVRTC is asked once for all shapes and numbers."""
    texts = []
    for turn, shape in enumerate(((6, 8), (5, 4, 8), (160,), (2, 2))):
        x, there = tg.randn(*shape), tg.randn(*shape).cuda()
        there.copy_(x)
        counted.clear()
        swish(there, 1.0)
        assert counted.kernels == []
        for slope in (1.0, 0.5, -0.0, float("inf")):
            swish(there, slope)
            texts += counted.compiled
            counted.clear()
            found = swish(there, slope)
            assert counted.one_launch(), (turn, vars(counted))
            same(found, swish(x, slope), 32, f"{shape} {slope}")
    assert len(texts) == 1


def test_sizes_that_are_divided_by_compile_once_more(cuda: Any, counted: Counted) -> None:
    texts = []
    for columns in (8, 12, 20, 36):
        x, y = tg.randn(6, columns), tg.randn(columns)
        counted.clear()
        found = settled(swish, x.cuda(), y.cuda())
        texts += counted.compiled
        same(found, swish(x, y), 32, str(columns))
    assert len(texts) == 2


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: x,
    "by columns": lambda x: x.t().contiguous().t(),
    "with gaps": lambda x: x[::2, 1:],
    "expanded": lambda x: x[:, :1].expand(6, 8),
    "with an axis of one": lambda x: x.unsqueeze(1),
    "not aligned": lambda x: x.reshape(-1)[1:],
    "one element": lambda x: x[3, 3],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_and_memory_order(cuda: Any, counted: Counted, name: str) -> None:
    x, layout = tg.randn(6, 8), LAYOUTS[name]
    slope, expected = tg.tensor(1.5).cuda(), plainly(swish, layout(x), 1.5)
    there = layout(x.cuda())
    settled(swish, there, slope)
    counted.clear()
    found = swish(there, slope)
    assert counted.one_launch(), vars(counted)
    same(found, expected, 32, name)
    assert found.stride() == expected.stride()


def test_rows_that_are_not_aligned(cuda: Any, counted: Counted) -> None:
    x = tg.randn(65)
    there = x.cuda()[1:].reshape(4, 16)
    assert there._value.data.ptr % 16
    softmax = lambda x: F.softmax(x, -1)  # noqa: E731
    settled(softmax, there)
    counted.clear()
    found = softmax(there)
    assert counted.one_launch()
    same(found, softmax(x[1:].reshape(4, 16)), 32, "rows")
    there.requires_grad_()
    for _ in range(3):
        (gradient,) = tg.autograd.grad(softmax(there), there, tg.ones(4, 16).cuda())
    assert np.abs(gradient.cpu().numpy()).max() < 1e-6


def test_empty_tensors_run_as_it_is_written(cuda: Any, counted: Counted) -> None:
    assert settled(swish, tg.ones(0, 3).cuda(), 2.0).shape == (0, 3)
    assert counted.kernels == []


def test_tensors_of_the_cpu_without_dimensions_are_numbers(cuda: Any, counted: Counted) -> None:
    for dtype in (tg.float32, tg.bfloat16, tg.int64):
        slope, x = tg.tensor(2, dtype=dtype), tg.randn(7)
        there = x.cuda()
        settled(swish, there, slope)
        counted.clear()
        found = swish(there, slope)
        assert counted.one_launch()
        same(found, swish(x, slope), 32, str(dtype))


def test_random_numbers(cuda: Any, counted: Counted) -> None:
    """Those of eager code; the generator's state goes along with the launch."""
    found, expected = [], []
    x = tg.randn(5, 7).cuda()
    for results, context in ((found, None), (expected, EAGER)):
        tg.manual_seed(7)
        for turn in range(6):
            with use_context(context):
                counted.clear()
                results.append(F.dropout(x, 0.25))
                assert context or turn < 4 or counted.one_launch(), vars(counted)
        results.append(tg.default_generator.counter)
    assert found.pop() == expected.pop()
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(have.cpu().numpy(), want.cpu().numpy())


# -- numbers ---------------------------------------------------------------------------------


def test_numbers_keep_their_kind(cuda: Any) -> None:
    @tg.fused
    def scaled(x: Any, by: Any) -> Any:
        return x * by

    for dtype in (tg.int64, tg.uint8, tg.float16):
        for by in (3, 2.5, True):
            x = tg.arange(5).to(dtype)
            same(settled(scaled, x.cuda(), by), scaled(x, by), 0, f"{dtype} {by}")


def test_arithmetic_of_numbers(cuda: Any, counted: Counted) -> None:
    @tg.fused
    def mixed(x: Any, rate: Any) -> Any:
        return x + (1 - rate) / rate**2, x * abs(-rate)

    x = tg.randn(4)
    there = x.cuda()
    for rate in (0.5, 2.0, 3.5):
        same(mixed(there, rate), plainly(mixed, x, rate), 32, f"{rate}")
    assert len(counted.compiled) == 1 and len(counted.kernels) == 2


RATE = 2.0


def test_numbers_of_globals_and_closures_are_read_anew(cuda: Any, monkeypatch: Any) -> None:
    def made(offset: float) -> Any:
        def moved(x: Any) -> Any:
            return x * RATE + offset

        def change(value: float) -> None:
            nonlocal offset
            offset = value

        return tg.fused(moved), change

    moved, change = made(1.0)
    x = tg.ones(3).cuda()
    assert settled(moved, x).tolist() == [3.0] * 3
    change(5.0)
    assert settled(moved, x).tolist() == [7.0] * 3
    monkeypatch.setattr(sys.modules[__name__], "RATE", 10.0)
    assert settled(moved, x).tolist() == [15.0] * 3


def test_halves_are_rounded_once_and_denormals_kept(cuda: Any) -> None:
    @tg.fused
    def sum_of_three(x: Any, y: Any) -> Any:
        return x + y - x

    for dtype in (tg.float16, tg.bfloat16):
        x, y = tg.tensor([2048.0], dtype=dtype), tg.tensor([0.25], dtype=dtype)
        assert settled(sum_of_three, x.cuda(), y.cuda()).item() == 0.25
    tiny = tg.tensor([1e-40])
    assert settled(tg.fused(lambda x: x * 0.5), tiny.cuda()).item() == (tiny * 0.5).item() > 0


# -- gradients -------------------------------------------------------------------------------


def test_one_step_is_recorded(cuda: Any, counted: Counted) -> None:
    x = tg.randn(4, 3).cuda().requires_grad_()
    slope = tg.tensor(1.5).cuda().requires_grad_()
    y = settled(swish, x, slope)
    assert y.grad_fn.name() == "SwishBackward0"
    cotangent = tg.ones(4, 3).cuda()
    swish(x, slope).backward(cotangent)
    x.grad = slope.grad = None
    counted.clear()
    y.backward(cotangent)
    assert counted.kernels and not counted.operations
    x_here, slope_here = x.detach().cpu().requires_grad_(), tg.tensor(1.5).requires_grad_()
    plainly(swish, x_here, slope_here).backward(tg.ones(4, 3))
    same(x.grad, x_here.grad, 32, "x")
    same(slope.grad, slope_here.grad, 64, "slope")


def test_third_derivatives_through_broadcasting(cuda: Any) -> None:
    def third(x: Any, b: Any) -> Any:
        total = tg.sin(swish(x, b)).sum()
        for _ in range(3):
            gx, gb = tg.autograd.grad(total, (x, b), create_graph=True)
            total = (gx * gx).sum() + (gb * gb * gb).sum()
        return gx, gb

    values = tg.randn(4, 3, dtype=tg.float64), tg.rand(3, dtype=tg.float64)
    here = [each.clone().requires_grad_() for each in values]
    there = [each.cuda().requires_grad_() for each in values]
    same(settled(third, *there), plainly(third, *here), 1e7, "third")


def test_a_saved_value_that_is_overwritten(cuda: Any) -> None:
    x, weight = tg.randn(4, 3).cuda().requires_grad_(), tg.ones(3).cuda().requires_grad_()
    for _ in range(3):
        y = x * 1
        loss = F.layer_norm(y, (3,), weight).sum()
        y.zero_()
        wanted = r"saved by NativeLayerNormBackward0 at .*overwritten at"
        with pytest.raises(RuntimeError, match=wanted):
            loss.backward()


def test_saved_tensors_wait_in_the_memory_of_the_cpu(cuda: Any) -> None:
    @tg.compile
    def compiled(x: Any) -> Any:
        return (x.exp() * x).sin().sum()

    x, kept = tg.rand(4, 3).cuda().requires_grad_(), []
    for function in (lambda x: F.gelu(x.exp()).sum(), compiled):
        hooks = tg.autograd.graph.save_on_cpu(pin_memory=True)
        pack = hooks.pack_hook
        hooks.pack_hook = lambda each, pack=pack: kept.append(pack(each)) or kept[-1]  # type: ignore[func-returns-value, misc]
        with hooks:
            y = function(x)
        assert kept and all(each.is_cpu for _, each in kept)
        (found,), (wanted,) = tg.autograd.grad(y, x), tg.autograd.grad(function(x), x)
        assert found.is_cuda and tg.allclose(found.cpu(), wanted.cpu(), rtol=1e-5)
        kept.clear()


def test_results_that_need_no_gradient(cuda: Any) -> None:
    x, y = tg.ones(3).cuda().requires_grad_(), tg.ones(3).cuda()

    @tg.fused
    def apart(x: Any, y: Any) -> Any:
        return x * 3, y * 3, x > y, (x * y).detach(), x + y

    found = settled(apart, x, y)
    assert [each.requires_grad for each in found] == [True, False, False, False, True]
    found[0].sum().backward()  # the last one gets no cotangent
    assert x.grad.tolist() == [3.0] * 3


def test_a_gradient_for_a_number_of_the_cpu(cuda: Any) -> None:
    for _ in range(3):
        slope = tg.tensor(1.5, requires_grad=True)
        swish(tg.ones(3).cuda(), slope).sum().backward()
        expected = tg.tensor(1.5, requires_grad=True)
        plainly(swish, tg.ones(3), expected).sum().backward()
        assert slope.grad.item() == pytest.approx(expected.grad.item(), rel=1e-5)


# -- composites ------------------------------------------------------------------------------

COMPOSITES: dict[str, tuple[Callable[..., Any], int]] = {  # and launches at most
    "gelu": (lambda x, w: F.gelu(x), 1),
    "softmax": (lambda x, w: F.softmax(x, 1), 1),
    "layer_norm": (lambda x, w: F.layer_norm(x, (16,), w, w * 2), 2),
    "group_norm": (lambda x, w: F.group_norm(x.reshape(2, 4, 8), 2), 1),
    "logsumexp": (lambda x, w: tg.logsumexp(x, 1), 1),
    "var": (lambda x, w: tg.var(x, 0), 1),
    "cross_entropy": (lambda x, w: F.cross_entropy(x, tg.tensor([3, 1, 0, 2]).to(x.device)), 2),
    "mse_loss": (lambda x, w: F.mse_loss(x, x.detach() * w), 3),
    "linear": (lambda x, w: F.linear(x, x.detach(), w[:4]), 1),
    "attention": (lambda x, w: F.scaled_dot_product_attention(x, x, x * w, is_causal=True), 8),
    "max_pool": (lambda x, w: F.max_pool2d(x.reshape(1, 4, 4, 4), 2), 2),
    "cumsum": (lambda x, w: tg.cumsum(x, 1), 1),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites(cuda: Any, counted: Counted, name: str) -> None:
    function, most = COMPOSITES[name]
    x, w = tg.randn(4, 16), tg.rand(16) + 1

    def gradients(x: Any, w: Any) -> Any:
        y = function(x.requires_grad_(), w.requires_grad_())
        options = {"allow_unused": True, "materialize_grads": True}
        return [y, *tg.autograd.grad((y * y).sum(), (x, w), **options)]

    there = x.cuda(), w.cuda()
    expected = plainly(gradients, x, w)
    settled(function, *there)
    counted.clear()
    function(*there)
    assert len(counted.kernels) <= most and not counted.compiled
    found = settled(gradients, *there)
    assert found[0].stride() == expected[0].stride()
    for have, want in zip(found, expected, strict=True):
        check_values(have.detach().cpu().numpy(), want.detach().numpy(), 2048, name)


def test_a_failed_check_is_told_at_once(cuda: Any) -> None:
    """As by operations by themselves; the next call is as if nothing had been."""
    x, good, bad = tg.randn(3, 4), tg.tensor([0, 1, 2]), tg.tensor([0, 1, 7])
    there = x.cuda()
    for _ in range(2):
        expected = settled(F.cross_entropy, there, good.cuda()).item()
        with pytest.raises(IndexError, match="7 is out of bounds") as found:
            F.cross_entropy(there, bad.cuda())
        with pytest.raises(IndexError) as plain:
            plainly(F.cross_entropy, there, bad.cuda())
        assert str(found.value) == str(plain.value)
        assert F.cross_entropy(there, good.cuda()).item() == expected


def test_the_failure_of_a_compiled_function_is_not_lost(cuda: Any) -> None:
    table, x, good = tg.arange(10).cuda(), tg.randn(3, 4).cuda(), tg.tensor([0, 1, 2]).cuda()
    look_up = tg.compile(lambda place: table[place] * 2)
    settled(F.cross_entropy, x, good)
    look_up(tg.tensor([10]).cuda())
    for _ in range(2):
        F.cross_entropy(x, good)
    with pytest.raises(IndexError, match="10 is out of bounds"):
        tg.cuda.synchronize()


def test_nobody_else_is_told_of_a_failed_check(cuda: Any, monkeypatch: Any) -> None:
    x, good, bad = tg.randn(3, 4).cuda(), tg.tensor([0, 1, 2]).cuda(), tg.tensor([0, 1, 7]).cuda()
    settled(F.cross_entropy, x, good)
    wait = DirectPlan._wait

    def late(plan: Any, stream: Any) -> None:
        stream.synchronize()
        failures.report()  # as another thread may do, which has not asked for this
        wait(plan, stream)

    monkeypatch.setattr(DirectPlan, "_wait", late)
    with pytest.raises(IndexError, match="7 is out of bounds"):
        F.cross_entropy(x, bad)


def test_a_plan_keeps_no_memory(cuda: Any) -> None:
    query = tg.randn(1, 2, 200, 8).cuda()
    attend = F.scaled_dot_product_attention
    settled(attend, query, query, query)
    before = tg.cuda.memory_allocated()
    result = attend(query, query, query)
    assert tg.cuda.memory_allocated() - before <= result.numel() * 4 + 512
    del result
    assert tg.cuda.memory_allocated() == before


def test_another_stream(cuda: Any) -> None:
    x, good = tg.randn(3, 4).cuda(), tg.tensor([0, 1, 2]).cuda()
    expected = settled(F.cross_entropy, x, good).item()
    stream = tg.cuda.Stream()
    stream.wait_stream(tg.cuda.current_stream())
    with stream:
        assert F.cross_entropy(x, good).item() == expected
        same(settled(swish, x, 2.0), swish(x.cpu(), 2.0), 32, "there")


# -- what cannot be a plan -------------------------------------------------------------------


def test_a_function_with_a_gradient_of_its_own(cuda: Any) -> None:
    class Doubled(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    @tg.fused
    def doubled(x: Any) -> Any:
        return Doubled.apply(x) + 1

    x = tg.ones(3).cuda()
    assert settled(doubled, x).tolist() == [3.0] * 3
    settled(doubled, x.requires_grad_()).sum().backward()
    assert x.grad.tolist() == [10.0] * 3


captured = tg.tensor(1.0)
UNPLANNABLE: dict[str, Callable[[Any], Any]] = {
    "reads another tensor": lambda x: x + captured,
    "gives its argument": lambda x: x,
    "asks for a value": lambda x: x * 2 if (x > 0).any() else x,
    "computes on the CPU": lambda x: x.cpu() * 2,
    "there and back": lambda x: (x.cpu() * 2).cuda() + x,
    "gives a list": lambda x: [each * 2 for each in x],
}


@pytest.mark.parametrize("name", UNPLANNABLE)
def test_functions_that_cannot_be_plans_run_as_they_are_written(cuda: Any, name: str) -> None:
    x, function = tg.tensor([1.0, -2.0]).cuda(), UNPLANNABLE[name]
    found, expected = settled(tg.fused(function), x), function(x)
    for have, want in zip(found, expected, strict=True):
        assert have.device == want.device and have.tolist() == want.tolist()


def test_errors_are_those_of_eager_code(cuda: Any) -> None:
    x = tg.ones(3).cuda()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="same device"):
            swish(x, tg.ones(3))
        with pytest.raises(RuntimeError, match="4"):
            swish(x, tg.ones(4).cuda())


def test_methods_can_be_fused(cuda: Any) -> None:
    class Layer(tg.nn.Module):
        @tg.fused
        def forward(self, x: Any, scale: float = 2.0) -> Any:
            return x * scale

    layer = Layer()
    same(settled(layer, tg.ones(3).cuda()), tg.ones(3) * 2, 0, "method")
    same(layer(tg.ones(3).cuda(), scale=4.0), tg.ones(3) * 4, 0, "method")


def test_the_second_device(second_cuda: Any) -> None:
    found = settled(swish, tg.ones(3).to(second_cuda), 2.0)
    assert found.device == second_cuda
    same(found, swish(tg.ones(3), 2.0), 32, "there")
