"""Half types: what takes several steps is computed in float32, eager and compiled, and rounds once.

The reference is the same function of the same numbers in float64.
"""

import numpy as np
import pytest

import tgraph as tg
from tgraph.nn import functional as F

HALF = {tg.float16: 2.0**-11, tg.bfloat16: 2.0**-8}  # and what one rounding takes at most
RUNS = {"eager": lambda f: f, "compiled": tg.compile}
_rng = np.random.default_rng(0)
CLASSES = tg.tensor(_rng.integers(0, 3, 70_000))


def normal(*shape, scale=1.0, shift=0.0):
    return (scale * _rng.standard_normal(shape) + shift).astype(np.float32)


def classes_of(x):
    return CLASSES[: x.shape[0]]


ROWS = normal(40, 300)
CASES = {
    "mean_of_many": (lambda x: x.mean(), np.ones(70_000, np.float32)),
    "mean_of_large": (lambda x: x.mean(0), np.full((300, 4), 300, np.float32)),
    "sum": (lambda x: x.sum(1), ROWS),
    "sum_of_all": (lambda x: x.sum(), normal(300, 300)),
    "var": (lambda x: x.var(1), ROWS + 30),
    "std_of_large": (lambda x: x.std(0), 300 * ROWS),
    "var_mean": (lambda x: tg.var_mean(x, 1)[1], 100 * ROWS + 1000),
    "std_mean": (lambda x: tg.std_mean(x, 1)[0], 300 * ROWS),
    "norm_of_large": (lambda x: x.norm(dim=1), 50 * ROWS),
    "norm_1": (lambda x: x.norm(1, dim=1), ROWS),
    "norm_3": (lambda x: x.norm(3, dim=1), 50 * ROWS),
    "softmax": (lambda x: tg.softmax(x, 1), 3 * ROWS),
    "log_softmax": (lambda x: tg.log_softmax(x, 1), 3 * ROWS),
    "logsumexp": (lambda x: tg.logsumexp(x, 1), 3 * ROWS),
    "cross_entropy": (lambda x: F.cross_entropy(x, classes_of(x)), normal(70_000, 3)),
    "label_smoothing": (
        lambda x: F.cross_entropy(x, classes_of(x), label_smoothing=0.1), normal(70_000, 3),
    ),
    "nll_loss": (lambda x: F.nll_loss(x, classes_of(x)), normal(70_000, 3)),
    "soft_cross_entropy": (lambda x: F.cross_entropy(x, tg.softmax(-x.detach(), 1)), ROWS),
    "mse_loss": (lambda x: F.mse_loss(x, tg.zeros_like(x)), normal(300, 300)),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(x, tg.zeros_like(x)), normal(300, 300)),
    "logistic_loss": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), ROWS, normal(40, 300),
    ),
    "kl_div": (lambda x, y: F.kl_div(x, y.abs(), reduction="batchmean"), ROWS, normal(40, 300)),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (300,), w, b), ROWS + 10, normal(300), normal(300),
    ),
    "rms_norm_of_large": (lambda x, w: F.rms_norm(x, (300,), w), 300 * ROWS, normal(300)),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b), normal(4, 8, 9), normal(8), normal(8),
    ),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        normal(64, 8, 9), normal(8), normal(8),
    ),
    "normalize": (lambda x: F.normalize(x), 100 * ROWS),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), normal(2, 3, 16, 16)),
    "average_of_all": (lambda x: F.adaptive_avg_pool2d(x, 1), normal(1, 2, 260, 260, shift=1)),
    "cumsum": (lambda x: tg.cumsum(x, 1), ROWS),
    "many_equal_largest": (lambda x: x.amax(), np.ones(70_000, np.float32)),
    "gradient_of_a_bias": (lambda x, b: (x + b) * x, normal(40_000, 4), normal(4)),
}  # fmt: skip


def value_and_gradients(function, inputs):
    inputs = [each.detach().clone().requires_grad_() for each in inputs]
    result = function(*inputs)
    cotangent = np.random.default_rng(1).uniform(0.5, 1.5, result.shape).astype(np.float16)
    result.backward(tg.tensor(cotangent).to(tg.bfloat16).to(result.dtype))
    return [result.detach(), *(each.grad for each in inputs)]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dtype", HALF, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_as_good_as_in_float64(name, dtype, run):
    function, *arrays = CASES[name]
    inputs = [tg.tensor(each).to(dtype) for each in arrays]
    wants = value_and_gradients(function, [each.double() for each in inputs])
    founds = value_and_gradients(RUNS[run](lambda *given: function(*given)), inputs)
    for found, want in zip(founds, wants, strict=True):
        assert found.dtype is dtype
        scale = want.abs().max().item()
        # Gradients are rounded where they are added up too, or made of a result that was.
        bound = 4 * HALF[dtype] * scale + 2.0**-24
        np.testing.assert_allclose(found.double().numpy(), want.numpy(), rtol=0, atol=bound)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", HALF, ids=["float16", "bfloat16"])
def test_the_tail_of_gelu(dtype, approximate, run):
    """A small difference of large numbers, each of which was rounded to 16 bits before."""
    x = tg.linspace(-4, -0.5, 200).to(dtype)
    found = RUNS[run](lambda x: F.gelu(x, approximate))(x)
    wanted = F.gelu(x.double(), approximate)
    np.testing.assert_allclose(found.double(), wanted, rtol=2 * HALF[dtype], atol=2.0**-20)


@pytest.mark.parametrize("dtype", HALF, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("length", [1 << 16, (1 << 16) + 5])
def test_pieces_of_a_long_sum_are_not_rounded(dtype, length):
    """Large pieces that cancel: rounded to 16 bits, each would lose more than the sum is."""
    values = np.where(np.arange(length) < length // 2, 1.0, -1.0).astype(np.float32)
    x = tg.tensor(100 * values).to(dtype) + tg.tensor(normal(length)).to(dtype)
    found = tg.compile(lambda x: x.sum())(x).item()
    want = x.double().sum().item()
    assert abs(found - want) <= HALF[dtype] * abs(want) + 1e-2


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.l1_loss, F.huber_loss])
def test_a_loss_of_two_types_has_the_promoted_one(loss):
    """But for huber_loss, which has that of its input, as in PyTorch."""
    x, y = tg.ones(3, dtype=tg.bfloat16), tg.zeros(3)
    assert loss(x, y).dtype is (x.dtype if loss is F.huber_loss else tg.float32)
    assert loss(x, y.bfloat16()).dtype is tg.bfloat16


@pytest.mark.parametrize("dtype, bits", [(tg.bfloat16, 16), (tg.float16, 13)])
def test_ties_are_rounded_to_even(dtype, bits):
    """Numbers in the middle between two of a half type, compiled and eager."""
    whole = np.uint32(0x3F800000) + (np.arange(33, dtype=np.uint32) << bits)
    x = tg.tensor((whole + np.uint32(1 << (bits - 1))).view(np.float32))
    found = tg.compile(lambda x: (x * 1.0).to(dtype))(x)
    assert tg.equal(found, x.to(dtype))
    even = whole[(np.arange(33) + 1) // 2 * 2 % 34].view(np.float32)
    assert found.float().tolist()[:31] == even.tolist()[:31]


@pytest.mark.parametrize("dtype", HALF, ids=["float16", "bfloat16"])
def test_a_result_that_is_used_further_is_rounded_there_too(dtype):
    x = tg.linspace(1, 2, 101).to(dtype)

    def both(x):
        y = x * x
        return y, y.float()

    found, wide = tg.compile(both)(x)
    assert tg.equal(found.float(), wide) and tg.equal(found, x * x)
