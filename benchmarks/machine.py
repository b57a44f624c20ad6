"""What the measurements ran on."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

from .process import ROOT


def describe(threads: int) -> dict[str, str]:
    """Processor, memory, system, date and commit, as text."""
    return {
        "cpu": _cpu(),
        "cores": f"{os.cpu_count()}, of which {threads} used by every contender",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
    }


def _cpu() -> str:
    info: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        info[name.strip()] = value.strip()
    vectors = "AVX-512" if "avx512f" in info.get("flags", "") else "AVX2"
    model = f"family {info.get('cpu family', '?')} model {info.get('model', '?')}"
    return f"{info.get('model name', 'unknown')} ({model}, {vectors})"


def git(*arguments: str) -> bytes:
    """What git answers; CalledProcessError where it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _commit() -> str:
    if os.environ.get("TGRAPH_COMMIT"):  # of a checkout without the data of git
        return os.environ["TGRAPH_COMMIT"]
    try:
        changed = git(
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "tgraph",
            "compiler",
            "runtime",
            "benchmarks",
        )
        commit = git("rev-parse", "--short", "HEAD").decode().strip()
        return commit + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
