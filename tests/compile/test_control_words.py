"""Branches and loops in plans: their steps jump, and do what the graph interpreter does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_graphs import Array, Make, Maker, below, graph, types_of, up
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import (
    Graph,
    Node,
    Provenance,
    TensorType,
)
from tgraph.compiler.targets.cpu.step_times import step_times
from tgraph.runtime.dtypes import (
    DType,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
)


def check(make: Make, *arrays: Any, **asked: Any) -> list[Array]:
    """Compile what `make` makes of inputs such as `arrays`; results are the interpreter's."""
    arrays = tuple(np.asarray(each) for each in arrays)
    made = graph(types_of(arrays), make)
    made.verify()
    expected = interpret(made, arrays)
    executable = compile_graph(made, **asked)
    for _ in range(2):
        found = executable.run([each.copy() for each in arrays])
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)
    return found


# -- branches --------------------------------------------------------------------------------


def three_ways(m: Maker, index: Node, x: Node, y: Node) -> list[Node]:
    return m.branch(
        index, [x, y],
        lambda m, x, y: [m("add", x, y), x],
        lambda m, x, y: [m("mul", x, y), m("exp", y)],
        lambda m, x, y: [y, y],
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [int8, int16, int32, int64, uint8, uint32], ids=str)
def test_a_branch_is_chosen_by_a_number_that_is_clamped(dtype: DType) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.full((2, 3), 0.5)
    info = np.iinfo(dtype.numpy)
    for index in {0, 1, 2, 3, info.max, max(info.min, -1), info.min}:
        first, second = check(three_ways, np.array(index, dtype.numpy), x, y)
        chosen = min(max(index, 0), 2)
        assert np.allclose(first, (x + y, x * y, y)[chosen])
        assert np.allclose(second, (x, np.exp(y), y)[chosen])


@pytest.mark.parametrize("value", [False, True])
def test_a_bool_chooses_the_second_graph_where_it_is_true(value: bool) -> None:
    def make(m: Maker, x: Node, y: Node) -> list[Node]:
        is_larger = m("gt", m("sum", x, axes=(0,), keepdims=False), y)
        found = m.branch(is_larger, [x], lambda m, x: [m("neg", x)], lambda m, x: [x])
        return [m("add", found[0], x)]

    (found,) = check(make, np.ones(5, np.float32), np.float32(4 if value else 6))
    assert (found == (2 if value else 0)).all()


def test_results_of_a_branch_that_nobody_reads() -> None:
    check(lambda m, *inputs: three_ways(m, *inputs)[1:], 1, np.ones(3), np.zeros(3))


def test_one_branch_may_be_inside_another() -> None:
    def make(m: Maker, i: Node, j: Node, x: Node) -> list[Node]:
        def inner(m: Maker, j: Node, x: Node) -> list[Node]:
            return m.branch(j, [x], lambda m, x: [m("exp", x)], lambda m, x: [m("neg", x)])

        return m.branch(i, [j, x], inner, lambda m, j, x: [m("mul", x, x)])

    for i in (0, 1):
        for j in (0, 1):
            check(make, i, j, np.linspace(-1, 1, 33))


# -- loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 100, 101])
def test_a_value_that_others_read_goes_from_memory_to_memory(turns: int) -> None:
    """A running average over neighbours cannot be written where it is read."""

    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, x: Node, n: Node) -> list[Node]:
            return [
                up(m, i),
                m("mul", m("add", x, m("flip", x, axes=(0,))), m.number(0.5, float64)),
            ]

        return m.loop([m.number(0), x, n], 2, below, body)

    check(make, np.arange(7.0), turns)


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_values_that_change_places(turns: int) -> None:
    def make(m: Maker, a: Node, b: Node, c: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, b: Node, c: Node, n: Node) -> list[Node]:
            return [up(m, i), b, c, m("add", a, m.full((), 1.0, float32))]

        return m.loop([m.number(0), a, b, c, n], 4, below, body)

    check(make, *(np.full(40, value, np.float32) for value in (1, 2, 3)), turns)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_values_that_stay_and_values_that_become_one(turns: int) -> None:
    def make(m: Maker, a: Node, b: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, b: Node, c: Node, n: Node) -> list[Node]:
            total = m("add", b, a)
            return [up(m, i), a, total, total]

        return m.loop([m.number(0), a, b, b, n], 4, below, body)

    check(make, np.arange(5.0), np.ones(5), turns)


def test_a_large_array_is_read_where_it_lies() -> None:
    def make(m: Maker, table: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, total: Node, table: Node, n: Node) -> list[Node]:
            rows = m("sum", table, axes=(1,), keepdims=False)
            return [up(m, i), m("add", total, m("sum", rows, axes=(0,), keepdims=False))]

        start = [m.number(0), m.number(0.0, float32), table, n]
        return m.loop(start, 2, below, body)

    table = np.ones((300, 256), np.float32)
    executable = compile_graph(graph(types_of([table, np.array(3)]), make))
    assert executable.run([table, np.array(3)])[1] == 3 * table.size
    assert executable.plan.arena_bytes < table.nbytes


@pytest.mark.parametrize("dtype", [bool_, int8, int32, float16, float32, float64], ids=str)
def test_state_of_every_dtype_and_without_elements(dtype: DType) -> None:
    def make(m: Maker, x: Node, empty: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, x: Node, empty: Node, n: Node) -> list[Node]:
            return [up(m, i), m("flip", x, axes=(0,)), m("flip", empty, axes=(0,)), n]

        start = [m.number(0), x, empty, n]
        return m.loop(start, 4, below, body)

    for turns in (0, 3):
        x = np.array([1, 0, 2, 3]).astype(dtype.numpy)
        check(make, x, np.zeros(0, dtype.numpy), turns)


def test_loops_and_branches_in_loops() -> None:
    """Primes by trial division: a loop, a loop in it, and a branch."""

    def make(m: Maker, n: Node) -> list[Node]:
        def divides(m: Maker, d: Node, found: Node, i: Node) -> list[Node]:
            zero = m("eq", m("remainder", i, d), m.number(0))
            return [up(m, d), m("logical_or", found, zero)]

        def smaller(m: Maker, d: Node, found: Node, i: Node) -> list[Node]:
            return [m("logical_and", m("lt", m("mul", d, d), up(m, i)), m("logical_not", found))]

        def body(m: Maker, i: Node, count: Node, total: Node, n: Node) -> list[Node]:
            _, found = m.loop([m.number(2), m.number(False, bool_), i], 2, smaller, divides)
            count, total = m.branch(
                found, [i, count, total],
                lambda m, i, count, total: [up(m, count), m("add", total, i)],
                lambda m, i, count, total: [count, total],
            )  # fmt: skip
            return [up(m, i), count, total]

        start = [m.number(2), m.number(0), m.number(0), n]
        return m.loop(start, 3, below, body)[1:]

    count, total = check(make, 100)
    assert (count, total) == (25, 1060)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
@pytest.mark.parametrize("readers", ["nobody", "the loop", "another", "behind", "the outer body"])
def test_loops_carry_values_on_where_they_lie(turns: int, readers: str) -> None:
    """Rows that an inner loop writes, in the memory of the outer state, and of what was computed;
    not where they are read as they were at first."""
    size = 4096

    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def outer(m: Maker, i: Node, rows: Node, total: Node, n: Node) -> list[Node]:
            seen = rows if readers == "the loop" else n
            _, after = inner_loop(m, rows, seen, n)
            if readers == "the outer body":
                total = m("add", total, m("sum", rows, axes=(0, 1), keepdims=False))
            return [up(m, i), after, total]

        def inner_loop(m: Maker, rows: Node, seen: Node, n: Node) -> list[Node]:
            return m.loop([m.number(0), rows, seen, n], 2, below, put)

        def put(m: Maker, j: Node, rows: Node, seen: Node, n: Node) -> list[Node]:
            row = m("index", seen if readers == "the loop" else rows, j, axis=0)
            row = m("add", row, m("broadcast", m.number(1.0, float32), shape=(size,)))
            return [up(m, j), m("index_put", rows, j, row, axis=0, accumulate=False)]

        rows = m("exp", x)
        found = m.loop([m.number(0), rows, m.number(0.0, float32), n], 3, below, outer)[1:]
        if readers == "another":
            found.append(m("neg", rows))
        if readers == "behind":
            found.append(m("add", rows, found[0]))
        return found

    x = np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(4, size)
    check(make, x, turns)
    arena = compile_graph(graph(types_of([x, np.array(1)]), make)).plan.arena_bytes
    if readers in ("nobody", "the loop", "behind"):
        assert arena < x.nbytes / 2 if readers == "nobody" else arena > x.nbytes


TURNS = 6
ROW_CASES: dict[str, tuple[bool, Make]] = {
    "first to last": (False, lambda m, i, rows, x: _put(m, rows, i, x)),
    "last to first": (False, lambda m, i, rows, x: _put(m, rows, _back(m, i), x)),
    "some rows": (True, lambda m, i, rows, x: _put(m, rows, m("floor_divide", i, m.number(2)), x)),
    "added": (True, lambda m, i, rows, x: _put(m, rows, i, x, accumulate=True)),
    "read before": (True, lambda m, i, rows, x: _put(m, rows, i, _row(m, rows, _back(m, i)))),
    "changed behind": (True, lambda m, i, rows, x: m("neg", _put(m, rows, i, x))),
}
"""By whether a turn may see what rows begin with: how they go on, in the turn number `i`."""


def _back(m: Maker, i: Node) -> Node:
    return m("sub", m.number(TURNS - 1), i)


def _row(m: Maker, rows: Node, i: Node) -> Node:
    return m("index", rows, i, axis=0)


def _put(m: Maker, rows: Node, i: Node, value: Node, accumulate: bool = False) -> Node:
    return m("index_put", rows, i, value, axis=0, accumulate=accumulate)


@pytest.mark.parametrize("name", ROW_CASES)
def test_rows_begin_as_something_where_a_turn_may_see_that(name: str) -> None:
    """Nobody writes it where each row is overwritten, whatever is in memory."""
    seen, rows_of = ROW_CASES[name]

    def make(m: Maker, x: Node) -> list[Node]:
        def goes_on(m: Maker, i: Node, *_: Node) -> list[Node]:
            return [m("lt", i, m.number(TURNS))]

        def turn(m: Maker, i: Node, rows: Node, x: Node) -> list[Node]:
            return [up(m, i), rows_of(m, i, rows, x)]

        begin = m.full((TURNS, 300), 5.0, float32)
        return m.loop([m.number(0), begin, x], 2, goes_on, turn)[1:]

    x = np.linspace(1, 2, 300, dtype=np.float32)
    check(make, x)
    kernels = compile_graph(graph(types_of([x]), make)).kernels
    written = [each.name for each in kernels if "full" in each.name and each.bytes > 8]
    assert bool(written) == seen


def test_products_in_a_loop() -> None:
    def make(m: Maker, x: Node, w: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, x: Node, w: Node, n: Node) -> list[Node]:
            product = m("matmul", x, w, transpose_a=False, transpose_b=True)
            return [up(m, i), m("tanh", product)]

        return m.loop([m.number(0), x, w, n], 2, below, body)

    rng = np.random.default_rng(0)
    w = rng.standard_normal((48, 48)).astype(np.float32) / 8
    for rows in (1, 8, 100):
        check(make, rng.standard_normal((rows, 48)).astype(np.float32), w, 5)


def test_python_functions_in_a_loop() -> None:
    seen: list[float] = []

    def double(x: Array) -> tuple[Array]:
        seen.append(float(x[0]))
        return (x * 2,)

    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, x: Node, n: Node) -> list[Node]:
            call = m("host_call", x, function=double, results=(x.type,), name="double")
            return [up(m, i), m("add", m("get", call, index=0), m.number(1.0, float64))]

        return m.loop([m.number(0), x, n], 2, below, body)

    check(make, np.ones(3), 4)
    assert seen == [1.0, 3.0, 7.0, 15.0] * 3, "by the interpreter, and two calls of the plan"


def test_complex_state() -> None:
    """Turned by a quarter in each turn, and chosen between."""

    def make(m: Maker, z: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, z: Node, n: Node) -> list[Node]:
            return [up(m, i), m("mul", z, m.number(1j, complex64))]

        _, z = m.loop([m.number(0), z, n], 2, below, body)
        return [z, *m.branch(n, [z], lambda m, z: [z], lambda m, z: [m("neg", z)])]

    for turns in (0, 1, 6):
        check(make, np.array([1 + 2j, -3j, 0.5], np.complex64), turns)


def test_factorizations_in_a_loop() -> None:
    """Until one of them fails, in the third turn."""

    def make(m: Maker, a: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, n: Node) -> list[Node]:
            m.where = Provenance("program.py", 29)
            factor = m("get", m("cholesky", a, check="linalg.cholesky"), index=0)
            product = m("matmul", factor, factor, transpose_a=False, transpose_b=True)
            return [up(m, i), m("sub", product, m.number(1.5, float64))]

        return m.loop([m.number(0), a, n], 2, below, body)

    a = np.diag([3.0, 4.0, 5.0])
    check(make, a, 1)
    executable = compile_graph(graph(types_of([a, np.array(0)]), make))
    with pytest.raises(RuntimeError, match=r"not positive-definite.*program\.py:29"):
        executable.run([a, np.array(9)])


def test_ordered_python_functions_in_a_loop() -> None:
    """The token that orders them is a value that the loop carries."""
    seen: list[int] = []

    def note(i: Array) -> tuple[()]:
        seen.append(int(i))
        return ()

    def make(m: Maker, token: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, token: Node, n: Node) -> list[Node]:
            attrs = {"function": note, "results": (), "name": "note", "effect": "ordered"}
            return [up(m, i), m("get", m("host_call", i, token, **attrs), index=0)]

        return m.loop([m.number(0), token, n], 2, below, body)

    executable = compile_graph(graph([TensorType((), uint8), TensorType((), int64)], make))
    executable.run([np.array(0, np.uint8), np.array(5)])
    assert seen == [0, 1, 2, 3, 4]


def test_scatters_and_concatenations_in_a_loop() -> None:
    """Rows of a table are written one after another, in its own memory."""

    def make(m: Maker, table: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, table: Node, n: Node) -> list[Node]:
            row = m(
                "broadcast", m("reshape", m("cast", i, dtype=float32), shape=(1, 1)), shape=(1, 8)
            )
            put = m("index_put", table, m("reshape", i, shape=(1,)), row, axis=0, accumulate=False)
            return [up(m, i), put]

        return m.loop([m.number(0), table, n], 2, below, body)

    check(make, np.zeros((10, 8), np.float32), 7)


def test_what_is_both_operand_and_output() -> None:
    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, y: Node, x: Node, n: Node) -> list[Node]:
            return [up(m, i), m("add", y, x)]

        _, y = m.loop([m.number(0), x, x, n], 2, below, body)
        return [x, y, y, m("exp", y)]

    check(make, np.linspace(0, 1, 9), 3)


@pytest.mark.parametrize("turns", [0, 1, 6])
def test_results_in_the_memory_of_inputs(turns: int) -> None:
    """As parameters after many steps of an optimizer."""

    def make(m: Maker, w: Node, g: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, w: Node, g: Node, n: Node) -> list[Node]:
            return [up(m, i), m("sub", w, m("mul", g, w))]

        _, new = m.loop([m.number(0), w, g, n], 2, below, body)
        return [new, m("mul", w, g)]

    w, g = np.arange(100.0), np.full(100, 0.25)
    made = graph(types_of([w, g, np.array(0)]), make)
    executable = compile_graph(made, donate={0: 0})
    given = w.copy()
    found = executable.run([given, g, np.array(turns)])
    assert found[0] is given
    for one, other in zip(found, interpret(made, [w, g, np.array(turns)]), strict=True):
        np.testing.assert_allclose(one, other)


def test_operands_with_gaps() -> None:
    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, y: Node, x: Node, n: Node) -> list[Node]:
            return [up(m, i), m("add", y, x)]

        return m.loop([m.number(0), x, x, n], 2, below, body)

    x = np.arange(24.0).reshape(4, 6)
    made = graph(types_of([x, np.array(0)]), make)
    given = x.T.copy().T
    found = compile_graph(made, strides={0: (1, 4)}).run([given, np.array(2)])
    np.testing.assert_array_equal(found[1], 3 * x)


# -- failures --------------------------------------------------------------------------------


def failing(line: int) -> Graph:
    """Element i of a row in turn i: turn 5 of a row of 5 fails."""

    def make(m: Maker, row: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, total: Node, row: Node, n: Node) -> list[Node]:
            m.where = Provenance("program.py", line)
            taken = m("index", row, m("reshape", i, shape=(1,)), axis=0)
            return [up(m, i), m("add", total, m("reshape", taken, shape=()))]

        start = [m.number(0), m.number(0.0, float64), row, n]
        return m.loop(start, 2, below, body)

    return graph([TensorType((5,), float64), TensorType((), int64)], make)


def test_a_check_that_fails_in_some_turn_tells_the_line() -> None:
    executable = compile_graph(failing(17))
    row = np.arange(5.0)
    assert executable.run([row, np.array(5)])[1] == 10
    with pytest.raises(IndexError, match=r"5 .*program\.py:17"):
        executable.run([row, np.array(9)])
    assert executable.run([row, np.array(5)])[1] == 10


def endless() -> Graph:
    def make(m: Maker, i: Node) -> list[Node]:
        return m.loop([i], 1, lambda m, i: [m("ge", i, m.number(0))], lambda m, i: [i])

    return graph([TensorType((), int64)], make)


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_ends_an_endless_loop() -> None:
    executable = compile_graph(endless())
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executable.run([np.array(1)])
    assert executable.run([np.array(-1)]) == [-1]


def test_the_graphs_of_a_loop_take_and_give_its_state() -> None:
    with pytest.raises(
        TypeError, match=r"body of loop gives \(float32\[\]\), expected \(int64\[\]"
    ):
        graph(
            [TensorType((), int64)],
            lambda m, i: m.loop(
                [i], 1, lambda m, i: [m("ge", i, i)], lambda m, i: [m("cast", i, dtype=float32)]
            ),
        )


# -- the whole machinery ---------------------------------------------------------------------


def fibonacci() -> Graph:
    def make(m: Maker, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, b: Node, n: Node) -> list[Node]:
            return [up(m, i), b, m("add", a, b)]

        start = [m.number(0), m.number(0), m.number(1), n]
        return m.loop(start, 3, below, body)[1:2]

    return graph([TensorType((), int64)], make)


def test_threads_run_one_plan() -> None:
    executable = compile_graph(fibonacci())
    expected = [interpret(fibonacci(), [np.array(n)])[0] for n in range(60)]
    wrong: list[int] = []

    def run(seed: int) -> None:
        for n in np.random.default_rng(seed).integers(0, 60, 300):
            if executable.run([np.array(n)])[0] != expected[n]:
                wrong.append(int(n))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_steps_are_told_and_timed() -> None:
    executable = compile_graph(fibonacci())
    kinds = [info.kind for info in executable.kernels]
    assert kinds.count("loop") == 1
    loop = executable.kernels[kinds.index("loop")]
    assert {info.kind for info in loop.inside} == {"kernel"}
    times = step_times(executable.whole, [np.array(50)])
    assert len(times) == len(kinds) and times[kinds.index("loop")] > 0
    text = str(executable.program)
    assert "branch loop" in text and "jump loop" in text and "pointer" in text


STORED = """
import sys
sys.path[:0] = {folders!r}
from test_control_words import *
executable = compile_graph(failing(17))
print(type(executable).__name__, executable.run([np.arange(5.0), np.array(4)])[1])
try:
    executable.run([np.arange(5.0), np.array(9)])
except IndexError as error:
    print(error)
print(compile_graph(fibonacci()).run([np.array(50)])[0])
"""


def test_another_process_takes_the_plan_from_disk(tmp_path: Path) -> None:
    texts = []
    folder = Path(__file__).parent
    script = STORED.format(folders=[str(folder), str(folder.parent)])
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False,
            env={**os.environ, "TGRAPH_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.splitlines())
    assert texts[0][0] == "CpuExecutable 6.0" and texts[1][0] == "LatePlan 6.0"
    assert texts[0][1:] == texts[1][1:]
    assert "program.py:17" in texts[1][1] and texts[1][2] == "12586269025"
