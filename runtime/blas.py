"""Matrix products of BLAS as plain function pointers, and OpenBLAS's number of threads.

Compiled plans call ``sgemm`` and ``dgemm`` of the OpenBLAS in SciPy's wheel, loaded by itself:
importing ``scipy.linalg`` would take 0.2 s. Where there is none, the pointers come from
``scipy.linalg.cython_blas``, whichever BLAS SciPy was built with.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import threading
from pathlib import Path
from typing import Any, NamedTuple

from . import jit


class Blas(NamedTuple):
    """Addresses of Fortran functions with 32-bit or, equally well, 64-bit integers.

    `set_threads` is ``void f(int)``, with which plans run OpenBLAS on one thread while they split
    products over their own; 0 where the BLAS cannot be told, and then does its own threading.
    """

    name: str
    sgemm: int
    dgemm: int
    set_threads: int

    def gemm(self, dtype: str) -> int:
        """The address for 'float32' or 'float64'."""
        return {"float32": self.sgemm, "float64": self.dgemm}[dtype]


_lock = threading.RLock()
_loaded: Blas | None = None


def load() -> Blas:
    """The BLAS that compiled code calls (loaded once)."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                library = _scipys_openblas()
                _loaded = _of_scipy_linalg() if library is None else library.blas()
    return _loaded


class OpenBLAS:
    """An OpenBLAS library in this process; the names of its functions differ between builds."""

    def __init__(self, library: ctypes.CDLL, prefix: str, suffix: str) -> None:
        self._library = library
        self._prefix = prefix
        self._suffix = suffix

    def set_num_threads(self, count: int) -> None:
        """Let it use `count` threads."""
        self._function("set_num_threads")(count)

    def get_num_threads(self) -> int:
        """The number of threads it uses."""
        return int(self._function("get_num_threads")())

    def core(self) -> str:
        """The processor whose kernels it chose, such as 'Haswell' or 'SkylakeX'."""
        function = self._function("get_corename")
        function.restype = ctypes.c_char_p
        return str(function().decode())

    def blas(self) -> Blas:
        """Its functions as addresses."""
        return Blas(
            f"OpenBLAS ({self.core()})",
            _address(getattr(self._library, f"{self._prefix}sgemm_{self._suffix}")),
            _address(getattr(self._library, f"{self._prefix}dgemm_{self._suffix}")),
            _address(self._function("set_num_threads")),
        )

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"{self._prefix}openblas_{name}{self._suffix}")


_by_path: dict[str, OpenBLAS | None] = {}


def openblas_libraries() -> list[OpenBLAS]:
    """The OpenBLAS libraries that this process has loaded: NumPy's, SciPy's, others."""
    for path in _loaded_paths():
        if path not in _by_path:
            _by_path[path] = _openblas(path)
    return [library for library in _by_path.values() if library is not None]


def _openblas(path: str) -> OpenBLAS | None:
    """The library at `path`, loaded if it is not; None if it cannot be or is not OpenBLAS."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("", "64_", "_64"):
            if hasattr(library, f"{prefix}openblas_set_num_threads{suffix}"):
                return OpenBLAS(library, prefix, suffix)
    return None


def _loaded_paths() -> set[str]:
    maps = Path("/proc/self/maps")
    if maps.exists():
        return set(re.findall(r" (/\S*blas\S*\.so\S*)$", maps.read_text(), re.MULTILINE))
    bundled = _bundled("numpy") + _bundled("scipy")
    return {str(path) for path in bundled if _is_loaded(path)}


def _bundled(package: str) -> list[Path]:
    """OpenBLAS in the wheel of `package`, which need not be imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return []
    home = Path(spec.origin).parent
    return [
        *sorted(home.parent.glob(f"{package}.libs/*openblas*")),
        *sorted(home.glob(".dylibs/*openblas*")),
    ]


def _is_loaded(path: Path) -> bool:
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def _scipys_openblas() -> OpenBLAS | None:
    if os.name != "posix":
        return None
    for path in _bundled("scipy"):
        if _is_loaded(path) or not _needs_a_hint():
            library = _openblas(str(path))
        else:
            library = _with_coretype("SKYLAKEX", path)
        if library is not None:
            return library
    return None


def _needs_a_hint() -> bool:
    """Whether OpenBLAS takes an AVX-512 processor that it does not know for a smaller one.

    On a Zen 5 that doubles the time of a product. It looks once, when it is loaded, hence
    NumPy's copy shows what SciPy's would choose.
    """
    if "OPENBLAS_CORETYPE" in os.environ:
        return False
    if not jit.host_has("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"):
        return False
    return any(library.core() in ("Haswell", "Zen") for library in openblas_libraries())


def _with_coretype(core: str, path: Path) -> OpenBLAS | None:
    os.environ["OPENBLAS_CORETYPE"] = core
    try:
        return _openblas(str(path))
    finally:
        del os.environ["OPENBLAS_CORETYPE"]


def _of_scipy_linalg() -> Blas:
    import scipy.linalg.cython_blas as functions

    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

    def pointer(name: str) -> int:
        capsule = functions.__pyx_capi__[name]
        return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))

    return Blas("SciPy's BLAS", pointer("sgemm"), pointer("dgemm"), 0)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
