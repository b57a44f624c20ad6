"""Transformers: encoders and decoders of layers of attention."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops import elementwise as e
from ..ops.attention import canonical_mask, dtype_of
from ..ops.creation import full
from ..ops.diagonals import triu
from . import functional as F
from . import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then two linear maps; each is added to what it takes.

    Layers are normalised behind that, with `norm_first` before it. Takes (time, batch, d_model),
    with `batch_first` (batch, time, d_model), or one sequence; masks are those of
    `MultiheadAttention`. There is no other way for evaluation (PyTorch's gives the same numbers,
    but zeros at padded places).

    Source: Vaswani et al., "Attention is all you need" (2017).

    >>> import tgraph as tg
    >>> layer = tg.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> layer(tg.ones(3, 5, 8)).shape
    tgraph.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        activation = _activation(activation)
        is_relu = activation is F.relu or isinstance(activation, ReLU)
        is_gelu = activation is F.gelu or isinstance(activation, GELU)
        self.activation_relu_or_gelu = 1 if is_relu else 2 if is_gelu else 0
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        src_key_padding_mask = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", dtype_of(src_mask), "src_mask", src.dtype
        )
        masks = canonical_mask(src_mask, "src_mask", None, "", src.dtype), src_key_padding_mask
        x = src
        if self.norm_first:
            x = e.add(x, self._sa_block(self.norm1(x), *masks, is_causal=is_causal))
            return e.add(x, self._ff_block(self.norm2(x)))
        x = self.norm1(e.add(x, self._sa_block(x, *masks, is_causal=is_causal)))
        return self.norm2(e.add(x, self._ff_block(x)))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
            is_causal=is_causal,
        )  # fmt: skip
        return self.dropout1(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Attention of a sequence to itself, to the memory of an encoder, then two linear maps.

    Otherwise as `TransformerEncoderLayer`.

    >>> import tgraph as tg
    >>> layer = tg.nn.TransformerDecoderLayer(8, 2)
    >>> layer(tg.ones(5, 3, 8), tg.ones(7, 3, 8)).shape
    tgraph.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        heads: Any = {"dropout": dropout, "batch_first": batch_first, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = e.add(x, self._sa_block(self.norm1(x), *own))
            x = e.add(x, self._mha_block(self.norm2(x), *other))
            return e.add(x, self._ff_block(self.norm3(x)))
        x = self.norm1(e.add(x, self._sa_block(x, *own)))
        x = self.norm2(e.add(x, self._mha_block(x, *other)))
        return self.norm3(e.add(x, self._ff_block(x)))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
            need_weights=False,
        )  # fmt: skip
        return self.dropout1(attended)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            is_causal=is_causal, need_weights=False,
        )  # fmt: skip
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, one behind the other, and then `norm`.

    `is_causal` says that `mask` is the causal one; None is taken for False, with equal results.
    `enable_nested_tensor` and `mask_check` are kept and have no effect.

    >>> from tgraph import nn, ones
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2, nn.LayerNorm(8), False)
    >>> encoder(ones(5, 3, 8)).shape
    tgraph.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        src_key_padding_mask = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", dtype_of(mask), "mask", src.dtype
        )
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal is True,
                src_key_padding_mask=src_key_padding_mask,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, one behind the other, and then `norm`.

    >>> from tgraph import nn, ones
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 2)
    >>> decoder(ones(5, 3, 8), ones(7, 3, 8)).shape
    tgraph.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal is True, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it gives.

    >>> import tgraph as tg
    >>> model = tg.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(tg.ones(7, 3, 8), tg.ones(5, 3, 8)).shape
    tgraph.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, **options)

        self.encoder = custom_encoder
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*layer, **options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*layer, **options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        axis = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[axis] != tgt.shape[axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: 0 where a key is no later than the query, -inf elsewhere.

        >>> import tgraph as tg
        >>> tg.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), 1)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
