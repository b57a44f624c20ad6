"""Result dtypes of operations, as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg

I32, I64 = tg.ones(2, dtype=tg.int32), tg.ones(2, dtype=tg.int64)
F16, F32, F64 = (tg.ones(2, dtype=each) for each in (tg.float16, tg.float32, tg.float64))
BF16 = tg.ones(2, dtype=tg.bfloat16)
U8, I8 = tg.ones(2, dtype=tg.uint8), tg.ones(2, dtype=tg.int8)
B = tg.tensor([True, False])

CASES: list[tuple[Callable[[], Any], tg.dtype]] = [
    (lambda: I32 + 1, tg.int32),
    (lambda: I32 + 1.5, tg.float32),
    (lambda: I32 + I64, tg.int64),
    (lambda: U8 + I8, tg.int16),
    (lambda: F16 + 1e10, tg.float16),
    (lambda: F16 + F32, tg.float32),
    (lambda: F16 + BF16, tg.float32),
    (lambda: F32 + F64, tg.float64),
    (lambda: I64 + F16, tg.float16),
    (lambda: F32 + tg.tensor(1.0, dtype=tg.float64), tg.float32),
    (lambda: I32 + tg.tensor(1), tg.int32),
    (lambda: I32 + tg.tensor(1.0, dtype=tg.float64), tg.float64),
    (lambda: tg.tensor(1) + tg.tensor(1.5), tg.float32),
    (lambda: 2 * F16, tg.float16),
    (lambda: 2.0 - I64, tg.float32),
    (lambda: 1 / I64, tg.float32),
    (lambda: I64 / I64, tg.float32),
    (lambda: F64 / 2, tg.float64),
    (lambda: F64 * 1j, tg.complex128),
    (lambda: I64 * 1j, tg.complex64),
    (lambda: I64 // 2, tg.int64),
    (lambda: I64 % 2.0, tg.float32),
    (lambda: I64**2, tg.int64),
    (lambda: I64**2.0, tg.float32),
    (lambda: 2**F16, tg.float16),
    (lambda: B + B, tg.bool),
    (lambda: B * B, tg.bool),
    (lambda: B + 1, tg.int64),
    (lambda: B + 1.0, tg.float32),
    (lambda: B.sum(), tg.int64),
    (lambda: I32.sum(), tg.int64),
    (lambda: I32.prod(0), tg.int64),
    (lambda: F16.sum(), tg.float16),
    (lambda: I32.sum(dtype=tg.float64), tg.float64),
    (lambda: I32.amax(), tg.int32),
    (lambda: F32.argmax(), tg.int64),
    (lambda: I32.mean(dtype=tg.float64), tg.float64),
    (lambda: I64 == 1.5, tg.bool),
    (lambda: I64 < F64, tg.bool),
    (lambda: I64.exp(), tg.float32),
    (lambda: F16.exp(), tg.float16),
    (lambda: B.sigmoid(), tg.float32),
    (lambda: I64.floor(), tg.int64),
    (lambda: tg.where(B, 1, 2), tg.int64),
    (lambda: tg.where(B, 1.0, I64), tg.float32),
    (lambda: tg.where(B, F16, 0.0), tg.float16),
    (lambda: tg.cat([I64, F16]), tg.float16),
    (lambda: tg.stack([U8, I8]), tg.int16),
    (lambda: tg.clamp(I64, 0.5), tg.float32),
    (lambda: I64 & 1, tg.int64),
    (lambda: B & B, tg.bool),
    (lambda: ~B, tg.bool),
    (lambda: I32 << 1, tg.int32),
    (lambda: tg.logical_and(I64, F32), tg.bool),
    (lambda: tg.atan2(I64, I64), tg.float32),
    (lambda: tg.maximum(I32, tg.tensor(2.5)), tg.float32),
    (lambda: F16.softmax(0, dtype=tg.float32), tg.float32),
    (lambda: F32.masked_fill(B, 1), tg.float32),
]


@pytest.mark.parametrize(("operation", "dtype"), CASES, ids=range(len(CASES)))
def test_result_dtype(operation: Callable[[], Any], dtype: tg.dtype) -> None:
    assert operation().dtype is dtype


def test_numbers_wrap_into_small_integers() -> None:
    assert (tg.tensor([1, 2], dtype=tg.uint8) + 300).tolist() == [45, 46]
    assert (tg.tensor([1, 2], dtype=tg.uint8) - 3).tolist() == [254, 255]


def test_result_type_and_casting_rules() -> None:
    assert tg.result_type(I32, 1.5) is tg.float32
    assert tg.promote_types(tg.uint8, tg.int8) is tg.int16
    assert tg.can_cast(tg.int64, tg.float16) and not tg.can_cast(tg.float16, tg.int64)


def test_means_of_integers_are_refused() -> None:
    message = "could not infer output dtype. Input dtype must be either a floating point"
    with pytest.raises(RuntimeError, match=f"mean.*{message}.*Got: Long"):
        I64.mean()


def test_booleans_are_not_subtracted_or_negated() -> None:
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        B - B
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        B - 1
    with pytest.raises(RuntimeError, match="Negation"):
        tg.neg(B)


def test_bits_of_floats_are_refused() -> None:
    for operation in (lambda: F32 & 1, lambda: ~F32, lambda: F32 << 1):
        with pytest.raises((TypeError, NotImplementedError), match="implemented"):
            operation()


def test_in_place_results_keep_the_dtype_or_are_refused() -> None:
    x = tg.tensor([1, 2])
    x *= 3
    assert x.dtype is tg.int64 and x.tolist() == [3, 6]
    message = "result type Float can't be cast to the desired output type Long"
    for operation in (lambda: x.add_(1.5), lambda: x.div_(2), lambda: x.__imul__(0.5)):
        with pytest.raises(RuntimeError, match=message):
            operation()
    y = tg.ones(2)
    y += tg.ones(2, dtype=tg.float64)
    assert y.dtype is tg.float32
    b = tg.tensor([True])
    with pytest.raises(RuntimeError, match=r"result type Long can't be cast .* type Bool"):
        b.add_(1)


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16])
def test_numbers_that_16_bits_cannot_hold_scale_as_they_are(dtype: tg.dtype) -> None:
    # PyTorch's results: computed in float32, rounded once.
    x = tg.tensor([0.0, 1.0, 3.0, 60000.0], dtype=dtype)
    scales = (
        lambda x: x * 1e-8,
        lambda x: x / 65536,
        lambda x: 0.001 * x,
        lambda x: x * tg.tensor(1e-8),
        lambda x: (x * 0) * 1e5,
        lambda x: x.clone().mul_(1e-8),
    )
    for scale in scales:
        wanted = scale(x.float()).to(dtype)
        assert tg.equal(scale(x), wanted) and scale(x).dtype is dtype
        assert tg.equal(tg.compile(scale)(x), wanted)
    times = tg.compile(lambda x, factor: x * factor)
    for factor in (1e-8, 2e-8, 3e-8):
        assert tg.equal(times(x, factor), (x.float() * factor).to(dtype))
    assert len(times.compiles) == 2


def test_alpha_is_a_number_of_the_result() -> None:
    """As in PyTorch: what integers are scaled by may be a float where the sum is of floats."""
    assert tg.equal(tg.add(tg.ones(2), tg.tensor(1), alpha=2.5), tg.full((2,), 3.5))
    assert tg.equal(tg.rsub(tg.arange(2), 1.0, alpha=0.5), tg.tensor([1.0, 0.5]))
    yes = tg.ones(2, dtype=tg.bool)
    assert tg.equal(tg.add(yes, True, alpha=2), yes)
    assert tg.equal(tg.add(~yes, yes, alpha=0), ~yes)
    half = tg.add(tg.ones(2, dtype=tg.float16), tg.tensor(3), alpha=2.5)
    assert half.dtype is tg.float16


@pytest.mark.parametrize("compiled", [False, True])
def test_factors_are_widened_before_they_are_multiplied(compiled: bool) -> None:
    """Into the type of the result, in which they do not wrap or lose digits."""
    narrow, wide, half = tg.tensor([100], dtype=tg.int8), tg.tensor([1]), tg.tensor([100.0]).half()
    fraction = tg.tensor([0.1]).half()
    tenth = fraction.double().item()
    calls: dict[str, tuple[Callable[[], tg.Tensor], float]] = {
        "add": (lambda: tg.add(wide, narrow, alpha=3), 301),
        "sub": (lambda: tg.sub(wide, narrow, alpha=3), -299),
        "rsub": (lambda: tg.rsub(narrow, wide, alpha=3), -299),
        "add_": (lambda: wide.clone().add_(narrow, alpha=3), 301),
        "add of halves": (lambda: tg.add(tg.ones(1).double(), fraction, alpha=3), 1 + 3 * tenth),
        "addcmul": (lambda: tg.addcmul(wide, narrow, narrow, value=2), 20001),
        "addcmul of floats": (lambda: tg.addcmul(half, narrow, narrow, value=0.5), 5100),
        "addcdiv": (lambda: tg.addcdiv(tg.ones(1).double(), narrow, fraction), 1 + 100 / tenth),
        "lerp": (lambda: tg.lerp(narrow, -narrow, tg.ones(1)), -100),
        "lcm": (lambda: tg.lcm(narrow, tg.tensor([78], dtype=tg.int8)), 60),
    }  # fmt: skip
    for name, (call, wanted) in calls.items():
        found = (tg.compile(call) if compiled else call)()
        assert found.double().item() == pytest.approx(wanted, rel=1e-7), name
