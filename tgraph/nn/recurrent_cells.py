"""One step of recurrent networks."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..ops import movement as m
from ..ops.creation import empty, zeros
from ..ops.recurrent import cell
from . import init
from .module import Module
from .parameter import Parameter


class RNNCellBase(Module):
    """What the cells have in common: parameters, options and checks."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        size = num_chunks * hidden_size

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(shape, device=device, dtype=dtype))

        self.weight_ih = parameter(size, input_size)
        self.weight_hh = parameter(size, hidden_size)
        self.register_parameter("bias_ih", parameter(size) if bias else None)
        self.register_parameter("bias_hh", parameter(size) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        bias = "" if self.bias is True else f", bias={self.bias}"
        return f"{self.input_size}, {self.hidden_size}{bias}"

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, mode: str, input: Tensor, given: dict[str, Tensor], count: int = 1) -> Any:
        """The next states, from those `given` by name, or from zeros."""
        name = type(self).__name__
        for kind, each in {"input": input, **given}.items():
            if each.ndim not in (1, 2):
                raise ValueError(
                    f"{name}: Expected {kind} to be 1D or 2D, got {each.ndim}D instead"
                )
        is_batched = input.ndim == 2
        states = [each if is_batched else m.unsqueeze(each, 0) for each in given.values()]
        input = input if is_batched else m.unsqueeze(input, 0)
        if not states:
            shape = input.shape[0], self.hidden_size
            states = [zeros(shape, dtype=input.dtype, device=input.device)] * count
        self._check_sizes(input, states)
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        found = cell(mode, input, *weights, *states)
        return found if is_batched else tuple(m.squeeze(each, 0) for each in found)

    def _check_sizes(self, input: Tensor, states: list[Tensor]) -> None:
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for at, each in enumerate(states):
            if input.shape[0] != each.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{at} batch size "
                    f"{each.shape[0]}"
                )
            if each.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{at} has inconsistent hidden_size: got {each.shape[1]}, expected "
                    f"{self.hidden_size}"
                )


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu: one step of `RNN`.

    >>> import tgraph as tg
    >>> cell = tg.nn.RNNCell(10, 20)
    >>> cell(tg.ones(3, 10)).shape
    tgraph.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        given = {} if hx is None else {"hidden": hx}
        (h,) = self._step(f"RNN_{self.nonlinearity.upper()}", input, given)
        return h

    def extra_repr(self) -> str:
        usual = self.nonlinearity == "tanh"
        return super().extra_repr() + ("" if usual else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: (h, c) to the next (h, c).

    >>> import tgraph as tg
    >>> h, c = tg.nn.LSTMCell(10, 20)(tg.ones(3, 10))
    >>> h.shape
    tgraph.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        given = {} if hx is None else {f"hx[{at}]": each for at, each in enumerate(hx)}
        h, c = self._step("LSTM", input, given, 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    >>> import tgraph as tg
    >>> tg.nn.GRUCell(10, 20)(tg.ones(3, 10)).shape
    tgraph.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        (h,) = self._step("GRU", input, {} if hx is None else {"hidden": hx})
        return h
