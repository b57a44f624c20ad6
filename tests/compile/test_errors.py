"""What a traced function cannot do, said with the user's line and the way out."""

import ctypes
import inspect

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.tracing import TraceError

X = tg.tensor([1.0, -2.0, 3.0])


def line_of(function, offset=1):
    return f"{__file__}:{inspect.getsourcelines(function)[1] + offset}"


def uses_bool(x):
    if x.sum() > 0:
        return x
    return -x


def uses_item(x):
    return x * x.sum().item()


def uses_float(x):
    return float(x[0])


def uses_int(x):
    return range(int(x[0]))


def uses_index(x):
    return [1, 2, 3][x[0].long()]


def uses_numpy(x):
    return x.numpy()


def uses_asarray(x):
    return np.asarray(x)


def uses_tolist(x):
    return x.tolist()


def uses_mask(x):
    return tg.cond(x.sum() > 0, lambda: x[x > 0].sum(), lambda: 0.0)


def uses_nonzero(x):
    return tg.cond(x.sum() > 0, lambda: x.nonzero().sum(), lambda: 0)


def uses_iteration(x):
    return [row * 2 for row in x]


CASES = [
    (uses_iteration, "iterating over a tensor", "unbind()"),
    (uses_bool, r"bool\(\)", "tg.where"),
    (uses_item, r"item\(\)", "tensor of no dimensions"),
    (uses_float, r"float\(\)", "tensor of no dimensions"),
    (uses_int, r"int\(\)", "tensor of no dimensions"),
    (uses_index, "Python integer", "Move it out"),
    (uses_numpy, r"numpy\(\)", "tgraph's own functions"),
    (uses_asarray, r"numpy\(\)", "tgraph's own functions"),
    (uses_tolist, r"tolist\(\)", "tensors instead"),
    (uses_mask, "mask", "tg.where, masked_fill"),
    (uses_nonzero, r"nonzero\(\)", "tg.where, masked_fill"),
]


@pytest.mark.parametrize(("function", "what", "way_out"), CASES)
def test_values_are_not_known_while_tracing(function, what, way_out):
    with pytest.raises(tg.TraceError, match=what) as caught:
        tg.compile(function)(X)
    text = str(caught.value)
    assert f"at {line_of(function)}" in text
    assert f"'{function.__name__}' is being traced" in text
    assert way_out in text
    assert isinstance(caught.value, RuntimeError)


def test_what_depends_on_shapes_alone_is_fine():
    @tg.compile
    def function(x):
        rows = [row * 2 for row in x.reshape(3, 1).unbind()]
        assert len(x) == 3 and x.shape[0] == 3 and x.numel() == 3
        return tg.stack(rows), x.dim()

    rows, dimensions = function(X)
    assert rows.tolist() == [[2], [-4], [6]] and dimensions == 1


def test_printing_a_traced_tensor_shows_where_it_was_made(capsys):
    def function(x):
        print(x * 2)

    tg.compile(function)(X)
    assert line_of(function) in capsys.readouterr().out


LEAK = ctypes.py_object(None)  # nothing is known of what it holds


def leaks(x):
    LEAK.value = x * 2
    return x


USES = {
    "operation": lambda leak: leak + 1,
    "other operand": lambda leak: X + leak,
    "in place": lambda leak: leak.add_(1),
    "written": lambda leak: X.clone().copy_(leak),
    "numpy": lambda leak: leak.numpy(),
    "tolist": lambda leak: leak.tolist(),
    "view": lambda leak: leak[0] * 1,
    "captured": lambda leak: tg.compile(lambda: leak * 2)(),
    "argument": lambda leak: tg.compile(lambda x: x * 2)(leak),
    "mixed": lambda leak: tg.compile(lambda x: x * leak)(X),
}


@pytest.mark.parametrize("name", USES)
def test_a_traced_tensor_that_escaped_names_where_it_was_made(name):
    tg.compile(leaks)(X)
    with pytest.raises(RuntimeError) as caught:
        USES[name](LEAK.value)
    assert line_of(leaks) in str(caught.value)
    assert "kept" in str(caught.value) and "trace" in str(caught.value)


def test_a_traced_number_that_escaped():
    kept = ctypes.py_object(None)

    @tg.compile
    def function(x, s):
        kept.value = s * 2
        return x * s

    function(X, 1.0)
    function(X, 2.0)
    with pytest.raises(tg.TraceError, match="used outside of it"):
        kept.value * 2
    with pytest.raises(tg.TraceError, match="used outside of it"):
        tg.compile(lambda x: x * kept.value)(X)


def test_a_failed_trace_can_be_tried_again():
    broken = [True]

    @tg.compile
    def function(x):
        y = x * 2
        return y.sum().item() if broken[0] else y

    with pytest.raises(tg.TraceError):
        function(X)
    broken[0] = False
    assert function(X).tolist() == [2, -4, 6]


def test_shape_errors_name_the_operation():
    with pytest.raises(RuntimeError, match="must match the size"):
        tg.compile(lambda x: x + tg.ones(2))(X)


def test_an_index_out_of_range_names_the_line():
    def function(x, i):
        return x[i]

    compiled = tg.compile(function)
    assert compiled(X, tg.tensor([2, 0])).tolist() == [3, 1]
    with pytest.raises(IndexError, match="index 3 is out of bounds") as caught:
        compiled(X, tg.tensor([0, 3]))
    assert line_of(function) in str(caught.value)


def test_an_error_while_running_leaves_what_came_before():
    state = tg.zeros(2)
    generator = tg.Generator().manual_seed(1)

    @tg.compile
    def function(x, i):
        noise = tg.rand(2, generator=generator)
        picked = x[i]
        state.add_(picked)
        return noise

    function(X, tg.tensor([0, 1]))
    assert state.tolist() == [1, -2] and state._version == 1
    before = generator.counter
    with pytest.raises(IndexError):
        function(X, tg.tensor([0, 9]))
    assert generator.counter == before + 1 and state._version == 1  # as eager code draws first


def test_tracing_inside_a_trace():
    with pytest.raises(tg.TraceError, match=r"tg\.trace cannot be called"):
        tg.compile(lambda x: tg.trace(lambda y: y, x))(X)


@pytest.mark.parametrize("at", [-9, -8, 7, 2**40])
@pytest.mark.parametrize(
    "read",
    [
        lambda x, at: x[at],
        lambda x, at: x.index_select(0, at),
        lambda x, at: tg.take(x, at),
        lambda x, at: x.index_add(0, at, tg.ones(1)),
        lambda x, at: tg.gather(x, 0, at),
        lambda x, at: x.scatter_add(0, at, tg.ones(1)),
        lambda x, at: x.index_put((at,), tg.ones(1)),
    ],
)
def test_a_position_outside_is_named_as_it_was_given(read, at):
    x, at = tg.arange(7.0), tg.tensor([at])
    for run in (read, tg.compile(read)):
        with pytest.raises(IndexError, match=f"index {at.item()} is out of bounds"):
            run(x, at)


def test_what_cannot_be_repeated_is_refused_with_its_line():
    class Holder:
        def __init__(self, value):
            self.value = value

    kept = {}

    @tg.compile
    def function(x):
        kept["holder"] = Holder(x * 2)
        return x

    line = inspect.getsourcelines(function.function)[1] + 2
    with pytest.raises(
        TraceError, match=r"cannot repeat what it writes to `kept\['holder'\]`"
    ) as error:
        function(X)
    assert f"{__file__}:{line}" in str(error.value) and kept == {}


def test_a_new_tensor_in_the_place_of_state():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", tg.zeros(2))

        def forward(self, x):
            self.mean = self.mean * 0.5 + x * 0.5
            return self.mean * 2

    average, eager = Average(), Average()
    compiled = tg.compile(average)
    for _ in range(4):
        assert compiled(tg.ones(2)).tolist() == eager(tg.ones(2)).tolist()
        assert average.mean.tolist() == eager.mean.tolist()
    assert len(compiled.compiles) == 2

    total = tg.zeros(2)

    @tg.compile
    def add(x):
        nonlocal total
        total = total + x

    for n in (1, 2, 3, 4):
        add(tg.ones(2))
        assert total.tolist() == [n, n]
    assert len(add.compiles) == 2


def test_results_in_which_tensors_are_not_found():
    class Result:
        def __init__(self, value):
            self.value = value

    for make in (Result, lambda x: {x}, lambda x: (each for each in (x,))):
        with pytest.raises(TypeError, match=r"Return tensors in tuples.*tg.pytree.register"):
            tg.compile(lambda x, make=make: make(x * 2))(X)
    kept = Result(X)
    assert tg.compile(lambda x: kept)(X) is kept


@pytest.mark.parametrize(
    "divide", [lambda x, y: x // y, lambda x, y: x % y, tg.fmod, lambda x, y: (x % y).sum()]
)
@pytest.mark.parametrize("dtype", [tg.int8, tg.uint8, tg.int32, tg.int64])
def test_integers_are_not_divided_by_zero(divide, dtype):
    x, y = tg.arange(6).to(dtype), tg.tensor([1, 2, 3, 1, 2, 4], dtype=dtype)
    compiled = tg.compile(divide)
    np.testing.assert_array_equal(compiled(x, y).numpy(), divide(x, y).numpy())
    y[2] = 0
    for run in (divide, compiled):
        with pytest.raises(RuntimeError, match=r"^ZeroDivisionError") as caught:
            run(x, y)
    assert "test_errors.py" in str(caught.value)
    y[2] = 1
    np.testing.assert_array_equal(compiled(x, y).numpy(), divide(x, y).numpy())


def test_a_divisor_that_is_padding_is_no_error():
    """Elements that are not wanted are read as zero."""

    @tg.compile
    def program(x, y):
        return tg.cat([x // y, tg.nn.functional.pad(x % y, (1, 2)), x])[2:]

    x, y = tg.arange(6), tg.tensor([1, 2, 3, 1, 2, 4])
    np.testing.assert_array_equal(program(x, y).numpy(), program.function(x, y).numpy())


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda count, by: count.floor_divide_(by), [0, 1]),
        (lambda count, by: count.add_(tg.arange(2)[by]), [0, 2]),
        (lambda count, by: count.index_add_(0, by, tg.ones(2, dtype=tg.int64)), [0, 2]),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_a_call_that_fails_leaves_the_state_of_eager_code(change, wrong, check):
    """What stands before the failure has happened, once; what stands behind it has not."""

    def outcome(wrap):
        count, state, other = tg.tensor([3, 2]), tg.zeros(2), tg.zeros(2)

        @wrap
        def step(x, by):
            state.add_(1)
            x.mul_(2)
            change(count, by)
            state.mul_(count)
            other.fill_(7.0)

        x = tg.ones(2)
        step(x, tg.tensor([1, 1]))
        with pytest.raises((RuntimeError, IndexError), match=r"ZeroDivisionError|out of bounds"):
            step(x, tg.tensor(wrong))
        tensors = (x, count, state, other)
        return [(each.tolist(), each._version) for each in tensors]

    found = outcome(lambda step: tg.compile(step, check=check))
    assert found == outcome(lambda step: step)
    assert found[0] == ([4, 4], 2) and found[3][1] == 1


def test_a_write_behind_a_check_goes_without_a_copy():
    """One kernel that checks and writes could not write over the state: it may fail halfway."""

    def step(state, x, by):
        picked = x[by]
        state.add_(x)
        return picked

    state, x, by = tg.zeros(4000), tg.ones(4000), tg.zeros(4000, dtype=tg.int64)
    assert [each.kind for each in tg.compile(step).explain(state, x, by).kernels] == ["kernel"] * 2


def test_a_first_call_that_fails_leaves_the_state_of_eager_code():
    state, generator = tg.zeros(3), tg.Generator().manual_seed(1)

    @tg.compile
    def step(x):
        state.add_(1)
        x.mul_(tg.rand(3, generator=generator))
        y = x.reshape(2, 2)
        state.add_(1)
        return y

    x = tg.ones(3)
    for n in (1, 2):
        with pytest.raises(RuntimeError, match="is invalid for input of size 3"):
            step(x)
        assert state.tolist() == [n] * 3 and state._version == x._version == n
        assert generator.counter == n and len(step.compiles) == 0


def test_what_cannot_be_traced_is_not_run_eagerly_instead():
    state = tg.zeros(3)

    @tg.compile
    def step(x):
        state.add_(1)
        return x * float(x.sum())

    with pytest.raises(tg.TraceError, match="needs the value of a tensor"):
        step(tg.ones(3))
    assert state._version == 0


def test_a_gradient_that_a_write_spoiled_is_refused_as_in_eager_code():
    def step(x, state):
        y = x * 1
        z = y * y  # saved here
        state.add_(1)
        y.mul_(2)  # overwritten here
        z.sum().backward()
        state.add_(1)

    first = step.__code__.co_firstlineno
    for function in (step, tg.compile(step)):
        x, state = tg.ones(3, requires_grad=True), tg.zeros(3)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
            function(x, state)
        assert f"saved by MulBackward0 at {__file__}:{first + 2}" in str(error.value)
        assert f"overwritten at {__file__}:{first + 4}" in str(error.value)
        assert state.tolist() == [1] * 3 and x.grad is None


def test_padding_of_a_quotient_divides_nothing():
    a, b = tg.tensor([6, 4]), tg.tensor([3, 2])
    padded = tg.compile(lambda a, b: nn.functional.pad(a // b, (1, 2)))
    assert padded(a, b).tolist() == [0, 2, 2, 0, 0]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        padded(a, b - 2)
    chosen = tg.compile(
        lambda a, b: tg.where(tg.arange(3) < 2, nn.functional.pad(a // b, (0, 1)), 7)
    )
    assert chosen(a, b).tolist() == [2, 2, 7]
