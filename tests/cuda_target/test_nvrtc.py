"""The tool that compiles CUDA C with NVRTC: it reads logs, reports errors and disassembles."""

import pytest
from cuda_tools import nvrtc
from tgraph.runtime.cuda import nvrtc as runtime_nvrtc

import tgraph as tg


@pytest.fixture(name="needs_nvrtc")
def skip_without_nvrtc():
    # In a fixture, as it imports CuPy, which takes a second.
    if reason := nvrtc.available():
        pytest.skip(reason)


@pytest.fixture(name="needs_disassembler")
def skip_without_disassembler(needs_nvrtc):
    if reason := nvrtc.disassembler_available():
        pytest.skip(reason)


needs_nvrtc = pytest.mark.usefixtures("needs_nvrtc")
needs_disassembler = pytest.mark.usefixtures("needs_disassembler")

KERNELS = """
extern "C" __global__ void copy(const float4* __restrict__ from, float4* __restrict__ to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
extern "C" __global__ void __launch_bounds__(64) reversed(const float* from, float* to) {
  __shared__ float tile[64];
  tile[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = tile[63 - threadIdx.x];
}
"""

# Every element is needed at the end, and 16 registers a thread do not hold them.
SPILLING = """
extern "C" __global__ void greedy(const float* from, float* to) {
  float kept[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) kept[i] = from[i * 32 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 64; ++i) to[i * 32 + threadIdx.x] = kept[i] * kept[63 - i];
}
"""


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_a_cubin_tells_what_its_kernels_use(arch):
    cubin = nvrtc.compile_cubin(KERNELS, arch)
    assert cubin.data.startswith(b"\x7fELF")
    assert cubin.arch == arch
    assert set(cubin.kernels) == {"copy", "reversed"}
    assert cubin.kernels["copy"].shared_bytes == 0
    assert cubin.kernels["reversed"].shared_bytes == 256
    for usage in cubin.kernels.values():
        assert 8 <= usage.registers <= 40
        assert (usage.spill_bytes, usage.stack_bytes) == (0, 0)


@needs_nvrtc
def test_spills_are_told():
    usage = nvrtc.compile_cubin(SPILLING, "sm_90", ["-maxrregcount=24"]).kernels["greedy"]
    assert usage.registers <= 24
    assert usage.spill_bytes > 0
    assert usage.stack_bytes > 0
    assert nvrtc.compile_cubin(SPILLING, "sm_90").kernels["greedy"].spill_bytes == 0


@needs_disassembler
def test_the_disassembly_shows_loads_of_16_bytes():
    code = nvrtc.sass(nvrtc.compile_cubin(KERNELS, "sm_90"))
    assert "LDG.E.128" in code
    assert "STG.E.128" in code
    scalar = KERNELS.replace("float4", "float")
    assert "LDG.E.128" not in nvrtc.sass(nvrtc.compile_cubin(scalar, "sm_90"))


@needs_disassembler
def test_arithmetic_contracts_and_keeps_denormals():
    source = """
    extern "C" __global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; x[4] = x[5] + x[6]; }
    """
    code = nvrtc.sass(nvrtc.compile_cubin(source, "sm_90"))
    assert "FFMA" in code
    assert ".FTZ" not in code
    assert ".FTZ" in nvrtc.sass(nvrtc.compile_cubin(source, "sm_90", ["-ftz=true"]))


@needs_nvrtc
def test_an_error_shows_its_line():
    source = KERNELS.replace("tile[63 - threadIdx.x]", "title[63 - threadIdx.x]")
    with pytest.raises(RuntimeError) as caught:
        nvrtc.compile_cubin(source, "sm_90")
    message = str(caught.value)
    assert 'kernel.cu(10): error: identifier "title" is undefined' in message
    assert ">   10   to[threadIdx.x] = title[63 - threadIdx.x];" in message
    assert "     9   __syncthreads();" in message


@needs_nvrtc
@pytest.mark.parametrize("name", ["INFINITY", "NAN", "M_PI", "uint32_t(1)"])
def test_standard_names_are_unknown(name):
    source = f'extern "C" __global__ void f(double* x) {{ x[0] = {name}; }}'
    with pytest.raises(RuntimeError, match="is undefined"):
        nvrtc.compile_cubin(source, "sm_90")


@needs_nvrtc
def test_an_unknown_architecture_is_an_error():
    with pytest.raises(RuntimeError, match="arch"):
        nvrtc.compile_cubin(KERNELS, "sm_12345")


def test_a_missing_library_is_told(monkeypatch):
    monkeypatch.setattr(runtime_nvrtc, "_bindings", lambda: "CuPy is not here")
    assert nvrtc.available() == "CuPy is not here"
    with pytest.raises(RuntimeError, match=r"CuPy is not here; pip install 'tgraph\[nvrtc\]'"):
        nvrtc.compile_cubin(KERNELS, "sm_90")


@needs_nvrtc
def test_machine_code_is_kept_on_disk(tmp_path, monkeypatch):
    """A second process starts without NVRTC; another text or architecture does not."""
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    program = tg.cuda.program(tg.exp, tg.ones(64))
    code = program.cubin()
    assert code.startswith(b"\x7fELF")
    monkeypatch.setattr(runtime_nvrtc, "_bindings", lambda: "NVRTC was asked")
    assert tg.cuda.program(tg.exp, tg.ones(64)).cubin() == code
    for other in (
        tg.cuda.program(tg.sin, tg.ones(64)),
        tg.cuda.program(tg.exp, tg.ones(64), arch="sm_80"),
    ):
        with pytest.raises(RuntimeError, match="NVRTC was asked"):
            other.cubin()
    (entry,) = tmp_path.glob("*.bin")
    tmp_path.chmod(0o777)  # anyone may have written it
    with (
        pytest.warns(RuntimeWarning, match="others can write it"),
        pytest.raises(RuntimeError, match="NVRTC was asked"),
    ):
        program.cubin()
    tmp_path.chmod(0o700)
    assert program.cubin() == code
    entry.write_bytes(entry.read_bytes()[:-1])  # a damaged entry is made anew
    with pytest.raises(RuntimeError, match="NVRTC was asked"):
        program.cubin()


def test_a_missing_disassembler_is_told(monkeypatch):
    monkeypatch.setattr(nvrtc, "_disassembler", lambda: None)
    reason = nvrtc.disassembler_available()
    assert "nvdisasm" in reason
    with pytest.raises(RuntimeError, match="nvdisasm"):
        nvrtc.sass(nvrtc.Cubin(b"", "sm_90", {}, ""))
