"""PyTorch's choices of how attention is computed, which tgraph's compiler makes by itself."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class SDPBackend(enum.IntEnum):
    """Ways to compute `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Attention inside of `with` is what it is outside: results do not depend on `backends`.

    >>> import tgraph as tg
    >>> from tgraph.nn.attention import SDPBackend, sdpa_kernel
    >>> q = tg.ones(1, 2, 4)
    >>> with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    ...     tg.nn.functional.scaled_dot_product_attention(q, q, q).shape
    tgraph.Size([1, 2, 4])
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not given or not all(isinstance(each, SDPBackend) for each in given):
        raise TypeError(
            "sdpa_kernel(): expected an nn.attention.SDPBackend or a list of them, got "
            f"{backends!r}"
        )
    yield
