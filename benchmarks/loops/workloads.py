"""The rows of programs with loops: sizes and data."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..case import Array
from ..networks.workloads import of, sequences
from ..workload import Random, Workload, linear, normal

STEPS = 64  # tokens that are decoded, from token 0 on
TOLERANCE = 1e-5  # of iterations


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
]
