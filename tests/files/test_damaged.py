"""Files that are cut off, damaged, or mean harm: equal values or a LoadError, and nothing else."""

from __future__ import annotations

import io
import random
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from test_checkpoints import same, saved

import tgraph as tg
from tgraph import nn
from tgraph.serialization import LoadError, archive
from tgraph.serialization.archive import Archive, ArchiveWriter
from tgraph.serialization.sources import FileSource

DATA = Path(__file__).parent / "data"
X = tg.arange(6.0).reshape(2, 3)
SMALL = {"x": X, "part": X.t()[1:], "p": nn.Parameter(tg.ones(2)), "more": [1, 2.5, {"a"}, b"b"]}
RECORDS = {"version": b"3\n", "data/0": bytes(24)}


def packed(records: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    archive = ArchiveWriter(file)
    for name, content in records.items():
        archive.record(name, content)
    archive.close()
    return file.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    archive = Archive(FileSource(io.BytesIO(content)))
    return {name.partition("/")[2]: bytes(archive.read(name)) for name in archive.entries}


def tried(content: bytes) -> Any:
    """What a file gives; None where it is refused as it should be."""
    started = time.perf_counter()
    try:
        return tg.load(io.BytesIO(content))
    except LoadError:
        return None
    finally:
        assert time.perf_counter() - started < 5


def test_damage_is_found() -> None:
    """A bit of a name or a date may change; no value does."""
    source, wanted = random.Random(1), tg.load(saved(SMALL))
    content = saved(SMALL).getvalue()
    whole = tg.load(DATA / "torch.pt")
    large = (DATA / "torch.pt").read_bytes()
    for end in range(0, len(content), 9):
        assert tried(content[:end]) is None
    found = 0
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 1 << source.randrange(8)
        result = tried(bytes(damaged))
        found += result is None
        assert result is None or same(result, wanted)
    assert found > len(content) // 8
    for at in range(0, len(large), 251):
        damaged = bytearray(large)
        damaged[at] ^= 1 << source.randrange(8)
        result = tried(bytes(damaged))
        assert result is None or same(result, whole)


def mutated(content: bytes, source: random.Random) -> bytes:
    """Instructions left out, changed, or written twice."""
    found = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 5))):
        at, other = source.randrange(len(found)), source.randrange(len(found))
        match source.randrange(3):
            case 0:
                found[at] = source.randrange(256)
            case 1:
                del found[at : at + source.randrange(1, 8)]
            case 2:
                found[at:at] = found[other : other + source.randrange(1, 30)]
    return bytes(found)


def test_pickles_with_right_checksums_that_make_no_sense() -> None:
    source, records = random.Random(2), unpacked(saved(SMALL).getvalue())
    legacy, refused = (DATA / "legacy.pt").read_bytes(), 0
    for _ in range(250):
        refused += (
            tried(packed({**records, "data.pkl": mutated(records["data.pkl"], source)})) is None
        )
        tried(mutated(legacy, source))
    assert refused > 60


def short(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


STORAGE = (
    b"(" + short("storage") + b"ctorch\nFloatStorage\n" + short("0") + short("cpu") + b"K\x06tQ"
)


def tensor(
    offset: bytes = b"K\x00", size: bytes = b"K\x06\x85", stride: bytes = b"K\x01\x85"
) -> bytes:
    start = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE
    return start + offset + size + stride + b"\x89ccollections\nOrderedDict\n)RtR"


HUGE = b"\x8a\x08" + b"\xff" * 7 + b"\x3f"
DOUBLED = b")" + b"".join(b"q\x00h\x00\x86" for _ in range(80))  # a tuple of 2**80 parts


def chain(place: int) -> bytes:
    """A set of pairs of a set and a number, whose set is such a set, and so on."""
    keep = b"q" + bytes([place]) + b"0"
    get = b"h" + bytes([place])
    pair = get + b"K\x00\x86" + get + b"K\x01\x86"
    return b"(K\x05\x91" + keep + (b"(" + pair + b"\x91" + keep) * 40


HARMFUL = {
    "a memo of gigabytes": b"Nr\xff\xff\xff\xff)b.",
    "a string of gigabytes": b"\x8e" + struct.pack("<Q", 1 << 60) + b"x.",
    "a text of gigabytes": b"X\xff\xff\xff\xffx.",
    "an integer of megabytes": b"\x8b\xff\xff\xff\x00" + b"\xff" * 5000 + b".",
    "a key that takes forever": b"}" + DOUBLED + b"Ns.",
    "a set that takes forever": b"\x8f(" + DOUBLED + b"\x90.",
    "sets that share sets": chain(1) + chain(2) + b"(h\x01h\x02\x91.",
    "numbers of one hash": b"}(" + b"".join(
        b"\x8a\x0a" + (at * (2**61 - 1)).to_bytes(10, "little") + b"N" for at in range(100)
    ) + b"u.",
    "numbers of one hash in a set": b"\x8f(" + b"".join(
        b"\x8a\x0a" + (at * (2**61 - 1)).to_bytes(10, "little") for at in range(100)
    ) + b"\x90.",
    "dicts by default in each other": b"ccollections\ndefaultdict\nq\x000N\x85q\x010"
    + b"h\x00h\x01RN" * 60000 + b"N" + b"s" * 60000 + b".",
    "a size of gigabytes": b"cbuiltins\nbytearray\n\x8a\x06\0\0\0\0\0\x01\x85R.",
    "copies": b"cbuiltins\nset\nq\x00]q\x01(" + b"N" * 3000 + b"e00" + b"h\x00h\x01\x85R0" * 900
    + b"N.",
    "copies by new objects": b"cbuiltins\nset\nq\x00]q\x01(" + b"N" * 3000 + b"e00"
    + b"h\x00h\x01\x85\x810" * 900 + b"N.",
    "a command": b"cos\nsystem\n" + short("touch /tmp/harm") + b"\x85R.",
    "a way to all": b"cbuiltins\ngetattr\n.",
    "code": b"cbuiltins\neval\n" + short("1") + b"\x85R.",
    "a call of a value": short("x") + b")R.",
    "a class of tensors": b"ctorch\nTensor\n)\x81.",
    "attributes of a list": b"]}b.",
    "a method of a list": b"]K\x01\x85N\x86b.",
    "elements behind the end": tensor(size=b"K\x07\x85") + b".",
    "metadata that is not known": tensor()[:-2] + b"}" + short("spin") + b"\x88stR.",
    "elements before the start": tensor(offset=b"J\xff\xff\xff\xff") + b".",
    "negative strides": tensor(stride=b"J\xff\xff\xff\xff\x85") + b".",
    "huge strides": tensor(size=b"K\x02\x85", stride=HUGE + b"\x85") + b".",
    "huge sizes": tensor(size=HUGE + b"\x85", stride=b"K\x00\x85") + b".",
    "sizes without strides": tensor(stride=b")") + b".",
    "another storage": b"(" + short("storage") + b"ctorch\nFloatStorage\n" + short("1")
    + short("cpu") + b"K\x06tQ.",
    "a large storage": STORAGE.replace(b"K\x06", b"\x8a\x07" + b"\xff" * 6 + b"\x0f") + b".",
    "no storage": b"NQ.",
    "nothing": b".", "no end": b"N", "a mark": b"(.", "two values": b"NN.",
    "old instructions": b"I1\n.", "an unknown protocol": b"\x80\x09N.",
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_harm(name: str) -> None:
    """Without much memory or time."""
    content = packed({**RECORDS, "data.pkl": b"\x80\x02" + HARMFUL[name]})
    started = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(LoadError):
            tg.load(io.BytesIO(content))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 5


def test_archives_that_lie() -> None:
    good = packed({**RECORDS, "data.pkl": b"\x80\x02" + tensor() + b"."})
    assert tg.load(io.BytesIO(good)).tolist() == [0.0] * 6
    start = good.rfind(b"PK\x05\x06")
    directory = int.from_bytes(good[start + 16 : start + 20], "little")
    large = (1 << 31).to_bytes(4, "little")
    for entry in range(3):
        at = directory
        for _ in range(entry):
            at = good.index(b"PK\x01\x02", at + 1)
        for place in (20, 24, 42):  # the sizes, and where it begins
            lying = bytearray(good)
            lying[at + place : at + place + 4] = large
            assert tried(bytes(lying)) is None
    first, second = directory + 42, good.index(b"PK\x01\x02", directory + 1) + 42
    shared = bytearray(good)
    shared[second : second + 4] = shared[first : first + 4]
    assert tried(bytes(shared)) is None
    for records in ({"data.pkl": b"N."}, {"version": b"3"}, {**RECORDS, "constants.pkl": b""}):
        assert tried(packed(records)) is None
    for version in (b"0", b"11", b"x"):
        assert tried(packed({"data.pkl": b"N.", "version": version})) is None
    assert tried(packed({"data.pkl": b"N.", "version": b"3", "byteorder": b"odd"})) is None
    for content in (b"", b"PK", b"text\n", b"\x80\x02N."):
        assert tried(content) is None


def test_archives_of_more_than_four_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose numbers have other places, from a size on that is lower here."""
    monkeypatch.setattr(archive, "_FULL32", 200)
    monkeypatch.setattr(archive, "_FULL16", 2)
    large = {"x": tg.arange(100.0), "y": X, "z": tg.zeros(50)}
    content = saved(large).getvalue()
    assert content.count(b"PK\x06\x07") == 1
    assert same(tg.load(io.BytesIO(content)), large)
    for end in range(len(content) - 150, len(content), 3):
        assert tried(content[:end]) is None


def test_the_other_order_of_bytes() -> None:
    records = unpacked(saved({"x": X, "z": tg.complex(X, X)}).getvalue())
    for name in ("data/0", "data/1"):
        values = struct.unpack(f"<{len(records[name]) // 4}f", records[name])
        records[name] = struct.pack(f">{len(values)}f", *values)
    found = tg.load(io.BytesIO(packed({**records, "byteorder": b"big"})))
    assert same(found, {"x": X, "z": tg.complex(X, X)})


def test_a_storage_of_the_other_order_has_one_type() -> None:
    pickle = b"\x80\x02](" + tensor() + tensor().replace(b"FloatStorage", b"HalfStorage") + b"e."
    content = {**RECORDS, "data.pkl": pickle}
    assert [each.dtype for each in tg.load(io.BytesIO(packed(content)))] == [tg.float32, tg.float16]
    with pytest.raises(LoadError, match="is read as two types"):
        tg.load(io.BytesIO(packed({**content, "byteorder": b"big"})))


def test_records_that_share_bytes_are_refused() -> None:
    content = bytearray(packed({"data/0": bytes(24), "data/1": bytes(24)}))
    one = content.find(b"PK\x01\x02")
    other = content.find(b"PK\x01\x02", one + 4)
    content[other + 42 : other + 46] = content[one + 42 : one + 46]  # where the record lies
    with pytest.raises(LoadError, match="overlap"):
        Archive(FileSource(io.BytesIO(bytes(content))))
