"""Checkpoints: PyTorch's files here, ours there, and what a file may hold."""

from __future__ import annotations

import io
import pickle
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn, serialization

DATA = Path(__file__).parent / "data"
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def saved(obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    tg.save(obj, file, **options)
    file.seek(0)
    return file


def same(a: Any, b: Any) -> bool:
    """Whether two objects are equal, dtypes and memory order of tensors included."""
    if isinstance(a, tg.Tensor):
        if type(a) is not type(b) or a.dtype is not b.dtype or a.stride() != b.stride():
            return False
        return a.shape == b.shape and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return type(a) is type(b) and [*a] == [*b] and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def test_a_file_of_torch() -> None:
    """And what we make of it, read again; both mapped, too."""
    first = tg.load(DATA / "torch.pt")
    again = tg.load(saved(first))
    mapped = tg.load(DATA / "torch.pt", mmap=True)
    assert same(first, again) and same(first, mapped)
    for found in (again, first, mapped):
        weight, part, row = found["weight"], found["part"], found["row"]
        assert weight.tolist() == X.tolist() and part.tolist() == X.T[1:].tolist()
        assert part.stride() == (1, 4) and part.storage_offset() == 1 and row.is_contiguous()
        weight[2, 1] = 50.0
        assert part[0, 2] == row[1] == 50.0 and weight._version == part._version
        part.fill_(-1.0)
        assert weight.tolist() == [[x, -1.0, -1.0, -1.0] for x in (0.0, 4.0, 8.0)]
        for name in DTYPES:
            each = found["dtypes"][name]
            wanted = np.arange(6).reshape(2, 3).T % 5
            assert each.dtype is getattr(tg, name) and each.stride() == (1, 3)
            assert each.tolist() == (wanted.astype(bool) if name == "bool" else wanted).tolist()
        assert type(found["parameter"]) is nn.Parameter and found["parameter"].requires_grad
        others = found["others"]
        assert type(others) is OrderedDict and others["size"] == tg.Size((3, 4))
        assert others["dtype"] is tg.float16 and others["device"] == tg.device("cpu")
        assert others["list"][:5] == [1, -2.5, True, "ü", b"bytes"]
        assert others["list"][5:] == [(1 << 70, ()), {3, 4}, 1j, bytearray(b"xy")]
        assert others["empty"].shape == (0, 3) and others["scalar"].item() == 3
    assert tg.load(DATA / "torch.pt")["weight"].tolist() == X.tolist()  # nobody wrote to the file


def test_training_goes_on_from_a_file_of_torch() -> None:
    found = tg.load(DATA / "torch.pt")
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = tg.optim.Adam(model.parameters(), lr=0.5)
    scheduler = tg.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    scheduler.load_state_dict(found["scheduler"])
    assert optimizer.param_groups[0]["lr"] == 0.25 and scheduler.step_size == 3
    model(tg.ones(2, 3)).sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 2


def test_files_of_before_1_6() -> None:
    found = tg.load(DATA / "legacy.pt")
    found["weight"][3] = 9.0
    assert found["part"].tolist() == [2.0, 9.0]
    content = (DATA / "legacy.pt").read_bytes()
    for end in range(0, len(content), 7):
        with pytest.raises(serialization.LoadError):
            tg.load(io.BytesIO(content[:end]))
    with pytest.raises(RuntimeError, match="mmap can only be used with"):
        tg.load(DATA / "legacy.pt", mmap=True)
    with pytest.raises(serialization.LoadError, match=r"tar archive.*save it again with torch"):
        tg.load(io.BytesIO(b"x" * 257 + b"ustar" + b"\0" * 300))
    with pytest.raises(serialization.LoadError, match="no checkpoint"):
        tg.load(io.BytesIO(b"x" * 148 + b"000977" + b"\0" * 400))


def test_torch_reads_our_files() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)
    scheduler = tg.optim.lr_scheduler.StepLR(optimizer, step_size=3)
    model(tg.ones(2, 3)).sum().backward()
    optimizer.step()
    pairs = tg.complex(tg.ones(2), tg.zeros(2))
    x = tg.from_numpy(X.copy())
    ours = {
        "x": x, "part": x.t()[1:], "expanded": x[0].expand(2, 4), "pairs": pairs,
        "parts": tg.view_as_real(pairs), "model": model.state_dict(), "p": model[0].weight,
        "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "size": x.shape,
        "dtype": tg.bfloat16, "device": x.device, "set": {1}, "bytes": b"\xff", "complex": 1j,
        "dtypes": {name: (tg.arange(6) % 5).to(getattr(tg, name))[1:] for name in DTYPES},
        "counter": Counter("aab"), "state": tg.get_rng_state(), "empty": tg.zeros(0, 2),
    }  # fmt: skip
    for protocol in (2, 4):
        file = saved(ours, pickle_protocol=protocol)
        found = torch.load(file, weights_only=True) if protocol == 2 else tg.load(file)
        found["x"].fill_(7.0)
        assert found["part"].unique().tolist() == found["expanded"].unique().tolist() == [7.0]
        found["pairs"].fill_(2j)
        assert found["parts"].tolist() == [[0.0, 2.0]] * 2 and found["part"].stride() == (1, 4)
        assert str(found["dtype"]).endswith("bfloat16") and found["device"].type == "cpu"
        assert found["size"] == (3, 4) and found["bytes"] == b"\xff" and found["set"] == {1}
        for name in DTYPES:
            each = found["dtypes"][name]
            assert str(each.dtype).endswith("." + name) and each.tolist() == [
                type(each[0].item())(n) for n in (1, 2, 3, 4, 0)
            ]
    found = torch.load(saved(ours), weights_only=True)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    theirs.load_state_dict(found["model"])
    their_optimizer = torch.optim.Adam(theirs.parameters())
    their_optimizer.load_state_dict(found["optimizer"])
    assert type(found["p"]) is torch.nn.Parameter and found["p"].requires_grad
    assert their_optimizer.param_groups[0]["lr"] == 0.1
    torch.optim.lr_scheduler.StepLR(their_optimizer, 1).load_state_dict(found["scheduler"])


def test_torch_maps_our_files_and_we_read_what_it_writes_now(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    path = tmp_path / "x.pt"
    tg.save({"x": tg.from_numpy(X)}, path)
    assert torch.load(path, mmap=True)["x"].tolist() == X.tolist()
    for protocol in (2, 3, 4, 5):
        for zipped in (True, False):
            options = {"pickle_protocol": protocol, "_use_new_zipfile_serialization": zipped}
            torch.save({"x": torch.from_numpy(X), "s": {1}, "b": b"y"}, path, **options)
            for weights_only in (True, False):
                found = tg.load(path, weights_only=weights_only)
                assert found["x"].tolist() == X.tolist() and found["b"] == b"y"
    torch.save(torch.nn.Linear(1, 1), path)
    for weights_only in (True, False):
        with pytest.raises(serialization.LoadError, match=r"torch\.nn\.modules\.linear\.Linear"):
            tg.load(path, weights_only=weights_only)


# --- what a file may name ----------------------------------------------------------------------


class Config:
    """A class of the user's."""

    def __init__(self, rate: float) -> None:
        self.rate = rate


class Named(tg.Tensor):
    """A tensor with attributes."""


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(2, 2)
        self.two = nn.Linear(2, 2)
        self.two.weight = self.one.weight
        self.register_buffer("first", self.one.weight.detach()[0])


def test_types_of_the_user_are_asked_for() -> None:
    file = saved({"config": Config(0.5), "model": Tied()})
    names = serialization.get_unsafe_globals_in_checkpoint(file)
    assert {f"{Config.__module__}.Config", "tgraph.nn.linear.Linear"} <= {*names}
    file.seek(0)
    with pytest.raises(serialization.LoadError, match=r"add_safe_globals.*weights_only=False"):
        tg.load(file)
    file.seek(0)
    with serialization.safe_globals([Config, Tied, nn.Linear]):
        safe = tg.load(file)
    assert serialization.get_safe_globals() == []
    file.seek(0)
    unsafe = tg.load(file, weights_only=False)
    for found in (safe, unsafe):
        model = found["model"]
        assert found["config"].rate == 0.5 and model.two.weight is model.one.weight
        with tg.no_grad():
            model.one.weight.fill_(3.0)
        assert model.first.tolist() == [3.0, 3.0]
        assert model.one(tg.ones(1, 2)).requires_grad


def test_subclasses_and_other_picklers() -> None:
    named = Named([1.0, 2.0])
    named.label = "a"
    with serialization.safe_globals([(Named, f"{Named.__module__}.Named")]):
        found = tg.load(saved([named, named]))
    assert type(found[0]) is Named and found[0] is found[1] and found[0].label == "a"
    x = tg.ones(2, 3)
    again = pickle.loads(pickle.dumps([x, x[1]]))
    again[1].fill_(4.0)
    assert again[0].tolist() == [[1.0] * 3, [4.0] * 3]

    class Module:
        """As another module with a pickler of its own."""

        __name__ = "another"
        Pickler, Unpickler = pickle.Pickler, pickle.Unpickler

    file = saved([x, x[1]], pickle_module=Module)
    assert same(tg.load(file), [x, x[1]])
    file.seek(0)
    assert same(tg.load(file, pickle_module=Module), [x, x[1]])
    file.seek(0)
    with pytest.raises(RuntimeError, match="pickle_module"):
        tg.load(file, pickle_module=Module, weights_only=True)


def test_generators_and_dicts() -> None:
    generator = tg.Generator().manual_seed(5)
    tg.rand(2, generator=generator)
    lists: defaultdict[str, list[int]] = defaultdict(list, a=[1])
    metadata = OrderedDict(a=1)
    metadata._metadata = {"version": 1}  # type: ignore[attr-defined]
    found = tg.load(saved([generator, generator.get_state(), lists, metadata, frozenset({2})]))
    again = tg.Generator()
    again.set_state(found[1])
    wanted = tg.rand(3, generator=generator).tolist()
    assert tg.rand(3, generator=found[0]).tolist() == wanted
    assert tg.rand(3, generator=again).tolist() == wanted
    assert found[2]["b"] == [] and found[3]._metadata == {"version": 1} and found[4] == {2}
    with pytest.raises(RuntimeError, match="manual_seed"):
        again.set_state(tg.zeros(5056, dtype=tg.uint8))


# --- where and how ------------------------------------------------------------------------------


def test_map_location() -> None:
    file, seen = saved({"x": tg.ones(2), "y": tg.zeros(3)}), []

    def choose(storage: Any, location: str) -> Any:
        seen.append((storage.nbytes(), location))
        return storage if len(storage) == 8 else None

    for where in (None, "cpu", tg.device("cpu"), {"cuda:0": "cpu"}, choose):
        file.seek(0)
        assert tg.load(file, map_location=where)["x"].tolist() == [1.0, 1.0]
    assert seen == [(8, "cpu"), (12, "cpu")]
    file.seek(0)
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        tg.load(file, map_location={"cpu": "cuda:7"})
    file.seek(0)
    with pytest.raises(TypeError, match="map_location must be"):
        tg.load(file, map_location=3)


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    tg.save(path, {"x": tg.ones(1)})  # the path may come first
    assert tg.load(str(path))["x"].tolist() == [1.0]
    with path.open("rb") as file:
        assert tg.load(file)["x"].tolist() == [1.0]

    class Slow:
        """A file that knows no `readinto`, and gives little at once."""

        def __init__(self, file: Any) -> None:
            self.seek, self.tell = file.seek, file.tell
            self.read = lambda size: file.read(min(size, 100))

    with path.open("rb") as file:
        assert tg.load(Slow(file))["x"].tolist() == [1.0]
    with pytest.raises(TypeError, match="a path or a file"):
        tg.save(tg.ones(1), 3)
    with pytest.raises(ValueError, match="path of a file"):
        tg.load(saved(1), mmap=True)
    with pytest.raises(AttributeError, match="BytesIO"):
        tg.load(iter(()))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        tg.load(path, wrong=1)
    with pytest.raises(FileNotFoundError):
        tg.load(tmp_path / "none.pt")
    with pytest.raises(NotImplementedError, match="zip format"):
        tg.save(1, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("name", ["views.pt", "legacy_views.pt"])
def test_conjugated_and_negated_views_of_pytorch_have_their_signs(name: str) -> None:
    found = tg.load(DATA / name)
    assert found["conj"].tolist() == found["parameter"].tolist() == [1 - 2j, 3 + 1j]
    assert found["neg"].tolist() == [-2.0, 1.0]
    assert found["adjoint"].tolist() == [[1 - 2j], [3 + 1j]]
    assert found["parameter"].requires_grad and found["parameter"].is_leaf
