"""Python versions that tgraph does not know are told, rather than traced wrongly."""

import sys

import pytest

import tgraph as tg
from tgraph.tracing.recording import instrument


@pytest.fixture
def check():
    instrument.check_interpreter.cache_clear()
    yield instrument.check_interpreter
    instrument.check_interpreter.cache_clear()


def test_this_interpreter_is_known(check):
    assert sys.version_info[:2] <= instrument.KNOWN
    check()


def test_instructions_that_are_not_found_are_an_error(monkeypatch, check):
    monkeypatch.setattr(instrument, "KNOWN", (3, 10))
    assert tg.compile(lambda x: x + 1)(tg.ones(1)).item() == 2
    check.cache_clear()
    monkeypatch.setattr(instrument, "_LOOKED_AT", {})
    with pytest.raises(RuntimeError, match="does not know the instructions of Python 3"):
        tg.compile(lambda x: x + 2)(tg.ones(1))
