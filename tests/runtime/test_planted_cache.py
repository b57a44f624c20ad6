"""What others put into the cache is never run: folders, entries and secrets that are not ours."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from rows import check_rows
from tgraph.runtime import cache

STRANGER = 4711
CONTENT = b"machine code"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    where = tmp_path / "cache"
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(where))
    monkeypatch.setattr(cache, "_warned", set())
    cache.put("key", CONTENT)
    assert cache.get("key") == CONTENT
    yield where
    where.chmod(0o700)


def entry(folder: Path) -> Path:
    (path,) = folder.glob("*.bin")
    return path


def belongs_to_a_stranger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.lchown(path, STRANGER, STRANGER)
        return
    really, status = os.fstat, os.lstat(path)  # only root can give files away

    def fstat(descriptor: int) -> os.stat_result:
        found = really(descriptor)
        if found.st_ino != status.st_ino:
            return found
        return os.stat_result((*found[:4], STRANGER, STRANGER, *found[6:]))

    monkeypatch.setattr(os, "fstat", fstat)


def assert_not_used(reason: str) -> None:
    """Nothing comes out, and one warning tells why, however often the cache is asked."""
    with pytest.warns(RuntimeWarning, match=reason) as told:
        for _ in range(3):
            assert cache.get("key") is None
    assert len(told) == 1


# --- folders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
def test_folders_that_others_can_write(folder: Path, mode: int) -> None:
    before = entry(folder).read_bytes()
    folder.chmod(mode)
    assert_not_used("others can write it")
    with warnings.catch_warnings(action="error"):
        cache.put("key", b"other")
        cache.put("another", b"other")
        cache.prune(0)
    assert entry(folder).read_bytes() == before


def test_folders_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belongs_to_a_stranger(folder, monkeypatch)
    assert_not_used(f"belongs to user {STRANGER}")
    cache.put("another", b"other")
    assert len(list(folder.glob("*.bin"))) == 1


def test_the_way_out_of_the_warning_works(folder: Path) -> None:
    folder.chmod(0o775)
    assert_not_used("chmod go-w")
    folder.chmod(folder.stat().st_mode & ~0o022)
    assert cache.get("key") == CONTENT


def test_a_folder_may_be_reached_by_a_link(folder: Path, tmp_path: Path) -> None:
    """What counts is the folder itself: home directories and caches often lie elsewhere."""
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert cache.get("key") == CONTENT


def test_new_folders_belong_to_the_user_alone(folder: Path) -> None:
    shutil.rmtree(folder)
    before = os.umask(0)
    try:
        cache.put("key", CONTENT)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert cache.get("key") == CONTENT


def test_a_warning_that_is_an_error_is_told_to_everyone(folder: Path) -> None:
    """The first to meet it may be a thread whose errors nobody sees."""
    folder.chmod(0o777)
    with warnings.catch_warnings(action="error"):
        for _ in range(2):
            with pytest.raises(RuntimeWarning, match="others can write it"):
                cache.get("key")


# --- entries --------------------------------------------------------------------------------------


def replaced_by_a_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def replaced_by_a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_a_huge_file(path: Path) -> None:
    os.truncate(path, 1 << 40)  # a sparse one


Planted = dict[str, tuple[Callable[[Path], None], str]]
"""How something is planted, and what the warning says."""
REFUSED: Planted = {
    "link": (replaced_by_a_link, "is a link"),
    "link to /dev/zero": (replaced_by_a_device, "is a link"),
    "pipe": (replaced_by_a_pipe, "no regular file"),
    "folder": (replaced_by_a_folder, "no regular file"),
    "huge file": (replaced_by_a_huge_file, "1099511627776 bytes"),
    "file for all": (lambda path: path.chmod(0o666), "others can write it"),
    "file for a group": (lambda path: path.chmod(0o660), "others can write it"),
}

BAD_SECRETS: Planted = {
    "link": (replaced_by_a_link, "is a link"),
    "link to /dev/zero": (replaced_by_a_device, "is a link"),
    "pipe": (replaced_by_a_pipe, "no regular file"),
    "folder": (replaced_by_a_folder, "no regular file"),
    "huge file": (replaced_by_a_huge_file, "1099511627776 bytes"),
    "written by a group": (lambda path: path.chmod(0o620), "others can write it"),
    "read by others": (lambda path: path.chmod(0o604), "others can read it"),
}

# In a process of its own, as a pipe would hang and /dev/zero never end.
ASK = """
import json, os, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from tgraph.runtime import cache
for folder in sys.argv[1:]:
    os.environ["TGRAPH_CACHE_DIR"] = folder
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = [repr(cache.get("key")) for _ in range(2)]
    print(json.dumps([folder, found, [str(each.message) for each in told]]), flush=True)
"""

Answer = tuple[list[str], list[str]]
"""What a cache gave when it was asked twice, and the warnings meanwhile."""


def ask(folders: Sequence[Path]) -> dict[Path, Answer]:
    """What another process gets from each cache; the output of a hanging one ends before it."""
    command = [sys.executable, "-c", ASK, *map(str, folders)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return {Path(folder): (found, told) for folder, found, told in answers}


def planted(
    table: Planted, place: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[Path, str]:
    """A cache for each row, in which something is planted, and the reason of its warning."""
    reasons = {}
    for name, (plant, reason) in table.items():
        folder = tmp_path / f"{place.__name__} {name.replace('/', ' ')}"
        monkeypatch.setenv("TGRAPH_CACHE_DIR", str(folder))
        cache.put("key", CONTENT)
        plant(place(folder))
        reasons[folder] = reason
    return reasons


def secret(folder: Path) -> Path:
    return folder / cache.SECRET


def test_entries_and_secrets_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_entries = planted(REFUSED, entry, tmp_path, monkeypatch)
    of_secrets = planted(BAD_SECRETS, secret, tmp_path, monkeypatch)
    answers = ask([*of_entries, *of_secrets])

    def check(folder: Path) -> None:
        found, told = answers[folder]
        assert found == ["None"] * 2 and len(told) == 1
        assert {**of_entries, **of_secrets}[folder] in told[0]
        assert folder in of_entries or cache.SECRET in told[0]

    check_rows([*of_entries, *of_secrets], check, lambda folder: folder.name)
    replaced = [
        folder
        for folder, reason in of_entries.items()
        if reason != "no regular file" or entry(folder).is_fifo()
    ]
    for folder in replaced:
        monkeypatch.setenv("TGRAPH_CACHE_DIR", str(folder))
        cache.put("key", CONTENT)  # takes the place of what was there
    assert len(replaced) == len(REFUSED) - 1
    assert ask(replaced) == dict.fromkeys(replaced, ([repr(CONTENT)] * 2, []))


def test_entries_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belongs_to_a_stranger(entry(folder), monkeypatch)
    assert_not_used(f"belongs to user {STRANGER}")


def test_sockets_are_no_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = entry(folder).name
    entry(folder).unlink()
    monkeypatch.chdir(folder)  # addresses of sockets are short
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(name)
        assert cache.get("key") is None


@pytest.mark.parametrize("size", [0, 7, 8, 39, 40, 41, 45])
def test_truncated_entries(folder: Path, size: int) -> None:
    os.truncate(entry(folder), size)
    assert cache.get("key") is None
    assert not list(folder.glob("*.bin"))


def test_an_entry_that_another_cache_signed(folder: Path, tmp_path: Path, monkeypatch) -> None:
    """A valid object, by who does not know this folder's secret."""
    other = tmp_path / "other"
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(other))
    cache.put("key", b"planted")
    assert cache.get("key") == b"planted"
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(folder))
    shutil.copy(entry(other), entry(folder))
    assert cache.get("key") is None


def test_an_entry_under_another_name(folder: Path) -> None:
    """A valid object of this very cache in place of another one."""
    path = entry(folder)
    cache.put("other", b"other machine code")
    (other,) = set(folder.glob("*.bin")) - {path}
    shutil.copy(other, path)
    assert cache.get("key") is None
    assert cache.get("other") == b"other machine code"


def test_a_digest_that_anyone_can_compute(folder: Path) -> None:
    """Knowing all but the secret, as who reads the source does."""
    path = entry(folder)
    digest = cache._digest(bytes(32), "key", b"planted")
    path.write_bytes(path.read_bytes()[:8] + digest + b"planted")
    assert cache.get("key") is None


@pytest.mark.parametrize("cut", [("ab", b"c"), ("a", b"bc"), ("abc", b"")])
def test_key_and_content_are_told_apart(cut: tuple[str, bytes]) -> None:
    others = {("ab", b"c"), ("a", b"bc"), ("abc", b"")} - {cut}
    assert cache._digest(bytes(32), *cut) not in {cache._digest(bytes(32), *o) for o in others}


def test_too_large_an_object_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRY_BYTES", 1000)
    for size in (960, 961):
        cache.put(str(size), bytes(size))
    assert cache.get("960") == bytes(960) and cache.get("961") is None
    assert len(list(folder.glob("*.bin"))) == 2


# --- the secret -----------------------------------------------------------------------------------


def test_secrets_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belongs_to_a_stranger(folder / cache.SECRET, monkeypatch)
    assert_not_used(f"belongs to user {STRANGER}")
    cache.put("another", b"other")
    assert len(list(folder.glob("*.bin"))) == 1


@pytest.mark.parametrize("content", [b"", b"short", bytes(33), None])
def test_damaged_secrets_are_made_anew(folder: Path, content: bytes | None) -> None:
    """All entries are lost then, and no harm is done."""
    secret = folder / cache.SECRET
    if content is None:
        secret.unlink()
    else:
        secret.write_bytes(content)
    assert cache.get("key") is None
    cache.put("key", CONTENT)
    assert cache.get("key") == CONTENT
    assert len(secret.read_bytes()) == 32 and secret.stat().st_mode & 0o777 == 0o600


def test_without_links_secrets_are_made_all_the_same(folder: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("this file system has no links")

    monkeypatch.setattr(os, "link", refuse)
    shutil.rmtree(folder)
    cache.put("key", CONTENT)
    assert cache.get("key") == CONTENT
    assert sorted(path.suffix for path in folder.iterdir()) == ["", ".bin"]


WORKERS = 4


def put_at_once(number: int, start: Barrier, folders: Sequence[Path]) -> None:
    for folder in folders:
        os.environ["TGRAPH_CACHE_DIR"] = str(folder)
        start.wait(60)
        cache.put(f"of {number}", b"%d" % number)
        assert cache.get(f"of {number}") in (b"%d" % number, None)


def test_processes_that_come_first_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One secret remains, and where it was not there before, all entries hold."""
    new = [tmp_path / f"new {number}" for number in range(8)]
    damaged = [tmp_path / f"damaged {number}" for number in range(8)]
    for folder in damaged:
        folder.mkdir(mode=0o700)
        (folder / cache.SECRET).touch(0o600)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WORKERS)
    args = start, [*new, *damaged]
    workers = [context.Process(target=put_at_once, args=(n, *args)) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * WORKERS
    for folder in (*new, *damaged):
        monkeypatch.setenv("TGRAPH_CACHE_DIR", str(folder))
        found = [cache.get(f"of {number}") for number in range(WORKERS)]
        for number, each in enumerate(found):
            missing = (None,) if folder in damaged else ()
            assert each in (b"%d" % number, *missing), folder
        assert not list(folder.glob("*.tmp")), folder


# --- machine code ---------------------------------------------------------------------------------

# Each line of the input is asked for by a fork, which has compiled nothing yet.
COMPILE = """
import os, sys, warnings
import llvmlite.binding
import tgraph as tg
import tgraph.compiled.compiled_function, tgraph.compiler.targets.cpu.target
from tgraph.runtime import jit
def compiled():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = tg.compile(lambda x: (x * 3 + 1).sum())(tg.arange(5.)).item()
    counts = jit.statistics()
    print(found, counts["compiled"] > 0, counts["from_disk"] > 0, len(told), flush=True)
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        compiled()
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        print("failed", flush=True)
"""


@pytest.fixture
def compiled(folder: Path) -> Iterator[Callable[[], str]]:
    """Compiles a function in a new process and gives the result, and what it was made of."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", COMPILE], **pipes) as process:

        def answer() -> str:
            process.stdin.write("\n")
            process.stdin.flush()
            return str(process.stdout.readline().strip())

        yield answer
        process.stdin.close()


def test_planted_objects_are_not_run(folder: Path, compiled: Callable[[], str]) -> None:
    shutil.rmtree(folder)
    assert compiled() == "35.0 True False 0"
    assert compiled() == "35.0 False True 0"
    folder.chmod(0o777)
    assert compiled() == "35.0 True False 1"
    folder.chmod(0o700)
    assert compiled() == "35.0 False True 0"
    entries = sorted(folder.glob("*.bin"))
    contents = [path.read_bytes() for path in entries]
    for path, content in zip(entries, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)  # each under the name of another
    assert compiled() == "35.0 True False 0"
    if os.geteuid() == 0:
        for path in folder.glob("*.bin"):
            os.chown(path, STRANGER, STRANGER)
        assert compiled() == "35.0 True False 1"
        assert compiled() == "35.0 False True 0"
