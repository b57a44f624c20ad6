"""What a worker process of a `DataLoader` does."""

from __future__ import annotations

import signal
import traceback
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ...ops.generator import manual_seed
from ...runtime.parallel import set_num_threads
from ...runtime.records import NamedTuple
from .fetch import Exhausted, Fetcher
from .transport import receive, send

BATCH, END, ERROR = "batch", "end", "error"


class WorkerInfo(NamedTuple):
    """What `get_worker_info` tells in a worker: its number, how many there are, its seed, and its
    copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a `DataLoader`: `id`, `num_workers`, `seed`, `dataset`; else None."""
    return _info


class Job(NamedTuple):
    """What a worker is told at its beginning."""

    number: int
    workers: int
    seed: int
    dataset: Any
    is_batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    prepare: Callable[[int], Any] | None


class Failure(NamedTuple):
    """An exception that a worker met."""

    kind: type[BaseException]
    where: str
    traceback: str

    def exception(self) -> BaseException:
        """One of the same type, or a RuntimeError, whose text has the worker's traceback."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.traceback}"
        if self.kind is KeyError:
            return KeyError(_AsItIs(text))
        try:
            return self.kind(text)
        except Exception:  # its constructor wants something else
            return RuntimeError(text)


class _AsItIs(str):
    """KeyError shows the repr of its argument; this one has line ends."""

    def __repr__(self) -> str:
        return str(self)


PARENT_ENDS: weakref.WeakSet[Connection] = weakref.WeakSet()
"""The connections to all workers. A forked process has copies: while they are open, a worker cannot
see that its parent is gone."""


def run(connection: Connection, job: Job) -> None:
    """Fetch what is asked for, until the other side closes the connection or is gone."""
    import random  # takes milliseconds

    global _info
    for each in list(PARENT_ENDS):
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends workers
    set_num_threads(1)
    seed = job.seed + job.number
    random.seed(seed)
    np.random.seed(np.random.SeedSequence([job.seed, job.number]).generate_state(4))
    manual_seed(seed)
    _info = WorkerInfo(job.number, job.workers, seed, job.dataset)
    where = f"in DataLoader worker process {job.number}"
    fetcher, epoch, failed = None, None, None
    try:
        if job.prepare is not None:
            job.prepare(job.number)
    except Exception as error:
        failed = _failure(error, where)
    while True:
        try:
            message = receive(connection)
        except (EOFError, OSError):
            return
        asked, number, numbers = message
        try:
            if failed is None and asked != epoch:
                fetcher = Fetcher(job.dataset, job.is_batched, job.collate, job.drop_last)
                epoch = asked
            if failed is not None:
                answer = ERROR, failed
            else:
                assert fetcher is not None
                answer = BATCH, fetcher(numbers)
        except Exhausted:
            answer = END, None
        except Exception as error:
            answer = ERROR, _failure(error, where)
        try:
            _answer(connection, (asked, number, *answer), where)
        except (BrokenPipeError, ConnectionError):
            return


def _answer(connection: Connection, answer: tuple[Any, ...], where: str) -> None:
    """Where it cannot be pickled, that is the answer."""
    try:
        send(connection, answer)
    except (BrokenPipeError, ConnectionError):
        raise
    except Exception as error:
        failure = _failure(error, where)._replace(kind=RuntimeError)
        send(connection, (*answer[:2], ERROR, failure))


def _failure(error: BaseException, where: str) -> Failure:
    return Failure(type(error), where, "".join(traceback.format_exception(error)))
