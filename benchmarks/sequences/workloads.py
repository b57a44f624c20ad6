"""The rows of models of sequences: sizes and data."""

from __future__ import annotations

from functools import partial

from ..case import Array
from ..workload import Random, Workload, linear, norm, normal

LAYERS = 2
"""Of the recurrent model."""
BLOCKS = 4
"""Of the transformer."""
LARGEST_NORM = 1.0
"""Of all gradients together, which are clipped."""


def text(random: Random, words: int, batch: int, length: int) -> dict[str, Array]:
    return {
        "tokens": random.integers(0, words, (batch, length)),
        "labels": random.integers(0, words, (batch, length)),
    }


def recurrent(random: Random, words: int, width: int, batch: int, length: int) -> dict[str, Array]:
    """A model of characters: an embedding, an LSTM of two layers, the scores of the next one."""
    data = {**text(random, words, batch, length), "words_w": normal(random, words, width)}
    for layer in range(LAYERS):
        data |= linear(random, f"input{layer}", width, 4 * width)
        data |= linear(random, f"hidden{layer}", width, 4 * width)
    return {**data, **linear(random, "head", width, words)}


def gpt(random: Random, words: int, width: int, batch: int, length: int) -> dict[str, Array]:
    """A small GPT, whose output has the weights of its embedding."""
    data = {
        **text(random, words, batch, length),
        "words_w": 0.1 * normal(random, words, width),
        "places_w": 0.1 * normal(random, length, width),
    }
    for number in range(BLOCKS):
        block = {
            **norm(random, "norm1", width),
            **linear(random, "qkv", width, 3 * width),
            **linear(random, "out", width, width),
            **norm(random, "norm2", width),
            **linear(random, "up", width, 4 * width),
            **linear(random, "down", 4 * width, width),
        }
        data |= {f"block{number}_{name}": value for name, value in block.items()}
    return {**data, **norm(random, "final", width)}


Row = partial(Workload, theme="sequences", steps=3)

SEQUENCES = [
    Row(
        "lstm_train",
        "character model, LSTM of 2 layers of 256, batch 32, length 64: training step, Adam",
        lambda random: recurrent(random, 65, 256, 32, 64),
        tolerance=1e-2,
    ),
    Row(
        "gpt_train",
        "GPT of 4 blocks, 4 heads, width 256, batch 8, length 128: training step, AdamW",
        lambda random: gpt(random, 65, 256, 8, 128),
        tolerance=1e-2,
    ),
]
