"""Views share memory; shapes, strides and contiguity are PyTorch's."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tgraph as tg


def base() -> Any:
    return tg.arange(24.0).reshape(2, 3, 4)


# name -> view, what NumPy makes of it, strides
VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[int, ...]]] = {
    "view": (lambda x: x.view(6, 4), lambda a: a.reshape(6, 4), (4, 1)),
    "view -1": (lambda x: x.view(-1, 2), lambda a: a.reshape(12, 2), (2, 1)),
    "reshape": (lambda x: x.reshape(4, 6), lambda a: a.reshape(4, 6), (6, 1)),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12), (12, 1)),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), lambda a: a.reshape(2, 3, 2, 2), (12, 4, 2, 1)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1), (1, 12, 4)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2), (1, 4, 12)),
    "movedim": (lambda x: x.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1), (4, 1, 12)),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(1, 2), (12, 1, 4)),
    "T": (lambda x: x[0].T, lambda a: a[0].T, (1, 4)),
    "squeeze": (lambda x: x[:1].squeeze(), lambda a: a[0], (4, 1)),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None], (12, 12, 4, 1)),
    "narrow": (lambda x: x.narrow(1, 1, 2), lambda a: a[:, 1:], (12, 4, 1)),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1], (12, 1)),
    "split": (lambda x: x.split(2, 2)[1], lambda a: a[..., 2:], (12, 4, 1)),
    "chunk": (lambda x: x.chunk(2)[1], lambda a: a[1:], (12, 4, 1)),
    "unbind": (lambda x: x.unbind(2)[3], lambda a: a[..., 3], (12, 4)),
    "diagonal": (lambda x: x[0].diagonal(1), lambda a: a[0].diagonal(1), (5,)),
    "steps": (lambda x: x[:, ::2, 1::2], lambda a: a[:, ::2, 1::2], (12, 8, 2)),
    "unfold": (
        lambda x: x.unfold(2, 2, 2),
        lambda a: a.reshape(2, 3, 2, 2),
        (12, 4, 2, 1),
    ),
    "detach": (lambda x: x.detach(), lambda a: a, (12, 4, 1)),
    "view_as": (lambda x: x.view_as(tg.zeros(24)), lambda a: a.reshape(24), (1,)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    view, expected, strides = VIEWS[name]
    x = base()
    found = view(x)
    np.testing.assert_array_equal(found.numpy(), expected(x.numpy()))
    assert np.shares_memory(found.numpy(), x.numpy())
    found.add_(100)
    assert (x.numpy() >= 100).sum() == found.numel()
    x.zero_()
    assert not found.any()
    assert found.stride() == strides


def test_copies_are_no_views() -> None:
    x = base()
    for copy in (
        x.clone(),
        x.flip(0),
        x.repeat(1, 1, 1),
        x.repeat_interleave(1, 0),
        x.tile(1),
        x.roll(0, 0),
        tg.cat([x]),
        x.mT.contiguous(),
        x.transpose(0, 1).reshape(-1),
        x + 0,
        x.to(tg.float32, copy=True),
        x.take(tg.tensor(1)),
        x[0, 0, 0].take(tg.tensor(0)),
    ):
        assert not np.shares_memory(copy.numpy(), x.numpy())


def test_what_returns_the_tensor_itself() -> None:
    x = base()
    assert x.contiguous() is x
    assert x.to(tg.float32) is x
    assert x.float() is x
    assert x.cpu() is x
    assert x.flatten(1, 1) is x


def test_expand() -> None:
    x = tg.arange(3.0).reshape(3, 1)
    wide = x.expand(2, -1, 4)
    assert wide.shape == (2, 3, 4) and wide.stride() == (0, 1, 0)
    assert np.shares_memory(wide.numpy(), x.numpy())
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        wide.add_(1)
    assert not wide.is_contiguous() and wide.contiguous().is_contiguous()
    with pytest.raises(RuntimeError, match=r"expanded size of the tensor \(5\) must match"):
        x.expand(5, 4)
    with pytest.raises(RuntimeError, match="must be greater or equal to the number of dim"):
        x.expand(3)


def test_view_needs_fitting_memory() -> None:
    x = base().transpose(0, 1)
    assert not x.is_contiguous()
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size"):
        x.view(-1)
    assert x.reshape(-1).is_contiguous()
    assert x.view(3, 2, 2, 2).shape == (3, 2, 2, 2)
    with pytest.raises(RuntimeError, match=r"shape '\[5\]' is invalid for input of size 24"):
        base().view(5)
    with pytest.raises(RuntimeError, match="only one dimension can be inferred"):
        base().view(-1, -1)


def test_strides_of_views_are_possible_for_every_merge() -> None:
    rng = np.random.RandomState(0)
    for _ in range(200):
        array = np.arange(24.0).reshape(2, 3, 4).transpose(rng.permutation(3))
        if rng.rand() < 0.5:
            array = array[:, :: rng.randint(1, 3)]
        count = array.size
        sizes = []
        while count > 1:
            part = int(rng.choice([d for d in range(1, count + 1) if count % d == 0]))
            sizes.append(part)
            count //= part
        x = tg.from_numpy(array)
        shared = np.shares_memory(array.reshape(sizes), array)
        try:
            viewed = x.view(sizes)
        except RuntimeError:
            assert not shared
        else:
            assert shared
            np.testing.assert_array_equal(viewed.numpy(), array.reshape(sizes))


def test_dimension_errors() -> None:
    x = base()
    message = r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)"
    for operation in (
        lambda: x.transpose(0, 3),
        lambda: x.squeeze(3),
        lambda: x.sum(3),
        lambda: x.select(3, 0),
        lambda: x.flatten(3),
        lambda: x.size(3),
        lambda: tg.cat([x, x], 3),
    ):
        with pytest.raises(IndexError, match=message):
            operation()
    with pytest.raises(RuntimeError, match="duplicate dims"):
        x.permute(0, 0, 1)
    with pytest.raises(RuntimeError, match="number of dimensions in the tensor input"):
        x.permute(0, 1)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        x.sum((0, 0))
    with pytest.raises(IndexError, match="index 5 out of range"):
        x.select(0, 5)
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        x.narrow(0, 1, 2)
    with pytest.raises(RuntimeError, match="<= 2 dimensions"):
        x.t()


def test_joining() -> None:
    x = base()
    joined = tg.cat([x, x[:, :1]], 1)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([x.numpy(), x.numpy()[:, :1]], 1))
    assert tg.stack([x, x], -1).shape == (2, 3, 4, 2)
    assert tg.cat([tg.zeros(0), x[0]]).shape == (3, 4)
    assert tg.hstack([tg.ones(2), tg.ones(3)]).shape == (5,)
    assert tg.vstack([tg.ones(2), tg.ones(2)]).shape == (2, 2)
    with pytest.raises(RuntimeError, match=r"Expected size 3 but got size 2 for tensor number 1"):
        tg.cat([tg.ones(2, 3), tg.ones(3, 2)])
    with pytest.raises(RuntimeError, match="same number of dimensions: got 2 and 1"):
        tg.cat([tg.ones(2, 3), tg.ones(3)])
    for function in (tg.stack, tg.vstack, tg.hstack, tg.dstack, tg.column_stack):
        with pytest.raises(RuntimeError, match="stack expects a non-empty TensorList"):
            function([])
    with pytest.raises(ValueError, match="non-empty list"):
        tg.cat([])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        tg.stack([tg.ones(2), tg.ones(3)])
    with pytest.raises(TypeError, match=r"cat\(\): argument 'tensors' .*must be tuple of Tensors"):
        tg.cat([1, 2])


def test_splitting() -> None:
    x = tg.arange(7)
    assert [each.tolist() for each in x.split(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [each.tolist() for each in x.split([2, 5])] == [[0, 1], [2, 3, 4, 5, 6]]
    assert [len(each) for each in x.chunk(3)] == [3, 3, 1]
    assert [len(each) for each in x.tensor_split(3)] == [3, 2, 2]
    assert [len(each) for each in x.tensor_split([1, 3])] == [1, 2, 4]
    with pytest.raises(RuntimeError, match="sum exactly to 7"):
        x.split([1, 2])
    with pytest.raises(RuntimeError, match="non-negative"):
        x.split(-1)


def test_size() -> None:
    shape = base().shape
    assert shape == (2, 3, 4) and shape.numel() == 24
    assert repr(shape) == "tgraph.Size([2, 3, 4])"
    assert isinstance(shape[1:], tg.Size) and shape[1:].numel() == 12
    assert base().size(-1) == 4 and base().ndim == base().dim() == 3


def test_strides_of_empty_tensors() -> None:
    assert tg.zeros(0, 3).stride() == (3, 1)
    assert tg.zeros(2, 0, 3).stride() == (3, 3, 1)
    assert tg.zeros(2, 3)[2:].stride() == (3, 1)


# --- diagonals of every layout --------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.reshape(6, 9).swapaxes(0, 1),
    "every second column": lambda x: x.reshape(6, 9)[:, ::2],
    "inner part": lambda x: x.reshape(6, 9)[1:, 2:7],
    "three axes": lambda x: x.reshape(2, 3, 9),
    "four axes": lambda x: x[:36].reshape(2, 3, 3, 2),
    "four axes transposed": lambda x: (
        x[:36].reshape(2, 3, 3, 2).swapaxes(0, 3).swapaxes(1, 2)[:, 1:]
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_diagonal_is_a_view(layout: Any, compiled: bool) -> None:
    """Also where its tensor is no view of one line: what is written to it arrives."""
    ndim = layout(np.zeros(54)).ndim
    axes = [(a, b) for a in range(ndim) for b in range(ndim) if a != b]

    def write(x: Any) -> None:
        for a, b in axes:
            for offset in (-1, 0, 1):
                layout(x).diagonal(offset, a, b).mul_(-1).add_(0.25)
        layout(x.detach()).diagonal(0).mul_(2)

    x, array = tg.arange(54.0), np.arange(54.0)
    (tg.compile(write) if compiled else write)(x)
    for a, b in axes:
        for offset in (-1, 0, 1):
            part = layout(array).diagonal(offset, a, b)
            part.flags.writeable = True
            part[...] = -part + 0.25
    part = layout(array).diagonal(0)
    part.flags.writeable = True
    part[...] *= 2
    assert x.tolist() == array.tolist()


def test_gradients_through_a_written_diagonal() -> None:
    def program(x: Any) -> Any:
        y = x * 1
        y[:, ::2].diagonal().mul_(2)
        y.permute(2, 0, 1).diagonal(1, 1, 2).sin_()
        return (y * y).sum()

    rng = np.random.default_rng(0)
    start = rng.uniform(-1, 1, (3, 4, 5))
    x = tg.tensor(start, requires_grad=True)
    for call in (program, tg.compile(program)):
        x.grad = None
        call(x).backward()
        step = 1e-6 * rng.uniform(-1, 1, start.shape)
        with tg.no_grad():
            change = (program(x + step) - program(x - step)).item()
        assert abs((x.grad.numpy() * step).sum() * 2 - change) < 1e-12


# --- orders of memory ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "shape", "strides"),
    [
        (tg.channels_last, (2, 3, 4, 5), (60, 1, 15, 3)),
        (tg.channels_last_3d, (2, 3, 4, 5, 2), (120, 1, 30, 6, 3)),
        (tg.contiguous_format, (2, 3), (3, 1)),
    ],
)
def test_memory_formats(order: tg.memory_format, shape: tuple[int, ...], strides: Any) -> None:
    x = tg.arange(float(math.prod(shape))).reshape(shape).requires_grad_()
    moved = x.contiguous(memory_format=order)
    for each in (moved, x.clone(memory_format=order), x.to(memory_format=order), moved.clone()):
        assert each.stride() == strides and tg.equal(each, x)
    assert moved.is_contiguous(memory_format=order)
    assert moved.contiguous(memory_format=order) is moved
    assert x.is_contiguous(memory_format=order) == (order is tg.contiguous_format)
    assert moved.to(tg.float64, memory_format=tg.contiguous_format).is_contiguous()
    assert not tg.ones(2).is_contiguous(memory_format=tg.channels_last)
    (moved * x.detach()).sum().backward()
    assert tg.equal(x.grad, x.detach())
    assert tg.equal(tg.compile(lambda y: y.contiguous(memory_format=order) * 2)(x), x * 2)
    assert tg.compile(lambda y: y.half(memory_format=order).stride())(x) == strides


def test_memory_formats_need_their_dimensions() -> None:
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        tg.ones(3).contiguous(memory_format=tg.channels_last)
    assert repr(tg.channels_last) == "tgraph.channels_last"
    assert pickle.loads(pickle.dumps(tg.channels_last)) is tg.channels_last


def test_memory_read_as_another_type() -> None:
    x = tg.arange(24.0).reshape(2, 3, 4)
    assert x.view(tg.int32)[0, 0].tolist() == [0, 0x3F800000, 0x40000000, 0x40400000]
    assert x.view(tg.float64).stride() == (6, 2, 1) and x.view(dtype=tg.uint8).shape == (2, 3, 16)
    assert x[:, 1].view(tg.complex64).tolist() == [[4 + 5j, 6 + 7j], [16 + 17j, 18 + 19j]]
    assert x.transpose(0, 2).view(tg.int32).stride() == (1, 4, 12)
    assert x.new_zeros(0, 4).view(tg.int64).shape == (0, 2)
    assert x.view(tg.float32) is not x and x.view(tg.float32).data_ptr() == x.data_ptr()
    x.view(tg.int32)[0].fill_(0)
    assert x[0].sum() == 0 and x[1].sum() > 0
    for refused, message in (
        (lambda: x[..., 1:3].view(tg.int64), r"storage_offset\(\) must be divisible by 2"),
        (lambda: x[..., :3].view(tg.int64), r"size\(-1\) must be divisible by 2"),
        (lambda: x.transpose(0, 2).view(tg.int64), r"stride\(-1\) must be 1"),
        (lambda: x[0, 0, 0].view(tg.int64), r"dim\(\) cannot be 0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            refused()
    with pytest.raises(TypeError, match="sizes or a dtype"):
        x.view(2, 12, dtype=tg.int32)
