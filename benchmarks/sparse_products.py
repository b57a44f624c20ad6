"""Sparse times dense, and sparse gradients, beside SciPy and PyTorch.

    python -m benchmarks.sparse_products

Contenders take turns in one process, and a time is the median of all rounds. Their results are held
to SciPy's first. PyTorch is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

import numpy as np
from scipy import sparse

import tgraph as tg

from .factorizations import Call, limit_threads, medians

NODES, EDGES, FEATURES = 20_000, 200_000, 64
WORDS, LOOKUPS = 1_000_000, 4096


def product(a: Any, x: Any) -> Any:
    """What a layer of a graph network sums up over neighbours."""
    return a @ x


def step(library: Any, a: Any, x: Any, weight: Any) -> Any:
    """The gradient of the dense operand, back through the product."""
    return library.autograd.grad(((a @ x) * weight).sum(), x)[0]


def lookup(library: Any, table: Any, at: Any, weight: Any) -> Any:
    """A loss of few rows of a table, whose gradient is sparse."""
    return (library.nn.functional.embedding(at, table, sparse=True) * weight).sum()


def lookups(libraries: list[Any], rng: np.random.Generator) -> dict[str, Call]:
    """The gradient of `lookup` by each library, which all give the same."""
    table = np.ones((WORDS, FEATURES), np.float32)
    at = rng.permutation(WORDS)[:LOOKUPS]
    weight = rng.normal(size=(LOOKUPS, FEATURES)).astype(np.float32)
    found: dict[str, Call] = {}
    for library in libraries:
        given = library.tensor(table, requires_grad=True), *map(library.tensor, (at, weight))
        forms = {library.__name__: lambda *each, lib=library: lookup(lib, *each)}
        if library is tg:
            forms["tgraph compiled"] = tg.compile(forms["tgraph"])
        for name, function in forms.items():
            found[name] = lambda f=function, lib=library, given=given: lib.autograd.grad(
                f(*given), given[0]
            )[0]
    for name, call in found.items():
        gradient = call().coalesce()
        order = np.argsort(at)
        np.testing.assert_array_equal(gradient.indices()[0], at[order], err_msg=name)
        np.testing.assert_array_equal(gradient.values(), weight[order], err_msg=name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sparse_products", description=__doc__
    )
    parser.add_argument("--threads", type=int, default=0, help="of every library")
    asked = parser.parse_args()
    if asked.threads:
        limit_threads(asked.threads)
    rng = np.random.default_rng(0)
    at = rng.integers(0, NODES, (2, EDGES))
    given = (rng.random(EDGES, np.float32), tuple(at))
    matrix = sparse.coo_array(given, shape=(NODES, NODES)).tocsr()
    dense, weight = (rng.normal(size=(NODES, FEATURES)).astype(np.float32) for _ in range(2))
    parts = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
    transposed = matrix.T.tocsr()
    products: dict[str, Call] = {"scipy": lambda: matrix @ dense}
    steps: dict[str, Call] = {}
    expected = {"product": matrix @ dense, "gradient": transposed @ weight}
    libraries: list[Any] = [tg]
    if importlib.util.find_spec("torch"):
        import torch

        libraries.append(torch)
    for library in libraries:
        a = library.sparse_csr_tensor(*map(library.tensor, parts), (NODES, NODES))
        x, w = library.tensor(dense), library.tensor(weight)
        leaf = library.tensor(dense, requires_grad=True)
        forms = {library.__name__: (product, lambda *each, lib=library: step(lib, *each))}
        if library is tg:
            forms["tgraph compiled"] = tuple(map(tg.compile, forms["tgraph"]))
        for name, (forward, backward) in forms.items():
            products[name] = lambda f=forward, a=a, x=x: f(a, x)
            steps[name] = lambda f=backward, a=a, x=leaf, w=w: f(a, x, w)
    for kind, found in (("product", products), ("gradient", steps)):
        for name, call in found.items():
            np.testing.assert_allclose(
                np.asarray(call()), expected[kind], 1e-4, 1e-4, err_msg=f"{kind} by {name}"
            )
        report(kind, found)
    report("lookup", lookups(libraries, rng))


def report(kind: str, found: dict[str, Call]) -> None:
    told = "  ".join(f"{name} {1e3 * spent:.2f}" for name, spent in medians(found).items())
    print(f"{kind:10} ms: {told}", flush=True)


if __name__ == "__main__":
    main()
