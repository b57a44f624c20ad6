"""Classify images: augmentation, batches, a schedule of learning rates, checkpoints.

    python examples/image_classifier.py            # eager, compiled, and stopped and resumed
    python examples/image_classifier.py --quick    # few images, no accuracy asked for

The run that is stopped halfway and resumed from its checkpoint ends with the same bits as the one
that was not: the checkpoint holds the model, the optimizer, the schedule and the random numbers.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import tgraph as torch
from tgraph import nn, optim
from tgraph.utils.data import DataLoader, Dataset
from tgraph.vision import transforms


class Digits(Dataset[Any]):
    """Real handwritten digits of 8 x 8 pixels: 1,437 to learn from, 360 to test with."""

    def __init__(self, train: bool, transform: Any, count: int = 1437) -> None:
        images, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(images))
        order = order[:count] if train else order[1437:]
        pixels = (images[order] * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
        self.images = [Image.fromarray(each) for each in pixels]
        self.labels = labels[order].tolist()
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.images[index]), self.labels[index]


def convolution(inputs: int, outputs: int) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Training:
    """A model and all that changes while it learns."""

    def __init__(self, epochs: int, compiled: bool, count: int) -> None:
        torch.manual_seed(0)
        normalize = transforms.Normalize([0.3], [0.35])
        augment = transforms.Compose([
            transforms.RandomCrop(8, padding=1),
            transforms.RandomRotation(10, transforms.InterpolationMode.BILINEAR),
            transforms.ToTensor(),
            normalize,
        ])  # fmt: skip
        digits = Digits(True, augment, count)
        self.train_loader = DataLoader(digits, batch_size=64, shuffle=True, drop_last=True)
        plain = transforms.Compose([transforms.ToTensor(), normalize])
        self.test_loader = DataLoader(Digits(False, plain), batch_size=120)
        self.model = nn.Sequential(
            convolution(1, 16), convolution(16, 32), nn.MaxPool2d(2), convolution(32, 64),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 10),
        )  # fmt: skip
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
        self.scheduler = optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.1, total_steps=epochs * len(self.train_loader)
        )
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.train_step = torch.compile(self._train_step) if compiled else self._train_step
        self.epochs, self.epoch, self.losses, self.times = epochs, 0, list[float](), list[float]()

    def _train_step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss: torch.Tensor = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, until: int) -> None:
        self.model.train()
        while self.epoch < until:
            start = time.perf_counter()
            for images, labels in self.train_loader:
                self.losses.append(self.train_step(images, labels).item())
                self.scheduler.step()
            self.times.append(time.perf_counter() - start)
            self.epoch += 1

    @torch.no_grad()
    def accuracy(self) -> float:
        self.model.eval()
        right = [(self.model(x).argmax(1) == y).sum().item() for x, y in self.test_loader]
        return float(sum(right)) / 360

    def save(self, path: Path) -> None:
        parts = {name: getattr(self, name).state_dict() for name in STATEFUL}
        torch.save({**parts, "epoch": self.epoch, "random": torch.get_rng_state()}, path)

    def load(self, path: Path) -> None:
        checkpoint = torch.load(path)
        for name in STATEFUL:
            getattr(self, name).load_state_dict(checkpoint[name])
        self.epoch = checkpoint["epoch"]
        torch.set_rng_state(checkpoint["random"])


STATEFUL = ("model", "optimizer", "scheduler")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="few images, as a check")
    options, runs = parser.parse_args(), {}
    epochs, count = (2, 256) if options.quick else (options.epochs, 1437)
    for name in ("eager", "compiled"):
        run = runs[name] = Training(epochs, name == "compiled", count)
        run.run(until=epochs)
        print(f"{name:9} accuracy {run.accuracy():.2%}  loss {run.losses[-1]:.4f}  "
              f"{min(run.times):.3f} s per epoch")  # fmt: skip
    eager, whole = runs["eager"], runs["compiled"]
    worst = max(abs(a - b) for a, b in zip(eager.losses[:4], whole.losses[:4], strict=True))
    print(f"losses of the first steps differ by {worst:.1e}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        stopped = Training(epochs, True, count)
        stopped.run(until=epochs // 2)
        stopped.save(path)
        resumed = Training(epochs, True, count)
        resumed.load(path)
    resumed.run(until=epochs)
    both = zip(whole.model.parameters(), resumed.model.parameters(), strict=True)
    exact = all(torch.equal(a, b) for a, b in both)
    print(f"resumed from epoch {stopped.epoch}: the same weights, {exact}")
    if not exact or worst > 1e-2 or (not options.quick and eager.accuracy() < 0.96):
        raise SystemExit("the runs do not agree, or have not learned")


if __name__ == "__main__":
    main()
