"""x[...] against NumPy, and where PyTorch differs from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tgraph as tg
from tgraph.core.dispatch import apply

ARRAY = np.arange(24.0).reshape(2, 3, 4)
MASK = ARRAY % 3 == 0


def tensor() -> Any:
    return tg.tensor(ARRAY)


def as_tensor_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(as_tensor_index, index))
    return tg.tensor(index) if isinstance(index, np.ndarray) else index


SAME_AS_NUMPY: list[Any] = [
    0, -1, (0, 1), (0, 1, 2), slice(None), slice(1, None), slice(0, 10), slice(5, 2),
    (slice(None), slice(None, None, 2)), (..., 0), (0, ...), (..., None), (None, 0, None), None,
    Ellipsis, (slice(None), None, 1), (slice(-2, None), slice(-3, -1)), np.array([0, 1]),
    np.array([[1, 0], [0, 0]]), np.array(1), np.array([-1, 0]),
    (slice(None), np.array([0, 2])), (slice(None), np.array([0, 2]), np.array([1, 3])),
    (np.array([0, 1]), np.array([2, 0]), np.array([1, 1])),
    (np.array([0, 1]), slice(None), np.array([1, 1])),
    (np.array([[0], [1]]), np.array([0, 2])),
    (slice(None), slice(1, None), np.array([3, 0])), (..., np.array([0, 0])),
    MASK, MASK[:, 0, 0], (slice(None), MASK[0]), (..., MASK[0, 0]),
    (slice(None), MASK[0, :, 0]), [0, 1], ([0, 1], [1, 2]), (slice(None), [True, False, True]),
    np.array([], np.int64), (np.int64(1), np.array(0)), (None, np.array([1, 0]), None),
    True, False, (slice(0, 1), True), np.array(True), np.array(False),
    (slice(None), np.array(True)), (..., np.array(False)),
]  # fmt: skip


@pytest.mark.parametrize("index", SAME_AS_NUMPY, ids=range(len(SAME_AS_NUMPY)))
def test_reading_as_numpy(index: Any) -> None:
    found = tensor()[as_tensor_index(index)]
    np.testing.assert_array_equal(found.numpy(), ARRAY[index])


@pytest.mark.parametrize("index", SAME_AS_NUMPY, ids=range(len(SAME_AS_NUMPY)))
@pytest.mark.parametrize("value", ["scalar", "tensor"])
@pytest.mark.parametrize("recorded", [False, True])
def test_writing_as_numpy(index: Any, value: str, recorded: bool) -> None:
    expected = ARRAY.copy()
    shape = expected[index].shape
    new: Any = (
        -1.0 if value == "scalar" else -np.arange(1.0, 1 + int(np.prod(shape))).reshape(shape)
    )
    distinct = len(np.unique(np.arange(24).reshape(2, 3, 4)[index])) == int(np.prod(shape))
    if not distinct and value == "tensor":
        new = np.full(shape, 5.0)  # the order of writes to one place is open
    expected[index] = new
    target = tensor()
    if recorded:
        target = target.requires_grad_() * 1
    target[as_tensor_index(index)] = new if value == "scalar" else tg.tensor(new)
    np.testing.assert_array_equal(target.detach().numpy(), expected)
    if recorded:
        target.sum().backward()


def test_integers_are_taken_before_index_tensors() -> None:
    """NumPy would move the indexed dimension to the front here; PyTorch does not."""
    x = tensor()
    assert x[0, :, tg.tensor([1, 2])].shape == (3, 2)
    np.testing.assert_array_equal(x[0, :, tg.tensor([1, 2])].numpy(), ARRAY[0][:, [1, 2]])


def test_views_share_memory_and_copies_do_not() -> None:
    x = tensor()
    for index in (0, (slice(None), 1), ..., None, slice(1, None)):
        assert np.shares_memory(x[index].numpy(), x.numpy()), index
    for index in (tg.tensor([0]), x > 3, [0], (0, tg.tensor([1]))):
        assert not np.shares_memory(x[index].numpy(), x.numpy()), index
    assert x[...] is not x


def test_writing_broadcasts_and_casts() -> None:
    x = tg.zeros(2, 3, dtype=tg.int64)
    x[:, 1] = 2.9
    x[0] = tg.tensor([[1.5, 1.5, 7.5]])
    assert x.tolist() == [[1, 1, 7], [0, 2, 0]]
    x[x > 1] = tg.tensor(9)
    x[1, [0, 2]] = tg.tensor([4, 5])
    assert x.tolist() == [[1, 1, 9], [4, 9, 5]]
    x[:] = [7, 8, 9]
    assert x.tolist() == [[7, 8, 9]] * 2
    x[0] = np.array([1, 2, 3])
    assert x[0].tolist() == [1, 2, 3]


def test_overlapping_assignment() -> None:
    x = tg.arange(6)
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x = tg.arange(6)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        x[1:] = x[:-1]
    x[2::2] = x[:-2:2]
    assert x.tolist() == [0, 1, 0, 3, 2, 5]


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        ((..., 0, ...), IndexError, "single ellipsis"),
        (1.5, IndexError, "only integers, slices"),
        ("a", IndexError, "only integers, slices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (np.array([0, 2]), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (np.array([0, -3]), IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        (np.array([0.5]), IndexError, "tensors used as indices must be long"),
        (np.array([True]), IndexError, r"shape of the mask \[1\] at index 0 does not match"),
        (
            (np.array([0, 1]), np.array([0, 1, 2])),
            IndexError,
            "indexing tensors could not be broadcast together",
        ),
    ],
    ids=str,
)
def test_bad_indices(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tensor()[as_tensor_index(index)]
    with pytest.raises(error, match=message):
        tensor()[as_tensor_index(index)] = 1.0


def test_values_that_do_not_fit() -> None:
    x = tg.zeros(3, 3)
    with pytest.raises(RuntimeError, match=r"expanded size of the tensor \(3\) must match"):
        x[1] = tg.arange(2.0)
    with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result"):
        x[[0, 1]] = tg.arange(2.0)
    with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result"):
        x[x == 0] = tg.arange(2.0)
    with pytest.raises(TypeError, match="can't assign a str"):
        x[0] = "a"


def test_a_refused_write_leaves_values_and_version() -> None:
    x = tg.zeros(3)
    with pytest.raises(IndexError, match="out of bounds"):
        x[tg.tensor([0, 5])] = 1.0
    assert x.tolist() == [0.0] * 3


def test_masks_of_other_dtypes() -> None:
    x = tg.arange(4)
    assert x[tg.tensor([1, 0, 1, 0], dtype=tg.uint8)].tolist() == [0, 2]
    assert x[tg.tensor([1, 0], dtype=tg.int32)].tolist() == [1, 0]
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[tg.tensor([1, 0], dtype=tg.int16)]
    assert x[np.array([1, 0], np.int16)].tolist() == [1, 0] and x[tg.tensor(2, dtype=tg.int8)] == 2
    assert x[np.array([1, 0, 1, 0], np.uint8)].tolist() == [0, 2]


def test_lists_of_more_than_numbers_are_tuples() -> None:
    x = tensor()
    for index in ([[0, 1], [1, 2]], [slice(1), 0], [tg.tensor(0), 1], [0, None], [[1, 0], ...]):
        with pytest.warns(UserWarning, match="is read as x.* with a tuple"):
            found = x[index]
        assert found.tolist() == x[tuple(index)].tolist()
    assert x[[tg.tensor([1]), tg.tensor(0)], 0].tolist() == x[[1, 0], 0].tolist()
    with pytest.raises(TypeError, match="only one element tensors can be converted"):
        x[[tg.tensor([1, 0])], 0]


def test_a_row_that_data_choose_is_a_view_in_a_trace() -> None:
    """Of an argument, of what is made there, through other views; and with gradients."""

    def program(x: Any, i: Any, j: Any) -> Any:
        x[i].add_(1)
        y = x * 2
        row = y[i]
        y.mul_(2)
        row[1:].copy_(row[:-1] * 3)
        y[j, :, i] += 5
        y[:, i][j].fill_(7)
        return row, y, tg.autograd.grad((row * row).sum() + (y * y * y).sum(), [x])[0]

    def run(function: Any) -> list[Any]:
        x = (tensor().requires_grad_() * 1).requires_grad_()
        results = function(x, tg.tensor(1), tg.tensor(-2))
        return [each.tolist() for each in (x, *results)]

    assert run(tg.compile(program)) == run(program)

    def loop(x: Any, n: Any) -> Any:
        y, i = x * 1, n * 0
        while i < n:
            row = y[i]
            row += i
            i = i + 1
        return y

    given = tensor(), tg.tensor(2)
    found = tg.compile(loop, control_flow=True)(*given)
    assert found.tolist() == loop(*given).tolist()


def test_a_compiled_write_at_an_integer_and_positions_apart() -> None:
    def write(x: tg.Tensor, row: tg.Tensor, at: tg.Tensor, new: tg.Tensor) -> tg.Tensor:
        x = x.clone()
        x[:, row, :, at] = new
        return x

    new = tg.arange(1, 9).reshape(2, 2, 2)
    given = (tg.zeros(2, 2, 2, 3, dtype=tg.int64), tg.tensor(1), tg.tensor([2, 0]), new)
    assert tg.compile(write)(*given).tolist() == [
        [[[0, 0, 0], [0, 0, 0]], [[2, 0, 1], [4, 0, 3]]],
        [[[0, 0, 0], [0, 0, 0]], [[6, 0, 5], [8, 0, 7]]],
    ]


def test_index_put_takes_tensors() -> None:
    x = tg.zeros(3)
    with pytest.raises(TypeError, match="must be tuple of Tensors, not NoneType at index 0"):
        x.index_put_((None,), tg.ones(3))
    with pytest.raises(RuntimeError, match="at least one index tensor"):
        x.index_put_((), tg.tensor(1.0))
    x.index_put_((tg.tensor([True, False, True]),), tg.tensor(2))  # one number for a mask is cast
    assert x.tolist() == [2, 0, 2]


def test_tensors_as_bounds_and_integers() -> None:
    x = tg.arange(5)
    assert x[tg.tensor(1) : tg.tensor(3)].tolist() == [1, 2]
    assert x[tg.tensor(2)].item() == 2
    assert [10, 20, 30][tg.tensor(1)] == 20


def test_scatter_and_gather() -> None:
    x = tg.arange(12.0).reshape(3, 4)
    index = tg.tensor([[0, 3], [1, 1], [2, 0]])
    gathered = x.gather(1, index)
    np.testing.assert_array_equal(gathered.numpy(), np.take_along_axis(x.numpy(), index.numpy(), 1))
    added = tg.zeros(3, 4).scatter_add(1, index, tg.ones(3, 2))
    assert added.tolist() == [[1, 0, 0, 1], [0, 2, 0, 0], [1, 0, 1, 0]]
    written = tg.zeros(3, 4).scatter(1, index, 7.0)
    assert written[0].tolist() == [7, 0, 0, 7]
    assert tg.take_along_dim(x, tg.tensor([[-1], [0], [1]]), 1).tolist() == [[3], [4], [9]]
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 1 with size 4"):
        x.gather(1, tg.tensor([[4]]))
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        x.gather(1, tg.tensor([0]))
    with pytest.raises(RuntimeError, match="Expected dtype int64"):
        x.gather(1, tg.tensor([[0.0]]))
    with pytest.raises(RuntimeError, match="no larger than self"):
        x.gather(1, tg.zeros(4, 1, dtype=tg.int64))


def test_index_functions() -> None:
    x = tg.zeros(3, 2)
    rows = tg.tensor([2, 2, 0])
    values = tg.arange(6.0).reshape(3, 2)
    assert x.index_add(0, rows, values).tolist() == [[4, 5], [0, 0], [2, 4]]
    assert x.index_copy(0, tg.tensor([1]), values[:1]).tolist() == [[0, 0], [0, 1], [0, 0]]
    assert x.index_fill(1, tg.tensor([1]), 3).tolist() == [[0, 3]] * 3
    assert values.index_select(1, tg.tensor([1, 1])).tolist() == [[1, 1], [3, 3], [5, 5]]
    x.index_put_((rows, tg.tensor([0, 0, 1])), tg.ones(3), accumulate=True)
    assert x.tolist() == [[0, 1], [0, 0], [2, 0]]
    assert values.take(tg.tensor([5, -1, 0])).tolist() == [5, 5, 0]
    with pytest.raises(IndexError, match="out of bounds"):
        values.index_select(0, tg.tensor([3]))


def test_masked_functions() -> None:
    x = tg.arange(6.0).reshape(2, 3)
    mask = x > 2
    assert x.masked_fill(mask, -1).tolist() == [[0, 1, 2], [-1, -1, -1]]
    assert x.masked_select(mask).tolist() == [3, 4, 5]
    assert x.masked_scatter(mask, tg.tensor([7.0, 8, 9, 10])).tolist() == [[0, 1, 2], [7, 8, 9]]
    assert tg.nonzero(mask).tolist() == [[1, 0], [1, 1], [1, 2]]
    assert [each.tolist() for each in tg.where(mask)] == [[1, 1, 1], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x.masked_fill(tg.ones(3), 0)


def test_one_hot() -> None:
    assert tg.one_hot(tg.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert tg.one_hot(tg.tensor(1), 2).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        tg.one_hot(tg.tensor([3]), 3)
    with pytest.raises(RuntimeError, match="non-negative"):
        tg.one_hot(tg.tensor([-1]))
    compiled = tg.compile(lambda x: tg.one_hot(x, 3))
    assert compiled(tg.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    for outside in (3, -1):
        with pytest.raises(IndexError, match=f"index {outside} is out of bounds .* with size 3"):
            compiled(tg.tensor([0, outside]))


_item = st.one_of(
    st.integers(-2, 1),
    st.builds(slice, st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5),
              st.none() | st.integers(1, 3)),
    st.none(),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(_item, max_size=5))
def test_random_basic_indices(items: list[Any]) -> None:
    index = tuple(items)
    if sum(each is not None for each in index) > 3:
        return
    found = tensor()[index]
    np.testing.assert_array_equal(found.numpy(), ARRAY[index])
    target, expected = tensor(), ARRAY.copy()
    target[index], expected[index] = -3.0, -3.0
    np.testing.assert_array_equal(target.numpy(), expected)


def test_picked_elements_take_values_of_their_dtype_only() -> None:
    integers, floats = tg.zeros(2, 3, dtype=tg.int64), tg.zeros(2, 3)
    mask, rows = floats == 0, tg.tensor([0])
    for function in (
        lambda: integers.__setitem__(mask, tg.ones(6)),
        lambda: integers.__setitem__(rows, tg.ones(3)),
        lambda: floats.__setitem__(rows, tg.tensor(7)),
        lambda: floats.__setitem__((slice(None), rows), tg.ones(2, 1).double()),
        lambda: floats.index_put_((rows,), tg.tensor(7)),
    ):
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            function()
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            tg.compile(function)()
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        floats.masked_scatter_(mask, integers)
    integers[mask] = tg.tensor(1.7)  # one element for a mask is cast, as numbers are
    integers[rows] = 2.7
    assert integers.tolist() == [[2, 2, 2], [1, 1, 1]]
    assert floats.sum() == 0
    integers[tg.tensor(1)] = tg.tensor([3.7, 4.7, 5.7])  # as with the integer 1
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        integers[True, 0] = tg.tensor(6.7)
    integers[True] = tg.tensor([[6.7], [7.7]])
    assert integers.tolist() == [[6, 6, 6], [7, 7, 7]]


def test_values_that_do_not_fit_what_a_mask_of_rows_selects() -> None:
    x = tg.zeros(3, 4)
    message = (
        r"value tensor of shape \[5\] cannot be broadcast to indexing result of shape \[1, 4\]"
    )
    with pytest.raises(RuntimeError, match=message):
        x[tg.tensor([False, True, False])] = tg.ones(5)
    assert x._version == 0


def test_bounds_of_slices_are_integers() -> None:
    for bad in (slice(1.0, None), slice(None, "a"), slice(None, None, 2.0)):
        with pytest.raises(TypeError, match="slice indices must be integers"):
            tg.ones(3)[bad]


def test_sources_of_other_shapes_and_dtypes() -> None:
    x, rows = tg.zeros(3, 2), tg.tensor([0])
    for name in ("index_add", "index_copy"):
        function = getattr(x, name)
        kind = IndexError if name == "index_copy" else RuntimeError
        with pytest.raises(kind, match=rf"{name}\(\): expected a source of shape \[1, 2\]"):
            function(0, rows, tg.ones(2, 2))
        with pytest.raises(IndexError, match="supposed to be a vector"):
            function(0, rows[None], tg.ones(1, 2))
        assert function(0, tg.tensor(1), tg.ones(1, 2)).tolist() == [[0, 0], [1, 1], [0, 0]]
        with pytest.raises(RuntimeError, match=rf"{name}\(\): self .* must have the same dtype"):
            function(0, rows, tg.ones(1, 2, dtype=tg.int64))


def test_one_row_is_the_view_that_a_slice_and_a_reshape_make():
    for shape in ((4,), (4, 3), (4, 1, 3), (1, 2)):
        x = tg.rand(shape)
        for at in (0, -1, shape[0] - 1, -shape[0]):
            row, same = x[at], x[at % shape[0] : at % shape[0] + 1].reshape(shape[1:])
            assert (row._type, row.stride()) == (same._type, same.stride())
            row.fill_(7)
            assert same.tolist() == row.tolist() and x._version == row._version
            x.zero_()
            assert not row.any()
        for at in (shape[0], -shape[0] - 1):
            with pytest.raises(IndexError, match=f"index {at} is out of bounds for dimension 0"):
                x[at]


def test_gradients_through_one_row():
    x = tg.rand(3, 2, requires_grad=True)
    with tg.no_grad():
        quiet = x[1]
    assert not quiet.requires_grad
    x[1].sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [0, 0]]
    y = x.detach() * 1
    row = y[2]
    y.requires_grad_()
    assert not row.requires_grad


INDICES = [
    2, -1, (1, 2), (-1, 0, 3), slice(None), slice(1, None, 2), slice(5, 2), slice(-2, 99),
    (slice(None), 1), (1, slice(None, None, 3)), (slice(1, 2), 0, slice(1, 3)), (0, slice(1, 2)),
    (slice(None), slice(2, 3), 1), (slice(None), slice(None), slice(0, 1)), (),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_views_made_at_once_are_those_made_step_by_step(index):
    """Where gradients are recorded, a view is made of a slice and a reshape."""
    whole = tg.arange(3 * 4 * 5.0).reshape(3, 4, 5)
    layouts = (whole, whole.transpose(0, 2), whole[:, :, :1], whole[:1, 1:, ::2], whole[:, 1:2])
    for x in (*layouts, whole[:1].expand(4, 4, 5)):
        if isinstance(index, tuple) and any(
            type(at) is int and not -n <= at < n for at, n in zip(index, x.shape)
        ):
            continue
        if type(index) is int and not -len(x) <= index < len(x):
            continue
        at_once = x[index]
        stepwise = x.detach().requires_grad_()[index]
        assert (at_once._type, at_once.stride()) == (stepwise._type, stepwise.stride())
        assert at_once.tolist() == stepwise.tolist()
        if not at_once.numel():
            continue
        assert at_once.data_ptr() == stepwise.data_ptr()
        derived = x
        for step in at_once._view.steps[len(x._view.steps) if x._view else 0 :]:
            derived = apply(step.primitive, derived, **step.attrs)
        assert derived.tolist() == at_once.tolist()


def test_selecting_functions_refuse_what_pytorch_refuses() -> None:
    x, at = tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([[0, 0], [1, 0]])
    assert x.scatter(1, at, x, reduce="multiply").tolist() == [[2, 2], [12, 12]]
    assert x.scatter(1, at, 2.0, reduce="multiply").tolist() == [[4, 2], [6, 8]]
    whole = tg.tensor([1, 2])
    assert whole.index_add(0, tg.tensor([1]), tg.tensor([3]), alpha=2.5).tolist() == [1, 8]
    for error, call in (
        (RuntimeError, lambda: x.scatter(1, at, x, reduce="mean")),
        (TypeError, lambda: x.scatter_add(1, at, 2.0)),
        (RuntimeError, lambda: x.index_fill(0, whole - 1, whole)),
        (IndexError, lambda: x.put(whole, x)),
        (RuntimeError, lambda: x.masked_select(at)),
    ):
        with pytest.raises(error):
            call()
