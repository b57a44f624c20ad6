"""Random numbers in compiled functions are those that eager code draws."""

import contextlib

import tgraph as tg


def run_both(function, calls=3, seed=5):
    results = []
    for f in (function, compiled := tg.compile(function)):
        tg.manual_seed(seed)
        results.append([f(n) for n in range(calls)])
        results[-1].append(tg.rand(2))  # the generator is left at the same place
    for eager, found in zip(*results, strict=True):
        for a, b in zip(tg.pytree.leaves(eager), tg.pytree.leaves(found), strict=True):
            assert tg.allclose(a, b, rtol=1e-5, atol=1e-6)
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
            tg.functional.dropout(x, 0.3),
            tg.randperm(6),
            x.clone().uniform_(),
        )

    function_calls = run_both(lambda n: function(0))
    assert len(function_calls.compiles) == 3  # n is static


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
