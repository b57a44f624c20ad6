"""What is kept of plans that are made again and again, and what is said of it."""

import gc
import warnings
import weakref

import pytest

import tgraph as tg
from tgraph.compiled import compiled_function
from tgraph.compiled.compiled_call import CompiledCall

X = tg.tensor([1.0, 2.0])


def living_plans():
    gc.collect()
    return sum(1 for each in gc.get_objects() if type(each) is CompiledCall)


class Holder:
    def __init__(self, weight, kind):
        self.weight, self.kind = weight, kind


@pytest.mark.filterwarnings("ignore::tgraph.RecompileWarning")
def test_evicted_plans_are_freed(monkeypatch):
    monkeypatch.setattr("tgraph.compiled.compiled_function.MAX_PLANS", 3)
    holder = Holder(tg.ones(2), "0")
    function = tg.compile(lambda x: x * holder.weight + len(holder.kind))
    before, seen = living_plans(), []
    for n in range(20):
        holder.kind = str(n)
        holder.weight = tg.full((2,), float(n))
        seen.append(weakref.ref(holder.weight))
        assert function(X).tolist() == [1.0 * n + len(str(n)), 2.0 * n + len(str(n))]
    assert len(function.compiles) == 20
    assert living_plans() - before <= 3
    assert sum(each() is not None for each in seen) <= 4
    del function
    assert living_plans() == before


def test_tensors_that_are_swapped_are_inputs():
    """A plan for each of them would keep them all."""
    holder = Holder(tg.ones(2), "a")
    function = tg.compile(lambda x: x * holder.weight)
    seen = []
    for n in range(20):
        holder.weight = tg.full((2,), float(n))
        seen.append(weakref.ref(holder.weight))
        assert function(X).tolist() == [n, 2 * n]
    assert len(function.compiles) == 2
    gc.collect()  # one is in a cycle, which Python collects when it likes
    assert sum(each() is not None for each in seen) <= 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tgraph.RecompileWarning")
def test_memory_is_flat_over_many_plans(monkeypatch):
    monkeypatch.setattr(compiled_function, "MAX_PLANS", 4)
    holder = Holder(X, "a")
    function = tg.compile(lambda x: x + len(holder.kind))
    counts = []
    for n in range(2_000):
        holder.kind = f"{n}"
        function(X)
        if n % 500 == 400:
            counts.append((living_plans(), len(gc.get_objects())))
    assert max(plans for plans, _ in counts) <= counts[0][0]
    # Beside a record of each compilation, which is four numbers and a text.
    assert counts[-1][1] - counts[0][1] <= 3 * 1_500


def warned_by(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [each for each in seen if each.category is tg.RecompileWarning]


def test_many_plans_are_warned_of_with_the_reason_and_the_way_out():
    names = ["a"]
    function = tg.compile(lambda x: x * 2 if names[0] else x)

    def rename():
        for n in range(12):
            names[0] = f"name {n}"
            function(X)

    (warning,) = warned_by(rename)
    text = str(warning.message)
    assert "was compiled 8 times, 7 of them for this reason: `names[0]` changed" in text
    assert "Pass what changes as a tensor" in text and "`compiles`" in text
    assert warning.filename == __file__


def test_one_tensor_given_twice_has_a_plan_of_its_own():
    function = tg.compile(lambda x, y: x * y)
    for other in (X, X + 1, X + 2, X):
        assert function(X, other).tolist() == (X * other).tolist()
    assert [each.reason for each in function.compiles] == [
        "first call",
        "arguments `x` and `y` are no longer one tensor",
    ]


def test_shapes_have_a_way_out_of_their_own():
    function = tg.compile(lambda x: x * 2)
    (warning,) = warned_by(lambda: [function(tg.ones(n)) for n in range(1, 12)])
    assert "new shape of argument `x`" in str(warning.message)
    assert "dynamic" in str(warning.message)
    assert "pad tensors" in str(warning.message)


def test_numbers_that_change_are_inputs_where_their_value_is_not_asked_for():
    state = {"n": 0, "scale": 1.0}

    def function(x, count):
        return x * state["n"] + count * state["scale"] - (state["n"] * 2 + 1) % 5

    compiled = tg.compile(function)
    for n in (0, 1, 5, -3, 2**40, 7):
        state["n"], state["scale"] = n, n / 4
        found, wanted = compiled(X, n + 1), function(X, n + 1)
        assert found.dtype is wanted.dtype and tg.allclose(found, wanted)
    assert len(compiled.compiles) == 2


def test_a_number_that_becomes_something_else():
    def scaled(x, factor=None):
        return x if factor is None else x * factor

    compiled, x = tg.compile(scaled), tg.ones(2)
    for factor in (0.5, 1.5, tg.tensor(2.5), None, 3.5, True, False, 2, 3):
        assert tg.equal(compiled(x, factor), scaled(x, factor)), factor


def test_integers_promote_as_integers():
    compiled = tg.compile(lambda x, n: x * n)
    counts = tg.tensor([1, 2])
    for n in (2, 3, 4):
        assert compiled(counts, n).dtype is tg.int64
        assert compiled(counts, n).tolist() == [n, 2 * n]
    assert len(compiled.compiles) == 2


def test_numbers_become_tensors_where_each_value_has_a_place_in_the_dtype():
    def made(x, n):
        return tg.tensor(n), tg.tensor([n, 0.5]), tg.as_tensor(n, dtype=tg.float64), x.new_tensor(n)

    f, narrow = tg.compile(made), tg.compile(lambda x, n: tg.tensor(n, dtype=tg.int8) + x)
    for number in (1, 2, -(2**63), 2**63 - 1):
        for have, want in zip(f(tg.ones(2), number), made(tg.ones(2), number), strict=True):
            assert have.dtype is want.dtype and have.tolist() == want.tolist()
    assert len(f.compiles) == 2
    for number in (1, 2, -128):
        assert narrow(tg.zeros((), dtype=tg.int8), number).item() == number
    with pytest.raises(RuntimeError, match="without overflow"):
        narrow(tg.zeros((), dtype=tg.int8), 128)


def test_an_integer_that_decides_stays_fixed():
    compiled = tg.compile(lambda x, n: tg.cat([x] * n) if n < 4 else x[: n - 3])
    for n in (1, 2, 3, 4, 5, 2):
        assert tg.equal(compiled(X, n), compiled.function(X, n))
    assert len(compiled.compiles) == 5


@pytest.mark.filterwarnings("ignore::tgraph.RecompileWarning")
def test_classes_and_functions_go_with_their_last_user():
    seen = []

    def once(n):
        class Scale:
            factor = n

            def __call__(self, x):
                return x * self.factor + type(self).factor

        scale = Scale()
        assert tg.compile(lambda x: scale(x))(X).tolist() == [2.0 * n, 3.0 * n]
        seen.extend((weakref.ref(Scale), weakref.ref(scale), weakref.ref(Scale.__call__)))

    for n in range(4):
        once(n)
    gc.collect()
    assert [each() for each in seen] == [None] * 12
