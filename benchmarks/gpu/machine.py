"""What the device is."""

from __future__ import annotations

import subprocess

from .. import machine

QUERY = "name,driver_version,memory.total"


def describe(device: str, threads: int) -> dict[str, str]:
    """The machine as `machine.describe` tells it, with its GPU and driver in front."""
    return {**(_gpu() if device == "cuda" else {"gpu": "none"}), **machine.describe(threads)}


def _gpu() -> dict[str, str]:
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return {"gpu": f"unknown ({error})"}
    name, driver, memory = (part.strip() for part in done.stdout.strip().split(","))
    return {"gpu": f"{name}, {memory}", "driver": driver}
