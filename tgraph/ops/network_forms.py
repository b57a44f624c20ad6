"""Functions of networks in the form that `torch` itself has, where `torch.nn.functional` differs.

Reductions of losses are numbers there (0 "none", 1 "mean", 2 "sum"), options of kernels that have
no meaning here are taken and passed over, and nothing is written in place.

>>> import tgraph as tg
>>> tg.kl_div(tg.zeros(2), tg.tensor([0.5, 0.5]), 2)
tensor(-0.6931)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.grad_mode import no_grad
from ..core.keywords import with_keywords
from ..core.operands import Scalar, require_tensor
from ..core.out_argument import with_out
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_, float32
from . import (
    basic_draws,
    creation,
    ctc,
    losses,
    margin_losses,
    normalization,
    transposed_convolution,
)
from . import batch_normalization as b
from . import convolution as c
from . import dropout as d
from . import elementwise as e
from . import embedding as t
from . import grid_sampling as g
from . import movement as m
from . import reductions as r
from .generator import Generator
from .padding import pad as _pad
from .pools_with_indices import adaptive_max_pool1d_with_indices
from .shrinking import leaked

_REDUCTIONS = ("none", "mean", "sum")
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _named(number: int, names: Sequence[str], what: str) -> str:
    """The name that one of PyTorch's numbers stands for."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"argument '{what}' must be int, not {type(number).__name__}")
    if not 0 <= number < len(names):
        raise RuntimeError(f"{number} is no {what}; expected 0 to {len(names) - 1}: {names}")
    return names[number]


# --- losses --------------------------------------------------------------------------------------


@with_keywords
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return losses.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


@with_keywords
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.cosine_embedding_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


@with_keywords
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return ctc.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity
    )


@with_keywords
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.hinge_embedding_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return margin_losses.hinge_embedding_loss(input, target, margin, reduction=how)


@with_keywords
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """`nn.functional.kl_div`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    whole = losses.kl_div(input, target, reduction="none", log_target=log_target)
    return whole if how == "none" else r.mean(whole) if how == "mean" else r.sum(whole)


@with_keywords
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.margin_ranking_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, reduction=how)


@with_keywords
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`nn.functional.poisson_nll_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return losses.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


@with_keywords
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`."""
    how = _named(reduction, _REDUCTIONS, "reduction")
    return margin_losses.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )


# --- normalization -------------------------------------------------------------------------------


@with_keywords
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm`, with the parameters before the running statistics."""
    return b.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@with_keywords
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm`, with the parameters before the running statistics."""
    return b.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@with_keywords
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.group_norm`."""
    return normalization.group_norm(input, num_groups, weight, bias, eps)


@with_keywords
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`."""
    return normalization.layer_norm(input, normalized_shape, weight, bias, eps)


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm`, with the means and 1 / deviation of the batch that were used in training."""
    out = b.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return out, creation.new_empty(out, (0,)), creation.new_empty(out, (0,))
    axes = (0, *range(2, input.ndim))
    mean, inverse = _statistics(input.detach(), axes, eps)
    return out, m.reshape(mean, -1), m.reshape(inverse, -1)


native_batch_norm = with_out(native_batch_norm, "any", True)


@with_keywords
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, with the means and 1 / deviation of the groups of each sample."""
    out = normalization.group_norm(input, group, weight, bias, eps)
    rows = m.reshape(input, N, group, C // group * HxW)
    mean, inverse = _statistics(rows, (2,), eps)
    return out, m.reshape(mean, N, group), m.reshape(inverse, N, group)


@with_keywords
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, with the means and 1 / deviation."""
    out = normalization.layer_norm(input, normalized_shape, weight, bias, eps)
    axes = tuple(range(input.ndim - len(tuple(normalized_shape)), input.ndim))
    return out, *_statistics(input.detach(), axes, eps)


def _statistics(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Means, and 1 / deviation. In PyTorch those of groups alone have gradients of their own."""
    variance, mean = r.var_mean(x, axes, correction=0, keepdim=True)
    return mean, e.rsqrt(e.add(variance, eps))


# --- dropout -------------------------------------------------------------------------------------


@with_keywords
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`."""
    return d.dropout(input, p, train)


@with_keywords
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`."""
    return d.alpha_dropout(input, p, train)


@with_keywords
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels: of each of the first two dimensions."""
    return d.feature_dropout(input, p, train)


@with_keywords
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`."""
    return d.feature_alpha_dropout(input, p, train)


@with_keywords
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`nn.functional.rrelu`, of the numbers of a generator.

    >>> import tgraph as tg
    >>> x, one, two = tg.ones(3) * -1, tg.Generator(), tg.Generator()
    >>> tg.equal(tg.rrelu(x, training=True, generator=one.manual_seed(3)),
    ...          tg.rrelu(x, training=True, generator=two.manual_seed(3)))
    True
    """
    return leaked(input, lower, upper, training, generator)


@with_keywords
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` written over `input`."""
    return d.dropout(input, p, train, inplace=True)


@with_keywords
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` written over `input`."""
    return d.alpha_dropout(input, p, train, inplace=True)


@with_keywords
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` written over `input`."""
    return d.feature_dropout(input, p, train, inplace=True)


@with_keywords
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout` written over `input`."""
    return d.feature_alpha_dropout(input, p, train, inplace=True)


@with_keywords
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and which elements were kept."""
    d.check_probability(p)
    if train is False:
        return m.clone(input), creation.ones_like(input, dtype=bool_)
    place = input._type.device
    keep = e.ge(basic_draws.uniform(input._type.shape, float32, device=place), p)
    return e.mul(e.mul(input, keep), 0.0 if p == 1 else 1 / (1 - p)), keep


# --- convolution and pooling ---------------------------------------------------------------------

_CONVOLUTIONS: dict[bool, tuple[Callable[..., Tensor], ...]] = {
    False: (c.conv1d, c.conv2d, c.conv3d),
    True: (
        transposed_convolution.conv_transpose1d,
        transposed_convolution.conv_transpose2d,
        transposed_convolution.conv_transpose3d,
    ),
}


@with_keywords
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """`conv1d` to `conv3d` or their transposed forms, as the dimensions of `weight` tell."""
    count = weight.ndim - 2
    if not 1 <= count <= 3:
        raise RuntimeError(
            f"convolution: expected a weight of 3 to 5 dimensions, got {list(weight.shape)}"
        )
    function = _CONVOLUTIONS[transposed][count - 1]
    if transposed:
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return function(input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels), with a weight of (width, channels, new channels).

    >>> import tgraph as tg
    >>> tg.conv_tbc(tg.ones(4, 1, 2), tg.ones(3, 2, 1), tg.zeros(1)).flatten()
    tensor([6., 6.])
    """
    for name, each, count in (("Input", input, 3), ("Weight", weight, 3), ("Bias", bias, 1)):
        if require_tensor(each, "conv_tbc", name).ndim != count:
            raise RuntimeError(f"{name} must have {count} dims, got {each.ndim}")
    rows = m.permute(input, 1, 2, 0)
    return m.permute(c.conv1d(rows, m.permute(weight, 2, 1, 0), bias, 1, pad), 2, 0, 1)


adaptive_max_pool1d = adaptive_max_pool1d_with_indices
"""There the positions of maxima are always given."""


@with_keywords
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Scalar = 0) -> Tensor:
    """`nn.functional.pad` of one number; negative sizes cut away.

    >>> import tgraph as tg
    >>> tg.constant_pad_nd(tg.tensor([1, 2, 3]), (-1, 2), 7)
    tensor([2, 3, 7, 7])
    """
    found = _pad(input, pad, "constant", value)
    return m.clone(input) if found is input else found


# --- tables and grids ----------------------------------------------------------------------------


@with_keywords
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`nn.functional.embedding`, with the table first; -1 is no index of padding."""
    padding = padding_idx if padding_idx >= 0 else None
    return t.embedding(
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


@with_keywords
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows of a table that are longer than `max_norm` and in `indices` are made shorter in place.

    >>> import tgraph as tg
    >>> tg.embedding_renorm_(tg.tensor([[3.0, 4.0], [6.0, 8.0]]), tg.tensor([1]), 5.0, 2.0)
    tensor([[3., 4.],
            [3., 4.]])
    """
    with no_grad():
        t.shorten(input, indices, max_norm, norm_type)
    return input


@with_keywords
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return g.affine_grid(theta, size, align_corners)


@with_keywords
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample`, whose modes are numbers: as they are listed there."""
    mode = _named(interpolation_mode, _MODES, "interpolation_mode")
    padding = _named(padding_mode, _PADDINGS, "padding_mode")
    return g.grid_sample(input, grid, mode, padding, align_corners)


@with_keywords
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of planes."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@with_keywords
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of volumes."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)
