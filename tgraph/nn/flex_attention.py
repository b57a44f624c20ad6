"""Attention whose scores and masks are functions of positions: PyTorch's `flex_attention`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Size, Tensor
from ..ops.activations import logsumexp
from ..ops.creation import arange
from ..ops.elementwise import where
from ..ops.gather_scatter import repeat_interleave
from ..runtime.dtypes import bool_
from ..runtime.records import NamedTuple

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "flex_attention", "noop_mask", "or_masks"]  # fmt: skip

Positions = Callable[..., Any]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` gives besides its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithms of the sums of exponentials of scores, and the largest scores."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class BlockMask:
    """Which keys a query attends to, told by a function of batch, head, query and key.

    It is asked for all positions when scores are there: where it is False, the compiler's kernel
    masks them. There is no list of blocks.
    """

    def __init__(self, mask_mod: Positions, shape: tuple[int | None, int | None, int, int]) -> None:
        self.mask_mod = mask_mod
        self.shape = Size([1 if each is None else each for each in shape])
        self.seq_lengths = shape[2], shape[3]
        self.BLOCK_SIZE = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE)

    def to(self, device: Any) -> BlockMask:
        """The mask itself: it holds no tensors of its own."""
        return self

    def numel(self) -> int:
        """The number of pairs of positions."""
        return math.prod(self.shape)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask of nothing: True."""
    return batch.new_ones((), dtype=bool_)


def and_masks(*mask_mods: Positions) -> Positions:
    """The mask of what all of `mask_mods` let through."""

    def both(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return both


def or_masks(*mask_mods: Positions) -> Positions:
    """The mask of what any of `mask_mods` lets through."""

    def either(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=bool_)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return either


def create_block_mask(
    mask_mod: Positions, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    **kwargs: Any,
) -> BlockMask:  # fmt: skip
    """The mask that `flex_attention` takes as its `block_mask`."""
    return BlockMask(mask_mod, (B, H, Q_LEN, KV_LEN))


def create_mask(
    mod_fn: Positions, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """What a mask says of all positions, as booleans of (batch, head, query, key).

    >>> from tgraph.nn.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    found: Tensor = mod_fn(*_positions(sizes, device))
    return found.expand(sizes)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Positions | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attention of (batch, head, position, feature), whose scores `score_mod` changes.

    `score_mod(score, batch, head, query, key)` and the function of `block_mask` are called once,
    with tensors of positions that broadcast.

    >>> import tgraph as tg
    >>> from tgraph.nn.flex_attention import flex_attention
    >>> x = tg.ones(1, 2, 3, 4)
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - (q - kv).abs()).shape
    tgraph.Size([1, 2, 3, 4])
    """
    if enable_gqa and query.shape[1] != key.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = (repeat_interleave(each, times, dim=1) for each in (key, value))
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    at = _positions(scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *at)
    if block_mask is not None:
        scores = where(block_mask.mask_mod(*at), scores, -math.inf)
    # A row of which all is masked gives zeros.
    largest = scores.detach().amax(-1, keepdim=True)
    weights = (scores - largest.clamp(min=-3e38)).exp()
    sums = weights.sum(-1, keepdim=True)
    result = (weights / where(sums == 0, 1, sums)).to(value.dtype) @ value
    if return_aux is not None:
        lse = logsumexp(scores, -1) if return_aux.lse else None
        return result, AuxOutput(lse, largest.squeeze(-1) if return_aux.max_scores else None)
    return (result, logsumexp(scores, -1)) if return_lse else result


def _positions(sizes: Any, device: Any) -> list[Tensor]:
    """The indices along each of four axes, which broadcast."""
    ranks = enumerate(sizes)
    return [arange(size, device=device).reshape([-1] + [1] * (3 - at)) for at, size in ranks]
