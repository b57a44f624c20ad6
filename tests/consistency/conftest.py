"""Checks of tables, pages and imports against the code: they run first, and share parsed files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools import parsed


@pytest.fixture(autouse=True, scope="package")
def forget_trees() -> Iterator[None]:
    yield
    parsed.forget()
