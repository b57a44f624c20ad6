"""Tensors on CUDA devices: made there, moved, mixed, written and printed."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from device_tools import CPU, MADE, MIXED, ON_SEVERAL, same

import tgraph as tg
from tgraph import nn

pytest_plugins = ["cuda_tools.device"]

DTYPES = (tg.bool, tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64, tg.float16, tg.bfloat16,
          tg.float32, tg.float64)  # fmt: skip


# -- making tensors --------------------------------------------------------------------------


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_making_tensors(make: Any, cuda: Any) -> None:
    tg.manual_seed(3)
    expected = make()
    for on in ({"device": "cuda"}, {"device": "cuda:0"}, {"device": cuda}, {"device": 0}):
        tg.manual_seed(3)
        same(make(**on), expected, cuda)
    tg.manual_seed(3)
    with cuda:
        same(make(), expected, cuda)
    assert make().device == CPU


def test_tensors_like_others(cuda: Any) -> None:
    x = tg.ones(2, 3, dtype=tg.float16, device=cuda)
    for made in (tg.zeros_like(x), tg.ones_like(x), tg.full_like(x, 2), tg.rand_like(x),
                 tg.randn_like(x), x.new_zeros(2), x.new_full((2,), 3), x.new_ones(1),
                 x.new_empty(1), x.new_tensor([1, 2])):  # fmt: skip
        assert made.device == cuda and made.dtype is tg.float16
    assert tg.zeros_like(x, device="cpu").device == CPU
    assert tg.randint_like(x, 5).device == cuda
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "To copy construct from a tensor")
        assert tg.tensor(x).device == cuda
    assert tg.as_tensor(x) is x


def test_the_sign_of_zero_is_kept(cuda: Any) -> None:
    for dtype in (tg.float32, tg.bfloat16, tg.float16, tg.float64):
        zero = tg.tensor(-0.0, dtype=dtype)
        found = (
            tg.tensor(-0.0, dtype=dtype, device=cuda),
            zero.cuda(),
            tg.full((), -0.0, dtype=dtype, device=cuda),
            tg.full((3,), -0.0, dtype=dtype, device=cuda),
            tg.zeros(3, dtype=dtype, device=cuda) * -0.0 - 0.0,
            tg.ones(2, dtype=dtype, device=cuda).fill_(-0.0),
            copy.deepcopy(zero.cuda()),
            pickle.loads(pickle.dumps(zero.cuda())),
        )
        for each in found:
            assert np.signbit(each.cpu().float().numpy()).all(), dtype


# -- moving ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(dtype: Any, cuda: Any) -> None:
    for shape in ((), (5,), (2, 0), (3, 4)):
        x = (tg.arange(int(np.prod(shape))) - 2).reshape(shape).to(dtype)
        for there in (x.cuda(), x.to("cuda"), x.to(cuda), x.to(0), x.to(tg.ones(1, device=cuda)
                      .to(dtype)), x.to(device="cuda:0"), x.cuda(0)):  # fmt: skip
            same(there, x, cuda)
            assert there.is_cuda and not there.is_cpu and there.get_device() == 0
            same(there.cpu(), x, CPU)
    y = tg.arange(12).reshape(3, 4).to(dtype)
    same(y.T.cuda(), y.T, cuda)
    same(y.cuda().T[1:].cpu(), y.T[1:], CPU)
    same(y[:, ::2].cuda(), y[:, ::2], cuda)
    same(y[:1].expand(5, 4).cuda(), y[:1].expand(5, 4), cuda)


def test_what_to_returns(cuda: Any) -> None:
    x = tg.ones(3)
    there = x.to(cuda)
    assert there.to("cuda") is there.cuda() is there and x.cpu() is x
    assert there.to(cuda, copy=True) is not there
    assert there.to(tg.int32).device == cuda
    both = x.to(cuda, tg.float16)
    assert both.device == cuda and both.dtype is tg.float16
    assert there.type_as(tg.ones(1, dtype=tg.int8)).device == CPU
    there.add_(1)
    assert x.tolist() == [1.0] * 3  # other memory
    later = there.to("cpu", non_blocking=True)
    tg.cuda.synchronize()
    assert later.tolist() == [2.0] * 3


def test_gradients_go_through_transfers(cuda: Any) -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = (x.cuda() * x.cuda()).cpu() * x
    y.sum().backward()
    same(x.grad, tg.tensor([3.0, 12.0]), CPU)
    z = tg.tensor([1.0, 2.0], device=cuda, requires_grad=True)
    at_home = z.cpu()
    (first,) = tg.autograd.grad((at_home * at_home * at_home).sum(), z, create_graph=True)
    assert first.device == cuda
    first.sum().backward()
    same(z.grad, tg.tensor([6.0, 12.0]), cuda)


def test_numbers_and_arrays(cuda: Any) -> None:
    x = tg.tensor([[1.5, 2.0]], device=cuda)
    assert x.tolist() == [[1.5, 2.0]] and x[0, 1].item() == 2.0
    assert float(x[0, 0]) == 1.5 and int(x[0, 1]) == 2 and bool(x[0, 0])
    assert [each.tolist() for each in x] == [[1.5, 2.0]] and len(x) == 1 and 1.5 in x
    assert list(range(tg.tensor(3, device=cuda))) == [0, 1, 2]
    assert x.numpy(force=True).tolist() == [[1.5, 2.0]]
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy."):
        x.numpy()
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
        np.asarray(x)
    assert f"{x[0, 0]:.2f}" == "1.50"


def test_printing(cuda: Any) -> None:
    assert (
        repr(tg.tensor([1.0, -2.5], device=cuda)) == "tensor([ 1.0000, -2.5000], device='cuda:0')"
    )
    x = tg.zeros(2, dtype=tg.int8, device=cuda)
    assert repr(x) == "tensor([0, 0], device='cuda:0', dtype=tgraph.int8)"
    assert "..." in repr(tg.zeros(2000, device=cuda))
    y = tg.ones(1, device=cuda, requires_grad=True)
    assert repr(y) == "tensor([1.], device='cuda:0', requires_grad=True)"
    assert repr(y * 2) == "tensor([2.], device='cuda:0', grad_fn=<MulBackward0>)"
    assert repr(tg.zeros(0, 3, device=cuda)) == "tensor([], device='cuda:0', size=(0, 3))"


# -- several devices -------------------------------------------------------------------------


def test_numbers_of_the_cpu_go_with_a_device(cuda: Any) -> None:
    x, number = tg.tensor([1.0, 4.0], device=cuda), tg.tensor(2.0)
    same(x + number, tg.tensor([3.0, 6.0]), cuda)
    same(number / x, tg.tensor([2.0, 0.5]), cuda)
    same(number + tg.tensor(1.0, device=cuda), tg.tensor(3.0), cuda)
    same(tg.maximum(x, number), tg.tensor([2.0, 4.0]), cuda)
    same(tg.where(x > 2, x, number), tg.tensor([2.0, 4.0]), cuda)
    same(tg.where(tg.tensor(True), x, 0.0), tg.tensor([1.0, 4.0]), cuda)
    same(tg.clamp(x, number, number + 1), tg.tensor([2.0, 3.0]), cuda)
    same(tg.lerp(x, x * 2, tg.tensor(0.5)), tg.tensor([1.5, 6.0]), cuda)
    same(tg.masked_fill(x, x > 2, number), tg.tensor([1.0, 2.0]), cuda)
    same(x.mul_(number), tg.tensor([2.0, 8.0]), cuda)
    half = tg.ones(2, dtype=tg.float16, device=cuda)
    same(half * tg.tensor(3.0, dtype=tg.float64), tg.full((2,), 3.0, dtype=tg.float16), cuda)


def test_the_gradient_of_a_number_of_the_cpu_goes_there(cuda: Any) -> None:
    number = tg.tensor(2.0, requires_grad=True)
    (tg.tensor([1.0, 4.0], device=cuda) * number).sum().backward()
    same(number.grad, tg.tensor(5.0), CPU)


@pytest.mark.parametrize("mix", MIXED.values(), ids=MIXED)
def test_devices_do_not_mix(mix: Any, cuda: Any) -> None:
    for _ in range(2):  # the second time, too
        with pytest.raises(RuntimeError, match=ON_SEVERAL + "cuda:0 and cpu! ") as error:
            mix(cuda)
        assert ".to('cuda:0') or .to('cpu')" in str(error.value)


def test_errors_of_mixed_devices_name_the_operation(cuda: Any) -> None:
    with pytest.raises(RuntimeError, match=r"\(in matmul; move one of them with"):
        tg.ones(2, 2, device=cuda) @ tg.ones(2, 2)


def test_a_gradient_lies_with_its_tensor(cuda: Any) -> None:
    x = tg.ones(2, device=cuda, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"a gradient on 'cpu' to a tensor on 'cuda:0'"):
        x.grad = tg.ones(2)
    x.grad = tg.ones(2, device=cuda)


def test_copies_and_slices_take_values_from_elsewhere(cuda: Any) -> None:
    x = tg.zeros(3, device=cuda)
    same(x.copy_(tg.tensor([1, 2, 3])), tg.tensor([1.0, 2.0, 3.0]), cuda)
    x[:2] = tg.tensor([7.0, 8.0])
    x[2] = tg.tensor(9.0)
    same(x, tg.tensor([7.0, 8.0, 9.0]), cuda)
    same(tg.zeros(3).copy_(x), x.cpu(), CPU)
    source = tg.ones(3, requires_grad=True)
    (x.clone().copy_(source) * x).sum().backward()
    same(source.grad, tg.tensor([7.0, 8.0, 9.0]), CPU)
    x[x > 7.5] = tg.tensor(0.0)
    x[tg.tensor([0])] = tg.tensor(5.0)  # index tensors of the CPU are moved
    same(x, tg.tensor([5.0, 0.0, 0.0]), cuda)


def test_a_second_device(cuda: Any, second_cuda: Any) -> None:
    x = tg.arange(6.0, device="cuda:1").reshape(2, 3)
    same((x * 2).T.cumsum(0), (x.cpu() * 2).T.cumsum(0), second_cuda)
    same(x.T[1:].to(cuda), x.cpu().T[1:], cuda)
    same(x[0].to(cuda).to(second_cuda), x[0].cpu(), second_cuda)
    y = x.clone().requires_grad_()
    there = y.to(cuda)
    (there * there).sum().backward()
    same(y.grad, 2 * x.cpu(), second_cuda)
    with pytest.raises(RuntimeError, match=ON_SEVERAL + "cuda:0 and cuda:1! "):
        x + x.to(cuda)
    for shape in ((0, 2), ()):
        same(tg.ones(shape, device=cuda).to(second_cuda), tg.ones(shape), second_cuda)
    same(
        tg.one_hot(tg.tensor([1, 0], device=second_cuda)), tg.tensor([[0, 1], [1, 0]]), second_cuda
    )
    x[1] = tg.ones(3, device=cuda)
    x[tg.tensor([0, 0], device=second_cuda), tg.tensor([1, 2], device=second_cuda)] = -1.0
    assert x.tolist() == [[0.0, -1.0, -1.0], [1.0, 1.0, 1.0]]
    with tg.cuda.device(1):
        assert tg.ones(1, device="cuda").device == second_cuda
    assert repr(tg.ones(1, device=1)) == "tensor([1.], device='cuda:1')"
    assert pickle.loads(pickle.dumps(x)).device == copy.deepcopy(x).device == second_cuda
    file = io.BytesIO()
    tg.save([x, x.t()[1:]], file)
    for where, wanted in ((None, second_cuda), ({"cuda:1": "cuda:0"}, cuda), ("cpu", CPU)):
        file.seek(0)
        found, part = tg.load(file, map_location=where)
        assert found.device == part.device == wanted and tg.equal(found.cpu(), x.cpu())
        part.fill_(5.0)
        assert found.tolist() == [[x[0, 0].item(), 5.0, 5.0], [x[1, 0].item(), 5.0, 5.0]]
    assert x.untyped_storage().device == second_cuda and x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, tg.cuda.FloatTensor) and x.storage().tolist() == x.reshape(-1).tolist()
    layer = nn.Linear(3, 2).to("cuda:1")
    assert layer(x).device == layer.weight.device == second_cuda


def test_threads_use_devices_too(cuda: Any) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append((tg.ones(3, device=cuda) * 2).sum()))
    thread.start()
    thread.join()
    assert found[0].item() == 6.0


# -- views and writes ------------------------------------------------------------------------


def test_views_share_memory(cuda: Any) -> None:
    x = tg.arange(12.0, device=cuda).reshape(3, 4)
    views = (x.view(12), x.T, x[1:], x[:, ::2], x.unsqueeze(0), x.diagonal(), x.flatten(),
             x.reshape(2, 6), x.expand(2, 3, 4), x.unfold(1, 2, 1), x.detach())  # fmt: skip
    before = [each.cpu() for each in views]
    assert x.data_ptr() == views[0].data_ptr() == views[1].data_ptr()
    assert x[1:].data_ptr() == x.data_ptr() + 16
    x.add_(100)
    for view, old in zip(views, before, strict=True):
        same(view, old + 100, cuda)
    copies = x.clone(), x.T.reshape(12), x.flip(0), x[[0, 1]], x.contiguous().T.contiguous()
    assert all(each.data_ptr() != x.data_ptr() for each in copies)
    x[1:].T[0].zero_()
    assert x[:, 0].tolist() == [100.0, 0.0, 0.0] and x._version == 2


def test_writing_to_overlapping_memory_reads_first(cuda: Any) -> None:
    """Where the operand has gaps; others that overlap are refused."""
    x = tg.arange(2000.0, device=cuda).reshape(1000, 2)[:, 0]
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, *range(0, 1998, 2)]
    x[:-1] = x[1:]
    assert x.tolist() == [*range(0, 1998, 2), 1996.0]
    x[:500] = x[:500].flip(0)
    assert x[:500].tolist() == list(range(998, -2, -2))
    y = tg.arange(20.0, device=cuda).reshape(4, 5)[:, :4]
    y.copy_(y.T)
    same(y, tg.arange(20.0).reshape(4, 5)[:, :4].T, cuda)
    x = tg.arange(10.0, device=cuda)[::2]
    x[tg.arange(1, 5, device=cuda)] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 2.0, 4.0, 6.0]
    x[tg.tensor([True, False, True, True, True])] = x[1:]
    assert x.tolist() == [0.0, 0.0, 2.0, 4.0, 6.0]
    z = tg.arange(4.0, device=cuda)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        z[1:] = z[:-1]


def test_operators_write_in_place(cuda: Any) -> None:
    def run(device: Any) -> Any:
        x = tg.arange(4, device=device)
        memory = x.data_ptr()
        x += 3
        x *= 2
        x //= 3
        x **= 2
        x %= 5
        x |= 8
        x ^= 1
        x <<= 2
        x >>= 1
        assert x.data_ptr() == memory
        return x

    same(run(cuda), run(CPU), cuda)
    y = tg.ones(2, dtype=tg.bfloat16, device=cuda)
    y.div_(3).addcmul_(y, y).clamp_(max=0.4)
    z = tg.ones(2, dtype=tg.bfloat16)
    z.div_(3).addcmul_(z, z).clamp_(max=0.4)
    same(y, z, cuda)


def test_what_may_not_be_written(cuda: Any) -> None:
    rows = tg.ones(2, device=cuda).expand(3, 2)
    for target in (rows, rows[0], rows.T[:, :1]):
        with pytest.raises(RuntimeError, match=r"unsupported operation.*one.* memory"):
            target.add_(1)
    tg.ones(2, device=cuda).expand(1, 2).add_(1)
    leaf = tg.ones(2, device=cuda, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.add_(1)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match"):
        tg.ones(2, device=cuda).add_(tg.ones(3, 2, device=cuda))
    x = leaf * 2
    y = x.exp().sum()
    x.data.mul_(1)
    z = (x * x).sum()
    x.zero_()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        z.backward()
    y.backward()


def test_the_history_of_writes_through_views(cuda: Any) -> None:
    def run(device: Any) -> Any:
        leaf = tg.arange(6.0, device=device).requires_grad_()
        x = (leaf * 2).reshape(2, 3)
        x[0, 1:] = leaf[:2] * 3
        x.T[2].mul_(3)
        x[tg.tensor([1], device=device)] += 1
        (x * x).sum().backward()
        return x, leaf.grad

    for found, expected in zip(run(cuda), run(CPU), strict=True):
        same(found, expected, cuda)


# -- what else there is ---------------------------------------------------------------------


def test_transforms_of_functions(cuda: Any) -> None:
    x = tg.tensor([1.0, 2.0], device=cuda)
    same(tg.grad(lambda x: (x * x * x).sum())(x), tg.tensor([3.0, 12.0]), cuda)
    value, gradient = tg.value_and_grad(lambda x: (x * x).sum())(x)
    same(value, tg.tensor(5.0), cuda)
    same(gradient, tg.tensor([2.0, 4.0]), cuda)


def test_zero_elements(cuda: Any) -> None:
    x = tg.zeros(0, 3, device=cuda, requires_grad=True)
    (x.exp() @ tg.ones(3, 2, device=cuda)).sum().backward()
    same(x.grad, tg.zeros(0, 3), cuda)
    same(x.detach().sum(0), tg.zeros(3), cuda)
    same(x.detach().argmax(1), tg.zeros(0, dtype=tg.int64), cuda)
    same(tg.cat([x.detach(), tg.ones(1, 3, device=cuda)]), tg.ones(1, 3), cuda)
    same(x.detach()[tg.zeros(0, dtype=tg.int64, device=cuda)], tg.zeros(0, 3), cuda)
    with pytest.raises(IndexError, match="out of bounds"):
        x.detach()[tg.zeros(1, dtype=tg.int64, device=cuda)]
    assert not x.detach().any() and x.detach().all()
    for reduce in (tg.amax, tg.amin, tg.argmax):
        with pytest.raises((RuntimeError, IndexError)):
            reduce(tg.zeros(0, device=cuda), 0)
