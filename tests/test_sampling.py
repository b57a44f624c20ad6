"""Tables that rotate come whole in ten commits."""

from __future__ import annotations

from pathlib import Path

import pytest
import sampling


def test_ten_commits_see_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "whole", False)
    for parts in range(1, sampling.MOST_PARTS + 1):
        for count in (0, 1, 7, 100):
            seen: set[int] = set()
            for turn in range(5, 5 + sampling.MOST_PARTS):
                monkeypatch.setattr(sampling, "TURN", turn)
                seen.update(sampling.rotating(range(count), parts))
            assert seen == set(range(count))
    with pytest.raises(ValueError, match="expected 1 to 10 parts, got 11"):
        sampling.rotating([], 11)


def test_functions_that_rotate_exist() -> None:
    tests = Path(__file__).parent
    for name in sampling.listed():
        path, function = name.split("::")[0], name.split("::")[-1]
        assert f"def {function}(" in (tests / path).read_text(), name


class Item:
    """What `left_out` asks of a test."""

    def __init__(self, nodeid: str, rows: list[int] | None = None, is_slow: bool = False) -> None:
        self.nodeid, self.is_slow = nodeid, is_slow
        self.marks = [] if rows is None else [pytest.mark.parametrize("row", rows).mark]

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return self.marks

    def get_closest_marker(self, name: str) -> bool:
        return self.is_slow


def test_ten_commits_run_all_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "whole", False)
    monkeypatch.setattr(sampling, "listed", lambda: {"a.py::test_rows": 7, "a.py::test_one": 10})
    part = sampling.Part(range(3))
    items = [
        *(Item(f"tests/a.py::test_rows[{row}]", list(range(20))) for row in range(20)),
        *(Item(f"tests/a.py::test_part[{row}]", part) for row in part),
        *(Item(f"tests/a.py::test_slow[{row}]", list(range(25)), True) for row in range(25)),
        Item("tests/a.py::test_one"), Item("tests/a.py::test_other"),
    ]  # fmt: skip
    always, seen = set(items), set()
    for turn in range(3, 3 + sampling.MOST_PARTS):
        monkeypatch.setattr(sampling, "TURN", turn)
        ran = set(items) - sampling.left_out(items)  # type: ignore[arg-type, type-var]
        always &= ran
        seen |= ran
        assert len(ran) < len(items) / 2
    assert seen == set(items)
    assert {each.nodeid for each in always} == {
        *(f"tests/a.py::test_part[{row}]" for row in part), "tests/a.py::test_other",
    }  # fmt: skip
