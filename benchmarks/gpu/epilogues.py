"""Matrix products with epilogues, beside a product and the kernels behind it.

Plans use an epilogue of cublasLt only where it is known to be faster, and to compute the same; here
it is measured. So are contractions, kernels of ours that multiply and do the rest. All ways are
captured as CUDA graphs of several repetitions and replayed in turns, so that nothing but the device
is timed. What epilogues make of NaN and infinities is noted as well.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from tgraph.compiler.targets.cuda.executable import SMALL_BYTES, CudaExecutable
from tgraph.compiler.targets.cuda.program import cuda_program
from tgraph.runtime.cuda import backend
from tgraph.runtime.cuda.cublas_lt import CublasLtError
from tgraph.runtime.cuda.devices import architecture
from tgraph.runtime.cuda.products import Product, prepare, workspaces_of
from tgraph.runtime.plan_steps import BufferRef, GemmStep

import tgraph as tg
from tgraph.nn import functional as F

# Rows, inputs and outputs of layers: those of GPT-2's MLP, a large one, a small one.
SIZES = {
    "gpu": ((4096, 768, 3072), (4096, 3072, 768), (8192, 8192, 8192), (256, 512, 512)),
    "tiny": ((8, 16, 128),),
}
DTYPES = ("bfloat16", "float16", "float32")
ROUNDS = 7
# A graph repeats a call until it takes so many seconds, but not too often.
GRAPH_SECONDS = 1e-3
MOST_REPEATS = 50
# Of the time: when what is not compiled yet is left out.
COMPILED_BY = 0.6
COMPILERS = 8
COMPARED_ROWS = 64

Array = Any  # of CuPy
Tensors = Mapping[str, tg.Tensor]


class Kind(NamedTuple):
    """An epilogue, and a function of `arguments` that computes the same with kernels.

    The product is that of `a` and `b`; its m, n and k are of a layer's rows (0), inputs (1) and
    outputs (2), as `sizes` says. `aux` is what the epilogue reads, or "room" for what it writes.
    """

    epilogue: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    sizes: tuple[int, int, int] = (0, 2, 1)
    a: str = "x"
    b: str = "w"
    transpose_a: bool = False
    transpose_b: bool = True
    aux: str = ""


def _layer(activation: Callable[[tg.Tensor], tg.Tensor]) -> Callable[..., tg.Tensor]:
    return lambda x, w, bias: activation(x @ w.t() + bias)


def _gelu(x: tg.Tensor) -> tg.Tensor:
    return F.gelu(x, approximate="tanh")


def _backward(activation: Callable[[tg.Tensor], tg.Tensor]) -> Callable[..., Any]:
    """The gradient of what goes into an activation, and its sums, the gradient of a bias."""

    def function(x: tg.Tensor, v: tg.Tensor, p: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        (gradient,) = tg.vjp(activation, p)[1](x @ v)
        return gradient, gradient.sum(0)

    return function


def _weights(p: tg.Tensor, x: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
    """The gradients of a layer's weights and bias."""
    return p.t() @ x, p.sum(0)


_FORWARD = ("x", "w", "bias")
_BACKWARD = {"arguments": ("x", "v", "p"), "b": "v", "transpose_b": False}
KINDS = (
    Kind("bias", _layer(lambda x: x), _FORWARD),
    Kind("bias_relu", _layer(tg.relu), _FORWARD),
    Kind("bias_gelu", _layer(_gelu), _FORWARD),
    # Kernels need no more than the product, which stays, to compute the gradient.
    Kind("bias_relu_saved", _layer(tg.relu), _FORWARD, aux="room"),
    Kind("bias_gelu_saved", _layer(_gelu), _FORWARD, aux="room"),
    Kind("relu_gradient_sum", _backward(tg.relu), aux="mask", **_BACKWARD),
    Kind("gelu_gradient_sum", _backward(_gelu), aux="p", **_BACKWARD),
    Kind("sum_a", _weights, ("p", "x"), (2, 1, 0), "p", "x", True, False),
)


def data(sizes: Sequence[int], dtype: str, device: Any) -> dict[str, tg.Tensor]:
    """x and weights w of a layer, v as the transposed ones, its bias; p is what lies behind it."""
    rows, inputs, outputs = sizes
    scale = inputs**-0.5

    def normal(*shape: int) -> tg.Tensor:
        return tg.randn(*shape, device=device)

    found = {
        "x": normal(rows, inputs),
        "w": scale * normal(outputs, inputs),
        "v": scale * normal(inputs, outputs),
        "bias": normal(outputs),
        "p": normal(rows, outputs),
    }
    found = {name: value.to(getattr(tg, dtype)) for name, value in found.items()}
    # A bit for each element, the lowest first, in rows of a multiple of 128.
    bits = (found["p"] > 0).reshape(rows, outputs // 8, 8).to(tg.int32)
    weights = tg.tensor([1 << bit for bit in range(8)], dtype=tg.int32, device=device)
    return {**found, "mask": (bits * weights).sum(-1).to(tg.uint8)}


def _step(kind: Kind, sizes: Sequence[int], dtype: str) -> GemmStep:
    m, n, k = (sizes[at] for at in kind.sizes)
    return GemmStep(
        kind.epilogue, dtype, m, n, k, BufferRef(1), BufferRef(2), BufferRef(3),
        kind.transpose_a, kind.transpose_b,
        m if kind.transpose_a else k, k if kind.transpose_b else n, n,
    )  # fmt: skip


class Together:
    """A product with its epilogue; `results` are C and the vector, if that is a result."""

    def __init__(self, kind: Kind, sizes: Sequence[int], tensors: Tensors, device: Any) -> None:
        a, b = (tensors[each]._value for each in (kind.a, kind.b))
        step = _step(kind, sizes, a.dtype.name)
        shared = workspaces_of(device.index)
        self.product: Product = prepare(step, device.index, shared, kind.epilogue)
        empty = backend.cupy().empty
        c = empty((step.m, step.n), a.dtype)
        adds = kind.epilogue.startswith("bias")
        vector = tensors["bias"]._value if adds else empty(self.product.bias_length, a.dtype)
        self.results = [c] if adds else [c, vector]
        self.operands = [a, b, c, vector, self._aux(kind, tensors)]

    def _aux(self, kind: Kind, tensors: Tensors) -> Array | None:
        """What is saved for the gradient, or room for it."""
        if kind.aux in ("", "room"):
            size = self.product.aux_bytes
            return backend.cupy().empty(size, "uint8") if size else None
        aux = tensors[kind.aux]._value
        if aux.nbytes != self.product.aux_bytes:
            raise ValueError(f"{kind.epilogue}: aux must have {self.product.aux_bytes} bytes")
        return aux

    def __call__(self, stream: Any) -> None:
        a, b, c, bias, aux = (0 if each is None else each.data.ptr for each in self.operands)
        self.product.launch(a, b, c, stream.ptr, bias, aux)


class Apart:
    """A product and the kernels behind it, as a plan has them without epilogues.

    If it is `tiled`, the product is one kernel with what reads it, but for sums, where there is
    such; `calls` are the products that cublasLt is left with. `results` are those of the first
    call; others leave small ones where the plan has computed them.
    """

    def __init__(self, kind: Kind, tensors: Tensors, device: Any, tiled: bool = False) -> None:
        given = [tensors[name] for name in kind.arguments]
        self.inputs = [each._value for each in given]
        graph = tg.trace(kind.function, *given)
        program = cuda_program(graph, architecture(device), epilogues=False, tiled=tiled)
        self.calls = sum(isinstance(step, GemmStep) for step in program.steps)
        self.executable = CudaExecutable(program, device)
        self.executable.plan.can_capture = False  # it becomes a part of another graph
        self.results: list[Array] = []

    def __call__(self, stream: Any) -> None:
        if not self.results:
            self.results = self.executable.run(self.inputs)
        large = [each for each in self.results if each.nbytes > SMALL_BYTES]
        self.executable.plan.run((*self.inputs, *large))


class Captured:
    """Calls as one CUDA graph, of as many as take long enough to be timed."""

    def __init__(self, call: Callable[[Any], None], stream: Any) -> None:
        self.call, self.stream = call, stream
        call(stream)  # what is made once is made before the capture
        self._capture(1)
        self.milliseconds()
        single = max(self.milliseconds() / 1e3, 1e-7)
        if (repeats := min(MOST_REPEATS, round(GRAPH_SECONDS / single))) > 1:
            self._capture(repeats)
            self.milliseconds()

    def _capture(self, repeats: int) -> None:
        self.repeats = repeats
        with backend.capturing:
            self.stream.begin_capture()
            try:
                for _ in range(repeats):
                    self.call(self.stream)
            finally:
                self.graph = self.stream.end_capture()

    def milliseconds(self) -> float:
        """Of the whole graph."""
        cuda = backend.cupy().cuda
        begin, end = cuda.Event(), cuda.Event()
        begin.record(self.stream)
        self.graph.launch(self.stream)
        end.record(self.stream)
        end.synchronize()
        return float(cuda.get_elapsed_time(begin, end))

    def seconds(self) -> float:
        """Of one call."""
        return self.milliseconds() / 1e3 / self.repeats


def compare(
    apart: Apart, together: Together, stream: Any, tiled: Apart | None = None
) -> dict[str, float]:
    """Median seconds of all, the median ratio of their turns, and how far results lie apart."""
    contenders = [apart, together, *([tiled] if tiled else [])]
    captured = [Captured(each, stream) for each in contenders]
    rounds = []
    for number in range(ROUNDS):
        times = {each: each.seconds() for each in (captured if number % 2 else captured[::-1])}
        rounds.append([times[each] for each in captured])
    medians = [statistics.median(times) for times in zip(*rounds)]
    ratios = [
        statistics.median(times[at] / times[0] for times in rounds) for at in range(len(medians))
    ]
    found = {
        "separate": medians[0],
        "together": medians[1],
        "ratio": ratios[1],
        "deviation": _deviations(together.results, apart.results),
    }
    if tiled is not None:
        found |= {
            "tiled": medians[2],
            "tiled_ratio": ratios[2],
            "tiled_deviation": _deviations(tiled.results, apart.results),
        }
    return found


def _deviations(have: Sequence[Array], want: Sequence[Array]) -> float:
    return max(_deviation(*pair) for pair in zip(have, want, strict=True))


def _deviation(have: Array, want: Array) -> float:
    """The greatest difference in some rows, relative to the greatest value."""
    first, second = (each[:COMPARED_ROWS].astype("float32") for each in (have, want))
    return float(abs(first - second).max() / abs(second).max())


# --- all of them ---------------------------------------------------------------------------------


class _Case(NamedTuple):
    kind: Kind
    sizes: tuple[int, int, int]
    dtype: str

    def told(self) -> dict[str, str]:
        size = "×".join(map(str, self.sizes))
        return {"epilogue": self.kind.epilogue, "size": size, "dtype": self.dtype}


def measure(scale: str, seconds: float) -> dict[str, Any]:
    """All kinds, sizes and dtypes, as JSON has them; how many there was no time for.

    It ends soon after `seconds`. float32 is computed with TensorFloat32 from then on.
    """
    began = time.perf_counter()
    tg.set_float32_matmul_precision("high")
    device = tg.device("cuda", 0)
    stream = backend.cupy().cuda.Stream(non_blocking=True)
    tensors = {
        (sizes, dtype): data(sizes, dtype, device) for dtype in DTYPES for sizes in SIZES[scale]
    }
    cases = [_Case(kind, *key) for key in tensors for kind in KINDS]
    ready = _compiled(cases, tensors, device, began + COMPILED_BY * seconds)
    tg.cuda.synchronize()
    rows = []
    with stream:
        while ready and time.perf_counter() < began + seconds:
            case = next(iter(ready))
            given = tensors[case.sizes, case.dtype]
            # Its memory goes with the last case that needs it.
            rows.append({**case.told(), **_compared(case, *ready.pop(case), given, device, stream)})
    return {
        "rows": rows,
        "special": {dtype: special_values(dtype, device) for dtype in DTYPES},
        "not_measured": len(cases) - len(rows),
        "seconds": time.perf_counter() - began,
    }


def _compiled(
    cases: Sequence[_Case], tensors: Mapping[Any, Tensors], device: Any, until: float
) -> dict[_Case, tuple[Apart, Apart | None]]:
    """What compiles in time, many at once; saving something changes no kernel."""
    started: dict[Any, Future[tuple[Apart, Apart | None]]] = {}
    with ThreadPoolExecutor(COMPILERS) as pool:
        for case in cases:
            given = tensors[case.sizes, case.dtype]
            if (key := _program(case)) not in started:
                started[key] = pool.submit(_kernels, case.kind, given, device)
        wait(started.values(), max(0.0, until - time.perf_counter()))
        pool.shutdown(cancel_futures=True)
    return {
        case: started[_program(case)].result()
        for case in cases
        if not started[_program(case)].cancelled()
    }


def _kernels(kind: Kind, tensors: Tensors, device: Any) -> tuple[Apart, Apart | None]:
    """The product and its kernels, and one kernel for both, where there is such."""
    tiled = Apart(kind, tensors, device, tiled=True)
    return Apart(kind, tensors, device), None if tiled.calls else tiled


def _program(case: _Case) -> tuple[str, Any, str]:
    """The same for cases that the same kernels compute."""
    return case.kind.epilogue.removesuffix("_saved"), case.sizes, case.dtype


def _compared(
    case: _Case, apart: Apart, tiled: Apart | None, tensors: Tensors, device: Any, stream: Any
) -> dict[str, Any]:
    try:
        together = Together(case.kind, case.sizes, tensors, device)
    except CublasLtError as error:
        return {"error": str(error)}
    return compare(apart, together, stream, tiled)


def special_values(dtype: str, device: Any) -> dict[str, str]:
    """What activations make of NaN and infinities, of the product and of the bias."""
    m, n, k = 16, 128, 16
    values = [float("nan"), float("inf"), -float("inf")]
    row = tg.tensor(values + [0.0] * (n - len(values)))
    # The row, or nothing, in each row of a product: (1, 0, ...) by (row, 0, ...).
    first = (tg.arange(k) == 0).float()
    a, b = first.expand(m, k), tg.where(first[:, None] > 0, row, 0.0)
    found = {}
    for epilogue in ("relu", "gelu", "bias_relu", "bias_gelu"):
        given = (a, b if "bias" not in epilogue else tg.zeros(k, n), row)
        arrays = [each.contiguous().to(device, getattr(tg, dtype))._value for each in given]
        try:
            got = _first_row(epilogue, *arrays)[: len(values)].astype("float32").tolist()
        except CublasLtError as error:
            found[epilogue] = str(error)
        else:
            found[epilogue] = ", ".join(f"{value} → {each}" for value, each in zip(values, got))
    return found


def _first_row(epilogue: str, a: Array, b: Array, row: Array) -> Array:
    """Of a product whose bias, if it has one, is `row`."""
    cupy = backend.cupy()
    kind = Kind(epilogue, _gelu, (), (0, 1, 2), transpose_b=False)
    step = _step(kind, (len(a), b.shape[1], len(b)), a.dtype.name)
    product = prepare(step, a.device.id, workspaces_of(a.device.id), epilogue)
    c = cupy.empty((step.m, step.n), a.dtype)
    extra = [row.data.ptr] if product.bias_length else []
    stream = cupy.cuda.get_current_stream()
    product.launch(a.data.ptr, b.data.ptr, c.data.ptr, stream.ptr, *extra)
    return c[0]
