"""The tool that runs CUDA C on the CPU: right kernels give right values, wrong ones show."""

import math
import threading

import ml_dtypes
import numpy as np
import pytest
from cuda_tools import host_compiler, nvrtc, shim
from cuda_tools.shim import ORDERS, LaunchError, Library
from tgraph.compiler.targets.cuda.device_library import library_text

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")

i32, i64, f32 = np.int32, np.int64, np.float32

# The kernels of the tests are one text: a library takes a tenth of a second to build.
KERNELS = """
#define INFINITE __int_as_float(0x7f800000)

struct Max { static __device__ float join(float a, float b) { return fmaxf(a, b); } };
struct Sum { static __device__ float join(float a, float b) { return a + b; } };

template <class Join> __device__ __forceinline__ float warp_join(float value) {
  #pragma unroll
  for (int by = 16; by > 0; by /= 2)
    value = Join::join(value, __shfl_xor_sync(0xffffffffu, value, by));
  return value;
}

extern "C" __global__ void total(const float* __restrict__ from, float* to, long long count) {
  __shared__ float parts[32];
  float sum = 0.0f;
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    sum += __ldg(from + i);
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = warp_join<Sum>(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) atomicAdd(to, sum);
}

extern "C" __global__ void __launch_bounds__(256) softmax(const float4* __restrict__ from,
                                                          float* __restrict__ to, int columns) {
  extern __shared__ __align__(16) float buffer[];
  const float4* row = from + (size_t)blockIdx.x * (columns / 4);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  float most = -INFINITE, sum = 0.0f;
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x)
    most = max(most, max(max(row[i].x, row[i].y), max(row[i].z, row[i].w)));
  most = warp_join<Max>(most);
  if (lane == 0) buffer[warp] = most;
  __syncthreads();
  most = warp_join<Max>(lane < warps ? buffer[lane] : -INFINITE);
  __syncthreads();
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x)
    sum += expf(row[i].x - most) + expf(row[i].y - most) + __expf(row[i].z - most)
         + __expf(row[i].w - most);
  sum = warp_join<Sum>(sum);
  if (lane == 0) buffer[warp] = sum;
  __syncthreads();
  sum = warp_join<Sum>(lane < warps ? buffer[lane] : 0.0f);
  float4* out = reinterpret_cast<float4*>(to) + (size_t)blockIdx.x * (columns / 4);
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x)
    out[i] = make_float4(expf(row[i].x - most) / sum, expf(row[i].y - most) / sum,
                         expf(row[i].z - most) / sum, expf(row[i].w - most) / sum);
}
"""


def transpose(name, barrier="__syncthreads();"):
    return """
extern "C" __global__ void NAME(const float* __restrict__ from, float* __restrict__ to, int rows,
                                int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows)
      tile[threadIdx.y + j][threadIdx.x] = from[(size_t)(y + j) * columns + x];
  BARRIER
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns)
      to[(size_t)(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
""".replace("NAME", name).replace("BARRIER", barrier)


KERNELS += transpose("transpose") + transpose("transpose_unordered", "")


@pytest.fixture(name="needs_nvrtc")
def skip_without_nvrtc():
    if reason := nvrtc.available():
        pytest.skip(reason)


@pytest.fixture(scope="module", name="library")
def build_library():
    return Library(KERNELS)


orders = pytest.mark.parametrize("order", ORDERS)


def run(body, out, threads=64, *args, parameters="", **options):
    """A kernel of one block that fills `out`; in its body, `i` is the thread."""
    source = kernel(body, _pointer(out), parameters)
    Library(source).launch("kernel", 1, threads, (out, *args), **options)
    return out


def kernel(body, pointer, parameters=""):
    return (
        f'extern "C" __global__ void kernel({pointer} out{parameters}) {{\n'
        f"  const int i = threadIdx.x;\n{body}\n}}\n"
    )


def _pointer(out):
    names = {"float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned int"}
    names |= {"int64": "long long", "uint64": "unsigned long long", "uint16": "unsigned short"}
    return f"{names[out.dtype.name]}*"


# -- right kernels -------------------------------------------------------------------------------


def test_the_kernels_and_their_parameters_are_read(library):
    assert library.names == ("total", "softmax", "transpose", "transpose_unordered")
    first, second, third = library.parameters("total")
    assert (first.kind, first.pointer, first.constant, first.bytes) == ("f", True, True, 4)
    assert (second.kind, second.pointer, second.constant, second.bytes) == ("f", True, False, 4)
    assert (third.kind, third.pointer, third.bytes) == ("i", False, 8)
    shared = {name: library.shared_bytes(name) for name in library.names}
    tile = 32 * 33 * 4
    assert shared == {"total": 128, "softmax": 0, "transpose": tile, "transpose_unordered": tile}


@orders
def test_block_reduction(library, order):
    values = np.random.default_rng(0).random(20_000, f32)
    out = np.zeros(1, f32)
    library.launch("total", 7, 256, (values, out, i64(values.size)), order=order, seed=1)
    np.testing.assert_allclose(out[0], values.sum(dtype=np.float64), rtol=1e-5)


@orders
def test_softmax_in_dynamic_shared_memory(library, order):
    values = np.random.default_rng(1).standard_normal((5, 516), f32)
    out = np.zeros_like(values)
    args = (values, out, i32(516))
    library.launch("softmax", 5, 128, args, shared_bytes=4 * 4, order=order, seed=2)
    powers = np.exp(values - values.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def transposed(library, name, order, seed=0):
    values = np.random.default_rng(2).random((70, 45), f32)
    out = np.zeros((45, 70), f32)
    args = (values, out, i32(70), i32(45))
    library.launch(name, (2, 3), (32, 8), args, order=order, seed=seed)
    return np.array_equal(out, values.T)


@orders
def test_tiled_transpose(library, order):
    assert transposed(library, "transpose", order)


def test_the_seed_chooses_a_shuffled_order():
    def places(seed):
        # When each thread came; shared memory is full of ones, so the first gets -1.
        body = "__shared__ int next;\nout[i] = atomicAdd(&next, 1);"
        return run(body, np.zeros(96, i32), 96, order="shuffled", seed=seed).tolist()

    assert places(1) == places(1)
    assert len({tuple(places(seed)) for seed in range(5)}) == 5
    assert sorted(places(1)) == list(range(-1, 95))


@orders
def test_every_thread_of_every_block_runs_once(order):
    source = """
    extern "C" __global__ void kernel(int* out) {
      int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      out[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
    }"""
    out = np.zeros(2 * 3 * 5 * 4 * 3 * 7, i32)
    Library(source).launch("kernel", (2, 3, 5), (4, 3, 7), (out,), order=order, seed=3)
    assert (out == 1).all()


SHUFFLES = """
const int lane = i % 32;
out[i] = __shfl_sync(0xffffffffu, i, 3);
out[64 + i] = __shfl_up_sync(0xffffffffu, i, 2, 8);
out[128 + i] = __shfl_down_sync(0xffffffffu, i, 2, 8);
out[192 + i] = __shfl_xor_sync(0xffffffffu, i, 5);
out[256 + i] = (int)__shfl_sync(0xffffffffu, 1.5 * i, lane + 1, 16);
if (lane < 8) out[320 + i] = __shfl_xor_sync(0xffu, i, 7);
"""


@orders
def test_shuffles(order):
    out = run(SHUFFLES, np.zeros(6 * 64, i32), order=order, seed=4).reshape(6, 64)
    i = np.arange(64)
    lane, eighth, half = i % 32, i % 8, i // 16 * 16
    np.testing.assert_array_equal(out[0], i // 32 * 32 + 3)
    np.testing.assert_array_equal(out[1], np.where(eighth >= 2, i - 2, i))
    np.testing.assert_array_equal(out[2], np.where(eighth < 6, i + 2, i))
    np.testing.assert_array_equal(out[3], i ^ 5)
    np.testing.assert_array_equal(out[4], (1.5 * (half + (lane + 1) % 16)).astype(int))
    np.testing.assert_array_equal(out[5], np.where(lane < 8, i ^ 7, 0))


VOTES = """
const unsigned int all = 0xffffffffu;
out[i] = __ballot_sync(all, i % 3 == 0);
out[64 + i] = __any_sync(all, i == 40) + 2 * __all_sync(all, i < 40);
out[128 + i] = __syncthreads_count(i % 5 == 0);
out[192 + i] = __syncthreads_or(i == 9) + 2 * __syncthreads_and(i != 9);
out[256 + i] = 7;
if (i % 4 != 0) out[256 + i] = __activemask();
"""


@orders
def test_votes(order):
    out = run(VOTES, np.zeros(5 * 64, np.uint32), order=order, seed=5).reshape(5, 64)
    thirds = [
        sum(1 << lane for lane in range(32) if (lane + 32 * warp) % 3 == 0) for warp in (0, 1)
    ]
    np.testing.assert_array_equal(out[0], np.repeat(thirds, 32))
    np.testing.assert_array_equal(out[1], np.repeat([2, 1], 32))
    assert (out[2] == 13).all()
    assert (out[3] == 1).all()
    np.testing.assert_array_equal(out[4], np.where(np.arange(64) % 4, 0xEEEEEEEE, 7))


ATOMICS = """
extern "C" __global__ void kernel(int* a, unsigned int* b, unsigned long long* c, long long* d,
                                  float* e, double* f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(a, i); atomicMax(a + 1, i - 50); atomicMin(a + 2, i - 50); atomicOr(a + 3, i);
  atomicAdd(b, 2u); atomicXor(b + 1, i); atomicInc(b + 2, 9u);
  atomicAdd(c, 1ULL << 40); atomicMax(c + 1, (unsigned long long)i);
  atomicMax(d, (long long)i << 40); atomicMin(d + 1, -(long long)i);
  atomicAdd(e, 0.5f); atomicExch(e + 1, 3.0f); atomicAdd(f, 0.25);
  unsigned long long seen = c[2], expected;
  do {
    expected = seen;
    seen = atomicCAS(c + 2, expected, expected + i);
  } while (seen != expected);
}"""


@orders
def test_atomics(order):
    a, b, c = np.zeros(4, i32), np.zeros(3, np.uint32), np.zeros(3, np.uint64)
    d, e, f = np.zeros(2, i64), np.zeros(2, f32), np.zeros(1)
    Library(ATOMICS).launch("kernel", 3, 40, (a, b, c, d, e, f), order=order, seed=6)
    assert a.tolist() == [7140, 69, -50, 127]
    assert b.tolist() == [240, 0, 0]
    assert c.tolist() == [120 << 40, 119, 7140]
    assert d.tolist() == [119 << 40, -119]
    assert (e.tolist(), f.tolist()) == ([60.0, 3.0], [30.0])


MATH = """
const float x = 0.3f;
out[0] = expf(x); out[1] = erff(x); out[2] = powf(x, 1.5f); out[3] = exp10(x); out[4] = exp(x);
out[5] = rsqrtf(x); out[6] = __fmaf_rn(x, x, 1.0f); out[7] = max(x, 0.5f); out[8] = abs(-x);
out[9] = __expf(x); out[10] = atan2f(x, 2.0f); out[11] = lgammaf(x); out[12] = tanh(0.3);
out[13] = __saturatef(2.0f); out[14] = isnan(__int_as_float(0x7fc00000));
out[15] = fmod(5.5f, 2.0f);
"""


def test_math():
    x = 0.3
    want = [
        *(math.exp(x), math.erf(x), x**1.5, 10**x, math.exp(x), x**-0.5, x * x + 1, 0.5, x),
        *(math.exp(x), math.atan2(x, 2), math.lgamma(x), math.tanh(x), 1.0, 1.0, 1.5),
    ]
    np.testing.assert_allclose(run(MATH, np.zeros(16, f32), 1), want, rtol=1e-6)


BITS = """
out[0] = __umulhi(0x80000000u, 6u); out[1] = __mulhi(-5, 0x40000000);
out[2] = (int)__umul64hi(1ULL << 63, 6ULL); out[3] = __popc(0xf0f0u); out[4] = __clz(1);
out[5] = __clz(0); out[6] = __ffs(8); out[7] = __float_as_int(1.0f);
out[8] = (int)(__double_as_longlong(1.0) >> 52); out[9] = (int)__brev(0x80000000u);
out[10] = (int)__float_as_uint(-0.0f); out[11] = min(-1, 2); out[12] = (int)max(3u, 5u);
out[13] = (int)__longlong_as_double(0x4000000000000000LL);
"""


def test_bits():
    want = [3, -2, 3, 8, 31, 32, 4, 0x3F800000, 1023, 1, -(2**31), -1, 5, 2]
    assert run(BITS, np.zeros(14, i32), 1).tolist() == want


def test_every_half_as_a_float():
    patterns = np.arange(65536, dtype=np.uint16)
    body = "for (int n = i; n < 65536; n += 64) out[n] = half_to_float(from[n]);"
    out = run(body, np.zeros(65536, f32), 64, patterns, parameters=", const unsigned short* from")
    want = patterns.view(np.float16).astype(f32)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(out.view(np.uint32)[number], want.view(np.uint32)[number])
    assert np.isnan(out[~number]).all()


def test_floats_as_halves():
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(f32)
    halves = halves[np.isfinite(halves)]
    # Each half, the middle between it and the next, and the floats beside both.
    middles = (np.sort(halves)[1:] + np.sort(halves)[:-1]) / 2
    exact = np.concatenate([halves, middles, f32([65520, 1e38, 1e-40, -1e-45])])
    extremes = f32([math.inf, -math.inf, math.nan])
    values = np.concatenate([exact, np.nextafter(exact, f32(9e9)), -exact, extremes])
    values = np.concatenate([values, np.nextafter(exact, f32(-9e9))]).astype(f32)
    body = "for (int n = i; n < count; n += 64) out[n] = half_from_float(from[n]);"
    parameters = ", const float* from, int count"
    out = np.zeros(values.size, np.uint16)
    run(body, out, 64, values, i32(values.size), parameters=parameters)
    with np.errstate(over="ignore"):
        want = values.astype(np.float16)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(out[number], want.view(np.uint16)[number])
    assert np.isnan(out.view(np.float16)[~number]).all()


def test_scalars_keep_their_bytes():
    body = (
        "out[0] = a; out[1] = b; out[2] = c ? 1 : 0; out[3] = d.x + d.y; out[4] = half_to_float(e);"
    )
    parameters = ", signed char a, double b, bool c, int2 d, unsigned short e"
    pair = np.array((5, 6), dtype="i4,i4")[()]
    scalars = (np.int8(-7), np.float64(1e300), np.bool_(True), pair, np.float16(1.5))
    out = run(body, np.zeros(5), 1, *scalars, parameters=parameters)
    assert out.tolist() == [-7, 1e300, 1, 11, 1.5]


# -- wrong kernels -------------------------------------------------------------------------------


def test_a_missing_barrier_gives_a_wrong_result_in_every_order(library):
    assert [transposed(library, "transpose_unordered", order) for order in ORDERS] == [False] * 3


def test_shared_memory_is_nan_when_a_block_begins():
    source = """
    extern "C" __global__ void kernel(float* a, double* b, int* c) {
      __shared__ float fixed[32];
      extern __shared__ double sized[];
      a[blockIdx.x * 32 + threadIdx.x] = fixed[threadIdx.x];
      b[blockIdx.x * 32 + threadIdx.x] = sized[threadIdx.x];
      fixed[threadIdx.x] = 1.0f;
      sized[threadIdx.x] = 1.0;
      c[blockIdx.x * 32 + threadIdx.x] = fixed[threadIdx.x] == sized[threadIdx.x];
    }"""
    a, b, c = np.zeros(96, f32), np.zeros(96), np.zeros(96, i32)
    Library(source).launch("kernel", 3, 32, (a, b, c), shared_bytes=32 * 8)
    assert np.isnan(a).all()
    assert np.isnan(b).all()
    assert (c == 1).all()


FAULTS = {
    "divergent barrier": (
        "if (i < 40) {\n __syncthreads();\n } else {\n __syncthreads();\n }",
        r"thread \(40, 0, 0\): divergent __syncthreads\(\).* at line 4\n  line 6: __syncthreads",
    ),
    "two barriers in one line": (
        "if (i < 40) __syncthreads(); else __syncthreads();",
        r"divergent __syncthreads\(\)",
    ),
    "early exit": (
        "if (i >= 50) return;\n__syncthreads();",
        r"reached by 50 threads, but 14 of the block have finished\n  line 4: __syncthreads\(\);",
    ),
    "shuffle of half a warp": (
        "if (i < 16) out[i] = __shfl_down_sync(0xffffffffu, 1.0f, 1);",
        r"mask 0xffffffff waits for lanes 0xffff0000.*\n  line 3: if \(i < 16\)",
    ),
    "vote across places": (
        "if (i % 2) __any_sync(0xffffffffu, 1);\nelse __any_sync(0xffffffffu, 1);",
        r"mask 0xffffffff waits for lanes 0x(5|a){8}",
    ),
    "warp waits for the block": (
        "if (i == 0) __syncwarp();\nelse __syncthreads();",
        r"mask 0xffffffff waits for lanes 0xfffffffe",
    ),
    "mask without oneself": ("__syncwarp(0xfffeu);", r"lane 0 is not in the mask 0x0000fffe"),
    "mask without the source": (
        "if (i < 8) out[i] = __shfl_sync(0xffu, 1.0f, 9);",
        r"reads lane 9, which is not in the mask 0x000000ff",
    ),
    "trap": ("if (i == 3) __trap();", r"kernel, block \(0, 0, 0\), thread \(3, 0, 0\): __trap"),
    "write behind": (
        "extern __shared__ float s[];\ns[i] = 1;",
        r"wrote behind its 252 bytes of dynamic",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_launch_errors(fault):
    body, message = FAULTS[fault]
    with pytest.raises(LaunchError, match=message):
        run(body, np.zeros(64, f32), shared_bytes=63 * 4)


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_a_library_works_after_a_fault(order):
    source = """
    extern "C" __global__ void kernel(int* out, int fault) {
      __shared__ int sum;
      if (threadIdx.x == 0) sum = 0;
      __syncthreads();
      if (fault && threadIdx.x == 5) return;
      atomicAdd(&sum, 1);
      __syncthreads();
      out[threadIdx.x] = sum;
    }"""
    library, out = Library(source), np.zeros(100, i32)
    with pytest.raises(LaunchError, match="1 of the block have finished"):
        library.launch("kernel", 2, 100, (out, i32(1)), order=order)
    library.launch("kernel", 2, 100, (out, i32(0)), order=order)
    assert (out == 100).all()


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "block"),
        (1, (32, 33), "1056 threads in a block of at most 1024"),
        (1, (1, 1, 65), "block"),
        (1, 0, "block"),
        (0, 32, "grid"),
        ((1, 65536), 32, "grid"),
        ((1, 1, 1, 1), 32, "grid"),
    ],
)
def test_sizes_that_no_gpu_takes(library, grid, block, message):
    args = (np.zeros(1, f32), np.zeros(1, f32), i64(0))
    with pytest.raises(LaunchError, match=message):
        library.launch("total", grid, block, args)


def test_launch_bounds_hold(library):
    args = (np.zeros(512, f32), np.zeros(512, f32), i32(512))
    with pytest.raises(LaunchError, match="512 threads in a block of at most 256"):
        library.launch("softmax", 1, 512, args, shared_bytes=64)


def test_shared_memory_has_an_end(library):
    args = (np.zeros(1, f32), np.zeros(1, f32), i64(1))
    library.launch("total", 1, 32, args, shared_bytes=227 * 1024 - 128)
    with pytest.raises(LaunchError, match="128 bytes of static and 232321 of dynamic"):
        library.launch("total", 1, 32, args, shared_bytes=227 * 1024 - 127)
    with pytest.raises(LaunchError, match="52000 bytes of static"):
        run("__shared__ float s[13000];\ns[i] = 1;\nout[i] = s[i];", np.zeros(64, f32))


ARRAY = np.zeros(4, f32)
FROZEN = np.zeros(4, f32)
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((ARRAY, ARRAY), "takes 3 arguments, not 2"),
        ((ARRAY, ARRAY, i64(4), i64(4)), "takes 3 arguments, not 4"),
        ((ARRAY, ARRAY, 4), "argument 2 is int64: it takes a NumPy scalar, not 4"),
        ((ARRAY, ARRAY, 4.0), "takes a NumPy scalar"),
        ((ARRAY, ARRAY, True), "takes a NumPy scalar"),
        ((ARRAY, ARRAY, i32(4)), "argument 2 is int64, not int32"),
        ((ARRAY, ARRAY, np.float64(4)), "argument 2 is int64, not float64"),
        ((ARRAY, ARRAY, np.uint64(4)), "argument 2 is int64, not uint64"),
        ((ARRAY, ARRAY, ARRAY), "takes a NumPy scalar"),
        ((ARRAY, f32(1), i64(4)), "argument 1 is a pointer to float32: it takes an array"),
        (([1.0], ARRAY, i64(4)), "argument 0 is a pointer to float32: it takes an array"),
        ((ARRAY.astype(float), ARRAY, i64(4)), "argument 0 is a pointer to float32, not float64"),
        ((ARRAY.astype(i32), ARRAY, i64(4)), "argument 0 is a pointer to float32, not int32"),
        ((ARRAY, FROZEN, i64(4)), "argument 1 is not const, but its array is read-only"),
    ],
)
def test_arguments_that_do_not_fit(library, args, message):
    with pytest.raises(TypeError, match=message):
        library.launch("total", 1, 32, args)


def test_what_pointers_take():
    source = """
    struct Pack { float at[2]; };
    extern "C" __global__ void kernel(unsigned short* a, const unsigned char* b, Pack* c, void* d,
                                      char* e, float** f) {}
    """
    half, brain = np.zeros(2, np.float16), np.zeros(2, ml_dtypes.bfloat16)
    flags, addresses = np.zeros(2, bool), np.zeros(1, np.uint64)
    library = Library(source)
    library.launch("kernel", 1, 1, (half, flags, ARRAY, ARRAY, ARRAY, addresses))
    library.launch("kernel", 1, 1, (brain, np.zeros(1, np.uint8), brain, flags, half, addresses))
    with pytest.raises(TypeError, match="argument 0 is a pointer to uint16, not int16"):
        library.launch("kernel", 1, 1, (half.view(np.int16), flags, ARRAY, ARRAY, ARRAY, addresses))


# -- texts ---------------------------------------------------------------------------------------


def test_texts_that_are_refused():
    kernel = 'extern "C" __global__ void kernel(float* x) { x[0] = 1; }'
    with pytest.raises(ValueError, match="line 2: generated CUDA C has no #include"):
        Library(f"\n  # include <math.h>\n{kernel}")
    with pytest.raises(ValueError, match="line 3: __shared__ stands in kernels only"):
        Library(f"{kernel}\n__device__ void f() {{\n  __shared__ int s[3];\n}}")
    with pytest.raises(ValueError, match="no kernel found"):
        Library(f"/* {kernel} */ void f() {{}}")
    with pytest.raises(ValueError, match="no kernel 'karnel'; there are kernel"):
        Library(kernel).launch("karnel", 1, 1, ())


def test_comments_are_no_text():
    source = """
    // #include <x>, __shared__ and a { that nothing closes
    extern "C" __global__ void kernel(float* x);
    extern "C" __global__ void
    __launch_bounds__(32, 2) kernel(float* x /* a ) here */) {
      // }
      x[0] = 1; /* "
      }
      */
    }"""
    library, out = Library(source), np.zeros(1, f32)
    library.launch("kernel", 1, 32, (out,))
    assert out[0] == 1
    with pytest.raises(LaunchError, match="at most 32"):
        library.launch("kernel", 1, 33, (out,))


def test_a_kernel_may_have_the_name_of_a_function_of_the_system():
    source = 'extern "C" __global__ void index(float* x) { x[threadIdx.x] = 5; }'
    out = np.zeros(3, f32)
    Library(source).launch("index", 1, 3, (out,))
    assert (out == 5).all()


def test_a_text_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setattr(host_compiler, "cache_folder", lambda: tmp_path)
    host_compiler._in_front.cache_clear()
    source = 'extern "C" __global__ void kernel(float* x) { x[0] = 6; }'
    threads = [threading.Thread(target=Library, args=(source,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The library, where it is, and what all libraries share; nothing half-built stays.
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".entry", ".ii", ".o", ".so"]
    monkeypatch.setattr(
        host_compiler.subprocess, "run", lambda *a, **k: pytest.fail("compiled again")
    )
    out = np.zeros(1, f32)
    Library(source).launch("kernel", 1, 1, (out,))
    assert out[0] == 6


def test_texts_that_wait_are_compiled_together(monkeypatch, tmp_path):
    """With kernels of the same name, and one that reads what it takes from the text until then."""
    monkeypatch.setattr(host_compiler, "cache_folder", lambda: tmp_path)
    host_compiler._in_front.cache_clear()
    front = library_text()
    texts = [
        f'{front}extern "C" __global__ void kernel(float* x) {{ x[0] = tg_maximum(x[0], {n}.5f); }}'
        for n in range(3)
    ]
    waiting = [Library(text, later=True) for text in texts]
    assert not list(tmp_path.iterdir())
    assert waiting[0].parameters("kernel") == (shim.Parameter("f", True, False, 4),)
    for n in (2, 0, 1):
        out = np.zeros(1, f32)
        waiting[n].launch("kernel", 1, 1, (out,))
        assert out[0] == n + 0.5
    assert len(list(tmp_path.glob("*.so"))) == 1


def test_a_text_that_is_refused_does_not_keep_others_from_running(tmp_path, monkeypatch):
    monkeypatch.setattr(host_compiler, "cache_folder", lambda: tmp_path)
    host_compiler._in_front.cache_clear()
    good, bad = (
        Library(
            f'{library_text()}extern "C" __global__ void kernel(int* x) {{ x[0] = {value}; }}',
            later=True,
        )
        for value in ("3", "three")
    )
    out = np.zeros(1, i32)
    good.launch("kernel", 1, 1, (out,))
    assert out[0] == 3
    with pytest.raises(RuntimeError, match=r"kernel\.cu:\d+:.*error: .*three"):
        bad.launch("kernel", 1, 1, (out,))


def test_only_what_a_text_uses_is_in_front_of_it():
    kernel = 'extern "C" __global__ void kernel(float* x) {}'
    known = host_compiler._in_front(shim._translate(f"{library_text()}{kernel}")[0].front)
    used = host_compiler.needed(known, "x = atomicAdd(p, 1);")
    assert "atomicAdd" in used and "update" in used
    assert "atomicSub" not in used and "tg_scan" not in used
    everything = " ".join(word for each in known for word in each.declares)
    assert len(host_compiler.needed(known, everything)) > 4 * len(used)


# Statements, and whether both compilers take them.
STATEMENTS = {
    "atomicAdd((long long*)out, 1LL);": False,
    "atomicMax(out, 1.0f);": False,
    "out[i] = __shfl_sync(0xffffffffu, make_float2(1.0f, 2.0f), 0).x;": False,
    "out[i] = INFINITY;": False,
    "out[i] = NAN;": False,
    "out[i] = M_PI;": False,
    "out[i] = FLT_MAX;": False,
    "out[i] = (float)uint32_t(1);": False,
    "out[i] = std::sqrt(2.0f);": False,
    "bool b = __shfl_xor_sync(0xffffffffu, i > 3, 1); out[i] = b;": True,
    "size_t n = 5; out[i] = n + warpSize;": True,
    "dim3 d = blockIdx; out[i] = d.x + max(1u, 2);": True,
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_on_the_cpu(statement):
    if STATEMENTS[statement]:
        run(statement, np.zeros(64, f32))
    else:
        with pytest.raises(RuntimeError, match=r"kernel\.cu:3:.*error: "):
            run(statement, np.zeros(64, f32))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_under_nvrtc(needs_nvrtc, statement):
    source = kernel(statement, "float*")
    if STATEMENTS[statement]:
        nvrtc.compile_cubin(source, "sm_90")
    else:
        with pytest.raises(RuntimeError, match=r"kernel\.cu\(3\): error: "):
            nvrtc.compile_cubin(source, "sm_90")


TEXTS = {
    "kernels": KERNELS,
    "shuffles": kernel(SHUFFLES, "int*"),
    "votes": kernel(VOTES, "unsigned int*"),
    "math": kernel(MATH, "float*"),
    "bits": kernel(BITS, "int*"),
    "atomics": ATOMICS,
}


@pytest.mark.parametrize("text", TEXTS)
def test_nvrtc_takes_what_runs_here(needs_nvrtc, text):
    assert nvrtc.compile_cubin(TEXTS[text], "sm_75").kernels
