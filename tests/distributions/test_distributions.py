"""Distributions, divergences and transforms beside PyTorch's figures; draws by their moments."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from figures import CASES, FILE, divergences, made, of_case, transforms

import tgraph as tg
from tgraph import distributions as d
from tgraph.ops.count_draws import poisson

FIGURES = json.loads(FILE.read_text())
# PyTorch's trigamma has nine digits; it computes some constants in float32.
NEAR = 3e-8


def check_same(found: Any, expected: Any, where: str) -> None:
    """Numbers nearly, all else exactly."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, each in expected.items():
            check_same(found[key], each, f"{where}: {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, (have, want) in enumerate(zip(found, expected, strict=True)):
            check_same(have, want, f"{where}[{number}]")
    elif isinstance(expected, float) and not isinstance(found, str):
        assert found == pytest.approx(expected, rel=NEAR, abs=NEAR * 1e-2, nan_ok=True), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", CASES)
def test_distributions_are_pytorchs(name: str) -> None:
    check_same(of_case(tg, name), FIGURES[name], name)


def test_divergences_are_pytorchs() -> None:
    check_same(divergences(tg), FIGURES["divergences"], "divergences")


def test_transforms_are_pytorchs() -> None:
    check_same(transforms(tg), FIGURES["transforms"], "transforms")


def test_the_figures_are_those_of_the_installed_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    for name in ("Normal", "Gamma", "Categorical", "MultivariateNormal"):
        check_same(of_case(torch, name), FIGURES[name], name)


COMPILED = ("Normal", "Gamma", "Categorical of logits", "MultivariateNormal", "RelaxedBernoulli")


def test_compiled_code_gives_what_eager_code_does() -> None:
    """Distributions that are made, checked and asked inside; draws of one seed, too."""
    cases = [(CASES[name], *made(tg, name)[1:]) for name in COMPILED]
    given = [list(params.values()) for _, params, _ in cases]

    def run(values: list[list[Any]]) -> Any:
        told = []
        for ((kind, numbers, _), params, at), tensors in zip(cases, values, strict=True):
            each = getattr(d, kind)(**{**numbers, **dict(zip(params, tensors, strict=True))})
            draw = each.rsample() if each.has_rsample else each.sample() * 0.0
            told += [each.log_prob(at).sum(), draw.sum()]
        return told

    run_compiled = tg.compile(run)
    leaves = [each for several in given for each in several]
    outcomes = []
    for function in (run, run_compiled):
        tg.manual_seed(5)
        values = function(given)
        slopes = tg.autograd.grad(sum(values), leaves)
        outcomes.append([each.detach().numpy() for each in (*values, *slopes)])
    for have, want in zip(*outcomes, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-10)


def test_compiled_code_checks_values_when_it_runs() -> None:
    run = tg.compile(lambda scale, x: d.Normal(0.0, scale).log_prob(x))
    x = tg.tensor([1.0, 2.0])
    assert tg.equal(run(x, x), d.Normal(0.0, x).log_prob(x))
    with pytest.raises(RuntimeError, match=r"parameter scale .* constraint GreaterThan"):
        run(tg.tensor([1.0, -2.0]), x)


DRAWN = ("Laplace", "Gamma", "Beta", "Gumbel", "Geometric", "NegativeBinomial", "OneHotCategorical",
         "Multinomial", "LowRankMultivariateNormal")  # fmt: skip


def test_draws_have_the_moments_of_their_distribution() -> None:
    count = 4000
    tg.manual_seed(3)
    for name in DRAWN:
        each, params, _ = made(tg, name)
        if each.has_rsample:
            slopes = tg.autograd.grad(each.rsample((2,)).sum(), list(params.values()))
            assert all(bool(tg.isfinite(g).all()) for g in slopes), name
        drawn = each.sample((count,))
        assert drawn.shape == (count, *each.batch_shape, *each.event_shape), name
        assert bool(each.support.check(drawn).all()) and not drawn.requires_grad, name
        mean, variance = each.mean.detach().numpy(), each.variance.detach().numpy()
        away = (drawn.numpy().mean(0) - mean) / np.sqrt(variance / count)
        assert np.abs(away).max() < 5, name
    angles = np.exp(1j * d.VonMises(2.0, 3.0).sample((count,)).numpy()).mean()
    assert np.angle(angles) == pytest.approx(2.0, abs=0.05)
    assert 1 - np.abs(angles) == pytest.approx(0.19, abs=0.02)
    many = poisson(tg.full((count,), 50.0)).numpy()
    assert many.mean() == pytest.approx(50, abs=0.6) and many.var() == pytest.approx(50, rel=0.1)


def test_correlations_are_drawn_alike() -> None:
    """Each is a beta variable of -1 to 1, with both parameters concentration + (dim - 2) / 2."""
    tg.manual_seed(1)
    factors = d.LKJCholesky(4, tg.tensor(0.7)).sample((20_000,))
    found = (factors @ factors.mT).square().mean(0)
    wanted = tg.full((4, 4), 1 / (2 * (0.7 + 1) + 1)).fill_diagonal_(1.0)
    tg.testing.assert_close(found, wanted, rtol=0.05, atol=0)


def test_gradients_of_gamma_draws_are_those_of_the_quantile() -> None:
    """d/da of a draw by a hundred thousand of them: that of the mean of x**2, 2a + 1."""
    tg.manual_seed(0)
    a = tg.tensor([0.3, 2.0, 40.0], dtype=tg.float64, requires_grad=True)
    squares = d.Gamma(a, tg.ones(3, dtype=tg.float64)).rsample((4000,)).square().mean(0)
    (slope,) = tg.autograd.grad(squares.sum(), [a])
    np.testing.assert_allclose(slope.numpy(), 2 * a.detach().numpy() + 1, rtol=0.1)


def test_mixtures() -> None:
    parts = d.Independent(d.Normal(tg.tensor([[0.0, 4.0], [-3.0, 1.0]]), 1.0), 1)
    weights = tg.tensor([0.25, 0.75])
    mixture = d.MixtureSameFamily(d.Categorical(weights), parts)
    x = tg.tensor([-2.0, 1.5])
    expected = math.log(
        sum(float(w * c.exp()) for w, c in zip(weights, parts.log_prob(x), strict=True))
    )
    assert mixture.log_prob(x).item() == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(mixture.mean.numpy(), [-2.25, 1.75], rtol=1e-6)
    tg.manual_seed(1)
    drawn = mixture.sample((5000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), [-2.25, 1.75], atol=0.1)
    np.testing.assert_allclose(drawn.var(0), mixture.variance.numpy(), rtol=0.1)
    assert mixture.expand((2,)).log_prob(x).shape == (2,)
    line = d.MixtureSameFamily(d.Categorical(weights), d.Normal(tg.tensor([0.0, 2.0]), 1.0))
    assert line.cdf(tg.tensor(0.0)).item() == pytest.approx(0.125 + 0.75 * 0.0227501, rel=1e-4)


def test_an_impossible_class_adds_nothing_to_the_entropy() -> None:
    found = d.Categorical(logits=tg.tensor([0.0, 0.0, -math.inf])).entropy()
    assert found.item() == pytest.approx(math.log(2))


def test_gradients_of_the_log_normalizer_of_normal_are_its_moments() -> None:
    normal = d.Normal(1.0, 2.0)
    given = [each.detach().requires_grad_() for each in normal._natural_params]
    found = normal._log_normalizer(*given)
    assert found.item() == pytest.approx(1.7370857, rel=1e-6)
    moments = [each.item() for each in tg.autograd.grad(found, given)]
    assert moments == pytest.approx([1.0, 5.0])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected parameter scale \(Tensor of shape \(\)\)"):
        d.Normal(0.0, -1.0)
    d.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="within the support"):
        d.Exponential(1.0).log_prob(tg.tensor(-1.0))
    with pytest.raises(ValueError, match="not broadcastable"):
        d.Normal(tg.zeros(3), 1.0).log_prob(tg.zeros(2))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        d.Bernoulli()
    with pytest.raises(ValueError, match="Exactly one of"):
        d.MultivariateNormal(tg.zeros(2))
    with pytest.raises(NotImplementedError, match="has_rsample is False"):
        d.Bernoulli(0.5).rsample()
    with pytest.raises(NotImplementedError, match="p type Cauchy and q type Poisson"):
        d.kl_divergence(d.Cauchy(0.0, 1.0), d.Poisson(1.0))


def test_distributions_of_users() -> None:
    """Subclasses expand and have divergences; the nearest rule is taken."""

    class Plain(d.Normal):
        pass

    class Wrong(d.Normal):
        def __init__(self, loc: Any) -> None:
            super().__init__(loc, 0.5)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Wrong(0.0).expand((2,))
    assert type(Plain(0.0, 1.0).expand((2,))) is Plain
    near, far = Plain(0.0, 1.0), d.Normal(1.0, 1.0)
    assert d.kl_divergence(near, far).item() == 0.5
    d.register_kl(Plain, d.Normal)(lambda p, q: tg.tensor(7.0))
    assert d.kl_divergence(near, far).item() == 7.0
    with pytest.raises(TypeError, match="type_q to be a class"):
        d.register_kl(Plain, "Normal")
    rule = object()
    assert d.register_kl(Plain, int)(rule) is rule  # Pyro's classes are not ours
