"""The workloads on a GPU: their sizes, their data, what they must move and compute.

At the scale "gpu" what memory bounds is larger than the second-level cache; "tiny" is for tests.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from .. import workloads as cpu
from ..case import Array
from ..measure import greatest_deviation, training_deviation
from ..workload import Random, Workload, linear, norm, normal, parameters
from . import resnet

SCALES = ("gpu", "tiny")
# Trained for so many steps before results are compared: a captured step has been replayed by then.
STEPS = 4
Data = Mapping[str, Array]
Sizes = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class GpuWorkload(Workload):
    """One row of the tables.

    kind: "memory", "call" (its cost is Python's and the driver's), "training" or "inference".
    moved: bytes that must be read and written at least, of the data; 0 where memory is no bound.
    flops: operations of matrix products, convolutions and the like; 0 where they do not count.
    loose: endings of parameters that are not compared.
    loss_weight: how many times smaller than that of the parameters the loss's error must be.
    patience: how many times longer than others it may take to prepare.
    """

    kind: str = "memory"
    moved: Callable[[Data], int] = lambda data: 0
    flops: Callable[[Data], int] = lambda data: 0
    loose: tuple[str, ...] = ()
    loss_weight: float = 1.0
    patience: float = 1.0

    def deviation(self, data: Data, got: Sequence[Array], expected: Sequence[Array]) -> float:
        """The error of results: see `greatest_deviation` and `training_deviation`."""
        if self.steps == 1:
            return greatest_deviation(got, expected)
        names = parameters(data)
        kept = [at for at, name in enumerate(names) if not name.endswith(self.loose)]
        changes = training_deviation(
            [got[0], *(got[1 + at] for at in kept)],
            [expected[0], *(expected[1 + at] for at in kept)],
            [data[names[at]] for at in kept],
        )
        return max(changes, self.loss_weight * greatest_deviation(got[:1], expected[:1]))


# Shifting all keys changes no attention: the gradient of their bias is nothing but rounding, and
# Adam makes full steps of it.
NO_KEYS = ("qkv_b",)


# --- data ----------------------------------------------------------------------------------------


def _vector(random: Random, size: int) -> dict[str, Array]:
    return {"x": normal(random, size)}


def _matrix(random: Random, rows: int, columns: int) -> dict[str, Array]:
    return {"x": 2 + 3 * normal(random, rows, columns)}


def _two_squares(random: Random, size: int) -> dict[str, Array]:
    return {"a": normal(random, size, size), "b": normal(random, size, size)}


def _options(random: Random, count: int) -> dict[str, Array]:
    """Prices and years to expiry."""
    return {
        "spot": random.random(count, np.float32) * 100 + 50,
        "strike": random.random(count, np.float32) * 100 + 50,
        "years": random.random(count, np.float32) * 2 + np.float32(0.1),
    }


def _field(random: Random, size: int) -> dict[str, Array]:
    return {"u": normal(random, size, size)}


def _hundred(random: Random, width: int) -> dict[str, Array]:
    """A hundred parameters, as of 25 layers' matrices and vectors, and a gradient for each."""
    shapes = [(4 * width, width), (4 * width,), (width, width), (width,)] * 25
    values = {f"p{at}_w": 0.02 * normal(random, *shape) for at, shape in enumerate(shapes)}
    return {**values, **{f"g{at}": normal(random, *shape) for at, shape in enumerate(shapes)}}


def _language(
    random: Random, layers: int, width: int, words: int, batch: int, length: int
) -> dict[str, Array]:
    """A language model as GPT-2, with its input embedding for output; tokens to learn."""
    data = {
        "tokens": random.integers(0, words, (batch, length)),
        "labels": random.integers(0, words, (batch, length)),
        "words_w": 0.02 * normal(random, words, width),
        "places_w": 0.02 * normal(random, length, width),
    }
    for layer in range(layers):
        named = cpu.block(random, width)
        data.update({f"h{layer}_{name}": value for name, value in named.items()})
    return {**data, **norm(random, "final", width)}


def _residual(random: Random, width: int, side: int, batch: int, classes: int) -> dict[str, Array]:
    """ResNet-18 of images (batch, 3, side, side), with statistics of its batch norms."""
    data: dict[str, Array] = {"x": normal(random, batch, 3, side, side)}
    for name, (outputs, inputs, size, _) in resnet.convolutions(width).items():
        spread = math.sqrt(2 / (inputs * size * size))
        data[f"{name}_w"] = np.float32(spread) * normal(random, outputs, inputs, size, size)
        data[f"{name}_scale"] = 1 + 0.1 * normal(random, outputs)
        data[f"{name}_shift"] = 0.1 * normal(random, outputs)
        data[f"{name}_mean"] = 0.1 * normal(random, outputs)
        data[f"{name}_var"] = 1 + random.random(outputs, np.float32)
    return {**data, **linear(random, "head", 8 * width, classes)}


def _sequences(random: Random, steps: int, batch: int, inputs: int, width: int) -> dict[str, Array]:
    """An LSTM's weights have the rows of its four gates: input, forget, cell, output."""
    return {
        "x": normal(random, steps, batch, inputs),
        **linear(random, "input", inputs, 4 * width),
        **linear(random, "hidden", width, 4 * width),
    }


def _cache(random: Random, steps: int, batch: int, width: int) -> dict[str, Array]:
    """What decoding begins with: a row, matrices, and a cache for keys or values."""
    spread = np.float32(1 / math.sqrt(width))
    names = ("query_w", "key_w", "value_w", "out_w")
    return {
        "x": normal(random, batch, width),
        **{name: spread * normal(random, width, width) for name in names},
        "cache": np.zeros((steps, batch, width), np.float32),
    }


def _squares(random: Random, count: int) -> dict[str, Array]:
    return {"a": random.random(count, np.float32) * 100 + 1}


# --- bytes and operations ------------------------------------------------------------------------


def _bytes(*names: str) -> Callable[[Data], int]:
    """Of the arrays named, one for each time that it is read or written."""
    return lambda data: sum(data[name].nbytes for name in names)


def _embedding_bytes(data: Data) -> int:
    """Rows are read and written, their gradients read, and the whole dense gradient written."""
    return 3 * data["upstream"].nbytes + data["table"].nbytes


def _adamw_bytes(data: Data) -> int:
    """Value, two moments and gradient are read, all but the gradient written."""
    return 7 * sum(value.nbytes for name, value in data.items() if name.startswith("g"))


def _products(data: Data, rows: int) -> int:
    """Operations of the products of `rows` rows with all matrices named as weights."""
    shapes = [value.shape for name, value in data.items() if name.endswith("_w")]
    return sum(2 * rows * math.prod(shape) for shape in shapes if len(shape) == 2)


def _mlp_flops(data: Data) -> int:
    """Forward and two products backward, but for the gradient of the input."""
    rows = len(data["x"])
    return 3 * _products(data, rows) - 2 * rows * data["first_w"].size


def _attention_flops(batch: int, length: int, width: int) -> int:
    return 4 * batch * length * length * width


def _block_flops(data: Data) -> int:
    batch, length, width = data["x"].shape
    return 3 * (_products(data, batch * length) + _attention_flops(batch, length, width))


def _language_flops(data: Data) -> int:
    """As of dense attention: half of it is masked, which a kernel may leave out."""
    batch, length = data["tokens"].shape
    width = data["words_w"].shape[1]
    layers = sum(name.endswith("_qkv_w") for name in data)
    places = 2 * batch * length * data["places_w"].size  # added, not multiplied
    attention = layers * _attention_flops(batch, length, width)
    return 3 * (_products(data, batch * length) - places + attention)


def _cnn_flops(data: Data) -> int:
    """All three products of each layer, but for the gradient of the images."""
    pixels = data["x"].size
    first, second = 2 * pixels * data["conv1_w"].size, pixels // 2 * data["conv2_w"].size
    return 2 * first + 3 * (second + _products(data, len(data["x"])))


def _residual_flops(data: Data) -> int:
    batch, _, side, _ = data["x"].shape
    total = 2 * batch * data["head_w"].size
    for name, (*_, reduced) in resnet.convolutions(data["stem_w"].shape[0]).items():
        total += 2 * batch * (side // reduced) ** 2 * data[f"{name}_w"].size
    return total


# --- the list ------------------------------------------------------------------------------------


def workloads(scale: str) -> dict[str, GpuWorkload]:
    """All workloads by name, in the order in which they are measured."""
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; there are {', '.join(SCALES)}")

    def row(
        name: str,
        title: str,
        make: Callable[..., dict[str, Array]],
        large: Sizes,
        tiny: Sizes,
        **more: object,
    ) -> GpuWorkload:
        sizes = large if scale == "gpu" else tiny
        shown = "×".join(map(str, sizes))
        made = partial(make) if not sizes else lambda random: make(random, *sizes)
        return GpuWorkload(name, f"{title} {shown}".rstrip(), made, **more)  # type: ignore[arg-type]

    training = {"kind": "training", "steps": STEPS}
    rows = [
        row(
            "softmax",
            "softmax of rows,",
            _matrix,
            (16384, 4096),
            (16, 40),
            moved=_bytes("x", "x"),
        ),
        row(
            "layer_norm",
            "layer norm and its gradients,",
            cpu.layer_norm,
            (16384, 2048),
            (24, 40),
            moved=_bytes("x", "x", "x", "upstream"),
            tolerance=5e-5,
        ),
        row(
            "gpt2_train",
            "GPT-2 training step, bfloat16 products, AdamW: layers×width×words×batch×length",
            _language,
            (12, 768, 50304, 8, 512),
            (2, 32, 48, 2, 8),
            flops=_language_flops,
            # bfloat16 turns the sign of gradients that are almost zero, and so Adam's step.
            tolerance=0.3,
            loss_weight=30.0,
            loose=NO_KEYS,
            patience=2.0,
            **training,
        ),
        row(
            "transformer_train",
            "transformer block training step, AdamW: batch×length×width",
            cpu.transformer,
            (8, 512, 768),
            (2, 8, 32),
            flops=_block_flops,
            tolerance=5e-3,
            loose=NO_KEYS,
            **training,
        ),
        row(
            "gelu_chain",
            "GELU and scaling op by op,",
            _vector,
            (64 * cpu.MIB,),
            (500,),
            moved=_bytes("x", "x"),
        ),
        row(
            "cross_entropy",
            "cross-entropy and its gradient,",
            cpu.cross_entropy,
            (2048, 50257),
            (12, 40),
            moved=_bytes("logits", "logits"),
        ),
        row("gelu_chain_1k", "the GELU chain,", _vector, (1024,), (100,), kind="call",
            function="gelu_chain"),
        row("layer_norm_small", "layer norm and its gradients,", cpu.layer_norm, (64, 256), (8, 24),
            kind="call", function="layer_norm", tolerance=5e-5),
        row("tiny_mlp", "MLP 8-16-4 forward, batch 4", cpu.tiny_mlp, (), (), kind="call"),
        row("lstm", "LSTM of 200 steps in a loop: steps×batch×inputs×width", _sequences,
            (200, 32, 64, 128), (9, 3, 4, 5), kind="call", tolerance=1e-4),
        row("decode", "decoding with a cache in a loop: steps×batch×width", _cache,
            (128, 8, 512), (6, 2, 8), kind="call", tolerance=1e-3),
        row("newton", "Newton's iteration until all roots are near, numbers", _squares,
            (1 << 20,), (50,), kind="call", tolerance=2e-4),
        row(
            "mlp_train",
            "MLP training step, AdamW: batch×inputs×width",
            cpu.mlp,
            (256, 784, 512),
            (8, 20, 16),
            flops=_mlp_flops,
            tolerance=2e-3,
            **training,
        ),
        row(
            "resnet18",
            "ResNet-18 inference: width×side×batch×classes",
            _residual,
            (64, 224, 32, 1000),
            (4, 32, 2, 10),
            flops=_residual_flops,
            kind="inference",
            tolerance=1e-4,
        ),
        row(
            "adamw",
            "AdamW over 100 parameters, width",
            _hundred,
            (768,),
            (8,),
            moved=_adamw_bytes,
            steps=STEPS,
            tolerance=2e-3,
        ),
        row(
            "cnn_train",
            "CNN training step, images 28×28, SGD with momentum, batch",
            cpu.cnn,
            (64,),
            (4,),
            flops=_cnn_flops,
            tolerance=2e-3,
            **training,
        ),
        row(
            "column_stats",
            "column mean and variance, row logsumexp,",
            _matrix,
            (16384, 4096),
            (24, 40),
            moved=_bytes("x"),
            tolerance=5e-5,
        ),
        row(
            "transposed",
            "chain over a transposed and a plain matrix, side",
            _two_squares,
            (8192,),
            (33,),
            moved=_bytes("a", "b", "b"),
        ),
        row(
            "black_scholes",
            "Black-Scholes calls and puts,",
            _options,
            (32 * cpu.MIB,),
            (300,),
            moved=_bytes("spot", "strike", "years", "spot", "spot"),
            tolerance=5e-5,
        ),
        row(
            "embedding",
            "embedding and its dense gradient: rows×width×batch×length",
            cpu.embedding,
            (50257, 768, 32, 1024),
            (30, 8, 3, 5),
            moved=_embedding_bytes,
        ),
        row(
            "stencil",
            "twenty steps of a five-point stencil, side",
            _field,
            (8192,),
            (24,),
            moved=lambda data: 40 * data["u"].nbytes,
        ),
        row(
            "pairwise",
            "softened gravity by broadcasting, bodies",
            cpu.pairwise,
            (8192,),
            (40,),
            kind="compute",
            flops=lambda data: 20 * len(data["x"]) ** 2,
            tolerance=1e-4,
        ),
    ]  # fmt: skip
    return {each.name: each for each in rows}
