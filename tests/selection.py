"""Which test files `-k` needs: those that have one of its words, in their text or in a table's.

Importing all files takes most of the time until a few tests begin. The names of tests come from
the text of a file, from modules beside it that it imports, and from its path; what takes names
from elsewhere stands in `OTHER_NAMES`. `tests/test_selection.py` holds this to all names there are.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).parent

OTHER_NAMES = (
    "benchmarks/test_new_sizes.py",
    "benchmarks/test_number_types.py",
    "draw/test_documentation.py",
    "test_operations_page.py",
)
"""Files that name tests after what they find in the package or in other files."""

_IMPORTED = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)


def words_of(expression: str) -> list[str]:
    """The words of `-k` of which a test must have one; empty where it may have none."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    found = []
    for before, token in zip(["", *tokens], tokens):
        if before == "not" and token == "(":
            return []
        if token not in ("and", "or", "not", "(", ")") and before != "not":
            found.append(token.lower())
    return found


def is_needed(path: Path, expression: str) -> bool:
    """Whether the file at `path` may have tests that `-k` chooses."""
    words = words_of(expression)
    name = path.relative_to(TESTS).as_posix()
    if not words or name in OTHER_NAMES:
        return True
    text = text_of(path)
    return any(word in text for word in words)


@cache
def text_of(path: Path) -> str:
    """All that a file's tests may be named after, in small letters."""
    seen: dict[Path, str] = {}
    pending = [path]
    while pending:
        module = pending.pop()
        if module not in seen:
            seen[module] = module.read_text().lower()
            pending += _imported(module)
    return "\n".join(["tests/" + path.relative_to(TESTS).as_posix(), *seen.values()]).lower()


@cache
def _imported(module: Path) -> list[Path]:
    """The modules of tests that one imports."""
    names = [a or b for a, b in _IMPORTED.findall(module.read_text())]
    places = [TESTS, module.parent]
    possible = [
        place / end
        for name in names
        for place in places
        for end in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py")
    ]
    return [each for each in possible if each.exists()]


def choose_rows(metafunc: pytest.Metafunc, expression: str) -> None:
    """Make tests of those rows alone that `-k` may choose, where only a row's name may have a word.

    The first row stays where none is chosen: `-k` leaves it.
    """
    words = words_of(expression)
    item = metafunc.definition
    marks = list(item.iter_markers("parametrize"))
    name = f"{item.nodeid} {' '.join(mark.name for mark in item.iter_markers())}".lower()
    if not words or len(marks) != 1 or any(word in name for word in words):
        return
    make = metafunc.parametrize

    def parametrize(names: Any, values: Any, *args: Any, ids: Any = None, **options: Any) -> None:
        values = list(values)
        known = _row_names(values, ids)
        if known is not None:
            options.pop("_param_mark", None)  # with the names of all rows
            kept = [at for at, row in enumerate(known) if any(word in row for word in words)] or [0]
            values = [values[at] for at in kept] if values else values
            ids = [ids[at] for at in kept] if isinstance(ids, (list, tuple)) and values else ids
        make(names, values, *args, ids=ids, **options)

    metafunc.parametrize = parametrize  # type: ignore[method-assign]


def _row_names(values: list[Any], ids: Any) -> list[str] | None:
    """What rows are called, in small letters; None where pytest makes up their names."""
    if isinstance(ids, (list, tuple)):
        return [str(each).lower() for each in ids]
    if callable(ids):
        named = [None if isinstance(each, tuple) else ids(each) for each in values]
    else:
        named = [each if isinstance(each, (str, int)) else None for each in values]
    return None if None in named else [str(each).lower() for each in named]
