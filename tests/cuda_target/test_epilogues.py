"""Matrix products of compiled functions that add a bias themselves, and those that do not.

`make gpu` runs these on a GPU; tests/cuda_target/test_products.py has every epilogue of cublasLt.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_tools import fake_cublas_lt, shim
from cuda_tools.programs import program_of
from cuda_tools.run_program import run_program
from tgraph.compiler.targets.cuda.launch_order import accesses_of_product
from tgraph.runtime.cuda import backend, cublas_lt
from tgraph.runtime.cuda.cublas_lt import CublasLtError, Status
from tgraph.runtime.plan_gemm import native_product
from tgraph.runtime.plan_steps import BufferRef, GemmStep, LaunchStep, references

import tgraph as tg
from tgraph import nn
from tgraph.compiled.compile import compile as compiled
from tgraph.drawing.graph_picture import executable_picture

F = tg.nn.functional
pytest_plugins = ["cuda_tools.device"]
CALLS = 3  # launched, captured, replayed
# Of the largest result: a product alone is rounded once more before the bias is added.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def tensors(*shapes: Any, dtype: Any = tg.float32) -> tuple[Any, ...]:
    """Tensors of these shapes, the same in every test."""
    rng = np.random.default_rng(0)
    return tuple(tg.from_numpy(rng.standard_normal(each)).to(dtype) for each in shapes)


def products(program: Any) -> list[GemmStep]:
    return [step for step in program.steps if isinstance(step, GemmStep)]


def launches(program: Any) -> list[LaunchStep]:
    return [step for step in program.steps if isinstance(step, LaunchStep)]


def check_calls(function: Callable[..., Any], inputs: Any, cuda: Any, what: str = "") -> None:
    """Compiled for the device it gives what eager code gives on the host, in every call."""
    on_device, wanted = compiled(function), function(*inputs)
    there = [each.to(cuda) for each in inputs]
    for _ in range(CALLS):
        found = on_device(*there)  # nothing of it is kept: the next call has the same addresses
        close(found, wanted, what)
        del found


def close(found: Any, wanted: Any, what: str = "") -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    have, want = (each.detach().cpu().double().numpy() for each in (found, wanted))
    limit = TOLERANCE[str(found.dtype).rpartition(".")[2]] * max(1.0, np.abs(want).max(initial=0))
    np.testing.assert_allclose(have, want, rtol=0, atol=limit, err_msg=what)


# -- products that add their bias ----------------------------------------------------------------


class Case(NamedTuple):
    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    launches: int = 0  # of kernels, for what else is computed


JOINED = {
    "of two dimensions": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 40), (40,))),
    "bias first": Case(lambda x, w, b: b + x @ w, ((6, 16), (16, 40), (40,))),
    "linear": Case(F.linear, ((6, 16), (40, 16), (40,))),
    "linear of three dimensions": Case(F.linear, ((2, 3, 16), (40, 16), (40,))),
    "linear of four dimensions": Case(F.linear, ((2, 1, 3, 16), (40, 16), (40,))),
    "both transposed": Case(lambda x, w, b: x.t() @ w.t() + b, ((16, 6), (40, 16), (40,))),
    "one row": Case(lambda x, w, b: x @ w + b, ((1, 16), (16, 40), (40,))),
    "a vector": Case(F.linear, ((16,), (40, 16), (40,))),
    "square": Case(lambda x, w, b: x @ w + b, ((16, 16), (16, 16), (16,))),
    "odd sizes": Case(lambda x, w, b: x @ w + b, ((5, 7), (7, 11), (11,))),
    "a long sum": Case(lambda x, w, b: x @ w + b, ((8, 300), (300, 40), (40,))),
    "bias of two dimensions": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 40), (1, 40))),
    "columns in two axes": Case(
        lambda x, w, b: (x @ w).reshape(6, 5, 8) + b, ((6, 16), (16, 40), (5, 8))
    ),
    "rows in two axes": Case(
        lambda x, w, b: (x @ w).reshape(2, 3, 40) + b[None], ((6, 16), (16, 40), (40,))
    ),
    "an aligned part of a bias": Case(
        lambda x, w, b: x @ w + b[8:48], ((6, 16), (16, 40), (50,))
    ),
    "a row of a matrix": Case(lambda x, w, b: x @ w + b[2], ((6, 16), (16, 40), (3, 40))),
    "a part of the input": Case(
        lambda x, w, b: x[:, 4:20] @ w + b, ((6, 24), (16, 40), (40,))
    ),
    "a bias that a kernel computes": Case(
        lambda x, w, b: x @ w + b.sum(0), ((6, 16), (16, 40), (50, 40)), 1
    ),
    "a bias that is computed": Case(
        lambda x, w, b: x @ w + tg.exp(b) * 2, ((6, 16), (16, 40), (40,)), 1
    ),
    "every second number": Case(lambda x, w, b: x @ w + b[::2], ((6, 16), (16, 40), (80,)), 1),
    "reversed": Case(lambda x, w, b: x @ w + b.flip(0), ((6, 16), (16, 40), (40,)), 1),
    "a column of a matrix": Case(
        lambda x, w, b: x @ w + b[:, 1], ((6, 16), (16, 40), (40, 3)), 1
    ),
    "a misaligned part": Case(
        lambda x, w, b: x @ w + b[3:43], ((6, 16), (16, 40), (50,)), 1
    ),
    "transposed columns": Case(
        lambda x, w, b: (x @ w).reshape(6, 5, 8) + b.t(), ((6, 16), (16, 40), (8, 5)), 1
    ),
    "a bias that is a product": Case(
        lambda x, w, b: x @ w + b @ w, ((6, 16), (16, 40), (16,))
    ),
    "one behind another": Case(
        lambda x, w, b: (x @ w + b) @ w + b, ((6, 16), (16, 16), (16,))
    ),
    "read by two products": Case(
        lambda x, w, b: (y := x @ w + b) @ w @ y.t(), ((6, 16), (16, 16), (16,))
    ),
    "read in parts": Case(
        lambda x, w, b: (y := x @ w + b)[:, :8] @ y[:, 8:].t(), ((6, 16), (16, 16), (16,))
    ),
    "transposed": Case(lambda x, w, b: (x @ w).t() + b, ((6, 16), (16, 40), (6,))),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_products_add_the_bias(cuda, name):
    case = JOINED[name]
    inputs = tensors(*case.shapes)
    program = tg.cuda.program(case.function, *inputs)
    steps = [step for step in products(program) if step.bias]
    assert steps and all(step.epilogue == "bias" for step in steps)
    assert len(launches(program)) == case.launches, str(program)
    check_calls(case.function, inputs, cuda)


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
@pytest.mark.parametrize("name", ["linear of three dimensions", "odd sizes", "a row of a matrix"])
def test_half_types(cuda, dtype, name):
    case = JOINED[name]
    inputs = tensors(*case.shapes, dtype=dtype)
    (step,) = tg.cuda.program(case.function, *inputs).steps
    assert (step.epilogue, step.dtype) == ("bias", str(dtype).rpartition(".")[2])
    check_calls(case.function, inputs, cuda)


def test_half_types_are_rounded_once():
    """The product is 2049 between two steps of float16, and 2049 - 2048 is one."""
    x, w, b = tg.ones(1, 2049), tg.ones(2049, 8), tg.full((8,), -2048.0)
    inputs = [each.to(tg.float16) for each in (x, w, b)]
    program = tg.cuda.program(lambda x, w, b: x @ w + b, *inputs)
    (found,) = run_program(program, [each.numpy() for each in inputs])
    assert found.tolist() == [[1.0] * 8]


def test_infinities_and_nan(cuda):
    x, w = tensors((3, 4), (4, 8))
    b = tg.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, 2.0, 3.0])
    check_calls(lambda x, w, b: tg.isnan(x @ w + b).float() + x @ w, (x, w, b), cuda)
    wanted = (x @ w + b).tolist()
    assert repr(compiled(F.linear)(x.to(cuda), w.t().to(cuda), b.to(cuda))[:, :3].tolist()) == repr(
        [row[:3] for row in wanted]
    )


# -- products that do not ------------------------------------------------------------------------

APART = {
    "more is computed": Case(lambda x, w, b: tg.relu(x @ w + b), ((6, 16), (16, 40), (40,))),
    "a residual": Case(lambda x, w, b: x @ w + b + x, ((6, 16), (16, 16), (16,))),
    "a bias that is computed for others too": Case(
        lambda x, w, b: (x @ w + (c := b * 2)) @ (c * w), ((6, 16), (16, 16), (16,))
    ),
    "a matrix": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 40), (6, 40))),
    "a column": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 40), (6, 1))),
    "a column of a square": Case(lambda x, w, b: x @ w + b, ((16, 16), (16, 16), (16, 1))),
    "one number": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 40), ())),
    "a number of the program": Case(lambda x, w, b: x @ w + 3, ((6, 16), (16, 40), (1,))),
    "one column": Case(lambda x, w, b: x @ w + b, ((6, 16), (16, 1), (1,))),
    "one term": Case(lambda x, w, b: x @ w + b, ((6, 1), (1, 40), (40,))),
    "a batch": Case(lambda x, w, b: x @ w + b, ((2, 3, 16), (2, 16, 40), (40,))),
    "along other columns": Case(
        lambda x, w, b: (x @ w).reshape(12, 20) + b, ((6, 16), (16, 40), (20,))
    ),
    "read by a kernel too": Case(
        lambda x, w, b: ((y := x @ w + b) @ w) * y.sum(), ((6, 16), (16, 16), (16,))
    ),
    "its own row": Case(lambda x, w, b: (y := x @ w) + y[1], ((6, 16), (16, 40), ())),
    "twice the product": Case(lambda x, w, b: (y := x @ w) + y, ((6, 16), (16, 40), ())),
    "the product is a result": Case(
        lambda x, w, b: (y := x @ w, y + b)[1] + y.sum(), ((6, 16), (16, 40), (40,))
    ),
    "the product is a factor": Case(
        lambda x, w, b: ((y := x @ w) @ w + (y + b) @ w), ((6, 16), (16, 16), (16,))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_products_without_a_bias(cuda, name):
    case = APART[name]
    inputs = tensors(*case.shapes)
    program = tg.cuda.program(case.function, *inputs)
    assert products(program) and not any(step.bias for step in products(program)), str(program)
    check_calls(case.function, inputs, cuda)


def test_two_results(cuda):
    """The product itself is asked for too."""
    x, w, b = tensors((6, 16), (16, 40), (40,))
    program = tg.cuda.program(lambda x, w, b: (x @ w, x @ w + b), x, w, b)
    assert [step.bias for step in products(program)] == [None]
    found = compiled(lambda x, w, b: (x @ w, x @ w + b))(x.to(cuda), w.to(cuda), b.to(cuda))
    for have, want in zip(found, (x @ w, x @ w + b), strict=True):
        close(have, want)


def test_other_types_have_no_epilogue(cuda):
    inputs = tensors((6, 16), (16, 40), (40,), dtype=tg.float64)
    (step,) = products(tg.cuda.program(lambda x, w, b: x @ w + b, *inputs))
    assert step.bias is None
    check_calls(lambda x, w, b: x @ w + b, inputs, cuda)


@pytest.mark.parametrize("shapes", [((0, 16), (16, 40)), ((6, 0), (0, 40)), ((6, 16), (16, 0))])
def test_empty_sizes(cuda, shapes):
    inputs = tensors(*shapes, shapes[1][1:])
    check_calls(lambda x, w, b: x @ w + b, inputs, cuda)


# -- random ones ---------------------------------------------------------------------------------


def random_function(rng: np.random.Generator) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Two products with something added to each, whatever becomes of the sums."""
    m, k, n = (int(rng.choice((1, 2, 3, 5, 8, 16))) for _ in range(3))
    lead = ((m,), (2, m), (1, m))[rng.integers(0, 3)]
    adds: list[tuple[Any, Callable[..., Any]]] = [
        ((n,), lambda b: b),
        ((1, n), lambda b: b),
        ((n + 8,), lambda b: b[4 : n + 4]),
        ((n + 8,), lambda b: b[1 : n + 1]),
        ((n, 2), lambda b: b[:, 0]),
        ((3, n), lambda b: b.sum(0)),
        ((n,), lambda b: b.flip(0) * 2),
        ((m, 1), lambda b: b),
        ((), lambda b: b),
        ((m, n), lambda b: b),
    ]
    shape, row = adds[rng.integers(0, len(adds))]
    second, last = int(rng.integers(0, 4)), int(rng.integers(0, 5))
    swap = bool(rng.integers(0, 2))

    def function(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
        p = x @ (w.t() if swap else w)
        y = row(b) + p if swap else p + row(b)
        z = y @ v
        z = (z + c, c + tg.tanh(z), z + z, (z + c) * y.sum())[second]
        return (z, (z, y), (z, p), tg.relu(y).sum() + z, (z.sum(0), z))[last]

    return function, ((*lead, k), (n, k) if swap else (k, n), shape, (n, 3), (3,))


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("count", [20, pytest.param(80, marks=pytest.mark.slow)])
def test_random_sums_of_products(count):
    joined = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        function, shapes = random_function(rng)
        dtype = (tg.float32, tg.float16, tg.bfloat16)[seed % 3]
        inputs = list(tensors(*shapes, dtype=dtype))
        program, arrays, wanted = program_of(function, inputs)
        joined += sum(step.bias is not None for step in products(program))
        for have, want in zip(run_program(program, arrays), wanted, strict=True):
            limit = 4 * TOLERANCE[want.dtype.name] * max(1.0, np.abs(want).max(initial=0))
            difference = np.abs(have.astype(np.float64) - want.astype(np.float64))
            assert difference.max(initial=0) <= limit, f"seed {seed}: {program}"
    assert joined > count // 3


# -- where the bias is ---------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(5))
def test_views_that_begin_anywhere(cuda, first):
    """What does not begin at a multiple of 16 bytes is copied before the plan sees it."""
    x, w, b = tensors((6, 16), (16, 40), (50,))
    function = compiled(lambda x, w, b: x @ w + b)
    there = b.to(cuda)
    for _ in range(CALLS):
        found = function(x.to(cuda), w.to(cuda), there[first : first + 40])
        close(found, x @ w + b[first : first + 40])


def test_strided_arguments(cuda):
    """A bias that is not dense is copied; the other operands may lie anyhow."""
    x, w, b = tensors((16, 6), (16, 80), (40, 3))

    def function(x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    on_device = compiled(function)
    for _ in range(CALLS):
        found = on_device(x.to(cuda).t(), w.to(cuda)[:, ::2], b.to(cuda)[:, 1])
        close(found, function(x.t(), w[:, ::2], b[:, 1]))


def test_a_graph_reads_what_lies_there_then(cuda):
    """Captured and replayed with other numbers in the same places."""
    x, w, b = (each.to(cuda) for each in tensors((6, 16), (16, 40), (40,)))
    function = compiled(lambda x, w, b: x @ w + b)
    for count in range(5):
        found = function(x, w, b)
        close(found, x.cpu() @ w.cpu() + b.cpu(), f"call {count}")
        del found
        b.add_(1.0)
        x.mul_(0.5)
    (plan,) = [plan for plans in function._plans.values() for plan in plans]
    (frame,) = plan.function.executable.executables[0].plan._frames.values()
    assert any(frame.graphs.values())


def test_graphs_keep_the_bias_that_they_were_captured_with(cuda):
    x, w, *biases = (each.to(cuda) for each in tensors((6, 16), (16, 40), (40,), (40,)))
    function = compiled(lambda x, w, b: x @ w + b)
    for _ in range(CALLS + 1):
        for b in biases:
            close(function(x, w, b), x.cpu() @ w.cpu() + b.cpu())


def test_a_function_may_be_gone_before_its_work_is_done(cuda):
    x, w, b = tensors((6, 16), (16, 40), (40,))
    found = compiled(lambda x, w, b: x @ w + b)(x.to(cuda), w.to(cuda), b.to(cuda))
    gc.collect()
    close(found, x @ w + b)


def test_a_bias_that_is_overwritten_behind_its_product(cuda):
    x, w, b = tensors((6, 16), (16, 40), (40,))
    there = b.to(cuda)

    @compiled
    def step(x: Any, w: Any) -> Any:
        y = x @ w + there
        there.mul_(2)
        return y

    for count in range(CALLS):
        close(step(x.to(cuda), w.to(cuda)), x @ w + b * 2**count)


def test_a_result_that_overwrites_an_input(cuda):
    x, w, b = tensors((6, 16), (16, 40), (40,))
    buffer = tg.zeros(6, 40).to(cuda)
    address = buffer._value.data.ptr
    step = compiled(lambda x, w, b: buffer.copy_(x @ w + b))
    for count in range(CALLS):
        step((x + count).to(cuda), w.to(cuda), b.to(cuda))
        close(buffer, (x + count) @ w + b)
    assert buffer._value.data.ptr == address


def test_the_order_of_steps_knows_the_bias():
    step = GemmStep(
        "matmul", "float32", 2, 3, 4, BufferRef(1), BufferRef(2), BufferRef(3), False, False,
        4, 3, 3, epilogue="bias", bias=BufferRef(4, 16),
    )  # fmt: skip
    assert (4, 16, 28, False) in accesses_of_product(step)
    assert references(step)[3:] == (BufferRef(4, 16),)
    assert len(references(replace(step, epilogue="", bias=None))) == 3


# -- gradients -----------------------------------------------------------------------------------


def test_gradients(cuda):
    def loss(x: Any, w: Any, b: Any) -> Any:
        return F.linear(F.linear(x, w, b), w, b).square().sum()

    inputs = tensors((4, 3, 16), (16, 16), (16,))
    wanted = [each.clone().requires_grad_() for each in inputs]
    loss(*wanted).backward()
    function = compiled(loss)
    for _ in range(CALLS):
        found = [each.to(cuda).requires_grad_() for each in inputs]
        function(*found).backward()
        for have, want in zip(found, wanted, strict=True):
            close(have.grad, want.grad)


def test_a_training_step(cuda):
    """Parameters are updated in the plan whose products read the biases."""

    def trained(device: Any, decorate: Any) -> Any:
        tg.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
        model = model.to(device)
        optimizer = tg.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

        @decorate
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            y = model(x)
            y.square().sum().backward()
            optimizer.step()
            return y

        (x,) = tensors((5, 3, 8))
        for _ in range(4):
            y = step(x.to(device))
        return [y, *model.parameters()]

    wanted = trained("cpu", lambda function: function)
    for have, want in zip(trained(cuda, compiled), wanted, strict=True):
        close(have, want)


def test_a_checked_call(cuda):
    x, w, b = (each.to(cuda) for each in tensors((6, 16), (16, 40), (40,), dtype=tg.float16))
    compiled(lambda x, w, b: x @ w + b, check=True)(x, w, b)


# -- what is told --------------------------------------------------------------------------------


def test_the_text_of_a_program():
    program = tg.cuda.program(lambda x, w, b: x @ w.t() + b, *tensors((6, 16), (40, 16), (40,)))
    assert "gemm matmul: slot4 = slot1 @ slot2.T + slot3 m 6 n 40 k 16 float32 with bias" in str(
        program
    )
    (info,) = program.kernels
    assert [node.primitive.name for node in info.nodes] == ["matmul", "add"]
    assert [node.primitive.name for node in info.outputs] == ["add"]
    assert info.bytes == 4 * (6 * 16 + 40 * 16 + 40 + 6 * 40)
    assert info.flops == 2 * 6 * 40 * 16


def test_explanations_and_pictures(cuda):
    function = compiled(F.linear)
    inputs = [each.to(cuda) for each in tensors((2, 3, 16), (40, 16), (40,))]
    function(*inputs)
    (kernel,) = function.explain(*inputs).kernels
    assert "matmul" in str(kernel) and "add" in str(kernel)
    executable = function.plan_for(*inputs).function.plain
    (cluster,) = executable_picture(executable).clusters
    boxes = {box.title: box for box in executable_picture(executable).boxes}
    assert cluster.title == "matmul"
    assert boxes["matmul"].kind == boxes["add"].kind == "gemm"
    assert boxes["matmul"].cluster == boxes["add"].cluster == cluster.key


def test_plans_of_the_cpu_have_no_epilogues():
    step = GemmStep(
        "matmul", "float32", 2, 3, 4, BufferRef(1), BufferRef(2), BufferRef(3), False, False,
        4, 3, 3, epilogue="bias", bias=BufferRef(4),
    )  # fmt: skip
    with pytest.raises(ValueError, match="gemm matmul: expected no epilogue, got bias"):
        native_product(step)
    x, w, b = tensors((6, 16), (16, 40), (40,))
    close(compiled(lambda x, w, b: x @ w + b)(x, w, b), x @ w + b)


# -- what the library cannot do ------------------------------------------------------------------


@pytest.fixture
def stand_in(cuda):
    """The stand-in for cublasLt, of which failures can be ordered."""
    library = cublas_lt.load()
    if not isinstance(library, fake_cublas_lt.FakeCublasLt):
        pytest.skip("the real library does not fail when it is told to")
    assert backend.cupy()
    return library


def test_a_kernel_adds_what_the_library_cannot(stand_in, cuda):
    x, w, b = tensors((6, 16), (16, 40), (40,))
    stand_in.fail_next("cublasLtMatmulAlgoGetHeuristic", Status.NOT_SUPPORTED)
    function = compiled(lambda x, w, b: x @ w + b)
    close(function(x.to(cuda), w.to(cuda), b.to(cuda)), x @ w + b)
    (plan,) = [plan for plans in function._plans.values() for plan in plans]
    (segment,) = plan.function.executable.executables
    assert [step.bias for step in products(segment.program)] == [None]
    assert len(segment.kernels) == 2


def test_other_failures_are_errors(stand_in, cuda):
    x, w, b = (each.to(cuda) for each in tensors((6, 16), (16, 40), (40,)))
    stand_in.fail_next("cublasLtMatmulAlgoGetHeuristic", Status.ALLOC_FAILED)
    with pytest.raises(CublasLtError, match="ALLOC_FAILED"):
        compiled(lambda x, w, b: x @ w + b)(x, w, b)
