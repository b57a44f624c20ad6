"""Results, containers, static values and floats of compiled functions."""

import copy
import dataclasses
import enum
import functools
import math
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import tgraph as tg


def both(function, *args):
    """The results of a function eagerly and compiled, which must agree; gives the compiled one."""
    compiled = tg.compile(function)
    eager, result = function(*args), compiled(*args)
    again = compiled(*args)
    for wanted, *found in zip(*map(tg.pytree.leaves, (eager, result, again)), strict=True):
        for each in found:
            assert type(each) is type(wanted)
            if isinstance(wanted, tg.Tensor):
                assert each.dtype is wanted.dtype and each.shape == wanted.shape
                np.testing.assert_allclose(
                    each.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6
                )
            else:
                assert each == wanted
    assert len(compiled.compiles) == 1
    return result


X = tg.tensor(np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32))
Y = tg.tensor(np.random.default_rng(1).standard_normal((4,)).astype(np.float32))

FUNCTIONS = {
    "arithmetic": lambda x, y: (x + y) * 2 - x / (y * y + 1),
    "reduction": lambda x, y: (x.sum(), x.mean(1), (x * y).amax(0)),
    "softmax": lambda x, y: x.softmax(-1) @ y,
    "views": lambda x, y: x.t().reshape(2, 6)[:, ::2] + 1,
    "comparison": lambda x, y: tg.where(x > y, x, -y),
    "matmul": lambda x, y: (x @ y, x @ x.t()),
    "indexing": lambda x, y: x[tg.tensor([2, 0, 1])][:, 1:3],
    "creation": lambda x, y: x + tg.arange(4) + tg.ones(3, 1) + tg.tensor([1.0, 2.0, 3.0, 4.0]),
    "constant only": lambda x, y: tg.zeros(2, 2),
    "same twice": lambda x, y: (x + 1, x + 1),
    "integers": lambda x, y: (x * 10).to(tg.int64) // 3,
    "unrolled": lambda x, y: sum(row * len(row) for row in x.unbind()),
    "static results": lambda x, y: {"n": x.shape[0], "name": "x", "none": None, "value": x * 1},
    "nothing": lambda x, y: None,
    "clone": lambda x, y: x.clone(),
    "casts": lambda x, y: x.half() + y.double().sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager(name):
    both(FUNCTIONS[name], X, Y)


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class State:
    weight: Any
    steps: int
    more: Any = None


def test_containers_go_in_and_come_out():
    def function(state, extra, *, scale):
        assert isinstance(state, State) and isinstance(extra["p"], Point)
        new = State(state.weight * scale + extra["p"].x, state.steps + 1, [extra["p"]])
        return {"state": new, "list": [(state.weight,), extra]}

    compiled = tg.compile(function)
    arguments = State(X, 3), {"p": Point(Y, 2), "k": "v"}
    eager, result = function(*arguments, scale=2), compiled(*arguments, scale=2)
    wanted, found = tg.pytree.flatten(eager), tg.pytree.flatten(result)
    assert wanted[1] == found[1]
    assert result["state"].steps == 4 and result["state"].more[0].x is Y
    assert result["list"][0][0] is X
    np.testing.assert_allclose(result["state"].weight.numpy(), (X * 2 + Y).numpy())
    compiled(*arguments, scale=2)
    assert len(compiled.compiles) == 1


def test_a_tensor_can_be_unpacked():
    """The names say how often: that is no loop written out."""

    def function(x):
        q, k, v = x
        (a, b), c = k[0], v[0]
        return q @ k.t() + v.sum() + a - b * c

    x = tg.randn(3, 2, 2)
    assert tg.allclose(tg.compile(function)(x), function(x), atol=1e-6)

    @tg.compile
    def as_many_as_there_are(x):
        first, *others = x
        return first * len(others)

    with pytest.raises(tg.TraceError, match="iterating over a tensor"):
        as_many_as_there_are(x)


def test_keyword_arguments_and_defaults():
    @tg.compile
    def function(x, power=2, *, flip=False):
        return (-x if flip else x) ** power

    assert function(Y).tolist() == (Y**2).tolist()
    assert function(Y, power=3).tolist() == pytest.approx((Y**3).tolist())
    assert function(flip=True, x=Y, power=3).tolist() == pytest.approx((-(Y**3)).tolist())
    assert function(x=Y, power=3, flip=True).tolist() == pytest.approx((-(Y**3)).tolist())
    assert len(function.compiles) == 3


def test_results_own_their_memory():
    function = tg.compile(lambda x: (x + 1, x.clone()))
    first, copy = function(Y)
    kept = first.tolist()
    function(Y * 2)
    assert first.tolist() == kept
    copy.zero_()
    assert Y.abs().sum() > 0


def test_untouched_arguments_come_back_as_they_are_and_views_are_views():
    weight = tg.zeros(4)

    @tg.compile
    def function(x):
        return x, x[1:], weight, weight.reshape(2, 2), x.detach()

    x = tg.ones(3)
    for _ in range(2):
        same, part, captured, shaped, detached = function(x)
        assert same is x and captured is weight
        part.zero_()
        assert x.tolist() == [1, 0, 0]
        shaped.add_(1)
        detached[0] = 1
    assert weight.tolist() == [2, 2, 2, 2]


def test_a_view_of_a_result_is_a_view_of_it():
    whole, part = tg.compile(lambda x: (y := x + 1, y[0]))(X)
    part.zero_()
    assert whole[0].tolist() == [0, 0, 0, 0]


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


def test_static_values_are_part_of_the_key():
    @tg.compile
    def function(x, mode, count, name, dtype, flag):
        x = x * (2 if mode is Mode.UP else 3)
        for _ in range(count):
            x = x + 1
        return (x if flag is None else -x).to(dtype)

    one = function(Y, Mode.UP, 2, "a", tg.float32, None)
    np.testing.assert_allclose(one.numpy(), (Y * 2 + 2).numpy())
    two = function(Y, Mode.DOWN, 2, "a", tg.float32, None)
    np.testing.assert_allclose(two.numpy(), (Y * 3 + 2).numpy())
    function(Y, Mode.DOWN, 1, "a", tg.float32, None)
    function(Y, Mode.DOWN, 1, "a", tg.float64, None)
    function(Y, Mode.DOWN, 1, "a", tg.float64, True)
    function(Y, Mode.UP, 2, "a", tg.float32, None)
    reasons = [record.reason for record in function.compiles]
    assert reasons[0] == "first call"
    assert reasons[1].startswith("static value `mode` changed:")
    assert reasons[2] == "static value `count` changed: 2 -> 1"
    assert reasons[4] == "static value `flag` changed: None -> True"
    assert len(reasons) == 5


def test_one_true_and_one_point_zero_are_different():
    function = tg.compile(lambda x, n: x * n)
    x = tg.tensor([1, 2])
    assert function(x, 1).dtype is tg.int64
    assert function(x, 1.0).dtype is tg.float32
    assert function(x, True).dtype is tg.int64
    assert len(function.compiles) == 3


# --- floats --------------------------------------------------------------------------------------


def test_a_float_that_changes_becomes_an_input():
    @tg.compile
    def function(x, scale, shift=0.5):
        return x * scale + (1 - scale) * shift

    for scale in (0.5, 0.25, 0.125, math.inf, -0.0, 3.0):
        eager = X * scale + (1 - scale) * 0.5
        result = function(X, scale)
        assert result.dtype is tg.float32
        np.testing.assert_allclose(result.numpy(), eager.numpy(), rtol=1e-6)
    assert [record.reason for record in function.compiles] == [
        "first call",
        "static value `scale` changed: 0.5 -> 0.25; `scale` is an input from now on",
    ]


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64, tg.int64])
def test_an_input_float_promotes_like_a_number(dtype):
    function = tg.compile(
        lambda x, s: (x * s, s * x, x + s, s - x, tg.maximum(x.new_ones(1) * s, x))
    )
    x = tg.tensor([1, 2, 3], dtype=dtype)
    for scale in (0.3, 0.7, 1.1):
        eager = function.function(x, scale)
        result = function(x, scale)
        for a, b in zip(eager, result, strict=True):
            assert a.dtype is b.dtype
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3)
    assert len(function.compiles) == 2


def test_a_float_whose_value_is_asked_for_stays_fixed():
    @tg.compile
    def function(x, scale, limit):
        if scale > limit:
            return x * math.sqrt(scale)
        return -x

    for scale in (4.0, 9.0, 1.0):
        wanted = Y * math.sqrt(scale) if scale > 2 else -Y
        np.testing.assert_allclose(function(Y, scale, 2.0).numpy(), wanted.numpy())
    assert len(function.compiles) == 3
    function(Y, 9.0, 2.0)
    assert len(function.compiles) == 3


def test_a_float_that_is_returned_is_a_float_again():
    function = tg.compile(lambda x, s: (s * 2, x))
    for scale in (0.5, 0.75, 1.5):
        value, _ = function(Y, scale)
        assert type(value) is float and value == scale * 2


def test_numpy_arrays_are_refused():
    with pytest.raises(TypeError, match=r"argument `x` .* NumPy array.*tg\.from_numpy"):
        tg.compile(lambda x: x)(np.ones(3))


# --- calls ---------------------------------------------------------------------------------------


def test_methods_have_plans_of_their_own():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @tg.compile
        def scale(self, x):
            return x * self.factor

    two, three = Scaler(2.0), Scaler(3.0)
    assert two.scale(Y).tolist() == (Y * 2).tolist()
    assert three.scale(Y).tolist() == (Y * 3).tolist()
    assert len(two.scale.compiles) == len(three.scale.compiles) == 1
    assert two.scale is two.scale
    two.factor = 4.0
    assert two.scale(Y).tolist() == (Y * 4).tolist()
    assert two.scale.compiles[1].reason.startswith("`self.factor` changed: 2.0 -> 4.0")


def test_methods_of_objects_without_a_dictionary():
    class Slotted:
        __slots__ = ("factor",)

        def __init__(self, factor):
            self.factor = factor

        @tg.compile
        def scale(self, x):
            return x * self.factor

    two, three = Slotted(2.0), Slotted(3.0)
    assert two.scale(Y).tolist() == (Y * 2).tolist()
    assert three.scale(Y).tolist() == (Y * 3).tolist()


def test_compiled_modules_are_still_modules():
    model = tg.nn.Sequential(tg.nn.Linear(4, 2), tg.nn.ReLU())
    compiled = tg.compile(model)
    np.testing.assert_allclose(
        compiled(X).detach().numpy(), model(X).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert isinstance(compiled, tg.nn.Module) and compiled._orig_mod is model
    assert [*compiled.parameters()] == [*model.parameters()]
    assert compiled.training and compiled.eval() is compiled and not model.training
    compiled.word = "said"
    assert model.word == compiled.word == "said" and "compiles" not in model.__dict__
    del compiled.word
    assert not hasattr(model, "word")
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'word'"):
        _ = compiled.word
    again = tg.compile(compiled)
    assert again._orig_mod is model and len(compiled.compiles) == 1 and not again.compiles
    seen = []
    with compiled.register_forward_hook(lambda module, args, output: seen.append(output.shape)):
        compiled(X)
    compiled(X)
    assert seen == [(*X.shape[:-1], 2)]
    assert tg.draw(compiled, None, X) is not None


def test_pytorch_s_options_are_accepted():
    given = {"fullgraph": True, "backend": "inductor", "mode": "reduce-overhead"}
    assert tg.compile(lambda x: x * 2, **given)(Y).tolist() == (Y * 2).tolist()
    decorated = tg.compile(dynamic=False, options={"triton.cudagraphs": True})(lambda x: x + 1)
    assert decorated(Y).tolist() == (Y + 1).tolist()
    model = tg.nn.Linear(4, 2)
    assert tg.compile(model, disable=True) is model
    model.compile(disable=True)
    assert model._compiled_call_impl is None
    model.compile(mode="max-autotune")
    assert model._compiled_call_impl is not None and model(X).shape == (3, 2)
    with pytest.raises(RuntimeError, match="Unrecognized mode=fastest, should be one of: default"):
        tg.compile(model, mode="fastest")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        tg.compile(model, mode="default", options={})
    with pytest.raises(NotImplementedError, match="would be given PyTorch"):
        tg.compile(model, backend=lambda graph, inputs: graph)


def test_a_compiled_module_is_a_part_of_another():
    """Its parameters are found, its keys are PyTorch's, and inside of a trace it is traced."""

    class Whole(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = tg.nn.Linear(4, 3)
            self.inner = tg.compile(self.inner)
            self.outer = tg.nn.Linear(3, 1)

        def forward(self, x):
            return self.outer(self.inner(x).tanh() * self.inner.bias.sum() * self.inner.in_features)

    whole = Whole()
    assert list(whole.state_dict())[:2] == ["inner._orig_mod.weight", "inner._orig_mod.bias"]
    plain = copy.deepcopy(whole)
    plain.load_state_dict(whole.state_dict())
    assert plain.inner.weight is not whole.inner.weight
    losses = []
    for model, run_compiled in ((whole, True), (plain, False)):
        optimizer = tg.optim.SGD(model.parameters(), lr=0.01)

        def step(x, model=model, optimizer=optimizer):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = tg.compile(step) if run_compiled else step
        losses.append([run(X).item() for _ in range(4)])
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][3] < losses[0][0]
    whole.inner.bias = tg.nn.Parameter(tg.zeros(3))  # is watched, as that of any module
    tg.testing.assert_close(tg.compile(whole)(X), whole(X))
    np.testing.assert_allclose(whole(X).detach(), whole.outer.bias.detach().expand(len(X), 1))


class Model(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = tg.nn.Parameter(tg.ones(4))

    @tg.compile
    def forward(self, x):
        return x * self.weight


@tg.compile
def doubled(x):
    return x * 2


def test_inputs_of_a_module_are_called_what_its_forward_calls_them():
    layer = tg.nn.Linear(2, 3)
    compiled = tg.compile(layer)
    compiled(tg.ones(1, 2))
    compiled(tg.ones(4, 2))
    reason = "new shape of argument `input`: float32[1, 2] -> float32[4, 2]"
    assert compiled.compiles[-1].reason == reason
    for graph in (compiled.graph(tg.ones(4, 2)), tg.trace(layer, tg.ones(4, 2))):
        assert graph.inputs[0].attrs["name"] == "input"


def test_copies_and_pickles_begin_without_plans():
    model = Model()
    wanted = model(X).tolist()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with tg.no_grad():
            other.weight.mul_(2)
        assert other(X).tolist() != wanted
        assert len(other.forward.compiles) == 1
    assert model(X).tolist() == wanted and len(model.forward.compiles) == 1
    assert [*dict(model.named_parameters())] == ["weight"]

    assert pickle.loads(pickle.dumps(doubled)) is doubled
    compiled = tg.compile(model)
    other = copy.deepcopy(compiled)
    assert other(X).tolist() == wanted and other.weight is not compiled.weight
    assert pickle.loads(pickle.dumps(compiled))(X).tolist() == wanted


def test_class_and_static_methods():
    class Scaler:
        factor = 3.0

        @classmethod
        @tg.compile
        def scale(cls, x):
            return x * cls.factor

        @staticmethod
        @tg.compile
        def double(x):
            return x * 2

    assert Scaler.scale(Y).tolist() == Scaler().scale(Y).tolist() == (Y * 3).tolist()
    assert Scaler.double(Y).tolist() == Scaler().double(Y).tolist() == (Y * 2).tolist()
    Scaler.factor = 4.0
    assert Scaler.scale(Y).tolist() == (Y * 4).tolist()


def test_nested_and_recursive_calls_are_inlined():
    @tg.compile
    def inner(x):
        return x * 2

    @tg.compile
    def outer(x, depth):
        return inner(x) if depth == 0 else outer(x + 1, depth - 1)

    assert outer(Y, 2).tolist() == ((Y + 2) * 2).tolist()
    assert len(outer.compiles) == 1 and not inner.compiles


def test_exceptions_pass_through_and_leave_behind_what_eager_code_does():
    w = tg.ones(3, requires_grad=True)

    @tg.compile
    def function(x, fail):
        (w * x).sum().backward()
        w.detach().mul_(3)
        if fail:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        function(tg.ones(3), True)
    assert w.grad.tolist() == [1, 1, 1] and w.tolist() == [3, 3, 3] and w._version == 1
    assert not tg.tracing.is_tracing()
    function(tg.ones(3), False)
    assert w.grad.tolist() == [2, 2, 2] and w.tolist() == [9, 9, 9]


def test_the_environment_can_turn_compiling_off(monkeypatch):
    monkeypatch.setenv("TGRAPH_COMPILE", "0")
    seen = []

    @tg.compile
    def function(x):
        seen.append(x.tolist())
        return x + 1

    assert function(tg.ones(1)).tolist() == [2]
    assert function(tg.zeros(1)).tolist() == [1]
    assert seen == [[1], [0]] and not function.compiles


def test_decorating_with_and_without_arguments():
    def function(x):
        """Doc."""
        return x * 2

    for made in (tg.compile(function), tg.compile()(function), tg.compile(check=True)(function)):
        assert made(Y).tolist() == (Y * 2).tolist()
        assert made.__name__ == "function" and made.__doc__ == "Doc."
    with pytest.raises(TypeError, match="compile expected a function or module, got int"):
        tg.compile(3)


def test_old_plans_are_dropped(monkeypatch):
    monkeypatch.setattr(sys.modules["tgraph.compiled.compiled_function"], "MAX_PLANS", 3)
    function = tg.compile(lambda x, n: x * int(n))
    for n in range(5):
        function(Y, n)
    function(Y, 4)
    assert len(function.compiles) == 5
    function(Y, 0)
    assert len(function.compiles) == 6


def test_half_precision_and_empty_tensors():
    both(lambda x: (x * 2).sum(), X.half())
    both(lambda x: (x * 2).sum(0), tg.zeros(0, 3))
    both(lambda x: x.reshape(3, 0), tg.zeros(0, 3))


# -- values that are no tensors --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Settings:
    dtype: tg.dtype
    scale: float


VALUES = {
    "to": (lambda x, d: x.to(d) * 2, [tg.float64, tg.float32, tg.int64, tg.float16]),
    "zeros": (lambda x, d: tg.zeros(3, dtype=d) + x.to(d), [tg.float64, tg.int32]),
    "softmax": (lambda x, d: tg.softmax(x, 0, dtype=d), [tg.float64, tg.float32]),
    "sum": (lambda x, d: x.sum(dtype=d), [tg.float64, tg.int64]),
    "identity": (lambda x, d: x * (2 if d is tg.float32 else 3), [tg.float32, tg.float64]),
    "device": (lambda x, d: x.to(d) + tg.ones(3, device=d), [tg.device("cpu"), "cpu"]),
    "size": (lambda x, d: x.expand(d) if len(d) > 1 else x.reshape(d), [tg.Size([2, 3]), (3,)]),
    "mode": (lambda x, d: x * (2 if d is Mode.UP else 3), [Mode.UP, Mode.DOWN]),
    "settings": (
        lambda x, d: x.to(d.dtype) * d.scale,
        [Settings(tg.float64, 2.0), Settings(tg.float32, 2.0), Settings(tg.float32, 3.0)],
    ),
    "in a dict": (lambda x, d: x.to(d["type"][0]), [{"type": [tg.float64]}, {"type": [tg.int8]}]),
}


@pytest.mark.parametrize("keyword", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_dtypes_devices_and_sizes_are_values(name, keyword):
    function, values = VALUES[name]
    compiled, x = tg.compile(function), tg.tensor([1.0, 2.0, 3.0])
    for value in [*values, *values]:
        found = compiled(x, d=value) if keyword else compiled(x, value)
        wanted = function(x, value)
        assert found.dtype is wanted.dtype and found.shape == wanted.shape
        assert tg.allclose(found.double(), wanted.double())


def test_a_dtype_that_is_returned_is_the_dtype():
    assert tg.compile(lambda x, d: (x.dtype, d, x.device, x.shape))(Y, tg.int8) == (
        tg.float32, tg.int8, Y.device, Y.shape,
    )  # fmt: skip
    found = tg.compile(lambda x: x.dtype)(Y)
    assert found is tg.float32


def test_named_tuples_of_ours_are_containers():
    found = tg.compile(lambda x: x.max(dim=0, keepdim=True))(tg.ones(3, 4))
    assert type(found) is type(tg.ones(3, 4).max(dim=0, keepdim=True))
    assert found.values.tolist() == [[1, 1, 1, 1]] and found.indices.shape == (1, 4)


def test_no_plan_shows_memory_that_nothing_wrote():
    """A dtype that is not the one of its name: kernels take it for another one."""
    stranger = object.__new__(type(tg.float64))
    for name in ("name", "kind", "bits", "wider", "numpy"):
        object.__setattr__(stranger, name, getattr(tg.float64, name))
    with pytest.raises(AssertionError, match="output 0 of the plan is not written"):
        tg.compile(lambda x: x.to(stranger) * 2)(Y)


def test_what_wraps_a_compiled_function_is_not_taken_for_it():
    inner = tg.compile(lambda x: (x**3).sum())

    @functools.wraps(inner)
    def outer(x):
        return -inner(x)

    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert inner(x).item() == 100 and tg.compile(outer)(x).item() == -100
    assert tg.compile(tg.vmap(tg.grad(inner)))(x).tolist() == [[3.0, 12.0], [27.0, 48.0]]

    def plain(x):
        return x + 1

    plain.function, plain.check = outer, True
    assert tg.compile(plain)(x).sum().item() == 14
