"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops import movement as m
from ..ops.attention import canonical_mask, dtype_of
from ..ops.creation import empty
from . import functional as F
from . import init
from .attention_backends import SDPBackend, sdpa_kernel
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import Parameter

__all__ = ["MultiheadAttention", "SDPBackend", "sdpa_kernel"]


class MultiheadAttention(Module):
    """Attention of queries to keys in several heads, each of `embed_dim / num_heads` features.

    Takes query, key and value as (time, batch, features), with `batch_first` (batch, time,
    features), or without a batch; gives the result and the weights, the mean over heads unless not
    `average_attn_weights`, None unless `need_weights`. A boolean `key_padding_mask` (batch, keys)
    and `attn_mask` (queries, keys), or (batch * heads, queries, keys), are True where a key takes
    no part; float ones are added. `is_causal` says that `attn_mask` is the causal one.

    Source: Vaswani et al., "Attention is all you need" (2017).

    >>> import tgraph as tg
    >>> attention = tg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = tg.ones(3, 5, 8)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    (tgraph.Size([3, 5, 8]), tgraph.Size([3, 5, 5]))
    """

    bias_k: Tensor | None
    bias_v: Tensor | None
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        options = {"device": device, "dtype": dtype}

        def parameter(name: str, wanted: bool, *shape: int) -> None:
            self.register_parameter(name, Parameter(empty(shape, **options)) if wanted else None)

        same = self._qkv_same_embed_dim
        sizes = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if same:
            parameter("in_proj_weight", True, 3 * embed_dim, embed_dim)
        for name, size in sizes.items():
            parameter(f"{name}_proj_weight", not same, embed_dim, size)
        if not same:
            parameter("in_proj_weight", False)
        parameter("in_proj_bias", bias, 3 * embed_dim)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        parameter("bias_k", add_bias_kv, 1, 1, embed_dim)
        parameter("bias_v", add_bias_kv, 1, 1, embed_dim)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for each in (self.bias_k, self.bias_v):
            if each is not None:
                init.xavier_normal_(each)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        key_padding_mask = canonical_mask(
            key_padding_mask, "key_padding_mask", dtype_of(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        by_batch = self.batch_first and query.ndim == 3
        if by_batch:
            query, key, value = _transposed(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (m.transpose(output, 0, 1) if by_batch else output), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, (batch, heads, queries, keys), and which kind it is: 2; or one, 1."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, times, _ = query.shape
        shape = batch, self.num_heads, times, times
        if attn_mask.ndim == 3:
            merged = m.reshape(attn_mask, batch, -1, times, times)
        else:
            merged = m.expand(m.reshape(attn_mask, 1, 1, times, times), *shape)
        if key_padding_mask is not None:
            merged = merged + m.reshape(key_padding_mask, batch, 1, 1, times)
        return merged, 2


def _transposed(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each with its first two axes exchanged; what was one tensor stays one."""
    by_time = m.transpose(query, 0, 1)
    of_key = by_time if key is query else m.transpose(key, 0, 1)
    return by_time, of_key, of_key if value is key else m.transpose(value, 0, 1)
