"""What makes a compiled function compile again, and what does not."""

import types

import pytest

import tgraph as tg

SCALE = 2.0
WEIGHT = tg.ones(2)


def helper(x):
    return x * SCALE + WEIGHT


class Config:
    factor = 3.0
    unrelated = 1.0

    def __init__(self):
        self.shift = 0.5
        self.other = 7

    def shifted(self, x):
        return x + self.shift


CONFIG = Config()
X = tg.tensor([1.0, 2.0])


def reasons(function):
    return [record.reason for record in function.compiles]


def holds(function, *args):
    """The function gives what eager code gives."""
    assert tg.allclose(function(*args), function.function(*args))


def test_globals_are_watched_through_helpers(monkeypatch):
    function = tg.compile(lambda x: helper(x) + 1)
    holds(function, X)
    holds(function, X)
    assert len(function.compiles) == 1
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    holds(function, X)
    monkeypatch.setitem(globals(), "WEIGHT", tg.zeros(2))
    holds(function, X)
    monkeypatch.setitem(globals(), "helper", lambda x: -x)
    holds(function, X)
    assert reasons(function)[1].startswith("`SCALE` changed: 2.0 -> 5.0")
    assert reasons(function)[2] == (
        "`WEIGHT` is another object: a tensor of type float32[2]; `WEIGHT` is an input from now on"
    )
    assert reasons(function)[3] == "`helper` is another object: a function"
    monkeypatch.undo()
    holds(function, X)
    assert len(function.compiles) == 4


def test_closures_are_watched():
    def make(scale, weight):
        def change(to):
            nonlocal scale, weight
            scale, weight = to

        return change, tg.compile(lambda x: x * scale + weight)

    change, function = make(2, tg.ones(2))
    holds(function, X)
    change((3, tg.ones(2)))
    holds(function, X)
    change((3.0, tg.ones(2)))
    holds(function, X)
    assert len(function.compiles) == 3


def test_attributes_that_code_names_are_watched():
    config = Config()
    function = tg.compile(lambda x: config.shifted(x) * config.factor)
    holds(function, X)
    config.other = 8
    Config.unrelated = 2.0
    holds(function, X)
    assert len(function.compiles) == 1
    config.shift = 1.5
    holds(function, X)
    config.factor = 4.0
    holds(function, X)
    assert reasons(function)[1].startswith("`config.shift` changed: 0.5 -> 1.5")
    assert len(function.compiles) == 3


def test_objects_among_the_arguments_are_watched():
    function = tg.compile(lambda config, x: config.shifted(x))
    config = Config()
    holds(function, config, X)
    config.shift = 2.5
    holds(function, config, X)
    holds(function, Config(), X)
    assert len(function.compiles) == 3


def test_attributes_of_python_modules(monkeypatch):
    settings = types.ModuleType("settings")
    settings.rate = 0.5
    function = tg.compile(lambda x: x * settings.rate)
    holds(function, X)
    settings.rate = 0.25
    holds(function, X)
    assert reasons(function)[1].startswith("`settings.rate` changed: 0.5 -> 0.25")


def test_lists_and_dicts_of_tensors():
    weights, table = [tg.ones(2), tg.ones(2)], {"a": 1.0}
    function = tg.compile(lambda x: sum(x * w for w in weights) * table["a"])
    holds(function, X)
    weights.append(tg.ones(2))
    holds(function, X)
    weights[0] = tg.zeros(2)
    holds(function, X)
    table["a"] = 2.0
    holds(function, X)
    assert reasons(function)[1:] == [
        "`len(weights)` changed: 2 -> 3",
        "`weights[0]` is another object: a tensor of type float32[2]; "
        "`weights[0]` is an input from now on",
        "`table['a']` changed: 1.0 -> 2.0; `table['a']` is an input from now on",
    ]


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.Dropout(0.5))
        self.power = 2
        self.register_buffer("offset", tg.ones(2))

    def forward(self, x):
        y = self.layers(x)
        return y.abs() ** self.power + self.offset


@pytest.mark.parametrize("how", ["module", "closure", "argument"])
def test_modules_are_watched(how):
    net = Net().eval()
    if how == "module":
        function = tg.compile(net)
        call = function
    elif how == "closure":
        function = tg.compile(lambda x: net(x))
        call = function
    else:
        function = tg.compile(lambda model, x: model(x))

        def call(x):
            return function(net, x)

    def check():
        tg.manual_seed(0)
        found = call(X)
        tg.manual_seed(0)
        assert tg.allclose(found, net(X), atol=1e-5)

    check()
    check()
    assert len(function.compiles) == 1
    net.train()
    check()
    net.eval()
    check()
    assert len(function.compiles) == 2
    assert reasons(function)[1].endswith("training` changed: False -> True")
    net.layers[1].p = 0.25
    net.train()
    check()
    net.eval()
    net.power = 3
    check()
    net.offset = tg.zeros(2)
    check()
    net.layers[0] = tg.nn.Linear(2, 2)
    check()
    with tg.no_grad():
        net.layers[0].weight.mul_(2)
    check()
    assert len(function.compiles) == 6


def test_tensors_of_the_same_kind_fit_one_plan():
    function = tg.compile(lambda x: x * 2)
    for value in (1.0, 2.0):
        function(tg.full((3,), value))
    assert len(function.compiles) == 1
    function(tg.ones(3, dtype=tg.float64))
    function(tg.ones(3, requires_grad=True))
    function(tg.nn.Parameter(tg.ones(3)))
    function(tg.ones(6)[::2])
    function(tg.ones(3, requires_grad=True) * 1)
    assert reasons(function)[1:] == [
        "new dtype of argument `x`: float32[3] -> float64[3]",
        "argument `x` changed: float32[3] -> float32[3] requiring grad",
        "argument `x` changed: float32[3] requiring grad -> Parameter float32[3] requiring grad",
        "argument `x` changed: float32[3] -> float32[3] with strides (2,)",
        "argument `x` changed: float32[3] requiring grad -> float32[3] with a history",
    ]
    function(tg.ones(4))
    assert reasons(function)[-1] == "new shape of argument `x`: float32[3] -> float32[4]"


def test_a_counter_becomes_an_input():
    counter = {"calls": 0}

    @tg.compile
    def function(x):
        counter["calls"] += 1
        return x * counter["calls"]

    for n in (1, 2, 3, 4):
        assert function(X).tolist() == [n, 2 * n]
        assert counter["calls"] == n
    assert reasons(function)[1:] == [
        "`counter['calls']` changed: 0 -> 1; `counter['calls']` is an input from now on",
    ]


def test_structures_and_kinds_of_arguments():
    function = tg.compile(lambda x: x["a"] if isinstance(x, dict) else x)
    function(X)
    function({"a": X})
    function(3)
    assert reasons(function)[1] == "new structure of arguments"
    assert reasons(function)[2] == "argument `x` is no tensor any more: 3"


def test_modes_are_part_of_the_key():
    function = tg.compile(lambda x: x * 2 + tg.ones(2))
    function(X)
    tg.set_default_dtype(tg.float64)
    try:
        assert function(X).dtype is tg.float64
    finally:
        tg.set_default_dtype(tg.float32)
    assert reasons(function)[1].startswith("default dtype changed")


def test_hooks_of_an_argument_are_those_of_each_call():
    @tg.compile
    def step(w):
        (w * w).sum().backward()

    w = tg.tensor([1.0, 2.0], requires_grad=True)
    step(w)
    w.grad = None
    handle = w.register_hook(lambda grad: grad * 10)
    step(w)
    assert w.grad.tolist() == [20.0, 40.0]
    w.grad = None
    handle.remove()
    step(w)
    assert w.grad.tolist() == [2.0, 4.0]


def test_captured_tensors_are_guarded():
    w = tg.ones(2)
    function = tg.compile(lambda x: x * w)
    function(X)
    w.requires_grad_()
    assert function(X).requires_grad
    assert reasons(function)[1] == (
        "captured tensor `w` changed: float32[2] -> float32[2] requiring grad"
    )


def test_host_scalars_and_constants():
    settings = {"rate": 0.5, "steps": 2}

    @tg.compile
    def function(x):
        rate = tg.tracing.host_scalar(lambda: settings["rate"])
        for _ in range(tg.tracing.host_constant(lambda: settings["steps"])):
            x = x * rate + 1
        return x

    for rate, steps in ((0.5, 2), (0.25, 2), (3.0, 2), (3.0, 3), (0.5, 3)):
        settings.update(rate=rate, steps=steps)
        holds(function, X)
    assert reasons(function) == [
        "first call",
        "a setting changed: 2 -> 3",
    ]
    assert tg.tracing.host_scalar(lambda: 0.5) == 0.5


def test_a_host_scalar_that_is_compared_is_fixed():
    settings = {"decay": 0.0}

    @tg.compile
    def function(x):
        decay = tg.tracing.host_scalar(lambda: settings["decay"])
        return x - decay * x if decay != 0 else x * 1

    for decay in (0.0, 0.5, 0.0):
        settings["decay"] = decay
        holds(function, X)
    assert reasons(function) == ["first call", "a setting changed: 0.0 -> 0.5"]
    settings["decay"] = 0.25
    holds(function, X)
    assert reasons(function)[2] == "a setting changed: 0.5 -> 0.25"


def test_a_graph_to_look_at_has_a_host_scalar_that_is_compared_as_it_is():
    graph = tg.trace(lambda x: x if tg.tracing.host_scalar(lambda: 2.0) < 1 else -x, tg.ones(2))
    assert "neg" in str(graph)


def test_host_scalars_with_a_dtype_are_tensors():
    function = tg.compile(lambda x: tg.tracing.host_scalar(lambda: 0.5, tg.float64) * x)
    assert function(X).tolist() == [0.5, 1.0]
    assert function(tg.tensor(1.0)).dtype is tg.float64


def test_the_default_dtype_is_asked_at_each_call() -> None:
    make = tg.compile(lambda x: tg.ones(2))
    assert make(tg.ones(2)).dtype is tg.float32
    tg.set_default_dtype(tg.float64)
    try:
        assert make(tg.ones(2, dtype=tg.float32)).dtype is tg.float64
    finally:
        tg.set_default_dtype(tg.float32)


def test_a_gradient_may_lie_in_another_order_than_at_the_first_call():
    values, w = tg.arange(6.0), tg.full((2, 3), 2.0, requires_grad=True)
    function = tg.compile(lambda w: w.grad * w)
    for grad in (values.reshape(2, 3), values.reshape(3, 2).t(), values.reshape(2, 3)):
        w.grad = grad
        assert function(w).tolist() == (grad * 2).tolist()
