"""`python -m gpu_run.ladder`: twelve things that all else stands on, from the ground upwards.

A line each, with what it took; the first that fails ends it with its whole traceback. What hangs is
ended after 20 seconds with what all threads were at.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

HANGS = {"real": 20.0, "fake": 300.0}
"""Seconds that a rung may take; on the stand-in kernels are built by a C++ compiler."""
SIZE = 1000
CALLS = 4  # launched, captured, replayed twice
SHARED_BYTES = 200 << 10
KERNELS = """
extern "C" __global__ void rung(const float* from, float* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] + 1.0f;
}
extern "C" __global__ void turned(const float* from, float* to, int count) {
  extern __shared__ __align__(16) float kept[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) kept[i] = from[i];
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = kept[count - 1 - i];
}
"""
TOLERANCES = {"float32": 1e-4, "float64": 1e-12, "float16": 2e-2, "bfloat16": 2e-1}


class Wrong(AssertionError):
    """Something ran and gave wrong values."""


def check(found: Any, wanted: Any, what: str, tolerance: float = 0.0) -> None:
    """Wrong with both values where they differ by more than a share of the largest."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    limit = tolerance * (1 + np.abs(wanted).max(initial=0))
    if found.shape != wanted.shape or not np.abs(found - wanted).max(initial=0) <= limit:
        raise Wrong(f"{what}: expected {wanted.ravel()[:8]}, got {found.ravel()[:8]}")


# -- rungs: each takes what those below have left, and gives what is to be told ------------------


def importing(at: SimpleNamespace) -> str:
    from tgraph.runtime.cuda import backend, devices

    import tgraph as tg

    at.tg, at.cupy, at.driver = tg, backend.cupy(), backend.driver()
    at.properties = devices.properties(0)
    at.device = tg.device("cuda", 0)
    at.arch = devices.architecture(at.device)
    version = at.cupy.cuda.runtime.driverGetVersion()
    return f"{at.properties.name}, {at.arch}, driver for CUDA {version}"


def transfer(at: SimpleNamespace) -> str:
    tg = at.tg
    for count in (0, 1, SIZE, 1 << 20):
        x = np.arange(count, dtype=np.float32)
        check(tg.from_numpy(x).cuda().cpu().numpy(), x, f"{count} numbers there and back")
        pinned = tg.from_numpy(x).pin_memory().to("cuda", non_blocking=True)
        back = pinned.to("cpu", non_blocking=True)
        tg.cuda.synchronize()
        check(back.numpy(), x, f"{count} pinned numbers there and back")
    return "ordinary and pinned memory"


def eager_kernel(at: SimpleNamespace) -> str:
    x = np.arange(SIZE, dtype=np.float32)
    there = at.tg.from_numpy(x).cuda()
    check((there * 2 + 1).cpu().numpy(), x * 2 + 1, "x * 2 + 1")
    check(there.sum().item(), x.sum(), "the sum", 1e-6)
    return "CuPy's"


def nvrtc_kernel(at: SimpleNamespace) -> str:
    from tgraph.runtime.cuda import nvrtc

    # Other text each time, so that no cache has it.
    cubin = nvrtc.compile_cubin(f"{KERNELS}\n/* {time.time_ns()} */\n", at.arch)
    module = at.cupy.cuda.function.Module()
    module.load(cubin)
    at.functions = {name: module.get_function(name) for name in ("rung", "turned")}
    x = np.arange(SIZE, dtype=np.float32)
    check(_launched(at, "rung", x, 8, 128), x + 1, "x + 1")
    return f"{len(cubin):,} bytes of machine code"


def _launched(
    at: SimpleNamespace, name: str, x: Any, grid: int, block: int, shared: int = 0
) -> Any:
    """What a kernel of (from, to, count) makes of an array."""
    from tgraph.runtime.cuda.launches import Launch, launch

    source, target = at.cupy.array(x), at.cupy.zeros(len(x), np.float32)
    cells = np.array([source.data.ptr, target.data.ptr, len(x)], np.int64)
    table = cells.ctypes.data + 8 * np.arange(3, dtype=np.int64)
    asked = Launch(name, at.functions[name].ptr, grid, (block, 1), shared, table.ctypes.data)
    launch(asked, at.cupy.cuda.get_current_stream().ptr)
    return target.get()


def products(at: SimpleNamespace) -> str:
    from tgraph.runtime.cuda import cublas_lt

    version = cublas_lt.load().version()
    numbers = np.random.default_rng(0)
    for name, tolerance in TOLERANCES.items():
        dtype = getattr(at.tg, name)
        a, b = (at.tg.from_numpy(numbers.standard_normal((64, 64))).to(dtype) for _ in range(2))
        wanted = a.double().numpy() @ b.double().numpy()
        found = (a.cuda() @ b.cuda()).double().cpu().numpy()
        check(found, wanted, f"a product of {name}", tolerance)
    return f"cublasLt {version}: {', '.join(TOLERANCES)}"


def eager_plans(at: SimpleNamespace) -> str:
    """Composites of eager mode, as their operations and then as one launch, without a capture."""
    tg = at.tg
    functional, numbers = tg.nn.functional, np.random.default_rng(0)
    swish = tg.fused(lambda x, slope: x / (1 + tg.exp(-slope * x)))
    for rows in (64, 100, 33):  # of which the last two compile nothing
        x = numbers.standard_normal((rows, 96)).astype(np.float32)
        here, there = tg.from_numpy(x), tg.from_numpy(x).cuda()
        odd = tg.from_numpy(np.append(0, x).astype(np.float32)).cuda()[1:].reshape(rows, 96)
        for number in range(CALLS):
            slope = 1.0 + number  # which goes along with the launch
            wanted = x / (1 + np.exp(-slope * x))
            check(swish(there, slope).cpu().numpy(), wanted, f"call {number + 1}", 1e-5)
            check(swish(odd, slope).cpu().numpy(), wanted, "what is not aligned", 1e-5)
            found = functional.softmax(there, -1), functional.softmax(here, -1)
            check(found[0].cpu().numpy(), found[1].numpy(), "softmax", 1e-5)
    return "numbers by value, and what is not aligned"


def capture(at: SimpleNamespace) -> str:
    tg = at.tg
    function = tg.compile(lambda x: tg.softmax(x @ x, -1) * 2)
    x = tg.randn(64, 64)
    there, wanted = x.cuda(), (tg.softmax(x @ x, -1) * 2).numpy()
    launched: list[Any] = []
    with _counted_graphs(launched):
        for number in range(CALLS):
            check(function(there).cpu().numpy(), wanted, f"call {number + 1}", 1e-4)
    if len(launched) != CALLS - 1:
        raise Wrong(f"{len(launched)} of {CALLS} calls were replayed, expected {CALLS - 1}")
    return f"{len(launched)} of {CALLS} calls replayed"


@contextlib.contextmanager
def _counted_graphs(launched: list[Any]) -> Any:
    """Note what plans do with graphs: CuPy's own class cannot be changed."""
    from tgraph.runtime.cuda.plan import _Frame

    run = _Frame.run

    def noted(frame: Any, addresses: Any, stream: Any) -> None:
        run(frame, addresses, stream)
        if frame.graphs.get(addresses):
            launched.append(addresses)

    _Frame.run = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        _Frame.run = run  # type: ignore[method-assign]


def failure_flag(at: SimpleNamespace) -> str:
    tg = at.tg
    table = tg.arange(10).cuda()
    look_up = tg.compile(lambda place: table[place] * 2)
    good, bad = tg.tensor([3]).cuda(), tg.tensor([10]).cuda()
    for number in range(CALLS):
        look_up(bad)
        try:
            tg.cuda.synchronize()
        except IndexError as error:
            told = str(error).split("\n")[0]
        else:
            raise Wrong(f"call {number + 1}: nobody told of the position 10 of 10")
        check(look_up(good).cpu().numpy(), [6], f"the call behind failure {number + 1}")
    return told


def control_flow(at: SimpleNamespace) -> str:
    """A loop that counts is one graph, one that looks a few; a check in it ends it."""
    tg, x = at.tg, np.linspace(0.5, 1.5, SIZE).reshape(20, -1)
    table = tg.arange(20).double().cuda()

    def counted(x: Any) -> Any:
        return tg.scan(lambda c, r: ((c * r + 1).flip(0), c.sum()), x[0], x)

    def looked(x: Any) -> Any:
        return tg.while_loop(
            lambda n, y: (y * y).sum() > 1e-3, lambda n, y: (n + 1, y.flip(0) * 0.7), (0, x)
        )

    def chosen(x: Any) -> Any:
        place = x.argmax() - x.numel() + 1  # which could fail, so that nobody computes both sides
        return tg.cond(x.sum() > 0, lambda: x[place].exp(), lambda: -x[place]), x * 2

    def checked(x: Any) -> Any:
        return tg.while_loop(lambda n, y: y >= 0, lambda n, y: (n + 1, y + table[n]), (0, x.sum()))

    here, there = tg.from_numpy(x), tg.from_numpy(x).cuda()
    graphs: list[Any] = []
    with _counted_graphs(graphs):
        for function in (counted, looked, chosen):
            compiled, wanted = tg.compile(function), function(here)
            for number in range(CALLS):
                what = f"{function.__name__}, call {number + 1}"
                for found, want in zip(compiled(there), wanted, strict=True):
                    check(found.cpu().numpy(), want.numpy(), what, 1e-9)
    try:
        tg.compile(checked)(there)
    except IndexError as error:
        told = str(error).split("\n")[0]
    else:
        raise Wrong("nobody told of the position 20 of 20 in a loop")
    if len(graphs) < 3 * (CALLS - 1):
        raise Wrong(f"{len(graphs)} of {3 * CALLS} calls had graphs")
    return told


def second_stream(at: SimpleNamespace) -> str:
    tg = at.tg
    stream = tg.cuda.Stream()
    function = tg.compile(lambda x: (x * 3).sum(0))
    for number in range(CALLS):
        x = tg.full((256, SIZE), float(number)).cuda()
        stream.wait_stream(tg.cuda.current_stream())
        with stream:
            y, z = x + 1, function(x)
        x.record_stream(stream)
        tg.cuda.current_stream().wait_stream(stream)
        check((y * 2)[0].cpu().numpy(), np.full(SIZE, 2.0 * number + 2), "an eager result")
        check(z.cpu().numpy(), np.full(SIZE, 768.0 * number), "a compiled result")
    return "eager and compiled, and back"


def shared_memory(at: SimpleNamespace) -> str:
    from tgraph.runtime.cuda.devices import ARCHITECTURES
    from tgraph.runtime.cuda.launches import allow_shared

    nbytes = min(SHARED_BYTES, ARCHITECTURES[at.arch])
    allow_shared("turned", at.functions["turned"], nbytes)
    x = np.arange(nbytes // 4, dtype=np.float32)
    check(_launched(at, "turned", x, 1, 1024, nbytes), x[::-1], "numbers through shared memory")
    return f"{nbytes:,} bytes for a block"


def training(at: SimpleNamespace) -> str:
    here, there = (_losses(at.tg, device) for device in ("cpu", at.device))
    check(there, here, "the losses of training steps", 1e-3)
    if not there[-1] < there[0]:
        raise Wrong(f"training does not lower the loss: {there}")
    return f"loss {there[0]:.3f} to {there[-1]:.3f}, as on the CPU"


def _losses(tg: Any, device: Any) -> list[float]:
    from tgraph import nn

    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
    model = model.to(device)
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-2)

    @tg.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = tg.randn(40, 20).to(device), (tg.arange(40) % 5).to(device)
    return [step(x, y).item() for _ in range(CALLS)]


Rung = tuple[str, Callable[[SimpleNamespace], str]]
RUNGS: Sequence[Rung] = (
    ("import", importing),
    ("transfer", transfer),
    ("eager kernel", eager_kernel),
    ("NVRTC kernel", nvrtc_kernel),
    ("eager plans", eager_plans),
    ("cublasLt by type", products),
    ("capture and replay", capture),
    ("failure flag of the host", failure_flag),
    ("branches and loops", control_flow),
    ("second stream", second_stream),
    ("200 KB of shared memory", shared_memory),
    ("compiled training step", training),
)


# -- climbing ------------------------------------------------------------------------------------


def climb(rungs: Sequence[Rung], hangs: float) -> bool:
    """Whether all rungs hold; each is told when it begins and when it ends."""
    at, began = SimpleNamespace(), time.perf_counter()
    for number, (name, run) in enumerate(rungs, 1):
        print(f"{number:2}/{len(rungs)}  {name:26}", end="", flush=True)
        start = time.perf_counter()
        faulthandler.dump_traceback_later(hangs, exit=True, file=sys.__stdout__)
        try:
            told = run(at)
        except Exception:
            print(f"FAILED {time.perf_counter() - start:6.2f} s", flush=True)
            print(traceback.format_exc(), flush=True)
            return False
        finally:
            faulthandler.cancel_dump_traceback_later()
        print(f"ok {time.perf_counter() - start:6.2f} s  {told}", flush=True)
    print(f"all {len(rungs)} hold, after {time.perf_counter() - began:.1f} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gpu_run.ladder", description=__doc__)
    parser.add_argument("--device", choices=("real", "fake"), default="real")
    device = parser.parse_args().device
    faulthandler.enable(file=sys.__stdout__)
    warnings.simplefilter("error", RuntimeWarning)  # such as a capture that failed
    with contextlib.ExitStack() as stack:
        if device == "fake":
            from cuda_tools.fake_device import installed

            stack.enter_context(installed(lazy=True))
        return 0 if climb(RUNGS, HANGS[device]) else 1


if __name__ == "__main__":
    sys.exit(main())
