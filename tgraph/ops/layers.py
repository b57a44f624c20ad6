"""Layers of neural networks as functions: linear maps, normalisation, attention, embeddings.

`tgraph.nn.functional` offers these together with the activations and the losses.
"""

from .attention import multi_head_attention_forward, scaled_dot_product_attention
from .batch_normalization import batch_norm, instance_norm
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

__all__ = [
    "batch_norm",
    "bilinear",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "local_response_norm",
    "multi_head_attention_forward",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "rms_norm",
    "scaled_dot_product_attention",
]
