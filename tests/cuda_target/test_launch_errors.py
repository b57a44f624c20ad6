"""What goes wrong with launches and captures: told with its cause, and not for good."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from cuda_tools import fake_cupy, shim
from cuda_tools.fake_cupy.devices import Graph
from cuda_tools.fake_device import installed
from tgraph.runtime.cuda import backend, capture
from tgraph.runtime.cuda.launches import LaunchError

import tgraph as tg

CALLS = 4
CUDARuntimeError = fake_cupy.cupy.cuda.runtime.CUDARuntimeError


@pytest.fixture(autouse=True)
def machine() -> Iterator[Any]:
    """The stand-in, of which failures can be ordered."""
    if shim.available() is not None:
        pytest.skip(shim.available())
    with installed(lazy=True) as made:
        yield made
        made.refused.clear()
        made.deadly.clear()
        made.broken = 0


def softmax_of_product(x: Any) -> Any:
    return tg.softmax(x @ x, -1)


def kernel_of(function: Any, *args: Any) -> Any:
    """The one launch of a function, as its program has it."""
    (launch,) = tg.cuda.program(function, *(each.cpu() for each in args)).launches
    return launch


# -- launches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", range(2))
def test_a_launch_that_fails_is_named(machine: Any, before: int) -> None:
    x = tg.randn(64, 64).cuda()
    launch = kernel_of(softmax_of_product, x)
    function = tg.compile(softmax_of_product)
    for _ in range(before):
        function(x)
    machine.refused[launch.name] = 701
    with pytest.raises(LaunchError) as caught:
        function(x)
    rows, columns = launch.block
    for part in (
        f"kernel {launch.name}, {launch.grid} blocks of {rows} x {columns} threads, ",
        " bytes of shared memory: ",
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch",
    ):
        assert part in str(caught.value)


def test_shared_memory_is_told_in_all(machine: Any) -> None:
    """What the kernel declares, and what it asks for beside that."""

    def function(x: Any) -> Any:
        return tg.softmax(x, -1)

    x = tg.randn(300, 20_000).cuda()
    program = tg.cuda.program(function, x.cpu())
    (launch,) = program.launches
    assert launch.shared > 48 << 10
    machine.refused[launch.name] = 1
    with pytest.raises(LaunchError, match=f"{program.shared[launch.name]:,} bytes of shared mem"):
        tg.compile(function)(x)


def test_shared_memory_that_a_block_cannot_have(machine: Any, monkeypatch: Any) -> None:
    def refuse(function: int, attribute: int, value: int) -> None:
        raise fake_cupy.driver.CUDADriverError(1)

    monkeypatch.setattr(fake_cupy.driver, "funcSetAttribute", refuse)
    x = tg.randn(300, 20_000).cuda()
    with pytest.raises(LaunchError, match=r"kernel \w+ cannot have [\d,]+ bytes of shared memory"):
        tg.compile(lambda x: tg.softmax(x, -1))(x)


def test_a_lost_device_still_names_the_launch(machine: Any) -> None:
    x = tg.randn(64, 64).cuda()
    function = tg.compile(lambda x: x * 2 + 1)
    function(x)
    machine.broken = 700
    with pytest.raises(LaunchError, match=r"kernel \w+, .*ILLEGAL_ADDRESS"):
        function(x)


def test_a_kernel_of_eager_mode_that_fails_is_named(machine: Any) -> None:
    x = tg.randn(8, 4).cuda()
    gelu = tg.nn.functional.gelu
    for _ in range(2):
        gelu(x)
    tg.cuda.synchronize()
    machine.refused.update(dict.fromkeys(machine.launches, 701))
    with pytest.raises(LaunchError, match=r"kernel \w+, 1 blocks of .*: CUDA_ERROR_LAUNCH"):
        gelu(x)


# -- synchronised launches -----------------------------------------------------------------------


def two_steps(x: Any) -> Any:
    return tg.softmax(x, -1) @ x


def test_synchronised_launches_tell_which_step_failed(machine: Any, monkeypatch: Any) -> None:
    x = tg.randn(64, 64).cuda()
    launch = kernel_of(two_steps, x)
    tg.cuda.synchronize()
    machine.deadly[launch.name] = 700
    with pytest.raises(CUDARuntimeError):  # somewhere behind the call, and nobody knows of what
        tg.compile(two_steps)(x)
        tg.cuda.synchronize()
    machine.broken = 0
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", "1")
    with pytest.raises(LaunchError, match=rf"step 0, kernel {launch.name}, .*IllegalAddress"):
        tg.compile(two_steps)(x)


def test_what_failed_before_is_not_the_first_steps_fault(machine: Any, monkeypatch: Any) -> None:
    x = tg.randn(64, 64).cuda()
    function, gelu = tg.compile(two_steps), tg.nn.functional.gelu
    for _ in range(2):
        before = len(machine.launches)
        gelu(x)  # whose plan waits for nothing
        tg.cuda.synchronize()
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", "1")
    kernels = machine.launches[before:]
    function(x)
    machine.deadly.update(dict.fromkeys(kernels, 700))
    gelu(x)
    with pytest.raises(CUDARuntimeError, match="IllegalAddress"):
        function(x)


def test_synchronised_launches_wait_and_capture_nothing(machine: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", "1")
    x = tg.randn(64, 64).cuda()
    function = tg.compile(two_steps)
    begun = []
    monkeypatch.setattr(
        fake_cupy.cupy.cuda.Stream, "begin_capture", lambda *args: begun.append(args)
    )
    for _ in range(CALLS):
        before = machine.sync_count
        function(x)
        assert machine.sync_count - before == 3  # before the first step and behind both
    assert not begun


@pytest.mark.parametrize("value", ["", "0"])
def test_synchronised_launches_can_be_off(value: str, machine: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", value)
    x = tg.randn(8, 8).cuda()
    function = tg.compile(two_steps)
    tg.cuda.synchronize()
    before = machine.sync_count
    for _ in range(CALLS):
        function(x)
    assert machine.sync_count == before


def test_synchronised_launches_tell_of_failed_checks_at_once(monkeypatch: Any) -> None:
    monkeypatch.setenv("TGRAPH_CUDA_SYNC", "1")
    table = tg.randn(10, 4).cuda()
    look_up = tg.compile(lambda at: table[at] * 2)
    good, bad = tg.tensor([1]).cuda(), tg.tensor([10]).cuda()
    look_up(good)
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        look_up(bad)
    assert look_up(good).shape == (1, 4)


# -- captures ------------------------------------------------------------------------------------


def warned(function: Any, *args: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function(*args)
    # Without memory garbage is collected, and that of other tests may have warnings of its own.
    told = [each for each in caught if each.category is RuntimeWarning]
    return found, [str(each.message) for each in told]


CAUSES = {
    "begin": ("cudaErrorInvalidValue", "before it began"),
    "launch": ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorStreamCaptureInvalidated"),
    "invalid": ("cudaErrorStreamCaptureInvalidated",),
    "end": ("cudaErrorMemoryAllocation", "when it ended"),
    "first launch": ("cudaErrorMemoryAllocation", "when it was launched"),
    "workspace": ("OutOfMemoryError", "before it began"),
}


def order(cause: str, monkeypatch: Any, launch: Any) -> None:
    """Let the next capture fail."""
    stream, machine = fake_cupy.cupy.cuda.Stream, fake_cupy.machine
    begin, end = stream.begin_capture, stream.end_capture

    def failing(status: int) -> Any:
        def raise_it(*args: Any) -> None:
            raise CUDARuntimeError(status)

        return raise_it

    def begin_and_refuse(self: Any, mode: Any = None) -> None:
        begin(self, mode)
        if cause == "launch":
            machine.refused[launch.name] = 701
        else:
            machine.stream(self.ptr).capture.invalid = True

    def end_and_accept(self: Any) -> Any:
        machine.refused.clear()
        return end(self)

    def end_and_fail(self: Any) -> Any:
        end(self)
        raise CUDARuntimeError(2)

    match cause:
        case "begin":
            monkeypatch.setattr(stream, "begin_capture", failing(1))
        case "launch" | "invalid":
            monkeypatch.setattr(stream, "begin_capture", begin_and_refuse)
            monkeypatch.setattr(stream, "end_capture", end_and_accept)
        case "end":
            monkeypatch.setattr(stream, "end_capture", end_and_fail)
        case "first launch":
            monkeypatch.setattr(Graph, "launch", failing(2))
        case "workspace":
            monkeypatch.setattr(capture.Capture, "__init__", without_room(capture.Capture.__init__))


def without_room(made: Any) -> Any:
    """Captures whose workspaces find no memory."""

    def make(self: Any, device: Any) -> None:
        made(self, device)
        at_least = self.workspaces.at_least

        def refuse(nbytes: int, device: int, stream: int) -> int:
            if stream == self.stream.ptr:
                raise fake_cupy.cupy.cuda.memory.OutOfMemoryError(nbytes, 0)
            return int(at_least(nbytes, device, stream))

        self.workspaces.at_least = refuse

    return make


@pytest.mark.parametrize("cause", CAUSES)
def test_a_failed_capture_is_told_once_and_done_without(cause: str, monkeypatch: Any) -> None:
    x = tg.randn(64, 64)
    there, want = x.cuda(), softmax_of_product(x).tolist()
    launch = kernel_of(softmax_of_product, x)
    function = tg.compile(softmax_of_product)
    order(cause, monkeypatch, launch)
    function(there)
    result, told = warned(function, there)
    (message,) = told
    assert "could not be captured" in message
    for part in CAUSES[cause]:
        assert part in message
    for _ in range(CALLS):
        again, told = warned(function, there)
        assert not told
    for each in (result, again):
        assert tg.allclose(each.cpu(), tg.tensor(want), atol=1e-5)
    with tg.cuda.Stream() as stream:  # of the same plan
        stream.wait_stream(tg.cuda.default_stream())
        for _ in range(CALLS):
            again, told = warned(function, there)
            assert not told
        assert tg.allclose(again.cpu(), tg.tensor(want), atol=1e-5)


def test_other_plans_are_captured_still(monkeypatch: Any) -> None:
    x = tg.randn(64, 64).cuda()
    first, second = tg.compile(softmax_of_product), tg.compile(two_steps)
    with monkeypatch.context() as patch:
        order("launch", patch, kernel_of(softmax_of_product, x))
        first(x)
        _, told = warned(first, x)
        assert len(told) == 1
    launched = []
    at_once = Graph.launch
    monkeypatch.setattr(
        Graph, "launch", lambda graph, stream=None: launched.append(at_once(graph, stream))
    )
    for _ in range(CALLS):
        second(x)
    assert len(launched) == CALLS - 1


def test_a_launch_that_fails_in_a_capture_and_without(machine: Any) -> None:
    """The error of the launch, behind that of the capture."""
    x = tg.randn(64, 64).cuda()
    function = tg.compile(softmax_of_product)
    function(x)
    machine.refused[kernel_of(softmax_of_product, x).name] = 701
    with pytest.raises(LaunchError) as caught:
        function(x)
    text = "".join(traceback.format_exception(caught.value))
    assert "CaptureError" in text and "StreamCaptureInvalidated" in text
    machine.refused.clear()
    assert function(x).shape == (64, 64)


def test_an_interrupt_ends_the_capture(monkeypatch: Any) -> None:
    x = tg.randn(64, 64)
    there, want = x.cuda(), softmax_of_product(x)
    function = tg.compile(softmax_of_product)
    function(there)
    at_once = backend.driver().launchKernel

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(backend.driver(), "launchKernel", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(there)
    assert at_once is backend.driver().launchKernel
    for _ in range(CALLS):
        found, told = warned(function, there)
        assert not told and tg.allclose(found.cpu(), want, atol=1e-5)
