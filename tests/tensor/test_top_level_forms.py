"""What `torch` itself has of functions of networks, copies and others: PyTorch's values and slopes.

A form is an expression of both libraries. Where PyTorch is not installed it has to run alone.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tgraph as tg

FORMS = """
T.batch_norm(x3, w, b, mean, var, True, 0.1, 1e-5, False)
T.batch_norm(x3, w, b, mean, var, False, 0.1, 1e-5, False)
T.instance_norm(x3, w, b, mean, var, True, 0.1, 1e-5, False)
T.group_norm(x4, 2, None, None, 1e-5, False)
T.layer_norm(x3, [4], v, None, 1e-5, False)
T.rms_norm(x3, [4], v)
T.native_batch_norm(x3, w, b, mean, var, True, 0.1, 1e-5)
T.native_group_norm(x4, None, None, 3, 4, 9, 2, 1e-5)
T.native_layer_norm(x3, [4], v, None, 1e-5)
T.dropout(x, 0.5, False)
T.feature_dropout(x, 0.0, True)
T.alpha_dropout(x, p=0.3, train=False)
T.native_dropout(x, 0.3, False)
T.embedding(x, i, 1)
T.embedding(x, i)
T.embedding_renorm_(x.detach().clone(), i, 0.5, 2.0)
T.bilinear(x, y, T.ones(2, 4, 4, dtype=T.float64))
T.conv1d(x3, k3)
T.convolution(x3, k3, None, [1], [1], [1], False, [0], 1)
T.convolution(x3, k3.transpose(0, 1), None, [2], [1], [1], True, [1], 1)
T.conv_tbc(x3, T.ones(2, 4, 3, dtype=T.float64), w, 1)
T.conv_transpose1d(x3, k3.transpose(0, 1))
T.binary_cross_entropy_with_logits(x, s, None, None, 2)
T.cosine_embedding_loss(x, y, sign, 0.1, 1)
T.ctc_loss(x3.log_softmax(2), targets, lengths, [2, 1, 1], 0, 2)
T.hinge_embedding_loss(x, sign[:, None], 1.0, 1)
T.kl_div(x, s, 0, log_target=False)
T.margin_ranking_loss(x, y, sign[:, None], 0.1, 2)
T.poisson_nll_loss(x, s, True, False, 1e-8, 1)
T.triplet_margin_loss(x, y, s, 1.0, 2.0, 1e-6, False, 0)
T.pairwise_distance(x, y)
T.cosine_similarity(x, y)
T.pixel_shuffle(x4, 2)
T.channel_shuffle(x4, 2)
T.native_channel_shuffle(x4.detach(), 2)
T.prelu(x, v[:1])
T.threshold(x, 0.1, 2.0)
T.selu(x)
T.celu(x, 0.5)
T.hardshrink(x)
T.rrelu(x, 0.1, 0.3)
T.rrelu(x, training=True, generator=T.Generator())
T.rrelu_(input=x * -1, lower=0.2, upper=0.2, generator=None)
T.max_pool1d(x3, 2)
T.max_pool1d_with_indices(x3, 2, [], 1)
T.max_pool2d(x4, 2, stride=1)
T.max_pool3d(x4[None], (1, 2, 2))
T.avg_pool1d(x3, 2)
T.adaptive_avg_pool1d(x3, 2)
T.adaptive_max_pool1d(x3, 2)
T.constant_pad_nd(x, (1, -1), 2.0)
T.affine_grid_generator(x3[:, :2, :3], [3, 1, 2, 2], False)
T.grid_sampler(x4, grid, 0, 1, True)
T.grid_sampler_2d(x4, grid, 2, 0, False)
T.lstm(x3, (h, h), weights(4, 16), True, 1, 0.0, False, False, False)
T.lstm(x3.reshape(9, 4), T.tensor([3, 3, 2, 1]), (h, h), weights(4, 16), True, 1, 0.0, False, False)
T.gru(x3, h, weights(4, 12), True, 1, 0.0, False, False, True)
T.rnn_tanh(x3, h, weights(4, 4)[:2], False, 1, 0.0, False, False, False)
T.rnn_relu(input=x3, hx=h, params=weights(4, 4), has_biases=True, num_layers=1, dropout=0.0, \
train=False, bidirectional=False, batch_first=False)
T.lstm_cell(x, (y, y), *weights(4, 16))
T.gru_cell(x, y, *weights(4, 12))
T.rnn_tanh_cell(x, y, *weights(4, 4))
T.rnn_relu_cell(x, y, *weights(4, 4)[:2])
T.histogram(v.detach(), 3)
T.histogram(x.detach(), 4, range=(0.0, 0.8), weight=s, density=True)
T.histogram(v.detach(), T.tensor([0.0, 0.25, 0.5, 2.0], dtype=T.float64))
T.histogramdd(x.detach()[:, :2], [2, 3])
T.histogramdd(x.detach()[:, :2], 2, range=[0.0, 1.0, 0.0, 0.5], density=True)
T.segment_reduce(x, "sum", lengths=T.tensor([1, 0, 2]))
T.segment_reduce(x, "mean", offsets=T.tensor([0, 1, 3]), initial=1.0)
T.segment_reduce(x, "max", lengths=T.tensor([2, 1]))
T.segment_reduce(x, "prod", lengths=T.tensor([[1, 3], [2, 2], [4, 0]]), axis=1)
T.nonzero_static(x > 0.4, size=9)
T.nonzero_static(x, size=20, fill_value=-3)
x.nonzero_static(size=2)
T.is_nonzero(x[0, 0])
T.is_same_size(x, y)
(T.is_signed(x), x.is_signed(), T.is_signed(x.to(T.uint8)), T.is_inference(x), T.get_device(x))
T.unsafe_split_with_sizes(x, [1, 2])
T.ger(v, v)
T.row_stack([x, y])
T.fill(x, 2.0)
T.frobenius_norm(x, 1)
T.frobenius_norm(x, [0, 1], True)
T.nuclear_norm(x)
T.nuclear_norm(x3, (0, 1), True)
T.norm_except_dim(x3, 2, 1)
x.detach().clone().apply_(lambda a: a + 1)
x.detach().clone().map_(y.detach(), lambda a, b: a * b)
x.detach().clone().map2_(y.detach(), s.detach(), lambda a, b, c: a + b - c)
(x.new(2, 3).shape, x.new([1, 2]), x.new().shape, x.name, x.output_nr)
(x.resize(4, 3), x.resize_as(y.reshape(2, 6)))
T.range(1, 4, 0.5)
T.range(0, 3, dtype=T.int64, layout=T.strided)
T.frombuffer(bytearray(b"abcdefgh"), dtype=T.int16, count=2, offset=2)
(T.sym_int(-2.5), T.sym_float(3), T.sym_max(1, 2.0), T.sym_min(1, 2), T.sym_not(0))
(T.sym_sqrt(4), T.sym_sum([1, 2]), T.sym_ite(True, 1, 2))
T.lu(x[:, :3], get_infos=True)
T.abs_(x * -1)
T.clamp_(input=x * 1, min=0.2, max=0.6)
T.zero_(x * 1)
T.fill_(x * 1, 3.0)
T.xlogy_(x * 1, y)
T.nn.functional.adaptive_max_pool2d_with_indices(x4, 2)
T.nn.functional.max_pool2d_with_indices(x4, 2)
T.nn.CrossMapLRN2d(3, 0.1)(x4.detach()[:, :2])
T.alias_copy(x)
T.as_strided_copy(x, [2, 2], [1, 2])
T.detach_copy(x.detach())
T.diagonal_copy(x, 1)
T.expand_copy(v, [2, 4])
T.narrow_copy(x, 1, 1, 2)
x.narrow_copy(1, 1, 2)
T.permute_copy(x3, [2, 0, 1])
T.select_copy(x, 0, 1)
T.slice_copy(x, 1, 0, 4, 2)
T.slice_inverse(x.detach(), x.detach()[:, 1:3], 1, 1, 3)
T.split_copy(x, 2, 1)
T.split_with_sizes_copy(x, [1, 2])
T.squeeze_copy(x[None], 0)
T.t_copy(x)
T.transpose_copy(x, 0, 1)
T.unbind_copy(x, 1)
T.unfold_copy(x, 1, 2, 1)
T.unsqueeze_copy(x, 0)
T.view_as_real_copy(T.view_as_complex_copy(x.detach().reshape(6, 2)))
T.view_copy(x, [4, 3])
T.cat([v[:0], x], 1)
T.arange(0.5, 5, 1.5, dtype=T.int64)
T.arange(0, 5, 0.5, dtype=T.int32)
T.range(0, 5, 1.5, dtype=T.int64)
T.tensor_split(x, T.tensor(2), 1)
x.tensor_split(T.tensor([1, 3]), 1)
T.narrow(x, 1, T.tensor(-2), 1)
T.hash_tensor(x.detach(), 1)
"""


def scope(T: Any) -> dict[str, Any]:
    """The operands of forms, alike in both libraries; all of floats require grad."""

    def numbers(*shape: int) -> Any:
        count = int(np.prod(shape))
        values = (T.arange(count, dtype=T.float64) * 7 % 23 / 23 + 0.05).reshape(shape)
        return values.requires_grad_()

    def weights(inputs: int, rows: int) -> list[Any]:
        parts = [(rows, inputs), (rows, 4), (rows,), (rows,)]
        return [numbers(*each).detach() - 0.4 for each in parts]

    return {
        "T": T, "x": numbers(3, 4), "y": numbers(3, 4).detach().flip(0).requires_grad_(),
        "s": numbers(3, 4).detach() / 2, "v": numbers(4), "x3": numbers(3, 3, 4),
        "x4": numbers(3, 4, 3, 3), "w": numbers(3), "b": numbers(3), "k3": numbers(2, 3, 2),
        "mean": T.zeros(3, dtype=T.float64), "var": T.ones(3, dtype=T.float64),
        "i": T.tensor([2, 1, 2]), "sign": T.tensor([1.0, -1.0, 1.0], dtype=T.float64),
        "targets": T.tensor([[1, 2], [1, 0], [3, 0]]), "lengths": [3, 3, 3],
        "grid": numbers(3, 2, 2, 2).detach() * 2 - 1, "h": numbers(1, 3, 4), "weights": weights,
    }  # fmt: skip


def plain(result: Any) -> Any:
    """Results of both libraries in terms of neither."""
    if isinstance(result, (tuple, list)):
        return [plain(each) for each in result]
    if hasattr(result, "detach"):
        return [str(result.dtype).partition(".")[2], list(result.shape), result.tolist()]
    return result


def tensors(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [each for part in result for each in tensors(part)]
    return [result] if hasattr(result, "detach") and result.requires_grad else []


def outcome(T: Any, form: str) -> tuple[Any, list[Any], list[Any]]:
    """The results, their slopes, and the operands afterwards."""
    given = scope(T)
    leaves = [each for each in given.values() if hasattr(each, "is_leaf") and each.requires_grad]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is deprecated in both
        result = eval(form, given)
        slopes: list[Any] = [None] * len(leaves)
        found = tensors(result)
        if found:
            total = sum((each * each).sum() for each in found[:1])
            slopes = list(T.autograd.grad(total, leaves, allow_unused=True))
    return plain(result), [plain(each) for each in slopes], plain([given["mean"], given["var"]])


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, 1e-6, 1e-8, equal_nan=True))
    return bool(found == expected and type(found) is type(expected))


@pytest.mark.parametrize("form", FORMS.strip().splitlines())
def test_forms(form: str) -> None:
    found = outcome(tg, form)
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    for mine, theirs in zip(found, outcome(torch, form), strict=True):
        assert same(mine, theirs), (mine, theirs)


RESULTS = ("topk(2)", "max(1)", "sort()", "cummax(0)", "aminmax(dim=0)", "median(0)", "slogdet()",
           "qr()", "frexp()", "geqrf()", "histogram(2)")  # fmt: skip


@pytest.mark.parametrize("call", RESULTS)
def test_named_results_are_pytorch_s(call: str) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    text = f"T.tensor([[2.0, 1.0], [0.5, 4.0]]).{call}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # qr is deprecated there
        found, expected = (eval(text, {"T": T}) for T in (tg, torch))
    assert found._fields == tuple(found._asdict()) and isinstance(found, tuple)
    name = call.partition("(")[0]
    assert type(found) is getattr(tg.return_types, name)
    assert repr(found) == repr(expected).replace("torch.", "tgraph.")


REFUSED = """
T.arange(0, 5, 0.5, dtype=T.int64)
T.arange(0, 2, dtype=T.bool)
T.tensor_split(x, 0)
T.tensor_split(x, T.tensor(1.0))
T.tensor_split(x, T.tensor([[1]]))
T.tensor_split(T.tensor(1.0), 1)
T.narrow(x, 0, T.tensor([1]), 1)
T.narrow(x, 0, T.tensor(True), 1)
T.narrow(x, 0, 1.0, 1)
T.hash_tensor(x, mode=1)
T.hash_tensor(x[:0])
T.hash_tensor(x[:0], 0)
T.hash_tensor(x + 0j)
T.lobpcg(x[:3, :3], 2)
"""


@pytest.mark.parametrize("form", REFUSED.strip().splitlines())
def test_refusals(form: str) -> None:
    with pytest.raises(Exception) as mine:
        eval(form, scope(tg))
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    with pytest.raises(Exception) as theirs:
        eval(form, scope(torch))
    assert mine.type is theirs.type


def test_what_was_removed_says_what_to_write() -> None:
    x = tg.ones(2, 2)
    for call in (x.eig, x.symeig, lambda: x.lstsq(x), lambda: tg.solve(x, x), tg.matrix_rank):
        with pytest.raises(RuntimeError, match=r"is now removed.*linalg"):
            call() if call is not tg.matrix_rank else call(x)
    with pytest.raises(RuntimeError, match="log_prob"):
        x.reinforce(1)


def test_files_and_points(tmp_path: Any) -> None:
    file = tmp_path / "numbers"
    x = tg.from_file(str(file), shared=True, size=3, dtype=tg.int32)
    x += 7
    del x
    assert tg.from_file(str(file), size=2, dtype=tg.int32).tolist() == [7, 7]
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    mine, theirs = tg.quasirandom.SobolEngine(3), torch.quasirandom.SobolEngine(3)
    assert repr(mine) == repr(theirs)
    assert mine.draw(5).tolist() == theirs.draw(5).tolist()
    mine.fast_forward(3), theirs.fast_forward(3)
    assert mine.draw(2).tolist() == theirs.draw(2).tolist()
