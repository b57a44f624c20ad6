"""Small kernels that do not wait for each other become one launch."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.programs import program_of
from cuda_tools.run_program import interpret_program, run_program
from tgraph.compiler.targets.cuda.device_library import library_text
from tgraph.compiler.targets.cuda.launch_order import Access, levels
from tgraph.runtime.plan_steps import GemmStep, LaunchStep

import tgraph as tg


def read(start, end, slot=1):
    return Access(slot, start, end, False)


def write(start, end, slot=1):
    return Access(slot, start, end, True)


def test_readers_do_not_wait_for_each_other():
    steps = [[read(0, 8), write(0, 8, 2)], [read(0, 8), write(8, 16, 2)], [read(0, 16, 2)]]
    assert levels(steps) == [0, 0, 1]


@pytest.mark.parametrize(
    "first, second",
    [(write(0, 8), read(4, 12)), (read(4, 12), write(0, 8)), (write(0, 8), write(7, 9))],
)
def test_who_writes_waits(first, second):
    assert levels([[first], [second]]) == [0, 1]


@pytest.mark.parametrize(
    "first, second",
    [(write(0, 8), write(8, 16)), (write(0, 8), read(0, 8, 2)), (read(0, 8), read(0, 8))],
)
def test_others_do_not(first, second):
    assert levels([[first], [second]]) == [0, 0]


def test_what_may_touch_everything_comes_between():
    steps = [[write(0, 8)], None, [write(0, 8, 2)], [read(0, 8, 2)]]
    assert levels(steps) == [0, 1, 2, 3]


def test_steps_for_which_none_waits_come_last():
    chain = [[write(0, 8, 3), read(0, 8, 2)], [write(0, 8, 4), read(0, 8, 3)],
             [write(0, 8, 5), read(0, 8, 4)]]  # fmt: skip
    assert levels([[write(0, 8, 9)], *chain]) == [2, 0, 1, 2]


def test_levels_are_an_order_that_keeps_results():
    """Random accesses: two that conflict keep their order, whatever has become of others."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        steps = []
        for _ in range(30):
            if rng.integers(20) == 0:
                steps.append(None)
                continue
            starts = rng.integers(0, 20, 3)
            spans = [(start, start + 1 + rng.integers(5)) for start in starts]
            steps.append(
                [Access(int(rng.integers(3)), int(a), int(b), bool(rng.integers(2)))
                 for a, b in spans]
            )  # fmt: skip
        found = levels(steps)
        for later in range(30):
            for earlier in range(later):
                if conflict(steps[earlier], steps[later]):
                    assert found[earlier] < found[later]


def conflict(a, b):
    if a is None or b is None:
        return True
    return any(
        x.slot == y.slot and (x.writes or y.writes) and x.start < y.end and y.start < x.end
        for x in a
        for y in b
    )


def updates(parameters, gradients):
    return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]


def test_updates_of_many_parameters_are_one_launch():
    sizes = [(3,), (64, 5), (7, 7), (1000,), (2, 3, 4)]
    parameters = [tg.randn(*size) for size in sizes]
    gradients = [tg.randn(*size) for size in sizes]
    program, arrays, expected = program_of(updates, [parameters, gradients])
    (launch,) = program.launches
    assert launch.grid == len(sizes)  # a block for each
    assert program.source.count(f"__global__ void __launch_bounds__(256) {launch.name}(") == 1
    assert len(program.kernels) == len(sizes)  # what is told of each stays its own
    if shim.available() is None:
        for order in ("forward", "shuffled"):
            found = run_program(program, arrays, order, seed=1)
            for have, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-6)


def test_rows_that_join_through_shared_memory_share_it():
    def function(x, y, z):
        return tg.softmax(x, -1), y.sum(-1), tg.softmax(z * 2, -1)

    inputs = [tg.randn(3, 4000), tg.randn(2, 5000), tg.randn(1, 6000)]
    program, arrays, expected = program_of(function, inputs)
    names = [launch.name for launch in program.launches]
    assert any("_and_" in name for name in names), names
    assert program.source.count("__shared__ __align__(16) unsigned char shared") <= len(names)
    if shim.available() is None:
        found = run_program(program, arrays, "shuffled", seed=1)
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5)


def test_large_kernels_stay_apart():
    inputs = [tg.zeros(1 << 21), tg.zeros(1 << 21)]
    program, _, _ = program_of(lambda x, y: (x + 1, y.view(1 << 10, 1 << 11).t().exp()), inputs)
    assert len(program.launches) == 2


def test_large_kernels_join_their_like():
    """Updates of three equal parameters, and of another one."""
    sizes = [1 << 21, 1 << 21, 1 << 22, 1 << 21]
    parameters, gradients = ([tg.zeros(size) for size in sizes] for _ in range(2))
    program = tg.cuda.program(updates, parameters, gradients)
    assert [launch.grid for launch in program.launches] == [3 * 2048, 4096]


def test_products_wait_for_what_they_read():
    """Their bytes are known too: a kernel beside them may come first or later."""

    def function(x, w):
        return (x @ w).relu(), x * 2

    program, _, _ = program_of(function, [tg.randn(8, 8), tg.randn(8, 8)])
    kinds = [type(step) for step in program.steps]
    assert kinds.index(GemmStep) < max(
        number for number, kind in enumerate(kinds) if kind is LaunchStep
    )


# -- kernels of equal text -----------------------------------------------------------------------


def test_pieces_of_the_same_text_are_one_function():
    sizes = [(40, 30), (7,), (40, 30), (40, 30), (7,)]
    parameters = [tg.randn(*size) for size in sizes]
    gradients = [tg.randn(*size) for size in sizes]
    program, arrays, expected = program_of(updates, [parameters, gradients])
    assert len(program.launches) == 1
    kernels = program.source.removeprefix(library_text())
    assert kernels.count("__device__") == 2 and kernels.count("switch") == 2
    if shim.available() is None:
        for order in ("forward", "backward", "shuffled"):
            found = run_program(program, arrays, order, seed=1)
            for have, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-6)
        for have, want in zip(interpret_program(program, arrays), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)


def test_pieces_of_the_same_text_may_have_different_grids():
    """Whole blocks of vectors: how many there are does not stand in the text."""
    sizes = [1024, 2048, 1024, 3072, 2048]
    parameters, gradients = ([tg.randn(size) for size in sizes] for _ in range(2))
    program, arrays, expected = program_of(updates, [parameters, gradients])
    (launch,) = program.launches
    assert launch.grid == 9
    assert program.source.removeprefix(library_text()).count("__device__") == 1
    if shim.available() is None:
        found = run_program(program, arrays, "shuffled", seed=1)
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)


def test_layers_share_their_kernels():
    """A deep model has as many kernels to compile as a few of its layers."""

    def model(x, layers):
        for weight, scale in layers:
            x = tg.softmax(x @ weight, -1) * scale + x
        return x

    def program(depth):
        layers = [(tg.randn(48, 48), tg.randn(48)) for _ in range(depth)]
        return program_of(model, [tg.randn(2000, 48), layers])

    def kernels(each):
        return each.source.count("__global__")

    short, deep = program(3)[0], program(12)[0]
    assert kernels(deep) == kernels(short) < len(deep.launches) == len(deep.kernels) - 12
    names = {info.name for info in deep.kernels if info.kind == "kernel"}
    assert names == {launch.name for launch in deep.launches}
    if shim.available() is None:
        each, arrays, expected = program(4)
        (found,) = run_program(each, arrays, "shuffled", seed=1)
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-5)


def adamw(sizes):
    """The program of a step of AdamW over parameters of these sizes."""
    parameters = [tg.nn.Parameter(tg.randn(*size)) for size in sizes]
    optimizer = tg.optim.AdamW(parameters, lr=1e-3)

    def step(*gradients):
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        optimizer.step()

    return tg.cuda.program(step, *(tg.randn(*size) for size in sizes))


def test_costly_numbers_are_computed_once():
    """The powers of the bias correction are not each thread's, but one thread's."""
    program = adamw([(512, 512)])
    numbers, update = program.launches
    texts = dict(zip(("numbers", "update"), program.source.split('extern "C"')[1:]))
    assert "pow(" in texts["numbers"] and "pow(" not in texts["update"]
    assert (numbers.grid, update.grid) == (1, 256)


def test_updates_of_a_model_are_two_launches():
    """All numbers, then all updates: small values have places of their own in the arena."""
    program = adamw([(256,), (768, 256), (768,), (256, 256), (64, 256)] * 4)
    assert len(program.launches) == 2
    assert program.source.count("__global__") == 2
    assert program.source.removeprefix(library_text()).count("__device__") <= 10
