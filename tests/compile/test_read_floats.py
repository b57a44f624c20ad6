"""Floats of closures, globals and attributes that change are inputs, as floats of arguments are."""

import math

import pytest

import tgraph as tg
from tgraph import nn

X = tg.tensor([1.0, 2.0])

rate = 0.5


def reasons(function):
    return [record.reason for record in function.compiles]


def run(function, set_value, values):
    """Call with every value; results are those of eager code."""
    for value in values:
        set_value(value)
        assert function(X).tolist() == pytest.approx(
            function.function(X).tolist(), rel=1e-6, nan_ok=True
        )


def test_a_global_that_changes_becomes_an_input():
    def set_rate(value):
        global rate
        rate = value

    function = tg.compile(lambda x: x * rate + (1 - rate))
    run(function, set_rate, (0.5, 0.25, 0.125, -0.0, math.inf))
    assert reasons(function) == [
        "first call",
        "`rate` changed: 0.5 -> 0.25; `rate` is an input from now on",
    ]
    assert type(rate) is float
    assert "rate" in str(function.graph(X))


def test_closures_attributes_lists_and_dicts():
    class Settings:
        scale = 2.0  # of the class at first

        def __init__(self):
            self.shift = 1.0

    settings, table, row, closed = Settings(), {"a": 1.0}, [1.0, 2.0], 1.0

    @tg.compile
    def function(x):
        return x * settings.shift + table["a"] * row[1] - closed

    def set_all(value):
        nonlocal closed
        settings.shift, table["a"], row[1], closed = value, value + 1, value + 2, value + 3

    run(function, set_all, (1.0, 2.0, 3.0, 4.0))
    assert len(function.compiles) == 2
    assert [settings.shift, table["a"], row[1], closed] == [4.0, 5.0, 6.0, 7.0]


def test_attributes_of_modules():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = 1.0

        def forward(self, x):
            return x * self.gain

    module = Scaled()
    function = tg.compile(module)
    for gain in (1.0, 2.0, 3.0):
        module.gain = gain
        assert function(X).tolist() == [gain, 2 * gain]
    assert len(function.compiles) == 2


def test_gradients_follow():
    factor = 1.0
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    function = tg.compile(lambda x: (x * x * factor).sum())
    for factor in (1.0, 2.0, 3.0):
        x.grad = None
        function(x).backward()
        assert x.grad.tolist() == [2 * factor, 4 * factor]
    assert len(function.compiles) == 2


def test_a_float_whose_value_is_asked_for_stays_fixed():
    variance = 1.0
    function = tg.compile(lambda x: x / math.sqrt(variance))
    for variance in (1.0, 4.0, 9.0):
        assert function(X).tolist() == pytest.approx([1 / math.sqrt(variance), 2 / variance**0.5])
    assert reasons(function)[1:] == [
        "`variance` changed: 1.0 -> 4.0",
        "`variance` changed: 4.0 -> 9.0",
    ]


def test_another_kind_of_number_compiles_anew():
    factor = 1.0
    function = tg.compile(lambda x: x * factor)
    counts = tg.tensor([1, 2])
    for factor in (1.0, 2.0, 3.0, 4):
        assert function(counts).tolist() == [factor, 2 * factor]
        assert function(counts).dtype is (tg.float32 if type(factor) is float else tg.int64)
    assert reasons(function)[2] == "`factor` is no float any more: 4"


def test_a_float_that_the_function_changes_stays_a_float():
    state = {"count": 1.0}

    @tg.compile
    def function(x):
        state["count"] = state["count"] * 2
        return x * state["count"]

    for wanted in (2.0, 4.0, 8.0):
        assert function(X).tolist() == [wanted, 2 * wanted]
        assert type(state["count"]) is float


def test_a_trace_that_fails_puts_the_float_back():
    factor, fail = 1.0, False

    @tg.compile
    def function(x):
        if fail:
            raise ValueError("on purpose")
        return x * factor

    function(X)
    factor, fail = 2.0, True
    with pytest.raises(ValueError, match="on purpose"):
        function(X)
    assert type(factor) is float
    fail = False
    assert function(X).tolist() == [2.0, 4.0]


def test_checked():
    factor = 1.0
    function = tg.compile(lambda x: x * factor, check=True)
    for factor in (1.0, 2.0, 3.0):
        assert function(X).tolist() == [factor, 2 * factor]
    assert len(function.compiles) == 2
