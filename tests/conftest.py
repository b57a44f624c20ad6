"""Options of the test run, and what holds in all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from tgraph.compiler import pipeline
from tgraph.compiler.ir import Graph
from tgraph.runtime import own_code

VERIFIED_NODES = 20_000
"""Larger graphs are not verified: those tests are about time, and every type is inferred anew."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tgraph")
    group.addoption(
        "--graphs", type=int, default=200, help="random graphs that hold the engines to each other"
    )
    group.addoption("--programs", type=int, default=100, help="random programs that write in place")
    group.addoption(
        "--seed", type=int, default=0, help="the seed of the first random graph or program"
    )
    group.addoption("--part", default="1/1", help="2/3: the second third of the tests, by chance")
    group.addoption(
        "--update-golden", action="store_true", help="write the golden texts of kernels anew"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what `--part` does not choose; by a hash, which takes no dtype or function whole."""
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = [each for each in items if crc32(each.nodeid.encode()) % parts == part - 1]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
        items[:] = chosen


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: tests that collect garbage need not walk it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def what_stays_is_not_walked_again() -> Iterator[None]:
    """Caches and reports grow with every file; who collects garbage later need not walk them."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def without_stored_plans() -> Iterator[None]:
    """What a test compiles is compiled, by a compiler that a test may have changed."""
    own_code.enabled = False
    yield
    own_code.enabled = True


@pytest.fixture(autouse=True, scope="session")
def verify_between_passes() -> Iterator[Any]:
    """Whatever a test compiles is verified before the passes and behind each of them.

    The fixture's value is `optimize` as it is without that.
    """
    optimize = pipeline.optimize

    def verified(graph: Graph, after: Any = None, passes: Any = None) -> Graph:
        def look(name: str, between: Graph) -> None:
            if len(between.nodes) < VERIFIED_NODES:
                between.verify()
            if after is not None:
                after(name, between)

        if len(graph.nodes) < VERIFIED_NODES:
            graph.verify()
        return optimize(graph, look, passes)

    pipeline.optimize = verified
    yield optimize
    pipeline.optimize = optimize


@pytest.fixture
def python_handler() -> Iterator[None]:
    """Python's handler of Ctrl-C, which it does not install where a shell told it to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
