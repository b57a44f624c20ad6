"""A CUDA device without a GPU: the stand-ins for CuPy and for cublasLt together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tgraph.runtime.cuda import cublas_lt

from tgraph.core.plan_table import PlanTable

from . import fake_cublas_lt, fake_cupy
from .fake_cupy.machine import Work, machine


def streamed_library() -> Any:
    """The stand-in for cublasLt, whose products are parts of streams.

    Where a stream captures, they run when the graph is launched.
    """
    library = fake_cublas_lt.library()
    at_once = library.matmul
    given: list[int] = []

    def matmul(*args: Any) -> int:
        kept = library.as_it_is(args)
        asking = [True]

        def run() -> None:
            status = at_once(*kept)
            if asking:
                given.append(status)
            elif status:
                raise RuntimeError(f"cublasLtMatmul failed with {status}, and nobody asks any more")

        machine.enqueue(args[-1], Work(run, (), "cublasLtMatmul"))
        asking.clear()
        return given.pop() if given else 0

    library.matmul = matmul
    return library


@contextmanager
def installed(**options: Any) -> Iterator[Any]:
    """Two CUDA devices that are the host; gives the machine that tells what ran on them.

    `options` are those of `fake_cupy.install`.
    """
    library = streamed_library()
    with fake_cupy.install(**options), mock.patch.object(cublas_lt, "_loaded", library):
        try:
            yield machine
        finally:
            PlanTable.forget_all()
