"""Functions marked by `tg.fused`, and what the library marks itself: one kernel on a device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_tools import Counted, compiled_texts, same, swish

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

F = tg.nn.functional


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


# -- operands --------------------------------------------------------------------------------


@tg.fused
def several(x: Any, y: Any) -> Any:
    return {"sum": x + y, "both": (x > y, x.to(tg.float64)), "same": x, "none": None}


def test_strided_and_broadcast_operands(cuda: Any, counted: Counted) -> None:
    x, y = tg.randn(6, 8), tg.randn(8)
    layouts: list[Callable[[Any], Any]] = [
        lambda x: x,
        lambda x: x.t().contiguous().t(),
        lambda x: x[::2, 1:],
        lambda x: x[:, :1].expand(6, 8),
        lambda x: x.unsqueeze(1),
        lambda x: x[:0],
    ]
    for layout in layouts:
        expected = swish(layout(x), layout(x).mean(0) + y[0])
        there = layout(x.cuda())
        slopes = (layout(x).mean(0) + y[0]).cuda()
        counted.clear()
        found = swish(there, slopes)
        assert (counted.kernels, counted.operations) == (["tg_swish"], [])
        same(found, expected, 32, "strided")


def test_numbers_compile_nothing(cuda: Any) -> None:
    x = tg.randn(5).cuda()
    for dtype in (tg.float32, tg.bfloat16, tg.float64):
        swish(x.to(dtype), 1.5)
    count = compiled_texts()
    for slope in (2.0, -1.0, 0.0, float("inf"), np.float64(3.0)):
        same(swish(x, slope), swish(x.cpu(), slope), 32, f"slope {slope}")
    swish(tg.randn(3, 4, 5).cuda(), 7.0)  # another shape
    assert compiled_texts() == count
    same(swish(x, 2), swish(x.cpu(), 2), 32, "an int is another kind of number")
    count = compiled_texts()
    same(swish(x, 3), swish(x.cpu(), 3), 32, "another int")
    assert compiled_texts() == count


def test_numbers_keep_their_kind(cuda: Any) -> None:
    @tg.fused
    def scaled(x: Any, by: Any) -> Any:
        return x * by

    for dtype in (tg.int32, tg.int64, tg.uint8, tg.float16):
        for by in (3, 2.5, True):
            x = tg.arange(5).to(dtype)
            same(scaled(x.cuda(), by), scaled(x, by), 0, f"{dtype} {by}")


def test_arithmetic_of_numbers(cuda: Any) -> None:
    @tg.fused
    def mixed(x: Any, n: Any, rate: Any) -> Any:
        return (
            x + (n * 2 + 1 - n), x * (n / 4), x - (rate * n), x + (3 - n) * rate, x * (n + n),
            x * abs(-n), x + (1 - rate) / (rate**2), x.to(tg.int64) * (n + True),
        )  # fmt: skip

    x, before = tg.randn(4), compiled_texts()
    for n, rate in ((1, 0.5), (-7, 2.0), (3, 3.5)):
        same(mixed(x.cuda(), n, rate), mixed(x, n, rate), 32, f"{n}, {rate}")
    assert compiled_texts() == before + 1


def test_numbers_whose_value_is_asked_for_are_fixed(cuda: Any) -> None:
    @tg.fused
    def choosing(x: Any, power: Any, count: Any) -> Any:
        for _ in range(count):
            x = x + 1
        return x**power if power > 0 else x

    x = tg.rand(5) + 1
    for power, count in ((2.0, 1), (3.0, 0), (-1.0, 2)):
        same(choosing(x.cuda(), power, count), choosing(x, power, count), 32, "chosen")


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
    assert moved(x).tolist() == [3.0] * 3
    change(5.0)
    assert moved(x).tolist() == [7.0] * 3
    monkeypatch.setattr(sys.modules[__name__], "RATE", 10.0)
    assert moved(x).tolist() == [15.0] * 3


def test_tensors_of_the_cpu_without_dimensions_are_numbers(cuda: Any, counted: Counted) -> None:
    for dtype in (tg.float32, tg.bfloat16, tg.int64):
        slope = tg.tensor(2, dtype=dtype)
        x = tg.randn(7)
        there = x.cuda()
        counted.clear()
        found = swish(there, slope)
        assert (counted.kernels, counted.operations) == (["tg_swish"], [])
        same(found, swish(x, slope), 32, str(dtype))


def test_several_results_in_containers(cuda: Any, counted: Counted) -> None:
    x, y = tg.randn(4, 1), tg.randn(3)
    there = x.cuda()
    found, expected = several(there, y.cuda()), several(x, y)
    assert found["same"] is there
    assert found["none"] is None
    same(found["sum"], expected["sum"], 1, "sum")
    same(found["both"], expected["both"], 1, "both")
    assert len(counted.kernels) == 2  # one for each shape


def test_results_without_arguments_to_read(cuda: Any) -> None:
    @tg.fused
    def constants(x: Any) -> Any:
        return tg.ones_like(x) * 2, tg.zeros_like(x, dtype=tg.int64)

    same(constants(tg.rand(2, 3).cuda()), constants(tg.rand(2, 3)), 0, "constants")


def test_halves_are_rounded_once(cuda: Any) -> None:
    @tg.fused
    def sum_of_three(x: Any, y: Any) -> Any:
        return x + y - x

    for dtype in (tg.float16, tg.bfloat16):
        x, y = tg.tensor([2048.0], dtype=dtype), tg.tensor([0.25], dtype=dtype)
        assert sum_of_three(x.cuda(), y.cuda()).item() == 0.25


# -- gradients -------------------------------------------------------------------------------


def test_one_step_is_recorded(cuda: Any, counted: Counted) -> None:
    x = tg.randn(4, 3).cuda().requires_grad_()
    slope = tg.tensor(1.5).cuda().requires_grad_()
    y = swish(x, slope)
    assert y.grad_fn.name() == "SwishBackward0"
    counted.clear()
    y.backward(tg.ones(4, 3).cuda())
    assert counted.kernels == ["tg_swish_backward"]
    x_here, slope_here = x.detach().cpu().requires_grad_(), tg.tensor(1.5).requires_grad_()
    swish(x_here, slope_here).backward(tg.ones(4, 3))
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
    same(third(*there), third(*here), 1e7, "third")


def test_only_what_the_gradient_reads_is_saved(cuda: Any) -> None:
    @tg.fused
    def shifted(x: Any, y: Any) -> Any:
        return x * 2 + y

    x, y = tg.ones(3).cuda().requires_grad_(), tg.ones(3).cuda()
    z = shifted(x, y)
    y.add_(1)  # not read
    z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    slope = tg.ones(3).cuda()
    z = swish(x, slope)
    slope.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*SwishBackward0"):
        z.sum().backward()
    z = swish(x, tg.ones(3).cuda()).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()


def test_results_that_need_no_gradient(cuda: Any) -> None:
    x, y = tg.ones(3).cuda().requires_grad_(), tg.ones(3).cuda()

    @tg.fused
    def apart(x: Any, y: Any) -> Any:
        return x * 3, y * 3, x > y, (x * y).detach(), x + y

    first, second, third, fourth, fifth = apart(x, y)
    flags = [each.requires_grad for each in (first, second, third, fourth, fifth)]
    assert flags == [True, False, False, False, True]
    first.sum().backward()  # the last one gets no cotangent
    assert x.grad.tolist() == [3.0] * 3
    with tg.no_grad():
        assert not apart(x, y)[0].requires_grad


def test_a_function_with_a_gradient_of_its_own_runs_in_parts(cuda: Any, counted: Counted) -> None:
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
    assert doubled(x).tolist() == [3.0] * 3
    assert counted.kernels == ["tg_doubled"]
    doubled(x.requires_grad_()).sum().backward()
    assert x.grad.tolist() == [10.0] * 3


def test_composites_keep_their_gradients(cuda: Any, counted: Counted) -> None:
    """The slope of sigmoid at 0, which its parts do not have."""
    x = tg.zeros(3).cuda().requires_grad_()
    tg.fused(lambda x: tg.sigmoid(x) * 4)(x).sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    for function in (F.gelu, F.silu, tg.sigmoid, F.softplus, F.mish, F.hardswish, F.elu):
        x = tg.randn(5).cuda().requires_grad_()
        counted.clear()
        y = function(x)
        assert (len(counted.kernels), counted.operations) == (1, []), function
        y.backward(tg.ones(5).cuda())
        assert len(counted.kernels) == 2, function


# -- errors ----------------------------------------------------------------------------------

captured = tg.tensor(1.0)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: x.sum(), "uses sum, which is not elementwise"),
        (lambda x: x.reshape(3, 1) + 1, "uses reshape"),
        (lambda x: x[0] * x, "uses slice"),
        (lambda x: tg.exp(x).cumsum(0), "which is not elementwise"),
        (lambda x: x.add_(1), "writes in place"),
        (lambda x: tg.rand_like(x) * x, "random numbers"),
        (lambda x: x + captured, "that is no argument"),
        (lambda x: x * 2 if (x > 1).any() else x, "uses any"),
        (lambda x: [each * 2 for each in x], "a loop over a tensor"),
        (lambda x: x.grad, "the gradient of a tensor"),
    ],
)
def test_what_is_not_elementwise(cuda: Any, function: Any, what: str) -> None:
    with pytest.raises(TypeError, match=rf"(?s){what}.*test_fused\.py:\d+"):
        tg.fused(function)(tg.ones(3).cuda())


def test_other_errors(cuda: Any) -> None:
    x = tg.ones(3).cuda()
    with pytest.raises(RuntimeError, match="same device"):
        swish(x, tg.ones(3))
    with pytest.raises(RuntimeError, match="4"):
        swish(x, tg.ones(4).cuda())
    with pytest.raises(TypeError, match="a number as its result"):
        tg.fused(lambda x, rate: rate * 2)(x, 1.5)
    with pytest.raises(TypeError, match="what can be hashed, not set"):
        tg.fused(lambda x, names: x)(x, {1, 2})


# -- elsewhere -------------------------------------------------------------------------------


def test_on_the_cpu_and_in_traces_it_is_the_function_itself(cuda: Any) -> None:
    x = tg.randn(4)
    for function in (swish, swish.__wrapped__):
        assert str(tg.trace(function, x, 2.0)) == str(tg.trace(swish.__wrapped__, x, 2.0))
        assert tg.equal(function(x, 2.0), swish.__wrapped__(x, 2.0))
    assert tg.fused(lambda x: x.sum())(x).shape == ()
    step = tg.compile(lambda x: swish(x, 2.0) * 2)
    same(step(x.cuda()), swish(x, 2.0) * 2, 32, "compiled")


def test_methods_can_be_fused(cuda: Any) -> None:
    class Layer(tg.nn.Module):
        @tg.fused
        def forward(self, x: Any, scale: float = 2.0) -> Any:
            return x * scale

    layer = Layer()
    same(layer(tg.ones(3).cuda()), tg.ones(3) * 2, 0, "method")
    same(layer(tg.ones(3).cuda(), scale=4.0), tg.ones(3) * 4, 0, "method")


def test_what_lies_on_the_cpu_stays_there(cuda: Any, counted: Counted) -> None:
    @tg.fused
    def apart(x: Any, y: Any) -> Any:
        return x * 2, y * 2

    for y in (tg.ones(3), tg.tensor(1.0)):
        there, here = apart(tg.ones(3).cuda(), y)
        assert (there.device, here.device) == (cuda, tg.device("cpu"))
    slope = tg.tensor(1.5, requires_grad=True)
    swish(tg.ones(3).cuda(), slope).sum().backward()
    expected = tg.tensor(1.5, requires_grad=True)
    swish(tg.ones(3), expected).sum().backward()
    assert slope.grad.item() == pytest.approx(expected.grad.item(), rel=1e-5)


def test_the_second_device(cuda: Any) -> None:
    if tg.cuda.device_count() < 2:
        pytest.skip("this machine has one CUDA device")
    found = swish(tg.ones(3).cuda(1), 2.0)
    assert found.device == tg.device("cuda", 1)
