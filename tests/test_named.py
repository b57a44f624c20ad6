"""Files that `-k` leaves out have no tests that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import named
import pytest
from _pytest.mark.expression import Expression


def test_names_are_made_of_what_files_have(request: pytest.FixtureRequest) -> None:
    names: dict[Path, set[str]] = defaultdict(set)
    for item in request.session.items:
        names[item.path].update(re.findall(r"\w*[A-Za-z]\w*", item.name))
    missing = {
        str(path): lacking
        for path, words in names.items()
        if (lacking := [each for each in words if not _is_collected(path, each)])
    }
    assert not missing, "write the words outside of functions, or list the file in NAMED_ELSEWHERE"


def _is_collected(path: Path, word: str) -> bool:
    return word in ("and", "or", "not") or named.may_name(path, Expression.compile(word))


def test_rows_are_those_that_pytest_chooses() -> None:
    command = [sys.executable, "-m", "pytest", "tests/passes/test_simplify.py", "--collect-only"]
    found = []
    for words in ("zero", "zero and not in_no_name"):  # the second is left to pytest
        text = subprocess.check_output(
            [*command, "-k", words],
            text=True,
            cwd=named.ROOT,
            env={**os.environ, "TGRAPH_ALL_ROWS": "1"},
        )
        found.append([line for line in text.splitlines() if line.startswith("tests/")])
    assert found[0] == found[1] != []
