// What CUDA C text sees when it is compiled for the CPU (see shim.py). The other side, threads and
// their schedule, is cuda_on_cpu.cpp.
//
// It includes no header and defines only what NVRTC knows without one, so that text which compiles
// here does not lean on uint32_t, INFINITY, std:: or the like.
#pragma once

#define TG_ON_CPU 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define warpSize 32

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static
#define __grid_constant__
// Every kernel has a section for its static shared memory: its size is known, and it can be filled
// before each block. shim.py writes this for `__shared__` inside of a kernel. `used` keeps arrays
// that g++ could do without, and that count on a GPU.
#define TG_SHARED(kernel) static __attribute__((used, section("tg_shared_" #kernel)))

typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;

// -- vector types --------------------------------------------------------------------------------

#define TG_VECTORS(T, NAME, ALIGN2, ALIGN4)                                                       \
  struct NAME##1 { T x; };                                                                        \
  struct alignas(ALIGN2) NAME##2 { T x, y; };                                                     \
  struct NAME##3 { T x, y, z; };                                                                  \
  struct alignas(ALIGN4) NAME##4 { T x, y, z, w; };                                               \
  static inline NAME##1 make_##NAME##1(T x) { return {x}; }                                       \
  static inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                               \
  static inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                       \
  static inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TG_VECTORS(signed char, char, 2, 4)
TG_VECTORS(unsigned char, uchar, 2, 4)
TG_VECTORS(short, short, 4, 8)
TG_VECTORS(unsigned short, ushort, 4, 8)
TG_VECTORS(int, int, 8, 16)
TG_VECTORS(unsigned int, uint, 8, 16)
TG_VECTORS(long, long, 16, 16)
TG_VECTORS(unsigned long, ulong, 16, 16)
TG_VECTORS(long long, longlong, 16, 16)
TG_VECTORS(unsigned long long, ulonglong, 16, 16)
TG_VECTORS(float, float, 8, 16)
TG_VECTORS(double, double, 16, 16)
#undef TG_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// -- threads -------------------------------------------------------------------------------------

#pragma GCC visibility push(hidden)

// The scheduler sets them whenever it lets a thread go on.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace tg {

// Where in the text something is called; `id` tells two calls in one line apart.
struct Site { int line, id; };

alignas(1024) extern char dynamic_shared[];

void block_barrier(Site site);
int block_count(bool predicate, Site site);  // in how many threads it holds
void warp_barrier(unsigned int mask, Site site);
unsigned int warp_ballot(unsigned int mask, bool predicate, Site site);
unsigned int active_mask(Site site);
// What lane `source` of the warp brought; the bits of any type of up to 8 bytes.
unsigned long long warp_exchange(unsigned int mask, unsigned long long bits, int source, Site site);
int lane();
int block_threads();
[[noreturn]] void trap(Site site);

template <class To, class From> static inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same number of bytes");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

static inline unsigned int full_or(unsigned int mask = 0xffffffffu) { return mask; }

// The lane that a shuffle reads, in segments of `width` lanes. Out of its segment: its own.
enum Shuffle { INDEX, UP, DOWN, XOR };
static inline int source_lane(Shuffle kind, int by, int width) {
  const int own = lane(), first = own & ~(width - 1);
  if (kind == INDEX) return first + (by & (width - 1));
  const int source = kind == UP ? own - by : kind == DOWN ? own + by : own ^ by;
  return source < (kind == UP ? first : 0) || source >= first + width ? own : source;
}

// The types CUDA has shuffles for: others do not compile here either.
#define TG_SHUFFLE(T, BITS)                                                                       \
  static inline T shuffle(Site site, Shuffle kind, unsigned int mask, T value, int by,            \
                          int width = 32) {                                                       \
    const unsigned long long posted = bits_as<BITS>(value);                                       \
    return bits_as<T>((BITS)warp_exchange(mask, posted, source_lane(kind, by, width), site));     \
  }
TG_SHUFFLE(int, unsigned int)
TG_SHUFFLE(unsigned int, unsigned int)
TG_SHUFFLE(float, unsigned int)
TG_SHUFFLE(long, unsigned long)
TG_SHUFFLE(unsigned long, unsigned long)
TG_SHUFFLE(long long, unsigned long long)
TG_SHUFFLE(unsigned long long, unsigned long long)
TG_SHUFFLE(double, unsigned long long)
#undef TG_SHUFFLE

}  // namespace tg
#pragma GCC visibility pop

#define TG_SITE (tg::Site{__LINE__, __COUNTER__})
#define __syncthreads() tg::block_barrier(TG_SITE)
#define __syncthreads_count(p) tg::block_count((p) != 0, TG_SITE)
#define __syncthreads_and(p) (int)(tg::block_count((p) != 0, TG_SITE) == tg::block_threads())
#define __syncthreads_or(p) (int)(tg::block_count((p) != 0, TG_SITE) != 0)
#define __syncwarp(...) tg::warp_barrier(tg::full_or(__VA_ARGS__), TG_SITE)
#define __shfl_sync(...) tg::shuffle(TG_SITE, tg::INDEX, __VA_ARGS__)
#define __shfl_up_sync(...) tg::shuffle(TG_SITE, tg::UP, __VA_ARGS__)
#define __shfl_down_sync(...) tg::shuffle(TG_SITE, tg::DOWN, __VA_ARGS__)
#define __shfl_xor_sync(...) tg::shuffle(TG_SITE, tg::XOR, __VA_ARGS__)
#define __ballot_sync(mask, p) tg::warp_ballot((mask), (p) != 0, TG_SITE)
#define __any_sync(mask, p) (int)(tg::warp_ballot((mask), (p) != 0, TG_SITE) != 0)
#define __all_sync(mask, p) (int)(tg::warp_ballot((mask), (p) == 0, TG_SITE) == 0)
#define __activemask() tg::active_mask(TG_SITE)
#define __trap() tg::trap(TG_SITE)

// Threads take turns and never at the same time: a fence only has to hold the compiler.
static inline void __threadfence() { asm volatile("" ::: "memory"); }
static inline void __threadfence_block() { __threadfence(); }
static inline void __threadfence_system() { __threadfence(); }

#ifndef TG_RUNTIME  // what follows would meet the system's own declarations there

// -- atomics: relaxed and real, so that the thread sanitizer knows them --------------------------

namespace tg {
template <class T, class F> static inline T update(T* address, F next) {
  T old, value;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do value = next(old);
  while (!__atomic_compare_exchange(address, &old, &value, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
  return old;
}
}  // namespace tg

#define TG_ATOMIC(NAME, T, EXPRESSION)                                                            \
  static inline T NAME(T* address, T value) {                                                     \
    return tg::update(address, [=](T old) -> T { return EXPRESSION; });                           \
  }
#define TG_ATOMIC_INTEGERS(NAME, EXPRESSION)                                                      \
  TG_ATOMIC(NAME, int, EXPRESSION)                                                                \
  TG_ATOMIC(NAME, unsigned int, EXPRESSION)                                                       \
  TG_ATOMIC(NAME, unsigned long long, EXPRESSION)
// The overloads are CUDA's: it adds to unsigned long long, but not to long long.
TG_ATOMIC_INTEGERS(atomicAdd, old + value)
TG_ATOMIC(atomicAdd, float, old + value)
TG_ATOMIC(atomicAdd, double, old + value)
TG_ATOMIC(atomicSub, int, old - value)
TG_ATOMIC(atomicSub, unsigned int, old - value)
TG_ATOMIC_INTEGERS(atomicMax, old < value ? value : old)
TG_ATOMIC(atomicMax, long long, old < value ? value : old)
TG_ATOMIC_INTEGERS(atomicMin, value < old ? value : old)
TG_ATOMIC(atomicMin, long long, value < old ? value : old)
TG_ATOMIC_INTEGERS(atomicExch, (void(old), value))
TG_ATOMIC(atomicExch, float, (void(old), value))
TG_ATOMIC_INTEGERS(atomicAnd, old & value)
TG_ATOMIC_INTEGERS(atomicOr, old | value)
TG_ATOMIC_INTEGERS(atomicXor, old ^ value)
TG_ATOMIC(atomicInc, unsigned int, old >= value ? 0u : old + 1u)
TG_ATOMIC(atomicDec, unsigned int, old == 0u || old > value ? value : old - 1u)
#undef TG_ATOMIC_INTEGERS
#undef TG_ATOMIC

#define TG_CAS(T)                                                                                 \
  static inline T atomicCAS(T* address, T compare, T value) {                                     \
    return tg::update(address, [=](T old) -> T { return old == compare ? value : old; });         \
  }
TG_CAS(int)
TG_CAS(unsigned int)
TG_CAS(unsigned long long)
TG_CAS(unsigned short)
#undef TG_CAS

// -- memory --------------------------------------------------------------------------------------

template <class T> static inline T __ldg(const T* address) { return *address; }
template <class T> static inline T __ldca(const T* address) { return *address; }
template <class T> static inline T __ldcg(const T* address) { return *address; }
template <class T> static inline T __ldcs(const T* address) { return *address; }
template <class T> static inline T __ldlu(const T* address) { return *address; }
template <class T> static inline void __stwb(T* address, T value) { *address = value; }
template <class T> static inline void __stwt(T* address, T value) { *address = value; }
template <class T> static inline void __stcg(T* address, T value) { *address = value; }
template <class T> static inline void __stcs(T* address, T value) { *address = value; }
extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;
extern "C" int printf(const char*, ...);

// -- bits ----------------------------------------------------------------------------------------

static inline int __float_as_int(float x) { return tg::bits_as<int>(x); }
static inline float __int_as_float(int x) { return tg::bits_as<float>(x); }
static inline unsigned int __float_as_uint(float x) { return tg::bits_as<unsigned int>(x); }
static inline float __uint_as_float(unsigned int x) { return tg::bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return tg::bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return tg::bits_as<double>(x); }

static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned int __brev(unsigned int x) {
  unsigned int reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
static inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return (unsigned int)((unsigned long long)a * b >> 32);
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}

// -- math ----------------------------------------------------------------------------------------

#define TG_MATH1(NAME)                                                                            \
  extern "C" double NAME(double) noexcept;                                                        \
  extern "C" float NAME##f(float) noexcept;                                                       \
  static inline float NAME(float x) { return NAME##f(x); }
#define TG_MATH2(NAME)                                                                            \
  extern "C" double NAME(double, double) noexcept;                                                \
  extern "C" float NAME##f(float, float) noexcept;                                                \
  static inline float NAME(float x, float y) { return NAME##f(x, y); }
TG_MATH1(acos) TG_MATH1(acosh) TG_MATH1(asin) TG_MATH1(asinh) TG_MATH1(atan) TG_MATH1(atanh)
TG_MATH1(cbrt) TG_MATH1(ceil) TG_MATH1(cos) TG_MATH1(cosh) TG_MATH1(erf) TG_MATH1(erfc)
TG_MATH1(exp) TG_MATH1(exp2) TG_MATH1(exp10) TG_MATH1(expm1) TG_MATH1(fabs) TG_MATH1(floor)
TG_MATH1(lgamma) TG_MATH1(log) TG_MATH1(log10) TG_MATH1(log1p) TG_MATH1(log2) TG_MATH1(logb)
TG_MATH1(nearbyint) TG_MATH1(rint) TG_MATH1(round) TG_MATH1(sin) TG_MATH1(sinh) TG_MATH1(sqrt)
TG_MATH1(tan) TG_MATH1(tanh) TG_MATH1(tgamma) TG_MATH1(trunc)
TG_MATH2(atan2) TG_MATH2(copysign) TG_MATH2(fdim) TG_MATH2(fmax) TG_MATH2(fmin) TG_MATH2(fmod)
TG_MATH2(hypot) TG_MATH2(nextafter) TG_MATH2(pow) TG_MATH2(remainder)
#undef TG_MATH1
#undef TG_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
extern "C" void sincos(double, double*, double*) noexcept;
extern "C" void sincosf(float, float*, float*) noexcept;
static inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }

static inline bool isnan(float x) { return __builtin_isnan(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }

// Rounded like the operator; on the GPU the point is that they never contract.
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// The GPU's fast and rough ones: here they are exact. Macros, as glibc has functions of such names.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf((x), (y))
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }

static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }

#define TG_EXTREMES(T, A, B)                                                                      \
  static inline T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; }                             \
  static inline T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
#define TG_INTEGER_EXTREMES(S, U)                                                                 \
  TG_EXTREMES(S, S, S) TG_EXTREMES(U, U, U) TG_EXTREMES(U, S, U) TG_EXTREMES(U, U, S)
TG_INTEGER_EXTREMES(int, unsigned int)
TG_INTEGER_EXTREMES(long, unsigned long)
TG_INTEGER_EXTREMES(long long, unsigned long long)
#undef TG_INTEGER_EXTREMES
#undef TG_EXTREMES
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }

// -- float16, kept in memory as unsigned short ---------------------------------------------------

static inline float half_to_float(unsigned short half) {
  const unsigned int sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u;
  const unsigned int mantissa = half & 0x3ffu;
  if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
  return __uint_as_float(sign | __float_as_uint((float)mantissa * 0x1p-24f));
}

// To nearest, ties to even; NaN becomes the pattern that the GPU makes of it.
static inline unsigned short half_from_float(float value) {
  const unsigned int bits = __float_as_uint(value), sign = bits >> 16 & 0x8000u;
  const unsigned int magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // A denormal. The last bit of 0.5 is worth 2**-24, as that of a denormal: the sum rounds.
    const float sum = __uint_as_float(magnitude) + 0.5f;
    return (unsigned short)(sign | (__float_as_uint(sum) - 0x3f000000u));
  }
  const unsigned int rounded = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u);
  return (unsigned short)(sign | rounded >> 13);
}

#endif

// -- kernels -------------------------------------------------------------------------------------

namespace tg {

// What shim.py checks an argument against. `kind` is NumPy's letter; V is anything, c raw bytes.
struct Parameter {
  char kind;
  bool pointer, constant;
  unsigned int bytes;  // of the value, or of what the pointer points to; 0 for void
};

template <class T> struct Kind { static constexpr char value = 'V'; };
template <class T> struct Kind<T*> { static constexpr char value = 'u'; };
#define TG_KIND(T, LETTER) template <> struct Kind<T> { static constexpr char value = LETTER; };
TG_KIND(bool, 'b') TG_KIND(char, 'c') TG_KIND(float, 'f') TG_KIND(double, 'f')
TG_KIND(signed char, 'i') TG_KIND(short, 'i') TG_KIND(int, 'i') TG_KIND(long, 'i')
TG_KIND(long long, 'i') TG_KIND(unsigned char, 'u') TG_KIND(unsigned short, 'u')
TG_KIND(unsigned int, 'u') TG_KIND(unsigned long, 'u') TG_KIND(unsigned long long, 'u')
#undef TG_KIND

template <class T> struct Describe {
  static constexpr Parameter value = {Kind<T>::value, false, false, sizeof(T)};
};
template <class T> struct Describe<T*> {
  static constexpr Parameter value = {Kind<T>::value, true, false, sizeof(T)};
};
template <class T> struct Describe<const T*> {
  static constexpr Parameter value = {Kind<T>::value, true, true, sizeof(T)};
};
template <> struct Describe<void*> { static constexpr Parameter value = {'V', true, false, 0}; };
template <> struct Describe<const void*> {
  static constexpr Parameter value = {'V', true, true, 0};
};

template <int... I> struct Indices {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> { typedef Indices<I...> type; };

struct Kernel {
  void (*run)(void** arguments);  // one thread
  char *shared, *shared_end;
  int parameters;
  const Parameter* parameter;
};

template <auto function> struct Signature;
template <class... P, void (*function)(P...)> struct Signature<function> {
  static constexpr int count = sizeof...(P);
  static constexpr Parameter parameters[] = {Describe<P>::value...,
                                             Parameter{}};
  template <int... I> static void call(void** arguments, Indices<I...>) {
    function(*(P*)arguments[I]...);
  }
  static void run(void** arguments) { call(arguments, typename Count<count>::type()); }
};

}  // namespace tg

// shim.py writes one of these per kernel at the end of the text.
#define TG_KERNEL(name)                                                                           \
  extern "C" __attribute__((weak, visibility("hidden"))) char __start_tg_shared_##name[];         \
  extern "C" __attribute__((weak, visibility("hidden"))) char __stop_tg_shared_##name[];          \
  extern "C" __attribute__((visibility("default"))) tg::Kernel tg_kernel_##name;                  \
  tg::Kernel tg_kernel_##name = {tg::Signature<name>::run, __start_tg_shared_##name,              \
                                 __stop_tg_shared_##name, tg::Signature<name>::count,             \
                                 tg::Signature<name>::parameters};
