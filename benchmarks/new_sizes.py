"""What a call with another size costs: `python -m benchmarks.new_sizes`.

A line for each function: milliseconds of the first call, of first calls at sizes that did not come
before, and of calls at sizes that did; once compiled for sizes that vary (`dynamic`), once for
each size alone. Medians, without objects or plans from disk.

`python -m benchmarks.new_sizes --thousand` calls functions for sizes that vary at each size from 2
to 1001 once, in an order of its own: milliseconds of the median call and of the one that took
longest, seconds of all, and how many plans for many sizes there are at the end.

`python -m benchmarks.new_sizes --known` compares calls at sizes that came before with those of a
function compiled for that size alone, call by call in turns: microseconds of both, in the median,
and the median of the ratios of calls that follow each other.
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
KNOWN_SIZES = (7, 64, 100, 513, 1000)

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


def _layer_norm() -> Made:
    return lambda x: nn.functional.layer_norm(x, (256,)), lambda n: (tg.randn(n, 256),)


def _attention() -> Made:
    def attend(q: Any, k: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(q, k, k)

    return attend, lambda n: (tg.randn(n, 64), tg.randn(n, 64))


def _decode() -> Made:
    def step(cache: Any, token: Any) -> Any:
        cache = tg.cat([cache, token])
        return cache, tg.softmax(token @ cache.t() / 8, dim=-1) @ cache

    return step, lambda n: (tg.randn(n, 64), tg.randn(1, 64))


def _mean() -> Made:
    return lambda x: (x.mean(0), x.var()), lambda n: (tg.randn(n, 64),)


def _mean_of_rows() -> Made:
    return lambda x: x.mean(-1), lambda n: (tg.randn(64, n),)


def _softmax_of_rows() -> Made:
    return lambda x: tg.softmax(x, dim=-1), lambda n: (tg.randn(64, n),)


def _softmax_of_both() -> Made:
    return lambda x: tg.softmax(x, dim=-1), lambda n: (tg.randn(n, n + 1),)


def _small_attention() -> Made:
    def attend(q: Any, k: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(q, k, k)

    return attend, lambda n: (tg.randn(n, 16), tg.randn(n + 1, 16))


CASES = {
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "mean": _mean,
    "mlp": _mlp,
    "training_step": _training_step,
    "attention": _attention,
    "decode": _decode,
    "mean_of_rows": _mean_of_rows,
    "softmax_of_rows": _softmax_of_rows,
    "softmax_of_both": _softmax_of_both,
    "small_attention": _small_attention,
}
OPEN: dict[str, dict[str, Any]] = {
    "decode": {"cache": {0: "n"}},
    "mean_of_rows": {"x": {1: "n"}},
    "softmax_of_rows": {"x": {1: "n"}},
    "softmax_of_both": {"x": {0: "n", 1: "m"}},
    "small_attention": {"q": {0: "n"}, "k": {0: "m"}},
}
"""The axes that vary, where it is not the first one of all arguments."""
SHORT_ROWS = (7, 65, 120, 1000)
OF_ROWS = ("mean_of_rows", "softmax_of_rows", "softmax_of_both", "small_attention")
"""Cases whose rows have an open length: known sizes are whole vectors, and others, of those."""


def measure(name: str, dynamic: bool, sizes: Sequence[int], calls: int) -> list[float]:
    """Milliseconds of the first call, of a new size, and of a known one."""
    function, arguments = CASES[name]()
    compiled = tg.compile(function, dynamic=_varying(name, function) if dynamic else None)
    first, *new = (_milliseconds(compiled, arguments(n)) for n in sizes)
    known = [_milliseconds(compiled, arguments(sizes[at % len(sizes)])) for at in range(calls)]
    return [first, statistics.median(new), statistics.median(known)]


def measure_thousand(name: str) -> list[float]:
    """Milliseconds of the median call and of the longest, seconds of all, plans for many sizes."""
    function, arguments = CASES[name]()
    compiled = tg.compile(function, dynamic=_varying(name, function))
    sizes = list(range(2, 1002))
    random.Random(0).shuffle(sizes)
    times = [_milliseconds(compiled, arguments(n)) for n in sizes]
    told = compiled.explain(*arguments(sizes[-1])).sizes
    plans = sum(each.startswith("one plan ") for each in told)
    return [statistics.median(times), max(times), sum(times) / 1e3, plans]


def measure_known(name: str, size: int, calls: int) -> list[float]:
    """Microseconds of a call for any size, for that size alone, and the ratio."""
    function, arguments = CASES[name]()
    given = arguments(size)
    compiled = tg.compile(function, dynamic=_varying(name, function))
    compiled(*arguments(size + 5))
    pair = compiled, tg.compile(CASES[name]()[0])
    for each in (*pair, *pair):
        each(*given)
    times = [[1e3 * _milliseconds(each, given) for each in pair] for _ in range(calls)]
    medians = [statistics.median(column) for column in zip(*times)]
    return [*medians, statistics.median(one / other for one, other in times)]


def _varying(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    code = function.__code__
    return OPEN.get(name) or {each: {0: "n"} for each in code.co_varnames[: code.co_argcount]}


def _milliseconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--thousand", action="store_true", help="a thousand sizes, each once")
    parser.add_argument("--known", action="store_true", help="beside plans for each size alone")
    given = parser.parse_args()
    names = given.cases or list(CASES)
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    os.environ["TGRAPH_CACHE_DIR"] = ""
    if given.known:
        print(f"{'us':16}{'size':>8}{'any size':>12}{'alone':>12}{'ratio':>10}")
        for name in names:
            for size in SHORT_ROWS if name in OF_ROWS else KNOWN_SIZES:
                found = _in_fresh_process(_known_quietly, name, size)
                print(f"{name:16}{size:8}" + "{:12.1f}{:12.1f}{:10.3f}".format(*found))
        return
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


def _known_quietly(name: str, size: int) -> list[float]:
    _prepare()
    return measure_known(name, size, 5 * CALLS)


def _thousand_quietly(name: str) -> list[float]:
    _prepare()
    return measure_thousand(name)


def _prepare() -> None:
    warnings.simplefilter("ignore", RecompileWarning)
    tg.compile(lambda x: x + 1)(tg.ones(2))  # imports the compiler


if __name__ == "__main__":
    main()
