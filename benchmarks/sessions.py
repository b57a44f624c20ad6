"""Runs of a session beside calls of a compiled function: `python -m benchmarks.sessions`.

Microseconds of steady calls, in turns, of the same computation: compiled; run by a session with an
array for each placeholder, one value fetched; with the fetches in a list; by `tg.function_of`.
Medians, and the share of the compiled call's time that a run takes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import tgraph as tg
from tgraph import nn

ROUNDS = 15
SECONDS = 0.02
Calls = dict[str, Callable[[], Any]]


def _calls(
    function: Callable[..., Any], compiled: Callable[..., Any], arguments: list[tg.Tensor]
) -> Calls:
    """The same computation, called in all ways."""
    with tg.Graph() as graph:
        given = [tg.placeholder(each.dtype, (None, *each.shape[1:])) for each in arguments]
        fetches = function(*given)
    session = tg.Session(graph)
    feeds = dict(zip(given, [each.numpy() for each in arguments]))
    listed = list(fetches) if isinstance(fetches, tuple) else [fetches]
    call, arrays = tg.function_of(session, fetches, given), list(feeds.values())
    return {
        "compiled": lambda: compiled(*arguments),
        "run": lambda: session.run(fetches, feeds),
        "run a list": lambda: session.run(listed, feeds),
        "function_of": lambda: call(*arrays),
    }


def _one() -> Calls:
    def function(x: Any) -> Any:
        return x + 1

    return _calls(function, tg.compile(function), [tg.ones(16)])


def _mlp() -> Calls:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    model.requires_grad_(False)  # a call of a compiled function records gradients, a run does not
    return _calls(model, tg.compile(model), [tg.randn(4, 8)])


def _training_step() -> Calls:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = tg.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def function(x: Any, y: Any) -> Any:
        loss = nn.functional.mse_loss(model(x), y)
        return loss, optimizer.minimize(loss)

    return _calls(function, tg.compile(function), [tg.randn(4, 8), tg.randn(4, 4)])


CASES = {"x + 1": _one, "mlp": _mlp, "training step": _training_step}


def measure(name: str, rounds: int = ROUNDS, seconds: float = SECONDS) -> dict[str, float]:
    """Microseconds of each way to call a case."""
    calls = CASES[name]()
    counts = {way: max(1, int(seconds / _seconds(call, 20))) for way, call in calls.items()}
    found: dict[str, list[float]] = {way: [] for way in calls}
    for _ in range(rounds):
        for way, call in calls.items():
            found[way].append(1e6 * _seconds(call, counts[way]))
    return {way: statistics.median(times) for way, times in found.items()}


def _seconds(call: Callable[[], Any], count: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    names = parser.parse_args().cases or list(CASES)
    print(f"{'us':16}{'compiled':>12}{'run':>12}{'run a list':>12}{'function_of':>12}{'share':>9}")
    for name in names:
        times = measure(name)
        share = times["run"] / times["compiled"]
        print(f"{name:16}" + "".join(f"{each:12.2f}" for each in times.values()) + f"{share:9.2f}")


if __name__ == "__main__":
    main()
