"""Channels that become places, places that become channels, and channels in another order."""

from __future__ import annotations

from ..core.operands import require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from . import movement as m
from .channels_last import keeps_channels_last


@planned
@keeps_channels_last
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[*, c * r * r, h, w] as [*, c, h * r, w * r]: a square of places for each r * r channels.

    Source: Shi et al., "Real-time single image and video super-resolution using an efficient
    sub-pixel convolutional neural network" (2016).

    >>> import tgraph as tg
    >>> tg.nn.functional.pixel_shuffle(tg.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    by = upscale_factor
    if require_tensor(input, "pixel_shuffle").ndim < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.ndim} dimension(s)"
        )
    if by <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {by}")
    *outer, channels, height, width = input._type.shape
    if channels % (by * by):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {by * by}"
        )
    made = channels // (by * by)
    parts = m.reshape(input, (*outer, made, by, by, height, width))
    at = len(outer)
    moved = m.permute(parts, (*range(at), at, at + 3, at + 1, at + 4, at + 2))
    return m.reshape(moved, (*outer, made, height * by, width * by))


@planned
@keeps_channels_last
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """[*, c, h * r, w * r] as [*, c * r * r, h, w], which `pixel_shuffle` undoes."""
    by = downscale_factor
    if require_tensor(input, "pixel_unshuffle").ndim < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.ndim} dimension(s)"
        )
    if by <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {by}")
    *outer, channels, height, width = input._type.shape
    for name, size, axis in (("height", height, -2), ("width", width, -1)):
        if size % by:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({axis})={size} is not divisible by {by}"
            )
    parts = m.reshape(input, (*outer, channels, height // by, by, width // by, by))
    at = len(outer)
    moved = m.permute(parts, (*range(at), at, at + 2, at + 4, at + 1, at + 3))
    return m.reshape(moved, (*outer, channels * by * by, height // by, width // by))


@planned
@keeps_channels_last
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of [n, c, *] in another order: one of each group after the other.

    >>> import tgraph as tg
    >>> tg.nn.functional.channel_shuffle(tg.arange(4.0).reshape(1, 4, 1), 2).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    if require_tensor(input, "channel_shuffle").ndim < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    samples, channels, *spatial = input._type.shape
    if channels % groups:
        raise RuntimeError(
            "Number of channels must be divisible by groups. Got "
            f"{channels} channels and {groups} groups."
        )
    split = m.reshape(input, (samples, groups, channels // groups, *spatial))
    return m.reshape(m.transpose(split, 1, 2), (samples, channels, *spatial))


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """As `channel_shuffle`."""
    shuffled: Tensor = channel_shuffle(input, groups)
    return shuffled
