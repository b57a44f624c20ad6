"""What a call with another size costs: `python -m benchmarks.new_sizes`.

A line for each function: milliseconds of the first call, of first calls at sizes that did not come
before, and of calls at sizes that did; once compiled for sizes that vary (`dynamic`), once for
each size alone. Medians, without objects or plans from disk.

`python -m benchmarks.new_sizes --thousand` calls functions for sizes that vary at each size from 2
to 1001 once, in an order of its own: milliseconds of the median call and of the one that took
longest, seconds of all, and how many plans for many sizes there are at the end.
"""

from __future__ import annotations

import argparse
import os
import random
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


def measure_thousand(name: str) -> list[float]:
    """Milliseconds of the median call and of the longest, seconds of all, plans for many sizes."""
    function, arguments = CASES[name]()
    named = function.__code__.co_varnames[: function.__code__.co_argcount]
    compiled = tg.compile(function, dynamic=dict.fromkeys(named, 0))
    sizes = list(range(2, 1002))
    random.Random(0).shuffle(sizes)
    times = [_milliseconds(compiled, arguments(n)) for n in sizes]
    told = compiled.explain(*arguments(sizes[-1])).sizes
    plans = sum(each.startswith("one plan ") for each in told)
    return [statistics.median(times), max(times), sum(times) / 1e3, plans]


def _milliseconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--thousand", action="store_true", help="a thousand sizes, each once")
    given = parser.parse_args()
    names = given.cases or list(CASES)
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    os.environ["TGRAPH_CACHE_DIR"] = ""
    if given.thousand:
        print(f"{'':16}{'median ms':>12}{'longest ms':>12}{'all s':>10}{'plans':>10}")
        for name in names:
            median, longest, total, count = _in_fresh_process(_thousand_quietly, name)
            print(f"{name:16}{median:12.3f}{longest:12.1f}{total:10.1f}{count:10.0f}")
        return
    print(f"{'ms':16}{'':10}{'first':>10}{'new size':>10}{'known':>10}")
    for name in names:
        for dynamic in (True, False):
            label = "dynamic" if dynamic else "each alone"
            numbers = _in_fresh_process(_measure_quietly, name, dynamic)
            print(f"{name:16}{label:10}" + "".join(f"{each:10.3f}" for each in numbers))


def _in_fresh_process(function: Callable[..., list[float]], *arguments: Any) -> list[float]:
    """What a function gives where no kernel has been compiled yet."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _measure_quietly(name: str, dynamic: bool) -> list[float]:
    _prepare()
    return measure(name, dynamic, SIZES, CALLS)


def _thousand_quietly(name: str) -> list[float]:
    _prepare()
    return measure_thousand(name)


def _prepare() -> None:
    warnings.simplefilter("ignore", RecompileWarning)
    tg.compile(lambda x: x + 1)(tg.ones(2))  # imports the compiler


if __name__ == "__main__":
    main()
