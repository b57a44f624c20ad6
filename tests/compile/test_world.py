"""Randomness, the clock, files and the environment in compiled functions; what results are."""

import collections
import datetime
import os
import random
import sys
import tempfile
import time
import warnings

import numpy as np
import pytest

import tgraph as tg

X = tg.tensor([1.0, 2.0])
GENERATOR = np.random.default_rng(0)
BITS = np.random.PCG64(1)
OWN = random.Random(0)


def line_of(function, offset=0):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


DRAWS = {
    "random.random": lambda x: x * random.random(),
    "random.randint": lambda x: x * random.randint(0, 5),
    "random.choice": lambda x: x * random.choice([1, 2]),
    "random.shuffle": lambda x: random.shuffle([1, 2]) or x,
    "random.seed": lambda x: random.seed(0) or x,
    "np.random.rand": lambda x: x * float(np.random.rand()),
    "np.random.normal": lambda x: x * tg.from_numpy(np.random.normal(size=2)),
    "np.random.seed": lambda x: np.random.seed(0) or x,
    "a generator of NumPy": lambda x: x * float(GENERATOR.random()),
    "a generator of Python": lambda x: x * OWN.random(),
    "as a callback": lambda x: x * next(map(random.uniform, [0.0], [1.0])),
    "a bit generator": lambda x: x * float(BITS.random_raw() % 7),
    "os.urandom": lambda x: x * os.urandom(1)[0],
    "default_rng": lambda x: x * float(np.random.default_rng().random()),
    "default_rng of None": lambda x: x * float(np.random.default_rng(seed=None).random()),
    "random.Random": lambda x: x * random.Random().random(),
    "SystemRandom": lambda x: x * random.SystemRandom(1).random(),
    "RandomState": lambda x: x * float(np.random.RandomState().rand()),
    "PCG64": lambda x: x * float(np.random.Generator(np.random.PCG64()).random()),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_of_others_are_refused(name):
    before = random.getstate(), GENERATOR.bit_generator.state, np.random.get_state()[2]
    with pytest.raises(tg.TraceError, match="random numbers") as error:
        tg.compile(DRAWS[name])(X)
    assert line_of(DRAWS[name]) in str(error.value) and "tg.rand" in str(error.value)
    assert before == (
        random.getstate(), GENERATOR.bit_generator.state, np.random.get_state()[2]
    )  # fmt: skip


def test_a_generator_made_inside_is_the_functions_own():
    def function(x):
        return x * random.Random(3).random() + float(np.random.default_rng(4).random())

    compiled = tg.compile(function)
    for _ in range(2):
        assert tg.allclose(compiled(X), function(X))


CHANGES = {
    "time.time": lambda x: x * 0 + time.time(),
    "time.perf_counter": lambda x: x * 0 + time.perf_counter(),
    "time.localtime": lambda x: x * time.localtime().tm_sec,
    "time.strftime": lambda x: x * len(time.strftime("%A")),
    "datetime.now": lambda x: x * datetime.datetime.now().second,
    "date.today": lambda x: x * datetime.date.today().day,
    "tempfile.mkdtemp": lambda x: x * len(tempfile.mkdtemp()),
    "tempfile.mktemp": lambda x: x * len(tempfile.mktemp()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_something_else_each_time_is_refused(name):
    with pytest.raises(tg.TraceError, match=r"reads the clock|temporary file") as error:
        tg.compile(CHANGES[name])(X)
    assert line_of(CHANGES[name]) in str(error.value) and "tg.host()" in str(error.value)


NOON = datetime.datetime(2020, 1, 2, 12, 30)
GIVEN = {
    "gmtime": lambda x: x * time.gmtime(61).tm_sec,
    "gmtime as a callback": lambda x: x * next(map(time.gmtime, [61])).tm_sec,
    "strftime": lambda x: x * len(time.strftime("%H", (0,) * 9)),
    "strftime of a date": lambda x: x * int(NOON.strftime("%M")),
    "ctime of a date": lambda x: x * len(NOON.ctime()),
    "time of a date": lambda x: x * NOON.time().minute,
    "a time": lambda x: x * datetime.time(12, 30).minute,
}


@pytest.mark.parametrize("name", GIVEN)
def test_times_that_are_given_are_what_they_are(name):
    function = tg.compile(GIVEN[name])
    assert function(X).tolist() == GIVEN[name](X).tolist()


ASKS = {
    "time.sleep": lambda x: time.sleep(0) or x,
    "open": lambda x: x * len(open(__file__).readline()),  # noqa: SIM115
    "os.listdir": lambda x: x * len(os.listdir(".")),
    "os.path.exists": lambda x: x * os.path.exists(__file__),
    "np.load": lambda x: np.load is None or x * len(np.fromfile(__file__, np.uint8)),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ASKS)
def test_files_are_warned_of_once(name):
    function = tg.compile(ASKS[name])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        function(X)
        function(X)
        function(tg.ones(3))
    ours = [each for each in seen if issubclass(each.category, tg.TraceWarning)]
    assert len(ours) == 1 + ("readline" in ASKS[name].__code__.co_names)
    assert ours[0].filename == __file__
    assert ours[0].lineno == ASKS[name].__code__.co_firstlineno
    assert "tg.host()" in str(ours[0].message)


def test_the_environment_is_watched(monkeypatch):
    def function(x):
        y = x * (2 if "TGRAPH_TEST_A" in os.environ else 1)
        y = y + float(os.environ.get("TGRAPH_TEST_B", "0"))
        return y * (3 if os.getenv("TGRAPH_TEST_C") else 1)

    compiled = tg.compile(function)
    for change in ("A", "B", "C"):
        assert tg.equal(compiled(X), function(X))
        monkeypatch.setenv(f"TGRAPH_TEST_{change}", "5")
    assert tg.equal(compiled(X), function(X))
    monkeypatch.setenv("TGRAPH_TEST_D", "5")
    made = len(compiled.compiles)
    assert tg.equal(compiled(X), function(X)) and len(compiled.compiles) == made


# --- tg.host --------------------------------------------------------------------------------------


def test_host_functions_are_called_once_for_each_call():
    calls = []

    def function(x):
        return x * tg.host(lambda: float(len(calls))) + tg.host(lambda: calls.append(1) or 2)

    compiled = tg.compile(function)
    for n in range(4):
        assert compiled(X).tolist() == [1.0 * n + 2, 2.0 * n + 2]
        assert len(calls) == n + 1
    assert len(compiled.compiles) == 1


def test_host_tensors():
    feed = collections.deque(tg.full((2,), float(n)) for n in range(6))
    compiled = tg.compile(lambda x: (x * tg.host(feed.popleft)).sum())
    assert [compiled(X).item() for _ in range(4)] == [0, 3, 6, 9]
    feed.clear()
    feed.append(tg.ones(3))
    with pytest.raises(TypeError, match=r"gave a tensor of type float32\[3\]"):
        compiled(X)


def test_what_host_refuses():
    with pytest.raises(TypeError, match="expected a function that gives a tensor or a number"):
        tg.compile(lambda x: x * len(tg.host(lambda: "text")))(X)
    with pytest.raises(tg.TraceError, match=r"the value of a number of tg\.host"):
        tg.compile(lambda x: x * 2 if tg.host(lambda: 1.0) > 0 else x)(X)
    assert tg.host(lambda: "text") == "text"


# --- results --------------------------------------------------------------------------------------


class Report:
    def __init__(self, values):
        self.values = values


KEPT = Report([1])
RESULTS = {
    "list": lambda x: [1, [2, 3]],
    "dict": lambda x: {"a": {"b": 1}},
    "set": lambda x: {1, 2},
    "array": lambda x: np.zeros(3),
    "object": lambda x: Report([1, 2]),
    "bytearray": lambda x: bytearray(b"ab"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_are_no_tensors_are_made_anew(name):
    function = tg.compile(lambda x: (x * 2, RESULTS[name](x)))
    first, second, third = (function(X)[1] for _ in range(3))
    assert first is not second and second is not third and type(first) is type(second)
    if isinstance(first, list):
        first[1].append(4)
        assert second == third == [1, [2, 3]]
    elif isinstance(first, Report):
        first.values.append(3)
        assert second.values == [1, 2] and second.values is not third.values
    elif isinstance(first, np.ndarray):
        first += 1
        assert second.sum() == 0


def test_an_object_of_the_outside_is_returned_as_it_is():
    function = tg.compile(lambda x: (x, KEPT, KEPT.values, [KEPT.values]))
    for _ in range(2):
        _, kept, values, held = function(X)
        assert kept is KEPT and values is KEPT.values and held[0] is KEPT.values


def test_keywords_keep_their_order():
    function = tg.compile(lambda x, **options: (x, list(options), list(options.values())))
    assert function(X, b=1, a=2)[1:] == (["b", "a"], [1, 2])
    assert function(X, a=2, b=1)[1:] == (["a", "b"], [2, 1])
    plain = tg.compile(lambda x, a, b: x * a + b)
    plain(X, a=1, b=2)
    plain(X, b=2, a=1)
    assert len(plain.compiles) == 1


@pytest.mark.parametrize("operation", [lambda n: 1 / n, lambda n: 5 // n, lambda n: 5 % n])
@pytest.mark.parametrize("values", [(1.0, 2.0, 4.0), (1, 2, 4)])
def test_a_division_by_zero_raises_as_eager_code_does(operation, values):
    function = tg.compile(lambda x, n: x * operation(n))
    for value in values:
        assert tg.allclose(function(X, value), X * operation(value))
    assert len(function.compiles) == 2
    with pytest.raises(ZeroDivisionError):
        function(X, type(values[0])(0))
    assert tg.allclose(function(X, values[1]), X * operation(values[1]))


def test_modules_that_a_gradient_imports_stay(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    class Thirds(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            import colorsys

            return g * colorsys.ONE_THIRD

    @tg.compile
    def thirds(x):
        return x if "no_such_module" in sys.modules else Thirds.apply(x)

    x = tg.ones(2, requires_grad=True)
    for _ in range(2):
        (g,) = tg.autograd.grad(thirds(x).sum(), x)
        np.testing.assert_allclose(g.numpy(), 1 / 3)
    assert "colorsys" in sys.modules
