"""repr and format: PyTorch's layout, taken down from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tgraph as tg
from tgraph.core import printing

NAN, INF = float("nan"), float("inf")

REPRS: list[tuple[Any, str]] = [
    (tg.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (tg.tensor([1.5, 2.0]), "tensor([1.5000, 2.0000])"),
    (tg.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (tg.tensor([12345.678, 0.001]), "tensor([1.2346e+04, 1.0000e-03])"),
    (tg.tensor([NAN, INF, -INF, 1.0]), "tensor([nan, inf, -inf, 1.])"),
    (tg.tensor([NAN, 1.5]), "tensor([   nan, 1.5000])"),
    (tg.tensor([-0.0, 1.0]), "tensor([-0., 1.])"),
    (tg.tensor(3), "tensor(3)"),
    (tg.tensor(3.25), "tensor(3.2500)"),
    (tg.tensor(True), "tensor(True)"),
    (tg.tensor([True, False]), "tensor([ True, False])"),
    (tg.tensor([1, -200, 30]), "tensor([   1, -200,   30])"),
    (tg.tensor([]), "tensor([])"),
    (tg.zeros(0, 3), "tensor([], size=(0, 3))"),
    (tg.zeros(0, dtype=tg.int64), "tensor([], dtype=tgraph.int64)"),
    (tg.tensor([1, 2], dtype=tg.int32), "tensor([1, 2], dtype=tgraph.int32)"),
    (tg.tensor([1.5], dtype=tg.bfloat16), "tensor([1.5000], dtype=tgraph.bfloat16)"),
    (tg.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    (tg.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    (tg.tensor([[1.0, 2.0], [3.0, 4.0]]), "tensor([[1., 2.],\n        [3., 4.]])"),
    (
        tg.arange(8).reshape(2, 2, 2),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    ),
    (
        tg.arange(20),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19])",
    ),
    (
        tg.arange(2000),
        "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])",
    ),
    (
        tg.zeros(1001, 2),
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n"
        "        [0., 0.],\n        [0., 0.],\n        [0., 0.]])",
    ),
]


@pytest.mark.parametrize(("value", "expected"), REPRS, ids=range(len(REPRS)))
def test_repr(value: Any, expected: str) -> None:
    assert repr(value) == expected
    assert str(value) == expected


def test_a_long_suffix_goes_to_its_own_line() -> None:
    x = tg.ones(14, requires_grad=True, dtype=tg.float64) * 1.5
    assert repr(x).endswith(", dtype=tgraph.float64,\n       grad_fn=<MulBackward0>)")


def test_format_of_a_number() -> None:
    x = tg.tensor(3.14159)
    assert f"{x:.2f}" == "3.14"
    assert f"{tg.tensor(3)}" == "3" and f"{tg.tensor(0.5, requires_grad=True) * 3}" == "1.5"
    assert f"{tg.nn.Parameter(x)}".startswith("Parameter containing:")
    assert f"{tg.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(tg.ones(2), ".2f")


@pytest.fixture
def options() -> Iterator[None]:
    yield
    tg.set_printoptions(profile="default")


def test_print_options(options: None) -> None:
    tg.set_printoptions(precision=2)
    assert repr(tg.tensor([1.234])) == "tensor([1.23])"
    tg.set_printoptions(sci_mode=True)
    assert repr(tg.tensor([1.5])) == "tensor([1.50e+00])"
    tg.set_printoptions(profile="full")
    assert "..." not in repr(tg.arange(1500))
    tg.set_printoptions(profile="default", threshold=4, edgeitems=1)
    assert repr(tg.arange(5)) == "tensor([0,  ..., 4])"
    assert printing._options.linewidth == 80
