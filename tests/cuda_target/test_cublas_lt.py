"""The cublasLt library: where it is found, and that its names and numbers are those that we use."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cuda_tools import fake_cublas_lt
from tgraph.runtime.cuda import cublas_lt
from tgraph.runtime.cuda.cublas_lt import ComputeType, CublasLtError, Epilogue, Status

pytest_plugins = ["cuda_tools.product_fixtures"]


# -- finding the library -------------------------------------------------------------------------


def test_it_is_found_in_the_wheels(library, monkeypatch, tmp_path):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    path = shutil.copy(library.name, folder / "libcublasLt.so.99")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98", "libcublasLt.so.99"))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    assert cublas_lt._find().name == str(path)


def test_it_is_found_by_the_loader(library, monkeypatch):
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98", library.name))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    monkeypatch.setattr(cublas_lt, "_in_wheels", lambda: None)
    monkeypatch.setattr(cublas_lt, "_loaded", None)
    assert cublas_lt.load().name == library.name
    assert cublas_lt.load() is cublas_lt.load()


def test_pathfinder_comes_first(library, monkeypatch):
    class Pathfinder:
        class DynamicLibNotFoundError(RuntimeError):
            pass

        @staticmethod
        def load_nvidia_dynamic_lib(name):
            assert name == "cublasLt"
            if missing:
                raise Pathfinder.DynamicLibNotFoundError(name)
            return ctypes_library

    class ctypes_library:
        abs_path = library.name

    missing = False
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(cublas_lt.importlib, "import_module", lambda name: Pathfinder)
    monkeypatch.setattr(cublas_lt, "_in_wheels", lambda: pytest.fail("looked further"))
    assert cublas_lt._find().name == library.name
    missing = True
    assert cublas_lt._by_pathfinder() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cublas_lt._by_pathfinder() is None


def test_it_is_not_found(monkeypatch):
    monkeypatch.setattr(cublas_lt, "NAMES", ("libcublasLt.so.98",))
    monkeypatch.setattr(cublas_lt, "_by_pathfinder", lambda: None)
    with pytest.raises(
        RuntimeError, match=r"cublasLt, .*\.98; pip install nvidia-cublas .* brings"
    ):
        cublas_lt._find()


def test_another_library_is_none():
    with pytest.raises(RuntimeError, match=r"is no cublasLt of CUDA 12 or newer: .*cublasLtCreate"):
        cublas_lt.Library("libc.so.6")


# -- the real library, and its headers -----------------------------------------------------------


def _homes():
    """Where CUDA's wheels or a toolkit keep `include`."""
    spec = importlib.util.find_spec("nvidia")
    for home in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(home).glob("*/include"))
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if toolkit:
            yield Path(toolkit, "include")


def test_the_numbers_are_those_of_the_headers(tmp_path):
    folders = [folder for folder in _homes() if folder.is_dir()]
    for header in ("cublasLt.h", "cuda_runtime_api.h"):
        if not any((folder / header).exists() for folder in folders):
            pytest.skip(f"{header} is in no CUDA wheel or toolkit that is installed")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    sizes = {
        "cublasLtMatmulAlgo_t": ctypes.sizeof(cublas_lt.Algorithm),
        "cublasLtMatmulHeuristicResult_t": ctypes.sizeof(cublas_lt.HeuristicResult),
    }
    offsets = {
        "algo": cublas_lt.HeuristicResult.algo.offset,
        "workspaceSize": cublas_lt.HeuristicResult.workspace_bytes.offset,
        "state": cublas_lt.HeuristicResult.state.offset,
    }
    checks = [
        *(f"{name} == {value}" for name, value in fake_cublas_lt.constants()),
        *(f"sizeof({name}) == {value}" for name, value in sizes.items()),
        *(
            f"offsetof(cublasLtMatmulHeuristicResult_t, {name}) == {value}"
            for name, value in offsets.items()
        ),
    ]
    source = tmp_path / "check.cpp"
    lines = "\n".join(f'static_assert({check}, "{check}");' for check in checks)
    source.write_text(f"#include <cublasLt.h>\n#include <cstddef>\n{lines}\n")
    command = [compiler, "-fsyntax-only", *(f"-I{folder}" for folder in folders), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["fake", "real"])
def either(request, monkeypatch):
    if request.param == "fake":
        return request.getfixturevalue("library")
    monkeypatch.setattr(cublas_lt, "_loaded", None)
    try:
        return cublas_lt.load()
    except RuntimeError as error:
        pytest.skip(str(error))


VALUES = {
    "Layout": (("MatrixLayout", (cublas_lt.DataType.R_32F, 5, 6, 7)), [3, 40]),
    "Matmul": (
        ("MatmulDesc", (ComputeType.COMPUTE_32F, cublas_lt.DataType.R_32F)),
        [1, 1, Epilogue.BGRADB, 2**40, 2**41, 256],
    ),
    "Preference": (("MatmulPreference", ()), [2**25, 2, 4, 8, 16, 32]),
}


@pytest.mark.parametrize("name", VALUES)
def test_attributes_are_what_they_were_set_to(either, name):
    (kind, arguments), values = VALUES[name]
    descriptor = getattr(cublas_lt, name)(either, *arguments)
    read = getattr(either.cdll, f"cublasLt{kind}GetAttribute")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    read.argtypes = (pointer, ctypes.c_int, pointer, size, pointer)
    assert len(values) == len(descriptor.types)
    for attribute, value in zip(descriptor.types, values):
        descriptor.set(attribute, value)
    for (attribute, type_), value in zip(descriptor.types.items(), values):
        word, written = type_(), size()
        status = read(
            *(descriptor.pointer, attribute, ctypes.byref(word), ctypes.sizeof(word)),
            ctypes.byref(written),
        )
        assert (status, word.value, written.value) == (0, value, ctypes.sizeof(type_))


def test_attributes_that_do_not_fit_are_refused(either):
    descriptor = cublas_lt.Preference(either)
    attribute = cublas_lt.PreferenceAttribute.MAX_WORKSPACE_BYTES
    descriptor.types = {attribute: ctypes.c_uint16}
    with pytest.raises(CublasLtError, match=r"MAX_WORKSPACE_BYTES 7: .*INVALID_VALUE \(7\)"):
        descriptor.set(attribute, 7)


def test_every_status_has_its_name(either):
    for status in Status:
        name = either.cdll.cublasLtGetStatusName(int(status)).decode()
        assert name == f"CUBLAS_STATUS_{status.name}"
    assert either.version() >= 120000
