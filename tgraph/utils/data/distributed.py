"""The part of a dataset that one of several processes reads."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from ...ops.generator import Generator
from ...ops.random import randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th number, from `rank` on: parts of the same size for all processes.

    Some numbers come twice where the size does not divide, or the last are left out with
    `drop_last`. The order is drawn from `seed` and the epoch, which `set_epoch` tells, and is the
    same in all processes. Without `num_replicas` and `rank`: all numbers, as `tgraph.distributed`
    knows of one process.

    >>> import tgraph as tg
    >>> list(tg.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = True, seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        self.num_replicas = 1 if num_replicas is None else num_replicas
        self.rank = 0 if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"Invalid rank {self.rank}, rank should be in the interval "
                f"[0, {self.num_replicas - 1}]"
            )
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.epoch = 0
        extra = 0 if drop_last else self.num_replicas - 1
        self.num_samples = (len(dataset) + extra) // self.num_replicas
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order: list[Any] = list(range(size))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(size, generator=generator).tolist()
        whole = (order * -(-self.total_size // max(size, 1)))[: self.total_size]
        return iter(whole[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for another epoch: call it before each."""
        self.epoch = epoch
