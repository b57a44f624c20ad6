"""CPU seconds of compiling a step over many tensors: `python -m benchmarks.compile_time`.

One line per case and number of tensors (of layers, for a transformer): the seconds of each stage of
the first call, of all of it, and the milliseconds of a later call. Stages that grow faster than the
number of tensors show themselves. CPU time, since a busy machine does not change it much; no
objects from disk.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from tgraph.compiler import pipeline
from tgraph.compiler.targets.cpu import executable, program
from tgraph.compiler.targets.cpu import plan_builder as plan_builder_cpu

import tgraph as tg
from tgraph.compiled import compiled_function, function_tracer

# From the number of tensors (or layers) and the kind of shapes to what is compiled.
Case = Callable[[int, str], Callable[[], Any]]


def _step(make: Callable[[list[Any]], Any]) -> Case:
    """The step of an optimizer alone, over gradients that are there."""

    def case(count: int, shapes: str) -> Callable[[], Any]:
        parameters = make_parameters(count, shapes)
        optimizer = make(parameters)
        for each in parameters:
            each.grad = tg.ones_like(each)
        return lambda: optimizer.step()

    return case


def _loss(make: Callable[[list[Any]], Any]) -> Case:
    """A loss over all parameters, its gradients, and the step."""

    def case(count: int, shapes: str) -> Callable[[], Any]:
        parameters = make_parameters(count, shapes)
        optimizer = make(parameters)

        def step() -> Any:
            optimizer.zero_grad()
            loss = tg.zeros(())
            for each in parameters:
                loss = loss + (each * each).sum()
            loss.backward()
            optimizer.step()
            return loss

        return step

    return case


def _chain(count: int, shapes: str) -> Callable[[], Any]:
    """Layers of equal structure one behind another; parameters of another shape are left out."""
    parameters = make_parameters(count, shapes)
    fitting = [each for each in parameters if each.shape == parameters[0].shape]
    x = tg.ones(4, parameters[0].shape[0])

    def forward() -> Any:
        value = x
        for each in fitting:
            value = tg.tanh(value @ (each.T @ each) + 1)
        return value

    return forward


class Block(tg.nn.Module):
    """A layer of a transformer as a user writes it: normalisation first, four heads, GELU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = tg.nn.LayerNorm(width), tg.nn.LayerNorm(width)
        self.qkv, self.out = tg.nn.Linear(width, 3 * width), tg.nn.Linear(width, width)
        self.up, self.down = tg.nn.Linear(width, 4 * width), tg.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape(batch, length, 3, 4, width // 4)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weighed = tg.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(weighed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(tg.nn.functional.gelu(self.up(self.norm2(x))))


def _transformer(layers: int, shapes: str) -> Callable[[], Any]:
    """A training step of a transformer of width 64 with AdamW; it has one kind of shapes."""
    model = tg.nn.Sequential(*(Block(64) for _ in range(layers)))
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-3)
    x, target = tg.randn(4, 32, 64), tg.randn(4, 32, 64)

    def step() -> Any:
        optimizer.zero_grad()
        loss = tg.nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _sgd(parameters: list[Any]) -> Any:
    return tg.optim.SGD(parameters, lr=0.1, momentum=0.9)


CASES: dict[str, Case] = {
    "adam_step": _step(tg.optim.Adam),
    "adamw_step": _step(tg.optim.AdamW),
    "sgd_step": _step(_sgd),
    "adam_loss": _loss(tg.optim.Adam),
    "sgd_loss": _loss(_sgd),
    "chain": _chain,
    "transformer": _transformer,
}


def make_parameters(count: int, shapes: str) -> list[Any]:
    """`count` small parameters of one shape, or of a thousand."""
    rng = np.random.default_rng(0)
    found = []
    for at in range(count):
        shape = (8, 8) if shapes == "one" else (3 + at % 37, 2 + at % 29)
        values = rng.normal(size=shape).astype(np.float32)
        found.append(tg.nn.Parameter(tg.from_numpy(values)))
    return found


class Stages:
    """CPU seconds by the name of a stage; a stage inside another counts for itself only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose time is added to the stage `name`."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._inside.append(0.0)
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.process_time() - began
                own = took - self._inside.pop()
                self.seconds[name] = self.seconds.get(name, 0.0) + own
                if self._inside:
                    self._inside[-1] += took

        return call

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time the stages of what is compiled inside."""
        builder = plan_builder_cpu.CpuPlanBuilder
        watched = [
            ("trace", function_tracer, "record_call"),
            ("passes", pipeline, "optimize"),
            ("fusion", program, "fuse"),
            ("kernels", builder, "write"),
            ("llvm", executable.KernelLoader, "loaded"),
            ("plan", executable, "Plan"),
            ("call", compiled_function, "CompiledCall"),
            ("rest", compiled_function.CompiledFunction, "_call_slowly"),
        ]
        patches = [
            mock.patch.object(place, name, self.timed(stage, getattr(place, name)))
            for stage, place, name in watched
        ]
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()


STAGES = ("trace", "passes", "fusion", "kernels", "llvm", "plan", "call", "rest")


def measure(case: str, count: int, shapes: str, calls: int = 5) -> str:
    """One row of the table."""
    step = tg.compile(CASES[case](count, shapes))
    stages = Stages()
    with stages.watching():
        began, wall = time.process_time(), time.perf_counter()
        step()
        took, wall = time.process_time() - began, time.perf_counter() - wall
    later = []
    for _ in range(calls):
        began = time.process_time()
        step()
        later.append(1e3 * (time.process_time() - began))
    parts = " ".join(f"{stages.seconds.get(name, 0.0):8.2f}" for name in STAGES)
    name = f"{case} {shapes}"
    return f"{name:16s} {count:6d} {parts} {took:8.2f} {wall:8.2f} {statistics.median(later):9.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["adam_step"], help=f"of {', '.join(CASES)}")
    parser.add_argument("--counts", default="400,800,1600,5000")
    parser.add_argument("--shapes", default="one", help="one, many, or both with a comma")
    options = parser.parse_args()
    os.environ["TGRAPH_CACHE_DIR"] = ""
    tg.compile(lambda: tg.zeros(3) + 1)()  # imports, and what is made once
    print(" " * 24 + " ".join(f"{name:>8s}" for name in (*STAGES, "all", "wall")) + "   call ms")
    for case in options.cases:
        for shapes in options.shapes.split(","):
            for count in options.counts.split(","):
                print(measure(case, int(count), shapes), flush=True)


if __name__ == "__main__":
    main()
