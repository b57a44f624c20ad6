"""The rows of programs with loops: sizes and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ..case import Array
from ..networks.workloads import of, sequences
from ..workload import Random, Workload, linear, normal

STEPS = 64  # tokens that are decoded, from token 0 on
TOLERANCE = 1e-5  # of iterations
BEAMS, WORD_OF_END = 8, 0
LIKELY = 20  # words of which one is drawn


def positive(random: Random, count: int) -> dict[str, Array]:
    return {"a": random.uniform(0.5, 4, count).astype(np.float32)}


def language_model(random: Random, words: int, width: int) -> dict[str, Array]:
    """One layer of attention over what was decoded."""
    return {
        "table": normal(random, words, width),
        "output": normal(random, words, width),
        **linear(random, "query", width, width),
        **linear(random, "key", width, width),
        **linear(random, "value", width, width),
    }


def bounded_language_model(random: Random, words: int, width: int) -> dict[str, Array]:
    """One whose sentences are likely to end behind some forty words: by scores for each place."""
    data = language_model(random, words, width)
    data["output"] /= 4
    data["ends"] = np.zeros((STEPS, words), np.float32)
    data["ends"][:, WORD_OF_END] = np.arange(STEPS) - 40
    return data


def sampled_language_model(random: Random, words: int, width: int, batch: int) -> dict[str, Array]:
    return {
        **language_model(random, words, width),
        "first": random.integers(0, words, batch),
        "temperature": np.array(5, np.float32),
    }


def equation(random: Random, batch: int, size: int, width: int) -> dict[str, Array]:
    """A network for the slope of a state, and where solutions should lead."""
    return {
        "y": normal(random, batch, size),
        "target": normal(random, batch, size),
        **linear(random, "inner", size, width),
        **linear(random, "outer", width, size),
    }


def following(
    data: Mapping[str, Array], word: Array, keys: Array, values: Array
) -> tuple[Array, Array, Array]:
    """Scores of the word behind `word` in each of several sentences, its key and its value.

    `keys` and `values` are those of the words before, (sentences, words, width).
    """
    x = data["table"][word]
    q, k, v = (x @ data[f"{n}_w"].T + data[f"{n}_b"] for n in ("query", "key", "value"))
    keys, values = (np.concatenate([old, new[:, None]], 1) for old, new in ((keys, k), (values, v)))
    scores = (keys @ q[:, :, None])[:, :, 0] / x.shape[1] ** 0.5
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    x = x + (weights[:, None] @ values)[:, 0]
    return x @ data["output"].T, k, v


def likelihood(data: Mapping[str, Array], results: Sequence[Array]) -> list[Array]:
    """Draws differ. Told are the part of words that could be drawn, which is all of them, and their
    mean surprisal over its expectation, which is about one."""
    (sentences,) = results
    keys, values = np.zeros((2, len(sentences), 0, data["table"].shape[1]))
    word, can_be, surprisal, entropy = data["first"], [], [], []
    for drawn in np.asarray(sentences).T:
        scores, k, v = following(data, word, keys, values)
        keys, values = np.append(keys, k[:, None], 1), np.append(values, v[:, None], 1)
        least = np.sort(scores, 1)[:, -LIKELY, None]
        chances = np.where(
            scores >= least, np.exp((scores - scores.max()) / data["temperature"]), 0
        )
        chances = (chances / chances.sum(1, keepdims=True)).astype(np.float64)
        logs = np.log(chances, where=chances > 0, out=np.zeros_like(chances))
        own = np.take_along_axis(chances, drawn[:, None], 1)
        can_be.append(own > 0)
        surprisal.append(-np.take_along_axis(logs, drawn[:, None], 1))
        entropy.append(-(chances * logs).sum(1))
        word = drawn
    return [np.mean(can_be), np.sum(surprisal) / np.sum(entropy)]


Row = partial(Workload, theme="loops")
LOOPS = [
    Row(
        "lstm_scan",
        "LSTM of 200 steps by a scan, batch 1, 64 inputs, width 128",
        of(sequences, 200, 1, 64, 128),
    ),
    Row(
        "lstm_scan_batch",
        "LSTM of 200 steps by a scan, batch 32, 64 inputs, width 128",
        of(sequences, 200, 32, 64, 128),
        function="lstm_scan",
    ),
    Row("newton", "cube roots of 1,000 numbers by Newton's method, to 1e-5", of(positive, 1000)),
    Row(
        "decode",
        "64 tokens decoded greedily with a key-value cache, 256 words, width 64",
        of(language_model, 256, 64),
    ),
    Row(
        "beam_search",
        "beam search with 8 beams and a cache, up to 64 tokens, 256 words, width 64",
        of(bounded_language_model, 256, 64),
    ),
    Row(
        "sampling",
        "64 tokens drawn of the likeliest 20, 32 sentences with a cache, 256 words, width 64",
        of(sampled_language_model, 256, 64, 32),
        tolerance=0.05,
        summary=likelihood,
    ),
    Row(
        "ode_adjoint",
        "gradients of a neural ODE by its adjoint, steps that adapt, 32 states of 16, width 64",
        of(equation, 32, 16, 64),
        tolerance=1e-3,
    ),
]
