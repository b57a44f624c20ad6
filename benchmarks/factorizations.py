"""Factorizations of matrices by tgraph, PyTorch and NumPy: `python -m benchmarks.factorizations`.

Contenders take turns in one process, and a time is the median of all rounds. PyTorch is left out
where it is not installed, NumPy where it has no gradients.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tgraph as tg

ROUNDS, SECONDS = 9, 0.05
Call = Callable[[], Any]


def _definite(*shape: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def _right_side(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def solve(library: Any, a: Any, b: Any) -> Any:
    """The solution of a definite system."""
    factor = library.linalg.cholesky(a)
    half = library.linalg.solve_triangular(factor, b, upper=False)
    return library.linalg.solve_triangular(factor.mT, half, upper=True)


def solve_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by NumPy, which has no triangular systems."""
    factor = np.linalg.cholesky(a)
    return np.linalg.solve(factor.mT, np.linalg.solve(factor, b))


def log_likelihood(library: Any, covariance: Any, x: Any) -> Any:
    """That of samples (columns) of a Gaussian, but for a constant."""
    factor = library.linalg.cholesky(covariance)
    white = library.linalg.solve_triangular(factor, x, upper=False)
    logs = library.log(library.diagonal(factor)).sum() * x.shape[-1]
    return -0.5 * (white * white).sum() - logs


def gradient(library: Any, covariance: Any, x: Any) -> Any:
    """The log-likelihood, and its gradients."""
    value = log_likelihood(library, covariance, x)
    return value, library.autograd.grad(value, [covariance, x])


ROWS: list[tuple[str, tuple[np.ndarray, ...], Callable[..., Any], Any]] = [
    ("solve 1000 of 8 x 8", (_definite(1000, 8, 8), _right_side(1000, 8, 1)), solve, solve_numpy),
    ("solve 512 x 512", (_definite(512, 512), _right_side(512, 16)), solve, solve_numpy),
    ("svd 200 x 200", (_right_side(200, 200),), lambda lib, a: lib.linalg.svd(a), np.linalg.svd),
    ("log-likelihood and gradients, 16 x 16", (_definite(16, 16), _right_side(16, 64)), gradient,
     None),
    ("log-likelihood and gradients, 128 x 128", (_definite(128, 128), _right_side(128, 256)),
     gradient, None),
]  # fmt: skip


def contenders(arrays: tuple[np.ndarray, ...], function: Any, by_numpy: Any) -> dict[str, Call]:
    """What computes one row."""
    learns = function is gradient

    def call(library: Any, wrap: Any = lambda f: f) -> Call:
        tensors = [library.tensor(each, requires_grad=learns) for each in arrays]
        wrapped = wrap(lambda *given: function(library, *given))
        return lambda: wrapped(*tensors)

    found = {"compiled": call(tg, tg.compile), "eager": call(tg)}
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = call(torch)
    if by_numpy is not None:
        found["numpy"] = lambda: by_numpy(*arrays)
    return found


def medians(found: dict[str, Call]) -> dict[str, float]:
    """Seconds of a call by contender."""
    times: dict[str, list[float]] = {name: [] for name in found}
    for each in found.values():
        each()
        each()
    for _ in range(ROUNDS):
        for name, call in found.items():
            calls, began = 0, time.perf_counter()
            while (spent := time.perf_counter() - began) < SECONDS or not calls:
                call()
                calls += 1
            times[name].append(spent / max(calls, 1))
    return {name: statistics.median(each) for name, each in times.items()}


def limit_threads(count: int) -> None:
    """Let every library use so many threads: where other processes run, they wait for theirs."""
    tg.set_num_threads(count)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(count)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.factorizations", description=__doc__
    )
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--threads", type=int, default=0, help="of every library")
    asked = parser.parse_args()
    if asked.threads:
        limit_threads(asked.threads)
    for name, *row in ROWS:
        if asked.only in name:
            found = medians(contenders(*row))
            told = "  ".join(f"{each} {1e3 * spent:.3f}" for each, spent in found.items())
            print(f"{name:40} ms: {told}")


if __name__ == "__main__":
    main()
