"""Statistics of rows that no cache holds: `python -m benchmarks.long_rows`.

Rows come from memory once (`compiler/passes/one_pass_statistics.py`), beside plans without that
pass, and PyTorch where it is installed. Contenders take turns in one process.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from tgraph.compiler.passes import one_pass_statistics
from tgraph.runtime import own_code

import tgraph as tg

from .factorizations import Call, limit_threads, medians

Sizes = tuple[int, ...]


def batch_norm(library: Any, x: Any) -> Any:
    return library.nn.functional.batch_norm(x, None, None, training=True)


def statistics(library: Any, x: Any) -> Any:
    return library.var_mean(x, (0, 2, 3))


ROWS: list[tuple[str, Sizes, Callable[..., Any]]] = [
    ("variance of 2^24", (1 << 24,), lambda library, x: x.var()),
    ("variance of 4 rows of 2^22", (4, 1 << 22), lambda library, x: x.var(1)),
    ("statistics of 64 x 256 x 56 x 56", (64, 256, 56, 56), statistics),
    ("batch norm of 64 x 256 x 56 x 56", (64, 256, 56, 56), batch_norm),
    ("logsumexp of 2^24", (1 << 24,), lambda library, x: library.logsumexp(x, 0)),
    ("logsumexp of 4 rows of 2^22", (4, 1 << 22), lambda library, x: library.logsumexp(x, 1)),
    ("softmax of 4 rows of 2^22", (4, 1 << 22), lambda library, x: library.softmax(x, 1)),
]


def contenders(sizes: Sizes, function: Callable[..., Any]) -> dict[str, Call]:
    """What computes one row."""
    x = np.random.default_rng(0).standard_normal(sizes, dtype=np.float32)
    tensor, limits = tg.from_numpy(x), one_pass_statistics.FOR_THREADS

    def compiled(fewest: int) -> Call:
        made = tg.compile(lambda given: function(tg, given))
        one_pass_statistics.FOR_THREADS = limits._replace(whole=fewest)
        try:
            made(tensor)
        finally:
            one_pass_statistics.FOR_THREADS = limits
        return lambda: made(tensor)

    found = {"one pass": compiled(limits.whole), "two passes": compiled(1 << 60)}
    if importlib.util.find_spec("torch"):
        import torch

        other = torch.from_numpy(x)
        found["torch"] = lambda: function(torch, other)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_rows", description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--threads", type=int, default=0, help="of every library")
    asked = parser.parse_args()
    if asked.threads:
        limit_threads(asked.threads)
    own_code.enabled = False  # plans on disk do not know which of the two was asked for
    for name, *row in ROWS:
        if asked.only in name:
            found = medians(contenders(*row))
            told = "  ".join(f"{each} {1e3 * spent:.2f}" for each, spent in found.items())
            print(f"{name:40} ms: {told}", flush=True)


if __name__ == "__main__":
    main()
