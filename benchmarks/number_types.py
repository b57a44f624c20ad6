"""Kernels of all number types, compiled, beside NumPy and PyTorch.

One thread each, in one process, in turns; a time is the shortest of all rounds, in nanoseconds per
element of the first argument. `ratio` is that of tgraph to the best of the others; rows that are
slower than LIMIT are listed once more at the end. The first line tells what a call takes that adds
two numbers, which is most of the time of small arrays.

```
python -m benchmarks.number_types                  all groups, 10,000 and a million elements
python -m benchmarks.number_types math --compile   one of math, types and rows; torch.compile too
python -m benchmarks.number_types types --only int8,int16 --names "x + y;sum" --sizes 100000
```
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import special

import tgraph as tg

ROUNDS = 7
SECONDS = 0.004
"""Of each contender in each round, at least."""
LIMIT = 1.2
SIZES = (10_000, 1_000_000)
Function = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """One kernel: a function of a library and arrays, and what NumPy has for it.

    `shape` gives the arguments' from the number of elements.
    """

    group: str
    name: str
    dtype: str
    function: Function
    numpy: Function | None
    arguments: int = 2
    columns: int = 0

    def shape(self, size: int) -> tuple[int, ...]:
        return (size // self.columns, self.columns) if self.columns else (size,)


def unary(name: str, numpy: Function | None = None) -> tuple[str, Function, Function | None, int]:
    """An operation of one argument that is called alike in all libraries, unless told."""
    return name, lambda lib, x: getattr(lib, name)(x), numpy or getattr(np, name), 1


MATH = [
    *(
        unary(name)
        for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan")
    ),
    *(unary(name) for name in ("tanh", "sinh", "cosh", "sqrt")),
    unary("sigmoid", special.expit),
    unary("erf", special.erf),
    *(unary(f"a{name}", getattr(np, f"arc{name}")) for name in ("sin", "cos", "tan")),
    ("pow", lambda lib, x, y: x**y, np.power, 2),
    ("atan2", lambda lib, x, y: lib.atan2(x, y), np.arctan2, 2),
    ("x % y", lambda lib, x, y: x % y, np.remainder, 2),
]
ANY = [
    ("x + y", lambda lib, x, y: x + y, np.add, 2),
    ("x * y", lambda lib, x, y: x * y, np.multiply, 2),
    ("x < y", lambda lib, x, y: x < y, np.less, 2),
    ("maximum", lambda lib, x, y: lib.maximum(x, y), np.maximum, 2),
    ("where", lambda lib, x, y: lib.where(x < y, x, y), lambda x, y: np.where(x < y, x, y), 2),
    ("sum", lambda lib, x: x.sum(), np.sum, 1),
    ("amax", lambda lib, x: x.amax(), np.max, 1),
]
INTEGER = [
    ("x << 3", lambda lib, x: x << 3, lambda x: x << 3, 1),
    ("x >> y", lambda lib, x, y: x >> (y & 7), lambda x, y: x >> (y & 7), 2),
    ("x & y", lambda lib, x, y: x & y, np.bitwise_and, 2),
    ("x // 7", lambda lib, x: x // 7, lambda x: x // 7, 1),
    ("x // y", lambda lib, x, y: x // y, np.floor_divide, 2),
    ("x % y", lambda lib, x, y: x % y, np.remainder, 2),
    ("abs", lambda lib, x: abs(x), np.abs, 1),
]
HALF = [
    ("x * y + x", lambda lib, x, y: x * y + x, lambda x, y: x * y + x, 2),
    *(unary(name) for name in ("exp", "tanh", "sin")),
    unary("sigmoid", special.expit),
]
ROW = [
    ("sum", lambda lib, x: x.sum(-1), lambda x: x.sum(-1), 1),
    ("amax", lambda lib, x: x.amax(-1), lambda x: x.max(-1), 1),
    ("softmax", lambda lib, x: lib.softmax(x, -1), None, 1),
]


def rows() -> Iterator[Row]:
    for dtype in ("float32", "float64"):
        for name, function, numpy, arguments in MATH:
            yield Row("math", name, dtype, function, numpy, arguments)
    for dtype in ("float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64"):
        own = INTEGER if "int" in dtype else HALF
        for name, function, numpy, arguments in [*ANY, *own]:
            numpy = None if dtype == "bfloat16" else numpy
            yield Row("types", name, dtype, function, numpy, arguments)
    for dtype in ("float32", "float64", "int8"):
        for columns in (8, 10, 16, 32, 100):
            for name, function, numpy, arguments in ROW:
                if name != "softmax" or dtype != "int8":
                    label = f"{name} of {columns}"
                    yield Row("rows", label, dtype, function, numpy, arguments, columns)


def operands(row: Row, size: int) -> list[torch.Tensor]:
    """Small numbers other than zero, so that nothing overflows and integers can divide."""
    generator = torch.Generator().manual_seed(0)
    dtype = getattr(torch, row.dtype)
    if dtype.is_floating_point:
        return [
            (torch.rand(row.shape(size), generator=generator) * 0.9 + 0.1).to(dtype)
            for _ in range(row.arguments)
        ]
    return [
        torch.randint(1, 100, row.shape(size), generator=generator, dtype=dtype)
        for _ in range(row.arguments)
    ]


def contenders(row: Row, size: int, compiles: bool) -> dict[str, Callable[[], object]]:
    """What computes the row; tgraph's result is held to PyTorch's."""
    given = operands(row, size)
    ours = [_as_ours(each) for each in given]
    compiled = tg.compile(lambda *args: row.function(tg, *args))
    found: dict[str, Callable[[], object]] = {
        "tgraph": lambda: compiled(*ours),
        "torch": lambda: row.function(torch, *given),
    }
    if row.numpy is not None:
        arrays, function = [each.numpy() for each in given], row.numpy
        found["numpy"] = lambda: function(*arrays)
    if compiles:
        torch._dynamo.reset()  # which compiles only so many versions of one function
        theirs = torch.compile(lambda *args: row.function(torch, *args), dynamic=False)
        found["torch.compile"] = lambda: theirs(*given)
    for call in found.values():
        call()
    got, want = _as_theirs(compiled(*ours)), row.function(torch, *given).double()
    tolerance = 1e-2 if given[0].itemsize < 4 else 1e-5
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    return found


def _as_ours(given: torch.Tensor) -> tg.Tensor:
    if given.dtype == torch.bfloat16:  # which NumPy does not have
        return tg.tensor(given.float().numpy()).to(tg.bfloat16)
    return tg.tensor(given.numpy())


def _as_theirs(result: tg.Tensor) -> torch.Tensor:
    return torch.tensor(result.to(tg.float64).numpy())


def seconds(found: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest time of a call, by contender."""
    least = dict.fromkeys(found, math.inf)
    for _ in range(ROUNDS):
        for name, call in found.items():
            calls, began = 0, time.perf_counter()
            while (now := time.perf_counter()) - began < SECONDS or calls < 2:
                call()
                calls += 1
                least[name] = min(least[name], time.perf_counter() - now)
    return least


def measure(row: Row, size: int, compiles: bool) -> tuple[float, str]:
    """The ratio to the best other, and the line."""
    least = seconds(contenders(row, size, compiles))
    ratio = least["tgraph"] / min(time_ for name, time_ in least.items() if name != "tgraph")
    times = "  ".join(f"{name} {time_ / size * 1e9:7.3f}" for name, time_ in least.items())
    return ratio, f"{row.dtype:9} {row.name:14} {size:9,}  ratio {ratio:5.2f}  {times}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.number_types", description=__doc__)
    parser.add_argument("groups", nargs="*", help="math, types, rows")
    parser.add_argument("--only", default="", help="dtypes, with commas between them")
    parser.add_argument("--names", default="", help="rows, with semicolons between them")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--compile", action="store_true", help="beside torch.compile as well")
    options = parser.parse_args(arguments)
    np.seterr(all="ignore")  # a sum of float16 overflows
    tg.set_num_threads(1)
    torch.set_num_threads(1)
    print(f"tgraph, torch {torch.__version__}, NumPy {np.__version__}: ns per element, one thread")
    add = Row("", "x + y", "float32", lambda lib, x, y: x + y, np.add)
    calls = seconds(contenders(add, 1, options.compile)).items()
    print(f"a call: {', '.join(f'{name} {time_ * 1e9:.0f} ns' for name, time_ in calls)}")
    lines: list[tuple[float, str]] = []
    for row in rows():
        wanted = row.group in options.groups or not options.groups
        wanted = wanted and (not options.only or row.dtype in options.only.split(","))
        if wanted and (not options.names or row.name in options.names.split(";")):
            for size in map(int, options.sizes.split(",")):
                lines.append(measure(row, size, options.compile))
                print(lines[-1][1], flush=True)
    ratios = [ratio for ratio, _ in lines]
    slow = [line for ratio, line in lines if ratio > LIMIT]
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}; above {LIMIT}: {len(slow)}")
    print("\n".join(slow))


if __name__ == "__main__":
    main()
