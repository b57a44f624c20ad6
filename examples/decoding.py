"""Sampling and beam search with a cache of keys and values, each compiled once.

    python examples/decoding.py            # or with --quick

A small transformer, with random weights, goes on with prompts of any length until a sentence ends.
The loops are plain Python: `control_flow=True` makes loops of the plan of them, so that neither the
length of a prompt nor how soon a sentence ends makes another compilation. Random numbers are those
of eager code. Top-k sampling is that of Fan et al., "Hierarchical Neural Story Generation" (2018).
"""

from __future__ import annotations

import argparse
from typing import Any

import tgraph as tg
from tgraph import Tensor
from tgraph.nn import functional as F

WORDS, END = 50, 0
LENGTH = 48  # of prompts and what follows
PROMPT = tg.Dim("prompt", min=1, max=LENGTH - 1)

Cache = list[tuple[Tensor, Tensor]]  # of each layer: keys, values


class Block(tg.nn.Module):
    """Attention over all that is in the cache, and a network for each position."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.projected = tg.nn.LayerNorm(width), tg.nn.Linear(width, 3 * width)
        self.mixed = tg.nn.Linear(width, width)
        self.network = tg.nn.Sequential(
            tg.nn.LayerNorm(width),
            tg.nn.Linear(width, 4 * width),
            tg.nn.GELU(),
            tg.nn.Linear(4 * width, width),
        )

    def forward(self, x: Tensor, places: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        rows, count, width = x.shape
        q, k, v = (
            each.view(rows, count, self.heads, -1).transpose(1, 2)
            for each in self.projected(self.norm(x)).chunk(3, -1)
        )
        keys.index_copy_(2, places, k)
        values.index_copy_(2, places, v)
        seen = tg.arange(LENGTH) <= places[:, None]
        found = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.mixed(found.transpose(1, 2).reshape(rows, count, width))
        after: Tensor = x + self.network(x)
        return after


class Decoder(tg.nn.Module):
    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.words, self.places = tg.nn.Embedding(WORDS, width), tg.nn.Embedding(LENGTH, width)
        self.blocks = tg.nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = tg.nn.LayerNorm(width)
        self.bias = tg.nn.Parameter(2.5 * (tg.arange(WORDS) == END))  # else few would end

    def empty_cache(self, rows: int) -> Cache:
        shape = rows, self.heads, LENGTH, self.width // self.heads
        return [(tg.zeros(shape), tg.zeros(shape)) for _ in self.blocks]

    def forward(self, tokens: Tensor, places: Tensor, cache: Cache) -> Tensor:
        """Scores of the word behind each of `tokens`, (rows, count), which the cache gets."""
        x = self.words(tokens) + self.places(places)
        for block, (keys, values) in zip(self.blocks, cache, strict=True):
            x = block(x, places, keys, values)
        scores: Tensor = F.linear(self.norm(x), self.words.weight) + self.bias
        return scores

    def begin(self, prompt: Tensor, rows: int) -> tuple[Tensor, Cache, Tensor]:
        """Scores behind a prompt, the cache, and sentences that begin with it; for equal rows."""
        cache, places = self.empty_cache(1), tg.arange(prompt.shape[0])
        scores = self(prompt[None], places, cache)[:, -1].repeat(rows, 1)
        sentences = tg.full((rows, LENGTH), END)
        sentences[:, : prompt.shape[0]] = prompt
        return scores, repeated(cache, rows), sentences


def repeated(cache: Cache, rows: int) -> Cache:
    def repeat(kept: Tensor) -> Tensor:
        return kept.repeat(rows, 1, 1, 1)

    return [(repeat(keys), repeat(values)) for keys, values in cache]


def drawn(scores: Tensor, temperature: Tensor, k: int) -> Tensor:
    """A word for each row, of the `k` that are likeliest."""
    least = tg.topk(scores, k).values[:, -1:]
    likely = scores.masked_fill(scores < least, -float("inf"))
    word: Tensor = tg.multinomial(tg.softmax(likely / temperature, -1), 1)[:, 0]
    return word


def make_sampler(model: Decoder, rows: int, k: int) -> Any:
    def sample(prompt: Tensor, temperature: Tensor) -> tuple[Tensor, Any]:
        """`rows` sentences that begin with the prompt, and where the last of them ends."""
        scores, cache, sentences = model.begin(prompt, rows)
        at, ended = tg.tensor(prompt.shape[0]), tg.zeros(rows, dtype=tg.bool)
        while at < LENGTH and not ended.all():
            word = tg.where(ended, END, drawn(scores, temperature, k))
            sentences[:, at] = word
            ended = ended | (word == END)
            scores = model(word[:, None], at[None], cache)[:, 0]
            at = at + 1
        return sentences, at

    return tg.compile(sample, control_flow=True, dynamic={"prompt": {0: PROMPT}})


def make_searcher(model: Decoder, beams: int) -> Any:
    only_end = tg.where(tg.arange(WORDS) == END, 0.0, -float("inf"))

    def search(prompt: Tensor) -> tuple[Tensor, Tensor, Any]:
        """The best sentences that begin with the prompt, and the logarithms of their chances."""
        scores, cache, sentences = model.begin(prompt, beams)
        at, ended = tg.tensor(prompt.shape[0]), tg.zeros(beams, dtype=tg.bool)
        total = tg.where(tg.arange(beams) == 0, 0.0, -float("inf"))  # the others are the same
        while at < LENGTH and not ended.all():
            following = tg.where(ended[:, None], only_end, F.log_softmax(scores, -1))
            total, chosen = tg.topk((total[:, None] + following).flatten(), beams)
            parent, word = chosen // WORDS, chosen % WORDS
            sentences = sentences[parent]
            sentences[:, at] = word
            cache = [(keys[parent], values[parent]) for keys, values in cache]
            ended = ended[parent] | (word == END)
            scores = model(word[:, None], at[None], cache)[:, 0]
            at = at + 1
        return sentences, total, at

    return tg.compile(search, control_flow=True, dynamic={"prompt": {0: PROMPT}})


def chance(model: Decoder, sentence: Tensor, start: int, end: int) -> float:
    """The logarithm of the chance of words `start` to `end` of a sentence, without a cache."""
    places = tg.arange(end - 1)
    scores = model(sentence[None, : end - 1], places, model.empty_cache(1))[0, start - 1 :]
    chances = -F.cross_entropy(scores, sentence[start:end], reduction="none")
    before = sentence[start - 1 : end - 1] != END  # nothing follows the end of a sentence
    return float(chances[before].sum())


def main(quick: bool) -> None:
    tg.manual_seed(0)
    model = Decoder(32, 4, 1) if quick else Decoder(128, 4, 4)
    with tg.no_grad():
        model.words.weight.mul_(0.2)
    prompts = [tg.randint(1, WORDS, (count,)) for count in ((9, 14) if quick else (9, 14, 11, 30))]
    sample, search = make_sampler(model, 4, 10), make_searcher(model, 3)

    with tg.no_grad():
        for number, prompt in enumerate(prompts):
            temperature = tg.tensor(0.7 + 0.2 * number)
            tg.manual_seed(number)
            found, end = sample(prompt, temperature)
            tg.manual_seed(number)
            expected, _ = sample.function(prompt, temperature)  # eagerly
            assert tg.equal(found, expected)
            print(f"behind {len(prompt)} words, sampled:")
            for sentence in found.tolist():
                print("   ", *sentence[len(prompt) : int(end)])

        for prompt in prompts:
            start = len(prompt)
            found, totals, end = search(prompt)
            expected, _, _ = search.function(prompt)
            assert tg.equal(found, expected)
            print(f"behind {start} words, the best of {len(found)} beams:")
            for sentence, total in zip(found, totals.tolist(), strict=True):
                assert abs(total - chance(model, sentence, start, int(end))) < 1e-4
                print(f"    {total:.3f}:", *sentence[start : int(end)].tolist())
    sample.assert_compiles(1)
    search.assert_compiles(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller network")
    main(parser.parse_args().quick)
