"""A plugin of pytest for the copy: writes which tests fail, and checks where `tgraph` comes from.

It does not import tgraph before pytest has loaded the tests' own `conftest.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

WRONG_TREE = 97
"""The exit code where `tgraph` is not imported from the copy."""


def _write(report: Any) -> None:
    if report.failed:
        with open(os.environ["PLANTED_FAULTS_REPORT"], "a") as file:
            print(report.nodeid, file=file)


def pytest_collectreport(report: Any) -> None:
    _write(report)


def pytest_runtest_logreport(report: Any) -> None:
    _write(report)


def pytest_collection_finish(session: pytest.Session) -> None:
    for name in ("tgraph", "tgraph.compiler", "tgraph.runtime"):
        module = sys.modules.get(name)
        if module is not None and not Path(module.__file__ or "").is_relative_to(Path.cwd()):
            pytest.exit(f"{name} is imported from {module.__file__}", returncode=WRONG_TREE)
