"""From the numbers of examples to a batch of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .collate import default_collate
from .dataset import IterableDataset, batch_of_rows, examples


class Exhausted(Exception):
    """An iterable dataset has no more examples."""


class Fetcher:
    """Gives batches of a dataset, or single examples unless `is_batched`."""

    def __init__(
        self, dataset: Any, is_batched: bool, collate: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset, self.is_batched = dataset, is_batched
        self.collate, self.drop_last = collate, drop_last
        self._iterator = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def __call__(self, numbers: Any) -> Any:
        """A batch of these numbers, or of as many examples as come next. Exhausted at the end."""
        if self._iterator is not None:
            return self._next(numbers)
        if not self.is_batched:
            return self.collate(self.dataset[numbers])
        rows = batch_of_rows(self.dataset, numbers) if self.collate is default_collate else None
        return self.collate(examples(self.dataset, numbers)) if rows is None else rows

    def _next(self, numbers: Any) -> Any:
        assert self._iterator is not None
        wanted = len(numbers) if self.is_batched else 1
        found = list(itertools.islice(self._iterator, wanted))
        if not found or (self.drop_last and len(found) < wanted):
            raise Exhausted
        return self.collate(found if self.is_batched else found[0])
