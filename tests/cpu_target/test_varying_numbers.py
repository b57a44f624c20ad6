"""Kernels of sizes that vary are compiled a few times, and then for no size any more."""

import numpy as np
from tgraph.compiler.targets.cpu import loader
from tgraph.compiler.targets.cpu.module_text import KernelText
from tgraph.compiler.targets.cpu.varying_numbers import with_varying_numbers

import tgraph as tg

TEXT = """\
define internal void @NAME_body(ptr noalias %p0, ptr noalias %p1, i64 %lo, i64 %hi) noinline #0 {{
entry:
  %v1 = icmp slt i64 0, {size}
  br i1 %v1, label %loop2, label %done3
loop2:
  %v4 = phi i64 [ {first}, %entry ], [ %v9, %loop2 ]
  %v5 = getelementptr inbounds float, ptr %p0, i64 %v4
  %v6 = load float, ptr %v5
  %v7 = fdiv float %v6, {number}
  %v8 = sdiv i64 %v4, {divisor}
  %v9 = add nuw nsw i64 %v4, 1
  %v10 = icmp slt i64 %v9, {size}
  br i1 %v10, label %loop2, label %done3
done3:
  ret void
}}
define void @NAME(ptr %args, i64 %lo, i64 %hi) #0 {{
  %a0 = getelementptr ptr, ptr %args, i64 0
  %p0 = load ptr, ptr %a0
  %a1 = getelementptr ptr, ptr %args, i64 1
  %p1 = load ptr, ptr %a1
  call void @NAME_body(ptr %p0, ptr %p1, i64 %lo, i64 %hi)
  ret void
}}"""


def text(size, first=0, divisor=7, number="0x4026000000000000"):
    whole = TEXT.format(size=size, first=first, divisor=divisor, number=number)
    return KernelText(whole, frozenset({"a name of this test"}), frozenset(), ())


def test_numbers_that_differ_become_parameters():
    assert with_varying_numbers(text(11)) == (text(11), ())
    other, numbers = with_varying_numbers(text(12))
    assert numbers == (12, 12) and "icmp slt i64 0, %w0" in other.text
    assert "icmp slt i64 %v9, %w1" in other.text and "[ 0, %entry ]" in other.text
    assert "i64 %lo, i64 %hi, i64 %w0, i64 %w1) noinline" in other.text
    assert "getelementptr ptr, ptr %args, i64 2\n  %words = load ptr" in other.text
    assert with_varying_numbers(text(13)) == (other, (13, 13))
    more, numbers = with_varying_numbers(text(13, first=3))
    assert numbers == (13, 3, 13) and "phi i64 [ %w1, %entry ]" in more.text
    assert with_varying_numbers(text(14)) == (more, (14, 0, 14))
    assert with_varying_numbers(text(11)) == (text(11), ())  # the first is what it was


def test_floats_are_given_by_their_bits():
    eleven, minus = "0x4026000000000000", "0xC026000000000000"
    with_varying_numbers(text(11, divisor=5))
    other, numbers = with_varying_numbers(text(11, divisor=5, number=minus))
    assert numbers == (int(minus, 16) - 2**64,) and "fdiv float %v6, %w0" in other.text
    assert "i64 %hi, float %w0) noinline" in other.text
    assert "%w0 = fptrunc double %d0 to float" in other.text and eleven not in other.text


def test_divisors_stay_in_the_text():
    assert with_varying_numbers(text(11, divisor=9)) == (text(11, divisor=9), ())


def test_new_sizes_compile_nothing_in_the_end():
    """Of each rest that blocks of rows may leave, two kernels are compiled."""

    def function(x):
        return tg.softmax(x, 0) - x.mean(0), x.t() @ x

    compiled = tg.compile(function, dynamic={"x": 0})

    def compiles(n):
        known = len(loader._addresses)
        x = tg.from_numpy(np.random.default_rng(n).standard_normal((n, 24)).astype(np.float32))
        for have, want in zip(compiled(x), function(x), strict=True):
            np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
        return len(loader._addresses) - known

    assert compiles(100) > 0
    assert sum(compiles(n) for n in range(101, 117)) < 48
    assert not any(compiles(n) for n in range(117, 128))
    assert len(compiled.compiles) == 1
