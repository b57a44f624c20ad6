"""What a call with another size costs: `python -m benchmarks.new_sizes`.

A line for each function: milliseconds of the first call, of first calls at sizes that did not come
before, and of calls at sizes that did; once compiled for sizes that vary (`dynamic`), once for
each size alone. Medians, without objects or plans from disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import tgraph as tg
from tgraph import nn
from tgraph.core.trace_state import RecompileWarning

SIZES = (64, *range(100, 130))
CALLS = 200

Made = tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]


def _softmax() -> Made:
    return lambda x: tg.softmax(x * 2 + 1, dim=-1), lambda n: (tg.randn(n, 64),)


def _mlp() -> Made:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 10))
    return lambda x: model(x), lambda n: (tg.randn(n, 64),)


def _training_step() -> Made:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 10))
    optimizer = tg.optim.Adam(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda n: (tg.randn(n, 64), tg.randint(0, 10, (n,)))


CASES = {"softmax": _softmax, "mlp": _mlp, "training_step": _training_step}


def measure(name: str, dynamic: bool, sizes: Sequence[int], calls: int) -> list[float]:
    """Milliseconds of the first call, of a new size, and of a known one."""
    function, arguments = CASES[name]()
    named = function.__code__.co_varnames[: function.__code__.co_argcount]
    compiled = tg.compile(function, dynamic=dict.fromkeys(named, 0) if dynamic else None)
    first, *new = (_milliseconds(compiled, arguments(n)) for n in sizes)
    known = [_milliseconds(compiled, arguments(sizes[at % len(sizes)])) for at in range(calls)]
    return [first, statistics.median(new), statistics.median(known)]


def _milliseconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    names = parser.parse_args().cases or list(CASES)
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    os.environ["TGRAPH_CACHE_DIR"] = ""
    print(f"{'ms':16}{'':10}{'first':>10}{'new size':>10}{'known':>10}")
    for name in names:
        for dynamic in (True, False):
            label = "dynamic" if dynamic else "each alone"
            numbers = _in_fresh_process(name, dynamic)
            print(f"{name:16}{label:10}" + "".join(f"{each:10.3f}" for each in numbers))


def _in_fresh_process(name: str, dynamic: bool) -> list[float]:
    """`measure` where no kernel has been compiled yet."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measure_quietly, name, dynamic).result()


def _measure_quietly(name: str, dynamic: bool) -> list[float]:
    warnings.simplefilter("ignore", RecompileWarning)
    tg.compile(lambda x: x + 1)(tg.ones(2))  # imports the compiler
    return measure(name, dynamic, SIZES, CALLS)


if __name__ == "__main__":
    main()
