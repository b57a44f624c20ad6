"""Forty operations at three sizes, written once for tgraph and PyTorch, whose names are the same.

An operation is a function of a library (`tgraph` or `torch`) and tensors; what it returns is
compared, unless its numbers are drawn.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .case import Array
from .hyperparameters import DECAYED
from .networks import resnet
from .sequences import modules
from .sequences.workloads import gpt, recurrent
from .workload import Random, normal

SIZES = ("small", "middle", "large")
Sizes = tuple[int, ...]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """A row of the tables.

    make: inputs from a random generator and the sizes of one of `SIZES`.
    function: of a library and the inputs as its tensors; where `prepared`, it gives the function
    of no arguments that is called (with parameters, an optimizer and the like of its own).
    drawn: random numbers make the results.
    """

    name: str
    make: Callable[..., dict[str, Array]]
    sizes: tuple[Sizes, Sizes, Sizes]
    function: Function
    prepared: bool = False
    drawn: bool = False
    # Calls before results are compared: what `Worker` asks of a workload.
    steps: int = 1

    def data(self, size: str) -> dict[str, Array]:
        """The same arrays for every library."""
        random = np.random.default_rng(zlib.crc32(f"{self.name} {size}".encode()))
        return self.make(random, *self.sizes[SIZES.index(size)])

    def call(self, library: Any, size: str, compiled: Function = lambda f: f) -> Function:
        """What to time, with `compiled` applied to the function."""
        tensors = [library.from_numpy(each) for each in self.data(size).values()]
        if self.prepared:
            return compiled(self.function(library, *tensors))
        function = compiled(partial(self.function, library))
        return lambda: function(*tensors)


# --- data ----------------------------------------------------------------------------------------

MATRICES = ((10, 10), (256, 256), (1024, 2048))
IMAGES = ((2, 4, 8, 8), (8, 16, 28, 28), (16, 64, 56, 56))


def one(random: Random, *shape: int) -> dict[str, Array]:
    return {"x": normal(random, *shape)}


def two(random: Random, *shape: int) -> dict[str, Array]:
    return {"x": normal(random, *shape), "y": normal(random, *shape)}


def with_mask(random: Random, *shape: int) -> dict[str, Array]:
    return {"mask": random.random(shape) < 0.5, **two(random, *shape)}


def with_channels(random: Random, *shape: int) -> dict[str, Array]:
    """The weights and biases of a norm, by channel or by column."""
    channels = shape[1]
    return {
        **one(random, *shape),
        "weight": normal(random, channels),
        "b": normal(random, channels),
    }


def with_classes(random: Random, rows: int, classes: int) -> dict[str, Array]:
    return {**one(random, rows, classes), "labels": random.integers(0, classes, rows)}


def with_index(random: Random, rows: int, columns: int) -> dict[str, Array]:
    """Positions of rows for every element."""
    return {**one(random, rows, columns), "index": random.integers(0, rows, (rows, columns))}


def with_rows(random: Random, rows: int, columns: int) -> dict[str, Array]:
    """Positions of as many rows as there are."""
    return {**one(random, rows, columns), "index": random.integers(0, rows, rows)}


def layer(random: Random, batch: int, inputs: int, outputs: int) -> dict[str, Array]:
    return {
        "x": normal(random, batch, inputs),
        "weight": normal(random, outputs, inputs) / np.float32(inputs**0.5),
        "b": normal(random, outputs),
    }


def images(random: Random, batch: int, inputs: int, outputs: int, size: int) -> dict[str, Array]:
    weight = normal(random, outputs, inputs, 3, 3) / np.float32(3 * inputs**0.5)
    return {"x": normal(random, batch, inputs, size, size), "weight": weight}


def words(random: Random, rows: int, width: int, batch: int) -> dict[str, Array]:
    return {"table": normal(random, rows, width), "tokens": random.integers(0, rows, batch)}


def heads(random: Random, *shape: int) -> dict[str, Array]:
    return {name: normal(random, *shape) for name in "qkv"}


def perceptron(random: Random, batch: int, *widths: int) -> dict[str, Array]:
    inputs, hidden, outputs = widths
    first, second = layer(random, batch, inputs, hidden), layer(random, batch, hidden, outputs)
    labels = random.integers(0, outputs, batch)
    return {**first, "labels": labels, "weight2": second["weight"], "b2": second["b"]}


# --- functions that take more than a line --------------------------------------------------------


def linear_gradients(library: Any, x: Any, weight: Any, bias: Any) -> Function:
    inputs = [each.requires_grad_() for each in (x, weight, bias)]
    ones = library.ones(len(x), len(weight))

    def call() -> Any:
        value = library.nn.functional.linear(*inputs)
        return library.autograd.grad(value, inputs, ones)

    return call


def mlp_loss(library: Any, x: Any, labels: Any, *weights: Any) -> Any:
    functional = library.nn.functional
    hidden = functional.relu(functional.linear(x, *weights[:2]))
    return functional.cross_entropy(functional.linear(hidden, *weights[2:]), labels)


def mlp_gradients(
    library: Any, x: Any, weight: Any, b: Any, labels: Any, weight2: Any, b2: Any
) -> Function:
    weights = [each.requires_grad_() for each in (weight, b, weight2, b2)]
    return lambda: library.autograd.grad(mlp_loss(library, x, labels, *weights), weights)


def adam_step(
    library: Any, x: Any, weight: Any, b: Any, labels: Any, weight2: Any, b2: Any
) -> Function:
    """The optimizer's step alone, with gradients that stay as they are."""
    weights = [each.requires_grad_() for each in (weight, b, weight2, b2)]
    mlp_loss(library, x, labels, *weights).backward()
    optimizer = library.optim.Adam(weights, 1e-4)

    def call() -> Any:
        optimizer.step()
        return tuple(weights)

    return call


def resnet8(random: Random, batch: int, size: int, width: int) -> dict[str, Array]:
    return resnet.data(random, batch, size, width, stages=3, blocks=1)


def resnet_step(library: Any, x: Any, labels: Any, *values: Any) -> Function:
    """A whole training step; the loss."""
    weights = [each.requires_grad_() for each in values]
    names = list(resnet8(np.random.default_rng(0), 1, 1, 1))[2:]
    p = dict(zip(names, weights, strict=True))
    layers = resnet.TorchLayers(library, p)
    rate, momentum, decay = DECAYED
    optimizer = library.optim.SGD(weights, rate, momentum=momentum, weight_decay=decay)

    def call() -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(resnet.forward(layers, p, x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return call


def lstm_step(library: Any, *values: Any) -> Function:
    names = recurrent(np.random.default_rng(0), 1, 1, 1, 1)
    return _model_step(library, names, values, modules.recurrent, modules.adam)


def gpt_step(library: Any, *values: Any) -> Function:
    names = gpt(np.random.default_rng(0), 1, 1, 1, 1)
    return _model_step(library, names, values, modules.gpt, modules.adamw)


def _model_step(
    library: Any, names: Iterable[str], values: Sequence[Any], of: Function, optimizer_of: Function
) -> Function:
    """A whole training step of a model of modules; the loss."""
    data = dict(zip(names, values, strict=True))
    model, _ = of(library, data)
    optimizer, inputs = optimizer_of(library, model), (data["tokens"], data["labels"])
    return lambda: modules.step(
        library, model, optimizer, lambda: modules.loss_of(library, model, *inputs)
    )


def normalized(library: Any, x: Any, weight: Any, bias: Any) -> Function:
    """Batch norm in training, with running statistics."""
    running = (library.zeros(len(bias)), library.ones(len(bias)))
    return lambda: library.nn.functional.batch_norm(x, *running, weight, bias, training=True)


def drawn(name: str) -> Function:
    """`randn` or `rand` of the input's shape."""
    return lambda library, x: getattr(library, name)(*x.shape)


def of(name: str, **settings: Any) -> Function:
    """A function of the library."""
    return lambda library, *tensors: getattr(library, name)(*tensors, **settings)


def functional(name: str, **settings: Any) -> Function:
    """A function of `nn.functional`."""
    return lambda library, *tensors: getattr(library.nn.functional, name)(*tensors, **settings)


LAYERS = ((8, 16, 16), (64, 256, 256), (256, 1024, 1024))
NETWORKS = ((4, 8, 16, 4), (64, 64, 128, 10), (256, 784, 512, 10))
ROWS = ((10, 20), (100, 1000), (1000, 2000))

OPERATIONS = [
    Operation("add", two, MATRICES, lambda library, x, y: x + y),
    Operation("mul", two, MATRICES, lambda library, x, y: x * y),
    Operation("where", with_mask, MATRICES, of("where")),
    Operation("clamp", one, MATRICES, lambda library, x: x.clamp(-0.5, 0.5)),
    Operation("exp", one, MATRICES, of("exp")),
    Operation("tanh", one, MATRICES, of("tanh")),
    Operation("relu", one, MATRICES, functional("relu")),
    Operation("gelu", one, MATRICES, functional("gelu")),
    Operation("silu", one, MATRICES, functional("silu")),
    Operation("sigmoid", one, MATRICES, of("sigmoid")),
    Operation("softmax", one, MATRICES, of("softmax", dim=-1)),
    Operation("log_softmax", one, MATRICES, functional("log_softmax", dim=-1)),
    Operation(
        "layer_norm",
        with_channels,
        MATRICES,
        lambda library, x, w, b: library.nn.functional.layer_norm(x, x.shape[1:], w, b),
    ),
    Operation("batch_norm", with_channels, IMAGES, normalized, prepared=True),
    Operation("cross_entropy", with_classes, ROWS, functional("cross_entropy")),
    Operation("mse_loss", two, MATRICES, functional("mse_loss")),
    Operation("sum", one, MATRICES, lambda library, x: x.sum()),
    Operation("mean", one, MATRICES, lambda library, x: x.mean(0)),
    Operation("var", one, MATRICES, lambda library, x: x.var(-1)),
    Operation("max", one, MATRICES, lambda library, x: tuple(x.max(-1))),
    Operation("argmax", one, MATRICES, lambda library, x: x.argmax(-1)),
    Operation("cumsum", one, MATRICES, lambda library, x: x.cumsum(-1)),
    Operation("sort", one, ROWS, lambda library, x: x.sort(-1)[0]),
    Operation("topk", one, ROWS, lambda library, x: x.topk(10)[0]),
    Operation("matmul", two, ((16, 16), (256, 256), (1024, 1024)), lambda library, x, y: x @ y),
    Operation("linear and gradients", layer, LAYERS, linear_gradients, prepared=True),
    Operation(
        "conv2d",
        images,
        ((1, 3, 8, 8), (8, 16, 32, 28), (16, 64, 64, 56)),
        functional("conv2d", padding=1),
    ),
    Operation("max_pool2d", one, IMAGES, functional("max_pool2d", kernel_size=2)),
    Operation("avg_pool2d", one, IMAGES, functional("avg_pool2d", kernel_size=2)),
    Operation(
        "embedding",
        words,
        ((100, 16, 32), (10_000, 64, 1024), (50_000, 128, 16_384)),
        lambda library, table, tokens: library.nn.functional.embedding(tokens, table),
    ),
    Operation("gather", with_index, MATRICES, lambda library, x, index: x.gather(0, index)),
    Operation(
        "index_select", with_rows, MATRICES, lambda library, x, index: x.index_select(0, index)
    ),
    Operation("cat", two, MATRICES, lambda library, x, y: library.cat([x, y])),
    Operation("stack", two, MATRICES, lambda library, x, y: library.stack([x, y], 1)),
    Operation("contiguous", one, MATRICES, lambda library, x: x.transpose(0, 1).contiguous()),
    Operation("x[2]", one, MATRICES, lambda library, x: x[2]),
    Operation("slice", one, MATRICES, lambda library, x: x[1:-1, ::2]),
    Operation("randn", one, MATRICES, drawn("randn"), drawn=True),
    Operation("rand", one, MATRICES, drawn("rand"), drawn=True),
    Operation("dropout", one, MATRICES, functional("dropout", p=0.1), drawn=True),
    Operation(
        "attention",
        heads,
        ((1, 2, 16, 16), (2, 4, 128, 64), (4, 8, 512, 64)),
        functional("scaled_dot_product_attention"),
    ),
    Operation("MLP gradients", perceptron, NETWORKS, mlp_gradients, prepared=True),
    Operation("Adam step of an MLP", perceptron, NETWORKS, adam_step, prepared=True),
    Operation(
        "training step of ResNet-8",
        resnet8,
        ((2, 8, 4), (8, 16, 8), (32, 32, 16)),
        resnet_step,
        prepared=True,
        steps=2,
    ),
    Operation(
        "training step of an LSTM",
        recurrent,
        ((20, 16, 2, 8), (65, 64, 16, 32), (65, 256, 32, 64)),
        lstm_step,
        prepared=True,
        steps=2,
    ),
    Operation(
        "training step of a GPT",
        gpt,
        ((20, 16, 2, 8), (65, 64, 4, 64), (65, 256, 8, 128)),
        gpt_step,
        prepared=True,
        steps=2,
    ),
]
BY_NAME = {operation.name: operation for operation in OPERATIONS}
