"""The folder in which processes of `make gpu` write, for tests that do not need a fresh one.

A test module names `pytest_plugins = ["cuda_tools.build_folder"]` and takes the fixture `build`.
Bytecode of the whole package is part of it, which takes seconds to write for each folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")
