"""Layers of neural networks as functions: linear, convolution, normalisation, attention.

`tgraph.nn.functional` offers these together with the activations and the losses.
"""

from .attention import multi_head_attention_forward, scaled_dot_product_attention
from .batch_normalization import batch_norm, instance_norm
from .convolution import conv1d, conv2d, conv3d
from .dropout import dropout, dropout2d
from .embedding import embedding, embedding_bag
from .gather_scatter import one_hot
from .linear_maps import bilinear, linear
from .normalization import (
    cosine_similarity,
    group_norm,
    layer_norm,
    local_response_norm,
    normalize,
    pairwise_distance,
    rms_norm,
)
from .pooling import adaptive_avg_pool2d, avg_pool1d, avg_pool2d, max_pool1d, max_pool2d, pad

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "conv1d",
    "conv2d",
    "conv3d",
    "cosine_similarity",
    "dropout",
    "dropout2d",
    "embedding",
    "embedding_bag",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "local_response_norm",
    "max_pool1d",
    "max_pool2d",
    "multi_head_attention_forward",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "rms_norm",
    "scaled_dot_product_attention",
]
