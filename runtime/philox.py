"""Counter-based random bits: Philox 4x32-10.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11, and its
library Random123. Element i of a call is a pure function of (seed, offset, i), so generated
kernels compute the same bits in any order; `tg_philox_u32` of the LLVM math library is the same
function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # of the array module in use
Words = tuple[Array, Array, Array, Array]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
LOW32 = 0xFFFFFFFF
LOW64 = 0xFFFFFFFFFFFFFFFF
# Elements made at once. NumPy: the temporary arrays (0.8 MB) then stay in the second-level cache.
# Other modules: few launches, at most 0.8 GB of temporary arrays.
NUMPY_PIECE = 1 << 16
DEVICE_PIECE = 1 << 26
# Up to so many blocks of four, Python's numbers are faster than NumPy's calls.
FEW_BLOCKS = 8


def random_bits(seed: int, offset: int, count: int, xp: Any = np) -> Array:
    """`count` random uint32 numbers, an array of shape (count,) of the array module `xp`.

    `seed` is the key; `offset` tells calls apart: a caller adds one to it for each call. Both are
    taken modulo 2**64. Element i is word i % 4 of Philox at the counter (low and high half of
    i // 4, low and high half of offset) with the key (low and high half of seed).

    Raises ValueError for a negative count.

    Example:
        >>> [hex(bits) for bits in random_bits(seed=0, offset=0, count=5)]
        ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8', '0xf8e4cca4']
    """
    if count < 0:
        raise ValueError(f"random_bits expected a count of 0 or more, got {count}")
    seed, offset = int(seed) & LOW64, int(offset) & LOW64
    blocks = -(-count // 4)
    if xp is np and blocks <= FEW_BLOCKS:
        words: list[int] = []
        for block in range(blocks):
            words += _rounds((block, 0, offset & LOW32, offset >> 32), (seed & LOW32, seed >> 32))
        return np.array(words[:count], np.uint32)
    out = xp.empty((blocks, 4), dtype=xp.uint32)
    piece = (NUMPY_PIECE if xp is np else DEVICE_PIECE) // 4
    for start in range(0, blocks, piece):
        stop = min(start + piece, blocks)
        block = xp.arange(start, stop, dtype=xp.uint64)
        counter = (block & LOW32, block >> 32, offset & LOW32, offset >> 32)
        for column, word in enumerate(philox(counter, (seed & LOW32, seed >> 32), xp)):
            out[start:stop, column] = word
    return out.reshape(-1)[:count]


def philox(counter: tuple[Array, Array, int, int], key: tuple[int, int], xp: Any = np) -> Words:
    """Ten rounds of Philox 4x32. All words are held in uint64.

    The first two of the counter are arrays of one shape, the others are numbers.
    """
    a, b = counter[:2]
    return _rounds((a, b, xp.full_like(a, counter[2]), xp.full_like(a, counter[3])), key)


def _rounds(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Of four arrays, or of four numbers of Python."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        first, second = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, c = second >> 32, first >> 32
        a ^= b
        a ^= k
        c ^= d
        c ^= m
        second &= LOW32
        first &= LOW32
        b, d = second, first
        k, m = (k + WEYL[0]) & LOW32, (m + WEYL[1]) & LOW32
    return a, b, c, d
