"""Attention over operands that are views of others."""

from __future__ import annotations

import numpy as np

import tgraph as tg
import tgraph.nn.functional as F


def views(q, k, v):
    """Heads side by side in memory, keys that are transposed, values that are a part of others."""

    def heads(x):
        return x.reshape(2, 50, 3, 8).transpose(1, 2)

    return F.scaled_dot_product_attention(
        heads(q)[:, :, ::2], heads(k).mT.contiguous().mT, heads(v)[..., 2:7]
    )


def strided(x):
    """The same elements, every third row and every second column of another tensor."""
    return tg.tensor(np.repeat(np.repeat(x.numpy(), 2, -1), 3, -2))[:, ::3, ::2]
