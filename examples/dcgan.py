"""A generative adversarial network of convolutions, eagerly and compiled.

    python examples/dcgan.py                    # pictures in examples/out/dcgan.png
    python examples/dcgan.py --quick --out dcgan.png

A generator draws handwritten digits, and a discriminator tells them from real ones; both learn from
each other (Radford et al., 2015, https://arxiv.org/abs/1511.06434). One compiled step has both
networks, three backward passes and two optimizers. The picture has real digits in its upper half.
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

NZ = 32


def weights_init(m: nn.Module) -> None:
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.05)
    elif isinstance(m, nn.BatchNorm2d) and m.weight is not None:
        nn.init.normal_(m.weight, 1.0, 0.02)


def networks() -> tuple[nn.Module, nn.Module]:
    generator = nn.Sequential(
        nn.ConvTranspose2d(NZ, 64, 2, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
        nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2, True),
        nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2, True),
        nn.Conv2d(64, 1, 2), nn.Flatten(0),
    )  # fmt: skip
    return generator.apply(weights_init), discriminator.apply(weights_init)


def train(
    compiled: bool, images: torch.Tensor, epochs: int
) -> tuple[torch.Tensor, list[tuple[float, float]], float]:
    """Digits that were made, the losses of both networks, and seconds per epoch."""
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)
    netG, netD = networks()
    optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    real_label, fake_label = torch.full((64,), 0.9), torch.zeros(64)

    def train_step(real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # The discriminator: log(D(x)) + log(1 - D(G(z))) grows.
        netD.zero_grad()
        errD_real = criterion(netD(real), real_label)
        errD_real.backward()
        fake = netG(torch.randn(64, NZ, 1, 1))
        errD_fake = criterion(netD(fake.detach()), fake_label)
        errD_fake.backward()
        optimizerD.step()
        # The generator: log(D(G(z))) grows.
        netG.zero_grad()
        errG = criterion(netD(fake), real_label)
        errG.backward()
        optimizerG.step()
        return (errD_real + errD_fake).detach(), errG.detach()

    step = torch.compile(train_step) if compiled else train_step
    losses, times = [], []
    for _ in range(epochs):
        start = time.perf_counter()
        for (real,) in loader:
            errD, errG = step(real)
            losses.append((errD.item(), errG.item()))
        times.append(time.perf_counter() - start)
    with torch.no_grad():
        return netG(torch.randn(36, NZ, 1, 1)), losses, min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="few images, as a check")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out" / "dcgan.png")
    options = parser.parse_args()
    epochs = 1 if options.quick else options.epochs
    pixels = (load_digits().images / 8 - 1).astype(np.float32)
    images = torch.from_numpy(pixels[:256] if options.quick else pixels)[:, None]

    runs = []
    for compiled in (False, True):
        made, losses, seconds = train(compiled, images, epochs)
        runs.append(losses)
        print(f"{'compiled' if compiled else 'eager':9} loss of the discriminator "
              f"{losses[-1][0]:.3f}, of the generator {losses[-1][1]:.3f}  "
              f"{seconds:.4f} s per epoch")  # fmt: skip
    worst = max(abs(a - b) for pair in zip(runs[0][:4], runs[1][:4]) for a, b in zip(*pair))
    print(f"losses of the first steps differ by {worst:.1e}")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    shown = F.interpolate(torch.cat([images[:36], made]), scale_factor=4)
    save_image(shown, options.out, nrow=12, normalize=True)
    # Where digits are dark on average, and how much they differ there, is what real ones have.
    spread = made.std(0).mean().item() / images.std(0).mean().item()
    distance = (made.mean(0) - images.mean(0)).abs().mean().item()
    print(f"new digits are in {options.out}: mean pixels {distance:.2f} from those of real ones, "
          f"{spread:.2f} times their spread")  # fmt: skip
    if worst > 1e-2 or (not options.quick and (distance > 0.25 or not 0.6 < spread < 1.4)):
        raise SystemExit("the runs do not agree, or have not learned")


if __name__ == "__main__":
    main()
