"""Eager steps of examples, by tgraph and by PyTorch: `python -m benchmarks.small_programs`.

An example's source is run as it is and with `torch` in the place of `tgraph`; nothing else differs.
Each round takes one step of both libraries in one process, with one thread, and what is told is
the median of the rounds' ratios of CPU time: other programs of the machine meet both alike.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import report
from .eager import write

EXAMPLES = Path(__file__).parent.parent / "examples"
LIBRARIES = "tgraph", "torch"
Step = Callable[[], Any]


def loaded(example: str, library: str) -> Any:
    """The example as a module that uses a library."""
    path = EXAMPLES / f"{example}.py"
    source = re.sub(r"\btgraph\b", library, path.read_text())
    module = ModuleType(f"{example}_{library}")
    sys.modules[module.__name__] = module
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def resnet(library: str) -> Step:
    """A step of 64 digits, blocks and width as the example has them."""
    example = loaded("resnet", library)
    torch, rng = example.torch, np.random.default_rng(0)
    x = torch.from_numpy(rng.random((64, 1, 32, 32), np.float32))
    y = torch.from_numpy(rng.integers(0, 10, 64))
    model = example.ResNet([2] * 4, width=16, channels=1, num_classes=10)
    optimizer = example.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        loss = example.F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def pinn(library: str, count: int = 1024, width: int = 32, layers: int = 4) -> Step:
    """A step of Burgers' equation."""
    example = loaded("pinn", library)
    model = example.network(width, layers)
    optimizer, mse = example.optim.Adam(model.parameters(), lr=5e-3), example.nn.MSELoss()
    inside, edge, known = example.points_of(count, np.random.default_rng(0))

    def step() -> Any:
        optimizer.zero_grad()
        loss = example.residual(model, inside).square().mean() + 4 * mse(model(edge), known)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def pinn_quick(library: str) -> Step:
    """The same with the size of `--quick`, where hardly anything is computed."""
    return pinn(library, 64, 16, 2)


def graph_attention(library: str) -> Step:
    """A step of the club's network."""
    example = loaded("graph_attention", library)
    tg = example.tg
    source, target, sides = example.club()
    members, leaders = tg.eye(len(sides)), tg.tensor([0, len(sides) - 1])
    model = example.GAT(len(sides))
    optimizer = example.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def step() -> Any:
        optimizer.zero_grad()
        scores = model(members, source, target)
        loss = example.F.cross_entropy(scores[leaders], sides[leaders])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


PROGRAMS: dict[str, Callable[[str], Step]] = {
    each.__name__: each for each in (resnet, pinn, pinn_quick, graph_attention)
}


def timed(step: Step) -> float:
    """CPU seconds of a step."""
    start = time.process_time()
    step()
    return time.process_time() - start


def measured(program: Callable[[str], Step], seconds: float) -> list[tuple[float, float]]:
    """Rounds, each of a step of tgraph and one of PyTorch."""
    steps = [program(library) for library in LIBRARIES]
    for step in steps:
        for _ in range(10):  # what is compiled on the way is no part of it
            step()
    rounds, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until or len(rounds) < 5:
        rounds.append((timed(steps[0]), timed(steps[1])))
    return rounds


def row(name: str, rounds: list[tuple[float, float]]) -> list[str]:
    """A line of the table."""
    of_ours, of_theirs = (statistics.median(each) for each in zip(*rounds, strict=True))
    ratios = sorted(ours / theirs for ours, theirs in rounds)
    low, middle, high = (ratios[len(ratios) * part // 10] for part in (1, 5, 9))
    told = report.seconds
    spread = f"{low:.2f} to {high:.2f}"
    return [f"`{name}`", told(of_ours), told(of_theirs), f"{middle:.2f}", spread, str(len(rounds))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}; all without any")
    parser.add_argument("--seconds", type=float, default=20, help="a program (%(default)s)")
    parser.add_argument("--save", metavar="NAME", help="write results/NAME.md")
    options = parser.parse_args()
    options.threads = 1
    for library in LIBRARIES:
        __import__(library)
        sys.modules[library].set_num_threads(1)
    rows = []
    for name in options.names or PROGRAMS:
        print(name, file=sys.stderr)
        rows.append(row(name, measured(PROGRAMS[name], options.seconds)))
    note = (
        "CPU time of an eager step (`zero_grad`, forward, `backward`, step of the optimizer), one "
        "thread. Steps of the two libraries alternate in one process; the ratio is the median of "
        "the rounds' ratios, beside it those that 10% and 90% of the rounds are below."
    )
    head = ["program", "tgraph", "PyTorch", "ratio", "10% to 90%", "rounds"]
    write("Eager steps of small programs", options, "", [note, report.table(head, rows)])


if __name__ == "__main__":
    main()
