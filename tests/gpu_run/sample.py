"""What compute-sanitizer watches: `python -m gpu_run.sample [--device fake]`.

Compiled functions and eager operations, small, since every access is checked. Memory comes from
the driver in pieces of its own, without a pool, so that an access behind an array is seen.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

CALLS = 3
SPARSE = 23
TESTS = Path(__file__).resolve().parent.parent


def run(cuda: Any) -> int:
    """Run the sample; the number of functions that were."""
    from test_ops import COMPILED, SMOOTH, as_tuple, tensors

    import tgraph as tg
    from tgraph.compiled.compile import compile as compiled

    count = 0
    rows = [*COMPILED[::SPARSE], *SMOOTH[::SPARSE], *_named(COMPILED)]
    for case in dict.fromkeys(row.name for row in rows):
        row = next(each for each in rows if each.name == case)
        inputs = [each.to(cuda) for each in tensors(row.arrays(row.dtypes[0]))]
        for _ in range(CALLS):  # as it is written, and then as plans of eager mode
            as_tuple(row.function(*inputs))
        if row.compiles:
            function = compiled(row.function)
            for _ in range(CALLS):
                as_tuple(function(*inputs))
        tg.cuda.synchronize()
        count += 1
    _train(cuda, tg, compiled)
    return count + 1


def _named(rows: Any) -> list[Any]:
    """Kernels with shared memory and those that are written by hand."""
    parts = ("softmax", "layer_norm", "conv2d", "cross_entropy", "embedding", "index_add", "cumsum")
    found = (next((row for row in rows if part in row.name), None) for part in parts)
    return [row for row in found if row is not None]


def _train(cuda: Any, tg: Any, compiled: Any) -> None:
    from tgraph import nn

    model = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
    model = model.to(cuda)
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-3)

    @compiled
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = tg.randn(33, 40).to(cuda), (tg.arange(33) % 10).to(cuda)
    for _ in range(CALLS):
        step(x, y)
    tg.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gpu_run.sample")
    parser.add_argument("--device", choices=("real", "fake"), default="real")
    device = parser.parse_args().device
    try:
        import pytest  # noqa: F401  the table of operations is imported with tests
    except ImportError:
        from . import small_pytest

        small_pytest.install()
    sys.path.append(str(TESTS / "cuda_target"))
    import tgraph as tg

    with contextlib.ExitStack() as stack:
        if device == "fake":
            from cuda_tools.fake_device import installed

            stack.enter_context(installed())
        else:
            from tgraph.runtime.cuda import backend

            backend.cupy().cuda.set_allocator(None)
        print(f"{run(tg.device('cuda', 0))} functions ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
