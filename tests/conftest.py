"""Options of the test run, and what holds in all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import pytest
import sampling
from tgraph.compiler import pipeline
from tgraph.compiler.ir import Graph
from tgraph.runtime import jit, own_code

from tgraph.core import plan_table

pytest_plugins = ["skips"]

# Made the quick way, objects take less time than files of them.
os.environ["TGRAPH_CACHE_DIR"] = ""

SHIPPED = ("cpu_target/", "test_special_values.py", "test_found_graphs.py", "accuracy/", "runtime/")
"""Tests of machine code, for which LLVM's passes run as they do for users."""

SHIPPED_PART = 10
"""One test of so many runs as for users, too: each of them in one of as many commits."""

PLANNED = ("test_planned.py", "test_concurrency.py", "cuda_target/", "optim/", "benchmarks/")
"""Tests of the plans that eager mode makes; in others it runs step by step."""

VERIFIED_PASSES = ("passes/", "test_random_graphs.py", "test_found_graphs.py")
"""Tests in which graphs are verified behind each pass, so that a fault names the pass."""

VERIFIED_NODES = 20_000
"""Larger graphs are not verified: those tests are about time, and every type is inferred anew."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tgraph")
    group.addoption(
        "--graphs", type=int, default=100, help="random graphs that hold the engines to each other"
    )
    group.addoption("--programs", type=int, default=100, help="random programs that write in place")
    group.addoption("--seed", type=int, help="the seed of the first random graph or program")
    group.addoption("--part", default="1/1", help="2/3: the second third of the tests, by chance")
    group.addoption(
        "--update-golden", action="store_true", help="write the golden texts of kernels anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    sampling.configure(config)
    words = config.option.keyword
    if words and not re.search(r"\bnot\b", words):
        from named import OnlyNamed  # the stand-in for pytest has not what that imports

        config.pluginmanager.register(OnlyNamed(words))
    if config.option.seed is None:
        config.option.seed = sampling.first_seed(config.option.graphs)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the rows whose turn it is not, and what `--part` does not choose.

    Parts are chosen by a hash, which takes no dtype or function whole. Checks of tables against
    the code run first: they take seconds, and most mistakes fail there.
    """
    items.sort(key=lambda each: "tests/consistency/" not in each.nodeid)
    part, parts = map(int, config.getoption("part").split("/"))
    out = sampling.left_out(items)
    for item in out:
        item.add_marker(sampling.ROTATED)
    out.update(each for each in items if crc32(each.nodeid.encode()) % parts != part - 1)
    if out:
        config.hook.pytest_deselected(items=list(out))
        items[:] = [each for each in items if each not in out]


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: nobody who collects garbage need walk it."""
    _keep_what_there_is()


def _keep_what_there_is() -> None:
    gc.collect()
    gc.freeze()


MANY_OBJECTS = 1_000_000
"""So many new objects are looked at though a file's tests are not over."""


@pytest.fixture(autouse=True, scope="module")
def without_collector() -> Iterator[None]:
    """Garbage is collected behind each file: to look for it after each compile took a fifth."""
    gc.disable()
    yield
    _keep_what_there_is()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def without_stored_plans() -> Iterator[None]:
    """What a test compiles is compiled, by a compiler that a test may have changed."""
    own_code.enabled = False
    yield
    own_code.enabled = True


@pytest.fixture(autouse=True, scope="session")
def verify_graphs() -> Iterator[Any]:
    """What a test compiles is verified behind the passes, and in `VERIFIED_PASSES` behind each.

    The fixture's value is `optimize` as it is without that.
    """
    optimize = pipeline.optimize

    def verified(graph: Graph, after: Any = None, passes: Any = None) -> Graph:
        if len(graph.nodes) >= VERIFIED_NODES:
            return optimize(graph, after, passes)
        if _state.each_pass:
            graph.verify()
        found = optimize(graph, _verifying(after) if _state.each_pass else after, passes)
        found.verify()
        return found

    pipeline.optimize = verified
    yield optimize
    pipeline.optimize = optimize


def _verifying(after: Any) -> Any:
    def look(name: str, between: Graph) -> None:
        between.verify()
        if after is not None:
            after(name, between)

    return look


class _State:
    """How the test that runs compiles."""

    each_pass = False


_state = _State()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Choose how a test compiles: as it is shipped, or the quick way."""
    if gc.get_count()[0] > MANY_OBJECTS:
        _keep_what_there_is()
    turn = crc32(item.nodeid.encode()) + sampling.TURN
    other_cpu = "TGRAPH_CPU" in os.environ  # whose code is what the run is for
    shipped = other_cpu or turn % SHIPPED_PART == 0 or _is_one_of(item, SHIPPED)
    jit.highest_level = 3 if shipped else 0
    plan_table.enabled = shipped or _is_one_of(item, PLANNED)
    _state.each_pass = _is_one_of(item, VERIFIED_PASSES)


def _is_one_of(item: pytest.Item, names: Sequence[str]) -> bool:
    name = item.nodeid.split("::")[0]
    return any(each in name for each in names)


@pytest.fixture
def python_handler() -> Iterator[None]:
    """Python's handler of Ctrl-C, which it does not install where a shell told it to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
