"""The worker processes of a `DataLoader`, seen from the process that reads the batches."""

from __future__ import annotations

import multiprocessing
import os
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from .transport import receive, send
from .worker import PARENT_ENDS, Job, run

_PATIENCE = 5.0
"""Seconds in which a worker that is told to end may finish what it does."""


class Workers:
    """As many processes as there are jobs. They end with this object, however it goes."""

    def __init__(self, jobs: Sequence[Job], context: Any) -> None:
        context = multiprocessing.get_context(context) if _is_name(context) else context
        self.connections: list[Connection] = []
        self.processes: list[BaseProcess] = []
        self._end = weakref.finalize(self, _end, os.getpid(), self.processes, self.connections)
        for job in jobs:
            own, its = context.Pipe(duplex=True)
            PARENT_ENDS.add(own)
            self.connections.append(own)
            process = context.Process(
                target=run, args=(its, job), daemon=True, name=f"tgraph-data-{job.number}"
            )
            process.start()
            its.close()
            self.processes.append(process)

    def end(self) -> None:
        """End all processes."""
        self._end()

    def ask(self, worker: int, message: Any) -> None:
        """Send a message to a worker."""
        try:
            send(self.connections[worker], message)
        except (BrokenPipeError, ConnectionError) as error:
            raise self._gone([worker]) from error

    def answers(self, timeout: float) -> list[tuple[int, Any]]:
        """What has arrived, by worker; waits until something has.

        RuntimeError where a worker is gone, or nothing arrived for `timeout` seconds (0: no limit).
        """
        ready = wait([*self.connections], timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        found, gone = [], []
        for worker, connection in enumerate(self.connections):
            if connection in ready:
                try:
                    found.append((worker, receive(connection)))
                except (EOFError, OSError):
                    gone.append(worker)
        if gone and not found:
            raise self._gone(gone)
        return found

    def _gone(self, workers: Sequence[int]) -> RuntimeError:
        for worker in workers:
            self.processes[worker].join(_PATIENCE)
        told = ", ".join(
            f"{self.processes[worker].pid} (exit code {self.processes[worker].exitcode})"
            for worker in workers
        )
        return RuntimeError(f"DataLoader worker (pid(s) {told}) exited unexpectedly")


def _is_name(context: Any) -> bool:
    return context is None or isinstance(context, str)


def _end(owner: int, processes: list[BaseProcess], connections: list[Connection]) -> None:
    """A closed connection tells a worker to end, also where it waits for somebody to read."""
    if os.getpid() != owner:  # a forked process has a copy of all this
        return
    for connection in connections:
        connection.close()
    for process in processes:
        process.join(_PATIENCE)
        if process.is_alive():
            process.terminate()
            process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
