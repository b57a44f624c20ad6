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
