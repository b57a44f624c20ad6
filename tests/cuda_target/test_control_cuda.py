"""Branches and loops on a CUDA device: values, graphs that are captured, what is waited for."""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import control_cases
import numpy as np
import pytest
from control_cases import CASES, Function, derivatives, of
from control_graphs import Maker, below, graph, types_of, up
from sampling import rotating
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Graph, Node
from tgraph.compiler.ir.turns import known_turns
from tgraph.compiler.passes.on_one_device import on_one_device
from tgraph.compiler.placement import PlacedExecutable
from tgraph.compiler.targets.cuda import select_branches
from tgraph.runtime.cuda import capture, segments
from tgraph.runtime.cuda.step_runner import StepRunner
from tgraph.runtime.dtypes import complex64, float64, int8, int32, int64, uint32
from tgraph.runtime.plan_steps import TurnsStep

import tgraph as tg
from tgraph.core import pytree

pytest_plugins = ["cuda_tools.device"]
CALLS = 4  # asked for, captured, replayed twice


@pytest.fixture(autouse=True)
def cell(cuda: Any, monkeypatch: Any) -> Iterator[None]:
    """The module that cases use, on the device meanwhile. Branches stay what they are."""
    monkeypatch.setattr(select_branches, "WAIT", 0.0)
    yield
    control_cases.CELL.to("cpu")


def on_device(args: Any) -> list[tg.Tensor]:
    control_cases.CELL.to("cuda")
    return [each.detach().cuda().requires_grad_(each.requires_grad) for each in args]


def frames_of(compiled: Any) -> list[Any]:
    """What the plans of a compiled function keep for streams."""
    calls = [call for calls in compiled._plans.values() for call in calls]
    executables: list[PlacedExecutable] = [call.function.executable for call in calls]
    plans = [each.plan for one in executables for each in one.executables]  # type: ignore[attr-defined]
    return [frame for plan in plans for frame in plan._frames.values()]


def devices_of(tree: Any) -> list[str]:
    return [str(each.device) for each in pytree.leaves(tree) if each is not None]


def check_same(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    (ours, spec), (theirs, other) = pytree.flatten(found), pytree.flatten(expected)
    assert spec == other
    for one, each in zip(ours, theirs, strict=True):
        if each is not None:
            assert one.dtype is each.dtype
            have, want = (x.detach().cpu().numpy() for x in (one, each))
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance / 100)


# The CPU's tests have all cases; how a device runs branches and loops is what the rest is about.
@pytest.mark.parametrize("name", rotating(CASES, 3))
def test_compiled_is_eager_and_so_are_gradients(name: str) -> None:
    function, args = CASES[name]
    expected, compiled = derivatives(function)(*args), tg.compile(derivatives(function))
    there = on_device(args)
    eager = function(*there)
    for _ in range(CALLS):
        found = compiled(*there)
        check_same(found, expected)
        assert devices_of(found[0]) == devices_of(eager)


# -- words: by the primitives themselves -----------------------------------------------------


def run_there(made: Graph, arrays: list[Any], donate: dict[int, int] | None = None) -> Any:
    """What each of some calls gives, for inputs that are moved to the device."""
    from tgraph.compiler.passes.on_one_device import _graph_there
    from tgraph.compiler.plan.request import Request
    from tgraph.compiler.targets.cuda.target import CudaTarget
    from tgraph.runtime.cuda.arrays import download, upload
    from tgraph.runtime.device import Device

    device = Device("cuda", 0)
    executable = CudaTarget(device).compile(Request(_graph_there(made, device), donate))
    for _ in range(CALLS):
        given = [upload(np.asarray(each).copy(), device) for each in arrays]
        found = executable.run(given)
        yield [download(each) for each in found]


def check_words(make: Any, *arrays: Any, **asked: Any) -> None:
    arrays = tuple(np.asarray(each) for each in arrays)
    made = graph(types_of(arrays), make)
    expected = interpret(made, arrays)
    for found in run_there(made, list(arrays), **asked):
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [int8, int32, uint32], ids=str)
def test_a_branch_is_chosen_by_a_number_that_is_clamped(dtype: Any) -> None:
    def make(m: Maker, index: Node, x: Node) -> list[Node]:
        return m.branch(
            index, [x], lambda m, x: [m("neg", x)], lambda m, x: [x], lambda m, x: [m("exp", x)]
        )

    info = np.iinfo(dtype.numpy)
    for index in {max(info.min, -1), 1, info.max}:
        check_words(make, np.array(index, dtype.numpy), np.arange(3.0))


@pytest.mark.parametrize("turns", [0, 1, 2, 21])
def test_values_that_change_places(turns: int) -> None:
    """State that is written where it is read, and some that is not; results in inputs' memory."""

    def make(m: Maker, a: Node, b: Node, w: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, b: Node, w: Node, n: Node) -> list[Node]:
            flipped = m("add", m("flip", a, axes=(0,)), m.number(1.0, float64))
            return [up(m, i), b, flipped, m("sub", w, m("mul", a, w))]

        return m.loop([m.number(0), a, b, w, n], 4, below, body)[1:]

    check_words(make, np.arange(4.0), np.full(4, 0.5), np.full(4, 3.0), turns, donate={2: 2})


@pytest.mark.parametrize("turns", [3, 8])
def test_what_is_no_kernel_in_loops(turns: int) -> None:
    """Products, routines, Python functions, complex numbers and rows that are written."""
    seen: list[int] = []

    def double(x: Any) -> tuple[Any]:
        seen.append(1)
        return (np.array(x) * 0.5,)

    def make(m: Maker, a: Node, z: Node, table: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, a: Node, z: Node, table: Node, n: Node) -> list[Node]:
            square = m("matmul", a, a, transpose_a=False, transpose_b=True)
            factor = m("get", m("cholesky", square, check="linalg.cholesky"), index=0)
            call = m("host_call", factor, function=double, results=(a.type,), name="double")
            row = m("index", factor, m.number(1), axis=0)
            at = m("remainder", i, m.number(5))
            put = m("index_put", table, at, row, axis=0, accumulate=False)
            made = m("add", m("get", call, index=0), factor)
            return [up(m, i), made, m("mul", z, m.number(1j, complex64)), put]

        return m.loop([m.number(0), a, z, table, n], 4, below, body)[1:]

    a = np.eye(3) * 2 + np.tri(3) / 4
    check_words(make, a, np.array([1 + 2j, -3j], np.complex64), np.zeros((5, 3)), turns)
    assert len(seen) == turns * (1 + CALLS)


def test_rows_are_written_where_they_lie() -> None:
    """And scans are read and written a row at a time: nothing moves all of them in a turn."""

    def f(xs: tg.Tensor, cache: tg.Tensor) -> Any:
        def turn(state: Any, x: tg.Tensor) -> Any:
            n, cache = state
            return (n + 1, cache.index_copy(0, n.reshape(1), x.reshape(1, 4))), x * 2

        return tg.scan(turn, (tg.tensor(3).to(xs.device), cache), xs)

    xs, cache = of(5, 4), tg.zeros(1000, 4, dtype=tg.float64)
    compiled, there = tg.compile(f), on_device([xs, cache])
    for _ in range(CALLS):
        check_same(compiled(*there), f(xs, cache))
    assert tg.equal(there[1].cpu(), cache)
    moved = re.findall(r"loop\d+_body.*\n\s*(.*) moved", str(compiled.explain(*there)))
    assert moved and not [each for each in moved if "k" in each]


# -- graphs ----------------------------------------------------------------------------------


def averages(x: tg.Tensor, w: tg.Tensor) -> Any:
    last, rows = tg.scan(lambda c, r: (c * w + r, (c * r).flip(0)), w, x)
    return (last.flip(0) * w).sum(), rows


def halvings(x: tg.Tensor, w: tg.Tensor) -> Any:
    turns, last = tg.while_loop(
        lambda n, y: (y * y).sum() > 1e-6, lambda n, y: (n + 1, y.flip(0) * w), (0, x)
    )
    return turns, last * 2


def averages_of_averages(x: tg.Tensor, w: tg.Tensor) -> Any:
    return tg.fori_loop(0, 7, lambda i, s: averages(x + i, s)[1][-1] / 8, w)


def chosen_in_scan(x: tg.Tensor, w: tg.Tensor) -> Any:
    def turn(c: tg.Tensor, r: tg.Tensor) -> Any:
        c = tg.cond(c.sum() > r.sum(), lambda: (c - r).flip(0), lambda: (c + r * w).flip(0))
        return c, c.sum()

    return tg.scan(turn, w, x)


def test_known_turns_are_one_graph() -> None:
    args, compiled = (of(9, 4), of(4)), tg.compile(averages)
    there = on_device(args)
    for _ in range(CALLS):
        check_same(compiled(*there), averages(*args))
    (frame,) = frames_of(compiled)
    assert [each.whole is not None for each in frame.graphs.values()][-1]


@pytest.mark.parametrize(
    "decide, first, step, last, dtype, turns",
    [
        ("lt", 0, 1, 5, int64, 5), ("lt", -3, 2, 4, int64, 4), ("lt", 7, 1, 7, int64, 0),
        ("lt", 9, 1, 7, int64, 0), ("le", 0, 3, 6, int64, 3), ("lt", 100, 15, 120, int8, None),
        ("lt", 0, 0, 3, int64, None), ("lt", 5, -1, 7, int64, None), ("gt", 5, -1, 0, int64, None),
        ("ne", 0, 1, 4, int64, None), ("lt", 0, 1, 4, float64, None),
    ],
)  # fmt: skip
def test_how_many_turns_are_known(
    decide: str, first: int, step: int, last: int, dtype: Any, turns: int | None
) -> None:
    """Of what counts evenly upwards, and does not wrap around."""

    def make(m: Maker, x: Node) -> list[Node]:
        start = m.number(first, dtype)
        return m.loop(
            [start, x], 2,
            lambda m, i, x: [m(decide, i, m.number(last, dtype))],
            lambda m, i, x: [m("add", i, m.number(step, dtype)), m("neg", x)],
        )  # fmt: skip

    made = graph(types_of([np.ones(3)]), make)
    (loop,) = (node for node in made.nodes if node.primitive.name == "loop")
    assert known_turns(loop) == turns
    if turns is not None:
        check_words(make, np.ones(3))


def test_a_turn_is_few_launches() -> None:
    """Of a recurrent network, a product and two; rows are written beside what counts."""

    def f(xs: tg.Tensor, h: tg.Tensor, c: tg.Tensor, w: tg.Tensor) -> Any:
        def step(state: Any, x: tg.Tensor) -> Any:
            h, c = state
            i, o, g = (x + h @ w).split(2, -1)
            c = tg.sigmoid(i) * c + tg.tanh(g)
            h = tg.sigmoid(o) * tg.tanh(c)
            return (h, c), (h, c)

        return tg.scan(step, (h, c), xs)

    steps = tg.cuda.program(f, of(9, 3, 6), of(3, 2), of(3, 2), of(2, 6)).steps
    (begin,) = (at for at, step in enumerate(steps) if isinstance(step, TurnsStep))
    kinds = [type(step).__name__ for step in steps[begin + 1 : begin + steps[begin].by]]
    assert kinds == ["GemmStep", "LaunchStep", "LaunchStep", "JumpStep"]


def test_turns_that_are_not_known_are_two_graphs() -> None:
    """However many there are: one for each place of the state."""
    args, compiled = (of(4) * 3, of(4) / 2), tg.compile(halvings)
    there = on_device(args)
    for _ in range(CALLS):
        found = compiled(*there)
        check_same(found, halvings(*args))
    assert found[0].item() == 8 and found[0].device == tg.device("cpu")
    (frame,) = frames_of(compiled)
    assert 3 <= max(map(len, frame.graphs.values())) <= 5


@pytest.mark.parametrize("function", [averages, averages_of_averages, chosen_in_scan])
def test_loops_that_are_too_long_for_one_graph(function: Function, monkeypatch: Any) -> None:
    """Then some turns are one, of which each does as many as the last; or a turn is two."""
    for most in (1, 2, 10):
        monkeypatch.setattr(segments, "MOST_STEPS", most)
        args, compiled = (of(19, 4), of(4)), tg.compile(function)
        there = on_device(args)
        for _ in range(CALLS):
            check_same(compiled(*there), function(*args))
        (frame,) = frames_of(compiled)
        assert 1 <= max(map(len, frame.graphs.values())) <= 12


@pytest.mark.parametrize("name", ["branches in loops", "captured by one", "chosen", "newton"])
def test_small_branches_are_selections(name: str, monkeypatch: Any) -> None:
    """Also those that choose by a number, and in loops with a bound, which are graphs then."""
    monkeypatch.setattr(select_branches, "WAIT", 1e9)
    function, args = CASES[name]
    compiled, there = tg.compile(derivatives(function)), on_device(args)
    expected = derivatives(function)(*args)
    for _ in range(CALLS):
        check_same(compiled(*there), expected)
    assert "branch" not in str(compiled.explain(*there))
    for frame in frames_of(compiled):
        assert frame.stops == frozenset()


def test_what_may_fail_or_takes_long_stays_a_branch(monkeypatch: Any) -> None:
    monkeypatch.undo()

    def is_branch(side: Function, *shape: int) -> bool:
        def f(x: tg.Tensor) -> tg.Tensor:
            return tg.cond(x.sum() > 0, lambda: side(x), lambda: x)

        return "branch" in str(tg.cuda.program(f, tg.ones(*shape)))

    assert not is_branch(lambda x: x.exp() * 2, 1000)
    assert not is_branch(lambda x: x @ x + x.mean(), 20, 20)
    assert is_branch(lambda x: x.exp() * 2, 1 << 25)
    assert is_branch(lambda x: x @ x, 3000, 3000)
    assert is_branch(lambda x: x[x.sum().long()] + x, 4)
    assert is_branch(lambda x: x + 7 // x.sum().long(), 4)
    assert is_branch(lambda x: tg.while_loop(lambda y: y.sum() < 3, lambda y: y * 2, x), 4)


def test_without_graphs(monkeypatch: Any) -> None:
    """Where captures fail in the middle of a call, and where every step is waited for."""
    args = of(7, 4), of(4)
    there, made = on_device(args), []
    graph_of = capture.Capture.graph

    def third_fails(*given: Any) -> Any:
        made.append(1)
        if len(made) == 3:
            raise capture.CaptureError("ordered")
        return graph_of(*given)

    compiled = tg.compile(chosen_in_scan)
    fails = mock.patch.object(capture.Capture, "graph", third_fails)
    with fails, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(CALLS):
            check_same(compiled(*there), chosen_in_scan(*args))
    assert len(made) == 3
    assert [bool(re.search("one by one.*ordered", str(each.message))) for each in told] == [True]
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", "1")
    for function in (averages, chosen_in_scan):
        check_same(tg.compile(function)(*there), function(*args))


# -- numbers of the host, random numbers, devices --------------------------------------------


def test_streams_are_those_of_the_cpu() -> None:
    def f(x: tg.Tensor) -> Any:
        def body(x: tg.Tensor, n: tg.Tensor) -> Any:
            made = tg.cond(
                n < 2, lambda: x * tg.rand(2, device=x.device), lambda: x + tg.rand_like(x)
            )
            return made, n + 1

        rows = tg.ones(4, 2, device=x.device) + x
        noise = tg.map(lambda row: tg.nn.functional.dropout(row, 0.5, True), rows)
        return tg.while_loop(lambda x, n: n < 5, body, (x, 0)), noise, tg.rand_like(x)

    compiled, x = tg.compile(f), tg.full((2,), 0.5)
    for seed in range(CALLS):
        tg.manual_seed(seed)
        expected = f(x), tg.rand(3)
        tg.manual_seed(seed)
        check_same((compiled(x.cuda()), tg.rand(3)), expected, 1e-5)


def test_loops_and_branches_are_on_one_device(cuda: Any) -> None:
    """Where the work is, whichever decides: what is elsewhere is moved before and behind."""

    def f(at: tg.Tensor, flag: tg.Tensor, here: tg.Tensor, there: tg.Tensor) -> Any:
        chosen = tg.cond(flag.any(), lambda: here * 2, lambda: -here)  # the host computes
        known = tg.switch(at, [tg.neg, tg.exp, tg.sin], there)  # the host knows
        other = tg.cond(here.sum() > 0, lambda: there.exp(), lambda: there)  # the device does
        both = tg.fori_loop(0, 3, lambda i, s: (s[0] + i, s[1] * s[0].to(cuda)), (here[0], there))
        return chosen, known, other, both

    here, there = of(3), of(3, seed=1)
    compiled = tg.compile(f)
    for at, value in enumerate((True, False, True, True), -1):
        args = tg.tensor(at), tg.tensor([False, value]).cuda(), here, there.cuda()
        found = compiled(*args)
        assert devices_of(found) == ["cpu", "cuda:0", "cuda:0", "cpu", "cuda:0"]
        check_same(found, f(*args))


def test_what_the_host_knows_is_not_waited_for(monkeypatch: Any) -> None:
    compiled = tg.compile(lambda at, x: tg.switch(at, [tg.neg, tg.exp, tg.sin], x) * 2)
    x = of(3)
    monkeypatch.setattr(StepRunner, "_read", None)
    for at in (2, -3, 9, 1, 1, 1):
        found = compiled(tg.tensor(at), x.cuda())
        check_same(found, [tg.neg, tg.exp, tg.sin][min(max(at, 0), 2)](x) * 2)


def test_several_devices_in_a_loop_are_refused(second_cuda: Any) -> None:
    def f(x: tg.Tensor, y: tg.Tensor) -> Any:
        return tg.fori_loop(0, 3, lambda i, s: (s[0] + s[1].to("cuda:0"), s[1] * 2), (x, y))

    with pytest.raises(NotImplementedError, match=r"loop \(at .*cuda:0 and cuda:1; move"):
        tg.compile(f)(tg.ones(2).cuda(), tg.ones(2).to(second_cuda))


def test_what_is_on_the_host_stays_as_it_is() -> None:
    made = graph(types_of([np.ones(3), np.array(2)]), lambda m, x, n: m.loop(
        [m.number(0), x, n], 2, below, lambda m, i, x, n: [up(m, i), m("mul", x, x)]
    ))  # fmt: skip
    assert on_one_device(made).structure == made.structure


def test_sizes_that_vary_and_plans_of_eager_mode() -> None:
    def f(x: tg.Tensor) -> Any:
        total = tg.scan(lambda c, r: (c + r, c * r), x[0] * 0, x)[1].sum()
        return total, tg.fori_loop(0, x.shape[0], lambda i, c: c + i, 0)

    compiled, fused = tg.compile(f, dynamic={"x": 0}), tg.fused(lambda x: f(x)[0] + x)
    for size in (3, 5, 3, 1, 3):
        x = of(size, 2)
        check_same(compiled(x.cuda()), f(x))
        check_same(fused(x.cuda()), f(x)[0] + x)


# -- failures --------------------------------------------------------------------------------


def test_a_check_that_fails_tells_the_line_and_nothing_is_written() -> None:
    state, table = tg.zeros(3).cuda(), tg.arange(5).double().cuda()

    def until(n: tg.Tensor) -> Any:
        state.add_(1)
        return tg.while_loop(
            lambda i, total: i < n, lambda i, total: (i + 1, total + table[i]), (0, table[0])
        )[1]

    def of_rows(at: tg.Tensor) -> Any:
        state.add_(1)
        return tg.map(lambda i: table[i] * 2, at)

    for function, good, bad in (
        (until, tg.tensor(5), tg.tensor(9)),
        (of_rows, tg.tensor([1, 4]), tg.tensor([1, 5])),
    ):
        compiled, before = tg.compile(function), state.clone()
        for n in range(CALLS):
            with pytest.raises(IndexError, match=rf"5 .*{os.path.basename(__file__)}:\d+"):
                compiled(bad.cuda()).cpu()
            assert tg.equal(state, before + n)
            compiled(good.cuda()).cpu()


def test_plans_of_eager_mode_wait_for_their_checks() -> None:
    look_up = tg.fused(lambda at, table: tg.map(lambda i: table[i] * 2, at))
    table = tg.arange(5).double().cuda()
    for _ in range(CALLS):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            look_up(tg.tensor([1, 5]).cuda(), table)
        assert look_up(tg.tensor([1, 4]).cuda(), table).tolist() == [2.0, 8.0]


def test_state_without_elements() -> None:
    def f(x: tg.Tensor, y: tg.Tensor) -> Any:
        return tg.while_loop(lambda n, a, b: n < 3, lambda n, a, b: (n + 1, a, b + b), (0, x, y))

    compiled, args = tg.compile(f), (tg.zeros(3, 0), tg.ones(2))
    for _ in range(CALLS):
        check_same(compiled(*on_device(args)), f(*args))


def test_ctrl_c_ends_an_endless_loop(python_handler: None) -> None:
    state = tg.zeros(3).cuda()

    @tg.compile
    def endless(x: tg.Tensor) -> tg.Tensor:
        state.add_(1)
        return tg.while_loop(lambda x: x.sum() > 0, lambda x: x * 1, x)

    endless(tg.zeros(2).cuda())
    for _ in range(2):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            endless(tg.ones(2).cuda())
        assert state.tolist() == [1.0] * 3
    assert endless(-tg.ones(2).cuda()).tolist() == [-1.0] * 2
