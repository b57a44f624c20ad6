"""The 18-layer residual network, eagerly and compiled.

    python examples/resnet.py            # six epochs on real handwritten digits
    python examples/resnet.py --quick    # two steps of half the layers, no accuracy asked for

Layers and keys of the state_dict are those of torchvision's `resnet18` (He et al., 2015,
https://arxiv.org/abs/1512.03385); here it is a quarter as wide, and sees one channel.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import tgraph as torch
from tgraph import nn, optim
from tgraph.nn import functional as F


class BasicBlock(nn.Module):
    def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        result: torch.Tensor = self.relu(out)
        return result


class ResNet(nn.Module):
    def __init__(self, layers: list[int], width: int, channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(width, width, layers[0], 1)
        self.layer2 = self._make_layer(width, 2 * width, layers[1], 2)
        self.layer3 = self._make_layer(2 * width, 4 * width, layers[2], 2)
        self.layer4 = self._make_layer(4 * width, 8 * width, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def _make_layer(self, inplanes: int, planes: int, blocks: int, stride: int) -> nn.Sequential:
        more = [BasicBlock(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(BasicBlock(inplanes, planes, stride), *more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        result: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return result


def train(compiled: bool, epochs: int, steps: int, blocks: int) -> tuple[list[float], float, float]:
    """The losses, the accuracy, and seconds per epoch."""
    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy((images / 16).astype(np.float32).reshape(-1, 1, 8, 8))
    x, y = F.interpolate(x, scale_factor=4, mode="bilinear"), torch.from_numpy(labels)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    x, y = x[order], y[order]
    (x, x_test), (y, y_test) = x.split([1437, 360]), y.split([1437, 360])

    torch.manual_seed(0)
    model = ResNet([blocks] * 4, width=16, channels=1, num_classes=10)
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    def train_step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = torch.compile(train_step) if compiled else train_step
    rng, losses, times = np.random.default_rng(1), [], []
    for _ in range(epochs):
        order, start = torch.from_numpy(rng.permutation(len(x))), time.perf_counter()
        for chosen in order.split(64)[:steps]:
            losses.append(step(x[chosen], y[chosen]).item())
        times.append(time.perf_counter() - start)
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    return losses, accuracy, min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="two steps, as a check")
    options = parser.parse_args()
    epochs, steps, blocks = (1, 2, 1) if options.quick else (options.epochs, 22, 2)

    runs = []
    for compiled in (False, True):
        losses, accuracy, seconds = train(compiled, epochs, steps, blocks)
        runs.append(losses)
        print(f"{'compiled' if compiled else 'eager':9} accuracy {accuracy:.2%}  "
              f"loss {losses[-1]:.4f}  {seconds:.3f} s per epoch")  # fmt: skip
        if not options.quick and accuracy < 0.95:
            raise SystemExit("the network has not learned")
    # Later ones part: early steps of a deep network make much of the last bits.
    worst = max(abs(a - b) for a, b in zip(*(losses[:2] for losses in runs), strict=True))
    print(f"losses of the first steps differ by {worst:.1e}")
    if worst > 1e-3:
        raise SystemExit("the compiled steps do not agree with the eager ones")


if __name__ == "__main__":
    main()
