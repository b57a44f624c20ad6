"""A network over two devices: its halves on one each, and a pipeline that keeps both busy.

The first half is on one device, the second on another, and `forward` moves what goes between. With
the batch in parts, the first half takes the next part while the second still has the one before:
GPUs are not waited for. Losses are those of one device, eager and compiled.

    python examples/model_parallel.py            # cuda:0 and cuda:1 where there are two GPUs
    python examples/model_parallel.py --quick    # fewer steps
    python examples/model_parallel.py --devices cpu:1 cpu:2
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable

import tgraph as tg
from tgraph import nn


class TwoHalves(nn.Module):
    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.lower = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 128)).to(first)
        self.upper = nn.Sequential(nn.GELU(), nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 4))
        self.upper.to(second)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        between = self.lower(x.to(self.first))
        found: tg.Tensor = self.upper(between.to(self.second))
        return found

    def on(self, first: str, second: str) -> TwoHalves:
        """A copy on other devices."""
        other = copy.deepcopy(self)
        other.first, other.second = first, second
        other.lower.to(first)
        other.upper.to(second)
        return other


class Pipeline(TwoHalves):
    """Works on parts of a batch: each device has another one."""

    parts = 4

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        waiting, *later = x.chunk(self.parts)
        between = self.lower(waiting.to(self.first)).to(self.second)
        found = []
        for part in later:
            found.append(self.upper(between))  # the second device begins
            between = self.lower(part.to(self.first)).to(self.second)  # the first one goes on
        found.append(self.upper(between))
        return tg.cat(found)


def train(net: TwoHalves, steps: int, compiled: bool) -> list[float]:
    """The losses of some steps on noise that a wide layer labels."""
    generator = tg.Generator().manual_seed(1)
    x = tg.randn(256, 32, generator=generator)
    labels = (x @ tg.randn(32, 4, generator=generator)).argmax(1).to(net.second)
    optimizer = tg.optim.AdamW(net.parameters(), lr=2e-3)

    def step(x: tg.Tensor, labels: tg.Tensor) -> tg.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    run: Callable[..., tg.Tensor] = tg.compile(step) if compiled else step
    return [run(x, labels).item() for _ in range(steps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    gpus = tg.cuda.device_count() > 1
    default = ["cuda:0", "cuda:1"] if gpus else ["cpu:0", "cpu:1"]
    parser.add_argument("--devices", nargs=2, default=default)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    options = parser.parse_args()
    steps = 4 if options.quick else 100

    tg.manual_seed(0)
    halves, pipeline = TwoHalves("cpu", "cpu"), Pipeline("cpu", "cpu")
    pipeline.load_state_dict(halves.state_dict())
    expected = train(halves.on("cpu", "cpu"), steps, compiled=False)
    print(f"{'one device':20} loss {expected[0]:.4f} -> {expected[-1]:.4f}")
    for net in (halves, pipeline):
        for compiled in (False, True):
            moved = net.on(*options.devices)
            start = time.perf_counter()
            losses = train(moved, steps, compiled)
            seconds = time.perf_counter() - start
            name = f"{type(net).__name__}, {'compiled' if compiled else 'eager'}"
            places = " and ".join(options.devices)
            print(f"{name:20} loss {losses[0]:.4f} -> {losses[-1]:.4f}, {places}, {seconds:.1f} s")
            for found, wanted in zip(losses, expected, strict=True):
                assert abs(found - wanted) < 0.01 * max(wanted, 0.1), (name, found, wanted)


if __name__ == "__main__":
    main()
