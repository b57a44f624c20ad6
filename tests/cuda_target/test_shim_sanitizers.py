"""The sanitizers on the shim: right kernels have no report, planted faults have one."""

import re

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.shim import Launch, LaunchError, Library, run_sanitized
from test_shim import KERNELS, f32, i32, i64

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")


@pytest.fixture(name="needs_sanitizers")
def skip_without_sanitizers():
    try:
        for name in ("libasan.so", "libubsan.so", "libtsan.so"):
            shim._path_of_library(name)
    except RuntimeError as error:
        pytest.skip(str(error))


needs_sanitizers = pytest.mark.usefixtures("needs_sanitizers")


def one(body, out, threads=64, **options):
    source = f'extern "C" __global__ void kernel(float* out, int n) {{\n{body}\n}}'
    return source, [Launch("kernel", 1, threads, (out, i32(out.size)), **options)]


@needs_sanitizers
@pytest.mark.parametrize("kind", [pytest.param("address", marks=pytest.mark.slow), "thread"])
def test_right_kernels_have_no_report(kind):
    values = np.random.default_rng(3).standard_normal((4, 516), f32)
    out = np.zeros_like(values)
    launches = [
        Launch("total", 5, 128, (values, np.zeros(1, f32), i64(values.size))),
        Launch("softmax", 4, 128, (values, out, i32(516)), 16, "backward"),
        Launch("transpose", (17, 1), (32, 8), (values, out, i32(4), i32(516)), 0, "shuffled", 3),
    ]
    assert run_sanitized(KERNELS, launches, kind) == ""


ACCESSES = {
    "behind an array": ("if (threadIdx.x <= n) out[threadIdx.x] = 1;", "heap-buffer-overflow"),
    "behind shared memory": (
        "__shared__ float s[64];\ns[threadIdx.x + 1] = 1;\nout[0] = s[threadIdx.x];",
        "index 64 out of bounds",
    ),
    "behind dynamic shared memory": (
        "extern __shared__ float s[];\nout[threadIdx.x % n] = s[threadIdx.x];",
        "use-after-poison",
    ),
    "misaligned": ("*(float4*)(out + 1) = make_float4(1, 1, 1, 1);", "misaligned address"),
    "behind a local array": (
        "float a[4] = {};\nfor (int i = 0; i <= n; ++i) a[i] += i;\n__syncthreads();\n"
        "out[0] = a[n & 3];",
        "stack-buffer-overflow|insufficient space",
    ),
}


# Each has a process of its own, in which Python starts under the sanitizer: the long form has all.
SHORT = ("behind an array", "behind dynamic shared memory")


@needs_sanitizers
@pytest.mark.parametrize(
    "access",
    [pytest.param(a, marks=() if a in SHORT else pytest.mark.slow) for a in ACCESSES],
)
def test_the_address_sanitizer_finds(access):
    body, message = ACCESSES[access]
    report = run_sanitized(*one(body, np.zeros(50, f32), shared_bytes=32 * 4), "address")
    assert re.search(message, report), report


@needs_sanitizers
def test_the_thread_sanitizer_finds_a_missing_barrier():
    values = np.zeros((32, 32), f32)
    launch = Launch("transpose_unordered", 1, (32, 8), (values, values.copy(), i32(32), i32(32)))
    report = run_sanitized(KERNELS, [launch], "thread")
    assert "data race" in report
    assert "in transpose_unordered" in report


@pytest.mark.slow
@needs_sanitizers
def test_errors_of_a_sanitized_launch_are_raised():
    with pytest.raises(LaunchError, match="32 of the block have finished"):
        body = "if (threadIdx.x < 32) __syncthreads();"
        run_sanitized(*one(body, np.zeros(64, f32)), "address")
    with pytest.raises(RuntimeError, match="takes 2 arguments, not 1"):
        source, (launch,) = one("", np.zeros(64, f32))
        run_sanitized(source, [launch._replace(args=launch.args[:1])], "address")
    with pytest.raises(RuntimeError, match="use run_sanitized"):
        Library(source, sanitize="address")
