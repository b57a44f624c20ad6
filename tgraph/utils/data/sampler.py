"""The order in which examples are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ...ops.from_data import as_tensor
from ...ops.generator import Generator, default_generator
from ...ops.random import multinomial, randint, randperm
from ...runtime.dtypes import float64

T = TypeVar("T", covariant=True)


def drawn_seed(generator: Generator | None) -> int:
    """A number that decides other orders: one draw of `generator`, or of the default one."""
    return int(randint(0, 2**31 - 1, (), generator=generator or default_generator).item())


class Sampler(Generic[T]):
    """Numbers of examples: subclasses define `__iter__` and, where it is known, `__len__`."""

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All numbers in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Numbers in an order drawn anew each time, or with `replacement`.

    `num_samples` is how many are drawn, as many as there are unless given.

    >>> import tgraph as tg
    >>> sorted(tg.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got {replacement=}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        count = self.num_samples
        if not isinstance(count, int) or count < 0:
            raise ValueError(f"num_samples should be a non-negative integer, got {count}")

    @property
    def num_samples(self) -> int:
        """How many numbers are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator, size = self.generator, len(self.data_source)
        if generator is None:
            generator = Generator().manual_seed(drawn_seed(None))
        left = self.num_samples
        while left > 0:
            if self.replacement:
                drawn = randint(0, size, (min(left, 2**16),), generator=generator)
            else:
                drawn = randperm(size, generator=generator)[:left]
            if not len(drawn):
                return
            left -= len(drawn)
            yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Each of `indices` once, in an order drawn anew each time."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = randperm(len(self.indices), generator=self.generator or default_generator)
        for at in order.tolist():
            yield self.indices[at]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` numbers drawn by weights, which need not add up to one."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        if type(num_samples) is not int or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got {num_samples=}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got {replacement=}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {self.weights.shape}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement,
            generator=self.generator or default_generator,
        )  # fmt: skip
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` numbers of another sampler; the last may have fewer, or is left out.

    >>> import tgraph as tg
    >>> data = tg.utils.data
    >>> list(data.BatchSampler(data.SequentialSampler(range(5)), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if type(batch_size) is not int or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got {batch_size=}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got {drop_last=}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + bool(rest and not self.drop_last)
