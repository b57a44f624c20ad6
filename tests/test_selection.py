"""What `-k` leaves unread has no test that it chooses; ten commits see all rows of tables."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
import sampling
import selection


def test_names_of_tests_come_from_what_is_searched(request: pytest.FixtureRequest) -> None:
    """All words in the names of this run's tests; a file that fails belongs to `OTHER_NAMES`."""
    words = defaultdict(set)
    for item in request.session.items:
        name = item.path.relative_to(selection.TESTS).as_posix()
        if name not in selection.OTHER_NAMES:
            words[item.path].update(re.findall(r"[a-z]{3,}", item.name.lower()))
    unknown = {
        path.relative_to(selection.TESTS).as_posix(): missing
        for path, found in words.items()
        if (missing := {each for each in found if each not in selection.text_of(path)})
    }
    assert unknown == {}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("softmax", ["softmax"]),
        ("softmax and not log", ["softmax"]),
        ("Softmax or (relu and gelu)", ["softmax", "relu", "gelu"]),
        ("softmax and not (log or exp)", []),
        ("not softmax", []),
    ],
)
def test_words_of_an_expression(expression: str, words: list[str]) -> None:
    assert selection.words_of(expression) == words


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


def test_files_that_rotate_exist() -> None:
    names = [*sampling.ROTATING, *selection.OTHER_NAMES]
    assert [each for each in names if not (selection.TESTS / each).exists()] == []
