"""Functions marked by `tg.fused`, and what the library marks itself: one kernel on a device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from opcase import OpCase
from opcases import CASES
from test_ops import Gradients, as_tuple, check_values, tensors
from tgraph.compiler.codegen import cuda_elementwise
from tgraph.runtime.cuda import backend, elementwise, nvrtc
from tgraph.runtime.device import Device

import tgraph as tg
from tgraph import dispatch, pytree
from tgraph.fused import Fused, fused_update
from tgraph.tensor import intern_type

pytest_plugins = ["cuda_tools.device"]

F = tg.nn.functional
SLACK = 16  # units of the dtype's spacing, as for eager code on a device
# A weight for each channel is a view of another shape.
ROWS = [case for case in CASES if case.elementwise and case.name != "prelu"]
PER_KERNEL = 10
CHUNKS = [ROWS[at : at + PER_KERNEL] for at in range(0, len(ROWS), PER_KERNEL)]


class Counted:
    """What ran on the device: kernels of fused functions, and operations by themselves."""

    def __init__(self, monkeypatch: Any) -> None:
        self.kernels: list[str] = []
        self.texts: list[elementwise.Text] = []
        self.operations: list[str] = []
        launch, evaluate = elementwise.launch, dispatch._evaluate_on_device

        def launched(text: Any, *args: Any, **kwargs: Any) -> None:
            self.kernels.append(text.name)
            self.texts.append(text)
            launch(text, *args, **kwargs)

        def evaluated(primitive: Any, tensors: Any, attrs: Any) -> Any:
            self.operations.append(primitive.name)
            return evaluate(primitive, tensors, attrs)

        monkeypatch.setattr(elementwise, "launch", launched)
        monkeypatch.setattr(dispatch, "_evaluate_on_device", evaluated)

    def clear(self) -> None:
        self.kernels.clear()
        self.operations.clear()


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def compiled_texts() -> int:
    """How many kernels there are."""
    return sum(key[0] == "elementwise" for key in backend.kept() if isinstance(key, tuple))


def same(found: Any, expected: Any, tolerance: float, what: str) -> None:
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected), what
    for have, want in zip(found, expected, strict=True):
        assert have.device.type == "cuda", what
        assert (have.dtype, have.shape) == (want.dtype, want.shape), what
        check_values(have.detach().cpu().numpy(), want.detach().numpy(), tolerance, what)


# -- every elementwise operation -------------------------------------------------------------


def chunk_id(chunk: Sequence[OpCase]) -> str:
    return chunk[0].name.replace(" ", "_")


def all_of(cases: Sequence[OpCase]) -> Callable[..., Any]:
    """One function that does what all the rows do."""

    def rows(inputs: Sequence[Sequence[Any]]) -> list[Any]:
        return [case.function(*each) for case, each in zip(cases, inputs, strict=True)]

    return rows


@pytest.mark.parametrize("kind", ["first", "last", "float16", "bfloat16"])
@pytest.mark.parametrize("chunk", CHUNKS, ids=chunk_id)
def test_every_row(cuda: Any, counted: Counted, chunk: Sequence[OpCase], kind: str) -> None:
    picked = {"first": 0, "last": -1}
    if kind in picked:
        pairs = [(case, case.dtypes[picked[kind]]) for case in chunk]
    else:
        half = getattr(tg, kind)
        pairs = [(case, half) for case in chunk if half in case.dtypes]
    if not pairs:
        return
    cases = [case for case, _ in pairs]
    inputs = [tensors(case.arrays(dtype)) for case, dtype in pairs]
    there = [[each.to(cuda) for each in row] for row in inputs]
    counted.clear()
    found = tg.fused(all_of(cases))(there)
    assert counted.operations == []
    for case, have, want in zip(cases, found, all_of(cases)(inputs), strict=True):
        same(have, want, case.tolerance + SLACK, case.name)


SMOOTH = [
    [case for case in chunk if case.gradient and case.second]
    for chunk in CHUNKS
    if any(case.gradient and case.second for case in chunk)
]


@pytest.mark.parametrize("chunk", SMOOTH, ids=chunk_id)
def test_gradients_of_every_row(cuda: Any, counted: Counted, chunk: Sequence[OpCase]) -> None:
    """The first and the second, each by one kernel for each shape of results."""
    rows = [Gradients(case) for case in chunk]

    def gradients(function: Callable[..., Any], device: Any) -> list[Any]:
        inputs, points, cotangents = [], [], []
        for row in rows:
            given = [each.to(device) for each in tensors(row.inputs)]
            for at in row.moving:
                points.append(given[at].requires_grad_())
            inputs.append(given)
            cotangents += [each.to(device) for each in tensors(row.cotangents)]
        results = [
            each
            for result in function(inputs)
            for each in as_tuple(result)
            if each.dtype is tg.float64
        ]
        pairs = zip(results, cotangents, strict=True)
        kept = [pair for pair in pairs if pair[0].requires_grad]
        results, cotangents = [each for each, _ in kept], [each for _, each in kept]
        options: Any = {"materialize_grads": True, "allow_unused": True}
        first = tg.autograd.grad(results, points, cotangents, create_graph=True, **options)
        total: Any = sum((each * each).sum() for each in first)
        if not total.requires_grad:
            return list(first)  # linear functions
        return [*first, *tg.autograd.grad(total, points, **options)]

    function = all_of(chunk)
    expected = gradients(function, tg.device("cpu"))
    found = gradients(tg.fused(function), cuda)
    names = [case.name for case, row in zip(chunk, rows, strict=True) for _ in row.moving]
    wanted = {"tg_rows", "tg_rows_backward"}
    wanted |= {"tg_rows_backward_backward"} if len(found) > len(names) else set()
    assert wanted <= set(counted.kernels)
    names *= len(found) // len(names)
    for name, have, want in zip(names, found, expected, strict=True):
        same(have, want, 1e6, name)


# -- operands --------------------------------------------------------------------------------


@tg.fused
def swish(x: Any, slope: Any) -> Any:
    return x / (1 + tg.exp(-slope * x))


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


# -- in place --------------------------------------------------------------------------------


def test_updates_write_into_views(cuda: Any) -> None:
    @fused_update
    def moved(target: Any, other: Any, rate: float) -> None:
        target.sub_(other * rate)
        other.mul_(2)

    def run(device: Any) -> list[Any]:
        whole, other = tg.arange(12.0).reshape(3, 4).to(device), tg.ones(3).to(device)
        moved(whole[:, 1], other, 0.5)
        moved(whole[:, 2], other, 0.25)
        return [whole.cpu(), other.cpu()]

    for have, want in zip(run(cuda), run("cpu"), strict=True):
        assert tg.equal(have, want)
    x, y = tg.ones(3).cuda(), tg.ones(3).cuda()
    version = x._version
    moved(x, y, 0.5)
    assert x._version == version + 1


def test_an_update_reads_before_it_writes(cuda: Any) -> None:
    @fused_update
    def pushed(target: Any, source: Any) -> None:
        target.copy_(source + 1)

    line = tg.arange(6.0).cuda()
    pushed(line[1:], line[:-1])
    assert line.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(RuntimeError, match="more than one element"):
        pushed(tg.ones(1).cuda().expand(3), tg.ones(3).cuda())

    @fused_update
    def clashing(target: Any, number: Any) -> None:
        target.mul_(number)
        number.fill_(2.0)

    with pytest.raises(TypeError, match="of another shape that it overwrites"):
        clashing(tg.ones(3).cuda(), tg.tensor(1.0).cuda())


OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (tg.optim.SGD, {}),
    (tg.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (tg.optim.SGD, {"momentum": 0.9, "maximize": True}),
    (tg.optim.Adam, {}),
    (tg.optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    (tg.optim.AdamW, {}),
    (tg.optim.RMSprop, {}),
    (tg.optim.RMSprop, {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
]


def parameters(device: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,), ())]
    return [tg.from_numpy(np.array(each)).to(device).requires_grad_() for each in made]


def set_gradients(parameters: Sequence[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for each in parameters:
        values = rng.standard_normal(each.shape).astype(np.float32)
        each.grad = tg.from_numpy(np.array(values)).to(each.device)


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_an_update_is_one_kernel(cuda: Any, counted: Counted, kind: Any, options: Any) -> None:
    count = 0
    here, there = parameters("cpu"), parameters(cuda)
    ours, theirs = kind(here, lr=0.1, **options), kind(there, lr=0.1, **options)
    for step in range(4):
        set_gradients(here, step)
        set_gradients(there, step)
        ours.step()
        counted.clear()
        theirs.step()
        assert len(counted.kernels) == len(there)
        if step > 0:
            assert counted.operations == []
            assert compiled_texts() == count
        count = compiled_texts()
        for optimizer in (ours, theirs):
            optimizer.param_groups[0]["lr"] *= 0.5
    for have, want in zip(there, here, strict=True):
        same(have, want, 64, "parameter")
    for one, other in zip(there, here, strict=True):
        for name, want in ours.state[other].items():
            same(theirs.state[one][name], want, 64, name)


def test_dampening(cuda: Any) -> None:
    options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}
    here, there = parameters("cpu"), parameters(cuda)
    optimizers = [(tg.optim.SGD(each, **options), each) for each in (here, there)]
    for step in range(3):
        for optimizer, tensors_ in optimizers:
            set_gradients(tensors_, step)
            optimizer.step()
    for have, want in zip(there, here, strict=True):
        same(have, want, 64, "parameter")


def test_counters_that_others_write(cuda: Any) -> None:
    """Eager steps, compiled ones and loaded states in turns."""

    def trained(device: Any) -> list[Any]:
        found = parameters(device)
        optimizer = tg.optim.Adam(found, lr=0.1)
        compiled = tg.compile(optimizer.step)
        saved: Any = None
        for number, step in enumerate([optimizer.step, compiled, compiled, optimizer.step] * 2):
            set_gradients(found, number)
            step()
            if number == 2:
                saved = {
                    name: {key: value.clone() for key, value in state.items()}
                    for name, state in optimizer.state_dict()["state"].items()
                }
            if number == 5:
                groups = optimizer.state_dict()["param_groups"]
                optimizer.load_state_dict({"state": saved, "param_groups": groups})
        assert [optimizer.state[each]["step"].item() for each in found] == [5.0] * 3
        return found

    for have, want in zip(trained(cuda), trained("cpu"), strict=True):
        same(have, want, 256, "parameter")


# -- the text --------------------------------------------------------------------------------


def texts_of(function: Callable[..., Any], *types: Any) -> list[elementwise.Text]:
    """The kernels of a function, for arguments given as (dtype, shape) or numbers."""
    device = Device("cuda", 0)
    leaves = [
        intern_type(each[1], each[0], device) if isinstance(each, tuple) else each for each in types
    ]
    spec = pytree.flatten((tuple(range(len(leaves))), {}))[1]
    return [launch.text for launch in Fused(function).program(leaves, spec).launches]


def test_the_text() -> None:
    (text,) = texts_of(swish.__wrapped__, (tg.bfloat16, (4,)), 1.5)
    assert text.in_params == "uint16 in0, float64 in1"
    assert text.out_params == "uint16 out0"
    assert text.operation.splitlines() == [
        "const float x0 = bfloat_to_float(in0);",
        "const double x1 = in1;",
        "const double v2 = -x1;",
        "const float v3 = (float)v2;",
        "const float v4 = v3 * x0;",
        "const float v5 = bfloat_to_float(bfloat_from_float((float)v4));",
        "const float v6 = expf(v5);",
        "const float v7 = v6 + 1.0f;",
        "const float v8 = x0 / v7;",
        "out0 = bfloat_from_float(v8);",
    ]


def in_cupys_words(text: elementwise.Text) -> str:
    """The source that CuPy makes of a kernel, for two-dimensional strided operands."""
    from cupy import ndarray
    from cupy._core import _carray, _kernel, _scalar, core

    kernel = core.ElementwiseKernel(
        text.in_params, text.out_params, text.operation, text.name, preamble=text.preamble
    )
    infos = []
    for parameter in kernel.params:
        words = repr(parameter)
        if "name='_ind'" in words:
            infos.append(_kernel._ArgInfo(2, _carray.Indexer, None, 2, True, True))
            continue
        dtype = np.dtype(words.split("dtype('")[1].split("'")[0])
        if "name='p" in words or (dtype == np.float64 and "is_const=True" in words):
            infos.append(_kernel._ArgInfo(3, _scalar.CScalar, dtype, 0, True, True))
        else:
            infos.append(_kernel._ArgInfo(1, ndarray, dtype, 2, False, True))
    code = _kernel._get_elementwise_kernel_code(
        tuple(infos), _kernel._TypeMap(()), kernel.params, text.operation, text.name, text.preamble
    )
    headers = "".join(f"#include <{each}>\n" for each in core._cupy_header_list)
    return headers + str(code)


def everything(x: Any, h: Any, b: Any, n: Any, rate: Any) -> Any:
    whole = n // 3 + n % 5 + (n << 2) - (n >> 1)
    return (
        F.gelu(x) * rate + F.softplus(x) + F.mish(x),
        h * x.half() + F.gelu(h, approximate="tanh"),
        (x > h.float()) & b,
        h.bfloat16() + 1,
        whole,
        x.to(tg.int8),
        tg.fmod(x, 3.0) // 2.0,
        n**3 + x.long(),
    )


def test_cupys_source_compiles(cuda: Any, counted: Counted, monkeypatch: Any) -> None:
    if reason := nvrtc.why_unavailable():
        pytest.skip(reason)
    from cupy._core import core

    shape = (4, 5)
    kernels = texts_of(
        everything, (tg.float32, shape), (tg.float16, shape), (tg.bool, shape), (tg.int64, shape),
        0.5,
    )  # fmt: skip
    there = parameters(cuda)
    set_gradients(there, 0)
    tg.optim.Adam(there).step()
    kernels += counted.texts
    assert any("if (i == 0)" in text.operation for text in kernels)
    monkeypatch.setattr(nvrtc, "OPTIONS", ())
    for text in kernels:
        options = (*core.assemble_cupy_compiler_options(elementwise.OPTIONS), "-ftz=true")
        compiled = nvrtc.compile_with_log(in_cupys_words(text), "sm_90", options)
        assert compiled.data.startswith(b"\x7fELF")


def test_the_graph_must_be_elementwise() -> None:
    graph = tg.trace(lambda x: x.sum(), tg.ones(()))
    with pytest.raises(ValueError, match="sum is not elementwise"):
        cuda_elementwise.write_text(tg.trace(lambda x: x.sum(0), tg.ones(3)), "f")
    assert len(graph.outputs) == 1


def test_kernels_of_one_text_are_made_once(cuda: Any) -> None:
    with mock.patch.object(
        backend.cupy(), "ElementwiseKernel", wraps=backend.cupy().ElementwiseKernel
    ) as made:
        for _ in range(3):
            for shape in ((3,), (2, 2), ()):
                tg.fused(swish.__wrapped__)(tg.ones(shape).cuda(), 0.5)
    assert made.call_count <= 2  # with and without dimensions
