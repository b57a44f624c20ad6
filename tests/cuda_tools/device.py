"""A CUDA device for tests: the machine's own, or the stand-ins for it where there is none.

A test module names `pytest_plugins = ["cuda_tools.device"]` and takes the fixture `cuda`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tgraph.runtime.cuda import backend

import tgraph as tg

from . import fake_device, shim


@pytest.fixture
def cuda() -> Iterator[Any]:
    """The device "cuda:0". The stand-in works as late as CUDA allows."""
    if backend.why_unavailable() is None:
        yield tg.device("cuda", 0)
        return
    missing = shim.available()
    if missing is not None:
        pytest.skip(missing)
    with fake_device.installed(lazy=True):
        yield tg.device("cuda", 0)


@pytest.fixture
def second_cuda(cuda: Any) -> Any:
    """The device "cuda:1", which not every machine has."""
    if tg.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    return tg.device("cuda", 1)
