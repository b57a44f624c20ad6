"""cublasLt, NVIDIA's library of matrix products, through ctypes.

CuPy refuses its own matrix products while a stream is captured, so plans call the library itself.
It is looked for at the first use: by cuda-pathfinder, which comes with CuPy and finds the copy that
CuPy uses; else in the CUDA wheels, else by the system's loader. The numbers below stand in
cublasLt.h, cublas_api.h and library_types.h of CUDA 12 and 13 under the names that the classes'
docstrings tell, and a test compares them.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import weakref
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar

from .. import locks

NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
INSTALL = "pip install nvidia-cublas (nvidia-cublas-cu12 for CUDA 12)"
_WHEELS = ("cu13/lib", "cublas/lib")


class DataType(IntEnum):
    """CUDA_..."""

    R_32F = 0
    R_64F = 1
    R_16F = 2
    R_16BF = 14


class ComputeType(IntEnum):
    """CUBLAS_..."""

    COMPUTE_32F = 68
    COMPUTE_32F_FAST_TF32 = 77
    COMPUTE_64F = 70


class Operation(IntEnum):
    """CUBLAS_..."""

    OP_N = 0
    OP_T = 1


class Status(IntEnum):
    """CUBLAS_STATUS_..."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 3
    INVALID_VALUE = 7
    ARCH_MISMATCH = 8
    MAPPING_ERROR = 11
    EXECUTION_FAILED = 13
    INTERNAL_ERROR = 14
    NOT_SUPPORTED = 15
    LICENSE_ERROR = 16


class LayoutAttribute(IntEnum):
    """CUBLASLT_MATRIX_LAYOUT_..."""

    BATCH_COUNT = 5
    STRIDED_BATCH_OFFSET = 6


class MatmulAttribute(IntEnum):
    """CUBLASLT_MATMUL_DESC_..."""

    TRANSA = 3
    TRANSB = 4
    EPILOGUE = 7
    BIAS_POINTER = 8
    EPILOGUE_AUX_POINTER = 11
    EPILOGUE_AUX_LD = 12


class PreferenceAttribute(IntEnum):
    """CUBLASLT_MATMUL_PREF_..."""

    MAX_WORKSPACE_BYTES = 1
    REDUCTION_SCHEME_MASK = 3
    MIN_ALIGNMENT_A_BYTES = 5
    MIN_ALIGNMENT_B_BYTES = 6
    MIN_ALIGNMENT_C_BYTES = 7
    MIN_ALIGNMENT_D_BYTES = 8


class ReductionScheme(IntEnum):
    """CUBLASLT_REDUCTION_SCHEME_...: how the parts of a sum that is cut along k come together."""

    NONE = 0
    INPLACE = 1
    COMPUTE_TYPE = 2
    OUTPUT_TYPE = 4


class Epilogue(IntEnum):
    """CUBLASLT_EPILOGUE_...: what is done with a product before it is stored."""

    DEFAULT = 1
    RELU = 2
    RELU_AUX = 130
    BIAS = 4
    RELU_BIAS = 6
    RELU_AUX_BIAS = 134
    DRELU = 136
    DRELU_BGRAD = 152
    GELU = 32
    GELU_AUX = 160
    GELU_BIAS = 36
    GELU_AUX_BIAS = 164
    DGELU = 192
    DGELU_BGRAD = 208
    BGRADA = 256
    BGRADB = 512


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class HeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", Algorithm),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


_pointer, _int, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_extent, _stride = ctypes.c_uint64, ctypes.c_int64
_attribute = (_pointer, _int, _pointer, _size)
_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_pointer,),
    "cublasLtMatmulDescCreate": (_pointer, _int, _int),
    "cublasLtMatmulDescDestroy": (_pointer,),
    "cublasLtMatmulDescSetAttribute": _attribute,
    "cublasLtMatrixLayoutCreate": (_pointer, _int, _extent, _extent, _stride),
    "cublasLtMatrixLayoutDestroy": (_pointer,),
    "cublasLtMatrixLayoutSetAttribute": _attribute,
    "cublasLtMatmulPreferenceCreate": (_pointer,),
    "cublasLtMatmulPreferenceDestroy": (_pointer,),
    "cublasLtMatmulPreferenceSetAttribute": _attribute,
    "cublasLtMatmulAlgoGetHeuristic": (*[_pointer] * 7, _int, _pointer, _pointer),
    "cublasLtMatmul": (*[_pointer] * 14, _size, _pointer),
}  # fmt: skip


class CublasLtError(RuntimeError):
    """A call that the library refused; `status` is one of `Status`, mostly."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Library:
    """A loaded cublasLt. `name` is a path, or a name that the system's loader finds.

    Raises OSError where it cannot be loaded, RuntimeError where it is too old.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cdll = ctypes.CDLL(name)
        self._handles: dict[int, int] = {}
        try:
            for function, arguments in _SIGNATURES.items():
                getattr(self.cdll, function).argtypes = arguments
            self.cdll.cublasLtGetStatusName.restype = ctypes.c_char_p
            self.cdll.cublasLtGetStatusString.restype = ctypes.c_char_p
            self.cdll.cublasLtGetVersion.restype = _size
        except AttributeError as error:
            raise RuntimeError(f"{name} is no cublasLt of CUDA 12 or newer: {error}") from None
        self.matmul = self.cdll.cublasLtMatmul

    def version(self) -> int:
        """Such as 130100 for 13.1.0 of the library, whose numbers are not those of CUDA."""
        return int(self.cdll.cublasLtGetVersion())

    def call(self, function: str, *arguments: Any, operation: str = "") -> None:
        """Call a function that returns a status; CublasLtError where it is no success."""
        status = getattr(self.cdll, function)(*arguments)
        if status:
            raise self.error(function, status, operation)

    def error(self, function: str, status: int, operation: str = "") -> CublasLtError:
        """The error for a status that `function` has returned, naming the `operation`."""
        name = self.cdll.cublasLtGetStatusName(status).decode()
        text = self.cdll.cublasLtGetStatusString(status).decode()
        place = f"{operation}: {function}" if operation else function
        return CublasLtError(f"{place} failed with {name} ({status}): {text}", status)

    def handle(self, device: int) -> int:
        """The library's handle for a device, which must be the current one.

        It lives as long as the process: giving one back synchronises the device, and breaks what
        another thread is capturing.
        """
        with locks.RUNTIME:
            if device not in self._handles:
                made = ctypes.c_void_p()
                self.call("cublasLtCreate", ctypes.byref(made), operation=f"cuda device {device}")
                self._handles[device] = made.value or 0
            return self._handles[device]


class _Descriptor:
    """Something that the library creates and destroys, with attributes."""

    kind: ClassVar[str]
    types: ClassVar[Mapping[IntEnum, Any]]

    def __init__(self, library: Library, *arguments: Any, operation: str = "") -> None:
        made = ctypes.c_void_p()
        create = f"cublasLt{self.kind}Create"
        library.call(create, ctypes.byref(made), *arguments, operation=operation)
        self.pointer: int = made.value or 0
        self._library = library
        self._operation = operation
        destroy = weakref.finalize(self, library.call, f"cublasLt{self.kind}Destroy", self.pointer)
        destroy.atexit = False

    def set(self, attribute: IntEnum, value: int) -> None:
        """Give the attribute a value."""
        word = self.types[attribute](value)
        self._library.call(
            f"cublasLt{self.kind}SetAttribute",
            *(self.pointer, attribute, ctypes.byref(word), ctypes.sizeof(word)),
            operation=f"{self._operation}: {attribute.name} {value}",
        )


class Layout(_Descriptor):
    """A column-major matrix: Layout(library, data type, rows, columns, leading dimension)."""

    kind = "MatrixLayout"
    types: ClassVar = {
        LayoutAttribute.BATCH_COUNT: ctypes.c_int32,
        LayoutAttribute.STRIDED_BATCH_OFFSET: ctypes.c_int64,
    }


class Matmul(_Descriptor):
    """What is computed: Matmul(library, compute type, data type of alpha and beta)."""

    kind = "MatmulDesc"
    types: ClassVar = {
        MatmulAttribute.TRANSA: ctypes.c_int32,
        MatmulAttribute.TRANSB: ctypes.c_int32,
        MatmulAttribute.EPILOGUE: ctypes.c_uint32,
        MatmulAttribute.BIAS_POINTER: ctypes.c_uint64,
        MatmulAttribute.EPILOGUE_AUX_POINTER: ctypes.c_uint64,
        MatmulAttribute.EPILOGUE_AUX_LD: ctypes.c_int64,
    }


class Preference(_Descriptor):
    """Which algorithms may be chosen: Preference(library)."""

    kind = "MatmulPreference"
    types: ClassVar = {
        PreferenceAttribute.MAX_WORKSPACE_BYTES: ctypes.c_uint64,
        PreferenceAttribute.REDUCTION_SCHEME_MASK: ctypes.c_uint32,
        PreferenceAttribute.MIN_ALIGNMENT_A_BYTES: ctypes.c_uint32,
        PreferenceAttribute.MIN_ALIGNMENT_B_BYTES: ctypes.c_uint32,
        PreferenceAttribute.MIN_ALIGNMENT_C_BYTES: ctypes.c_uint32,
        PreferenceAttribute.MIN_ALIGNMENT_D_BYTES: ctypes.c_uint32,
    }


def choose(
    library: Library, handle: int, matmul: Matmul, layouts: tuple[Layout, Layout, Layout],
    preference: Preference, operation: str,
) -> HeuristicResult:  # fmt: skip
    """The algorithm that the library thinks fastest for D = op(A) op(B) + C, D laid out as C.

    Not to be called while a stream is captured: some versions refuse. CublasLtError where no
    algorithm does it.
    """
    a, b, c = (layout.pointer for layout in layouts)
    found, count = HeuristicResult(), ctypes.c_int()
    function = "cublasLtMatmulAlgoGetHeuristic"
    library.call(
        function, handle, matmul.pointer, a, b, c, c, preference.pointer,
        1, ctypes.byref(found), ctypes.byref(count), operation=operation,
    )  # fmt: skip
    status = found.state if count.value else int(Status.NOT_SUPPORTED)
    if status:
        raise library.error(function, status, operation)
    return found


_loaded: Library | None = None


def load() -> Library:
    """The library, looked for once. RuntimeError with what to install where there is none."""
    global _loaded
    if _loaded is None:
        with locks.RUNTIME:
            if _loaded is None:
                _loaded = _find()
    return _loaded


def _find() -> Library:
    path = _by_pathfinder() or _in_wheels()
    if path:
        return Library(path)
    for name in NAMES:
        try:
            return Library(name)
        except OSError:
            continue
    raise RuntimeError(
        f"matrix products on CUDA need cublasLt, and neither the CUDA wheels nor the system's "
        f"loader have {' or '.join(NAMES)}; {INSTALL} brings it"
    )


def _by_pathfinder() -> str | None:
    """The path of the copy that CuPy uses or would use."""
    if importlib.util.find_spec("cuda") is None or not importlib.util.find_spec("cuda.pathfinder"):
        return None
    pathfinder = importlib.import_module("cuda.pathfinder")
    try:
        path = pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path
    except pathfinder.DynamicLibNotFoundError:
        return None
    return str(path) if path else None


def _in_wheels() -> str | None:
    spec = importlib.util.find_spec("nvidia")
    homes = [Path(home) for home in (spec and spec.submodule_search_locations) or ()]
    found = (home / folder / name for name in NAMES for home in homes for folder in _WHEELS)
    return next((str(path) for path in found if path.exists()), None)
