"""no_grad, enable_grad, set_grad_enabled, inference_mode: as blocks, decorators, in threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import tgraph as tg


def tracked() -> bool:
    return (tg.ones(1, requires_grad=True) * 2).requires_grad


def test_blocks_nest_and_restore() -> None:
    with tg.no_grad():
        assert not tracked()
        with tg.enable_grad():
            assert tracked()
        assert not tracked()
    assert tracked()


def test_restored_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), tg.no_grad():
        raise ValueError("inside")
    assert tg.is_grad_enabled()


def test_decorators() -> None:
    @tg.no_grad()
    def with_parentheses() -> bool:
        return tracked()

    @tg.no_grad
    def without() -> bool:
        """Its own words."""
        return tracked()

    assert not with_parentheses() and not without()
    assert without.__doc__ == "Its own words."
    assert tracked()


def test_one_object_may_be_entered_again() -> None:
    mode = tg.no_grad()
    with mode, mode:
        assert not tracked()
    assert tracked()


def test_set_grad_enabled() -> None:
    tg.set_grad_enabled(False)
    try:
        assert not tracked()
    finally:
        tg.set_grad_enabled(True)
    with tg.set_grad_enabled(False):
        assert not tracked()
    assert tracked()


def test_inference_mode() -> None:
    with tg.inference_mode():
        assert not tracked()
    with tg.inference_mode(False):
        assert tracked()


def test_each_thread_has_its_own_mode() -> None:
    seen: list[Any] = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tracked()))
        thread.start()
        thread.join()
    assert seen == [True]
