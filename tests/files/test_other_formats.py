"""safetensors, NumPy's files and HDF5, known by the ends of names."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_checkpoints import same

import tgraph as tg
from tgraph.serialization import LoadError

X = tg.arange(6.0).reshape(2, 3)
NAMED = {
    "x": X, "turned": X.t(), "scalar": tg.tensor(2, dtype=tg.int8), "empty": tg.zeros(0, 3),
    "truth": X > 2, "pairs": tg.complex(X, X), "half": X.half(), "wide": X.double(),
    "unsigned": X.to(tg.uint32),
}  # fmt: skip


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return sorted(a) == sorted(b) and all(same(a[name], b[name].contiguous()) for name in a)


@pytest.mark.parametrize("end", ["safetensors", "npz", "h5", "hdf5"])
def test_there_and_back(end: str, tmp_path: Path) -> None:
    if end in ("h5", "hdf5"):
        pytest.importorskip("h5py", reason="HDF5 files need h5py, which is not installed")
    path = tmp_path / f"x.{end}"
    tg.save(path, NAMED)
    assert equal(tg.load(path), NAMED) and equal(tg.load(path, map_location="cpu"), NAMED)
    if end == "safetensors":
        tg.save({**NAMED, "short": X.bfloat16()}, path)
        assert tg.load(path)["short"].dtype is tg.bfloat16
        assert equal(tg.load(path, mmap=True), {**NAMED, "short": X.bfloat16()})
    else:
        with pytest.raises(TypeError, match=r"bfloat16 'short'.*safetensors"):
            tg.save({"short": X.bfloat16()}, path)
    with pytest.raises(TypeError, match="a dict of tensors, got list"):
        tg.save([X], path)
    with pytest.raises(TypeError, match="got int under 'n'"):
        tg.save({"n": 1}, path)
    with pytest.raises(TypeError, match="map_location"):
        tg.load(path, map_location=lambda storage, place: storage)


def test_others_read_what_we_write(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    tg.save(NAMED, path)
    with np.load(path) as found:
        assert all(found[name].tolist() == each.tolist() for name, each in NAMED.items())
    for save in (np.savez, np.savez_compressed):
        save(path, x=X.numpy(), turned=X.t().numpy(), big=X.numpy().astype(">f4"))
        assert tg.load(path)["turned"].tolist() == tg.load(path)["x"].t().tolist() == X.t().tolist()
        assert tg.load(path)["big"].tolist() == X.tolist()
    tg.save(X.t(), tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == X.t().tolist()
    for mapped in (False, True):
        assert tg.load(tmp_path / "x.npy", mmap=mapped).tolist() == X.t().tolist()
    with pytest.raises(TypeError, match=r"one tensor, got dict; use \.npz"):
        tg.save(NAMED, tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(LoadError, match="Python objects"):
        tg.load(tmp_path / "x.npy")


@pytest.mark.skipif(find_spec("safetensors") is None, reason="safetensors is not installed")
def test_safetensors_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "x.safetensors"
    plain = {name: each for name, each in NAMED.items() if name != "pairs"}
    tg.save(plain, path)
    found = load_file(path)
    assert all(found[name].tolist() == each.tolist() for name, each in plain.items())
    save_file(found, path, metadata={"by": "others"})
    assert equal(tg.load(path), plain)


def test_hdf5_has_groups_and_follows_no_links(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py, which is not installed")
    path = tmp_path / "x.h5"
    tg.save({"model": {"a": X, "b": {"c": X}}, "d": X}, path)
    assert tg.load(path)["model"]["b"]["c"].tolist() == X.tolist()
    with h5py.File(path, "a") as file:
        file["outside"] = h5py.ExternalLink("/etc/passwd", "/")
    with pytest.raises(LoadError, match="link"):
        tg.load(path)
    path.write_bytes(b"no such file")
    with pytest.raises(LoadError, match="HDF5"):
        tg.load(path)


def header(shape: str, kind: str = "<f4") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        header("(0, 9223372036854775808)"), header(f"({'0, ' * 70})"), header("(2,)"),
        header("(-1, -1)"), header("(True,)"), header("(0,)", "O"), header("(0,)", "f16"),
        header("()", "no type"), header("(" * 300), b"\x93NUMPY\1\0\xff\xff",
    ],
    ids=range(10),
)  # fmt: skip
def test_headers_of_numpy_that_make_no_sense(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(LoadError):
        tg.load(tmp_path / "x.npy")


def test_hdf5_files_that_mean_harm(tmp_path: Path) -> None:
    """What lies in many groups is read once; nothing lies in itself, or is made of nothing."""
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py, which is not installed")
    path = tmp_path / "links.h5"
    with h5py.File(path, "w") as file:
        file.create_group("0")["x"] = np.arange(3.0)
        for at in range(1, 40):
            group = file.create_group(str(at))
            group["a"] = group["b"] = file[str(at - 1)]
    found = tg.load(path)
    assert found["39"]["a"] is found["39"]["b"]
    found = found["39"]
    for _ in range(39):
        found = found["a"]
    assert found["x"].tolist() == [0.0, 1.0, 2.0]
    with h5py.File(tmp_path / "circle.h5", "w") as file:
        group = file.create_group("0/1")
        group["again"] = file["0"]
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_group("/".join("0" * 200))
    with h5py.File(tmp_path / "sparse.h5", "w") as file:
        file.create_dataset("a", (1 << 31,), "u1", chunks=(1 << 20,), compression="gzip")
    with h5py.File(tmp_path / "type.h5", "w") as file:
        file["a"] = np.dtype("f8")
    for name, text in (
        ("circle", "lies in itself"), ("deep", "more than 100 groups in each other"),
        ("sparse", "has 2,147,483,648 bytes, in a file of"), ("type", "holds no numbers"),
    ):  # fmt: skip
        with pytest.raises(LoadError, match=text):
            tg.load(tmp_path / f"{name}.h5")


def test_without_h5py_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ImportError, match=r"tgraph\[files\]"):
        tg.save({"x": X}, tmp_path / "x.h5")
    assert not [*tmp_path.iterdir()]


def table(**entries: Any) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("end", ["safetensors", "npz", "npy"])
def test_damage(end: str, tmp_path: Path) -> None:
    path, source = tmp_path / f"x.{end}", random.Random(4)
    tg.save(X if end == "npy" else {"x": X, "y": X[0]}, path)
    content = path.read_bytes()
    for at in range(0, len(content), 11):
        path.write_bytes(content[:at])
        with pytest.raises(LoadError):
            tg.load(path)
        damaged = bytearray(content)
        damaged[at] ^= 1 << source.randrange(8)
        path.write_bytes(damaged)
        with suppress(LoadError):
            tg.load(path)
    place = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for wrong in (
        table(a={**place, "shape": [1 << 60]}), table(a={**place, "shape": [-2, -1]}),
        table(a={"dtype": "F32", "shape": [0, 1 << 63], "data_offsets": [0, 0]}),
        table(a={**place, "dtype": "F8"}), table(a={**place, "data_offsets": [0, 1 << 60]}),
        table(a=place, b=place), table(a=3), table(a={"dtype": "F32"}), b"\xff" * 8,
        (200_000).to_bytes(8, "little") + b"[" * 200_000, table(a=place)[:-1] + b',"a":1}',
    ):  # fmt: skip
        if end == "safetensors":
            path.write_bytes(wrong + bytes(8))
            with pytest.raises(LoadError):
                tg.load(path)
