"""Random numbers: reproducible from the seed, by the documented formula, well distributed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tgraph.runtime import philox

import tgraph as tg
from tgraph.nn import functional as F
from tgraph.ops import basic_draws


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    tg.manual_seed(1234)
    yield
    tg.manual_seed(0)


def test_the_formula_of_uniform_numbers() -> None:
    first, second = tg.rand(5), tg.rand(2, 3)
    for counter, found in enumerate((first, second)):
        bits = philox.random_bits(1234, counter, found.numel()).reshape(found.shape)
        expected = (bits >> 8).astype(np.float32) * np.float32(2**-24)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_every_call_uses_one_counter() -> None:
    before = tg.default_generator.counter
    tg.rand(3)
    tg.randn(3)
    tg.randint(5, (2,))
    tg.randperm(4)
    F.dropout(tg.ones(3))
    tg.zeros(3).normal_()
    tg.rand(3, dtype=tg.float64)
    assert tg.default_generator.counter == before + 7


def test_seeds_and_states() -> None:
    state = tg.get_rng_state()
    a, b = tg.rand(4), tg.rand(4)
    assert not tg.equal(a, b)
    tg.set_rng_state(state)
    assert tg.equal(tg.rand(4), a)
    tg.manual_seed(1234)
    assert tg.equal(tg.rand(4), a) and tg.initial_seed() == 1234
    generator = tg.Generator().manual_seed(1234)
    assert tg.equal(tg.rand(4, generator=generator), a)
    for seed in (-1, 2**64 - 1, 2**63):
        tg.manual_seed(seed)
        state = tg.get_rng_state()
        first = tg.rand(2)
        tg.set_rng_state(state)
        assert tg.equal(tg.rand(2), first)
    with pytest.raises(RuntimeError, match="more than 64 bits"):
        tg.manual_seed(2**64)
    assert tg.seed() == tg.initial_seed()


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16, tg.float32, tg.float64])
def test_uniform_numbers_stay_below_one(dtype: tg.dtype) -> None:
    x = tg.rand(20000, dtype=dtype).double()
    assert x.min().item() >= 0 and x.max().item() < 1
    assert abs(x.mean().item() - 0.5) < 0.01
    assert abs(x.var().item() - 1 / 12) < 0.005


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_normal_numbers(dtype: tg.dtype) -> None:
    x = tg.randn(50000, dtype=dtype)
    assert x.dtype is dtype and x.isfinite().all()
    assert abs(x.mean().item()) < 0.02 and abs(x.std().item() - 1) < 0.02
    kurtosis = (x**4).mean().item()
    assert abs(kurtosis - 3) < 0.2


@pytest.mark.parametrize(("dtype", "error"), [(tg.float32, 2**-35), (tg.float64, 2**-51)])
def test_the_angle_of_normal_numbers(dtype: tg.dtype, error: float) -> None:
    """Quarters of a turn are exact, and what is near them relative to its own size."""
    bits = 24 if dtype is tg.float32 else 53
    least = 2.0**-bits
    special = [0, 0.25, 0.5, 0.75, least, 1 - least, 0.25 + least, 0.25 - least, 0.75 + least]
    drawn = np.random.default_rng(0).integers(0, 1 << bits, 20_000) * least
    turns = np.concatenate([special, drawn])
    found = basic_draws._cosine_of_turns(tg.tensor(turns), dtype).numpy()
    np.testing.assert_allclose(found[:4], [1, 0, -1, 0], rtol=error)
    # sin(2 pi z) of an exact z loses nothing near zero.
    expected = -np.sin(2 * np.pi * (turns - np.where(turns < 0.5, 0.25, 0.75)))
    expected = np.where(turns < 0.5, expected, -expected)
    np.testing.assert_allclose(found, expected, rtol=error + 2**-51)


def test_integers() -> None:
    x = tg.randint(3, 7, (10000,))
    assert x.dtype is tg.int64 and set(x.tolist()) == {3, 4, 5, 6}
    counts = tg.bincount(x)[3:]
    assert (counts - 2500).abs().max().item() < 250
    assert tg.randint(2, (3,), dtype=tg.int8).dtype is tg.int8
    wide = tg.randint(0, 2**40, (1000,))
    assert wide.max().item() > 2**38 and wide.min().item() >= 0
    draw = partial(tg.randint, -(2**63), 2**63 - 1, (1000,))
    for every in (draw(), tg.compile(draw)()):
        assert abs((every > 0).float().mean().item() - 0.5) < 0.1
    assert tg.randint(-5, -4, (3,)).tolist() == [-5] * 3
    with pytest.raises(RuntimeError, match="'from' to be less than 'to', but got 3 >= 3"):
        tg.randint(3, 3, (2,))


def test_permutations() -> None:
    assert set(tg.zeros(100, dtype=tg.bool).random_().tolist()) == {False, True}
    for dtype, largest in (
        (tg.int8, 127), (tg.uint8, 255), (tg.float16, 2**11), (tg.bfloat16, 2**8),
        (tg.float32, 2**24), (tg.float64, 2**53),
    ):  # fmt: skip
        for limits in ((), (0, None)):
            greatest = tg.zeros(4000, dtype=dtype).random_(*limits).max().item()
            assert 0.97 * largest < greatest <= largest
    assert abs(tg.bernoulli(tg.zeros(2000), 0.25).mean().item() - 0.25) < 0.05
    with pytest.raises(TypeError, match=r"must be tgraph\.Generator"):
        tg.rand(2, generator=3)  # type: ignore[arg-type]
    assert sorted(tg.randperm(100).tolist()) == list(range(100))
    assert not tg.equal(tg.randperm(100), tg.randperm(100))
    assert tg.randperm(0).shape == (0,)


def test_in_place_and_like() -> None:
    x = tg.empty(1000)
    assert x.uniform_(2, 3).min().item() >= 2 and x.max().item() < 3
    assert abs(x.normal_(5, 0.1).mean().item() - 5) < 0.02
    assert set(x.bernoulli_(0.5).tolist()) == {0.0, 1.0}
    assert x.exponential_().min().item() >= 0
    assert x.random_(3).max().item() == 2
    assert abs(x.log_normal_(2, 0.1).log().mean().item() - 2) < 0.02
    assert abs(x.cauchy_(3, 0.5).median().item() - 3) < 0.1
    assert 0.4 < ((x - 3).abs() < 0.5).float().mean().item() < 0.6
    whole = tg.empty(4000, dtype=tg.int64).geometric_(0.25)
    assert whole.min().item() == 1 and abs(whole.float().mean().item() - 4) < 0.4
    assert abs((whole == 1).float().mean().item() - 0.25) < 0.04
    assert tg.rand_like(x).shape == tg.randn_like(x).shape == x.shape
    assert tg.randint_like(x, 5).dtype is tg.float32
    with pytest.raises(TypeError, match="missing a bound"):
        tg.randint_like(x)
    with pytest.raises(RuntimeError, match=r"\[from, to\) range"):
        x.uniform_(3, 2)


def test_choices() -> None:
    p = tg.tensor([0.0, 0.25, 1.0])
    drawn = tg.stack([tg.bernoulli(p) for _ in range(400)]).mean(0)
    assert drawn[0] == 0 and drawn[2] == 1 and 0.15 < drawn[1].item() < 0.35
    weights = tg.tensor([[1.0, 0.0, 3.0]])
    counts = tg.bincount(tg.multinomial(weights, 4000, replacement=True)[0])
    assert counts[1] == 0 and abs(counts[2].item() - 3000) < 150
    without = tg.multinomial(weights[0], 2)
    assert sorted(without.tolist()) == [0, 2]
    with pytest.raises(RuntimeError, match="without replacement"):
        tg.multinomial(weights[0], 4)
    means = tg.normal(tg.tensor([0.0, 100.0]), tg.tensor([1.0, 2.0]))
    assert means.shape == (2,) and means[1].item() > 80


def test_dropout() -> None:
    x = tg.ones(10000, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = (y > 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02
    np.testing.assert_allclose(y.detach().numpy().max(), 1 / 0.75, rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    assert F.dropout(x, 0.5, training=False) is x
    assert not F.dropout(x, 1.0).any()
    assert F.dropout(tg.full((3,), float("inf")), 1.0).tolist() == [0.0] * 3
    rows = F.dropout2d(tg.ones(50, 4, 3, 3), 0.5)
    assert set(rows.amax((2, 3)).reshape(-1).tolist()) == {0.0, 2.0}
    assert tg.equal(rows.amax((2, 3)), rows.amin((2, 3)))
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1.5"):
        F.dropout(x, 1.5)


def test_a_float_dtype_is_needed() -> None:
    with pytest.raises(RuntimeError, match="not implemented for int64"):
        tg.rand(2, dtype=tg.int64)


REFUSED_DRAWS: dict[str, Any] = {
    "multinomial of zeros": (lambda: tg.zeros(2), lambda x: tg.multinomial(x, 1), "sum of prob"),
    "multinomial of a row of zeros": (
        lambda: tg.tensor([[1.0, 0.0], [0.0, 0.0]]),
        lambda x: tg.multinomial(x, 1, replacement=True),
        "sum of probabilities <= 0",
    ),
    "negative weights": (lambda: tg.tensor([1.0, -1.0]), lambda x: tg.multinomial(x, 1), "< 0"),
    "NaN weights": (lambda: tg.tensor([1.0, math.nan]), lambda x: tg.multinomial(x, 1), "nan"),
    "infinite weights": (lambda: tg.tensor([1.0, math.inf]), lambda x: tg.multinomial(x, 1), "inf"),
    "integer weights": (
        lambda: tg.ones(2, dtype=tg.int64),
        lambda x: tg.multinomial(x, 1),
        "float",
    ),
    "many dimensions": (lambda: tg.ones(1, 1, 1), lambda x: tg.multinomial(x, 1), "1 or 2 dim"),
    "no samples": (lambda: tg.ones(2), lambda x: tg.multinomial(x, 0), "n_sample <= 0"),
    "bernoulli": (lambda: tg.tensor([0.5, 1.5]), lambda x: tg.bernoulli(x), "p_in >= 0"),
    "bernoulli_": (lambda: tg.ones(2), lambda x: x.bernoulli_(1.5), r"in \[0, 1\]"),
    "bernoulli_ tensor": (lambda: tg.ones(2), lambda x: x.bernoulli_(x * 2), "p_in >= 0"),
    "exponential_": (lambda: tg.ones(2), lambda x: x.exponential_(0), "lambda > 0"),
    "log_normal_": (lambda: tg.ones(2), lambda x: x.log_normal_(0, 0), "std > 0"),
    "cauchy_": (lambda: tg.ones(2), lambda x: x.cauchy_(0, -1), "sigma > 0"),
    "cauchy_ of integers": (lambda: tg.arange(2), lambda x: x.cauchy_(), "floating point"),
    "geometric_": (lambda: tg.ones(2), lambda x: x.geometric_(1), r"in \(0, 1\)"),
    "normal": (lambda: tg.ones(2), lambda x: tg.normal(0.0, -1.0, (2,)), "std >= 0"),
    "random_": (lambda: tg.ones(2), lambda x: x.random_(0), "'from' to be less"),
    "random_ outside": (
        lambda: tg.arange(2, dtype=tg.int8),
        lambda x: x.random_(200),
        "out of bounds for int8",
    ),
    "randint outside": (
        lambda: tg.ones(2),
        lambda x: tg.randint(-1, 5, (2,), dtype=tg.uint8),
        "from is out of",
    ),
    "randperm outside": (
        lambda: tg.ones(2),
        lambda x: tg.randperm(300, dtype=tg.int8),
        "without overflow",
    ),
    "bernoulli_ of complex": (
        lambda: tg.ones(2, dtype=tg.complex64),
        lambda x: x.bernoulli_(),
        "not implemented",
    ),
    "random_ of complex": (
        lambda: tg.ones(2, dtype=tg.complex64),
        lambda x: x.random_(),
        "not implemented",
    ),
    "random_ beyond the largest": (
        lambda: tg.ones(2, dtype=tg.uint8),
        lambda x: x.random_(256, None),
        "less than 'to'",
    ),
    "negative sizes": (lambda: tg.ones(2), lambda x: tg.rand(2, -1), "negative dimension -1"),
    "normal of tensors": (
        lambda: tg.tensor([-1.0]),
        lambda x: tg.normal(0.0, x),
        "all elements of std >= 0.0",
    ),
    "normal of integers": (lambda: tg.arange(2), lambda x: tg.normal(x, 1.0), "not implemented"),
    "bernoulli of integers": (lambda: tg.arange(2), lambda x: tg.bernoulli(x), "not implemented"),
    "bernoulli by number": (lambda: tg.ones(2), lambda x: tg.bernoulli(x, 2.0), r"in \[0, 1\]"),
    "poisson": (lambda: tg.tensor([1.0, -1.0]), lambda x: tg.poisson(x), "to be non-negative"),
    "poisson of integers": (lambda: tg.arange(2), lambda x: tg.poisson(x), "floating-point"),
    "binomial of two types": (
        lambda: tg.ones(2),
        lambda x: tg.binomial(x, x.double()),
        "the same dtype",
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", REFUSED_DRAWS.values(), ids=REFUSED_DRAWS)
def test_what_nothing_can_be_drawn_from_is_refused(case: Any, compiled: bool) -> None:
    make, draw, message = case
    x = make()
    with pytest.raises(RuntimeError, match=message):
        (tg.compile(lambda x: draw(x)) if compiled else draw)(x)
    assert x.tolist() == make().tolist() or x.isnan().any()


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_numbers_that_are_rounded_up_are_not_the_upper_end(dtype):
    x = tg.empty(20_000, dtype=dtype).uniform_(1, 1.5)
    assert x.min() >= 1 and x.max() < 1.5
