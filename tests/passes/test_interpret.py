"""The interpreter: values, memory, errors."""

import weakref

import numpy as np
import pytest
from pass_testing import Maker
from tgraph.compiler.graph_interpreter import Interpreter, interpret
from tgraph.compiler.ir import TensorType
from tgraph.runtime.dtypes import float32, int64


def test_outputs_in_order_and_inputs_passed_through():
    make = Maker()
    x, y = make.input(2), make.input(2)
    values = np.float32([1, 2]), np.float32([10, 20])
    got = interpret(make.graph(make.sub(x, y), y, make.number(3.0)), values)
    assert [each.tolist() for each in got] == [[-9, -18], [10, 20], 3]


def test_several_results():
    make = Maker()
    call = make.host_call(
        make.input(2), function=lambda x: (x + 1, x.sum(keepdims=True)),
        results=(TensorType((2,), float32), TensorType((1,), float32)), name="both",
    )  # fmt: skip
    got = interpret(make.graph(make.get(call, index=1), make.get(call, index=0)), [np.ones(2, "f")])
    assert [each.tolist() for each in got] == [[2], [2, 2]]


def test_values_are_dropped_after_their_last_use():
    alive = []

    def note(x):
        result = x + 1
        alive.append((weakref.ref(result), [ref() is not None for ref, _ in alive]))
        return (result,)

    make = Maker()
    x = make.input(2)
    for step in range(4):
        call = make.host_call(
            x, function=note, results=(TensorType((2,), float32),), name=f"step{step}"
        )
        x = make.get(call, index=0)
    interpret(make.graph(x), [np.zeros(2, "f")])
    # While a step runs, only its operand is alive of what came before.
    assert [before for _, before in alive] == [[], [True], [False, True], [False, False, True]]


def test_runs_again():
    make = Maker()
    run = Interpreter(make.graph(make.neg(make.input(2)))).run
    assert run([np.float32([1, 2])])[0].tolist() == [-1, -2]
    assert run([np.float32([3, 4])])[0].tolist() == [-3, -4]


def test_inputs_are_checked():
    make = Maker()
    graph = make.graph(make.neg(make.input(2)))
    with pytest.raises(TypeError, match="takes 1 inputs, got 0"):
        interpret(graph, [])
    with pytest.raises(TypeError, match=r"input x expected float32\[2\], got float32\[3\]"):
        interpret(graph, [np.zeros(3, "f")])
    with pytest.raises(TypeError, match=r"got float64\[2\]"):
        interpret(graph, [np.zeros(2)])


def test_an_index_error_names_the_line():
    make = Maker()
    graph = make.graph(make.index(make.input(2), make.input(1, dtype=int64), axis=0))
    message = "index 5 is out of bounds for dimension 0 with size 2 .in index at user.py:1"
    with pytest.raises(IndexError, match=message):
        interpret(graph, [np.zeros(2, "f"), np.array([5])])


def test_a_long_chain_needs_no_recursion():
    make = Maker()
    x = make.input()
    for _ in range(20_000):
        x = make.neg(x)
    assert interpret(make.graph(x), [np.float32(3).reshape(())])[0] == 3
