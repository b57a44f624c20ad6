"""Fine-tuning: a network that PyTorch trained learns something else from few images.

    python examples/fine_tuning.py            # eagerly and compiled
    python examples/fine_tuning.py --quick    # few steps, no accuracy asked for

`data/digits_0_to_4.pt` is a state_dict that PyTorch wrote, of a network that knows the digits 0 to
4. Its convolutions are frozen and get a new head, which learns the digits 5 to 9 from 100 images;
the last of them are set free for a second round, at a smaller learning rate.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tgraph as torch
from tgraph import nn, optim
from tgraph.nn import functional as F

CHECKPOINT = Path(__file__).parent / "data" / "digits_0_to_4.pt"


class Net(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(128, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.features(x))
        return result


Pair = tuple[torch.Tensor, torch.Tensor]


def digits(low: int, high: int) -> tuple[Pair, Pair]:
    """Images of the digits in [low, high) and numbers from 0 on, to train and to test with."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    parts = []
    for part in (order[:1437], order[1437:]):
        chosen = part[(labels[part] >= low) & (labels[part] < high)]
        x = (images[chosen] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
        parts.append((torch.from_numpy(x), torch.from_numpy(labels[chosen] - low)))
    return parts[0], parts[1]


@torch.no_grad()
def accuracy(model: nn.Module, data: Pair) -> float:
    x, y = data
    return float((model(x).argmax(1) == y).float().mean().item())


def fine_tune(compiled: bool, steps: int) -> tuple[float, list[float], float]:
    """The accuracy on 5 to 9, the losses, and milliseconds per step."""
    torch.manual_seed(0)
    model = Net(num_classes=5)
    model.load_state_dict(torch.load(CHECKPOINT, weights_only=True))
    known = accuracy(model, digits(0, 5)[1])
    if known < 0.97:
        raise SystemExit(f"the checkpoint knows the digits 0 to 4 with {known:.2%} only")

    for parameter in model.features.parameters():
        parameter.requires_grad = False
    before = [parameter.clone() for parameter in model.features.parameters()]
    model.head = nn.Linear(128, 5)
    (x, y), test = digits(5, 10)
    x, y = x[:100], y[:100]

    losses: list[float] = []
    start = time.perf_counter()
    for lr, free in ((1e-2, ()), (1e-3, model.features[3].parameters())):
        for parameter in free:
            parameter.requires_grad = True
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = optim.AdamW(learning, lr=lr)

        def train_step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()  # noqa: B023
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss.detach()

        step = torch.compile(train_step) if compiled else train_step
        losses += [step(x, y).item() for _ in range(steps)]
    milliseconds = (time.perf_counter() - start) * 1e3 / len(losses)
    changed = [not torch.equal(a, b) for a, b in zip(before, model.features.parameters())]
    if changed != [False, False, True, True]:
        raise SystemExit(f"of the frozen parameters those changed: {changed}")
    return accuracy(model, test), losses, milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="ten steps, as a check")
    options = parser.parse_args()
    runs = []
    for compiled in (False, True):
        reached, losses, duration = fine_tune(compiled, 10 if options.quick else options.steps)
        runs.append(losses)
        print(f"{'compiled' if compiled else 'eager':9} accuracy on 5 to 9 {reached:.2%}  "
              f"loss {losses[0]:.3f} -> {losses[-1]:.3f}  {duration:.2f} ms per step")  # fmt: skip
        if not options.quick and reached < 0.9:
            raise SystemExit("the network has not learned")
    worst = max(abs(a - b) for a, b in zip(*runs, strict=True))
    print(f"losses differ by {worst:.1e}")
    if worst > 1e-3:
        raise SystemExit("the compiled steps do not agree with the eager ones")


if __name__ == "__main__":
    main()
