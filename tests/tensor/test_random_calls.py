"""Every function that draws: the same numbers however it runs, and as they should be spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from source_cases import RANDOM

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = tg.get_num_threads()
    yield
    tg.set_num_threads(before)
    tg.manual_seed(0)


def pairs(T: Any, g: Any, d: Any, dtype: Any = tg.complex64) -> Any:
    return T.empty(3, 40, dtype=dtype, device=d)


CALLS: dict[str, Any] = {
    **RANDOM,
    "rand complex": lambda T, g, d: T.rand(3, 40, dtype=T.complex64, generator=g, device=d),
    "randn complex": lambda T, g, d: T.randn(3, 40, dtype=T.complex64, generator=g, device=d),
    "rand complex128": lambda T, g, d: T.rand(3, dtype=T.complex128, generator=g, device=d),
    "uniform_ complex": lambda T, g, d: pairs(T, g, d).uniform_(1, 3, generator=g),
    "normal_ complex": lambda T, g, d: pairs(T, g, d).normal_(1, 3, generator=g),
    "random_ upwards": lambda T, g, d: pairs(T, g, d, T.uint8).random_(5, None, generator=g),
    "random_ of 63 bits": lambda T, g, d: pairs(T, g, d, T.int64).random_(2**40, None, generator=g),
}


def everything(device: Any = None) -> list[Any]:
    return [call(tg, None, device) for call in CALLS.values()]


def drawn(function: Callable[..., Any] = everything, *args: Any) -> dict[str, Any]:
    tg.manual_seed(7)
    return dict(zip(CALLS, (each.cpu().numpy() for each in function(*args)), strict=True))


def test_draws_are_the_same_eager_compiled_and_of_any_threads() -> None:
    expected, compiled = drawn(), tg.compile(everything)
    for count in (1, 3):
        tg.set_num_threads(count)
        for run in (everything, compiled):
            for name, found in drawn(run).items():
                np.testing.assert_array_equal(found, expected[name], err_msg=name)


def test_draws_are_the_same_on_a_device(cuda: Any) -> None:
    expected = drawn()
    for name, found in drawn(everything, cuda).items():
        np.testing.assert_array_equal(found, expected[name], err_msg=name)


@pytest.mark.parametrize("name", [each for each in RANDOM if not each.endswith("_like")])
def test_a_generator_alone_decides(name: str) -> None:
    generator = tg.Generator()
    call, before = RANDOM[name], tg.get_rng_state()
    first = call(tg, generator.manual_seed(3), None)
    tg.rand(2)
    assert tg.equal(call(tg, generator.manual_seed(3), None), first)
    tg.set_rng_state(before)
    with tg.random.fork_rng():
        call(tg, None, None)
    assert tg.equal(tg.get_rng_state(), before)


N = 20_000
OF = (N,)
HALF = float(np.sqrt(0.5))
Row = tuple[Callable[[], Any], Callable[[Any], Any]]
"""What draws, and the distribution of `scipy.stats`, whose import takes longer than most tests."""
FLOATS: dict[str, Row] = {
    "uniform_": (lambda: tg.empty(N).uniform_(-2, 3), lambda s: s.uniform(-2, 5)),
    "normal_": (lambda: tg.empty(N).normal_(1, 2), lambda s: s.norm(1, 2)),
    "randn complex": (lambda: tg.view_as_real(tg.randn(N, dtype=tg.complex64)).ravel(),
                      lambda s: s.norm(0, HALF)),
    "normal_ complex": (lambda: tg.empty(N, dtype=tg.complex64).normal_(1, 2).imag,
                        lambda s: s.norm(1, 2 * HALF)),
    "uniform_ complex": (lambda: tg.empty(N, dtype=tg.complex64).uniform_(1, 3).imag,
                         lambda s: s.uniform(1, 2)),
    "normal of tensors": (
        lambda: (tg.normal(tg.full(OF, 3.0), tg.full(OF, 0.5)) - 3) / 0.5, lambda s: s.norm()),
    "exponential_": (lambda: tg.empty(N).exponential_(2.5), lambda s: s.expon(scale=1 / 2.5)),
    "log_normal_": (
        lambda: tg.empty(N).log_normal_(0.5, 0.3), lambda s: s.lognorm(0.3, scale=np.exp(0.5))),
    "cauchy_": (lambda: tg.empty(N).cauchy_(1, 2), lambda s: s.cauchy(1, 2)),
}  # fmt: skip
WHOLE: dict[str, Row] = {
    "randint": (lambda: tg.randint(-3, 9, OF), lambda s: s.randint(-3, 9)),
    "random_": (lambda: tg.empty(N).random_(3, 11), lambda s: s.randint(3, 11)),
    "bernoulli": (lambda: tg.bernoulli(tg.full(OF, 0.3)), lambda s: s.bernoulli(0.3)),
    "geometric_": (lambda: tg.empty(N).geometric_(0.3), lambda s: s.geom(0.3)),
    "poisson 0.2": (lambda: tg.poisson(tg.full(OF, 0.2)), lambda s: s.poisson(0.2)),
    "poisson 9.9": (lambda: tg.poisson(tg.full(OF, 9.9)), lambda s: s.poisson(9.9)),
    "poisson 10": (lambda: tg.poisson(tg.full(OF, 10.0)), lambda s: s.poisson(10)),
    "poisson 1000": (lambda: tg.poisson(tg.full(OF, 1e3)), lambda s: s.poisson(1e3)),
    "binomial few": (lambda: binomial(20, 0.2), lambda s: s.binom(20, 0.2)),
    "binomial most": (lambda: binomial(25, 0.95), lambda s: s.binom(25, 0.95)),
    "binomial half": (lambda: binomial(40, 0.5), lambda s: s.binom(40, 0.5)),
    "binomial many": (lambda: binomial(10_000, 0.7), lambda s: s.binom(10_000, 0.7)),
    "multinomial": (lambda: tg.multinomial(tg.tensor([0.1, 0.0, 0.6, 0.3]), N, True),
                    lambda s: s.rv_discrete(values=((0, 2, 3), (0.1, 0.6, 0.3)))),
}  # fmt: skip


def binomial(count: float, chance: float) -> Any:
    return tg.binomial(tg.full(OF, float(count)), tg.full(OF, chance))


@pytest.fixture(scope="module")
def stats() -> Any:
    from scipy import stats

    return stats


@pytest.mark.parametrize("name", FLOATS)
def test_distributions(name: str, stats: Any) -> None:
    tg.manual_seed(11)
    draw, expected = FLOATS[name]
    assert stats.kstest(draw().numpy(), expected(stats).cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", WHOLE)
def test_distributions_of_counts(name: str, stats: Any) -> None:
    """Chi-squared, over ranges of which each is expected 30 times or more often."""
    tg.manual_seed(11)
    draw, expected = WHOLE[name][0], WHOLE[name][1](stats)
    found = draw().numpy()
    low, high = expected.ppf(1e-9), expected.ppf(1 - 1e-9)
    assert found.min() >= low and found.max() <= high
    edges = [low - 1]
    for at in np.arange(low, high + 1):
        if N * (expected.cdf(at) - expected.cdf(edges[-1])) > 30 and N * expected.sf(at) > 30:
            edges.append(at)
    cdf = np.array([0, *expected.cdf(edges[1:]), 1])
    counts = np.diff([0, *(np.sum(found <= edge) for edge in edges[1:]), N])
    assert stats.chisquare(counts, N * np.diff(cdf)).pvalue > 1e-3
