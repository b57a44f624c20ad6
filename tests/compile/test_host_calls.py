"""Users' Python functions: their values, and how often and in what order they run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.ir.graph_key import graph_key

import tgraph as tg
from tgraph.compiled.check import CheckError
from tgraph.tracing import host_call

Run = Callable[..., Any]


class Log:
    """Notes what it is called with; `note(x)` is an ordered call."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, *arrays: Any) -> None:
        self.seen.append([each.tolist() for each in arrays])

    def note(self, *tensors: tg.Tensor) -> None:
        host_call(self, *tensors, effect="ordered")

    def taken(self) -> list[Any]:
        found, self.seen = self.seen, []
        return found


def both(function: Run, *args: Any, log: Log | None = None, calls: int = 2) -> Any:
    """The results of the last call, the same eager and compiled, and so is what was noted."""
    compiled, found = tg.compile(function), []
    for f in (function, compiled):
        for _ in range(calls):
            results = f(*args)
        found.append(([each.tolist() for each in tg.pytree.leaves(results)],
                      log.taken() if log is not None else None))  # fmt: skip
    assert found[0] == found[1]
    assert len(compiled.compiles) == 1
    return found[1]


# --- values ---


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int8, tg.bool], ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (5, 4)], ids=str)
def test_values(shape: tuple[int, ...], dtype: tg.dtype) -> None:
    x = tg.arange(20)[: int(np.prod(shape))].reshape(shape).to(dtype)

    def function(x: tg.Tensor) -> Any:
        swapped, size = host_call(
            lambda a, b: [b + a, np.array([a.size, b.size])], x, x.T.contiguous().T,
            results=[x, ((2,), tg.int64)],
        )  # fmt: skip
        (constant,) = host_call(lambda: [np.ones(2, "f")], results=[((2,), tg.float32)])
        return swapped, size * 2, constant

    values, _ = both(function, x)
    assert values[1:] == [[2 * x.numel()] * 2, [1, 1]]


def test_arrays_are_the_functions_own() -> None:
    """It may keep what it gets, write there, and give the same array again."""
    kept, buffer = [], np.zeros(3, "f")

    def into(x: Any) -> Any:
        kept.append(x)
        x += 1
        buffer[:] = x
        return buffer

    x = tg.zeros(3)
    for f in (function := lambda x: host_call(into, x * 2, results=x), tg.compile(function)):
        kept.clear()
        results = [f(x + n) for n in range(3)]
        assert [each.tolist() for each in kept] == [[1.0] * 3, [3.0] * 3, [5.0] * 3]
        assert [each.tolist() for each in results] == [[1.0] * 3, [3.0] * 3, [5.0] * 3]
    assert x.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda x: x[:1], r"f gave an array of float32[1] as result 0, its type says float32[3]"),
        (lambda x: x * 1j, r"f gave an array of complex64[3] as result 0"),
        (lambda x: 1.0, r"f gave an array of float64[] as result 0"),
    ],
)
def test_results_of_another_type(given: Run, message: str) -> None:
    def function(x: tg.Tensor) -> Any:
        return host_call(given, x, results=x, name="f") + 1

    for f in (function, tg.compile(function)):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            f(tg.ones(3))


def test_arguments_that_make_no_sense() -> None:
    x = tg.ones(2)
    with pytest.raises(ValueError, match="effect is one of pure, random, ordered, got 'io'"):
        host_call(print, x, effect="io")
    with pytest.raises(ValueError, match='the effect "pure" would never run'):
        host_call(print, x)
    with pytest.raises(TypeError, match="results are described by a pair"):
        host_call(np.sin, x, results=(2, 3))
    with pytest.raises(TypeError, match="expected tensors, got float"):
        host_call(np.sin, 1.0, results=x)


# --- how often, and in what order ---


def calls_of(effect: str, function: Run) -> tuple[int, int]:
    """How often a Python function is called by `function(call)`, eager and compiled."""
    count = [0]

    def counted(x: Any) -> Any:
        count[0] += 1
        return x + count[0]

    def call(x: tg.Tensor) -> Any:
        return host_call(counted, x, results=x, effect=effect)

    found = []
    compiled = tg.compile(lambda x: function(call, x))
    for f in (lambda x: function(call, x), compiled):
        f(tg.ones(3))
        count[0] = 0
        f(tg.ones(3))
        found.append(count[0])
    return found[0], found[1]


@pytest.mark.parametrize(
    ("effect", "twice", "unused"), [("pure", 1, 0), ("random", 2, 0), ("ordered", 2, 1)]
)
def test_how_often_calls_are_made(effect: str, twice: int, unused: int) -> None:
    assert calls_of(effect, lambda call, x: call(x) - call(x)) == (2, twice)
    assert calls_of(effect, lambda call, x: (call(x), x + 1)[1]) == (1, unused)
    assert calls_of(effect, lambda call, x: (call(x), x)[1]) == (1, unused)  # no other results
    assert calls_of(effect, lambda call, x: (call(call(x * 0)) * 0).sum()) == (2, 2)


def test_calls_keep_the_order_of_the_program() -> None:
    log = Log()

    def function(x: tg.Tensor, y: tg.Tensor) -> Any:
        log.note()
        for n in range(3):
            log.note(y.sum())  # what is dear to compute comes first all the same
            log.note(x)
            x.add_(1)
            y = (y @ y).cumsum(0) % 7
            log.note(x[n], x)
        return y.sum(), x

    _, seen = both(lambda: function(tg.zeros(3), tg.eye(30).long()), log=log)
    assert len(seen) == 2 * 10 and seen[:3] == [[], [30], [[0.0] * 3]]
    assert seen[9] == [3.0, [3.0] * 3]


def test_a_compiled_function_inside_another_and_inside_a_call() -> None:
    log = Log()

    @tg.compile
    def inner(x: tg.Tensor) -> tg.Tensor:
        log.note(x)
        return x * 2

    def eager(array: Any) -> Any:
        return inner(tg.from_numpy(array)).numpy()

    def function(x: tg.Tensor) -> tg.Tensor:
        y = host_call(eager, inner(x), results=x, effect="ordered")
        log.note(y)
        return y

    _, seen = both(function, tg.ones(1), log=log, calls=1)
    assert seen == [[[1.0]], [[2.0]], [[4.0]]]


# --- gradients ---


class Noted(tg.autograd.Function):
    """The identity, which notes that it was passed forward and backward."""

    log = Log()

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        Noted.log.note(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: tg.Tensor) -> tg.Tensor:
        Noted.log.note()
        Noted.log.note(grad)
        return grad * 2


def test_notes_of_a_training_step() -> None:
    def step(w: tg.Tensor) -> Any:
        w = w.detach().requires_grad_()
        loss = Noted.apply(Noted.apply(w).square()).sum()
        loss.backward()
        Noted.log.note(w.grad)
        return loss.detach(), w.grad

    _, seen = both(step, tg.tensor([1.0, 3.0]), log=Noted.log)
    assert len(seen) == 2 * 7 and seen[:2] == [[[1.0, 3.0]], [[1.0, 9.0]]]
    assert seen[3] == [[1.0, 1.0]] and seen[6] == [[8.0, 24.0]]


def test_notes_of_the_backward_of_a_compiled_function() -> None:
    def run(f: Run) -> list[Any]:
        x = tg.tensor([1.0, 3.0], requires_grad=True)
        y = f(x)
        seen = [Noted.log.taken()]
        for _ in range(2):
            y.sum().backward(retain_graph=True)
            seen.append(Noted.log.taken())
        with tg.no_grad():
            f(x)
        (first,) = tg.autograd.grad(f(x).square().sum(), x, create_graph=True)
        seen.append(Noted.log.taken())
        first.sum().backward()
        notes, values = (second := Noted.log.taken())[::2], second[1::2]
        assert notes == [[]] * len(values)  # of a compiled function one for each of its parts
        total = np.sum(values, 0)
        return [*seen, total.tolist(), x.grad.tolist()]

    def function(x: tg.Tensor) -> tg.Tensor:
        return Noted.apply(x.exp()).sin()

    wanted, found = run(function), run(tg.compile(function))
    np.testing.assert_allclose(tg.pytree.leaves(found), tg.pytree.leaves(wanted), rtol=1e-5)
    assert [len(each) for each in found[:4]] == [len(each) for each in wanted[:4]] == [1, 2, 2, 4]


def test_random_results_are_not_drawn_again_by_gradients() -> None:
    rng, drawn = np.random.default_rng(0), []

    def noise() -> Any:
        drawn.append(rng.random(1000))
        return drawn[-1]

    @tg.compile
    def function(x: tg.Tensor) -> tg.Tensor:
        r = host_call(noise, results=((1000,), tg.float64), effect="random")
        return (x * r).sin()  # whose gradient needs the cosine, and the second one the sine

    x = tg.randn(1000, dtype=tg.float64, requires_grad=True)
    (first,) = tg.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), x)
    (r,), at = drawn, x.detach().numpy()
    np.testing.assert_allclose(first.detach().numpy(), np.cos(at * r) * r, rtol=1e-9)
    np.testing.assert_allclose(second.numpy(), -np.sin(at * r) * r * r, rtol=1e-9)


def test_second_gradients_know_what_was_drawn_though_first_ones_do_not_ask() -> None:
    drawn: list[Any] = []

    def noise() -> Any:
        drawn.append(np.full(100, 0.01 * (len(drawn) + 1)))
        return drawn[-1]

    @tg.compile
    def function(x: tg.Tensor) -> tg.Tensor:
        r = host_call(noise, results=((100,), tg.float64), effect="random")
        return (x + r).sum().sin()  # whose gradient reads the cosine alone

    x = tg.zeros(100, dtype=tg.float64, requires_grad=True)
    (first,) = tg.autograd.grad(function(x), x, create_graph=True)
    (second,) = tg.autograd.grad(first[0], x)
    assert len(drawn) == 1
    np.testing.assert_allclose(first[0].item(), np.cos(1.0), rtol=1e-9)
    np.testing.assert_allclose(second.numpy(), np.full(100, -np.sin(1.0)), rtol=1e-9)


def test_what_only_a_backward_reads_is_drawn_with_the_forward() -> None:
    drawn: list[float] = []

    def noise() -> Any:
        drawn.append(len(drawn) + 1.0)
        return np.array(drawn[-1:])

    class Noisy(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
            ctx.save_for_backward(host_call(noise, results=((1,), tg.float64), effect="random"))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: tg.Tensor) -> tg.Tensor:
            (r,) = ctx.saved_tensors
            return grad * r

    for f in (Noisy.apply, tg.compile(lambda x: Noisy.apply(x))):
        drawn.clear()
        x = tg.ones(1, dtype=tg.float64, requires_grad=True)
        y, other = f(x), f(x)
        for times in (1, 2):
            y.backward(retain_graph=True)
            assert drawn == [1.0, 2.0] and x.grad.tolist() == [1.0 * times]
        other.backward()
        assert drawn == [1.0, 2.0] and x.grad.tolist() == [4.0]


def test_there_is_no_gradient_but_a_way_out() -> None:
    def function(x: tg.Tensor) -> tg.Tensor:
        return host_call(np.cbrt, x, results=x) * 2

    for f in (function, tg.compile(function)):
        y = f(tg.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match=r"'cbrt' is not known.* tg.autograd.Function"):
            y.sum().backward()
        assert not f(tg.ones(2)).requires_grad

    class Cbrt(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
            y = host_call(np.cbrt, x, results=x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: tg.Tensor) -> tg.Tensor:
            (y,) = ctx.saved_tensors
            return grad / (3 * y.square())

    for f in (Cbrt.apply, tg.compile(lambda x: Cbrt.apply(x))):
        x = tg.full((2,), 8.0, requires_grad=True)
        f(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 1 / 12, rtol=1e-6)


# --- failures, checks, plans on disk ---


def test_a_call_that_fails_is_not_made_again() -> None:
    log = Log()

    def refuse(x: Any) -> Any:
        log(x)
        raise KeyError("refused")

    def function(x: tg.Tensor, at: tg.Tensor, refused: bool) -> Any:
        x.add_(1)
        y = x[at]  # may fail
        if refused:
            host_call(refuse, y, effect="ordered")
        log.note(y)
        return y

    x, compiled = tg.zeros(2), tg.compile(function)
    for f in (function, compiled):
        x.zero_()
        f(x, tg.tensor([1]), False)
        with pytest.raises(KeyError, match="refused"):
            f(x, tg.tensor([0]), True)
        assert log.taken() == [[[1.0]], [[2.0]]]
        assert x.tolist() == ([2.0] * 2 if f is function else [1.0] * 2)
        with pytest.raises(IndexError):  # before any call has begun: as eager code leaves it
            f(x, tg.tensor([5]), True)
        assert log.taken() == [] and x.tolist() == ([3.0] * 2 if f is function else [2.0] * 2)


def test_an_error_while_tracing_comes_behind_the_calls_before_it() -> None:
    log = Log()

    @tg.compile
    def function(x: tg.Tensor) -> None:
        log.note(x)
        raise KeyError("of the function")

    for _ in range(2):
        with pytest.raises(KeyError, match="of the function"):
            function(tg.ones(1))
    assert log.taken() == [[[1.0]]] * 2


@pytest.mark.parametrize("effect", ["random", "ordered"])
def test_what_runs_twice_refuses_effects(effect: str) -> None:
    log = Log()

    def noted(x: Any) -> Any:
        log(x)
        return x

    def function(x: tg.Tensor) -> Any:
        return host_call(noted, x, results=x, effect=effect) + 1

    with pytest.raises(CheckError, match=f"'noted' twice, a host_call with the effect .{effect}"):
        tg.compile(function, check=True)(tg.ones(2))
    with pytest.raises(NotImplementedError, match="must not happen to 'noted'"):
        tg.compile(function).explain(tg.ones(2), measure=True)
    assert log.taken() == []
    pure = tg.compile(lambda x: host_call(np.cbrt, x, results=x) + 1, check=True)
    assert pure(tg.ones(2)).tolist() == [2.0, 2.0]


def test_no_plan_with_a_python_function_is_stored() -> None:
    graph = tg.trace(lambda x: host_call(np.cbrt, x, results=x, effect="ordered"), tg.ones(2))
    assert graph_key(graph) is None
    token, value = graph.outputs[1], graph.outputs[0]
    assert str(token.type) == "uint8[]" and value.inputs == token.inputs
