"""Storages: the memory that tensors share, and tensors over it; classes of one dtype."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn


def test_views_share_a_storage() -> None:
    x = tg.arange(12.0).reshape(3, 4)
    part = x.t()[1:]
    storage = part.untyped_storage()
    assert storage == x.untyped_storage() and {storage} == {x.detach().untyped_storage()}
    assert storage.data_ptr() == x.data_ptr() and storage.nbytes() == len(storage) == 48
    assert part.data_ptr() - storage.data_ptr() == 4 * part.storage_offset() == 4
    assert storage.tolist() == [*x.numpy().tobytes()] and storage[2] == storage.tolist()[2]
    assert storage != x.clone().untyped_storage() and not storage.is_cuda
    typed = part.storage()
    assert typed.dtype is tg.float32 and typed.tolist() == [*range(12)] and len(typed) == 12
    typed[5] = 50.0
    assert x[1, 1] == 50.0 == typed[5] and x._version == 1
    storage.fill_(0)
    assert part.tolist() == [[0.0] * 3] * 3 and x._version == 2
    typed.copy_(tg.FloatStorage([1.0] * 12))
    assert x.sum() == 12 and typed.clone() != typed and typed == x.storage()
    assert isinstance(typed, tg.FloatStorage) and not isinstance(typed, tg.LongStorage)
    ints = tg.TypedStorage([1, 2], dtype=tg.int64)
    assert type(ints) is tg.LongStorage and ints.tolist() == [1, 2] and tg.is_storage(ints)
    assert type(tg.TypedStorage(x.untyped_storage())) is tg.FloatStorage
    with pytest.raises(RuntimeError, match="48 bytes but src was 3 bytes"):
        storage.copy_(tg.UntypedStorage(3))
    base = np.arange(10)
    strided = tg.from_numpy(base[1::2])
    assert strided.untyped_storage().nbytes() == 72 and strided.storage()[1] == 2


def test_set_points_elsewhere() -> None:
    x, other = tg.zeros(0), tg.arange(6.0)
    alias = x.set_(other)
    assert alias is x and x.untyped_storage() == other.untyped_storage()
    x.set_(other.untyped_storage(), 1, (2, 2), (1, 2))
    assert x.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    x.fill_(9.0)
    assert other.tolist() == [0.0, 9.0, 9.0, 9.0, 9.0, 5.0] and other._version == x._version
    ints = tg.zeros(0, dtype=tg.int32).set_(other.untyped_storage())
    assert ints[0] == 0 and ints[1] == np.float32(9).view(np.int32)
    assert x.set_().numel() == 0
    with pytest.raises(RuntimeError, match=r"expected a source of tgraph\.int64"):
        tg.zeros(0, dtype=tg.int64).set_(other)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        tg.zeros(0).set_(other.untyped_storage(), 3, (4,))
    with pytest.raises(RuntimeError, match=r"set_\(\) in a traced function"):
        tg.compile(lambda x: x.set_(other))(tg.ones(2))


def test_the_bits_of_values_that_have_no_memory_yet() -> None:
    """Compiled, a view of another type is written through, and follows writes, as in memory."""

    def written(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
        y = x * 1
        pairs, whole = y.view(tg.complex64), y[1:].view(tg.int16)
        y.mul_(2)
        whole[0, :2] = 1
        pairs[0, 1] = 3 - 1j
        return y, whole, pairs, y.as_strided((2,), (3,), 1).view(tg.int32)

    x = tg.arange(8.0).reshape(2, 4)
    for found, wanted in zip(tg.compile(written)(x), written(x), strict=True):
        assert found.equal(wanted) and found.stride() == wanted.stride()
    # Nothing of it has a gradient, as in PyTorch.
    leaf = x.clone().requires_grad_()
    bits = leaf.view(tg.float64)
    assert (
        not bits.requires_grad and not tg.compile(lambda x: x.view(tg.float64))(leaf).requires_grad
    )
    _, tangent = tg.func.jvp(lambda x: x.view(tg.int32).view(tg.float32) * x, (x,), (x * 0 + 1,))
    assert tangent.equal(x)
    assert tg.vmap(lambda row: row.view(tg.uint8))(x).equal(x.view(tg.uint8))
    halves = tg.compile(lambda x: x.view(tg.float64), dynamic={"x": 1})
    assert halves(x).equal(x.view(tg.float64)) and halves(x[:, :2]).shape == (2, 1)
    for give in (halves, lambda x: x.view(tg.float64)):
        with pytest.raises(RuntimeError, match=r"self\.size\(-1\) must be divisible by 2"):
            give(x[:, :3])


def test_as_strided_is_a_view_with_a_gradient() -> None:
    x = tg.arange(12.0, requires_grad=True)
    shown = (x * 1).as_strided((2, 3), (2, 1), 4)
    assert shown.tolist() == [[4.0, 5.0, 6.0], [6.0, 7.0, 8.0]]
    shown.sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0, 1, 1, 2, 1, 1, 0, 0, 0]
    y = tg.arange(12.0).reshape(3, 4)
    part = y[1:, 1:].as_strided((2, 2), (4, 1))  # from where the view begins, over all memory
    part.fill_(0.0)
    assert part.storage_offset() == 5 and y.tolist()[1:] == [[4, 0, 0, 7], [8, 0, 0, 11]]
    assert y.as_strided((2, 3), (0, 1)).tolist() == [[0, 1, 2]] * 2
    assert tg.view_as_real(tg.complex(y, y))[0].as_strided((3,), (1,), 2).tolist() == [1, 1, 2]
    for wrong in (((13,), (1,)), ((2,), (12,)), ((1,), (1,), 12)):
        with pytest.raises(RuntimeError, match="out of bounds"):
            y.as_strided(*wrong)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 48"):
        tg.compile(lambda y: y.as_strided((13,), (1,)))(tg.zeros(12))
    rows = tg.vmap(lambda row: row.as_strided((2, 2), (1, 2)))(y)
    assert rows[1].tolist() == [[4, 0], [0, 7]]
    with pytest.raises(RuntimeError, match="negative strides"):
        y.as_strided((2,), (-1,), 3)
    with pytest.raises(RuntimeError, match="mismatch in length"):
        y.as_strided((2,), (1, 1))
    gaps = tg.from_numpy(np.arange(10.0)[::2])
    assert gaps.as_strided((3,), (1,)).tolist() == [0, 1, 2]


def test_copies_share_what_was_shared() -> None:
    x = tg.arange(6.0).reshape(2, 3)
    weight = nn.Parameter(tg.ones(2, 2))
    part, whole, again, parameter = copy.deepcopy([x.t()[1:], x, x, weight])
    assert whole is again
    part.fill_(7.0)
    assert whole.tolist() == [[0, 7, 7], [3, 7, 7]] and x.sum() == 15
    with tg.no_grad():
        parameter.fill_(3.0)
    assert weight.sum() == 4 and type(parameter) is nn.Parameter
    shallow = copy.copy(x)
    assert shallow is not x and shallow.untyped_storage() == x.untyped_storage()
    expanded = copy.deepcopy(tg.zeros(3, 1).expand(3, 4))
    assert expanded.stride() == (1, 0) and expanded.untyped_storage().nbytes() == 12


def test_storages_of_another_size() -> None:
    """Tensors follow their memory; what does not fit any more waits until there is room."""
    x = tg.arange(6.0)
    tail, flipped, storage = x[2:], x.reshape(2, 3).t(), x.untyped_storage()
    storage.resize_(34)
    assert storage.nbytes() == x.untyped_storage().nbytes() == 34 and flipped.stride() == (1, 3)
    tail.fill_(1.0)
    assert x.tolist() == [0, 1, 1, 1, 1, 1] and flipped.tolist()[2] == [1, 1] and x._version == 1
    assert tg.zeros(0).set_(storage).tolist() == [0, 1, 1, 1, 1, 1, 0, 0]
    storage.resize_(8)
    assert x.tolist() == [0.0] * 6 and tg.zeros(0).set_(storage).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="more than one element"):
        x.fill_(3.0)
    del storage
    x.untyped_storage().resize_(24)
    assert x.tolist() == [0, 1, 0, 0, 0, 0]
    flipped[1, 1] = 5.0
    assert x[4] == tail[2] == 5.0
    leaf = tg.zeros(2, requires_grad=True)
    leaf.untyped_storage().resize_(16)
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3] and leaf.is_leaf
    short = x[:2].resize_(8)
    assert short.tolist() == [0, 1, 0, 0, 5, 0, 0, 0] and x.shape == (6,)
    short.fill_(2.0)
    assert x.sum() == 12 and x.storage().size() == 8
    x.storage().resize_(6)
    assert short.tolist() == [0.0] * 8 and tail.tolist() == [2.0] * 4
    for fixed in (tg.from_numpy(np.ones(2)), tg.ones(2).share_memory_()):
        with pytest.raises(RuntimeError, match="not resizable"):
            fixed.resize_(3)


def test_classes_of_one_dtype() -> None:
    assert tg.FloatTensor(3, 2).shape == tg.FloatTensor(tg.Size((3, 2))).shape == (3, 2)
    assert tg.LongTensor([1, 2]).dtype is tg.int64 and tg.ByteTensor().shape == (0,)
    assert tg.DoubleTensor(np.ones(2, np.float32)).dtype is tg.float64
    x = tg.ones(2)
    assert isinstance(x, tg.FloatTensor) and not isinstance(x, tg.DoubleTensor)
    assert not isinstance(x, tg.cuda.FloatTensor) and isinstance(x > 1, tg.BoolTensor)
    assert tg.FloatTensor(x).untyped_storage() == x.untyped_storage()
    assert tg.FloatTensor(x.storage()).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match=r"expected a tensor of tgraph\.int64, got tgraph\.float32"):
        tg.LongTensor(x)
    names = {tg.float32: "Float", tg.bfloat16: "BFloat16", tg.bool: "Bool", tg.uint8: "Byte"}
    for dtype, word in names.items():
        assert x.to(dtype).type() == f"torch.{word}Tensor"
        for name in (f"torch.{word}Tensor", f"tgraph.{word}Tensor", getattr(tg, f"{word}Tensor")):
            assert x.type(name).dtype is dtype
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.NoTensor")
    tg.set_default_tensor_type(tg.DoubleTensor)
    try:
        assert tg.ones(1).dtype is tg.float64
    finally:
        tg.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="only floating-point"):
        tg.set_default_tensor_type(tg.LongTensor)
