"""Matrix products of compiled plans beside NumPy's: `python -m benchmarks.products`.

Each row is one product C = A B in memory that is there: tgraph's step of a plan, and
`numpy.matmul(..., out=...)`, whose OpenBLAS is on the same number of threads. They take turns;
a time is the shortest of all rounds. `T` marks an operand that lies transposed in memory.

With `--epilogues` each row is a layer: a product and what is behind it, as a plan has them (one
step where the price says so), as a product and a kernel, and PyTorch's if it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.compiler.targets.cpu.program import CpuProgram
from tgraph.runtime import blas, parallel
from tgraph.runtime.plan import BufferRef, GemmStep, Plan

import tgraph as tg
from tgraph.nn import functional as F

torch: Any = None
with contextlib.suppress(ImportError):
    import torch

ROUNDS = 7
SECONDS = 0.04
"""Of each contender in each round, at least. The first calls behind a pause are slow."""

PAUSE = 0.05
"""Before a contender's turn: threads of OpenBLAS spin for a while after a product."""

LAYOUTS = {"A B": (False, False), "A Bᵀ": (False, True), "Aᵀ B": (True, False)}
SIZES = [
    *((8, 16, 8), (16, 16, 16), (32, 32, 32), (64, 64, 64), (100, 100, 100), (128, 128, 128)),
    *((256, 256, 256), (512, 512, 512), (1000, 1000, 1000), (2048, 2048, 2048)),
    *((256, 512, 784), (256, 10, 512), (4, 512, 512), (32, 768, 768), (1024, 768, 256)),
    *((100, 2048, 2048), (64, 1024, 1024), (1024, 64, 4096)),  # rows of pages, few of one
    *((4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (512, 10, 8192), (20000, 10, 64)),
]
BATCHES = [(1000, 8, 8, 8), (256, 32, 32, 32), (32, 128, 128, 64), (32, 128, 64, 128)]


def contenders(
    m: int, n: int, k: int, batch: int, layout: str, dtype: str
) -> dict[str, Callable[[], object]]:
    """What computes the product, verified."""
    ta, tb = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    lead = (batch,) if batch else ()
    a = rng.standard_normal((*lead, *((k, m) if ta else (m, k)))).astype(dtype)
    b = rng.standard_normal((*lead, *((n, k) if tb else (k, n)))).astype(dtype)
    c, d = np.empty((*lead, m, n), dtype), np.empty((*lead, m, n), dtype)
    step = GemmStep(
        "product", dtype, m, n, k, BufferRef(1), BufferRef(2), BufferRef(3), ta, tb,
        a.shape[-1], b.shape[-1], n, ((batch, m * k, n * k, m * n),) if batch else (),
    )  # fmt: skip
    plan, left = Plan([step], 0, 4), a.swapaxes(-1, -2) if ta else a
    right, arrays = b.swapaxes(-1, -2) if tb else b, (a, b, c)
    found = {
        "tgraph": lambda: plan.run(arrays),
        "numpy": lambda: np.matmul(left, right, out=d),
    }
    for each in found.values():
        each()
    scale = math.sqrt(k) * np.finfo(dtype).eps * 16
    np.testing.assert_allclose(c, d, rtol=scale, atol=scale * 4)
    return found


def seconds(found: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest time of a call, by contender."""
    least = dict.fromkeys(found, math.inf)
    for _ in range(ROUNDS):
        for name, call in found.items():
            time.sleep(PAUSE)
            calls, began = 0, time.perf_counter()
            while (now := time.perf_counter()) - began < SECONDS or not calls:
                call()
                calls += 1
                least[name] = min(least[name], time.perf_counter() - now)
    return least


LAYERS = [
    *((4096, 4096, 4), (4096, 4096, 16), (4096, 4096, 64), (4096, 4096, 256), (1024, 1024, 64)),
    *((4096, 1024, 64), (100_000, 64, 16), (10_000, 64, 32), (512, 512, 32), (128, 128, 64)),
]
EPILOGUES: dict[str, Callable[..., tg.Tensor]] = {
    "relu": lambda x, w, b, r: tg.relu(x @ w.t() + b),
    "gelu": lambda x, w, b, r: F.gelu(x @ w.t() + b),
    "residual": lambda x, w, b, r: x @ w.t() + b + r,
}


def layers(m: int, n: int, k: int, name: str, dtype: str) -> dict[str, Callable[[], object]]:
    """What computes a layer, verified."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(each).astype(dtype) for each in ((m, k), (n, k), (n,), (m, n))]
    function = EPILOGUES[name]
    graph = optimize(tg.trace(function, *map(tg.from_numpy, arrays)))
    as_priced = CpuProgram(graph)
    found: dict[str, Callable[[], object]] = {}
    results = []
    for key, program in (("plan", as_priced), ("apart", CpuProgram(graph, epilogues=False))):
        executable, out = CpuExecutable(program), np.empty((m, n), dtype)
        found[key] = partial(executable.plan.run, (*arrays, out))
        results.append(out)
    if torch is not None:
        torch.set_num_threads(parallel.get_num_threads())
        x, w, b, r = map(torch.from_numpy, arrays)
        found["torch"] = {
            "relu": lambda: torch.relu(torch.nn.functional.linear(x, w, b)),
            "gelu": lambda: torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b)),
            "residual": lambda: torch.nn.functional.linear(x, w, b) + r,
        }[name]
    for each in found.values():
        each()
    np.testing.assert_array_equal(*results)
    return found


def measure_layers(dtype: str) -> None:
    ratios = []
    for (m, n, k), name in itertools.product(LAYERS, EPILOGUES):
        least = seconds(layers(m, n, k, name, dtype))
        ratios.append(least["plan"] / least["apart"])
        times = "  ".join(f"{key} {1e6 * time_:9.1f} µs" for key, time_ in least.items())
        what = f"{m} x {k} by {k} x {n}, {name}"
        print(f"{what:36} {times}  ratio {ratios[-1]:.2f}", flush=True)
    print(f"geometric mean of the ratios to apart {statistics.geometric_mean(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--layouts", default="A B,A Bᵀ,Aᵀ B")
    parser.add_argument("--epilogues", action="store_true")
    options = parser.parse_args()
    parallel.set_num_threads(options.threads)
    core = blas.openblas_libraries()[0].core()
    print(f"{options.dtype}, {options.threads} threads; NumPy {np.__version__}, OpenBLAS {core}")
    if options.epilogues:
        measure_layers(options.dtype)
        return
    ratios = []
    for layout in options.layouts.split(","):
        for batch, m, n, k in [*((0, *each) for each in SIZES), *BATCHES]:
            least = seconds(contenders(m, n, k, batch, layout, options.dtype))
            flops, ratio = 2 * m * n * k * max(batch, 1), least["tgraph"] / least["numpy"]
            ratios.append(ratio)
            rates = "  ".join(
                f"{name} {flops / 1e9 / time_:6.1f} GF/s" for name, time_ in least.items()
            )
            what = f"{f'{batch} of ' if batch else ''}{m} x {k} by {k} x {n}"
            print(f"{layout:5} {what:32} {rates}  ratio {ratio:.2f}", flush=True)
    print(f"geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
