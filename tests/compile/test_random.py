"""Random numbers in compiled functions are those that eager code draws."""

import contextlib
import math

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import interpret_program, run_program
from random_graphs.engines import run_kernel_interpreter
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize
from tgraph.runtime import philox

import tgraph as tg
from tgraph import nn
from tgraph.core.dispatch import apply
from tgraph.ops import basic_draws


def run_both(function, calls=3, seed=5):
    results = []
    for f in (function, compiled := tg.compile(function)):
        tg.manual_seed(seed)
        results.append([f(n) for n in range(calls)])
        results[-1].append(tg.rand(2))  # the generator is left at the same place
    for eager, found in zip(*results, strict=True):
        for a, b in zip(tg.pytree.leaves(eager), tg.pytree.leaves(found), strict=True):
            assert tg.equal(a, b)
    return compiled


def test_every_kind_of_draw():
    x = tg.ones(4, 3)

    def function(n):
        return (
            tg.rand(3),
            tg.randn(2, 2),
            tg.randint(0, 10, (5,)),
            tg.rand_like(x),
            tg.bernoulli(x * 0.5),
            nn.functional.dropout(x, 0.3),
            tg.randperm(6),
            x.clone().uniform_(),
        )

    function_calls = run_both(lambda n: function(0))
    assert len(function_calls.compiles) == 2  # n becomes an input


def test_generators_of_ones_own():
    generators = [tg.Generator(), tg.Generator()]

    def function(n):
        return tg.rand(2, generator=generators[0]), tg.rand(2, generator=generators[1]), tg.rand(2)

    results = []
    for f in (function, tg.compile(function)):
        tg.manual_seed(0)
        for at, generator in enumerate(generators):
            generator.manual_seed(at)
        results.append([f(0) for _ in range(3)])
    for a, b in zip(tg.pytree.leaves(results[0]), tg.pytree.leaves(results[1]), strict=True):
        assert tg.equal(a, b)


def test_seeding_inside():
    def function(n):
        first = tg.rand(2)
        tg.manual_seed(3)
        own = tg.Generator().manual_seed(7)
        return first, tg.rand(2), tg.rand(2, generator=own), tg.rand(2, generator=own)

    compiled = tg.compile(function)
    results = []
    for f in (function, compiled):
        tg.manual_seed(1)
        results.append([f(0) for _ in range(3)] + [tg.rand(2)])
    for a, b in zip(tg.pytree.leaves(results[0]), tg.pytree.leaves(results[1]), strict=True):
        assert tg.equal(a, b)
    assert len(compiled.compiles) == 1


def _forked(n):
    before = tg.rand(2)
    with tg.random.fork_rng():
        inside = tg.rand(2)
        tg.manual_seed(n)
        seeded = tg.rand(2), tg.initial_seed()
    return before, inside, seeded, tg.rand(2), tg.initial_seed()


def _forked_first(n):
    with tg.random.fork_rng():
        inside = tg.rand(2)
    return inside, tg.rand(2)


def _forked_around_loops(n):
    with tg.random.fork_rng():
        inside = tg.fori_loop(0, 3, lambda i, x: x + tg.rand(()), tg.zeros(()))
    return inside, tg.rand(2)


def _forked_in_loops(n):
    def body(i, x):
        with tg.random.fork_rng():
            x = x + tg.rand(())
        return x * tg.rand(())

    return tg.fori_loop(0, 3, body, tg.zeros(())), tg.rand(2)


def _set_back(n):
    generator = tg.Generator().manual_seed(n)
    tg.manual_seed(n)
    states = tg.get_rng_state(), generator.get_state()
    first = tg.rand(2), tg.rand(2, generator=generator)
    tg.set_rng_state(states[0])
    generator.set_state(states[1])
    return first, tg.rand(2), tg.rand(2, generator=generator), tg.get_rng_state()


@pytest.mark.parametrize(
    "function", [_forked, _forked_first, _forked_around_loops, _forked_in_loops, _set_back]
)
def test_generators_go_back_to_a_state_of_before(function):
    run_both(lambda n: tg.pytree.map(tg.as_tensor, function(n)))


def test_a_state_that_only_a_call_knows_is_refused():
    state = tg.get_rng_state()

    @tg.compile
    def function(x):
        tg.set_rng_state(state)
        return tg.rand(2)

    with pytest.raises(tg.tracing.TraceError, match="go back to a state that it had there"):
        function(tg.ones(2))


def test_a_trace_that_fails_leaves_generators_as_eager_code_does():
    def function(error):
        tg.rand(3)
        tg.manual_seed(9)
        tg.rand(3)
        raise error

    for call in (function, tg.compile(function)):
        tg.manual_seed(4)
        with contextlib.suppress(KeyError):
            call(KeyError())
        assert tg.get_rng_state().tolist() == [9, 1]
    tg.manual_seed(4)
    with contextlib.suppress(tg.TraceError):  # this is none of the function
        tg.compile(lambda: float(tg.rand(3).sum()))()
    assert tg.get_rng_state().tolist() == [4, 0]


def test_the_state_of_a_generator_is_read_at_each_call():
    tg.manual_seed(2)
    compiled = tg.compile(lambda: (tg.rand(2), tg.get_rng_state())[1])
    assert compiled().tolist() == [2, 1]
    assert compiled().tolist() == [2, 2]


def test_the_numbers_are_those_of_ever():
    """Of a seed, eager and compiled: programs rely on them."""

    def function(n):
        bits = (tg.rand(3) * 2**24).int(), (tg.rand(2, dtype=tg.float64) * 2**53).long()
        tg.randn(3)  # counts, though nobody reads it
        integers = tg.randint(1000, (4,)), tg.randperm(6), nn.functional.dropout(tg.ones(8)).int()
        tg.manual_seed(2**64 - 1)
        return *bits, *integers, (tg.rand(3) * 2**24).int(), tg.get_rng_state()

    for f in (function, tg.compile(function)):
        tg.manual_seed(1234)
        assert [each.tolist() for each in f(0)] == [
            [0x2090B3, 0xDA7CF0, 0x440190], [0x1A22B4271FCCFC, 0xA5F8F8C3C54E7],
            [660, 747, 671, 404], [0, 2, 1, 4, 5, 3], [2, 2, 2, 2, 0, 0, 0, 0],
            [0x72A477, 0x154747, 0x9F41B0], [-1, 1],
        ]  # fmt: skip


def drawn_at(state, number):
    """The bits of two draws in a row, of which the first is that with a `number` that is data."""
    key, counter = state[0], state[1] + number
    return tuple(apply(p.random_bits, key, counter + at, shape=(5, 7)) for at in range(2))


def test_a_counter_may_be_data():
    """As in a loop, which carries the state of a generator from step to step."""
    state = np.array([-5, 40])
    graph = tg.trace(drawn_at, tg.tensor(state), tg.tensor(3))
    compiled = tg.compile(drawn_at)
    for number in (0, 3, 1 << 40):
        wanted = [philox.random_bits(-5, 40 + number + at, 35).reshape(5, 7) for at in range(2)]
        given = [state, np.array(number)]
        for found in (
            drawn_at(*map(tg.tensor, given)),
            compiled(*map(tg.tensor, given)),
            run_kernel_interpreter(graph, given),
            interpret_program(tg.cuda.program(drawn_at, *map(tg.tensor, given)), given),
        ):
            for have, want in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(have), want)
    assert len(compiled.compiles) == 1
    assert len(compiled.explain(*map(tg.tensor, given)).kernels) == 1  # sums are inside


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
def test_a_counter_may_be_data_in_cuda_c():
    given = [np.array([7, 2]), np.array(9)]
    found = run_program(tg.cuda.program(drawn_at, *map(tg.tensor, given)), given)
    for at, have in enumerate(found):
        np.testing.assert_array_equal(have.reshape(-1), philox.random_bits(7, 11 + at, 35))


def test_counters_are_no_steps_of_a_plan():
    """However many draws there were: each is the first counter and a number."""
    compiled = tg.compile(lambda x: [nn.functional.dropout(x * n).sum() for n in range(20)])
    (plan,) = compiled.explain(tg.ones(1000, 30)).plans
    assert all("random_bits" in kernel.operations for kernel in plan.kernels)
    graph = optimize(tg.trace(lambda: [tg.rand(3) for _ in range(20)]))
    read = [node.inputs[1] for node in graph.nodes if node.primitive is p.random_bits]
    assert [node.primitive for node in read] == [p.reshape, *[p.add] * 19]
    assert all(node.inputs[0] is read[0] for node in read[1:])


DRAWS = {
    "rand": lambda x: tg.rand_like(x),
    "randn": lambda x: tg.randn_like(x),
    "randn_in_a_sum": lambda x: tg.randn_like(x) * 1 + 0,
    "uniform_": lambda x: x.clone().uniform_(-1.3, 2.7),
    "normal_": lambda x: x.clone().normal_(0.3, 1.7),
    "normal": lambda x: tg.normal(x, x * 0.7),
    "exponential_": lambda x: x.clone().exponential_(1.7),
    "log_normal_": lambda x: x.clone().log_normal_(0.3, 0.7),
    "cauchy_": lambda x: x.clone().cauchy_(0.3, 1.7),
    "geometric_": lambda x: x.clone().geometric_(0.3),
    "bernoulli": lambda x: tg.bernoulli(x * 0.3),
    "dropout": lambda x: nn.functional.dropout(x, 0.3),
    "multinomial": lambda x: tg.multinomial(x[:5000].reshape(50, 100), 20),
    "multinomial_replacing": lambda x: tg.multinomial(x[:5000].reshape(50, 100), 20, True),
}
BY_LOGARITHMS = {"randn", "randn_in_a_sum", "normal_", "normal", "exponential_",
                 "log_normal_", "cauchy_", "geometric_"}  # fmt: skip


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_equal_to_the_last_bit(name, dtype):
    """But for logarithms and cosines of float64, which may differ by roundings."""
    x = tg.full((100_000,), 0.7, dtype=dtype)
    found = []
    for draw in (DRAWS[name], tg.compile(lambda x: DRAWS[name](x))):
        tg.manual_seed(3)
        found.append(draw(x))
    if dtype is tg.float64 and name in BY_LOGARITHMS:
        assert tg.allclose(*found, rtol=1e-14, atol=1e-14)
    else:
        assert tg.equal(*found)


def factors(chances):
    """What normal and exponential numbers are made of, as functions of uniform ones."""
    waiting = basic_draws.waiting_time(chances)
    along = tg.cos(chances.double() * (2 * math.pi))
    return waiting.float(), tg.sqrt(waiting * 2).float(), along.float()


@pytest.mark.parametrize("step", [64, pytest.param(1, marks=pytest.mark.slow)])
def test_factors_of_every_uniform_number(step):
    """There are 2**24: no two libraries' results in float64 round to different ones of float32."""
    compiled = tg.compile(factors)
    for first in range(0, 1 << 24, 1 << 22):
        numbers = np.arange(first, first + (1 << 22), step) * 2.0**-24
        chances = tg.tensor(numbers.astype(np.float32))
        for eager, found in zip(factors(chances), compiled(chances), strict=True):
            assert tg.equal(eager, found)


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
def test_factors_in_cuda_c():
    chances = tg.tensor((np.arange(0, 1 << 24, 997) * 2.0**-24).astype(np.float32))
    found = run_program(tg.cuda.program(factors, chances), [chances.numpy()])
    for eager, array in zip(factors(chances), found, strict=True):
        np.testing.assert_array_equal(eager.numpy(), array)


def test_normal_numbers_are_normal():
    tg.manual_seed(0)
    x = tg.randn(1_000_000).double()
    moments = [(x**power).mean().item() for power in range(1, 5)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.02)


def test_samples_follow_their_weights():
    tg.manual_seed(0)
    weights = tg.tensor([0.0, 1.0, 2.0, 5.0])
    drawn = tg.multinomial(weights, 80_000, True)
    shares = tg.bincount(drawn, minlength=4).double() / 80_000
    np.testing.assert_allclose(shares.numpy(), [0, 0.125, 0.25, 0.625], atol=0.01)
    assert sorted(tg.multinomial(weights, 3).tolist()) == [1, 2, 3]


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16], ids=str)
def test_float64_becomes_a_half_type_by_way_of_float32(dtype):
    """As in PyTorch: next to the middle of two halves, float32 lies on it."""
    x = tg.tensor(
        [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 65519.9999999], dtype=tg.float64
    )
    wanted = x.float().to(dtype)
    assert tg.equal(x.to(dtype), wanted)
    assert tg.equal(tg.compile(lambda x: x.to(dtype))(x), wanted)
