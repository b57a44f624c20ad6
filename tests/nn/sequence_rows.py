"""Modules and functions for sequences and norms, as PyTorch and tgraph both have them.

A row makes a module and calls it, with `nn` and the functions of one library or the other.
`python -m tests.nn.sequence_rows` writes what PyTorch gives for all of them into the file beside
this one, which the tests read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FIGURES = Path(__file__).with_name("sequence_figures.json")


class Row(NamedTuple):
    """`make(nn)` gives a module; `call(library, module, *arrays)` its results."""

    make: Callable[[Any], Any]
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Any] = lambda lib, module, *x: module(*x)


def _packed(lengths: list[int], enforce_sorted: bool) -> Callable[..., Any]:
    def call(lib: Any, module: Any, x: Any, *states: Any) -> Any:
        rnn = lib.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=enforce_sorted)
        output, last = module(packed, *states)
        return rnn.pad_packed_sequence(output, padding_value=2.0)[0], last

    return call


def _mask(lib: Any, *rows: str) -> Any:
    """True where there is an x."""
    return lib.tensor([[letter == "x" for letter in row] for row in rows])


def _attend(**options: Any) -> Callable[..., Any]:
    """Options that are tuples are the rows of masks."""

    def call(lib: Any, module: Any, *x: Any) -> Any:
        found = {
            name: _mask(lib, *each) if isinstance(each, tuple) else each
            for name, each in options.items()
        }
        return [each for each in module(*x, **found) if each is not None]

    return call


def _of_heads(shape: str, **options: Any) -> Callable[..., Any]:
    def call(lib: Any, module: Any, q: Any, k: Any, v: Any) -> Any:
        mask = {"attn_mask": _mask(lib, *options["mask"])} if "mask" in options else {}
        rest = {name: each for name, each in options.items() if name != "mask"}
        return lib.nn.functional.scaled_dot_product_attention(q, k, v, **mask, **rest)

    return call


def _bag(offsets: list[int] | None = None, weights: bool = False) -> Callable[..., Any]:
    def call(lib: Any, module: Any, *x: Any) -> Any:
        at = lib.tensor([1, 4, 1, 2, 0, 2, 2, 3])
        if offsets is None:
            return module(at.reshape(2, 4))
        given = {"per_sample_weights": x[0]} if weights else {}
        return module(at, lib.tensor(offsets), **given)

    return call


def _rows(lib: Any, module: Any) -> Any:
    return module(lib.tensor([[1, 4, 1], [2, 0, 1]]))


def _evaluated(lib: Any, module: Any, x: Any) -> Any:
    """In training, which changes running statistics, and then in evaluation."""
    module.train()
    first = module(x)
    return first, module.eval()(x)


CAUSAL = (".xxx", "..xx", "...x", "....")
ROWS: dict[str, Row] = {
    "lstm with everything": Row(
        lambda nn: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2),
        ((2, 5, 3), (4, 2, 2), (4, 2, 4)),
        lambda lib, module, x, h, c: module(x, (h, c)),
    ),
    "lstm of one sequence without biases": Row(lambda nn: nn.LSTM(3, 4, bias=False), ((5, 3),)),
    "gru": Row(lambda nn: nn.GRU(3, 4, 2), ((5, 2, 3), (2, 2, 4))),
    "rnn": Row(lambda nn: nn.RNN(3, 4, 2, "relu", batch_first=True), ((2, 5, 3),)),
    "packed lstm": Row(
        lambda nn: nn.LSTM(3, 4, bidirectional=True), ((5, 3, 3),), _packed([5, 3, 1], True)
    ),
    "packed gru in any order": Row(
        lambda nn: nn.GRU(3, 4), ((5, 3, 3), (1, 3, 4)),
        _packed([2, 5, 3], False),
    ),
    "rnn cell": Row(lambda nn: nn.RNNCell(3, 4, nonlinearity="relu"), ((2, 3), (2, 4))),
    "lstm cell": Row(
        lambda nn: nn.LSTMCell(3, 4), ((2, 3), (2, 4), (2, 4)),
        lambda lib, module, x, h, c: module(x, (h, c)),
    ),
    "gru cell": Row(lambda nn: nn.GRUCell(3, 4), ((3,), (4,))),
    "attention to itself": Row(
        lambda nn: nn.MultiheadAttention(4, 2), ((4, 3, 4),),
        lambda lib, module, x: module(x, x, x),
    ),
    "attention to others": Row(
        lambda nn: nn.MultiheadAttention(
            4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5, batch_first=True
        ),
        ((2, 3, 4), (2, 4, 3), (2, 4, 5)),
        _attend(key_padding_mask=("...x", ".xx."), average_attn_weights=False),
    ),
    "attention causal": Row(
        lambda nn: nn.MultiheadAttention(4, 2, bias=False), ((4, 2, 4),) * 3,
        _attend(attn_mask=CAUSAL, is_causal=True, need_weights=False),
    ),
    "attention with two masks": Row(
        lambda nn: nn.MultiheadAttention(4, 2), ((4, 4),) * 3,
        lambda lib, module, *x: module(
            *x, key_padding_mask=_mask(lib, "x...")[0], attn_mask=_mask(lib, *CAUSAL[1:], "...."),
        )[0],
    ),
    "scaled dot product of grouped heads": Row(
        lambda nn: nn.Identity(), ((2, 4, 3, 5), (2, 2, 6, 5), (2, 1, 6, 2)),
        _of_heads("", enable_gqa=True, scale=0.7, mask=("xx.xxx", "......", "x....x")),
    ),
    "scaled dot product causal": Row(
        lambda nn: nn.Identity(), ((2, 3, 5), (2, 6, 5), (2, 6, 2)), _of_heads("", is_causal=True)
    ),
    "encoder": Row(
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu", batch_first=True), 1,
            nn.LayerNorm(4), False,
        ),
        ((2, 4, 4),),
        lambda lib, module, x: module(
            x, mask=_mask(lib, *CAUSAL), src_key_padding_mask=_mask(lib, "...x", "....")
        ),
    ),
    "transformer": Row(
        lambda nn: nn.Transformer(4, 2, 1, 1, 6, 0.0, norm_first=True),
        ((3, 2, 4), (4, 2, 4)),
        lambda lib, module, src, tgt: module(
            src, tgt, tgt_mask=lib.nn.Transformer.generate_square_subsequent_mask(4).to(tgt.dtype),
            tgt_is_causal=True,
        ),
    ),
    "embedding": Row(
        lambda nn: nn.Embedding(5, 3, padding_idx=-1, max_norm=1.0, norm_type=1.0,
                                scale_grad_by_freq=True),
        (), _rows,
    ),
    "bag of rows": Row(lambda nn: nn.EmbeddingBag(5, 3, padding_idx=2), (), _bag()),
    "bag of rows, largest": Row(
        lambda nn: nn.EmbeddingBag(5, 3, mode="max", padding_idx=2), (), _bag()
    ),
    "bag, mean": Row(
        lambda nn: nn.EmbeddingBag(5, 3, max_norm=1.0, include_last_offset=True), (),
        _bag([0, 3, 3, 8]),
    ),
    "bag, weighted": Row(
        lambda nn: nn.EmbeddingBag(5, 3, mode="sum", padding_idx=1), ((8,),), _bag([0, 5], True)
    ),
    "bag, largest": Row(
        lambda nn: nn.EmbeddingBag(5, 3, mode="max", padding_idx=1), (), _bag([0, 1, 3, 3, 6])
    ),
    "batch norm": Row(lambda nn: nn.BatchNorm3d(3, momentum=None), ((2, 3, 2, 1, 2),), _evaluated),
    "sync batch norm": Row(lambda nn: nn.SyncBatchNorm(3), ((4, 3),), _evaluated),
    "instance norm": Row(
        lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), ((2, 3, 2, 2),),
        _evaluated,
    ),
    "instance norm of one": Row(lambda nn: nn.InstanceNorm1d(3), ((3, 4),)),
    "group norm": Row(lambda nn: nn.GroupNorm(2, 4), ((2, 4, 3),)),
    "rms norm": Row(lambda nn: nn.RMSNorm((2, 3)), ((4, 2, 3),)),
    "local response norm": Row(
        lambda nn: nn.LocalResponseNorm(3, 0.5, 0.6, 2.0), ((2, 4, 3, 2),)
    ),
    "bilinear": Row(lambda nn: nn.Bilinear(3, 4, 2), ((5, 3), (5, 4))),
    "lazy": Row(
        lambda nn: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 2)), ((5, 3),)
    ),
    "cosine similarity": Row(lambda nn: nn.CosineSimilarity(0), ((4, 3), (4, 3))),
    "pairwise distance": Row(lambda nn: nn.PairwiseDistance(3.0, keepdim=True), ((4, 3), (3,))),
}  # fmt: skip


def arrays_of(name: str) -> list[np.ndarray]:
    random = np.random.default_rng(len(name))
    return [random.standard_normal(shape) for shape in ROWS[name].shapes]


def made(lib: Any, name: str) -> Any:
    """The module of a row, of float64 and with numbers in its parameters that depend on the row."""
    row = ROWS[name]
    module = row.make(lib.nn).to(lib.float64)
    if name == "lazy":
        with lib.no_grad():
            module.eval()(lib.tensor(arrays_of(name)[0]))
        module.train()
    random = np.random.default_rng(7)
    with lib.no_grad():
        for parameter in module.parameters():
            parameter.copy_(lib.tensor(random.standard_normal(tuple(parameter.shape)) * 0.5))
    return module


def tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)
    elif value is not None:
        yield value


def run(lib: Any, name: str, call: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Results, buffers, and gradients of a weighted sum of the results, as arrays by what they are.

    `call` is in the place of the row's own, with the library and the module given.
    """
    module = made(lib, name)
    inputs = [lib.tensor(each, requires_grad=True) for each in arrays_of(name)]
    given = ROWS[name].call if call is None else call
    results = list(tensors_in(given(lib, module, *inputs)))
    total = sum((each * _weights(lib, each)).sum() for each in results)
    total.backward()
    found = {f"result {at}": each for at, each in enumerate(results)}
    found |= dict(module.named_buffers())
    found |= {f"gradient {at}": each.grad for at, each in enumerate(inputs)}
    found |= {f"gradient of {key}": each.grad for key, each in module.named_parameters()}
    return {key: each.detach().numpy() for key, each in found.items() if each is not None}


def _weights(lib: Any, like: Any) -> Any:
    return lib.tensor(np.cos(np.arange(like.numel())).reshape(tuple(like.shape)))


def figure(array: np.ndarray) -> float:
    """One number that depends on all elements and their places."""
    return float((np.sin(1 + np.arange(array.size)) * array.reshape(-1)).sum())


def main() -> None:
    import torch

    found = {name: {key: figure(each) for key, each in run(torch, name).items()} for name in ROWS}
    lines = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
