"""Nanoseconds per element of the compiled math functions, beside NumPy's.

Run: python benchmarks/vector_math.py [function ...]      for instance: exp sin philox

One thread, 16,384 elements (in cache), the best of many interleaved rounds.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import special
from tgraph.compiler.targets.cpu.math.functions import MATH_FUNCTIONS, definitions, late_definitions
from tgraph.runtime import jit

COUNT = 1 << 14
ROUNDS = 60
NUMPY = {
    "sigmoid": special.expit,
    "erf": special.erf,
    "pow": np.power,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "round": np.rint,
    "abs": np.absolute,
    "rsqrt": None,
    "fma": None,
    "philox": None,
}
LOOP = """
define void @loop({parameters}, ptr noalias %out, i64 %n) #0 {{
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
{loads}
  %r = call {result} @{name}({values})
  %po = getelementptr {result}, ptr %out, i64 %i
  store {result} %r, ptr %po
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""


def compiled(op: str, dtype: str, arrays: list[np.ndarray], out: np.ndarray) -> Callable[[], None]:
    """A call of the compiled loop; Philox takes its index from the loop, not from an array."""
    function = MATH_FUNCTIONS[op, dtype]
    types = list(enumerate(function.arguments))
    loads = "\n".join(
        f"  %a{i} = getelementptr {t}, ptr %p{i}, i64 %i\n  %v{i} = load {t}, ptr %a{i}"
        for i, t in types
    )
    values = ", ".join(f"{t} %v{i}" for i, t in types)
    if op == "philox":
        loads, values = "", "i64 7, i64 1, i64 %i"
    text = definitions([function.name]) + LOOP.format(
        parameters=", ".join(f"ptr noalias %p{i}" for i, _ in types),
        loads=loads,
        values=values,
        result=function.result,
        name=function.name,
    )
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(types) + 1), ctypes.c_int64)
    loop = prototype(jit.compile_module(text, late=late_definitions(text)).address("loop"))
    addresses = [array.ctypes.data for array in (*arrays, out)]
    return lambda: loop(*addresses, COUNT)


def operands(op: str, dtype: str) -> list[np.ndarray]:
    """Ordinary arguments: in (0.1, 1) for floats, any for integers."""
    random = np.random.default_rng(0)
    count = len(MATH_FUNCTIONS[op, dtype].arguments)
    if op == "philox":
        return [np.empty(COUNT, np.uint32)] * count
    if "int" in dtype:
        return [random.integers(1, np.iinfo(dtype).max, COUNT, dtype) for _ in range(count)]
    return [random.uniform(0.1, 1.0, COUNT).astype(dtype) for _ in range(count)]


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(op: str, dtype: str) -> tuple[float, float | None]:
    """Nanoseconds per element here and in NumPy or SciPy (None where these have no such thing)."""
    arrays = operands(op, dtype)
    out, other = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    ours = compiled(op, dtype, arrays, out)
    peer = NUMPY.get(op, getattr(np, op, None))
    times, peer_times = [], []
    for _ in range(ROUNDS):
        times.append(seconds(ours))
        if peer is not None:
            peer_times.append(seconds(lambda: peer(*arrays, out=other)))
    scale = 1e9 / COUNT
    return min(times) * scale, min(peer_times) * scale if peer_times else None


def main() -> None:
    """Prints the table."""
    print(f"{'function':24}{'ns/element':>12}{'NumPy':>10}{'ratio':>8}")
    for op, dtype in MATH_FUNCTIONS:
        if sys.argv[1:] and op not in sys.argv[1:]:
            continue
        ours, peer = measure(op, dtype)
        beside = f"{peer:10.2f}{peer / ours:8.1f}" if peer else ""
        print(f"{op + ' ' + dtype:24}{ours:12.3f}{beside}", flush=True)


if __name__ == "__main__":
    main()
