"""Loading data beside PyTorch's DataLoader: `python -m benchmarks.data_loading`.

Thousands of examples a second, of the same data by the same code, in turns; medians of the rounds.
Rows of tensors; small records (three numbers in a dictionary); images that are cut, mirrored and
normalised by NumPy, in this process and by two workers. A loop reads each batch once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

import tgraph as tg

from . import machine

ROUNDS = 5
Loader = Iterable[Any]


class Records:
    """Three numbers each."""

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, at: int) -> dict[str, Any]:
        return {"id": at, "weight": at * 0.5, "label": at % 10}


class Images:
    """[3, 224, 224] of float32, made of 256 x 256 bytes as training programs do."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.stored = random.integers(0, 255, (64, 256, 256, 3), dtype=np.uint8)
        self.mean = np.array([0.485, 0.456, 0.406], np.float32)
        self.deviation = np.array([0.229, 0.224, 0.225], np.float32)

    def __len__(self) -> int:
        return 512

    def __getitem__(self, at: int) -> tuple[np.ndarray[Any, Any], int]:
        top, left = at % 32, at * 7 % 32
        image = self.stored[at % 64, top : top + 224, left : left + 224]
        if at % 2:
            image = image[:, ::-1]
        scaled = (image.astype(np.float32) / 255 - self.mean) / self.deviation
        return np.ascontiguousarray(scaled.transpose(2, 0, 1)), at % 10


def _loaders(dataset: Callable[[Any], Any], **options: Any) -> tuple[Loader, Loader]:
    ours = tg.utils.data.DataLoader(dataset(tg), **options)
    return ours, torch.utils.data.DataLoader(dataset(torch), **options)


def _rows(library: Any) -> Any:
    inputs, classes = library.ones(50_000, 20), library.arange(50_000)
    return library.utils.data.TensorDataset(inputs, classes)


CASES: dict[str, Callable[[], tuple[Loader, Loader]]] = {
    "rows of tensors": lambda: _loaders(_rows, batch_size=64, shuffle=True),
    "small records": lambda: _loaders(lambda library: Records(), batch_size=64, shuffle=True),
    "small records, 2 workers": lambda: _loaders(
        lambda library: Records(), batch_size=64, shuffle=True, num_workers=2
    ),
    "images": lambda: _loaders(lambda library: Images(), batch_size=32, shuffle=True),
    "images, 2 workers": lambda: _loaders(
        lambda library: Images(), batch_size=32, shuffle=True, num_workers=2
    ),
    "images, 2 workers that stay": lambda: _loaders(
        lambda library: Images(), batch_size=32, shuffle=True, num_workers=2,
        persistent_workers=True,
    ),
}  # fmt: skip


def _sum_of(batch: Any) -> float:
    """Reads what was loaded, as a training step would."""
    each = batch[0] if isinstance(batch, (list, tuple)) else batch["weight"]
    return float(np.asarray(each).sum())


def _seconds(loader: Loader) -> float:
    start = time.perf_counter()
    for batch in loader:
        _sum_of(batch)
    return time.perf_counter() - start


def measure(name: str, rounds: int = ROUNDS) -> tuple[float, float]:
    """Thousands of examples a second: ours, and PyTorch's."""
    loaders = CASES[name]()
    count = len(loaders[0].dataset)  # type: ignore[attr-defined]
    found: tuple[list[float], list[float]] = ([], [])
    for loader in loaders:
        _seconds(loader)
    for _ in range(rounds):
        for loader, times in zip(loaders, found):
            times.append(count / _seconds(loader) / 1e3)
    return statistics.median(found[0]), statistics.median(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    for fact, text in machine.describe(2).items():
        print(f"{fact}: {text}")
    print(f"versions: NumPy {np.__version__}, PyTorch {torch.__version__}")
    print(f"{'thousands a second':30} {'tgraph':>9} {'PyTorch':>9}  ratio")
    for name in options.only:
        ours, theirs = measure(name, options.rounds)
        print(f"{name:30} {ours:9.2f} {theirs:9.2f}  {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
