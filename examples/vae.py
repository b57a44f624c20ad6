"""A variational autoencoder of handwritten digits, eagerly and compiled.

    python examples/vae.py                      # pictures in examples/out/vae.png
    python examples/vae.py --quick --out vae.png

The picture has digits in its first two rows, what the network makes of them in the next two, and
digits of its own in the last two. The loss is the negative lower bound of the likelihood
(Kingma and Welling, 2013, https://arxiv.org/abs/1312.6114).
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tgraph as torch
from tgraph import nn, optim
from tgraph.nn import functional as F
from tgraph.utils.data import DataLoader, TensorDataset
from tgraph.vision.utils import save_image


class VAE(nn.Module):
    def __init__(self, hidden: int = 128, latent: int = 8) -> None:
        super().__init__()
        self.latent = latent
        self.fc1 = nn.Linear(64, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, 64)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = F.relu(self.fc1(x.flatten(1)))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))).reshape(-1, 1, 8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(
    recon: torch.Tensor, x: torch.Tensor, mu: torch.Tensor, logvar: torch.Tensor
) -> torch.Tensor:
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / len(x)


def train(compiled: bool, images: torch.Tensor, epochs: int) -> tuple[VAE, list[float], float]:
    """The network, the loss of each epoch per image, and seconds per epoch."""
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(images), batch_size=128, shuffle=True, drop_last=True)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    def train_step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = torch.compile(train_step) if compiled else train_step
    losses, times = [], []
    for _ in range(epochs):
        start = time.perf_counter()
        found = [step(x).item() for (x,) in loader]
        losses.append(sum(found) / len(found))
        times.append(time.perf_counter() - start)
    return model, losses, min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="three epochs, as a check")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out" / "vae.png")
    options = parser.parse_args()
    epochs = 3 if options.quick else options.epochs
    pixels = (load_digits().images / 16).astype(np.float32)
    images = torch.from_numpy(pixels)[:, None]

    runs = []
    for compiled in (False, True):
        model, losses, seconds = train(compiled, images, epochs)
        runs.append(losses)
        print(f"{'compiled' if compiled else 'eager':9} loss {losses[0]:.2f} -> {losses[-1]:.2f}  "
              f"{seconds:.4f} s per epoch")  # fmt: skip
    worst = max(abs(a / b - 1) for a, b in zip(*runs, strict=True))
    print(f"losses differ by {worst:.1e} of them")

    model.eval()
    with torch.no_grad():
        recon, _, _ = model(images[:24])
        made = model.decode(torch.randn(24, model.latent))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    shown = F.interpolate(torch.cat([images[:24], recon, made]), scale_factor=4)
    save_image(shown, options.out, nrow=12)
    print(f"digits, their reconstructions and new ones are in {options.out}")
    if worst > 1e-2 or losses[-1] > (44 if options.quick else 28):
        raise SystemExit("the runs do not agree, or have not learned")


if __name__ == "__main__":
    main()
