"""Layers, activations and losses as functions without state of their own."""

from collections.abc import Callable
from typing import Any

from ..core.keywords import publish as _publish
from ..core.keywords import with_keywords as _with_keywords
from ..core.out_argument import with_out as _with_out
from ..ops.activation_forms import (
    celu_,
    elu_,
    hardtanh_,
    leaky_relu_,
    log_softmax,
    relu_,
    rrelu_,
    selu_,
    softmax,
    softmin,
    threshold_,
)
from ..ops.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from ..ops.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
)
from ..ops.attention import multi_head_attention_forward, scaled_dot_product_attention
from ..ops.batch_normalization import batch_norm, instance_norm
from ..ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
)
from ..ops.ctc import (
    ctc_loss,
)
from ..ops.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from ..ops.embedding import embedding, embedding_bag
from ..ops.gather_scatter import one_hot
from ..ops.grid_sampling import (
    affine_grid,
    grid_sample,
)
from ..ops.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from ..ops.linear_cross_entropy import (
    linear_cross_entropy,
)
from ..ops.linear_maps import bilinear, linear
from ..ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from ..ops.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ..ops.network_forms import conv_tbc
from ..ops.normalization import (
    cosine_similarity,
    group_norm,
    layer_norm,
    local_response_norm,
    normalize,
    pairwise_distance,
    rms_norm,
)
from ..ops.padding import (
    pad,
)
from ..ops.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from ..ops.pools_with_indices import (
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d_with_indices,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
)
from ..ops.products import pdist
from ..ops.shrinking import (
    gumbel_softmax,
    hardshrink,
    prelu,
    rrelu,
    softshrink,
)
from ..ops.shuffling import (
    channel_shuffle,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from ..ops.transposed_convolution import (
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ..ops.unpooling import (
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ..ops.windows import (
    fold,
    unfold,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

_WITH_OUT = ("avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "linear", "logsigmoid", "softplus",
             "softshrink")  # fmt: skip


def _as_users_call_it(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if name in _WITH_OUT or name == "normalize":
        return _with_out(function, exact=name in _WITH_OUT)
    return _with_keywords(function)


_publish(globals(), {_name: _as_users_call_it(_name, globals()[_name]) for _name in __all__})
