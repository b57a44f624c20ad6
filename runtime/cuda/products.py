"""Matrix products of plans on CUDA: a `GemmStep` made ready to launch through cublasLt.

`prepare` makes descriptors and asks for the fastest algorithm; `Product.launch` only launches, so
it may stand inside a stream capture. Both want the product's device to be the current one, and both
may be called by several threads. A kernel's first launch loads it, which relaxed captures allow.

Results do not change from run to run: where a long k is cut into parts, these lie in the workspace
in the type of the computation and are summed in order by a separate step. Schemes that sum in place
or in the type of C (16-bit floats would be rounded in between) are not allowed. Operands that are
less aligned can get another algorithm, whose sums are rounded otherwise.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from ..plan_steps import GemmStep, merged_batch, references
from ..records import NamedTuple, replace
from . import backend, cublas_lt
from .cublas_lt import (
    Algorithm,
    ComputeType,
    DataType,
    Epilogue,
    Layout,
    LayoutAttribute,
    Matmul,
    MatmulAttribute,
    Operation,
    Preference,
    PreferenceAttribute,
    ReductionScheme,
)
from .memory import register_keeper, watch
from .precision import get_precision

ALIGNMENT = 256
"""What places in memory are a multiple of, views apart; more does not help cublasLt."""

# cublasLt is told how the matrices are aligned, but takes this of what epilogues read and write for
# granted: its kernels fault on a bias that begins elsewhere.
EXTRAS_ALIGNMENT = 16
MASK_ALIGNMENT = 128
VALUES_ALIGNMENT = 8

_INT32 = 2**31 - 1
_REDUCTIONS = ReductionScheme.NONE | ReductionScheme.COMPUTE_TYPE


class _Type(NamedTuple):
    data: DataType
    bytes: int
    compute: ComputeType
    scale: DataType  # of alpha and beta
    scalar: type[ctypes.c_float] | type[ctypes.c_double]


def _computed_in_float32(data: DataType, nbytes: int) -> _Type:
    return _Type(data, nbytes, ComputeType.COMPUTE_32F, DataType.R_32F, ctypes.c_float)


_TYPES: Mapping[str, _Type] = {
    "float32": _computed_in_float32(DataType.R_32F, 4),
    "float16": _computed_in_float32(DataType.R_16F, 2),
    "bfloat16": _computed_in_float32(DataType.R_16BF, 2),
    "float64": _Type(
        DataType.R_64F, 8, ComputeType.COMPUTE_64F, DataType.R_64F, ctypes.c_double
    ),
}  # fmt: skip

# -- the workspace -------------------------------------------------------------------------------


class Allocation(Protocol):
    """Device memory, as CuPy's `MemoryPointer`; it is given back when the object is gone."""

    @property
    def ptr(self) -> int: ...


def workspace_limit(major: int) -> int:
    """The workspace that NVIDIA recommends, in bytes, for compute capability `major`.x."""
    return (32 if major >= 9 else 4) * 2**20


class Workspaces:
    """Scratch memory for products: one piece for each device and stream, until `forget`.

    `allocate(nbytes)` gives device memory, aligned to 256 bytes; `zero(address, nbytes, stream)`
    fills device memory with zeros as a part of the stream. `limit` is the most that an algorithm
    may ask for.

    A captured graph uses the piece of the stream that it was captured on, wherever it is replayed:
    graphs that can run at the same time as others need `Workspaces` of their own. `hold` keeps the
    pieces of such a stream.
    """

    def __init__(
        self,
        allocate: Callable[[int], Allocation],
        zero: Callable[[int, int, int], object],
        limit: int = workspace_limit(9),
    ) -> None:
        self.zero = zero
        self.limit = limit
        self._allocate = allocate
        self._lock = threading.Lock()
        self._pieces: dict[tuple[int, int], list[tuple[Allocation, int]]] = {}
        self._held: set[int] = set()

    def at_least(self, nbytes: int, device: int, stream: int) -> int:
        """The address of the stream's piece, which is replaced where it is too small."""
        with self._lock:
            pieces = self._pieces.get((device, stream), [])
            if pieces and pieces[-1][1] >= nbytes:
                return int(pieces[-1][0].ptr)
            # Doubled, so that all the pieces of a stream are at most twice the largest. Graphs
            # and work that is under way may still use the small ones.
            size = max(1 << (nbytes - 1).bit_length(), 64 * 1024)
            memory = self._allocate(size)
            address = int(memory.ptr)
            if address % ALIGNMENT:
                raise RuntimeError(
                    f"workspace: expected memory aligned to {ALIGNMENT} bytes, got {address:#x}"
                )
            self._pieces[device, stream] = [*pieces, (memory, size)]
            return address

    @property
    def _kept(self) -> list[Allocation]:
        """Every piece."""
        return [memory for pieces in list(self._pieces.values()) for memory, _ in pieces]

    def hold(self, stream: int) -> None:
        """Keep the pieces of a new stream until `let_go`, whatever is forgotten by then.

        Another stream may have had the same handle before; that it is gone may be told late.
        """
        self.forget(stream)
        self._held.add(stream)

    def let_go(self, stream: int) -> None:
        """Give back the pieces of a stream that was held, before it goes."""
        self._held.discard(stream)
        self.forget(stream)

    def forget(self, stream: int) -> bool:
        """Give back the pieces of a stream that is gone, and so are the graphs captured on it."""
        if stream in self._held:
            return True  # those of the gone one were given back when this one came
        # Without the lock, as garbage may be collected anywhere.
        for key in list(self._pieces):
            if key[1] == stream:
                self._pieces.pop(key, None)
        return True


def workspaces_of(device: int) -> Workspaces:
    """The workspaces of a device that all its products share."""
    kept = backend.kept()
    key = "workspaces", device
    if key not in kept:
        kept[key] = Workspaces(_allocate, _zero)
        register_keeper(kept[key])
    found: Workspaces = kept[key]
    return found


def _allocate(nbytes: int) -> Allocation:
    cuda = backend.cupy().cuda
    watch(cuda.get_current_stream())
    memory: Allocation = cuda.alloc(nbytes)
    return memory


def _zero(address: int, nbytes: int, stream: int) -> None:
    backend.cupy().cuda.runtime.memsetAsync(address, 0, nbytes, stream)


# -- epilogues -----------------------------------------------------------------------------------


class _Epilogue(NamedTuple):
    """`vector` is what the bias pointer's array has an element for, `aux` what lies there."""

    value: Epilogue
    vector: Literal["", "row", "column"] = ""
    aux: Literal["", "mask", "values"] = ""
    sums: bool = False  # the vector is a result


EPILOGUES: Mapping[str, _Epilogue] = {
    "": _Epilogue(Epilogue.DEFAULT),
    "bias": _Epilogue(Epilogue.BIAS, "column"),
    "relu": _Epilogue(Epilogue.RELU),
    "gelu": _Epilogue(Epilogue.GELU),
    "bias_relu": _Epilogue(Epilogue.RELU_BIAS, "column"),
    "bias_gelu": _Epilogue(Epilogue.GELU_BIAS, "column"),
    "relu_saved": _Epilogue(Epilogue.RELU_AUX, aux="mask"),
    "gelu_saved": _Epilogue(Epilogue.GELU_AUX, aux="values"),
    "bias_relu_saved": _Epilogue(Epilogue.RELU_AUX_BIAS, "column", "mask"),
    "bias_gelu_saved": _Epilogue(Epilogue.GELU_AUX_BIAS, "column", "values"),
    "relu_gradient": _Epilogue(Epilogue.DRELU, aux="mask"),
    "gelu_gradient": _Epilogue(Epilogue.DGELU, aux="values"),
    "relu_gradient_sum": _Epilogue(Epilogue.DRELU_BGRAD, "column", "mask", sums=True),
    "gelu_gradient_sum": _Epilogue(Epilogue.DGELU_BGRAD, "column", "values", sums=True),
    # cublasLt computes the transposed product, so its A is our B.
    "sum_a": _Epilogue(Epilogue.BGRADB, "row", sums=True),
    "sum_b": _Epilogue(Epilogue.BGRADA, "column", sums=True),
}
"""What can be done with P = alpha * op(A) @ op(B) + beta * C before it is stored, for an m x n P.

- "bias" adds n numbers to every row, "relu" and "gelu" (the approximation with tanh) come next;
- "..._saved" writes what the gradient needs to `aux`: for ReLU a bit per element, for GELU its
  argument;
- "..._gradient" multiplies with the derivative at what `aux` holds, and "..._gradient_sum" also
  writes the n sums of the result's columns to `bias`: the gradient of the bias;
- "sum_a" and "sum_b" also write sums along k to `bias`: the m sums of op(A)'s rows or the n sums of
  op(B)'s columns. With A a transposed gradient, "sum_a" is the gradient of the bias.

`bias` has the type of C. None is there for float64. Both begin at multiples of 16 bytes.
"""


# -- products ------------------------------------------------------------------------------------

_Dimension = tuple[int, int, int, int]  # of a batch: size, strides of a, b and c


class _Choice(NamedTuple):
    algorithm: Algorithm
    workspace: int


def prepare(
    step: GemmStep, device: int, workspaces: Workspaces, epilogue: str | None = None
) -> Product:
    """Make the product ready for a device, which must be the current one.

    `epilogue` is one of `EPILOGUES`, by default the step's. What slots of memory begin at is
    expected to be aligned to 256 bytes; other addresses work too. Not to be called while a stream
    is captured: some versions of cublasLt do not choose algorithms then.

    Raises ValueError for a step that is no product of matrices, CublasLtError where cublasLt
    cannot compute it, RuntimeError where cublasLt is missing.
    """
    return Product(step, device, workspaces, epilogue)


class Product:
    """A matrix product on a device, ready to launch.

    `bias` has `bias_length` elements. `aux` is a row-major matrix of `aux_bytes`: every row has
    `aux_leading` bits or elements, the first n of which are used. `operands` counts the addresses
    that the step names: of a, b, c and, where it has one, the bias.
    """

    def __init__(
        self, step: GemmStep, device: int, workspaces: Workspaces, epilogue: str | None = None
    ) -> None:
        name = step.epilogue if epilogue is None else epilogue
        self.step = step
        self.operands = len(references(step))
        self.operation = _operation(step, name)
        self.precision = get_precision()
        _check(step, name, self.operation)
        self._type = _TYPES[step.dtype]
        self._epilogue = EPILOGUES[name]
        rows = step.m * math.prod(size for size, *_ in step.batch)
        self.bias_length = {"": 0, "row": rows, "column": step.n}[self._epilogue.vector]
        self.aux_leading = self.aux_bytes = 0
        self._measure_aux(rows)
        self._device = device
        self._workspaces = workspaces
        self._lock = threading.Lock()
        self._choices: dict[tuple[int, ...], _Choice] = {}
        self._calls: list[tuple[int, int, int]] = []
        self._swapped, self._zeros = False, 0
        self._between, self._pointers = [ALIGNMENT] * 3, (0, 0)
        if _is_empty(step):
            return
        # A single column is computed as a single row, with the operands in each other's place.
        self._swapped = self._epilogue.value == Epilogue.DEFAULT and _is_column(step)
        step = _normal(_transposed(step) if self._swapped else step)
        self._check_batch(step)
        # The sum of nothing is computed as a product of zeros.
        self._zeros = 0 if step.k else max(step.m, step.n) * self._type.bytes
        made = step if step.k else _of_zeros(step)
        batch, loops = _split(made.batch)
        self._calls = list(_offsets(loops, self._type.bytes))
        self._between = [math.gcd(ALIGNMENT, *offsets) for offsets in zip(*self._calls)]
        self._library = cublas_lt.load()
        self._handle = self._library.handle(device)
        # References of ctypes, which keep what they refer to.
        self._alpha = ctypes.byref(self._type.scalar(made.alpha))
        self._beta = ctypes.byref(self._type.scalar(made.beta))
        # Column-major, all is transposed, and C = A @ B becomes C' = B' @ A'.
        self._matmul = self._described(made)
        m, n, k = made.m, made.n, made.k
        a = (k, m) if made.transpose_a else (m, k)
        b = (n, k) if made.transpose_b else (k, n)
        self._a = self._layout(a, made.lda, batch[0], batch[1])
        self._b = self._layout(b, made.ldb, batch[0], batch[2])
        self._c = self._layout((m, n), made.ldc, batch[0], batch[3])
        self._expect(step)

    def launch(self, a: int, b: int, c: int, stream: int, bias: int = 0, aux: int = 0) -> None:
        """Launch the product of the matrices at these addresses as a part of the stream.

        Where operands are less aligned than any before, an algorithm is chosen for them; `ready`
        does that before a capture. Raises CublasLtError for what the library refuses.
        """
        if not self._calls:
            return
        self._check_extras(bias, aux)
        with self._lock:
            a, b, choice, workspace = self._arrange(a, b, c, stream, bias, aux)
            if self._zeros:
                self._workspaces.zero(a, self._zeros, stream)
            algorithm = ctypes.byref(choice.algorithm)
            for at_a, at_b, at_c in self._calls:
                status = self._library.matmul(
                    self._handle, self._matmul.pointer,
                    self._alpha, b + at_b, self._b.pointer, a + at_a, self._a.pointer,
                    self._beta, c + at_c, self._c.pointer, c + at_c, self._c.pointer,
                    algorithm, workspace, choice.workspace, stream,
                )  # fmt: skip
                if status:
                    raise self._library.error("cublasLtMatmul", status, self.operation)

    def ready(self, a: int, b: int, c: int, stream: int, bias: int = 0, aux: int = 0) -> None:
        """Choose the algorithm and take the workspace that `launch` needs for these addresses.

        To be called before a capture that no launch with such addresses on the stream went before.
        """
        if not self._calls:
            return
        self._check_extras(bias, aux)
        with self._lock:
            self._arrange(a, b, c, stream, bias, aux)

    # -- making it -------------------------------------------------------------------------------

    def _measure_aux(self, rows: int) -> None:
        n = self.step.n
        if self._epilogue.aux == "mask":
            self.aux_leading = -(-n // MASK_ALIGNMENT) * MASK_ALIGNMENT
            self.aux_bytes = rows * self.aux_leading // 8
        elif self._epilogue.aux == "values":
            self.aux_leading = -(-n // VALUES_ALIGNMENT) * VALUES_ALIGNMENT
            self.aux_bytes = rows * self.aux_leading * self._type.bytes

    def _check_batch(self, step: GemmStep) -> None:
        """A batch that is no taller matrix has no place for what belongs to its rows."""
        if step.batch and (self._epilogue.aux or self._epilogue.sums):
            sizes = [size for size, *_ in step.batch]
            raise ValueError(
                f"{self.operation}: expected one B and rows of A and C that follow each other "
                f"through the batch, got a batch of {sizes} products"
            )

    def _described(self, step: GemmStep) -> Matmul:
        compute = self._type.compute
        if step.dtype == "float32" and self.precision != "highest":
            compute = ComputeType.COMPUTE_32F_FAST_TF32
        matmul = Matmul(self._library, compute, self._type.scale, operation=self.operation)
        matmul.set(MatmulAttribute.TRANSA, Operation.OP_T if step.transpose_b else Operation.OP_N)
        matmul.set(MatmulAttribute.TRANSB, Operation.OP_T if step.transpose_a else Operation.OP_N)
        if self._epilogue.value != Epilogue.DEFAULT:
            matmul.set(MatmulAttribute.EPILOGUE, self._epilogue.value)
        if self._epilogue.aux:
            matmul.set(MatmulAttribute.EPILOGUE_AUX_LD, self.aux_leading)
        return matmul

    def _layout(self, shape: tuple[int, int], leading: int, count: int, stride: int) -> Layout:
        """A row-major matrix as it is stored: its columns are cublasLt's rows."""
        rows, columns = shape
        layout = Layout(
            *(self._library, self._type.data, columns, rows, leading), operation=self.operation
        )
        if count > 1:
            layout.set(LayoutAttribute.BATCH_COUNT, count)
            layout.set(LayoutAttribute.STRIDED_BATCH_OFFSET, stride)
        return layout

    def _expect(self, step: GemmStep) -> None:
        """Choose an algorithm for the addresses that are expected."""
        bias = ALIGNMENT + (step.bias.offset if step.bias else 0) if self.bias_length else 0
        aux = ALIGNMENT if self.aux_bytes else 0
        a, b = (0, 0) if self._zeros else (step.a.offset, step.b.offset)
        self._choice(a, b, step.c.offset, bias, aux)

    # -- launching it ----------------------------------------------------------------------------

    def _check_extras(self, bias: int, aux: int) -> None:
        for name, given, wanted in (("bias", bias, self.bias_length), ("aux", aux, self.aux_bytes)):
            if bool(given) != bool(wanted):
                expected = f"the address of {name}" if wanted else f"no {name}"
                raise ValueError(f"{self.operation}: expected {expected}, got {given:#x}")
            if given % EXTRAS_ALIGNMENT:
                raise ValueError(
                    f"{self.operation}: expected {name} at a multiple of {EXTRAS_ALIGNMENT} bytes, "
                    f"got {given:#x}"
                )

    def _arrange(
        self, a: int, b: int, c: int, stream: int, bias: int, aux: int
    ) -> tuple[int, int, _Choice, int]:
        """Where the operands are for cublasLt, the algorithm and its workspace."""
        if self._swapped:
            a, b = b, a
        if self._zeros:
            a = b = self._workspaces.at_least(self._zeros, self._device, stream)
        choice = self._choice(a, b, c, bias, aux)
        if not choice.workspace:
            return a, b, choice, 0
        return a, b, choice, self._workspaces.at_least(choice.workspace, self._device, stream)

    def _choice(self, a: int, b: int, c: int, bias: int, aux: int) -> _Choice:
        """The algorithm for operands that are aligned as these addresses are."""
        if (bias, aux) != self._pointers:
            self._point_to(bias, aux)
        between_a, between_b, between_c = self._between
        alignments = (
            math.gcd(a, between_a), math.gcd(b, between_b), math.gcd(c, between_c),
            math.gcd(bias, ALIGNMENT), math.gcd(aux, ALIGNMENT),
        )  # fmt: skip
        choice = self._choices.get(alignments)
        if choice is None:
            choice = self._choices[alignments] = self._choose(*alignments[:3])
        return choice

    def _point_to(self, bias: int, aux: int) -> None:
        # Also before the algorithm is chosen, which looks at the alignment of these.
        if self._epilogue.vector:
            self._matmul.set(MatmulAttribute.BIAS_POINTER, bias)
        if self._epilogue.aux:
            self._matmul.set(MatmulAttribute.EPILOGUE_AUX_POINTER, aux)
        self._pointers = bias, aux

    def _choose(self, a: int, b: int, c: int) -> _Choice:
        preference = Preference(self._library, operation=self.operation)
        # The zeros lie where the workspace would be.
        limit = 0 if self._zeros else self._workspaces.limit
        preference.set(PreferenceAttribute.MAX_WORKSPACE_BYTES, limit)
        preference.set(PreferenceAttribute.REDUCTION_SCHEME_MASK, _REDUCTIONS)
        preference.set(PreferenceAttribute.MIN_ALIGNMENT_A_BYTES, b)
        preference.set(PreferenceAttribute.MIN_ALIGNMENT_B_BYTES, a)
        preference.set(PreferenceAttribute.MIN_ALIGNMENT_C_BYTES, c)
        preference.set(PreferenceAttribute.MIN_ALIGNMENT_D_BYTES, c)
        layouts = self._b, self._a, self._c
        found = cublas_lt.choose(
            *(self._library, self._handle, self._matmul, layouts, preference, self.operation)
        )
        return _Choice(found.algo, found.workspace_bytes)


# -- steps ---------------------------------------------------------------------------------------


def _operation(step: GemmStep, epilogue: str) -> str:
    """The product in words, for errors."""
    batch = "x".join(str(size) for size, *_ in step.batch)
    return (
        f"gemm {step.name} ({f'batch {batch}, ' if batch else ''}m {step.m}, n {step.n}, "
        f"k {step.k}, {step.dtype}{f', {epilogue}' if epilogue else ''})"
    )


def _check(step: GemmStep, epilogue: str, operation: str) -> None:
    if step.dtype not in _TYPES:
        raise ValueError(f"{operation}: expected one of {', '.join(_TYPES)}, got {step.dtype}")
    if epilogue not in EPILOGUES:
        names = ", ".join(filter(None, EPILOGUES))
        raise ValueError(f"{operation}: expected an epilogue of {names}, got {epilogue}")
    if EPILOGUES[epilogue].sums and _is_empty(step):
        raise ValueError(f"{operation}: expected a product with elements, whose sums are wanted")
    a = (step.k, step.m) if step.transpose_a else (step.m, step.k)
    b = (step.n, step.k) if step.transpose_b else (step.k, step.n)
    stored = [("a", step.lda, a), ("b", step.ldb, b), ("c", step.ldc, (step.m, step.n))]
    for name, leading, (rows, width) in stored:
        if rows > 1 and leading < width:
            raise ValueError(
                f"{operation}: expected ld{name} of at least {width}, the elements in a row of "
                f"{name}, got {leading}"
            )


def _is_empty(step: GemmStep) -> bool:
    """Whether C has no elements."""
    return not (step.m and step.n and all(size for size, *_ in step.batch))


def _is_column(step: GemmStep) -> bool:
    return step.n == 1 and step.m > 1 and step.ldc == 1


def _transposed(step: GemmStep) -> GemmStep:
    """The step for the transposed product, whose C is one row instead of one column."""
    return replace(
        step,
        m=1,
        n=step.m,
        a=step.b,
        b=step.a,
        lda=step.ldb,
        ldb=step.lda,
        ldc=step.m,
        transpose_a=not step.transpose_b,
        transpose_b=not step.transpose_a,
        batch=tuple((size, b, a, c) for size, a, b, c in step.batch),
    )


def _normal(step: GemmStep) -> GemmStep:
    """The same product with fewer dimensions of the batch, and vectors stored as rows."""
    m, n, k = step.m, step.n, step.k
    # Where there is one row, the step to the next may be anything; cublasLt wants a valid one.
    lda = max(step.lda, m if step.transpose_a else k)
    ldb = max(step.ldb, k if step.transpose_b else n)
    step = replace(step, lda=lda, ldb=ldb, ldc=max(step.ldc, n), batch=merged_batch(step.batch))
    step = _taller(step)
    m = step.m
    if step.lda == 1 and (m if step.transpose_a else k) == 1:
        step = replace(step, transpose_a=not step.transpose_a, lda=max(m, k))
    if step.ldb == 1 and (k if step.transpose_b else n) == 1:
        step = replace(step, transpose_b=not step.transpose_b, ldb=max(k, n))
    return step


def _taller(step: GemmStep) -> GemmStep:
    """A batch of A with one B and rows that follow each other is one product of more rows."""
    if step.transpose_a or not step.batch:
        return step
    size, a, b, c = step.batch[-1]
    if b or a != step.m * step.lda or c != step.m * step.ldc or step.m * size > _INT32:
        return step
    return replace(step, m=step.m * size, batch=step.batch[:-1])


def _of_zeros(step: GemmStep) -> GemmStep:
    """The step with k = 1 for a column and a row of zeros."""
    return replace(
        step,
        k=1,
        lda=step.m,
        ldb=step.n,
        transpose_a=True,
        transpose_b=False,
        alpha=1.0,
        batch=tuple((size, 0, 0, c) for size, _, _, c in step.batch),
    )


def _split(batch: Sequence[_Dimension]) -> tuple[_Dimension, list[_Dimension]]:
    """The dimension that cublasLt walks, which is the longest one, and those that calls walk."""
    fitting = [each for each in batch if each[0] <= _INT32 and min(each[1:]) >= 0]
    if not fitting:
        return (1, 0, 0, 0), list(batch)
    longest = max(fitting)
    return longest, [each for each in batch if each is not longest]


def _offsets(loops: Sequence[_Dimension], nbytes: int) -> Iterator[tuple[int, int, int]]:
    """What lies between the first products of calls and those of the first one, in bytes."""
    strides = [(a * nbytes, b * nbytes, c * nbytes) for _, a, b, c in loops]
    for place in itertools.product(*(range(size) for size, *_ in loops)):
        steps = [[at * each for each in step] for at, step in zip(place, strides)]
        a, b, c = (sum(along) for along in zip(*steps)) if steps else (0, 0, 0)
        yield a, b, c
