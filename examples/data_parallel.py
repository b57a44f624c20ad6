"""A batch over two devices: `nn.DataParallel` cuts it, and a copy of the network takes each part.

Gradients add up in the network itself, on the first device: steps are those of one device with the
whole batch, eager and compiled.

    python examples/data_parallel.py            # cuda:0 and cuda:1 where there are two GPUs
    python examples/data_parallel.py --quick    # fewer steps
    python examples/data_parallel.py --devices cpu:1 cpu:2
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable

import tgraph as tg
from tgraph import nn


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 4 * 4, 4),
    )  # fmt: skip


def batch() -> tuple[tg.Tensor, tg.Tensor]:
    """Images of 8 x 8 pixels with one bright quarter, and which one it is."""
    generator = tg.Generator().manual_seed(1)
    labels = tg.randint(0, 4, (64,), generator=generator)
    rows, columns = tg.arange(8)[:, None] // 4, tg.arange(8) // 4
    bright = (rows * 2 + columns) == labels[:, None, None]
    return (bright + 0.5 * tg.randn(64, 8, 8, generator=generator)).unsqueeze(1), labels


def train(net: nn.Module, device: str, steps: int, compiled: bool) -> list[float]:
    x, labels = (each.to(device) for each in batch())
    optimizer = tg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: tg.Tensor, labels: tg.Tensor) -> tg.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)  # of the whole batch, on one device
        loss.backward()
        optimizer.step()
        return loss

    run: Callable[..., tg.Tensor] = tg.compile(step) if compiled else step
    return [run(x, labels).item() for _ in range(steps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    gpus = tg.cuda.device_count() > 1
    default = ["cuda:0", "cuda:1"] if gpus else ["cpu:0", "cpu:1"]
    parser.add_argument("--devices", nargs="+", default=default)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    options = parser.parse_args()
    steps = 4 if options.quick else 60

    tg.manual_seed(0)
    net = network()
    expected = train(copy.deepcopy(net), "cpu", steps, compiled=False)
    print(f"{'one device':12} loss {expected[0]:.4f} -> {expected[-1]:.4f}")
    first = options.devices[0]
    for compiled in (False, True):
        whole = nn.DataParallel(copy.deepcopy(net).to(first), options.devices)
        start = time.perf_counter()
        losses = train(whole, first, steps, compiled)
        seconds = time.perf_counter() - start
        name, places = "compiled" if compiled else "eager", " and ".join(options.devices)
        print(f"{name:12} loss {losses[0]:.4f} -> {losses[-1]:.4f} on {places}, {seconds:.1f} s")
        for found, wanted in zip(losses, expected, strict=True):
            assert abs(found - wanted) < 0.01 * max(wanted, 0.1), (name, found, wanted)
    saved = whole.module.state_dict()  # without "module." before each name
    assert list(saved) == list(net.state_dict())


if __name__ == "__main__":
    main()
