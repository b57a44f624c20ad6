"""Rows again at other sizes: odd ones, small ones, and larger than the caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .arrays import workloads as arrays
from .networks import workloads as networks
from .workload import Random, Workload, normal

# Of a row, how its other sizes are called, and the sizes that its data is made of.
SIZES = [
    ("softmax", "odd", (1001, 777)),
    ("softmax", "small", (32, 50)),
    ("layer_norm", "odd", (1001, 777)),
    ("layer_norm", "small", (32, 50)),
    ("cross_entropy", "small", (64, 100)),
    ("column_stats_square", "odd", (777, 777)),
    ("transposed", "odd", (1001, 777)),
    ("pairwise", "odd", (777,)),
    ("stencil", "odd", (101, 77)),
    ("stencil", "large", (2048, 2048)),
    ("argmax", "odd", (1001, 777)),
    ("topk", "odd", (101, 777)),
    ("sort", "small", (100, 77)),
    ("cumsum", "odd", (1001, 777)),
    ("box_overlaps", "odd", (333, 777)),
    ("masked_softmax", "odd", (1001, 777)),
    ("nearest", "odd", (333, 777)),
    ("attention", "odd", (2, 3, 333, 40)),
    ("attention_train", "odd", (2, 3, 333, 40)),
    ("depthwise", "odd", (3, 24, 31)),
    ("lstm", "small", (50, 1, 32, 64)),
]


def rows(known: Mapping[str, Workload], makers: Mapping[str, Any]) -> list[Workload]:
    """The rows, from those `known` at their usual sizes; `makers` make data from sizes."""
    every = {**MAKERS, **makers}
    return [_row(known[name], kind, sizes, every[name]) for name, kind, sizes in SIZES]


def _row(usual: Workload, kind: str, sizes: tuple[int, ...], make: Callable[..., Any]) -> Workload:
    return replace(
        usual,
        name=f"{usual.name}_{kind}",
        title=f"as `{usual.name}`, {'×'.join(map(str, sizes))}",
        make=lambda random: make(random, *sizes),
        least_bytes=0,
        function=usual.implementation,
    )


def _shifted(random: Random, *shape: int) -> dict[str, Any]:
    return {"x": 2 + 3 * normal(random, *shape)}


MAKERS: dict[str, Any] = {
    "softmax": arrays.matrix,
    "column_stats_square": _shifted,
    "transposed": arrays.two_matrices,
    "stencil": arrays.field,
    "argmax": arrays.matrix,
    "topk": arrays.matrix,
    "sort": arrays.matrix,
    "cumsum": arrays.matrix,
    "box_overlaps": arrays.boxes,
    "masked_softmax": arrays.masked,
    "nearest": arrays.points,
    "attention": networks.heads,
    "attention_train": networks.attended,
    "depthwise": networks.separable,
    "lstm": networks.sequences,
}
