"""The workloads: their sizes, their data by seed, and the memory they have to move.

A name here is a function of the same name in every module of `contenders`. Programs over arrays,
pieces of networks, programs with loops and models of sequences are in packages of their own.
"""

from __future__ import annotations

import numpy as np

from . import sizes
from .arrays.workloads import ARRAYS
from .case import Array
from .loops.workloads import LOOPS
from .networks.workloads import NETWORKS
from .sequences.workloads import SEQUENCES
from .workload import MIB, Random, Workload, filters, linear, norm, normal


def layer_norm(random: Random, rows: int = 4096, columns: int = 1024) -> dict[str, Array]:
    return {
        "x": 3 + 2 * normal(random, rows, columns),
        "upstream": normal(random, rows, columns),
        "weight": 1 + 0.1 * normal(random, columns),
        "bias": normal(random, columns),
    }


def mlp(random: Random, batch: int = 256, inputs: int = 784, width: int = 512) -> dict[str, Array]:
    return {
        "x": normal(random, batch, inputs),
        "labels": random.integers(0, 10, batch),
        **linear(random, "first", inputs, width),
        **linear(random, "second", width, width),
        **linear(random, "third", width, 10),
    }


def tiny_mlp(random: Random) -> dict[str, Array]:
    return {
        "x": normal(random, 4, 8),
        **linear(random, "first", 8, 16),
        **linear(random, "second", 16, 4),
    }


def transformer(
    random: Random, batch: int = 8, length: int = 128, size: int = 256
) -> dict[str, Array]:
    return {
        "x": normal(random, batch, length, size),
        "target": normal(random, batch, length, size),
        **block(random, size),
    }


def block(random: Random, size: int) -> dict[str, Array]:
    """The parameters of a transformer block."""
    return {
        **norm(random, "norm1", size),
        **linear(random, "qkv", size, 3 * size),
        **linear(random, "out", size, size),
        **norm(random, "norm2", size),
        **linear(random, "up", size, 4 * size),
        **linear(random, "down", 4 * size, size),
    }


def cnn(random: Random, batch: int = 64) -> dict[str, Array]:
    return {
        "x": normal(random, batch, 1, 28, 28),
        "labels": random.integers(0, 10, batch),
        **filters(random, "conv1", 1, 16),
        **filters(random, "conv2", 16, 32),
        **linear(random, "head", 32 * 7 * 7, 10),
    }


def pairwise(random: Random, bodies: int = 2000) -> dict[str, Array]:
    return {
        "x": normal(random, bodies, 3),
        "mass": random.uniform(0.5, 1.5, bodies).astype(np.float32),
    }


def embedding(
    random: Random, rows: int = 50_000, width: int = 128, batch: int = 32, length: int = 256
) -> dict[str, Array]:
    return {
        "table": normal(random, rows, width),
        "tokens": random.integers(0, rows, (batch, length)),
        "upstream": normal(random, batch, length, width),
    }


def cross_entropy(random: Random, rows: int = 2048, classes: int = 8192) -> dict[str, Array]:
    return {
        "logits": 3 * normal(random, rows, classes),
        "labels": random.integers(0, classes, rows),
    }


PLAIN = [
    Workload(
        "gelu_chain",
        "GELU and scaling op by op, 4M elements",
        lambda random: {"x": normal(random, 4 * MIB)},
        least_bytes=2 * 4 * 4 * MIB,
    ),
    Workload(
        "gelu_chain_1k",
        "the same, 1,024 elements",
        lambda random: {"x": normal(random, 1024)},
        function="gelu_chain",
    ),
    Workload(
        "softmax",
        "softmax, 4096×1024",
        lambda random: {"x": 3 * normal(random, 4096, 1024)},
        least_bytes=2 * 16 * MIB,
    ),
    Workload(
        "layer_norm",
        "layer norm and its gradients, 4096×1024",
        layer_norm,
        least_bytes=4 * 16 * MIB,
        tolerance=5e-5,
    ),
    Workload(
        "cross_entropy",
        "cross-entropy and its gradient, 2048×8192",
        cross_entropy,
        least_bytes=2 * 64 * MIB,
    ),
    Workload(
        "column_stats",
        "column mean and variance, row logsumexp, 4096×1024",
        lambda random: {"x": 2 + 3 * normal(random, 4096, 1024)},
        least_bytes=16 * MIB,
        tolerance=5e-5,
    ),
    Workload(
        "transposed",
        "chain over a transposed and a plain matrix, 2048×2048",
        lambda random: {"a": normal(random, 2048, 2048), "b": normal(random, 2048, 2048)},
        least_bytes=3 * 16 * MIB,
    ),
    Workload(
        "pairwise",
        "softened gravity by broadcasting, 2,000 bodies",
        pairwise,
        tolerance=1e-4,
    ),
    Workload(
        "embedding",
        "8,192 rows of a 50,000×128 table and its dense gradient",
        embedding,
        least_bytes=4 * 128 * (3 * 8192 + 50_000),
    ),
    Workload(
        "call_one",
        "a call with one argument, 16 numbers (call overhead)",
        lambda random: {"x": normal(random, 16)},
        function="call",
    ),
    Workload(
        "call_twenty",
        "a call with twenty arguments",
        lambda random: {f"x{at}": normal(random, 16) for at in range(20)},
        function="call",
    ),
    Workload("tiny_mlp", "MLP 8-16-4 forward, batch 4 (call overhead)", tiny_mlp),
    Workload(
        "mlp_train",
        "MLP 784-512-512-10 training step, batch 256, AdamW",
        mlp,
        tolerance=2e-3,
        steps=3,
    ),
    Workload(
        "transformer_train",
        "transformer block training step, batch 8, length 128, width 256, 4 heads, AdamW",
        transformer,
        tolerance=1e-2,
        steps=3,
    ),
    Workload(
        "cnn_train",
        "CNN training step, 64 images 28×28, two convolutions, SGD with momentum",
        cnn,
        tolerance=2e-3,
        steps=3,
    ),
]
USUAL = {workload.name: workload for workload in [*PLAIN, *ARRAYS, *NETWORKS, *LOOPS, *SEQUENCES]}
MAKERS = {"layer_norm": layer_norm, "cross_entropy": cross_entropy, "pairwise": pairwise}
WORKLOADS = [*USUAL.values(), *sizes.rows(USUAL, MAKERS)]
BY_NAME = {workload.name: workload for workload in WORKLOADS}
