"""Functions of neural networks: what a table of values does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.nn import functional as F

RNG = np.random.RandomState(0)


def naive_convolution(x: Any, w: Any, stride: int, padding: int, dilation: int) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    n, _, height, width = x.shape
    o, _, rows, columns = w.shape
    out_height = (height - dilation * (rows - 1) - 1) // stride + 1
    out_width = (width - dilation * (columns - 1) - 1) // stride + 1
    result = np.zeros((n, o, out_height, out_width))
    for i, j in np.ndindex(out_height, out_width):
        top, left = i * stride, j * stride
        patch = x[
            :,
            :,
            top : top + dilation * (rows - 1) + 1 : dilation,
            left : left + dilation * (columns - 1) + 1 : dilation,
        ]
        result[:, :, i, j] = np.einsum("ncij,ocij->no", patch, w)
    return result


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_conv2d(stride: int, padding: int, dilation: int) -> None:
    x, w, b = RNG.randn(2, 3, 7, 6), RNG.randn(4, 3, 3, 2), RNG.randn(4)
    found = F.conv2d(*map(tg.tensor, (x, w, b)), stride, padding, dilation)
    expected = naive_convolution(x, w, stride, padding, dilation) + b[:, None, None]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_conv2d_in_groups_and_unbatched() -> None:
    x, w = RNG.randn(1, 4, 5, 5), RNG.randn(6, 2, 3, 3)
    found = F.conv2d(tg.tensor(x), tg.tensor(w), groups=2).numpy()
    first = naive_convolution(x[:, :2], w[:3], 1, 0, 1)
    second = naive_convolution(x[:, 2:], w[3:], 1, 0, 1)
    np.testing.assert_allclose(found, np.concatenate([first, second], 1), rtol=1e-10)
    single = F.conv2d(tg.tensor(x[0]), tg.tensor(w), groups=2)
    np.testing.assert_allclose(single.numpy(), found[0])
    same = F.conv2d(tg.tensor(x), tg.tensor(RNG.randn(2, 4, 2, 3)), padding="same")
    assert same.shape == (1, 2, 5, 5)


def test_convolution_errors() -> None:
    x = tg.ones(1, 2, 5, 5)
    with pytest.raises(RuntimeError, match=r"to have 3 channels, but got 2 channels instead"):
        F.conv2d(x, tg.ones(3, 3, 3, 3))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(x, tg.ones(3, 2, 7, 7))
    with pytest.raises(RuntimeError, match="should be the same"):
        F.conv2d(x, tg.ones(3, 2, 3, 3, dtype=tg.float64))
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\)"):
        F.conv2d(tg.ones(5, 5), tg.ones(3, 2, 3, 3))
    with pytest.raises(RuntimeError, match="padding='same' is not supported for strided"):
        F.conv2d(x, tg.ones(3, 2, 3, 3), stride=2, padding="same")
    with pytest.raises(RuntimeError, match="expected bias to be 1-dimensional with 3 elements"):
        F.conv2d(x, tg.ones(3, 2, 3, 3), tg.ones(2))


def test_pooling() -> None:
    x = tg.arange(16.0).reshape(1, 1, 4, 4)
    assert F.max_pool2d(x, 2).tolist() == [[[[5, 7], [13, 15]]]]
    assert F.max_pool2d(-x, 3, 2, 1).tolist() == [[[[0, -1], [-4, -5]]]]
    assert F.max_pool2d(x, 3, 2, ceil_mode=True).shape == (1, 1, 2, 2)
    _, positions = F.max_pool2d(x, 2, return_indices=True)
    assert positions.tolist() == [[[[5, 7], [13, 15]]]]
    assert F.avg_pool2d(x, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    with_zeros = F.avg_pool2d(tg.ones(1, 1, 2, 2), 2, 1, 1)
    assert with_zeros[0, 0, 0].tolist() == [0.25, 0.5, 0.25]
    without = F.avg_pool2d(tg.ones(1, 1, 2, 2), 2, 1, 1, count_include_pad=False)
    assert (without == 1).all()
    assert F.adaptive_avg_pool2d(x, 1).item() == 7.5
    integers = tg.arange(16).reshape(1, 1, 4, 4)
    assert F.max_pool2d(integers, 3, 1, 1)[0, 0, 0].tolist() == [5, 6, 7, 7]
    with pytest.raises(RuntimeError, match="at most half of effective kernel size"):
        F.max_pool2d(x, 2, 1, 2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.max_pool2d(x, 5)


def test_softmax_of_extremes() -> None:
    x = tg.tensor([[1000.0, 0.0], [-1000.0, 0.0]])
    assert tg.softmax(x, 1).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert tg.log_softmax(x, 1).tolist() == [[0.0, -1000.0], [-1000.0, 0.0]]
    masked = tg.tensor([-float("inf"), 0.0])
    assert tg.softmax(masked, 0).tolist() == [0.0, 1.0]
    assert tg.softmax(tg.zeros(2, 0), 1).shape == (2, 0)
    assert tg.softmax(tg.tensor(3.0), 0).item() == 1.0
    with pytest.raises(NotImplementedError, match="not implemented for int64"):
        tg.softmax(tg.arange(3), 0)


def test_sigmoid_is_accurate_at_both_ends() -> None:
    x = np.array([-1000.0, -100.0, -20.0, 0.0, 20.0, 1000.0])
    found = tg.sigmoid(tg.tensor(x)).numpy()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-x)), rtol=1e-14)


def test_layer_norm() -> None:
    x = tg.tensor(RNG.randn(4, 5, 6))
    y = F.layer_norm(x, (5, 6))
    np.testing.assert_allclose(y.mean((1, 2)).numpy(), 0, atol=1e-12)
    np.testing.assert_allclose(y.var((1, 2), correction=0).numpy(), 1, rtol=1e-3)
    half = F.layer_norm(tg.tensor(RNG.randn(2, 512) * 100).half(), (512,))
    assert half.dtype is tg.float16 and half.isfinite().all()
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[4\]"):
        F.layer_norm(tg.ones(2, 3), (4,))


def test_batch_norm_updates_running_statistics() -> None:
    x = tg.tensor(RNG.randn(8, 3, 5))
    mean, var = tg.zeros(3, dtype=tg.float64), tg.ones(3, dtype=tg.float64)
    y = F.batch_norm(x, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(y.mean((0, 2)).numpy(), 0, atol=1e-12)
    np.testing.assert_allclose(mean.numpy(), x.mean((0, 2)).numpy() / 2)
    np.testing.assert_allclose(var.numpy(), 0.5 + x.var((0, 2)).numpy() / 2)
    frozen = F.batch_norm(x, mean, var)
    expected = (x - mean[:, None]) / (var[:, None] + 1e-5).sqrt()
    np.testing.assert_allclose(frozen.numpy(), expected.numpy())
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(tg.ones(1, 3), None, None, training=True)


def test_embedding() -> None:
    weight = tg.arange(6.0).reshape(3, 2)
    assert F.embedding(tg.tensor([[2, 0]]), weight).tolist() == [[[4, 5], [0, 1]]]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        F.embedding(tg.tensor([3]), weight)
    with pytest.raises(RuntimeError, match=r"scalar types: Long, Int; but got tgraph.float32"):
        F.embedding(tg.ones(2), weight)


def test_losses_check_their_targets() -> None:
    x = tg.ones(2, 3)
    with pytest.raises(
        ValueError, match=r"input batch_size \(2\) to match target batch_size \(3\)"
    ):
        F.cross_entropy(x, tg.tensor([0, 1, 2]))
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        F.cross_entropy(x, tg.tensor([0, 3]))
    with pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(x, tg.tensor([0, -1]))
    with pytest.raises(RuntimeError, match="expected scalar type Long"):
        F.nll_loss(x, tg.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, x, reduction="max")
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(x, tg.ones(2))
    with pytest.warns(UserWarning, match="using a target size"):
        F.mse_loss(x, tg.ones(3))
    assert F.cross_entropy(x, tg.tensor([-100, -100])).isnan()


def test_attention() -> None:
    q, k, v = (tg.tensor(RNG.randn(2, 4, 8)) for _ in range(3))
    scores = q.numpy() @ k.numpy().swapaxes(1, 2) / np.sqrt(8)
    scores[:, np.triu_indices(4, 1)[0], np.triu_indices(4, 1)[1]] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(found.numpy(), weights @ v.numpy(), rtol=1e-10)
    additive = F.scaled_dot_product_attention(q, k, v, tg.tril(tg.ones(4, 4)).log().double())
    np.testing.assert_allclose(additive.numpy(), found.numpy(), rtol=1e-6)


def test_padding() -> None:
    x = tg.arange(3.0).reshape(1, 3)
    assert F.pad(x, (1, 2), value=9.0).tolist() == [[9, 0, 1, 2, 9, 9]]
    assert F.pad(x, (-1, 1)).tolist() == [[1, 2, 0]]
    assert F.pad(x, (2, 1), mode="reflect").tolist() == [[2, 1, 0, 1, 2, 1]]
    assert F.pad(x, (1, 2), mode="replicate").tolist() == [[0, 0, 1, 2, 2, 2]]
    assert F.pad(x, (1, 1), mode="circular").tolist() == [[2, 0, 1, 2, 0]]
    with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
        F.pad(x, (3, 0), mode="reflect")
    with pytest.raises(RuntimeError, match="Padding length must be divisible by 2"):
        F.pad(x, (1,))


def test_integers() -> None:
    """Of int64 as of float64, where those are exact, and wrapping around where they are not."""
    x, w = tg.arange(-20, 40).reshape(1, 2, 5, 6), tg.arange(-9, 15).reshape(4, 1, 2, 3)
    for function in (
        lambda x, w: F.conv2d(x, w, w[:, 0, 0, 0], stride=(2, 1), padding=1, groups=2),
        lambda x, w: F.conv2d(x[0], w[::2], padding="same", dilation=2, groups=2),
        lambda x, w: F.conv_transpose2d(x, w[:2], stride=2, padding=1, output_padding=1),
        lambda x, w: F.avg_pool2d(x, 2, ceil_mode=True, padding=1).trunc(),
        lambda x, w: F.hardtanh(x, -3.5, 7.9).clamp(max=7).trunc(),
        lambda x, w: F.relu6(x),
    ):
        found = function(x, w)
        assert found.dtype is tg.int64
        assert found.tolist() == function(x.double(), w.double()).tolist()
    wide = tg.full((1, 1, 2), 1 << 62)
    assert F.conv1d(wide, tg.full((1, 1, 2), 3)).item() == -(1 << 63)
    with pytest.raises(NotImplementedError, match=r"avg_pool2d.*int32"):
        F.avg_pool2d(x.int(), 2)
