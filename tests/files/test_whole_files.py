"""Files are written whole or not at all, whenever the process that writes them dies."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import tgraph as tg

KILLED = """
import os, random, signal, sys, time
import tgraph as tg

path, source = sys.argv[1], random.Random(3)
OLD, NEW = tg.zeros(1 << 16), tg.ones(1 << 16)


def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    # A file whose process dies at one of the writes.
    def __init__(self, file, left):
        self.file, self.left = file, left

    def write(self, content):
        self.left -= 1
        if not self.left:
            self.file.write(content[: len(content) // 2])
            self.file.flush()
            die()
        return self.file.write(content)


def dies_at_write(number):
    from tgraph.serialization import checkpoint
    write = checkpoint.write
    checkpoint.write = lambda obj, file, *rest: write(obj, Dying(file, number), *rest)


def dies_at(name):
    setattr(os, name, die)


def dies_later():
    while True:  # until the parent's signal
        tg.save({"x": source.choice((OLD, NEW))}, path)


def outcome(prepare, *args, wait=None):
    tg.save({"x": OLD}, path)
    child = os.fork()
    if not child:
        prepare(*args)
        tg.save({"x": NEW}, path)
        os._exit(0)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    found = tg.load(path)["x"]
    assert tg.equal(found, OLD) or tg.equal(found, NEW)
    return os.WIFSIGNALED(status), "new" if tg.equal(found, NEW) else "old"


tg.save({"x": OLD}, path)
import tgraph.serialization.checkpoint
for number in (1, 5, 12):
    assert outcome(dies_at_write, number) == (True, "old"), number
assert outcome(dies_at, "fsync") == (True, "old")
assert outcome(dies_at, "replace") == (True, "old")
for _ in range(5):
    assert outcome(dies_later, wait=source.random() * 0.02)[0]
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process, which this system cannot")
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path / "x.pt")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.stdout == "done\n", run.stderr


def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    tg.save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        tg.save([tg.ones(3), lambda: 1], path)
    with (
        mock.patch("os.replace", side_effect=OSError("full")),
        pytest.raises(OSError, match="full"),
    ):
        tg.save(2, path)
    assert tg.load(path) == 1 and sorted(os.listdir(tmp_path)) == ["link.pt", "x.pt"]
    tg.save(3, link)
    assert link.is_symlink() and tg.load(path) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    tg.save(4, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
