"""A GPT that learns a program text character by character, eagerly and compiled.

    python examples/char_gpt.py            # or with --quick
    python examples/char_gpt.py --steps 2000 --device cuda

It is written as for PyTorch: causal attention, AdamW that decays matrices alone, a learning rate
that warms up and follows a cosine, clipped gradients. Compiled, the whole training step is one
plan, and so is a step of sampling. The text is a parser that the package docutils ships, which is
in the public domain.

Sources: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); the form is
that of Karpathy's nanoGPT.
"""

from __future__ import annotations

import argparse
import time
from importlib.resources import files

import tgraph as tg
from tgraph import Tensor, nn, optim
from tgraph.nn import functional as F
from tgraph.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

TEXT = files("docutils.parsers.rst").joinpath("states.py").read_text()
LETTERS = sorted(set(TEXT))
CODES = tg.tensor([LETTERS.index(letter) for letter in TEXT])
TRAINING, REST = CODES[: len(CODES) * 9 // 10], CODES[len(CODES) * 9 // 10 :]
LOSS_TOLERANCE = 0.02  # fused kernels round differently, and training makes more of it


class Attention(nn.Module):
    """Every place attends to those before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.projected, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, count, width = x.shape
        q, k, v = (
            each.view(rows, count, self.heads, width // self.heads).transpose(1, 2)
            for each in self.projected(x).split(width, dim=2)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed: Tensor = self.mixed(found.transpose(1, 2).contiguous().view(rows, count, width))
        return mixed


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        after: Tensor = x + self.network(self.norm2(x))
        return after


class GPT(nn.Module):
    def __init__(self, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.length = length
        self.letters, self.places = nn.Embedding(len(LETTERS), width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(LETTERS), bias=False)
        self.head.weight = self.letters.weight  # tied
        self.apply(self.initialise)

    @staticmethod
    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, codes: Tensor) -> Tensor:
        places = tg.arange(codes.shape[1], device=codes.device)
        scores: Tensor = self.head(
            self.norm(self.blocks(self.letters(codes) + self.places(places)))
        )
        return scores


def batch_of(codes: Tensor, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Random pieces of the text, and the same one letter later."""
    starts = tg.randint(len(codes) - length, (rows, 1))
    at = starts + tg.arange(length)
    return codes[at], codes[at + 1]


def loss_of(model: GPT, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train(model: GPT, compiled: bool, steps: int, rows: int, device: str) -> list[float]:
    """The loss of each step."""
    decayed = [each for each in model.parameters() if each.dim() >= 2]
    others = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    warm = steps // 10
    phases = LinearLR(optimizer, 0.05, total_iters=warm), CosineAnnealingLR(optimizer, steps - warm)
    scheduler = SequentialLR(optimizer, [*phases], milestones=[warm])

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = loss_of(model, x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    run, losses, times = tg.compile(step) if compiled else step, [], []
    for _ in range(steps):
        x, y = batch_of(TRAINING, rows, model.length)
        start = time.perf_counter()
        losses.append(run(x.to(device), y.to(device)).item())
        times.append(time.perf_counter() - start)
        scheduler.step()
    name, usual = "compiled" if compiled else "eager", sorted(times)[len(times) // 2]
    print(f"{name:8}  loss {losses[0]:.3f} -> {losses[-1]:.3f}, {usual * 1e3:.1f} ms a step")
    return losses


def sample(model: GPT, count: int, compiled: bool, device: str, temperature: float = 0.8) -> str:
    """A piece of the text that the model has not seen, and `count` letters that it goes on with."""

    @tg.no_grad()
    def following(seen: Tensor) -> Tensor:
        chances = tg.softmax(model(seen)[:, -1] / temperature, dim=-1)
        return tg.cat([seen[:, 1:], tg.multinomial(chances, 1)], dim=1)

    run = tg.compile(following) if compiled else following
    tg.manual_seed(1)
    seen = REST[None, : model.length].to(device)
    codes = seen[0].tolist()
    for _ in range(count):
        seen = run(seen)
        codes.append(int(seen[0, -1]))
    return "".join(LETTERS[code] for code in codes)


def main(steps: int, quick: bool, device: str) -> None:
    length, width, layers, rows = (32, 32, 1, 4) if quick else (64, 128, 3, 16)
    losses = {}
    for compiled in (False, True):
        tg.manual_seed(0)
        model = GPT(length, width, 4, layers).to(device)
        losses[compiled] = train(model, compiled, steps, rows, device)
    worst = max(abs(a - b) for a, b in zip(losses[False], losses[True], strict=True))
    assert worst < LOSS_TOLERANCE, f"compiled losses differ from eager ones by {worst:.1e}"
    with tg.no_grad():
        found = loss_of(model, *(each.to(device) for each in batch_of(REST, 64, length))).item()
    print(f"losses differ by {worst:.1e}; that of text not seen is {found:.3f}")
    text = sample(model, 20 if quick else 300, True, device)
    assert text == sample(model, 20 if quick else 300, False, device)
    print(text)
    assert losses[True][-1] < losses[True][0] - 0.5


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    main(options.steps or (30 if options.quick else 600), options.quick, options.device)
