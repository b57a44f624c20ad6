"""Philox 4x32-10 against Random123's known answers, the LLVM kernel, and plain statistics."""

import ctypes
import doctest

import numpy as np
import pytest
from tgraph.compiler.targets.cpu.math.functions import definitions
from tgraph.runtime import jit, philox
from tgraph.runtime.philox import random_bits

# Random123's kat_vectors, "philox4x32 10": counter, key, result.
KNOWN = [
    ([0x00000000] * 4, [0x00000000] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
KERNEL = """
define void @bits(i64 %seed, i64 %offset, i64 %first, ptr noalias %out, i64 %n) #0 {
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
  %index = add i64 %i, %first
  %r = call i32 @tg_philox_u32(i64 %seed, i64 %offset, i64 %index)
  %po = getelementptr i32, ptr %out, i64 %i
  store i32 %r, ptr %po
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" }
"""


def compiled_bits(seed, offset, first, count):
    module = jit.compile_module(definitions(["tg_philox_u32"]) + KERNEL)
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 3, ctypes.c_void_p, ctypes.c_int64)(
        module.address("bits")
    )
    out = np.empty(count, np.uint32)
    kernel(seed, offset, first, out.ctypes.data, count)
    return out


def joined(low, high):
    return low | high << 32


def rounds(counter, key):
    """The four words that NumPy's version makes of one counter and key."""
    arrays = [np.full(1, word, np.uint64) for word in counter[:2]]
    return [int(word[0]) for word in philox.philox((*arrays, *counter[2:]), tuple(key))]


@pytest.mark.parametrize("counter, key, result", KNOWN)
def test_known_answers(counter, key, result):
    assert rounds(counter, key) == result


@pytest.mark.parametrize("counter, key, result", KNOWN)
def test_known_answers_compiled(counter, key, result):
    # The index 4 * block wraps modulo 2**64, so only blocks below 2**62 can be reached.
    block = joined(*counter[:2]) % (1 << 62)
    reached = [block & philox.LOW32, block >> 32, *counter[2:]]
    if reached != counter:
        result = rounds(reached, key)
    got = compiled_bits(joined(*key), joined(*counter[2:]), 4 * block, 4)
    assert got.tolist() == result


@pytest.mark.parametrize("seed, offset", [(0, 0), (42, 7), (2**64 - 1, 2**63), (1 << 40, 1 << 33)])
@pytest.mark.parametrize("count", [1, 3, 4, 1000, 100_003])
def test_compiled_and_numpy_agree(seed, offset, count):
    np.testing.assert_array_equal(
        compiled_bits(seed, offset, 0, count), random_bits(seed, offset, count)
    )


def test_a_shorter_call_is_a_prefix_of_a_longer_one():
    whole = random_bits(5, 3, philox.NUMPY_PIECE * 3 + 5)
    assert whole.dtype == np.uint32 and whole.shape == (philox.NUMPY_PIECE * 3 + 5,)
    for count in (0, 1, 2, 5, philox.NUMPY_PIECE, philox.NUMPY_PIECE + 1):
        np.testing.assert_array_equal(random_bits(5, 3, count), whole[:count])


def test_negative_numbers_stand_for_their_64_bits():
    np.testing.assert_array_equal(random_bits(-1, -2, 9), random_bits(2**64 - 1, 2**64 - 2, 9))
    np.testing.assert_array_equal(random_bits(np.int64(-1), np.int64(3), 9), random_bits(-1, 3, 9))


def test_seeds_and_offsets_give_different_bits():
    streams = [
        random_bits(seed, offset, 64) for seed in (0, 1, 1 << 32) for offset in (0, 1, 1 << 32)
    ]
    assert len(np.unique(np.concatenate(streams))) > 64 * 9 - 3


def test_bits_are_balanced_and_uncorrelated():
    bits = random_bits(1, 0, 1 << 18)
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(bits.size * 32)
    uniform = bits / 2.0**32
    for lag in (1, 2, 3, 4, 8):
        correlation = np.corrcoef(uniform[:-lag], uniform[lag:])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(bits.size)


def test_examples_in_docstrings():
    results = doctest.testmod(philox)
    assert results.attempted and not results.failed


def test_negative_count():
    with pytest.raises(ValueError, match="count of 0 or more, got -1"):
        random_bits(0, 0, -1)
