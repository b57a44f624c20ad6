"""What cublasLt does behind a product: a fake of it on the host, and the real one on a GPU."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from cuda_tools.fake_cublas_lt import HostMemory
from cuda_tools.products import DTYPES, ROUNDING, STREAM, Run, array_in, filled, plain, wide
from tgraph.runtime.cuda import products
from tgraph.runtime.cuda.cublas_lt import Epilogue
from tgraph.runtime.plan_steps import BufferRef

pytest_plugins = ["cuda_tools.product_fixtures"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5


FLOATS = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["", "relu", "gelu"])
def test_bias_and_activation(machine, dtype, bias, activation):
    m, n, k = 16, 32, 24
    name = "_".join(filter(None, ("bias" * bias, activation)))
    added = np.linspace(-1, 1, n).astype(DTYPES[dtype]) if bias else None
    before = (np.arange(m * n).reshape(m, n) % 16 / 16).astype(DTYPES[dtype])
    run = Run(machine, plain(m, n, k, dtype, beta=0.5, alpha=0.5), name, added, before=before)
    value = run.plain + (wide(added) if bias else 0)
    wanted = {"": value, "relu": np.maximum(value, 0), "gelu": gelu(value)}[activation]
    run.check(run.c, wanted)
    assert run.product.bias_length == n * bias


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_activations(machine, dtype, activation, bias):
    """y = activation(x @ w + b), then (dy @ v.T) * activation'(x @ w + b) and the sums of that."""
    m, n, k, other = 16, 40, 24, 8
    added = np.linspace(-1, 1, n).astype(DTYPES[dtype]) if bias else None
    name = "bias_" * bias + activation + "_saved"
    forward = plain(m, n, k, dtype)
    aux = HostMemory(products.prepare(forward, 0, machine.workspaces, name).aux_bytes)
    first = Run(machine, forward, name, added, aux)
    value = first.plain + (wide(added) if bias else 0)
    function = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu}[activation]
    first.check(first.c, function(value))
    if activation == "gelu":
        value = wide(array_in(aux, (m, n), dtype))  # as it was saved
    slope = wide(value > 0) if activation == "relu" else gelu_slope(value)

    backward = plain(m, n, other, dtype, transpose_b=True, ldb=other)
    second = Run(machine, backward, f"{activation}_gradient", aux=aux, seed=1)
    assert second.product.aux_bytes == len(aux.bytes)
    wanted = second.plain * slope
    second.check(second.c, wanted)
    sums = np.zeros(n, DTYPES[dtype])
    third = Run(machine, backward, f"{activation}_gradient_sum", sums, aux, seed=1)
    third.check(third.c, wanted)
    # They may be summed before or after the elements are rounded.
    rounded = ROUNDING[dtype] * np.abs(wanted).sum(0)
    assert (np.abs(wide(sums) - wanted.sum(0)) <= 2 * rounded + 1e-5).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("which", ["a", "b"])
def test_sums_of_operands(machine, which, transposed):
    m, n, k = 16, 24, 40
    step = plain(m, n, k)
    if transposed:
        step = replace(step, transpose_a=True, lda=m, transpose_b=True, ldb=k)
    sums = np.zeros(m if which == "a" else n, np.float32)
    run = Run(machine, step, f"sum_{which}", sums)
    run.check(run.c, run.plain)
    a, b = (run.a.T, run.b.T) if transposed else (run.a, run.b)
    run.check(sums, wide(a).sum(1) if which == "a" else wide(b).sum(0))
    assert run.product.bias_length == sums.size


def test_epilogues_of_a_batch(machine):
    bias = np.arange(8, dtype=np.float32)
    run = Run(machine, plain(4, 8, 16, batch=(2, 3)), "bias_relu", bias)
    run.check(run.c, np.maximum(run.plain + bias, 0))
    # With one B the batch is a taller matrix, whose rows have sums of their own.
    sums = np.zeros(8, np.float32)
    run = Run(machine, plain(4, 8, 16, batch=((2, 64, 0, 32),)), "sum_a", sums)
    run.check(sums, wide(run.a).sum(-1).reshape(-1))


@pytest.mark.parametrize("m, n", [(16, 1), (1, 16), (1, 1)])
def test_epilogues_of_vectors(machine, m, n):
    bias = np.linspace(1, 2, n, dtype=np.float32)
    run = Run(machine, plain(m, n, 24), "bias", bias)
    run.check(run.c, run.plain + bias)
    sums = np.zeros(m, np.float32)
    run = Run(machine, plain(m, n, 24), "sum_a", sums)
    run.check(sums, wide(run.a).sum(1))


def test_room_for_what_epilogues_save(library, workspaces):
    step = plain(3, 4, 5, batch=((2, 15, 0, 12),))
    saved = products.prepare(step, 0, workspaces, "gelu_saved")
    assert (saved.aux_leading, saved.aux_bytes, saved.bias_length) == (8, 6 * 8 * 4, 0)
    saved = products.prepare(step, 0, workspaces, "relu_saved")
    assert (saved.aux_leading, saved.aux_bytes, saved.bias_length) == (128, 6 * 16, 0)
    for name in ("relu_saved", "gelu_gradient", "sum_b"):
        with pytest.raises(ValueError, match=rf"{name}.*got a batch of \[6\] products"):
            products.prepare(plain(3, 4, 5, batch=(2, 3)), 0, workspaces, name)


def test_the_step_may_say_its_epilogue(library, workspaces):
    step = plain(3, 4, 5, epilogue="bias", bias=BufferRef(4, 16))
    product = products.prepare(step, 0, workspaces)
    assert (product.bias_length, product.operands) == (4, 4)
    memory = HostMemory(4096)
    product.launch(memory.ptr, memory.ptr, memory.ptr + 1024, STREAM, memory.ptr + 2048 + 16)
    assert (library.log().heuristics, library.log().epilogue) == (1, Epilogue.BIAS)
    products.prepare(step, 0, workspaces, "").launch(memory.ptr, memory.ptr, memory.ptr, STREAM)
    assert library.log().epilogue == Epilogue.DEFAULT


def test_threads_share_a_product(library, workspaces):
    """Where they point its bias to is theirs until the launch is done."""
    product = products.prepare(plain(2, 4, 3), 0, workspaces, "bias")
    zeros = filled(np.zeros((3, 4), np.float32))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(number):
        bias, out = filled(np.full(4, number, np.float32)), HostMemory(256)
        seen = set()
        for _ in range(100):
            product.launch(zeros.ptr, zeros.ptr, out.ptr, number, bias.ptr)
            seen.update(array_in(out, (2, 4)).ravel().tolist())
        return seen

    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(8))) == [{float(number)} for number in range(8)]
    finally:
        sys.setswitchinterval(before)
