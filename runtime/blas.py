"""Products of BLAS with vectors as plain function pointers, and OpenBLAS's number of threads.

Compiled plans call ``sgemv`` and ``dgemv`` of the OpenBLAS that NumPy's wheel brings and has
loaded, else of SciPy's wheel. Where neither has one the pointers come from
``scipy.linalg.cython_blas``, whichever BLAS SciPy was built with (its import takes 0.2 s).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from . import interrupts, locks
from .records import NamedTuple

_NAMES = ("sgemv", "dgemv")


class Blas(NamedTuple):
    """Addresses of Fortran functions, whose integers have 32 or 64 bits: pass 64-bit words.

    ``int get_threads()`` and ``void set_threads(int)`` let plans run OpenBLAS on one thread while
    they split products over their own. They are 0 for another BLAS, which does its own threading.
    """

    name: str
    sgemv: int
    dgemv: int
    get_threads: int
    set_threads: int

    def gemv(self, dtype: str) -> int:
        """Address of the matrix-vector product for 'float32' or 'float64'."""
        return {"float32": self.sgemv, "float64": self.dgemv}[dtype]


_loaded: Blas | None = None


def load() -> Blas:
    """The BLAS that compiled plans call (looked for once)."""
    global _loaded
    if _loaded is None:
        with locks.RUNTIME:
            if _loaded is None:
                library = bundled_openblas()
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
            name=f"OpenBLAS ({self.core()})",
            **{name: self.fortran(name) for name in _NAMES},
            get_threads=_address(self._function("get_num_threads")),
            set_threads=_address(self._function("set_num_threads")),
        )

    def fortran(self, name: str) -> int:
        """The address of a function of BLAS or LAPACK; 0 where the library has none."""
        function = getattr(self._library, f"{self._prefix}{name}_{self._suffix}", None)
        return 0 if function is None else _address(function)

    @property
    def integer_bytes(self) -> int:
        """The size of integers of its Fortran functions."""
        return 8 if "64" in self._suffix else 4

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
        # Not _fblas.so and the like, which only link to one.
        found = re.findall(r" (/\S*/lib[^/\s]*blas[^/\s]*\.so\S*)$", maps.read_text(), re.M)
        return set(found)
    return {str(path) for name in ("numpy", "scipy") for path in _bundled(name) if _loaded_at(path)}


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


def _loaded_at(path: Path) -> bool:
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def bundled_openblas() -> OpenBLAS | None:
    """The OpenBLAS of NumPy's wheel, else of SciPy's, where there is one."""
    for package in ("numpy", "scipy"):
        for path in _bundled(package):
            library = _openblas(str(path))
            if library is not None:
                return library
    return None


def _of_scipy_linalg() -> Blas:
    with interrupts.held():
        import scipy.linalg.cython_blas as functions

    addresses = {name: exported(functions, name) for name in _NAMES}
    return Blas(name="SciPy's BLAS", **addresses, get_threads=0, set_threads=0)


def exported(module: Any, name: str) -> int:
    """The address of a function that a module of Cython exports."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
