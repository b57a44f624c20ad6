"""The rows of pieces of networks: sizes and data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..case import Array
from ..hyperparameters import DROPPED
from ..workload import MIB, Random, Workload, linear, norm, normal
from . import resnet


def heads(random: Random, batch: int, count: int, length: int, width: int) -> dict[str, Array]:
    return {name: normal(random, batch, count, length, width) for name in "qkv"}


def attended(random: Random, batch: int, count: int, length: int, width: int) -> dict[str, Array]:
    upstream = normal(random, batch, count, length, width)
    return {**heads(random, batch, count, length, width), "upstream": upstream}


def kernels(random: Random, name: str, outputs: int, inputs: int, size: int) -> dict[str, Array]:
    """Weights of a convolution without biases."""
    bound = 1 / math.sqrt(inputs * size * size)
    shape = (outputs, inputs, size, size)
    return {f"{name}_w": random.uniform(-bound, bound, shape).astype(np.float32)}


def residual(random: Random, batch: int, channels: int, size: int) -> dict[str, Array]:
    shape = (batch, channels, size, size)
    return {
        "x": normal(random, *shape),
        "target": normal(random, *shape),
        **kernels(random, "conv1", channels, channels, 3),
        **norm(random, "norm1", channels),
        **kernels(random, "conv2", channels, channels, 3),
        **norm(random, "norm2", channels),
    }


def separable(random: Random, batch: int, channels: int, size: int) -> dict[str, Array]:
    return {
        "x": normal(random, batch, channels, size, size),
        **kernels(random, "depthwise", channels, 1, 3),
        **kernels(random, "pointwise", 2 * channels, channels, 1),
    }


def sequences(random: Random, steps: int, batch: int, inputs: int, width: int) -> dict[str, Array]:
    """An LSTM's weights have the rows of its four gates: input, forget, cell, output."""
    return {
        "x": normal(random, steps, batch, inputs),
        **linear(random, "input", inputs, 4 * width),
        **linear(random, "hidden", width, 4 * width),
    }


def words(random: Random, count: int, width: int, batch: int) -> dict[str, Array]:
    return {
        "table": normal(random, count, width),
        "tokens": random.integers(0, count, batch),
        "upstream": normal(random, batch, width),
    }


def many(random: Random, count: int) -> dict[str, Array]:
    """Parameters of as many layers' matrices and vectors, and a gradient for each."""
    shapes = [(128, 128), (128,), (256, 64), (256,)] * (count // 4)
    values = {f"p{at}_w": 0.02 * normal(random, *shape) for at, shape in enumerate(shapes)}
    return {**values, **{f"g{at}": normal(random, *shape) for at, shape in enumerate(shapes)}}


def perceptron(random: Random, batch: int, *widths: int) -> dict[str, Array]:
    layers = enumerate(itertools.pairwise(widths))
    weights: dict[str, Array] = {}
    for at, (inputs, outputs) in layers:
        weights |= linear(random, f"layer{at}", inputs, outputs)
    return {"x": normal(random, batch, widths[0]), **weights}


def classifier(random: Random, batch: int, *widths: int) -> dict[str, Array]:
    labels = random.integers(0, widths[-1], batch)
    return {"labels": labels, **perceptron(random, batch, *widths)}


def dropped(random: Random, count: int) -> dict[str, Array]:
    return {"x": 1 + random.random(count, np.float32), "upstream": normal(random, count)}


def kept(data: Mapping[str, Array], results: Sequence[Array]) -> list[Array]:
    """Of dropout: the share that was kept, its values and its gradient."""
    value, gradient = results
    mask = value != 0
    scale = 1 / (1 - DROPPED)
    return [
        np.array(mask.mean()),
        1 + np.abs(value - mask * data["x"] * scale).max(keepdims=True),
        1 + np.abs(gradient - mask * data["upstream"] * scale).max(keepdims=True),
    ]


Row = partial(Workload, theme="networks")


def of(make: Any, *sizes: int) -> Any:
    """Data of these sizes."""
    return lambda random: make(random, *sizes)


NETWORKS = [
    Row(
        "small_mlp_train",
        "MLP 64-128-128-10 training step, batch 64, AdamW",
        of(classifier, 64, 64, 128, 128, 10),
        tolerance=2e-3,
        steps=3,
    ),
    Row("attention", "causal attention, 8 heads, length 1024, width 64", of(heads, 1, 8, 1024, 64)),
    Row(
        "attention_train",
        "causal attention and its gradients, 8 heads, length 1024, width 64",
        of(attended, 1, 8, 1024, 64),
    ),
    Row(
        "residual_train",
        "residual block with batch norm, training step, 16 images 28×28 of 32 channels",
        of(residual, 16, 32, 28),
        tolerance=1e-2,  # small changes of weights near one
        steps=3,
    ),
    Row(
        "resnet_train",
        "ResNet-20 training step, 32 images 32×32, width 16, SGD with momentum and decay",
        of(resnet.data, 32, 32, 16, 3, 3),
        tolerance=2e-2,  # small changes of weights near one, twenty norms deep
        steps=3,
    ),
    Row(
        "resnet18_train",
        "ResNet-18 training step, 16 images 32×32, width 32, SGD with momentum and decay",
        of(resnet.data, 16, 32, 32, 4, 2),
        tolerance=2e-2,
        steps=3,
        function="resnet_train",
    ),
    Row(
        "depthwise",
        "depthwise 3×3, then 1×1 convolution, 8 images 56×56, 32 to 64 channels",
        of(separable, 8, 32, 56),
    ),
    Row("lstm", "LSTM of 50 steps, batch 32, 64 inputs, width 128", of(sequences, 50, 32, 64, 128)),
    Row(
        "embedding_gradient",
        "gradient of an embedding of 1,000×64, 16,384 tokens",
        of(words, 1000, 64, 16_384),
    ),
    Row(
        "dropout",
        "dropout of 4M elements and its gradient, numbers drawn",
        of(dropped, 4 * MIB),
        least_bytes=4 * 16 * MIB,
        tolerance=1e-3,
        summary=kept,
    ),
    Row(
        "adam_many",
        "AdamW over 200 tensors, 1.7M parameters",
        of(many, 200),
        tolerance=2e-3,
        steps=3,
    ),
    Row(
        "bfloat16_mlp",
        "bfloat16 MLP 784-512-512-10 forward, batch 256",
        of(perceptron, 256, 784, 512, 512, 10),
        tolerance=3e-2,
    ),
]
