"""An LSTM that learns a program text character by character, eagerly and compiled.

    python examples/char_lstm.py            # or with --quick

Each step goes on where the one before ended: the state is handed on, and gradients end there.
Compiled, a whole training step is one plan, dropout's random numbers included. Sampling keeps the
state, too, and reads one letter at a time. The text is a parser that the package docutils ships,
which is in the public domain.

Source: Graves, "Generating Sequences With Recurrent Neural Networks" (2013).
"""

from __future__ import annotations

import argparse
import time
from importlib.resources import files

import tgraph as tg
from tgraph import Tensor, nn, optim
from tgraph.nn import functional as F

TEXT = files("docutils.parsers.rst").joinpath("states.py").read_text()
LETTERS = sorted(set(TEXT))
LOSS_TOLERANCE = 0.05  # fused kernels round differently, and training makes more of it

State = tuple[Tensor, Tensor]


class CharLSTM(nn.Module):
    def __init__(self, width: int, layers: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.scores = nn.Linear(width, len(LETTERS))

    def forward(self, codes: Tensor, state: State) -> tuple[Tensor, State]:
        found, state = self.lstm(self.letters(codes), state)
        return self.scores(found), state

    def first_state(self, rows: int) -> State:
        shape = self.lstm.num_layers, rows, self.lstm.hidden_size
        return tg.zeros(shape), tg.zeros(shape)


def pieces(rows: int, length: int) -> list[tuple[Tensor, Tensor]]:
    """The text cut into rows, and these into pieces; and the same one letter later."""
    codes = tg.tensor([LETTERS.index(letter) for letter in TEXT])
    count = (len(codes) - 1) // (rows * length)
    used = rows * length * count
    x, y = codes[:used].view(rows, -1), codes[1 : used + 1].view(rows, -1)
    return list(zip(x.split(length, dim=1), y.split(length, dim=1), strict=True))


def train(model: CharLSTM, compiled: bool, steps: int, rows: int, length: int) -> list[float]:
    """The loss of each step."""
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def step(x: Tensor, y: Tensor, state: State) -> tuple[Tensor, State]:
        scores, (hidden, cell) = model(x, state)
        loss = F.cross_entropy(scores.transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach(), (hidden.detach(), cell.detach())

    run, losses, times = tg.compile(step) if compiled else step, [], []
    batches = pieces(rows, length)
    for number in range(steps):
        if number % len(batches) == 0:
            state = model.first_state(rows)
        start = time.perf_counter()
        loss, state = run(*batches[number % len(batches)], state)
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    name, usual = "compiled" if compiled else "eager", sorted(times)[len(times) // 2]
    print(f"{name:8}  loss {losses[0]:.3f} -> {losses[-1]:.3f}, {usual * 1e3:.1f} ms a step")
    return losses


def sample(model: CharLSTM, prompt: str, count: int, compiled: bool) -> str:
    """The prompt, and `count` letters that the model goes on with."""

    @tg.no_grad()
    def following(code: Tensor, state: State) -> tuple[Tensor, State]:
        scores, state = model(code, state)
        return tg.multinomial(tg.softmax(scores[:, -1] / 0.7, dim=-1), 1), state

    run = tg.compile(following) if compiled else following
    tg.manual_seed(1)
    model.eval()
    state = model.first_state(1)
    for letter in prompt:
        code, state = run(tg.tensor([[LETTERS.index(letter)]]), state)
    found = [code]
    while len(found) < count:
        code, state = run(code, state)
        found.append(code)
    return prompt + "".join(LETTERS[int(code)] for code in found)


def main(quick: bool, steps: int) -> None:
    width, layers, rows, length = (32, 2, 8, 16) if quick else (128, 2, 32, 64)
    losses = {}
    for compiled in (False, True):
        tg.manual_seed(0)
        model = CharLSTM(width, layers)
        losses[compiled] = train(model, compiled, steps, rows, length)
    worst = max(abs(a - b) for a, b in zip(losses[False], losses[True], strict=True))
    assert worst < LOSS_TOLERANCE, f"compiled losses differ from eager ones by {worst:.1e}"
    print(f"losses differ by {worst:.1e}")
    text = sample(model, "The class ", 20 if quick else 300, compiled=True)
    assert text == sample(model, "The class ", 20 if quick else 300, compiled=False)
    print(text)
    assert losses[True][-1] < losses[True][0] - 0.5


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    main(options.quick, options.steps or (30 if options.quick else 600))
