"""What a library's distributions say, by one text for PyTorch and tgraph.

`python tests/distributions/figures.py`, where PyTorch is installed, writes what it says to
`figures.json`, which the tests compare with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("figures.json")
A, B = [0.7, 1.9, 2.6], [1.3, 0.4, 3.2]
REAL, POSITIVE, SHARE = [-1.2, 0.3, 2.1], [0.4, 1.1, 3.7], [0.2, 0.45, 0.83]
PROBS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
LOGITS = [[0.3, -1.0, 0.8], [0.0, 2.0, -0.4]]
COVARIANCE = [[2.0, 0.3, -0.2], [0.3, 1.5, 0.4], [-0.2, 0.4, 1.0]]
TRIL = [[1.2, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.3, 0.2, 1.6]]
FACTOR = [[0.5, -0.2], [1.0, 0.3], [0.1, 0.9]]

# The class, its parameters, and values of which the density is asked.
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "Normal": ("Normal", {"loc": REAL, "scale": A}, [0.1, -2.0, 3.0]),
    "LogNormal": ("LogNormal", {"loc": REAL, "scale": A}, POSITIVE),
    "HalfNormal": ("HalfNormal", {"scale": A}, POSITIVE),
    "Cauchy": ("Cauchy", {"loc": REAL, "scale": A}, [0.1, -2.0, 3.0]),
    "HalfCauchy": ("HalfCauchy", {"scale": A}, POSITIVE),
    "Laplace": ("Laplace", {"loc": REAL, "scale": A}, [0.1, -2.0, 3.0]),
    "Uniform": ("Uniform", {"low": REAL, "high": [1.0, 2.0, 5.0]}, [-0.3, 1.1, 4.0]),
    "Exponential": ("Exponential", {"rate": A}, POSITIVE),
    "Gamma": ("Gamma", {"concentration": A, "rate": B}, POSITIVE),
    "Chi2": ("Chi2", {"df": A}, POSITIVE),
    "InverseGamma": ("InverseGamma", {"concentration": A, "rate": B}, POSITIVE),
    "Beta": ("Beta", {"concentration1": A, "concentration0": B}, SHARE),
    "Kumaraswamy": ("Kumaraswamy", {"concentration1": A, "concentration0": B}, SHARE),
    "Dirichlet": ("Dirichlet", {"concentration": [A, B]}, PROBS),
    "StudentT": ("StudentT", {"df": A, "loc": REAL, "scale": B}, [0.1, -2.0, 3.0]),
    "FisherSnedecor": ("FisherSnedecor", {"df1": A, "df2": [1.5, 3.2, 6.0]}, POSITIVE),
    "Gumbel": ("Gumbel", {"loc": REAL, "scale": A}, [0.1, -2.0, 3.0]),
    "Pareto": ("Pareto", {"scale": A, "alpha": [0.8, 1.5, 3.0]}, [0.9, 2.5, 4.0]),
    "GeneralizedPareto": (
        "GeneralizedPareto", {"loc": REAL, "scale": A, "concentration": [-0.4, 0.0, 0.3]},
        [-0.3, 1.1, 4.0],
    ),
    "Weibull": ("Weibull", {"scale": A, "concentration": [1.2, 2.0, 3.5]}, POSITIVE),
    "VonMises": ("VonMises", {"loc": REAL, "concentration": [0.5, 3.0, 7.0]}, [0.1, -2.0, 3.0]),
    "LKJCholesky": (
        "LKJCholesky", {"dim": 3, "concentration": [0.7, 2.0]},
        [[1.0, 0, 0], [0.6, 0.8, 0], [0.28, 0.576, 0.768]],
    ),
    "Wishart": ("Wishart", {"df": [3.5, 6.0], "covariance_matrix": COVARIANCE}, COVARIANCE),
    "Wishart of a precision": (
        "Wishart", {"df": 4.0, "precision_matrix": COVARIANCE}, COVARIANCE
    ),
    "Bernoulli": ("Bernoulli", {"probs": SHARE}, [0.0, 1.0, 1.0]),
    "Bernoulli of logits": ("Bernoulli", {"logits": REAL}, [0.0, 1.0, 1.0]),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": [0.2, 0.5003, 0.83]}, SHARE),
    "Geometric": ("Geometric", {"probs": SHARE}, [0.0, 2.0, 5.0]),
    "Binomial": ("Binomial", {"total_count": 5, "probs": SHARE}, [0.0, 2.0, 5.0]),
    "Binomial of logits": ("Binomial", {"total_count": 5, "logits": REAL}, [0.0, 2.0, 5.0]),
    "NegativeBinomial": ("NegativeBinomial", {"total_count": A, "probs": SHARE}, [0.0, 2.0, 5.0]),
    "Poisson": ("Poisson", {"rate": A}, [0.0, 2.0, 5.0]),
    "Categorical": ("Categorical", {"probs": PROBS}, [2, 0]),
    "Categorical of logits": ("Categorical", {"logits": LOGITS}, [2, 0]),
    "OneHotCategorical": ("OneHotCategorical", {"logits": LOGITS}, [[0.0, 1, 0], [1, 0, 0]]),
    "Multinomial": ("Multinomial", {"total_count": 4, "probs": PROBS}, [[0.0, 3, 1], [2, 1, 1]]),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": 0.7, "logits": REAL}, SHARE),
    "RelaxedOneHotCategorical": (
        "RelaxedOneHotCategorical", {"temperature": 0.7, "logits": LOGITS}, PROBS,
    ),
    "LogisticNormal": ("LogisticNormal", {"loc": [0.1, -0.5], "scale": [0.7, 1.2]}, PROBS),
    "MultivariateNormal": (
        "MultivariateNormal", {"loc": [REAL, A], "covariance_matrix": COVARIANCE}, [A, B],
    ),
    "MultivariateNormal of a factor": (
        "MultivariateNormal", {"loc": REAL, "scale_tril": [TRIL, TRIL]}, [A, B],
    ),
    "MultivariateNormal of a precision": (
        "MultivariateNormal", {"loc": REAL, "precision_matrix": COVARIANCE}, [A, B],
    ),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal", {"loc": REAL, "cov_factor": FACTOR, "cov_diag": B}, [A, B],
    ),
}  # fmt: skip
ASKED = ("mean", "variance", "stddev", "mode")
# PyTorch's mode of Kumaraswamy is NaN: it takes logarithms of negative numbers.
MODES_OF_THEIR_OWN = {"Kumaraswamy"}


def made(lib: Any, name: str) -> tuple[Any, dict[str, Any], Any]:
    """The distribution of a case, its parameters that are tensors, and the values."""
    kind, given, values = CASES[name]
    params = {
        key: lib.tensor(each, dtype=lib.float64, requires_grad=True)
        for key, each in given.items()
        if isinstance(each, (list, float))
    }
    whole = isinstance(values[0], int)
    at = lib.tensor(values, dtype=lib.int64 if whole else lib.float64)
    return getattr(lib.distributions, kind)(**{**given, **params}), params, at


def _listed(x: Any) -> Any:
    return x.detach().tolist()


def _asked(question: Any) -> Any:
    """The answer, or None where there is none."""
    try:
        return _listed(question())
    except NotImplementedError:
        return None


def of_case(lib: Any, name: str) -> dict[str, Any]:
    """All figures of a case."""
    found, params, at = made(lib, name)
    chances = found.log_prob(at)
    names, tensors = zip(*params.items(), strict=True)
    slopes = lib.autograd.grad(chances.sum(), tensors, retain_graph=True)
    told = {
        "shapes": [list(found.batch_shape), list(found.event_shape)],
        "rsample": found.has_rsample,
        "log_prob": _listed(chances),
        **{f"gradient of {key}": _listed(g) for key, g in zip(names, slopes, strict=True)},
        "entropy": _asked(found.entropy),
        "cdf": _asked(lambda: found.cdf(at)),
        "support": _listed(found.support.check(at)),
    }
    if told["entropy"] is not None:
        slopes = lib.autograd.grad(found.entropy().sum(), tensors, allow_unused=True)
        told["gradients of the entropy"] = [None if g is None else _listed(g) for g in slopes]
    if told["cdf"] is not None:
        told["icdf"] = _asked(lambda: found.icdf(lib.tensor(SHARE, dtype=lib.float64)))
    for question in ASKED:
        if question != "mode" or name not in MODES_OF_THEIR_OWN:
            told[question] = _asked(lambda question=question: getattr(found, question))
    larger = found.expand((2, *found.batch_shape))
    told["expanded"] = _listed(larger.log_prob(at))
    if CASES[name][0] != "Binomial":  # PyTorch's computes its logits at once, and shows them
        told["repr"] = [repr(each).replace("torch.", "tgraph.") for each in (found, larger)]
    if found.has_enumerate_support:
        told["enumerated"] = _listed(found.enumerate_support())
    return told


DIVERGENCES = ("Normal", "Laplace", "Uniform", "Exponential", "Gamma", "Beta", "Gumbel", "Pareto",
               "ContinuousBernoulli", "Bernoulli", "Poisson", "Binomial", "Geometric", "Cauchy",
               "HalfNormal", "Dirichlet", "Categorical", "OneHotCategorical", "LogNormal",
               "MultivariateNormal", "MultivariateNormal of a factor",
               "LowRankMultivariateNormal")  # fmt: skip

SECONDS = {
    "Normal": (0.4, 1.7), "Gamma": (1.4, 0.6), "Beta": (1.4, 0.6), "Laplace": (0.4, 1.7),
    "Uniform on (0, 1)": (0.1, 0.9), "Uniform on (-9, 9)": (-9.0, 9.0),
    "ContinuousBernoulli": (0.3,), "Gumbel": (0.4, 1.7), "Cauchy": (0.4, 1.7),
    "Exponential": (1.7,), "Pareto": (0.01, 1.7), "Bernoulli": (0.3,), "Geometric": (0.3,),
    "Binomial": (5.0, 0.3), "Poisson": (1.7,), "HalfNormal": (1.7,),
}  # fmt: skip


def divergences(lib: Any) -> dict[str, Any]:
    """Those of all pairs that there are, of some families with parameters of two kinds."""
    told: dict[str, Any] = {}
    firsts = {name: made(lib, name)[0] for name in DIVERGENCES}
    for name, values in SECONDS.items():
        numbers = [lib.tensor(each, dtype=lib.float64) for each in values]
        firsts[f"{name}'"] = getattr(lib.distributions, name.split()[0])(*numbers)
    for name, p in firsts.items():
        for other, q in firsts.items():
            try:
                told[f"{name} | {other}"] = _listed(lib.distributions.kl_divergence(p, q))
            except (NotImplementedError, ValueError, RuntimeError):
                continue
    return told


TRANSFORMS = ("ExpTransform", "SigmoidTransform", "TanhTransform", "SoftplusTransform",
              "SoftmaxTransform", "StickBreakingTransform", "CorrCholeskyTransform",
              "LowerCholeskyTransform", "PositiveDefiniteTransform")  # fmt: skip


def transforms(lib: Any) -> dict[str, Any]:
    """Values, inverses and Jacobians."""
    d = lib.distributions
    t = d.transforms

    def tensor(x: Any) -> Any:
        return lib.tensor(x, dtype=lib.float64)

    given = {name: getattr(t, name)() for name in TRANSFORMS}
    given |= {
        "AffineTransform": t.AffineTransform(tensor([1.0, 2.0, 3.0]), -0.5),
        "AffineTransform of events": t.AffineTransform(1.0, tensor([0.5, 2.0, 1.5]), event_dim=1),
        "PowerTransform": t.PowerTransform(tensor(1.7)),
        "AbsTransform": t.AbsTransform(),
        "ReshapeTransform": t.ReshapeTransform((3,), (3, 1)),
        "ComposeTransform": t.ComposeTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)]),
        "IndependentTransform": t.IndependentTransform(t.TanhTransform(), 1),
        "CatTransform": t.CatTransform(
            [t.ExpTransform(), t.TanhTransform()], dim=-1, lengths=[1, 2]
        ),
        "StackTransform": t.StackTransform(
            [t.ExpTransform(), t.TanhTransform(), t.SigmoidTransform()], dim=-1
        ),
        "CumulativeDistributionTransform": t.CumulativeDistributionTransform(
            d.Normal(tensor(0.3), tensor(1.2))
        ),
    }
    c = d.constraints
    for name, constraint in {
        "positive": c.positive, "unit": c.unit_interval, "interval": c.interval(-1.0, 3.0),
        "above": c.greater_than(2.0), "below": c.less_than(2.0), "simplex": c.simplex,
        "vectors": c.independent(c.positive, 1), "real": c.real,
    }.items():  # fmt: skip
        given[f"biject_to {name}"] = d.biject_to(constraint)
        given[f"transform_to {name}"] = d.transform_to(constraint)
    told = {}
    for name, each in given.items():
        x = tensor([TRIL, COVARIANCE] if each.domain.event_dim == 2 else [A, POSITIVE])
        y = each(x)
        told[name] = {
            "y": _listed(y), "inverse": _listed(each.inv(y)),
            "jacobian": _asked(lambda each=each, x=x, y=y: each.log_abs_det_jacobian(x, y)),
            "domain": each.domain.event_dim, "codomain": each.codomain.event_dim,
            "inside": _listed(each.codomain.check(y)),
            "bijective": each.bijective, "repr": repr(each),
            "shape": list(each.forward_shape(x.shape)),
        }  # fmt: skip
    return told


def all_figures(lib: Any) -> dict[str, Any]:
    """What is compared, as JSON has it."""
    found = {
        **{name: of_case(lib, name) for name in CASES},
        "divergences": divergences(lib),
        "transforms": transforms(lib),
    }
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


if __name__ == "__main__":
    import torch

    torch.set_default_dtype(torch.float64)  # some of its constants take that dtype
    FILE.write_text(json.dumps(all_figures(torch), separators=(",", ":")) + "\n")
