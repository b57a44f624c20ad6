"""The runtime's own code that is compiled while the package is installed."""

import os
import subprocess
import sys

import pytest
from sampling import rotating
from tgraph.runtime import jit, make_prebuilt, prebuilt

pytestmark = pytest.mark.skipif(
    not jit.supported_levels(), reason="objects are made ahead for x86-64 only"
)

PRODUCT = """
import numpy as np
import tgraph as tg
from tgraph.runtime import jit

rng = np.random.default_rng(0)
x, y = (rng.integers(-9, 9, (70, 70)).astype(np.float32) for _ in range(2))
found = tg.compile(lambda x, y: x @ y)(tg.tensor(x), tg.tensor(y))
assert np.array_equal(found.numpy(), x @ y)
print(jit.statistics()["compiled"])
"""


def test_an_installation_brings_them():
    """After a change of the runtime's code: ``python -m tgraph.runtime.make_prebuilt``."""
    assert make_prebuilt.is_complete()
    assert any(prebuilt.FOLDER.iterdir())


@pytest.mark.parametrize("level", rotating(["", *jit.supported_levels()], 2))
def test_a_first_product_compiles_nothing(level):
    env = {**os.environ, "TGRAPH_CACHE_DIR": "", "TGRAPH_CPU": level}
    run = subprocess.run(
        [sys.executable, "-c", PRODUCT], env=env, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    meant = level or jit.supported_levels()[-1]
    assert int(run.stdout) == (0 if meant in make_prebuilt.LEVELS else 5)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A level, one module with its key, and the file of its object in a folder of this test."""
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    level = make_prebuilt.LEVELS[0]
    source = jit.Source("define i64 @one() {\n  ret i64 1\n}\n", own=True)
    key = jit.prebuilt_key(source)
    path = prebuilt.path_of(tmp_path, level, key)
    prebuilt.put(path, jit.object_for(level, source))
    return level, key, path


def test_only_the_same_text_and_level_find_an_object(own):
    level, key, _ = own
    assert prebuilt.get(level, key).startswith(b"\x7fELF" if sys.platform == "linux" else b"")
    assert prebuilt.get(level, key + "; changed\n") is None
    assert prebuilt.get("x86-64-v4", key) is None


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "gone"])
def test_a_damaged_object_is_not_used(own, damage):
    level, key, path = own
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        changed = whole[:-1] + bytes([whole[-1] ^ 1])
        path.write_bytes({"cut": whole[:-100], "changed": changed, "empty": b""}[damage])
    assert prebuilt.get(level, key) is None


def test_objects_of_other_code_go(tmp_path, monkeypatch):
    monkeypatch.setattr(make_prebuilt, "own_sources", lambda level: iter(()))
    old = tmp_path / "old.o"
    old.write_bytes(b"old")
    assert make_prebuilt.write_objects(tmp_path) == []
    assert not old.exists()


def test_a_processor_unlike_its_level_gets_code_of_its_own(monkeypatch):
    """As the first ones with AVX-512, whose vectors are larger than those of x86-64-v3."""
    monkeypatch.setenv("TGRAPH_CPU", "x86-64-v3")
    assert jit._own_level(32) == "x86-64-v3"
    assert jit._own_level(64) == ""
