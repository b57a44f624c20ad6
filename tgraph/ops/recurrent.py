"""Recurrent layers as functions: each is one loop over time.

What a layer takes of its inputs is one product for all times, before the loop; the loop is a scan,
which compiles to one loop whatever the length, forwards and backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.planned import planned
from ..core.tensor import Tensor
from . import creation
from . import elementwise as e
from . import movement as m
from .activations import relu, sigmoid
from .concatenation import cat, stack
from .dropout import dropout
from .gather_scatter import index_select
from .linear_maps import linear
from .row_scans import scan
from .scans import cumsum
from .sorting import searchsorted

State = tuple[Tensor, ...]
Step = Callable[[State, Any], tuple[State, Tensor]]


@planned
def recurrent(
    mode: str,
    input: Tensor,
    steps: Tensor | None,
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    bidirectional: bool,
    batch_first: bool,
    *states_and_weights: Tensor,
) -> tuple[Tensor, ...]:
    """The outputs at all times, and the last states: (layers * directions, batch, size) each.

    `mode` is "RNN_TANH", "RNN_RELU", "GRU" or "LSTM". `states_and_weights` are the first states,
    built like the last ones (two for an LSTM), and for each layer and direction weight_ih,
    weight_hh, with `has_biases` bias_ih and bias_hh, and weight_hr where an LSTM projects. `input`
    is (time, batch, features); or packed, (all steps, features), with the numbers of sequences at
    each time as `steps`; or padded, with `steps` that tell which are part of a sequence, (time,
    batch).
    """
    count = 2 if mode == "LSTM" else 1
    states, weights = states_and_weights[:count], states_and_weights[count:]
    directions = 2 if bidirectional else 1
    number = len(weights) // (num_layers * directions)
    shape = None if steps is None else _shape_of(steps, input, states[0])
    x = m.transpose(input, 0, 1) if batch_first and shape is None else input
    last: list[State] = []
    for layer in range(num_layers):
        if layer and dropout_p:
            x = dropout(x, dropout_p)
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            own = weights[at * number : (at + 1) * number]
            start = tuple(m.select(each, 0, at) for each in states)
            end, output = _layer(mode, x, shape, start, own, has_biases, direction == 1)
            last.append(end)
            outputs.append(output)
        x = cat(outputs, -1) if bidirectional else outputs[0]
    if batch_first and shape is None:
        x = m.transpose(x, 0, 1)
    return (x, *(stack(each, 0) for each in zip(*last)))


def _layer(
    mode: str,
    x: Tensor,
    shape: _Padded | None,
    start: State,
    weights: Sequence[Tensor],
    has_biases: bool,
    reverse: bool,
) -> tuple[State, Tensor]:
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = rest[:2] if has_biases else (None, None)
    w_hr = rest[-1] if len(rest) in (1, 3) else None
    in_loop = b_hh if mode == "GRU" else None  # elsewhere the two biases only add up
    bias = b_ih if in_loop is not None or b_ih is None or b_hh is None else e.add(b_ih, b_hh)
    projected = linear(x, w_ih, bias)
    step = _STEPS[mode](w_hh, in_loop, w_hr)
    if shape is None:
        return scan(step, start, projected, reverse=reverse)
    rows = shape.padded(projected), shape.is_inside
    end, padded = scan(_where_inside(step), start, rows, reverse=reverse)
    return end, shape.packed(padded)


def _shape_of(steps: Tensor, input: Tensor, state: Tensor) -> _Padded:
    steps = steps.to(input._type.device)
    return _Padded(steps) if input.ndim == 3 else _Packed(steps, input, state)


class _Padded:
    """Sequences as they stand in (time, batch, features), with anything behind their ends."""

    def __init__(self, is_inside: Tensor) -> None:
        self.is_inside = m.unsqueeze(is_inside, -1)

    def padded(self, data: Tensor) -> Tensor:
        return data

    def packed(self, padded: Tensor) -> Tensor:
        return padded


class _Packed(_Padded):
    """Where the rows of a packed sequence stand in (time, batch)."""

    def __init__(self, sizes: Tensor, data: Tensor, state: Tensor) -> None:
        place = data._type.device
        times, self.batch = sizes._type.shape[0], state._type.shape[1]
        ends = cumsum(sizes, 0)
        starts = m.unsqueeze(e.sub(ends, sizes), 1)
        column = m.unsqueeze(creation.arange(self.batch, device=place), 0)
        is_inside = e.lt(column, m.unsqueeze(sizes, 1))
        self._rows = e.where(is_inside, e.add(starts, column), 0)
        super().__init__(is_inside)
        number = creation.arange(data._type.shape[0], device=place)
        time = searchsorted(ends, number, right=True)
        first = index_select(m.squeeze(starts, 1), 0, time)
        self._places = e.add(e.mul(time, self.batch), e.sub(number, first))
        self._times = times

    def padded(self, data: Tensor) -> Tensor:
        """(time, batch, features), with anything where there is no step."""
        rows = index_select(data, 0, m.reshape(self._rows, -1))
        return m.reshape(rows, self._times, self.batch, data._type.shape[1])

    def packed(self, padded: Tensor) -> Tensor:
        """(all steps, features)."""
        rows = m.reshape(padded, self._times * self.batch, padded._type.shape[2])
        return index_select(rows, 0, self._places)


def _where_inside(step: Step) -> Step:
    """A step after which the states of sequences that are over, or not yet begun, are as before."""

    def kept(state: State, row: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
        x, is_inside = row
        after, output = step(state, x)
        return tuple(e.where(is_inside, *each) for each in zip(after, state)), output

    return kept


# --- steps ---------------------------------------------------------------------------------------


def _elman(activation: Callable[[Tensor], Tensor]) -> Callable[..., Step]:
    def made(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> Step:
        def step(state: State, projected: Tensor) -> tuple[State, Tensor]:
            h = activation(e.add(projected, linear(*state, w_hh, b_hh)))
            return (h,), h

        return step

    return made


def _lstm(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> Step:
    def step(state: State, projected: Tensor) -> tuple[State, Tensor]:
        h, c = state
        i, f, g, o = m.chunk(e.add(projected, linear(h, w_hh, b_hh)), 4, -1)
        c = e.add(e.mul(sigmoid(f), c), e.mul(sigmoid(i), e.tanh(g)))
        h = e.mul(sigmoid(o), e.tanh(c))
        h = h if w_hr is None else linear(h, w_hr)
        return (h, c), h

    return step


def _gru(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> Step:
    def step(state: State, projected: Tensor) -> tuple[State, Tensor]:
        (h,) = state
        of_x, of_h = (m.chunk(each, 3, -1) for each in (projected, linear(h, w_hh, b_hh)))
        reset, update = (sigmoid(e.add(of_x[at], of_h[at])) for at in range(2))
        new = e.tanh(e.add(of_x[2], e.mul(reset, of_h[2])))
        h = e.add(new, e.mul(update, e.sub(h, new)))
        return (h,), h

    return step


_STEPS: dict[str, Callable[..., Step]] = {
    "RNN_TANH": _elman(e.tanh),
    "RNN_RELU": _elman(relu),
    "LSTM": _lstm,
    "GRU": _gru,
}


@planned
def cell(
    mode: str,
    input: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    *state: Tensor,
) -> State:
    """The states after one step: of an LSTM h and c, else h alone."""
    after, _ = _STEPS[mode](w_hh, b_hh, None)(state, linear(input, w_ih, b_ih))
    return after
