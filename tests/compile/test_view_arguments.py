"""Arguments of compiled functions that are views: where they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg

X = tg.arange(12.0)


def as_eager(function: Callable[[Any], Any], *arguments: tg.Tensor) -> Any:
    """What a compiled function gives for each of them, which is what it gives eagerly."""
    compiled = tg.compile(function)
    for each in arguments:
        found, expected = compiled(each), function(each)
        if isinstance(expected, tg.Tensor):
            found, expected = found.tolist(), expected.tolist()
        assert found == expected
    return compiled


def test_the_offset_is_that_of_the_call() -> None:
    compiled = as_eager(lambda x: x.storage_offset(), X[4:8], X[2:6], X[4:8], X[:4].clone())
    assert [each.reason for each in compiled.compiles[1:]] == [
        "`x` lies elsewhere in memory: a view, from element 4 of 48 bytes -> "
        "a view, from element 2 of 48 bytes",
        "`x` lies elsewhere in memory: a view, from element 2 of 48 bytes -> "
        "no view, from element 0 of 16 bytes",
    ]
    as_eager(lambda x: x[1:, 1].storage_offset(), X.view(3, 4)[1:], X.view(4, 3)[1:, :2].t())


def test_who_does_not_ask_has_one_plan() -> None:
    for function in (lambda x: x * 2, lambda x: x[1:].as_strided((2,), (2,))):
        compiled = as_eager(function, X[4:8], X[2:6], X[:4].clone())
        assert len(compiled.compiles) == 1


def test_whether_it_is_a_view() -> None:
    as_eager(lambda x: x._is_view(), X[1:], X, X[1:], X[1:].detach())
    as_eager(lambda x: x._base is None, X, X[1:].detach())
    with pytest.raises(tg.tracing.TraceError, match=r"`x._base` is asked for at .*test_view_arg"):
        tg.compile(lambda x: x._base is None)(X[1:])


def test_as_strided_counts_from_the_memory() -> None:
    as_eager(lambda x: x.as_strided((2, 2), (1, 3), 5), X[4:11], X[3:11], X[3:], X.clone())
    as_eager(lambda x: x[2:].as_strided((2,), (2,)), X[4:11], X[3:10])
    as_eager(lambda x: tg.as_strided_scatter(x, tg.ones(2), (2,), (1,), 6), X[4:11], X[3:10])

    def zeroed(x: tg.Tensor) -> None:
        x.as_strided((2,), (1,), 5).zero_()

    expected = [0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    for function in (zeroed, tg.compile(zeroed)):
        base = X.clone()
        function(base[4:])
        assert base.tolist() == expected
    gradient = tg.func.grad(lambda x: (x.as_strided((2,), (1,), 5) * tg.tensor([1.0, 2.0])).sum())
    as_eager(gradient, X[4:8], X[3:7])


def test_memory_beside_the_argument_is_refused() -> None:
    for size, offset in ((2, 0), (3, 6)):
        x = X[4:8]
        assert x.as_strided((size,), (1,), offset).shape == (size,)
        with pytest.raises(RuntimeError, match="Pass that tensor instead of the view"):
            tg.compile(lambda x, n=size, at=offset: x.as_strided((n,), (1,), at))(x)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 48"):
        tg.compile(lambda x: x.as_strided((3,), (1,), 10))(X[4:])
