"""Collections of examples, found by number or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...core.tensor import Tensor
from ...ops.generator import Generator, default_generator
from ...ops.random import randperm

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Examples that are found by number: subclasses define `__getitem__` and mostly `__len__`.

    `__getitems__`, where a subclass has it, is given the numbers of a whole batch.

    >>> import tgraph as tg
    >>> class Squares(tg.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> [batch.tolist() for batch in tg.utils.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Examples one after the other: subclasses define `__iter__`.

    With several workers each has a copy that gives everything, unless `__iter__` asks
    `get_worker_info()` for its share.
    """

    def __add__(self, other: Dataset[T]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors that have as many of them.

    >>> import tgraph as tg
    >>> data = tg.utils.data.TensorDataset(tg.arange(3), tg.arange(3) * 10)
    >>> data[1], len(data)
    ((tensor(1), tensor(10)), 3)
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(each.shape[0] != tensors[0].shape[0] for each in tensors):
            sizes = [each.shape[0] for each in tensors]
            raise AssertionError(f"Size mismatch between tensors: {sizes} rows")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Examples of several datasets side by side: tuples, or dictionaries of those named.

    >>> import tgraph as tg
    >>> tg.utils.data.StackDataset(text=["a", "b"], label=[1, 0])[0]
    {'text': 'a', 'label': 1}
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset takes datasets either by position or by name, got "
                f"{len(args)} and {len(kwargs)}"
            )
        self.datasets = args or kwargs
        sizes = [len(each) for each in self._all()]
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: {sizes}")

    def _all(self) -> list[Any]:
        return list(self.datasets.values() if type(self.datasets) is dict else self.datasets)

    def _beside(self, parts: Sequence[Any]) -> Any:
        if type(self.datasets) is dict:
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._beside([each[index] for each in self._all()])

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        columns = [examples(each, indices) for each in self._all()]
        return [self._beside(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return len(self._all()[0])


def examples(dataset: Any, indices: Sequence[Any]) -> Sequence[Any]:
    """Examples by their numbers, at once where the dataset can."""
    if callable(getattr(dataset, "__getitems__", None)):
        found: Sequence[Any] = dataset.__getitems__(indices)
        if len(found) != len(indices):
            raise ValueError(
                f"{type(dataset).__name__}.__getitems__ gave {len(found)} examples for "
                f"{len(indices)} numbers"
            )
        return found
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[T]):
    """Datasets one behind the other, found by number.

    >>> import tgraph as tg
    >>> both = tg.utils.data.ConcatDataset([[1, 2], [3]])
    >>> both[2], both[-3], len(both)
    (3, 1, 3)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(each) for each in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        at = index + len(self) if index < 0 else index
        if at < 0:
            raise ValueError(f"absolute value of index {index} exceeds {len(self)} examples")
        number = bisect.bisect_right(self.cumulative_sizes, at)
        if number == len(self.datasets):
            raise IndexError(f"index {index} is out of range for {len(self)} examples")
        before = self.cumulative_sizes[number - 1] if number else 0
        found: T = self.datasets[number][at - before]
        return found


class ChainDataset(IterableDataset[T]):
    """Iterable datasets one behind the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for each in self.datasets:
            if not isinstance(each, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class Subset(Dataset[T]):
    """The examples of a dataset at `indices`, in their order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]  # type: ignore[no-any-return]
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        return examples(self.dataset, [self.indices[each] for each in indices])

    def __len__(self) -> int:
        return len(self.indices)


def batch_of_rows(dataset: Any, indices: Sequence[Any]) -> list[Tensor] | None:
    """The rows of tensors at `indices`, read at once; None where examples are something else.

    A class of the user's may give other examples, whatever it is derived from.
    """
    while type(dataset) is Subset:
        dataset, indices = dataset.dataset, [dataset.indices[each] for each in indices]
    if type(dataset) is not TensorDataset:
        return None
    return [each[list(indices)] for each in dataset.tensors]


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator = default_generator
) -> list[Subset[Any]]:
    """Subsets without common examples, drawn by `generator`, of these sizes or shares.

    >>> import tgraph as tg
    >>> parts = tg.utils.data.random_split(range(10), [0.7, 0.3])
    >>> [len(part) for part in parts]
    [7, 3]
    """
    count = len(dataset)
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        sizes = _sizes_of_shares(sizes, count)
    if sum(sizes) != count:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"({sum(sizes)} and {count})"
        )
    order = randperm(int(count), generator=generator).tolist()
    ends = itertools.accumulate(map(int, sizes))
    return [Subset(dataset, order[end - int(size) : end]) for end, size in zip(ends, sizes)]


def _sizes_of_shares(shares: Sequence[float], count: int) -> list[float]:
    """What rounding down leaves goes to the first parts."""
    for number, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {number} is not between 0 and 1")
    sizes = [math.floor(count * share) for share in shares]
    for at in range(count - sum(sizes)):
        sizes[at % len(sizes)] += 1
    for number, size in enumerate(sizes):
        if size == 0:
            warnings.warn(f"Length of split at index {number} is 0.", stacklevel=3)
    return [*sizes]
