"""Cases of modules that PyTorch's own list has none of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class More(NamedTuple):
    """A module, how it is made, and what it is called with, by dtype."""

    module: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    inputs: Callable[[torch.dtype], tuple[Any, ...]]
    training: bool = True


def _floats(*shapes: tuple[int, ...]) -> Callable[[torch.dtype], tuple[Any, ...]]:
    def made(dtype: torch.dtype) -> tuple[Any, ...]:
        torch.manual_seed(2)
        return tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)

    return made


def _bag(dtype: torch.dtype) -> tuple[Any, ...]:
    return torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])


def _unpooled(pool: str) -> Callable[[torch.dtype], tuple[Any, ...]]:
    def made(dtype: torch.dtype) -> tuple[Any, ...]:
        torch.manual_seed(2)
        shape = {"1": (2, 3, 8), "2": (2, 3, 8, 6), "3": (1, 2, 4, 4, 6)}[pool]
        layer = getattr(torch.nn, f"MaxPool{pool}d")(2, return_indices=True)
        values, indices = layer(torch.randn(shape, dtype=dtype))
        return values.requires_grad_(), indices

    return made


def _classes(dtype: torch.dtype) -> tuple[Any, ...]:
    return *_floats((6, 8))(dtype), torch.tensor([0, 3, 7, 11, 2, 19])


MORE = [
    More("AdaptiveLogSoftmaxWithLoss", (8, 20, [4, 12]), {}, _classes),
    More("AlphaDropout", (0.0,), {}, _floats((4, 5))),
    More("BCEWithLogitsLoss", (), {}, _floats((4, 5), (4, 5))),
    More("ChannelShuffle", (2,), {}, _floats((2, 4, 3, 3))),
    More("CosineSimilarity", (1,), {}, _floats((4, 5), (4, 5))),
    More("Dropout", (0.0,), {}, _floats((4, 5))),
    More("Dropout", (0.5,), {}, _floats((4, 5)), False),
    More("Dropout1d", (0.0,), {}, _floats((4, 5, 6))),
    More("Dropout2d", (0.0,), {}, _floats((4, 5, 6, 6))),
    More("Dropout3d", (0.0,), {}, _floats((4, 5, 3, 3, 3))),
    More("EmbeddingBag", (10, 3), {"mode": "sum"}, _bag),
    More("EmbeddingBag", (10, 3), {"mode": "mean"}, _bag),
    More("EmbeddingBag", (10, 3), {"mode": "max"}, _bag),
    More("EmbeddingBag", (10, 3), {"mode": "max", "padding_idx": 4}, _bag),
    More("EmbeddingBag", (10, 3), {"mode": "mean", "padding_idx": -6, "max_norm": 1.0}, _bag),
    More("FeatureAlphaDropout", (0.0,), {}, _floats((4, 5, 3))),
    More("Flatten", (), {}, _floats((4, 5, 3))),
    More("Fold", ((4, 5), (2, 2)), {}, _floats((2, 12, 12))),
    More("Hardsigmoid", (), {}, _floats((4, 5))),
    More("Identity", (), {}, _floats((4, 5))),
    More("LazyBatchNorm1d", (), {}, _floats((4, 5))),
    More("LazyBatchNorm2d", (), {}, _floats((4, 5, 3, 3))),
    More("LazyBatchNorm3d", (), {}, _floats((4, 5, 3, 3, 2))),
    More("LazyInstanceNorm1d", (), {"affine": True}, _floats((4, 5, 6))),
    More("LazyInstanceNorm2d", (), {"affine": True}, _floats((4, 5, 6, 6))),
    More("LazyInstanceNorm3d", (), {"affine": True}, _floats((4, 5, 3, 3, 2))),
    More("LazyLinear", (3,), {}, _floats((4, 5))),
    More("MaxUnpool1d", (2,), {}, _unpooled("1")),
    More("MaxUnpool2d", (2,), {}, _unpooled("2")),
    More("MaxUnpool3d", (2,), {}, _unpooled("3")),
    More("PairwiseDistance", (), {}, _floats((4, 5), (4, 5))),
    More("PairwiseDistance", (1.0, 1e-3, True), {}, _floats((4, 5), (5,))),
    More("PixelShuffle", (2,), {}, _floats((2, 8, 3, 3))),
    More("PixelUnshuffle", (2,), {}, _floats((2, 2, 4, 6))),
    More("RReLU", (), {}, _floats((4, 5))),
    More("RReLU", (), {}, _floats((4, 5)), False),
    More("SyncBatchNorm", (5,), {}, _floats((4, 5, 3)), False),
    More("SyncBatchNorm", (5,), {"momentum": None}, _floats((4, 5, 3))),
    More("TransformerDecoder", (torch.nn.TransformerDecoderLayer(8, 2, 16), 2), {},
         _floats((3, 2, 8), (4, 2, 8))),
    More("TripletMarginLoss", (), {}, _floats((4, 5), (4, 5), (4, 5))),
    More("TripletMarginWithDistanceLoss", (), {}, _floats((4, 5), (4, 5), (4, 5))),
    More("Unflatten", (1, (2, 3)), {}, _floats((4, 6))),
    More("Unfold", ((2, 3),), {}, _floats((2, 3, 4, 5))),
    More("Upsample", (), {"scale_factor": 2, "mode": "nearest"}, _floats((2, 3, 4, 5))),
    More("Upsample", ((7, 3),), {"mode": "bilinear"}, _floats((2, 3, 4, 5))),
    More("Upsample", (), {"scale_factor": 1.5, "mode": "bicubic", "align_corners": True},
         _floats((2, 3, 4, 5))),
    More("Upsample", (), {"scale_factor": 2, "mode": "linear"}, _floats((2, 3, 4))),
    More("Upsample", (), {"scale_factor": 2, "mode": "trilinear"}, _floats((1, 2, 3, 4, 5))),
    More("UpsamplingBilinear2d", (), {"scale_factor": 2}, _floats((2, 3, 4, 5))),
    More("UpsamplingNearest2d", (), {"scale_factor": 2}, _floats((2, 3, 4, 5))),
]  # fmt: skip
