"""Options of the test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tgraph")
    group.addoption(
        "--graphs", type=int, default=500, help="random graphs that hold the engines to each other"
    )
    group.addoption("--seed", type=int, default=0, help="the seed of the first random graph")
    group.addoption(
        "--update-golden", action="store_true", help="write the golden texts of kernels anew"
    )
