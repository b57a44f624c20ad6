"""Writes examples/data/digits_0_to_4.pt with PyTorch: `python tools/make_pretrained.py`.

A small network that knows the digits 0 to 4, as `torch.save` writes its state_dict, with which
`examples/fine_tuning.py` begins.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

FILE = Path(__file__).parent.parent / "examples" / "data" / "digits_0_to_4.pt"


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[:1437]
    order = order[labels[order] < 5]
    x = torch.from_numpy((images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8))
    y = torch.from_numpy(labels[order])
    torch.manual_seed(0)
    features = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    model = nn.Module()
    model.features, model.head = features, nn.Linear(128, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(40):
        for chosen in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model.head(features(x[chosen])), y[chosen]).backward()
            optimizer.step()
    FILE.parent.mkdir(exist_ok=True)
    torch.save(model.state_dict(), FILE)


if __name__ == "__main__":
    main()
