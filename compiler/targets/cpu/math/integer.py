"""Floored integer division that never traps, powers, and Philox's random bits, as LLVM IR."""

from __future__ import annotations

from .builder import FLOAT32, FLOAT64, FunctionBuilder, Value

INTEGERS = {
    f"{kind}int{bits}": (f"{kind[:1] or 'i'}{bits}", bits)
    for kind in ("", "u")
    for bits in (8, 16, 32, 64)
}
# Random123's constants (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11).
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
LOW32 = 0xFFFFFFFF


def floored_quotient(b: FunctionBuilder, x: Value, y: Value, bits: int, signed: bool) -> Value:
    """floor(x / y) for y != 0 and no overflow.

    Up to 32 bits through a float quotient, for x86 has no vector integer division: two quotients
    of n-bit integers differ by 2**-2n or more relative to their size, so in a format of more than
    2n bits (n = 32: 2**-32 for the distance to an integer, which is what counts) none is rounded
    onto the next integer.
    """
    if bits == 64:
        return floored_int64(b, x, y) if signed else b.emit(f"udiv i64 {x.text}, {y.text}", "i64")
    wide = "float" if bits < 32 else "double"
    sign = "s" if signed else "u"
    quotient = b.convert(f"{sign}itofp", x, wide) / b.convert(f"{sign}itofp", y, wide)
    result = b.convert(f"fpto{sign}i", b.intrinsic("floor", quotient), "i32")
    return result if bits == 32 else b.convert("trunc", result, f"i{bits}")


def floored_int64(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """floor(x / y) for y != 0 and no overflow, by two products with 1 / y in float64.

    The first leaves a remainder below |y|/2 + 2**13, for |x| * 2**-50 bounds what its rounding
    costs; so nothing overflows, and the second quotient is off by one at most.
    """
    inverse = 1.0 / b.convert("sitofp", y, "double")
    quotient = b.operand(0, "i64")
    rest = x
    for _ in range(2):
        ratio = b.intrinsic("rint", b.convert("sitofp", rest, "double") * inverse)
        step = b.convert("fptosi", b.clamp(ratio, None, 2.0**63 - 1024), "i64")
        quotient, rest = quotient + step, rest - step * y
    below = rest.unequal(0) & (rest ^ y).less(0)
    return b.select(below, quotient + -1, quotient)


def guarded_quotient(b: FunctionBuilder, x: Value, y: Value, bits: int, signed: bool) -> Value:
    """floor(x / y); x where y is zero, and the most negative x where it overflows (y = -1)."""
    unsafe = y.equal(0)
    if signed and bits >= 32:
        unsafe = unsafe | (x.equal(-(1 << (bits - 1))) & y.equal(-1))
    return floored_quotient(b, x, b.select(unsafe, 1, y), bits, signed)


def floor_divide(b: FunctionBuilder, x: Value, y: Value, bits: int, signed: bool) -> Value:
    """Python's x // y; 0 where y is zero, as in NumPy; overflow wraps."""
    return b.select(y.equal(0), 0, guarded_quotient(b, x, y, bits, signed))


def remainder(b: FunctionBuilder, x: Value, y: Value, bits: int, signed: bool) -> Value:
    """Python's x % y, with the sign of y; 0 where y is zero, as in NumPy."""
    rest = x - guarded_quotient(b, x, y, bits, signed) * y
    return b.select(y.equal(0), 0, rest)


def pow(b: FunctionBuilder, x: Value, y: Value, bits: int, signed: bool) -> Value:
    """x ** y by repeated squaring, wrapping; a negative exponent gives 1 // x**-y towards zero."""
    product, square = b.operand(1, x.type), x
    for step in range(bits - signed):
        chosen = (b.shift_right(y, step) & 1).unequal(0)
        product, square = b.select(chosen, product * square, product), square * square
    if not signed:
        return product
    odd = (y & 1).unequal(0)
    alternating = b.select(odd, -1, b.operand(1, x.type))
    inverse = b.select(x.equal(1), 1, b.select(x.equal(-1), alternating, b.operand(0, x.type)))
    return b.select(y.less(0), inverse, product)


def philox(b: FunctionBuilder, seed: Value, offset: Value, index: Value) -> Value:
    """Word index % 4 of Philox 4x32-10 at the counter (index // 4, offset) with the key `seed`.

    As `tgraph.runtime.philox.random_bits`. All words live in 64-bit lanes: x86 multiplies the low
    halves of these at once, whatever the high halves hold.
    """
    block = b.shift_right(index, 2)
    words = [block & LOW32, b.shift_right(block, 32), offset & LOW32, b.shift_right(offset, 32)]
    keys = [seed & LOW32, b.shift_right(seed, 32)]
    for step in range(10):
        if step:
            keys = [(key + weyl) & LOW32 for key, weyl in zip(keys, PHILOX_WEYL)]
        first, second = words[0] * PHILOX_MULTIPLIERS[0], words[2] * PHILOX_MULTIPLIERS[1]
        words = [
            b.shift_right(second, 32) ^ words[1] ^ keys[0],
            second & LOW32,
            b.shift_right(first, 32) ^ words[3] ^ keys[1],
            first & LOW32,
        ]
    odd = (index & 1).unequal(0)
    low = b.select(odd, words[1], words[0])
    high = b.select(odd, words[3], words[2])
    return b.convert("trunc", b.select((index & 2).unequal(0), high, low), "i32")


def integer_builder(name: str, bits: int) -> FunctionBuilder:
    """A builder for a function of two integers x and y."""
    return FunctionBuilder(name, FLOAT32, ["x", "y"], [f"i{bits}"] * 2)


def philox_builder(name: str) -> FunctionBuilder:
    """A builder for Philox's function of seed, offset and index."""
    return FunctionBuilder(name, FLOAT64, ["seed", "offset", "index"], ["i64"] * 3)
