"""The device library: what generated CUDA C calls that the CUDA math library does not have.

It is one text in front of every module, written without any header, since NVRTC brings none.
"""

from __future__ import annotations

from ....runtime.cuda.failures import REPORT
from ....runtime.philox import MULTIPLIERS, WEYL

LIBRARY = """\
// -- elements ----------------------------------------------------------------------------

// Neighbours that are loaded and stored together; 16 bytes are one access.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T at[N];
};

#ifndef TG_ON_CPU
__device__ __forceinline__ float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ __forceinline__ unsigned short half_from_float(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif

__device__ __forceinline__ float bfloat_to_float(unsigned short bits) {
  return __uint_as_float((unsigned int)bits << 16);
}

// To nearest, ties to even; NaN stays NaN.
__device__ __forceinline__ unsigned short bfloat_from_float(float value) {
  const unsigned int bits = __float_as_uint(value);
  if (value != value) return (unsigned short)(bits >> 16 | 64);
  return (unsigned short)((bits + 32767 + (bits >> 16 & 1)) >> 16);
}

// -- arithmetic --------------------------------------------------------------------------

template <typename T> __device__ __forceinline__ T tg_maximum(T a, T b) {
  return a != a || a > b ? a : b;
}

template <typename T> __device__ __forceinline__ T tg_minimum(T a, T b) {
  return a != a || a < b ? a : b;
}

// The type in which sums and products wrap instead of being undefined.
template <typename T> struct Wrapping { typedef unsigned int type; };
template <> struct Wrapping<long long> { typedef unsigned long long type; };
template <> struct Wrapping<unsigned long long> { typedef unsigned long long type; };
template <> struct Wrapping<float> { typedef float type; };
template <> struct Wrapping<double> { typedef double type; };

// Integers divide towards minus infinity; 0 where the divisor is 0, overflow wraps.
template <typename T> __device__ __forceinline__ T tg_floor_divide(T x, T y) {
  typedef typename Wrapping<T>::type U;
  if (y == 0) return 0;
  if ((T)-1 < 0 && y == (T)-1) return (T)((U)0 - (U)x);
  const T quotient = (T)(x / y);
  return x % y != 0 && (x < 0) != (y < 0) ? (T)(quotient - 1) : quotient;
}

template <typename T> __device__ __forceinline__ T tg_remainder(T x, T y) {
  if (y == 0 || ((T)-1 < 0 && y == (T)-1)) return 0;
  const T rest = (T)(x % y);
  return rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;
}

// floor(x / y) as if x / y were not rounded; a quotient that rounding lifted onto an integer shows
// by the sign of x - quotient * y. x / y where y is zero, NaN for infinite x.
#define TG_FLOATS(T, FMA, FLOOR, FMOD, COPYSIGN, FABS, INFINITE, NOT_A_NUMBER)                   \\
  template <> __device__ __forceinline__ T tg_floor_divide<T>(T x, T y) {                        \\
    const T quotient = x / y;                                                                    \\
    if (y == 0) return quotient;                                                                 \\
    if (FABS(x) == INFINITE) return NOT_A_NUMBER;                                                \\
    const T whole = FLOOR(quotient);                                                             \\
    const bool lifted = FMA(-whole, y, x) * COPYSIGN((T)1, y) < 0;                               \\
    const bool lost = quotient == 0 && COPYSIGN((T)1, quotient) < 0 && x != 0;                   \\
    return lifted || lost ? whole - 1 : whole;                                                   \\
  }                                                                                              \\
  template <> __device__ __forceinline__ T tg_remainder<T>(T x, T y) {                           \\
    const T rest = FMOD(x, y);                                                                   \\
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;                                 \\
  }
TG_FLOATS(float, fmaf, floorf, fmodf, copysignf, fabsf, __int_as_float(0x7f800000),
          __int_as_float(0x7fc00000))
TG_FLOATS(double, fma, floor, fmod, copysign, fabs, __longlong_as_double(0x7ff0000000000000LL),
          __longlong_as_double(0x7ff8000000000000LL))
#undef TG_FLOATS

// Towards zero; what has no 64 bits, NaN too, becomes the most negative integer.
template <typename T> __device__ __forceinline__ long long tg_to_integer(T value) {
  const T limit = (T)9223372036854775808.0;
  return value < limit && value >= -limit ? (long long)value : -9223372036854775807LL - 1;
}

// By repeated squaring, wrapping; a negative exponent gives 1 / x**-y towards zero.
template <typename T> __device__ T tg_pow(T x, T y) {
  typedef typename Wrapping<T>::type U;
  if ((T)-1 < 0 && y < 0) return x == 1 ? 1 : x == (T)-1 ? (y & 1 ? (T)-1 : (T)1) : 0;
  U product = 1, square = (U)x;
  for (U left = (U)y; left != 0; left >>= 1) {
    if (left & 1) product *= square;
    square *= square;
  }
  return (T)product;
}

// By the width or more: left gives 0, right what is left of the sign.
template <typename T> __device__ __forceinline__ T tg_shift_left(T x, T by) {
  typedef typename Wrapping<T>::type U;
  return by >= 0 && (U)by < sizeof(T) * 8 ? (T)((U)x << by) : (T)0;
}

template <typename T> __device__ __forceinline__ T tg_shift_right(T x, T by) {
  typedef typename Wrapping<T>::type U;
  return by >= 0 && (U)by < sizeof(T) * 8 ? (T)(x >> by) : (T)(x < 0 ? -1 : 0);
}

// Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11): word
// index % 4 at the counter (index / 4, offset) with the key `seed`.
__device__ unsigned int tg_random_bits(long long seed, long long offset, long long index) {
  const unsigned long long block = (unsigned long long)index >> 2;
  unsigned int w0 = (unsigned int)block, w1 = (unsigned int)(block >> 32);
  unsigned int w2 = (unsigned int)offset, w3 = (unsigned int)((unsigned long long)offset >> 32);
  unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)((unsigned long long)seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned int high0 = __umulhi(MULTIPLIER0u, w0), low0 = MULTIPLIER0u * w0;
    const unsigned int high1 = __umulhi(MULTIPLIER1u, w2), low1 = MULTIPLIER1u * w2;
    w0 = high1 ^ w1 ^ k0;
    w1 = low1;
    w2 = high0 ^ w3 ^ k1;
    w3 = low0;
    k0 += WEYL0u;
    k1 += WEYL1u;
  }
  const int word = (int)(index & 3);
  return word == 0 ? w0 : word == 1 ? w1 : word == 2 ? w2 : w3;
}

REPORT_OF_FAILURES
// A position outside of [0, size) is reported; goes on at 0.
__device__ __forceinline__ long long tg_check(long long position, long long size, int site,
                                              bool active, long long* status) {
  if ((unsigned long long)position < (unsigned long long)size) return position;
  if (active) tg_report(position, size, site, status);
  return 0;
}

// -- long sums ---------------------------------------------------------------------------

// Adds the sum of a block to the total, and what rounding takes from it to `lost` (Knuth, "The Art
// of Computer Programming", volume 2, 4.2.2, theorem B). The next block starts from 0.
template <typename T> __device__ __forceinline__ void tg_carry(T& block, T& total, T& lost) {
  const T both = total + block, of_block = both - total;
  lost += (total - (both - of_block)) + (block - of_block);
  total = both;
  block = 0;
}

// An infinite total has lost NaN.
template <typename T> __device__ __forceinline__ T tg_total(T total, T lost) {
  return lost == lost ? total + lost : total;
}

// -- reductions over a group of threads -----------------------------------------------------

#define TG_JOIN(NAME, EXPRESSION)                                                                \\
  struct NAME {                                                                                  \\
    template <typename T> __device__ static T join(T a, T b) {                                   \\
      typedef typename Wrapping<T>::type U;                                                      \\
      return (T)(EXPRESSION);                                                                    \\
    }                                                                                            \\
  };
TG_JOIN(Sum, (U)a + (U)b)
TG_JOIN(Product, (U)a * (U)b)
TG_JOIN(Maximum, tg_maximum<T>(a, b))
TG_JOIN(Minimum, tg_minimum<T>(a, b))
TG_JOIN(Any, a || b)
TG_JOIN(All, a && b)
#undef TG_JOIN

// The best value so far and where it stands: of equal ones the first, and NaN beats any number.
template <typename T> struct Place { T value; long long position; };
template <bool MOST> struct Best {
  template <typename T> __device__ static Place<T> join(Place<T> a, Place<T> b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool same = a.value == b.value || (a_nan && b_nan);
    const bool better = MOST ? b.value > a.value : b.value < a.value;
    const bool take = same ? b.position < a.position : b_nan || (better && !a_nan);
    return take ? b : a;
  }
};

// The value of the thread that differs from this one in the bits `by`; types narrower than int
// travel as ints.
template <typename T> __device__ __forceinline__ T tg_exchange(T value, int by) {
  return (T)__shfl_xor_sync(0xffffffffu, +value, by);
}
template <typename T> __device__ __forceinline__ Place<T> tg_exchange(Place<T> v, int by) {
  return {tg_exchange(v.value, by), tg_exchange(v.position, by)};
}

// Neighbouring threads form a group of GROUP: every one of them gets the joined value. Groups above
// a warp are whole blocks and need one element of `shared` per warp.
template <class Join, int GROUP, typename T>
__device__ __forceinline__ T tg_join_neighbours(T value, T* shared) {
  for (int by = (GROUP < 32 ? GROUP : 32) / 2; by > 0; by /= 2)
    value = Join::join(value, tg_exchange(value, by));
  if (GROUP > 32) {
    __syncthreads();  // what was joined before has been read
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[threadIdx.x % (GROUP / 32)];
    for (int by = GROUP / 64; by > 0; by /= 2) value = Join::join(value, tg_exchange(value, by));
  }
  return value;
}

// The join of COUNT values that lie STEP apart, pairwise.
template <class Join, int COUNT, int STEP> struct Pairwise {
  template <typename T> __device__ __forceinline__ static T join(const T* at) {
    return Join::join(Pairwise<Join, COUNT / 2, STEP>::join(at),
                      Pairwise<Join, COUNT - COUNT / 2, STEP>::join(at + COUNT / 2 * STEP));
  }
};
template <class Join, int STEP> struct Pairwise<Join, 1, STEP> {
  template <typename T> __device__ __forceinline__ static T join(const T* at) { return *at; }
};

// Thread (x, y) is member y of the group of column x: `shared` has GROUP rows of COLUMNS.
template <class Join, int GROUP, int COLUMNS, typename T>
__device__ __forceinline__ T tg_join_columns(T value, T* shared) {
  __syncthreads();
  shared[threadIdx.y * COLUMNS + threadIdx.x] = value;
  __syncthreads();
  return Pairwise<Join, GROUP, COLUMNS>::join(shared + threadIdx.x);
}

// -- scans by a group of threads ------------------------------------------------------------

// Steps of a linear scan: the last value times `factor`, plus `added`. `wild` where a factor was
// infinite or NaN.
template <typename T> struct Linear { T factor, added; bool wild; };
template <typename T> __device__ __forceinline__ Linear<T> tg_linear(T factor, T added) {
  return {factor, added, factor - factor != 0};
}
struct Chain {
  template <typename T> __device__ static Linear<T> join(Linear<T> a, Linear<T> b) {
    // Finite factors leave 0 as it is, one after another, though their product may be infinite.
    const T scaled = a.added == 0 && !b.wild ? a.added : a.added * b.factor;
    return {a.factor * b.factor, scaled + b.added, a.wild || b.wild};
  }
};

// Of WIDTH neighbours the value of the one `by` before this thread, and of the one numbered `at`.
template <int WIDTH, typename T> __device__ __forceinline__ T tg_before(T value, int by) {
  return (T)__shfl_up_sync(0xffffffffu, +value, by, WIDTH);
}
template <int WIDTH, typename T>
__device__ __forceinline__ Linear<T> tg_before(Linear<T> v, int by) {
  return {tg_before<WIDTH>(v.factor, by), tg_before<WIDTH>(v.added, by),
          tg_before<WIDTH>((int)v.wild, by) != 0};
}
template <int WIDTH, typename T> __device__ __forceinline__ T tg_of(T value, int at) {
  return (T)__shfl_sync(0xffffffffu, +value, at, WIDTH);
}
template <int WIDTH, typename T> __device__ __forceinline__ Linear<T> tg_of(Linear<T> v, int at) {
  return {tg_of<WIDTH>(v.factor, at), tg_of<WIDTH>(v.added, at),
          tg_of<WIDTH>((int)v.wild, at) != 0};
}

// The values of WIDTH neighbours, each joined with all before it.
template <class Join, int WIDTH, typename T> __device__ __forceinline__ T tg_scan_lanes(T value) {
  for (int by = 1; by < WIDTH; by *= 2) {
    const T before = tg_before<WIDTH>(value, by);
    if ((int)(threadIdx.x % WIDTH) >= by) value = Join::join(before, value);
  }
  return value;
}

// GROUP neighbouring threads have COUNT values each, one thread's behind those of the thread
// before: every value is joined with all before it, and with `carry`, the fold of what lies before
// them all. That takes these values in. Groups above a warp are whole blocks and need one element
// of `shared` per warp.
template <class Join, int GROUP, int COUNT, typename T>
__device__ __forceinline__ void tg_scan(T (&values)[COUNT], T& carry, T* shared) {
#pragma unroll
  for (int i = 1; i < COUNT; ++i) values[i] = Join::join(values[i - 1], values[i]);
  T before = carry, all = values[COUNT - 1];
  if (GROUP > 1) {
    const int WIDTH = GROUP < 32 ? GROUP : 32, WARPS = GROUP / WIDTH;
    const int lane = threadIdx.x % WIDTH, warp = WARPS > 1 ? threadIdx.x / 32 : 0;
    const T upto = tg_scan_lanes<Join, WIDTH>(all);
    const T lanes_before = tg_before<WIDTH>(upto, 1);
    all = tg_of<WIDTH>(upto, WIDTH - 1);
    if (WARPS > 1) {
      __syncthreads();  // what was scanned before has been read
      if (lane == 0) shared[warp] = all;
      __syncthreads();
      const T warps = tg_scan_lanes<Join, WARPS>(shared[threadIdx.x % WARPS]);
      const T warps_before = tg_of<WARPS>(warps, warp > 0 ? warp - 1 : 0);
      if (warp > 0) before = Join::join(before, warps_before);
      all = tg_of<WARPS>(warps, WARPS - 1);
    }
    if (lane > 0) before = Join::join(before, lanes_before);
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) values[i] = Join::join(before, values[i]);
  carry = Join::join(carry, all);
}
"""


def library_text() -> str:
    """The text in front of the kernels of a module."""
    text = LIBRARY.replace("REPORT_OF_FAILURES\n", REPORT)
    for number in (0, 1):
        text = text.replace(f"MULTIPLIER{number}u", f"{MULTIPLIERS[number]:#x}u")
        text = text.replace(f"WEYL{number}u", f"{WEYL[number]:#x}u")
    return text
