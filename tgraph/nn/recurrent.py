"""Recurrent networks: RNN, LSTM, GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, NoReturn

from ..core.tensor import Tensor
from ..ops import movement as m
from ..ops.creation import empty, zeros
from ..ops.gather_scatter import index_select
from ..ops.recurrent import recurrent
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence, number_of_sequences

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common: their parameters, options and checks."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        self._all_weights: list[list[str]] = []
        options = {"device": device, "dtype": dtype}
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                names = []
                for kind, shape in self._shapes(layer).items():
                    names.append(f"{kind}_l{layer}{suffix}")
                    self.register_parameter(names[-1], Parameter(empty(shape, **options)))
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
        if not is_number or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        wanted = {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}
        for name, kind in wanted.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
                )
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """What the parameters of a layer and direction are called, and their shapes."""
        gates, size = _GATES[self.mode] * self.hidden_size, self._output_size
        inputs = size * self._directions if layer else self.input_size
        found: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, inputs), "weight_hh": (gates, size)
        }  # fmt: skip
        if self.bias:
            found |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            found["weight_hr"] = (self.proj_size, self.hidden_size)
        return found

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def flatten_parameters(self) -> None:
        """Does nothing: there is no other arrangement of the parameters that is faster."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # --- checks ---

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """An error where `input` has another dtype, dimensions or size than the layer takes."""
        wanted = self._flat_weights[0].dtype
        if input.dtype != wanted:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({wanted}). "
                f"Convert input: input.to({wanted}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.ndim != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.ndim}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _batch_of(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return number_of_sequences(batch_sizes)
        return input.shape[0 if self.batch_first else 1]

    def _state_shape(self, batch: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * self._directions, batch, size

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the states of all layers and directions."""
        return self._state_shape(self._batch_of(input, batch_sizes), self._output_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """An error where the states have another shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def _check_hidden(self, hidden: Any, batch: int) -> None:
        self.check_hidden_size(hidden, self._state_shape(batch, self._output_size))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """An error where input or states are none for this layer."""
        self.check_input(input, batch_sizes)
        self._check_hidden(hidden, self._batch_of(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States in another order of the batch."""
        return hx if permutation is None else index_select(hx, 1, permutation)

    # --- forward ---

    def _zeros(self, input: Tensor, batch: int, size: int) -> Tensor:
        shape = self._state_shape(batch, size)
        return zeros(shape, dtype=input.dtype, device=input.device)

    def _first_states(self, input: Tensor, batch: int) -> Any:
        return self._zeros(input, batch, self.hidden_size)

    def _run(self, input: Tensor, hidden: Any, steps: Tensor | None) -> tuple[Tensor, Any]:
        states = hidden if isinstance(hidden, (tuple, list)) else (hidden,)
        output, *last = recurrent(
            self.mode, input, steps, self.bias, self.num_layers,
            self.dropout if self.training else 0.0, self.bidirectional, self.batch_first,
            *states, *self._flat_weights,
        )  # fmt: skip
        return output, tuple(last) if len(last) > 1 else last[0]

    def _of_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        self.check_input(data, batch_sizes)
        padded, batch = packed.padded, packed.number
        if hx is None:
            hx = self._first_states(data, batch)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
            self._check_hidden(hx, batch)
        if padded is None:
            output, hidden = self._run(data, hx, batch_sizes)
            made = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        else:
            output, hidden = self._run(padded.rows, hx, padded.is_inside)
            made = padded.with_rows(output).packed(batch_sizes, sorted_indices, unsorted_indices)
        return made, self.permute_hidden(hidden, unsorted_indices)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        if input.ndim not in (2, 3):
            self._refuse_input(input)
        is_batched, axis = input.ndim == 3, 0 if self.batch_first else 1
        if not is_batched:
            input = m.unsqueeze(input, axis)
        if hx is None:
            hx = self._first_states(input, self._batch_of(input, None))
        else:
            self._check_states(hx, is_batched)
            hx = hx if is_batched else _each(m.unsqueeze, hx)
        self.check_forward_args(input, hx, None)
        if input.shape[1 if self.batch_first else 0] < 1:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, hidden = self._run(input, hx, None)
        if is_batched:
            return output, hidden
        return m.squeeze(output, axis), _each(m.squeeze, hidden)

    def _refuse_input(self, input: Tensor) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
        )

    def _check_states(self, hx: Any, is_batched: bool) -> None:
        wanted, text = (3, "batched 3-D") if is_batched else (2, "unbatched 2-D")
        if hx.ndim != wanted:
            raise RuntimeError(
                f"For {text} input, hx should also be {wanted}-D but got {hx.ndim}-D tensor"
            )

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)


def _each(function: Any, states: Any) -> Any:
    """`function(state, 1)` of one state or of each of a pair."""
    if isinstance(states, (tuple, list)):
        return tuple(function(each, 1) for each in states)
    return function(states, 1)


def _refuse_options(name: str, unknown: dict[str, Any]) -> None:
    if "proj_size" in unknown:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(unknown))}'")


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, over a sequence, in several layers.

    Takes (time, batch, input_size), with `batch_first` (batch, time, input_size), one sequence
    (time, input_size), or a `PackedSequence`, and first states (layers * directions, batch,
    hidden_size), zeros unless given. Gives the states of the last layer at all times, both
    directions side by side, and the last states of all layers. Source: Elman, "Finding structure in
    time" (1990).

    >>> import tgraph as tg
    >>> rnn = tg.nn.RNN(10, 20, 2)
    >>> output, hn = rnn(tg.ones(5, 3, 10))
    >>> output.shape, hn.shape
    (tgraph.Size([5, 3, 20]), tgraph.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **unknown: Any,
    ) -> None:
        _refuse_options("RNN", unknown)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity

    def _refuse_input(self, input: Tensor) -> NoReturn:
        raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.ndim}D tensor instead")


class LSTM(RNNBase):
    """Long short-term memory over a sequence, in several layers; shapes as of `RNN`.

    States are pairs (h, c); with `proj_size`, h is a product of that size, its weight `weight_hr`.
    Sources: Hochreiter and Schmidhuber, "Long short-term memory" (1997); Sak, Senior and Beaufays
    (2014) for projections.

    >>> import tgraph as tg
    >>> lstm = tg.nn.LSTM(10, 20, 2, batch_first=True, bidirectional=True)
    >>> output, (hn, cn) = lstm(tg.ones(3, 5, 10))
    >>> output.shape, hn.shape
    (tgraph.Size([3, 5, 40]), tgraph.Size([4, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cells of all layers and directions."""
        return self._state_shape(self._batch_of(input, batch_sizes), self.hidden_size)

    def _check_hidden(self, hidden: Any, batch: int) -> None:
        sizes = self._output_size, self.hidden_size
        for at, (each, size) in enumerate(zip(hidden, sizes)):
            text = f"Expected hidden[{at}] size {{}}, got {{}}"
            self.check_hidden_size(each, self._state_shape(batch, size), text)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States in another order of the batch."""
        if permutation is None:
            return hx
        return tuple(index_select(each, 1, permutation) for each in hx)

    def _first_states(self, input: Tensor, batch: int) -> Any:
        sizes = self._output_size, self.hidden_size
        return tuple(self._zeros(input, batch, size) for size in sizes)

    def _check_states(self, hx: Any, is_batched: bool) -> None:
        wanted, text = (3, "batched 3-D") if is_batched else (2, "unbatched 2-D")
        dims = hx[0].ndim, hx[1].ndim
        if dims != (wanted, wanted):
            raise RuntimeError(
                f"For {text} input, hx and cx should also be {wanted}-D but got "
                f"({dims[0]}-D, {dims[1]}-D) tensors"
            )


class GRU(RNNBase):
    """Gated recurrent units over a sequence, in several layers; shapes as of `RNN`.

    The reset gate is applied to the product with the state, as in cuDNN and PyTorch. Source: Cho
    et al., "Learning phrase representations using RNN encoder-decoder" (2014).

    >>> import tgraph as tg
    >>> output, hn = tg.nn.GRU(10, 20)(tg.ones(5, 3, 10))
    >>> output.shape, hn.shape
    (tgraph.Size([5, 3, 20]), tgraph.Size([1, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **unknown: Any,
    ) -> None:
        _refuse_options("GRU", unknown)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip
