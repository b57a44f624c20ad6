"""The disk cache: what is stored comes back, what is damaged does not, nothing ever fails."""

import errno
import multiprocessing
import os

import pytest
from tgraph.runtime import cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def only_file(folder):
    (path,) = folder.glob("*.bin")
    return path


def test_returns_what_was_stored():
    assert cache.get("a") is None
    cache.put("a", b"one")
    cache.put("b", b"")
    assert cache.get("a") == b"one"
    assert cache.get("b") == b""
    cache.put("a", b"two")
    assert cache.get("a") == b"two"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:10],
        lambda content: b"",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: b"older 1\n" + content[8:],
        lambda content: content + b"x",
    ],
)
def test_damaged_entry_is_dropped_and_can_be_rebuilt(folder, damage):
    cache.put("key", b"content")
    path = only_file(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get("key") is None
    assert not path.exists()
    cache.put("key", b"content")
    assert cache.get("key") == b"content"


def test_entry_of_another_key_is_not_taken(folder):
    cache.put("a", b"content")
    path = only_file(folder)
    cache.put("b", b"other")
    (other,) = set(folder.glob("*.bin")) - {path}
    os.replace(path, other)
    assert cache.get("b") is None


def test_unusable_folder_costs_only_the_cache(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(blocked / "cache"))
    cache.put("key", b"content")
    assert cache.get("key") is None
    cache.prune()


def test_read_only_folder_still_serves(folder, monkeypatch):
    cache.put("key", b"content")

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "read-only file system")

    really_open = os.open

    def open_to_read(path, flags, *args, **options):
        return (refuse if flags & os.O_CREAT else really_open)(path, flags, *args, **options)

    for name in ("mkdir", "replace", "link", "unlink", "utime"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(os, "open", open_to_read)
    cache.put("key", b"other")
    cache.put("new", b"content")
    assert cache.get("key") == b"content"
    assert cache.get("new") is None
    only_file(folder).write_bytes(b"damaged")
    assert cache.get("key") is None


def test_without_a_home_there_is_no_cache(monkeypatch):
    """A process of an unknown user, as in many containers."""
    monkeypatch.delenv("TGRAPH_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache.folder() is None
    cache.put("key", b"content")
    assert cache.get("key") is None


def test_only_file_system_errors_are_swallowed(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ZeroDivisionError):
        cache.put("key", b"content")


def test_failed_write_leaves_no_temporary_file(folder, monkeypatch):
    def fail(*_, **__):
        raise PermissionError

    monkeypatch.setattr(os, "replace", fail)
    cache.put("key", b"content")
    assert [path.name for path in folder.iterdir()] == [cache.SECRET]
    monkeypatch.setattr(os, "link", fail)
    (folder / cache.SECRET).unlink()
    cache.put("key", b"content")
    assert list(folder.iterdir()) == []


def test_empty_setting_turns_the_cache_off(monkeypatch):
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "")
    cache.put("key", b"content")
    assert cache.folder() is None
    assert cache.get("key") is None


def test_default_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("TGRAPH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "tgraph"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "tgraph"


def test_prune_drops_what_was_unused_longest(folder):
    for number in range(8):
        cache.put(str(number), bytes(1000))
    for number, path in enumerate(sorted(folder.glob("*.bin"))):
        os.utime(path, (number, number))
    assert cache.get("3") is not None  # a use makes it young again
    cache.prune(5000)
    assert 2 <= len(list(folder.glob("*.bin"))) <= 4
    assert cache.get("3") == bytes(1000)


def test_prune_leaves_files_of_others_alone(folder):
    """The folder may be one that the user has other things in."""
    cache.put("key", b"content")
    for name in ("model.bin", "notes.tmp", "0" * 40 + ".txt"):
        (folder / name).write_bytes(bytes(9000))
        os.utime(folder / name, (0, 0))
    cache.prune(0)
    assert {path.name for path in folder.iterdir()} == {
        cache.SECRET, "model.bin", "notes.tmp", "0" * 40 + ".txt"
    }  # fmt: skip


def test_prune_passes_over_what_is_no_file(folder):
    for number in range(4):
        cache.put(str(number), bytes(1000))
    loop, inner = ("0" * 40 + ".bin", "1" * 40 + ".bin")
    (folder / loop).symlink_to(loop)
    (folder / inner).mkdir()
    cache.prune(4000)
    assert 1 <= len([path for path in folder.glob("*.bin") if path.is_file()]) <= 2
    assert (folder / loop).is_symlink() and (folder / inner).is_dir()


def test_puts_keep_the_folder_within_its_limit(folder, monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 20_000)
    for number in range(200):
        cache.put(str(number), bytes(1000))
    assert len(list(folder.glob("*.bin"))) < 20 + 64
    assert cache.get("199") == bytes(1000)


def hammer(seed):
    for number in range(100):
        key = str((number * (seed + 1)) % 7)
        found = cache.get(key)
        assert found is None or found == key.encode() * 5000, "torn entry"
        cache.put(key, key.encode() * 5000)


def test_concurrent_processes_never_see_a_torn_entry(folder):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=hammer, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert not list(folder.glob("*.tmp"))
