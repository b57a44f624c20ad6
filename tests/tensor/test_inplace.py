"""In-place operations without gradients: values, shapes, versions, out=."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg
from tgraph.core.public import OPERATIONS


def test_every_in_place_form_exists_and_agrees_with_its_function() -> None:
    operands = {
        "atan2": (0.5,), "add": (2,), "sub": (2,), "mul": (3,), "div": (2,), "pow": (2,),
        "fmod": (0.7,), "remainder": (0.7,), "floor_divide": (0.7,), "clamp": (0.2, 0.8),
        "lerp": (tg.ones(4), 0.5), "addcmul": (tg.ones(4), tg.ones(4)),
        "addcdiv": (tg.ones(4), tg.ones(4)),
    }  # fmt: skip
    x = tg.tensor([0.1, 0.4, 0.6, 0.9])
    for operation in OPERATIONS.values():
        for name in operation.names if operation.inplace else ():
            assert hasattr(tg.Tensor, f"{name}_")
            family = operation.function.__module__.rpartition(".")[2]
            if family not in ("elementwise", "activations") or name == "nan_to_num":
                continue
            given = operands.get(operation.name, ())
            expected = getattr(x, name)(*given)
            found = x.clone()
            assert getattr(found, f"{name}_")(*given) is found
            np.testing.assert_array_equal(found.numpy(), expected.numpy(), err_msg=name)


def test_operators_write_in_place() -> None:
    x = tg.arange(4)
    same, memory = x, x.data_ptr()
    x += 3
    x -= 1
    x *= 2
    x //= 3
    x **= 2
    x %= 5
    x |= 8
    x ^= 1
    x &= 15
    x <<= 2
    x >>= 1
    assert x is same and x.data_ptr() == memory
    expected = ((((np.arange(4) + 2) * 2 // 3) ** 2 % 5 | 8) ^ 1) & 15
    assert x.tolist() == (expected << 2 >> 1).tolist()
    y = tg.ones(2)
    y /= 4
    assert y.tolist() == [0.25, 0.25]


def test_shapes_of_targets_do_not_grow() -> None:
    x = tg.ones(3)
    x += tg.ones(1)
    message = r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"
    with pytest.raises(RuntimeError, match=message):
        x += tg.ones(2, 3)
    assert x.tolist() == [2.0] * 3


def test_copy_fill_zero() -> None:
    x = tg.zeros(2, 2, dtype=tg.int32)
    assert x.copy_(tg.tensor([1.9, -1.9])) is x
    assert x.tolist() == [[1, -1], [1, -1]]
    x.fill_(2.7)
    assert x.tolist() == [[2, 2], [2, 2]]
    x.fill_(tg.tensor(3))
    x.zero_()
    assert not x.any()
    with pytest.raises(RuntimeError, match="0-dimension value tensor"):
        x.fill_(tg.ones(2))


def test_writing_to_overlapping_memory_with_gaps_reads_first() -> None:
    x = tg.arange(9.0)
    x[2::2].add_(x[:-2:2])
    assert x.tolist() == [0, 1, 2, 3, 6, 5, 10, 7, 14]


def test_versions_count_writes_through_all_views() -> None:
    x = tg.zeros(4)
    view = x[1:]
    view.add_(1)
    x[0] = 1
    x.detach().mul_(2)
    assert x._version == view._version == 3
    assert x.clone()._version == 0


def test_out() -> None:
    out = tg.zeros(3)
    returned = tg.add(tg.ones(3), 1, out=out)
    assert returned is out and out.tolist() == [2.0] * 3
    tg.matmul(tg.ones(3, 2), tg.ones(2), out=out)
    with pytest.raises(RuntimeError, match=r"out= has shape \[3\], the result has \[2\]"):
        tg.exp(tg.ones(2), out=out)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tg.exp(tg.ones(3), out=tg.zeros(3, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        tg.exp(tg.ones(3, requires_grad=True), out=out)
    with tg.no_grad():
        tg.mul(tg.ones(3, requires_grad=True), 5, out=out)
    assert out.tolist() == [5.0] * 3
    with pytest.raises(RuntimeError, match="expected out= of the result's type float32"):
        tg.abs(tg.ones(3), out=tg.zeros(3, dtype=tg.float64))
    assert tg.ones(3, out=tg.zeros(3, dtype=tg.int8)).tolist() == [1] * 3


def test_out_without_elements_is_made_as_large_as_the_result() -> None:
    x, out = tg.arange(6.0).reshape(2, 3), tg.empty(0, dtype=tg.float64)
    assert tg.exp(x.t(), out=out) is out and out.dtype is tg.float64
    assert out.tolist() == x.t().exp().double().tolist()
    out = tg.empty(0)
    tg.mul(x, 1, out=out)
    assert out.add_(1).data_ptr() != x.data_ptr() and x[0, 0] == 0
    with pytest.raises(RuntimeError, match=r"out= has shape \[0\], the result has \[2, 3\]"):
        tg.compile(lambda x: tg.exp(x, out=tg.empty(0)))(x)


def test_out_of_several_results() -> None:
    x = tg.tensor([[3.0, 1.0], [2.0, 5.0]])
    out = tg.empty(2), tg.empty(2, dtype=tg.int64)
    found = tg.max(x, dim=1, out=out)
    assert found.values is out[0] and found.indices is out[1] and found[1].tolist() == [0, 1]
    compiled = tg.compile(lambda x, *out: tg.topk(x, 1, dim=0, out=out))
    columns = tg.zeros(1, 2), tg.zeros(1, 2, dtype=tg.int64)
    assert [each.tolist() for each in compiled(x, *columns)] == [[[3.0, 5.0]], [[0, 1]]]
    assert columns[0].tolist() == [[3.0, 5.0]] and columns[1].tolist() == [[0, 1]]
    sign, size = tg.linalg.slogdet(x, out=[tg.empty(0), tg.empty(0)])
    assert (sign * size.exp()).item() == pytest.approx(13)
    with pytest.raises(RuntimeError, match=r"sort.*the result's type int64, got float32"):
        tg.sort(x, out=(tg.empty(0), tg.empty(0)))
    with pytest.raises(TypeError, match="'out' has 1 tensors; expected a tuple of 2"):
        tg.sort(x, out=tg.empty(0))
    with pytest.raises(TypeError, match="'out' has 2 tensors; expected one Tensor"):
        tg.exp(x, out=(x, x))
    with pytest.raises(TypeError, match=r"'out' must be a Tensor.*not int"):
        tg.exp(x, out=1)


def test_a_part_of_an_expanded_tensor_is_not_written() -> None:
    rows = tg.ones(2).expand(3, 2)
    for target in (rows, rows[0]):
        with pytest.raises(RuntimeError, match=r"unsupported operation.*one.* memory"):
            target.add_(1)


def test_zeros_keep_their_sign_as_numbers() -> None:
    def signs(x: tg.Tensor) -> list[tg.Tensor]:
        one = tg.ones(1)
        values = (0.0, -0.0, 0, 0.0, -0.0)
        return [tg.copysign(one, x.clone().fill_(value)) for value in values] + [
            tg.copysign(one, (x * value)) for value in values
        ]

    for found in (signs(tg.ones(1)), tg.compile(signs)(tg.ones(1))):
        assert [each.item() for each in found] == [1.0, -1.0, 1.0, 1.0, -1.0] * 2


def test_writes_without_gradients_still_see_those_of_operands() -> None:
    w = tg.ones(2, requires_grad=True)
    writes = [
        lambda y: y.add_(w), lambda y: y.add_(other=w), lambda y: y.addcmul_(tg.ones(2), w),
        lambda y: y.copy_(w), lambda y: y.index_put_((tg.tensor([0, 1]),), w),
        lambda y: y[:1].mul_(w[0]), lambda y: y.__setitem__(0, w[1]),
    ]  # fmt: skip
    for write in writes:
        y = tg.full((2,), 2.0)
        write(y)
        assert y.requires_grad
        (slope,) = tg.autograd.grad(y.sum(), w)
        assert slope.any()
