"""Sentences of any length in batches of any size, and a step that only sees what has a label.

python examples/varying_shapes.py
"""

from __future__ import annotations

import random

import tgraph as tg

WORDS, WIDTH, KINDS, STEPS = 50, 16, 4, 40


class Tagger(tg.nn.Module):
    """Scores of each word's kind, from the word and the mean of its sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words = tg.nn.Embedding(WORDS, WIDTH)
        self.scores = tg.nn.Linear(2 * WIDTH, KINDS)

    def forward(self, words: tg.Tensor) -> tg.Tensor:
        found = self.words(words)
        around = found.mean(1, keepdim=True).expand(-1, words.shape[1], -1)
        scores: tg.Tensor = self.scores(tg.cat([found, around], dim=-1))
        return scores


def main() -> None:
    tg.manual_seed(0)
    pick = random.Random(0)
    model = Tagger()
    optimizer = tg.optim.Adam(model.parameters(), lr=0.02)

    sizes = {0: tg.Dim("batch", min=1), 1: tg.Dim("length", min=1, max=64)}

    @tg.compile(dynamic={"words": sizes, "kinds": sizes})
    def step(words: tg.Tensor, kinds: tg.Tensor) -> tg.Tensor:
        optimizer.zero_grad()
        known = kinds >= 0  # as many as there are
        loss = tg.nn.functional.cross_entropy(model(words)[known], kinds[known])
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(STEPS):
        batch, length = pick.randrange(70, 96), pick.randrange(33, 48)
        words = tg.randint(0, WORDS, (batch, length))
        kinds = tg.where(tg.rand(batch, length) < 0.5, words % KINDS, -1)
        losses.append(step(words, kinds).item())
    print(f"{STEPS} batches, loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    step.assert_compiles(1)
    for note in step.explain(words, kinds).sizes:
        print(" ", note)
    assert losses[-1] < losses[0] / 2

    try:
        step(words, kinds[:1])
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()
