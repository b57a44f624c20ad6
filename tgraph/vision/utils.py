"""Pictures of batches of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..autograd import no_grad
from ..core.tensor import Tensor
from ..ops.concatenation import cat, stack
from .pillow import image_module

__all__ = ["make_grid", "save_image"]


@no_grad()
def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images (N, C, H, W), or a list of them, `nrow` in a row, with `padding` between.

    With `normalize` their values are brought from `value_range`, or from their smallest and largest
    one (of each image, with `scale_each`), to [0, 1].

    >>> import tgraph as tg
    >>> make_grid(tg.ones(5, 1, 8, 8), nrow=3).shape
    tgraph.Size([3, 22, 32])
    """
    images = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    images = images[(None,) * (4 - images.ndim)].detach()
    if images.shape[1] == 1:
        images = cat([images] * 3, 1)
    if normalize:
        parts = [images[at : at + 1] for at in range(len(images))] if scale_each else [images]
        images = cat([_normalized(part, value_range) for part in parts])
    if len(images) == 1:
        return images[0]
    count, channels, rows, columns = images.shape
    across = min(nrow, count)
    down = math.ceil(count / across)
    height, width = rows + padding, columns + padding
    grid = images.new_full((channels, height * down + padding, width * across + padding), pad_value)
    for at in range(count):
        top, left = at // across * height + padding, at % across * width + padding
        grid[:, top : top + rows, left : left + columns] = images[at]
    return grid


def _normalized(images: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    low, high = value_range or (images.min().item(), images.max().item())
    return (images.clamp(low, high) - low) / max(high - low, 1e-5)


@no_grad()
def save_image(
    tensor: Tensor | Sequence[Tensor], fp: Any, format: str | None = None, **options: Any
) -> None:
    """Write images with values in [0, 1] to a file, as `make_grid` with `options` arranges them."""
    grid = make_grid(tensor, **options)
    array = grid.mul(255).add(0.5).clamp(0, 255).permute(1, 2, 0).cpu().numpy().astype("uint8")
    image_module().fromarray(array).save(fp, format=format)
