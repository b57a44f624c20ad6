"""Layers: what they compute, their first values, their gradients against finite differences."""

import math

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn


def called(layer, shape):
    """A lazy layer, once it has its parameters."""
    layer(tg.ones(shape))
    return layer


LAYERS = {
    "linear": (lambda: nn.Linear(5, 3), (4, 5)),
    "linear of a vector": (lambda: nn.Linear(5, 3, bias=False), (5,)),
    "linear of a batch of batches": (lambda: nn.Linear(5, 3), (2, 3, 5)),
    "conv": (lambda: nn.Conv2d(2, 3, 3), (2, 2, 5, 6)),
    "conv with everything": (
        lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2),
        (2, 4, 5, 6),
    ),
    "conv same": (lambda: nn.Conv2d(2, 3, (4, 3), padding="same", bias=False), (1, 2, 5, 6)),
    "conv of one image": (lambda: nn.Conv2d(2, 3, 2, padding="valid"), (2, 4, 4)),
    "conv circular": (
        lambda: nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), (1, 2, 5)
    ),
    "conv 3d": (lambda: nn.Conv3d(2, 2, 2, padding="same"), (1, 2, 2, 3, 2)),
    "conv transposed": (lambda: nn.ConvTranspose2d(4, 2, 3, 2, 1, 1, 2), (1, 4, 2, 3)),
    "lazy conv": (
        lambda: called(nn.LazyConv2d(2, 2, padding_mode="reflect", padding=1), (1, 3, 3, 3)),
        (1, 3, 3, 3),
    ),
    "max pool": (lambda: nn.MaxPool2d(2), (2, 3, 5, 6)),
    "max pool overlapping": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (1, 2, 6, 7)),
    "average pool": (lambda: nn.AvgPool2d(2, 1), (2, 3, 5, 6)),
    "average pool padded": (
        lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        (1, 2, 6, 7),
    ),
    "layer norm": (lambda: nn.LayerNorm(6), (4, 6)),
    "layer norm over two": (lambda: nn.LayerNorm((3, 4), eps=0.1), (2, 3, 4)),
    "batch norm 1d": (lambda: nn.BatchNorm1d(3), (5, 3)),
    "batch norm 1d of sequences": (lambda: nn.BatchNorm1d(3), (4, 3, 2)),
    "batch norm 2d": (lambda: nn.BatchNorm2d(3), (2, 3, 2, 4)),
    "batch norm 2d evaluating": (lambda: nn.BatchNorm2d(3).eval(), (2, 3, 2, 4)),
    "relu": (lambda: nn.ReLU(), (3, 4)),
    "gelu": (lambda: nn.GELU(), (3, 4)),
    "gelu tanh": (lambda: nn.GELU("tanh"), (3, 4)),
    "silu": (lambda: nn.SiLU(), (3, 4)),
    "tanh": (lambda: nn.Tanh(), (3, 4)),
    "sigmoid": (lambda: nn.Sigmoid(), (3, 4)),
    "softplus": (lambda: nn.Softplus(2.0), (3, 4)),
    "leaky relu": (lambda: nn.LeakyReLU(0.3), (3, 4)),
    "elu": (lambda: nn.ELU(1.5), (3, 4)),
    "softmax": (lambda: nn.Softmax(dim=0), (3, 4)),
    "log softmax": (lambda: nn.LogSoftmax(dim=-1), (3, 4)),
    "flatten": (lambda: nn.Flatten(), (2, 3, 4)),
    "unflatten": (lambda: nn.Unflatten(-1, (2, 3)), (2, 6)),
    "network": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.LayerNorm(8), nn.Linear(8, 3), nn.GELU(),
        ),
        (2, 1, 4, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_finite_differences(name):
    """Of a random weighting of the output, with respect to input and parameters, in float64."""
    make, shape = LAYERS[name]
    rng = np.random.default_rng(3)
    tg.manual_seed(3)
    layer = make().double()
    for parameter in layer.parameters():  # away from ones and zeros
        with tg.no_grad():
            parameter.add_(tg.randn_like(parameter) * 0.1)
    x = tg.tensor(rng.standard_normal(shape), requires_grad=True)
    weights = tg.tensor(rng.standard_normal(tuple(layer(x).shape)))

    def loss() -> tg.Tensor:
        return (layer(x) * weights).sum()

    loss().backward()
    for tensor in (x, *layer.parameters()):
        direction = rng.standard_normal(tuple(tensor.shape))
        step = 1e-6
        values = []
        for sign in (1, -1):
            with tg.no_grad():
                tensor.add_(tg.tensor(sign * step * direction))
                values.append(loss().item())
                tensor.add_(tg.tensor(-sign * step * direction))
        expected = (values[0] - values[1]) / (2 * step)
        found = float((tensor.grad.numpy() * direction).sum())
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


# --- linear --------------------------------------------------------------------------------------


def test_linear():
    layer = nn.Linear(3, 2)
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    expected = x @ layer.weight.numpy(force=True).T + layer.bias.numpy(force=True)
    np.testing.assert_allclose(layer(tg.tensor(x)).numpy(force=True), expected, rtol=1e-5)
    assert nn.Linear(3, 2, dtype=tg.float64).weight.dtype is tg.float64
    assert nn.Linear(3, 2, bias=False).bias is None
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(4x2"):
        layer(tg.ones(4, 2))


def test_identity():
    x = tg.ones(2)
    assert nn.Identity(3, anything="else")(x) is x


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [(nn.Linear(50, 40), 50), (nn.Conv2d(6, 20, 5), 150), (nn.Conv2d(6, 20, 5, groups=2), 75)],
)
def test_weights_start_uniform_below_the_inverse_root_of_fan_in(layer, fan_in):
    bound = 1 / math.sqrt(fan_in)
    weight = layer.weight.numpy(force=True)
    assert np.abs(weight).max() <= bound
    assert np.abs(weight).max() > 0.99 * bound
    assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert np.abs(layer.bias.numpy(force=True)).max() <= bound
    before = weight.copy()
    layer.reset_parameters()
    assert not np.array_equal(before, layer.weight.numpy(force=True))


def test_the_seed_decides_the_first_values():
    tg.manual_seed(5)
    one = nn.Linear(3, 3)
    tg.manual_seed(5)
    assert tg.equal(nn.Linear(3, 3).weight, one.weight)


# --- convolution and pooling ---------------------------------------------------------------------


def convolved(x, w, stride, padding, dilation, groups):
    """Cross-correlation by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    count, _, height, width = x.shape
    out, per_group, kh, kw = w.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = np.zeros((count, out, rows, columns))
    for o in range(out):
        first = o // (out // groups) * per_group
        for i in range(rows):
            for j in range(columns):
                top, left = i * stride[0], j * stride[1]
                patch = x[
                    :,
                    first : first + per_group,
                    top : top + dilation[0] * (kh - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (kw - 1) + 1 : dilation[1],
                ]
                result[:, o, i, j] = (patch * w[o]).sum((1, 2, 3))
    return result


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "groups"),
    [
        ((3, 3), (1, 1), (0, 0), (1, 1), 1),
        ((3, 2), (2, 3), (1, 2), (1, 1), 2),
        ((2, 3), (1, 2), (2, 0), (2, 2), 4),
        ((1, 1), (1, 1), (0, 0), (1, 1), 1),
    ],
)
def test_conv2d(kernel, stride, padding, dilation, groups):
    layer = nn.Conv2d(4, 8, kernel, stride, padding, dilation, groups).double()
    x = np.random.default_rng(1).standard_normal((2, 4, 9, 8))
    weight, bias = (each.numpy(force=True) for each in (layer.weight, layer.bias))
    expected = convolved(x, weight, stride, padding, dilation, groups) + bias[:, None, None]
    np.testing.assert_allclose(layer(tg.tensor(x)).numpy(force=True), expected, atol=1e-12)


def test_conv2d_padding_by_name():
    x = tg.randn(1, 2, 7, 6)
    for kernel in (1, 2, 3, 4):
        assert nn.Conv2d(2, 3, kernel, padding="same")(x).shape == (1, 3, 7, 6)
    assert nn.Conv2d(2, 3, 3, padding="same", dilation=2)(x).shape == (1, 3, 7, 6)
    assert nn.Conv2d(2, 3, 3, padding="valid")(x).shape == (1, 3, 5, 4)
    with pytest.raises(ValueError, match="not supported for strided"):
        nn.Conv2d(2, 3, 3, padding="same", stride=2)
    with pytest.raises(ValueError, match="Invalid padding string 'full'"):
        nn.Conv2d(2, 3, 3, padding="full")


def test_conv2d_checks_what_it_is_made_with():
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv2d(3, 4, 1, groups=2)
    with pytest.raises(ValueError, match="out_channels must be divisible by groups"):
        nn.Conv2d(4, 3, 1, groups=2)
    with pytest.raises(ValueError, match="groups must be a positive integer"):
        nn.Conv2d(4, 4, 1, groups=0)
    with pytest.raises(ValueError, match="stride must be a number or 2 numbers"):
        nn.Conv2d(4, 4, 1, stride=(1, 2, 3))
    with pytest.raises(ValueError, match="kernel_size must be a number or 2 numbers"):
        nn.Conv2d(4, 4, [1])
    one = nn.Conv2d(4, 4, 3, stride=[2], padding=[1], dilation=[1])  # as some write it
    assert one(tg.ones(1, 4, 5, 5)).shape == (1, 4, 3, 3)
    assert repr(one) == "Conv2d(4, 4, kernel_size=(3, 3), stride=(2,), padding=(1,))"
    with pytest.raises(ValueError, match="padding_mode must be one of"):
        nn.Conv2d(4, 4, 1, padding_mode="mirror")
    with pytest.raises(RuntimeError, match="to have 4 channels, but got 3 channels instead"):
        nn.Conv2d(4, 4, 1)(tg.ones(1, 3, 2, 2))


def test_pooling():
    x = tg.arange(16, dtype=tg.float32).reshape(1, 1, 4, 4)
    assert nn.MaxPool2d(2)(x).tolist() == [[[[5, 7], [13, 15]]]]
    assert nn.AvgPool2d(2)(x).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert nn.MaxPool2d(3, stride=1)(x).tolist() == [[[[10, 11], [14, 15]]]]
    assert nn.MaxPool2d((1, 4))(x[0]).shape == (1, 4, 1)


def test_no_window_of_max_pool_lies_in_the_padding_alone():
    x = tg.arange(9, dtype=tg.float32).reshape(1, 1, 3, 3)
    assert nn.MaxPool2d(2, 2, 1, ceil_mode=True)(x).tolist() == [[[[0, 2], [6, 8]]]]


def test_padding_of_max_pool_is_below_negative_integers():
    x = tg.tensor([[[-1, -2], [-3, -4]]])
    found = nn.MaxPool2d(2, 1, 1)(x)
    assert found.dtype is tg.int64
    assert found.tolist() == [[[-1, -1, -2], [-1, -1, -2], [-3, -3, -4]]]


# --- normalisation -------------------------------------------------------------------------------


def test_layer_norm():
    x = np.random.default_rng(2).standard_normal((3, 2, 5)) * 3 + 7
    expected = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    plain = nn.LayerNorm((2, 5), elementwise_affine=False)
    assert list(plain.parameters()) == []
    np.testing.assert_allclose(plain(tg.tensor(x)).numpy(), expected, rtol=1e-10)
    layer = nn.LayerNorm([2, 5], dtype=tg.float64)
    assert layer.weight.tolist() == [[1] * 5] * 2 and layer.bias.tolist() == [[0] * 5] * 2
    with tg.no_grad():
        layer.weight.fill_(2)
        layer.bias.fill_(-1)
    np.testing.assert_allclose(layer(tg.tensor(x)).numpy(force=True), 2 * expected - 1, rtol=1e-10)
    layer.reset_parameters()
    assert layer.weight.sum().item() == 10 and layer.bias.sum().item() == 0
    assert nn.LayerNorm(5, bias=False).bias is None
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[2, 5\]"):
        layer(tg.ones(3, 5, 2))


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (nn.BatchNorm1d(4), (6, 4), (0,)),
        (nn.BatchNorm1d(4), (6, 4, 3), (0, 2)),
        (nn.BatchNorm2d(4), (6, 4, 3, 2), (0, 2, 3)),
    ],
)
def test_batch_norm(layer, shape, axes):
    layer.double()
    rng = np.random.default_rng(4)
    channel = (slice(None), *(None,) * (len(shape) - 2))
    mean, variance = np.zeros(4), np.ones(4)
    for _ in range(3):
        x = rng.standard_normal(shape) * 2 + 1
        center, spread = x.mean(axes), x.var(axes)
        expected = (x - center[channel]) / np.sqrt(spread[channel] + 1e-5)
        np.testing.assert_allclose(
            layer(tg.tensor(x)).numpy(force=True), expected, rtol=1e-9, atol=1e-12
        )
        mean = 0.9 * mean + 0.1 * center
        variance = 0.9 * variance + 0.1 * x.var(axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-12)
    assert layer.num_batches_tracked.item() == 3
    layer.eval()
    expected = (x - mean[channel]) / np.sqrt(variance[channel] + 1e-5)
    np.testing.assert_allclose(layer(tg.tensor(x)).numpy(force=True), expected, rtol=1e-9)
    assert layer.num_batches_tracked.item() == 3
    layer.reset_parameters()
    assert layer.running_var.tolist() == [1] * 4 and layer.num_batches_tracked.item() == 0


def test_batch_norm_without_momentum_averages_all_batches():
    layer = nn.BatchNorm1d(2, momentum=None)
    for value in (1.0, 2.0, 6.0):
        layer(tg.tensor([[value, 0.0], [value, 1.0]]))
    assert layer.running_mean.tolist() == pytest.approx([3.0, 0.5])


def test_batch_norm_without_running_statistics():
    layer = nn.BatchNorm2d(3, track_running_stats=False, affine=False)
    assert layer.state_dict() == {}
    x = tg.randn(4, 3, 2, 2)
    # The second call is a plan, which adds in another order.
    assert tg.allclose(layer(x), layer.eval()(x), rtol=1e-6, atol=1e-6)


def test_batch_norm_checks_its_input():
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        nn.BatchNorm2d(3)(tg.ones(2, 3))
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        nn.BatchNorm1d(3)(tg.ones(2, 3, 1, 1))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        nn.BatchNorm1d(3)(tg.ones(1, 3))


# --- dropout -------------------------------------------------------------------------------------


def test_dropout():
    tg.manual_seed(0)
    drop = nn.Dropout(0.3)
    x = tg.ones(100, 100, requires_grad=True)
    out = drop(x)
    values, counts = np.unique(out.numpy(force=True), return_counts=True)
    np.testing.assert_allclose(values, [0, 1 / 0.7], rtol=1e-6)
    assert counts[0] / 10_000 == pytest.approx(0.3, abs=0.015)
    out.sum().backward()
    assert tg.equal(x.grad, out.detach())
    assert not tg.equal(drop(x), out)
    assert drop.eval()(x) is x
    assert nn.Dropout(0.0)(x) is x
    assert nn.Dropout(1.0)(x).sum().item() == 0
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1.5"):
        nn.Dropout(1.5)


@pytest.mark.parametrize(
    ("layer", "shape", "channels"),
    [
        (nn.Dropout1d(0.4), (40, 30, 3), (40, 30, 1)),
        (nn.Dropout1d(0.4), (900, 3), (900, 1)),
        (nn.Dropout2d(0.4), (40, 30, 2, 2), (40, 30, 1, 1)),
        (nn.Dropout3d(0.4), (900, 2, 1, 2), (900, 1, 1, 1)),
        (nn.FeatureAlphaDropout(0.4), (40, 30, 3), (40, 30, 1)),
        (nn.AlphaDropout(0.4), (40, 30), (40, 30)),
    ],
)
def test_dropout_of_channels(layer, shape, channels):
    tg.manual_seed(1)
    out = layer(tg.ones(shape)).numpy()
    first = out[tuple(slice(0, size) for size in channels)]
    np.testing.assert_array_equal(out, np.broadcast_to(first, shape))
    values, counts = np.unique(first, return_counts=True)
    assert counts[0] / counts.sum() == pytest.approx(0.4, abs=0.05)
    kept = {"AlphaDropout", "FeatureAlphaDropout"} & {type(layer).__name__}
    low = -1.7580993408473766 if kept else 0.0  # what a dropped element is, before the scale
    scale = 1 / math.sqrt((low * low * 0.4 + 1) * 0.6) if kept else 1 / 0.6
    shift = -low * scale * 0.4
    np.testing.assert_allclose(values, [low * scale + shift, scale + shift], rtol=1e-6)
    assert tg.equal(layer.eval()(tg.ones(shape)), tg.ones(shape))
    layer.train()


def test_conv_transpose_takes_an_output_size():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    x = tg.ones(1, 1, 3, 3)
    assert layer(x).shape == (1, 1, 5, 5)
    assert layer(x, output_size=(6, 5)).shape == layer(x, [1, 1, 6, 5]).shape == (1, 1, 6, 5)
    with pytest.raises(ValueError, match="requested an output size of"):
        layer(x, output_size=(7, 5))
    with pytest.raises(ValueError, match=r"must have 2 or 4 elements \(got 3\)"):
        layer(x, output_size=(1, 6, 5))
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported for ConvTransp'):
        nn.ConvTranspose1d(1, 1, 2, padding_mode="reflect")
    with pytest.raises(RuntimeError, match="output padding must be smaller than either stride or"):
        nn.ConvTranspose2d(1, 1, 3, stride=2, output_padding=2)(x)


# --- embedding -----------------------------------------------------------------------------------


def test_embedding():
    layer = nn.Embedding(5, 3)
    at = tg.tensor([[0, 2], [4, 2]])
    out = layer(at)
    np.testing.assert_array_equal(out.numpy(force=True), layer.weight.numpy(force=True)[at.numpy()])
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[1] * 3, [0] * 3, [2] * 3, [0] * 3, [1] * 3]
    with pytest.raises(IndexError, match="out of"):
        layer(tg.tensor([5]))
    with pytest.raises(RuntimeError, match="Expected tensor for argument #1 'indices'"):
        layer(tg.tensor([1.0]))


def test_embedding_padding_learns_nothing():
    layer = nn.Embedding(5, 3, padding_idx=-2)
    assert layer.padding_idx == 3
    assert layer.weight[3].tolist() == [0, 0, 0]
    layer(tg.tensor([3, 1, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[0] * 3, [1] * 3, [0] * 3, [0] * 3, [0] * 3]
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(5, 3, padding_idx=5)


def test_embedding_from_given_rows():
    rows = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(rows)
    assert layer(tg.tensor(1)).tolist() == [3, 4]
    assert not layer.weight.requires_grad
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad
    with pytest.raises(AssertionError, match="2-dimensional"):
        nn.Embedding.from_pretrained(tg.ones(3))


# --- activations ---------------------------------------------------------------------------------


def test_activations_in_place():
    for layer in (nn.ReLU(inplace=True), nn.SiLU(True), nn.LeakyReLU(0.1, True), nn.ELU(1.0, True)):
        x = tg.tensor([-1.0, 2.0])
        expected = type(layer)()(x)
        out = layer(x)
        assert out is x
        if not isinstance(layer, nn.LeakyReLU):
            assert tg.allclose(x, expected)  # a second call may be a plan, which rounds apart


def test_softmax_and_log_softmax():
    x = tg.tensor([[1000.0, 1000.0], [0.0, -math.inf]])
    assert nn.Softmax(dim=1)(x).tolist() == [[0.5, 0.5], [1, 0]]
    assert nn.LogSoftmax(dim=1)(x)[0].tolist() == pytest.approx([-math.log(2)] * 2)
