"""In-place changes of arguments, captured tensors, views and gradients in compiled functions."""

import gc
import itertools
import pickle
import weakref
from unittest import mock

import numpy as np
import pytest

import tgraph as tg
from tgraph.compiled import call_helpers


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_arguments_are_changed_in_place():
    @tg.compile
    def function(x, y):
        x.add_(y)
        y[0] = 7
        x *= 2
        return x, x.sum()

    x, y = tg.ones(3), tg.tensor([1.0, 2.0, 3.0])
    array = x.numpy()
    result, total = function(x, y)
    assert result is x and x.tolist() == [4, 6, 8] and array.tolist() == [4, 6, 8]
    assert y.tolist() == [7, 2, 3] and total.item() == 18
    assert x._version == 2 and y._version == 1
    function(x, y)
    assert x.tolist() == [22, 16, 22] and len(function.compiles) == 1


def test_captured_tensors_are_changed_in_place():
    count, total = tg.zeros((), dtype=tg.int64), tg.zeros(2)

    @tg.compile
    def function(x):
        count.add_(1)
        total.add_(x)
        return total / count

    for n in range(1, 5):
        assert function(tg.tensor([1.0, 2.0])).tolist() == [1, 2]
        assert count.item() == n and total.tolist() == [n, 2 * n]
    assert len(function.compiles) == 1


VIEWS = {
    "row": lambda x: x[1].mul_(10),
    "slice": lambda x: x[:, 1::2].add_(5),
    "assigned": lambda x: x.__setitem__((slice(None), 0), 3.0),
    "transposed": lambda x: x.t()[2].zero_(),
    "reshaped": lambda x: x.reshape(-1)[3:7].neg_(),
    "view of view": lambda x: x[1:][0][::2].copy_(tg.tensor([8.0, 9.0])),
    "unsqueezed": lambda x: x.unsqueeze(0)[0, 2].fill_(4),
    "detached": lambda x: x.detach()[0].add_(1),
    "masked": lambda x: x.masked_fill_(x > 5, 0.5),
    "scattered": lambda x: x.index_put_((tg.tensor([0, 2]), tg.tensor([1, 1])), tg.tensor(6.0)),
    "diagonal by step": lambda x: x.reshape(-1)[::5].fill_(-1),
}


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_writing_through_views(name, captured):
    change = VIEWS[name]

    def function(x):
        early = x[1]
        change(x)
        late = x[1] * 1
        return early * 1, late, x.sum()

    eager, compiled = tg.arange(12.0).reshape(3, 4), tg.arange(12.0).reshape(3, 4)
    outside = compiled[2]
    traced = tg.compile((lambda: function(compiled)) if captured else function)
    for _ in range(2):
        wanted = function(eager)
        found = traced() if captured else traced(compiled)
        for a, b in zip(wanted, found, strict=True):
            same(a, b)
        same(eager, compiled)
        same(eager[2], outside)
    assert len(traced.compiles) == 1


def test_views_made_outside_follow_their_base():
    base = tg.zeros(4)
    view, other = base[1:3], base.reshape(2, 2)

    @tg.compile
    def function():
        view.add_(1)
        other[1] += 10
        return base * 1, view * 1, other.sum()

    whole, part, total = function()
    assert whole.tolist() == [0, 1, 11, 10] and part.tolist() == [1, 11] and total.item() == 22
    function()
    assert base.tolist() == [0, 2, 22, 20] and view.tolist() == [2, 22]
    assert len(function.compiles) == 1


def test_swapping_through_a_copy():
    a, b = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])

    @tg.compile
    def swap():
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)
        return kept

    assert swap().tolist() == [1, 2]
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])
    swap()
    assert (a.tolist(), b.tolist()) == ([1, 2], [3, 4])


def test_new_tensors_tell_how_often_they_were_written():
    def function(x):
        y, z = x * 2, x * 2
        y.add_(1)
        y[0] = 3
        row = z[1:].zero_()
        return y, z, row, x * 2 + 1, z.detach()

    found = tg.compile(function)(tg.ones(3, requires_grad=True))
    assert [each._version for each in found] == [2, 1, 1, 0, 1]


def test_two_tensors_take_one_value_and_it_is_returned():
    a, b = tg.zeros(2), tg.zeros(2)

    @tg.compile
    def function(x):
        y = x + 1
        a.copy_(y)
        b.copy_(y)
        return y, y

    first, second = function(tg.ones(2))
    assert first is second
    first.zero_()
    assert a.tolist() == b.tolist() == [2, 2]
    a.zero_()
    assert b.tolist() == [2, 2]


def test_an_array_that_is_not_contiguous_is_written_where_it_lies():
    @tg.compile
    def function(x):
        x.mul_(2)
        return x.sum(0)

    memory = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (memory.T, memory[::2, 1:4], memory[:, ::3]):
        x, wanted = tg.from_numpy(view), view * 2
        np.testing.assert_allclose(function(x).numpy(), wanted.sum(0))
        np.testing.assert_allclose(view, wanted)


def test_one_tensor_given_twice():
    @tg.compile
    def function(x, y):
        x.add_(1)
        return x * y

    x = tg.ones(2)
    assert function(x, x).tolist() == [4, 4]
    assert function(tg.ones(2), tg.ones(2)).tolist() == [2, 2]
    assert function(x, x).tolist() == [9, 9]
    assert len(function.compiles) == 2


def test_arguments_that_share_memory():
    @tg.compile
    def function(x, y):
        x.add_(1)
        return y * 10

    base = tg.zeros(4)
    assert function(tg.zeros(2), tg.zeros(2)).tolist() == [0, 0]
    assert function(base[:2], base[2:]).tolist() == [0, 0]
    assert function(base[1:3], base[:2]).tolist() == [10, 20]
    assert base.tolist() == [1, 2, 1, 0]
    array = np.zeros(2, np.float32)
    assert function(tg.from_numpy(array), tg.from_numpy(array)).tolist() == [10, 10]


def test_an_argument_that_is_also_captured():
    w = tg.ones(2)

    @tg.compile
    def function(x):
        w.add_(1)
        return x * 1

    assert function(tg.zeros(2)).tolist() == [0, 0]
    assert function(w).tolist() == [3, 3]
    assert function(w[:]).tolist() == [4, 4]


def test_captured_tensors_that_share_memory_without_knowing():
    array = np.ones(2, np.float32)
    a, b = tg.from_numpy(array), tg.from_numpy(array)

    @tg.compile
    def function():
        a.add_(1)
        return b * 1

    assert function().tolist() == [2, 2]
    assert function().tolist() == [3, 3]


class Shown:
    """An array as an object of another library that NumPy can look into."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


# Ways in which another array comes to lie over the memory of an array.
AGAIN = {
    "itself": lambda array: array,
    "buffer": lambda array: np.frombuffer(array.data, np.float32),
    "part of a buffer": lambda array: np.frombuffer(memoryview(array).cast("B"), np.float32)[:],
    "memoryview": lambda array: np.asarray(memoryview(array)),
    "array interface": lambda array: np.asarray(Shown(array)),
    "ctypes": lambda array: np.ctypeslib.as_array(np.ctypeslib.as_ctypes(array)),
}
if np.from_dlpack(np.zeros(1)).flags.writeable:  # not in NumPy 2.1
    AGAIN["capsule"] = np.from_dlpack


@pytest.mark.parametrize("first", AGAIN)
@pytest.mark.parametrize("second", AGAIN)
def test_arrays_over_the_memory_of_others(first, second):
    @tg.compile
    def function(x, y):
        x.add_(1)
        return y * 10

    assert function(tg.zeros(2), tg.zeros(2)).tolist() == [0, 0]
    array = np.zeros(2, np.float32)
    x, y = tg.from_numpy(AGAIN[first](array)), tg.from_numpy(AGAIN[second](array))
    assert function(x, y).tolist() == [10, 10]
    assert function(y, x).tolist() == [20, 20] and array.tolist() == [2, 2]
    assert len(function.compiles) == 1

    @tg.compile
    def captures(y):
        x.add_(1)
        return y * 10

    assert captures(tg.zeros(2)).tolist() == [0, 0]
    assert captures(y).tolist() == [40, 40]


def test_what_owns_memory_alone():
    """Arrays of NumPy, of the pool and out of pickles need no comparison."""
    large = tg.zeros(1 << 18)._value
    for array in (np.zeros(3), large, pickle.loads(pickle.dumps(np.zeros(1000), protocol=4))):
        root = call_helpers.root_of(array)
        assert root is not call_helpers.FOREIGN
        assert call_helpers.root_of(array[1:]) is call_helpers.root_of(array[:1]) is root


@pytest.fixture
def compared(monkeypatch):
    """The pairs of arrays that were compared."""
    pairs = []

    def share_memory(a, b):
        pairs.append((a, b))
        return np.shares_memory(a, b)

    monkeypatch.setattr(call_helpers, "share_memory", share_memory)
    return pairs


def optimizer_step(count):
    """A function with `count` tensors that each call writes."""
    tensors = [tg.zeros(2) for _ in range(count)]

    def function(x):
        for each in tensors:
            each.add_(x)
        return x * 2

    return function, tensors


def test_a_plain_call_compares_nothing():
    with mock.patch.dict(call_helpers.HELPERS, overlap=mock.Mock(side_effect=AssertionError)):
        function, tensors = optimizer_step(5)
        function = tg.compile(function)
        for large in (False, True):
            x = tg.ones(1 << 18)[:2] if large else tg.ones(2)
            assert [function(x).tolist() for _ in range(3)] == [[2, 2]] * 3
    assert tensors[4].tolist() == [6, 6]


@pytest.mark.parametrize("given", ["argument", "captured"])
def test_borrowed_memory_is_compared_with_what_lies_beside_it(compared, given):
    array = np.ones(2, np.float32)
    lent = tg.from_dlpack(array)
    function, tensors = optimizer_step(100)
    if given == "captured":
        step = tg.compile(lambda x: function(x) + lent)
        wanted, x = [3, 3], tg.ones(2)
    else:
        step, wanted, x = tg.compile(function), [2, 2], lent
    for _ in range(3):
        assert step(x).tolist() == wanted
    assert tensors[99].tolist() == [3, 3]
    assert compared == []
    if given == "argument":
        tensors[50].data = lent
        assert step(lent).tolist() == [4, 4] and lent.tolist() == [2, 2]
        assert len(compared) == 1


def any_view(rng, buffers):
    """A part of one of the buffers: contiguous or not, with one or two dimensions, or empty."""
    buffer = buffers[rng.integers(len(buffers))]
    start, stop = sorted(rng.integers(0, len(buffer) + 1, 2))
    view = buffer[start : stop : rng.integers(1, 4)]
    if rng.random() < 0.2:
        view = view[::-1]
    if rng.random() < 0.3 and len(view) > 2:
        view = view[: len(view) // 2 * 2].reshape(2, -1).T
    return view


def test_the_comparison_is_exact(compared):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(500):
        buffers = [np.zeros(rng.integers(1, 40), rng.choice([np.int8, np.float64])) for _ in "abc"]
        views = [any_view(rng, buffers) for _ in range(rng.integers(2, 6))]
        written, read = np.split(np.arange(len(views)), [rng.integers(len(views))])
        pairs = [*itertools.combinations(written, 2), *itertools.product(written, read)]
        want = any(np.shares_memory(views[a], views[b]) for a, b in pairs)
        have = call_helpers.overlap([views[a] for a in written], [views[b] for b in read])
        assert have == want
        found.append(want)
    assert 100 < sum(found) < 400
    assert not any(a is b for a, b in compared)


def test_many_readers_of_one_array_are_not_compared_with_each_other(compared):
    table, other = np.zeros(1000), np.zeros(10)
    readers = [table] * 500 + [other[::2]] * 2
    assert not call_helpers.overlap([other[1::2], np.zeros(3)], readers)
    assert len(compared) == 2
    assert call_helpers.overlap([table[999:]], readers)


def test_new_memory_of_a_captured_tensor_is_used():
    w = tg.ones(2)

    @tg.compile
    def function():
        w.mul_(3)
        return w.sum()

    assert function().item() == 6
    w.data = tg.tensor([5.0, 6.0])
    assert function().item() == 33 and w.tolist() == [15, 18]
    assert len(function.compiles) == 1
    w.data = tg.ones(3)
    assert function().item() == 9
    assert "captured tensor `w` changed: float32[2] -> float32[3]" in function.compiles[1].reason


# --- gradients left behind -----------------------------------------------------------------------


def loss_of(w, x):
    return ((w * x).tanh() ** 2).sum()


def run_backward_twice(compiled, before):
    """What `.grad` is after two calls of a function that calls backward."""
    w = tg.tensor([1.0, -2.0, 0.5], requires_grad=True)
    w.grad = None if before is None else before.clone()
    held = w.grad

    def function(x):
        loss = loss_of(w, x)
        loss.backward()
        return loss

    function = tg.compile(function) if compiled else function
    results = [function(tg.tensor([1.0, 2.0, 3.0])) for _ in range(2)]
    return w, held, results, function


@pytest.mark.parametrize("before", [None, tg.ones(3)])
def test_backward_in_a_compiled_function_accumulates(before):
    w, held, results, _ = run_backward_twice(False, before)
    w2, held2, results2, function = run_backward_twice(True, before)
    same(w.grad, w2.grad)
    same(results[1], results2[1])
    assert (w.grad is held) == (w2.grad is held2)
    assert w2.grad.is_leaf and not w2.grad.requires_grad
    assert len(function.compiles) == (2 if before is None else 1)
    if before is None:
        reason = function.compiles[1].reason
        assert reason == "`w.grad`: there was no gradient, now there is a"


def test_gradients_of_arguments():
    @tg.compile
    def function(w, x):
        w.grad = None
        loss_of(w, x).backward()
        return w.grad * 2

    x = tg.tensor([1.0, 2.0])
    for value in (1.0, 2.0):
        w = tg.full((2,), value, requires_grad=True)
        eager = tg.full((2,), value, requires_grad=True)
        loss_of(eager, x).backward()
        result = function(w, x)
        same(w.grad, eager.grad)
        same(result, eager.grad * 2)
    assert len(function.compiles) == 1


def test_gradients_of_arguments_accumulate():
    @tg.compile
    def function(w, x):
        loss_of(w, x).backward()

    x = tg.tensor([1.0, 2.0])
    w, eager = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    for _ in range(4):
        loss_of(eager, x).backward()
        function(w, x)
        same(w.grad, eager.grad)
    assert [record.reason for record in function.compiles] == [
        "first call",
        "`w.grad`: there was no gradient, now there is a",
    ]


def test_plans_keep_neither_arguments_nor_old_gradients():
    w = tg.ones(1000, requires_grad=True)
    w.grad = tg.ones(1000)

    @tg.compile
    def function(x):
        w.grad = None
        (w * x).sum().backward()

    x = tg.ones(1000)
    dead = [weakref.ref(w.grad), weakref.ref(x)]
    function(x)
    del x
    gc.collect()
    assert [each() for each in dead] == [None, None]


def test_gradients_are_cleared_and_replaced():
    w = tg.ones(2, requires_grad=True)
    other = tg.ones(2, requires_grad=True)

    @tg.compile
    def function(x):
        w.grad = x * 2
        other.grad = w.grad
        (w * x).sum().backward()

    for _ in range(2):
        function(tg.tensor([1.0, 2.0]))
        assert w.grad is other.grad and w.grad.tolist() == [3, 6]

    @tg.compile
    def clear():
        w.grad = None

    clear()
    assert w.grad is None and other.grad is not None


def test_a_gradient_written_by_hand():
    w = tg.ones(2, requires_grad=True)
    w.grad = tg.tensor([1.0, 2.0])

    @tg.compile
    def clip(limit):
        w.grad.clamp_(max=limit)
        return w.grad.sum()

    held = w.grad
    assert clip(1.5).item() == 2.5 and w.grad is held and held.tolist() == [1, 1.5]
    w.grad = tg.tensor([5.0, 5.0])
    assert clip(1.5).item() == 3 and w.grad.tolist() == [1.5, 1.5] and held.tolist() == [1, 1.5]
    assert len(clip.compiles) == 1


def test_the_loss_of_a_compiled_step_is_used_up():
    w = tg.ones(2, requires_grad=True)

    @tg.compile
    def step():
        loss = (w * w).sum()
        loss.backward()
        return loss

    loss = step()
    assert loss.requires_grad and not loss.is_leaf
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_requires_grad_set_inside():
    w = tg.ones(2)

    @tg.compile
    def function():
        w.requires_grad_()
        return (w * 2).sum()

    function()
    assert w.requires_grad and w.is_leaf


def test_hooks_of_captured_tensors_run_inside():
    w = tg.ones(2, requires_grad=True)
    w.register_hook(lambda grad: grad * 10)

    @tg.compile
    def function():
        w.grad = None
        (w * 3).sum().backward()

    function()
    assert w.grad.tolist() == [30, 30]
    second = w.register_hook(lambda grad: grad + 1)
    function()
    assert w.grad.tolist() == [31, 31]
    second.remove()
    function()
    assert w.grad.tolist() == [30, 30]
    assert len(function.compiles) == 2
    assert "and hooks" in function.compiles[1].reason


@pytest.mark.parametrize("registered_before", [False, True])
def test_a_hook_that_is_removed_inside_is_gone_behind_each_call(registered_before):
    w = tg.ones(2, requires_grad=True)
    if registered_before:
        w.register_hook(lambda grad: grad).remove()

    @tg.compile
    def function():
        hook = w.register_hook(lambda grad: grad * 10)
        (w * 3).sum().backward()
        hook.remove()

    for calls in (1, 2, 3):
        function()
        assert w.grad.tolist() == [30 * calls, 30 * calls] and not w._hooks


def test_a_hook_of_the_outside_is_not_removed_inside():
    w = tg.ones(2, requires_grad=True)
    hook = w.register_hook(lambda grad: grad * 10)

    @tg.compile
    def function():
        (w * 3).sum().backward()
        hook.remove()

    with pytest.raises(tg.tracing.TraceError, match="removes a hook of `w`"):
        function()


def test_what_failed_after_new_memory_was_given_has_given_it():
    w, x = tg.ones(2), tg.zeros(2)

    @tg.compile
    def function():
        w.data = x + 5
        x.add_(tg.ones(3))

    with pytest.raises(RuntimeError):
        function()
    assert w.tolist() == [5, 5]


def _parts(numbers):
    rows = tg.from_numpy(numbers)
    return rows[::2, ::2], rows[1:5, 1:5], rows.t()[2:6, 2:6], tg.from_numpy(numbers[1:5, ::2])


DIAGONALS = {
    "fill_diagonal_": lambda x: x.fill_diagonal_(0.5) * 1,
    "diagonal": lambda x: x.diagonal().mul_(2) * 1,
    "beside": lambda x: (x.diagonal(-1).mul_(3) * 1, x.diagonal(2)[1:].fill_(7.0) * 1, x * 1),
    "follows": lambda x: (lambda d: (x.mul_(2) * 1, d * 1, d.add_(1) * 1, x * 1))(x.diagonal()),
    "of a batch": lambda x: (x[None].diagonal(0, 1, 2).add_(1) * 1, x * 1),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_writes_to_a_diagonal_reach_a_tensor_with_gaps(name):
    function = DIAGONALS[name]
    for part in range(4):
        seen = []
        for run in (function, tg.compile(function)):
            numbers = np.arange(64.0).reshape(8, 8)
            x = _parts(numbers)[part]
            wanted = tg.pytree.leaves(function(tg.clone(x)))
            assert all(map(tg.equal, tg.pytree.leaves(run(x)), wanted))
            seen.append(numbers.tolist())
        assert seen[0] == seen[1]


# --- one tensor by several names -----------------------------------------------------------------


def _gradient_of_captured(w, x):
    return lambda q: tg.autograd.grad((q * x).sum() + (w * w * w).sum(), [w])[0]


def _gradient_of_argument(w, x):
    return lambda q: tg.autograd.grad((q * x).sum() + (w * w * w).sum(), [q])[0]


def _backward(w, x):
    def function(q):
        w.grad = None
        ((q * x).sum() + (w * w).sum()).backward()
        return q.grad * 1

    return function


def _gradient_written(w, x):
    def function(q):
        q.grad = x * 2
        return None if w.grad is None else w.grad * 3

    return function


def _flag(w, x):
    def function(q):
        w.requires_grad_(False)
        return q * x

    return function


def _data(w, x):
    def function(q):
        w.data = x * 2
        return q * 3

    return function


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "make",
    [
        _gradient_of_captured, _gradient_of_argument, _backward, _gradient_written, _flag, _data,
    ],
)  # fmt: skip
def test_an_argument_may_be_a_tensor_that_the_function_knows(make, first):
    seen = []
    for compiled in (False, True):
        w, other, x = tg.ones(3), tg.full((3,), 3.0), tg.full((3,), 2.0)
        w.requires_grad_(), other.requires_grad_()
        function = make(w, x)
        run = tg.compile(function) if compiled else function
        found = []
        for number in range(first, first + 4):
            try:
                result = run((w, other)[number % 2])
            except RuntimeError:
                result = None
            found.append(None if result is None else (result.tolist(), result.requires_grad))
            grads = [None if each.grad is None else each.grad.tolist() for each in (w, other)]
            found.append([*grads, w.tolist(), w.requires_grad])
        seen.append(found)
    assert seen[0] == seen[1]


def test_two_arguments_may_become_one_tensor_of_which_gradients_are_asked():
    @tg.compile
    def gradient(a, b):
        return tg.autograd.grad((a * a * b).sum(), [a])[0]

    u, v = tg.ones(2, requires_grad=True), tg.full((2,), 3.0, requires_grad=True)
    for a, b, expected in ((u, v, 6), (u, u, 3), (u, v, 6), (v, v, 27)):
        assert gradient(a, b).tolist() == [expected, expected]
    gradient.assert_compiles(2)


# --- histories -----------------------------------------------------------------------------------


def test_a_written_argument_gets_a_history():
    @tg.compile
    def function(x, w):
        x.add_(w * 2)
        return x.sum()

    w = tg.tensor([2.0, 3.0], requires_grad=True)
    x = tg.tensor([1.0, 1.0])
    total = function(x, w)
    assert x.requires_grad and not x.is_leaf
    (total + (x * x).sum()).backward()
    assert w.grad.tolist() == [2 + 4 * 5, 2 + 4 * 7]


def test_a_view_that_is_written_gives_its_base_a_history():
    @tg.compile
    def function(view, w):
        view.add_(w)

    w = tg.tensor([2.0, 3.0], requires_grad=True)
    base = tg.ones(4)
    function(base[:2], w)
    assert base.requires_grad and base.tolist() == [3, 4, 1, 1]
    (base * tg.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert w.grad.tolist() == [1, 10]


def test_views_of_before_a_call_follow_the_history_of_their_base():
    function = tg.compile(lambda written, w: written.mul_(w))
    w = tg.tensor([2.0, 3.0, 4.0], requires_grad=True)
    for count, expected in ((3, [0, 1, 1]), (2, [0, 1, 0])):
        base = tg.ones(3)
        view = base[1:]
        function(base if count == 3 else base[:count], w[:count])
        assert view.requires_grad
        (grad,) = tg.autograd.grad(view.sum(), w)
        assert grad.tolist() == expected


def test_a_history_that_eager_code_would_refuse_is_refused_when_it_is_used():
    @tg.compile
    def function(x, w):
        y = x * w  # the gradient of w needs what x was
        x.mul_(w)  # and here is a copy of it
        return y.sum()

    x, w = tg.full((2,), 3.0), tg.ones(2, requires_grad=True)
    result = function(x, w)
    first = function.function.__code__.co_firstlineno
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        result.backward()
    assert f"saved by MulBackward0 at {__file__}:{first + 2}" in str(error.value)
    assert f"overwritten at {__file__}:{first + 3}" in str(error.value)
    x.sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_leaves_that_require_grad_are_not_written():
    w = tg.ones(2, requires_grad=True)

    def function():
        w.add_(1)

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tg.compile(function)()
    assert w.tolist() == [1, 1]


def test_saved_values_that_are_written_later_are_noticed():
    x = tg.ones(2)
    w = tg.ones(2, requires_grad=True)
    result = tg.compile(lambda: (w * x).sum())()
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_a_buffer_written_in_a_differentiable_function():
    average = tg.zeros(2)
    w = tg.tensor([1.0, 2.0], requires_grad=True)

    @tg.compile
    def function(x):
        y = x * w * average.clone()
        with tg.no_grad():
            average.mul_(0.5).add_(x)
        return (y + average).sum()

    for _ in range(3):
        before = average.clone()
        w.grad = None
        function(tg.tensor([1.0, 2.0])).backward()
        same(w.grad, tg.tensor([1.0, 2.0]) * before)
    assert len(function.compiles) == 1


def test_a_write_that_changes_nothing_spoils_no_gradient():
    def function(x, a):
        y = x * 2
        y.data.div_(a)
        with tg.no_grad():
            a.copy_(a)
        return (y * y).sum()

    for call in (function, tg.compile(function)):
        x, a = tg.ones(2, requires_grad=True), tg.full((2,), 4.0)
        call(x, a).backward()
        assert x.grad.tolist() == [2, 2] and a._version == 1


def test_views_of_views_that_are_returned():
    @tg.compile
    def function(x):
        outer = x[1:].detach()
        inner = outer[1:]
        return inner, outer, inner.detach()[:1]

    x = tg.zeros(4)
    for each in function(x):
        each.add_(1)
    assert x.tolist() == [0, 1, 3, 2] and x._version == 3
