"""`lstm`, `gru`, `rnn_tanh` and `rnn_relu` as functions, and one step of each.

`params` are weight_ih, weight_hh and, with biases, bias_ih and bias_hh, of each layer and
direction. Sequences are (time, batch, features), or packed with their `batch_sizes`.

>>> import tgraph as tg
>>> weights = tg.ones(1, 2), tg.ones(1, 1)
>>> tg.rnn_relu(tg.ones(3, 1, 2), tg.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)
(tensor([[[2.]],
<BLANKLINE>
        [[4.]],
<BLANKLINE>
        [[6.]]]), tensor([[[6.]]]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.operands import require_tensor
from ..core.tensor import Tensor
from .recurrent import cell, recurrent


def _run(mode: str, names: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A layer, of arguments by place or name: of sequences of one length, or packed ones."""
    packed = "batch_sizes" in kwargs or (len(args) > 1 and _are_sizes(args))
    given = _PACKED if packed else _PADDED
    if len(args) > len(given):
        raise TypeError(f"{names}() takes {len(given)} arguments, got {len(args)}")
    named = {**dict(zip(given, args)), **kwargs}
    if named.keys() != set(given):
        differ = sorted(named.keys() ^ set(given))
        raise TypeError(f"{names}(): expected the arguments {', '.join(given)}; {differ} differ")
    states = named["hx"] if mode == "LSTM" else (named["hx"],)
    if len(states) != (2 if mode == "LSTM" else 1):
        raise RuntimeError(f"{names} expects two hidden states")
    dropout = named["dropout"] if named["train"] else 0.0
    x = require_tensor(named["data" if packed else "input"], names)
    return recurrent(
        mode, x, named.get("batch_sizes"), bool(named["has_biases"]), int(named["num_layers"]),
        float(dropout), bool(named["bidirectional"]), bool(named.get("batch_first", False)),
        *states, *named["params"],
    )  # fmt: skip


_REST = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", "hx", *_REST, "batch_first")
_PACKED = ("data", "batch_sizes", "hx", *_REST)


def _are_sizes(args: tuple[Any, ...]) -> bool:
    """Whether the second argument is the sizes of batches: then parameters come fourth."""
    return len(args) > 3 and not isinstance(args[3], bool)


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs at all times, and the last `h` and `c`; `hx` is the first `(h, c)`."""
    found: tuple[Tensor, Tensor, Tensor] = _run("LSTM", "lstm", args, kwargs)
    return found


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Outputs at all times, and the last states."""
    found: tuple[Tensor, Tensor] = _run("GRU", "gru", args, kwargs)
    return found


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Outputs at all times, and the last states."""
    found: tuple[Tensor, Tensor] = _run("RNN_TANH", "rnn_tanh", args, kwargs)
    return found


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Outputs at all times, and the last states."""
    found: tuple[Tensor, Tensor] = _run("RNN_RELU", "rnn_relu", args, kwargs)
    return found


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """`h` and `c` after one step."""
    return cell("LSTM", input, w_ih, w_hh, b_ih, b_hh, *hx)


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The state after one step."""
    return cell("GRU", input, w_ih, w_hh, b_ih, b_hh, hx)[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The state after one step."""
    return cell("RNN_TANH", input, w_ih, w_hh, b_ih, b_hh, hx)[0]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The state after one step."""
    return cell("RNN_RELU", input, w_ih, w_hh, b_ih, b_hh, hx)[0]
