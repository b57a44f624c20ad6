"""Loading data in batches, in this process or in workers."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from ...core.tensor import Tensor
from ...ops.generator import Generator
from ...runtime.cuda.devices import is_available
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .fetch import Exhausted, Fetcher
from .sampler import BatchSampler, RandomSampler, SequentialSampler, drawn_seed
from .worker import BATCH, END, Job
from .workers import Workers

T = TypeVar("T", covariant=True)


class _Endless:
    """As many Nones as are asked for: an iterable dataset has no numbers."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """The examples of `dataset` in batches, in each loop anew.

    - `batch_size` examples come together, the last ones alone unless `drop_last`; with None,
      single examples come, as they are but for arrays, which become tensors.
    - `shuffle` draws another order for each loop; `sampler` gives the numbers of examples instead,
      `batch_sampler` lists of them. `generator` is what random numbers are drawn from.
    - `collate_fn` makes a batch of a list of examples: `default_collate` unless given.
    - `num_workers` processes load ahead, each `prefetch_factor` batches (2). They run one thread
      each and draw their own random numbers; `worker_init_fn(number)` runs at their beginning,
      `get_worker_info()` tells which one it is. Large batches come in shared memory, without a
      copy. `persistent_workers` stay from loop to loop. `timeout` is how many seconds to wait for
      a batch, 0 for ever. `multiprocessing_context` is "fork", "spawn", "forkserver" or a context.
      Batches come in their order, or as they are ready unless `in_order`.
    - `pin_memory` has batches in memory that CUDA devices reach by themselves.

    An exception in a worker is raised here, with the worker's traceback. Workers end with the loop,
    with Ctrl-C, and with this process, however it ends.

    >>> import tgraph as tg
    >>> data = tg.utils.data.TensorDataset(tg.arange(5), tg.arange(5) * 2)
    >>> for x, y in tg.utils.data.DataLoader(data, batch_size=3):
    ...     print(x.tolist(), y.tolist())
    [0, 1, 2] [0, 2, 4]
    [3, 4] [6, 8]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    drop_last: bool
    sampler: Any
    _is_made = False

    def __init__(
        self, dataset: Dataset[T] | Sequence[T], batch_size: int | None = 1,
        shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        elif shuffle not in (True, False, None):
            raise ValueError(f"DataLoader expected shuffle to be a bool, got {shuffle!r}")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = self._usual_sampler(bool(shuffle))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        usual = default_convert if batch_sampler is None else default_collate
        self.collate_fn = usual if collate_fn is None else collate_fn
        self._workers: _WorkersInUse | None = None
        self._is_made = True

    def _usual_sampler(self, shuffle: bool) -> Any:
        if self._is_iterable:
            return _Endless()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                 "persistent_workers")  # fmt: skip
        if self._is_made and name in fixed:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """How many batches come; TypeError where the dataset or the sampler has no length."""
        if not self._is_iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        numbers = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        if self.num_workers:
            batches = self._from_workers(numbers)
        else:
            drawn_seed(self.generator)  # as many draws as with workers
            fetcher = Fetcher(self.dataset, self._is_batched, self.collate_fn, self.drop_last)
            batches = _here(fetcher, numbers)
        if self.pin_memory and _can_pin():
            return map(_pinned, batches)
        return batches

    @property
    def _is_batched(self) -> bool:
        return self.batch_sampler is not None

    def _from_workers(self, numbers: Iterator[Any]) -> Iterator[Any]:
        seed = drawn_seed(self.generator)
        workers = self._workers
        if workers is None:
            jobs = [
                Job(number, self.num_workers, seed, self.dataset, self._is_batched,
                    self.collate_fn, self.drop_last, self.worker_init_fn)
                for number in range(self.num_workers)
            ]  # fmt: skip
            workers = _WorkersInUse(Workers(jobs, self.multiprocessing_context))
        if self.persistent_workers:
            self._workers = workers
        assert self.prefetch_factor is not None
        return _Batches(
            workers, numbers, self.prefetch_factor, self.timeout, self.in_order,
            self.persistent_workers,
        )  # fmt: skip


def _here(fetcher: Fetcher, numbers: Iterator[Any]) -> Iterator[Any]:
    for each in numbers:
        try:
            yield fetcher(each)
        except Exhausted:
            return


class _WorkersInUse:
    """Workers, and what has been asked of each in all loops so far."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.epoch = 0
        self.waiting = [0] * len(workers.processes)  # answers that each has still to give


class _Batches(Iterator[Any]):
    """One loop over batches that workers load."""

    def __init__(
        self, used: _WorkersInUse, numbers: Iterator[Any], prefetch: int, timeout: float,
        in_order: bool, persistent: bool,
    ) -> None:  # fmt: skip
        used.epoch += 1
        self._used, self._epoch, self._numbers = used, used.epoch, numbers
        self._timeout, self._in_order, self._persistent = timeout, in_order, persistent
        self._prefetch = prefetch
        self._arrived: dict[int, tuple[str, Any]] = {}
        self._asked = 0  # batches so far
        self._pending = 0  # batches that were asked for and have not been given
        self._has_numbers = True  # as far as is known
        self._next = 0  # the batch that comes next
        self._done: set[int] = set()  # workers whose iterable dataset is exhausted
        self._skipped: set[int] = set()  # batches that do not come
        self._turn = 0  # the worker that is asked next
        for _ in range(prefetch * len(used.waiting)):
            self._ask()

    def _ask(self) -> None:
        """Ask the worker whose turn it is for the next batch, if there is one."""
        count = len(self._used.waiting)
        ready = (
            worker
            for worker in ((self._turn + step) % count for step in range(count))
            if worker not in self._done and self._used.waiting[worker] < self._prefetch
        )
        worker = next(ready, None)
        if worker is None:
            return
        try:
            numbers = next(self._numbers)
        except StopIteration:
            self._has_numbers = False
            return
        self._used.workers.ask(worker, (self._epoch, self._asked, numbers))
        self._used.waiting[worker] += 1
        self._asked, self._turn = self._asked + 1, (worker + 1) % count
        self._pending += 1

    def __next__(self) -> Any:
        if self._used.epoch != self._epoch:
            raise RuntimeError(
                "this loop over a DataLoader with persistent_workers was left: a later one has "
                "the workers"
            )
        while self._pending or (self._has_numbers and any(self._used.waiting)):
            at = self._place_of_next()
            if at in self._arrived:
                kind, found = self._arrived.pop(at)
                self._next, self._pending = self._next + 1, self._pending - 1
                self._ask()
                if kind == BATCH:
                    return found
                raise found.exception()
            for worker, answer in self._used.workers.answers(self._timeout):
                self._take(worker, answer)
        if not self._persistent:
            self._used.workers.end()
        raise StopIteration

    def _place_of_next(self) -> int:
        if not self._in_order:
            return next(iter(self._arrived), -1)
        while self._next in self._skipped:
            self._skipped.remove(self._next)
            self._next += 1
        return self._next

    def _take(self, worker: int, answer: Any) -> None:
        epoch, number, kind, found = answer
        self._used.waiting[worker] -= 1
        if epoch != self._epoch:
            self._ask()  # of a loop that was left; there is room now
        elif kind == END:
            self._done.add(worker)
            self._skipped.add(number)
            self._pending -= 1
            self._ask()  # another one may have more
        else:
            self._arrived[number] = kind, found


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > "
            "0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError("prefetch_factor option should be positive")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle not in (False, None), "sampler": sampler is not None,
             "batch_sampler": batch_sampler is not None}  # fmt: skip
    for name, is_given in given.items():
        if is_given:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option: its "
                "examples have no numbers"
            )


def _can_pin() -> bool:
    if is_available():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
        "memory won't be used.",
        stacklevel=3,
    )
    return False


def _pinned(batch: Any) -> Any:
    """Tensors of a batch, and objects that have a way of their own, in pinned memory."""
    if isinstance(batch, Tensor) or callable(getattr(batch, "pin_memory", None)):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return type(batch)({key: _pinned(each) for key, each in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_pinned, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(_pinned, batch))
    return batch
