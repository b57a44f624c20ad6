"""A GPT that learns a program text character by character, eagerly and compiled.

    python examples/char_gpt.py            # or with --quick
    python examples/char_gpt.py --steps 2000 --device cuda

It is written as for PyTorch: causal attention, AdamW, a learning rate that warms up and follows a
cosine, clipped gradients. Compiled, a training step is one plan, and so is a step of sampling. The
text is a parser that the package docutils ships, which is in the public domain.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019).
"""

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


class Block(nn.Module):
    """Every place attends to those before it, and goes through a small network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projected, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attention(self, x: Tensor) -> Tensor:
        q, k, v = (
            each.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for each in self.projected(x).chunk(3, dim=2)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed: Tensor = self.mixed(found.transpose(1, 2).flatten(2))
        return mixed

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
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, codes: Tensor) -> Tensor:
        places = tg.arange(codes.shape[1], device=codes.device)
        x = self.blocks(self.letters(codes) + self.places(places))
        scores: Tensor = self.head(self.norm(x))
        return scores


def train(model: GPT, compiled: bool, steps: int, rows: int, device: str) -> list[float]:
    """The loss of each step, on random pieces of the text and the same one letter later."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warm = steps // 10
    phases = LinearLR(optimizer, 0.05, total_iters=warm), CosineAnnealingLR(optimizer, steps - warm)
    scheduler = SequentialLR(optimizer, [*phases], milestones=[warm])

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    run, losses, times = tg.compile(step) if compiled else step, [], []
    for _ in range(steps):
        at = tg.randint(len(TRAINING) - model.length, (rows, 1)) + tg.arange(model.length)
        start = time.perf_counter()
        losses.append(run(TRAINING[at].to(device), TRAINING[at + 1].to(device)).item())
        times.append(time.perf_counter() - start)
        scheduler.step()
    usual = sorted(times)[len(times) // 2] * 1e3
    name = "compiled" if compiled else "eager"
    print(f"{name:8}  loss {losses[0]:.3f} -> {losses[-1]:.3f}, {usual:.1f} ms a step")
    return losses


@tg.no_grad()
def sample(model: GPT, count: int, compiled: bool, device: str) -> str:
    """A piece of the text that the model has not seen, and `count` letters that it goes on with."""

    def following(seen: Tensor) -> Tensor:
        chances = tg.softmax(model(seen)[:, -1] / 0.8, dim=-1)
        return tg.cat([seen[:, 1:], tg.multinomial(chances, 1)], dim=1)

    run = tg.compile(following) if compiled else following
    tg.manual_seed(1)
    seen = REST[None, : model.length].to(device)
    codes = seen[0].tolist()
    for _ in range(count):
        seen = run(seen)
        codes.append(int(seen[0, -1]))
    return "".join(LETTERS[code] for code in codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    length, width, layers, rows = (32, 32, 1, 4) if options.quick else (64, 128, 3, 16)
    steps, runs = 30 if options.quick else options.steps, []
    for compiled in (False, True):
        tg.manual_seed(0)
        model = GPT(length, width, 4, layers).to(options.device)
        runs.append(train(model, compiled, steps, rows, options.device))
    worst = max(abs(a - b) for a, b in zip(*runs, strict=True))
    print(f"losses differ by {worst:.1e}")
    count = 20 if options.quick else 300
    text = sample(model, count, True, options.device)
    print(text)
    if worst > 0.02 or text != sample(model, count, False, options.device):
        raise SystemExit("the compiled run does not agree with the eager one")
    if runs[1][-1] > runs[1][0] - 0.5:
        raise SystemExit("the network has not learned")


if __name__ == "__main__":
    main()
