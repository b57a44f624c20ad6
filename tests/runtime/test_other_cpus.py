"""What `make cpus` sets makes this machine one of another level."""

import os
import subprocess
import sys

import cpus
import pytest
from tgraph.runtime import jit

CHILD = """
from numpy._core import _multiarray_umath as core
from tgraph.runtime import jit
used = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
print(jit.vector_bytes(), *used)
"""


@pytest.mark.parametrize("level", jit.LEVELS)
def test_settings_are_taken(monkeypatch, level):
    if level not in jit.supported_levels():
        pytest.skip(f"this machine is not {level}")
    for name in cpus.settings(level):
        monkeypatch.delenv(name, raising=False)
    chosen = cpus.settings(level)
    command = [sys.executable, "-W", "error", "-c", CHILD]
    found = subprocess.run(
        command, env={**os.environ, **chosen}, check=True, capture_output=True, text=True
    ).stdout.strip()
    size, *features = found.split()
    assert int(size) == {"x86-64-v3": 32, "x86-64-v4": 64}.get(level, 16)
    assert not set(features) & set(chosen.get("NPY_DISABLE_CPU_FEATURES", "").split())


def test_what_the_environment_sets_stays(monkeypatch):
    monkeypatch.delenv("TGRAPH_CPU", raising=False)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert cpus.settings("x86-64")["OPENBLAS_CORETYPE"] == "Zen"
    assert cpus.settings("x86-64")["TGRAPH_CPU"] == "x86-64"
