"""Start a worker, talk to it, stop it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
# Settings of the surroundings that slow one contender or another, or favour those installed with
# their modules compiled.
UNWANTED = (
    "PYTHONDONTWRITEBYTECODE",
    "OPENBLAS_",
    "MKL_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "XLA_",
    "JAX_",
    "TORCH",
    "TGRAPH_",
)
KEPT = ("OMP_PROC_BIND",)


class WorkerError(Exception):
    """What a worker answered or did instead of answering; `trace` has the details."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class MissingError(WorkerError):
    """The contender is not installed."""


def environment(threads: int, caches: Path) -> dict[str, str]:
    """The same for every contender: threads, and compilers' caches under `caches`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not name.startswith(UNWANTED)
    }
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TGRAPH_NUM_THREADS")
    return {
        **inherited,
        **dict.fromkeys(counts, str(threads)),
        "TGRAPH_CACHE_DIR": str(caches / "tgraph"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "JAX_COMPILATION_CACHE_DIR": str(caches / "jax"),
        # Else JAX would keep only what took more than a second to compile.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
    }


class Process:
    """One contender's process."""

    def __init__(self, name: str, threads: int, caches: Path, timeout: float) -> None:
        self.name = name
        self._timeout = timeout
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        processors = sorted(os.sched_getaffinity(0))[:threads]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(threads)],
            cwd=ROOT,
            env=environment(threads, caches),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )
        try:
            greeting = self._answer()
        except WorkerError:
            self.stop()
            raise
        if "missing" in greeting:
            self.stop()
            raise MissingError(greeting["missing"])
        self.import_seconds: float = greeting["import_seconds"]
        self.versions: dict[str, str] = greeting["versions"]

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(f"{self.name} died", self._log()) from None
        return self._answer()

    def pause(self) -> None:
        """Let nothing of it run: libraries' threads spin for a while after a call."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._process.send_signal(signal.SIGCONT)

    def hurry(self, on: bool) -> None:
        """Let its threads run before those of all other programs, which needs root's rights."""
        policy, priority = (os.SCHED_RR, 1) if on else (os.SCHED_OTHER, 0)
        for thread in os.listdir(f"/proc/{self._process.pid}/task"):
            # Threads may end meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))

    def cpu_seconds(self) -> float:
        """Processor time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout):
                raise WorkerError(f"{self.name} did not answer for {self._timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name} died", self._log())
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"], reply["trace"])
        return reply

    def _log(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-4000:]
