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
from collections.abc import Mapping, Sequence
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


def environment(
    threads: int, caches: Path, settings: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The same for every contender: threads, and compilers' caches under `caches`.

    `settings` are added, and replace what is there.
    """
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
        # Last: a folder that PYTHONPATH names may hold a built tgraph, which is then meant.
        "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT)))),
        **(settings or {}),
    }


class Process:
    """One contender's process, and those that it starts itself.

    arguments: after `python -m`; settings: for the environment. It may use the first `threads`
    processors. `greet` must be called before anything is asked.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        caches: Path,
        timeout: float,
        arguments: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.import_seconds = 0.0
        self.versions: dict[str, str] = {}
        self._timeout = timeout
        self._stopped = False
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        processors = sorted(os.sched_getaffinity(0))[:threads]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", *(arguments or ("benchmarks.worker", name, str(threads)))],
            cwd=ROOT,
            env=environment(threads, caches, settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )

    def greet(self) -> None:
        """Wait until the contender is imported; MissingError if it is not installed."""
        greeting = self.answer()
        if "missing" in greeting:
            raise MissingError(greeting["missing"])
        self.import_seconds = greeting["import_seconds"]
        self.versions = greeting["versions"]

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        self.send(do, **arguments)
        return self.answer()

    def send(self, do: str, **arguments: Any) -> None:
        """Send a request; `answer` has to follow before the next."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None

    def fileno(self) -> int:
        """Readable when an answer is there, for `selectors`."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def pause(self) -> None:
        """Let nothing of it run: libraries' threads spin for a while after a call."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

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
        """End it, and what it started; a second time changes nothing."""
        if self._stopped:
            return
        self._stopped = True
        # There is nobody to be told where it has ended by itself and started nothing.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # of a request that nobody read
                stream.close()

    def _signal(self, number: int) -> None:
        """To the process and those that it started; to none once it has ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def answer(self) -> dict[str, Any]:
        """The answer to what was sent; WorkerError for a failure, or if none comes in time."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout):
                raise WorkerError(f"{self.name} did not answer for {self._timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise self._died()
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"], reply["trace"])
        return reply

    def _died(self) -> WorkerError:
        log = self._log()
        last = (log.splitlines() or ["it said nothing"])[-1]
        return WorkerError(f"{self.name} died: {last}", log)

    def _log(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-4000:]
