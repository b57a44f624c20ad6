"""Datasets, samplers and DataLoader: values, order, workers, errors, and how processes end."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.utils import data
from tgraph.utils.data import DataLoader, TensorDataset

Point = namedtuple("Point", ["x", "label"])


class Records(data.Dataset[Any]):
    """Examples of every kind that is collated; large ones travel in shared memory."""

    def __init__(self, count: int = 11, size: int = 3, bad: int | None = None) -> None:
        self.count, self.size, self.bad = count, size, bad

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        if at == self.bad:
            raise KeyError(f"no example {at}")
        worker = data.get_worker_info()
        return {
            "tensor": tg.full((self.size,), float(at)), "array": np.full((2, self.size), at),
            "pair": (at, float(at)), "point": Point(at, str(at)), "flag": at % 2 == 0,
            "worker": -1 if worker is None else worker.id,
            "drawn": [tg.rand(()).item(), float(np.random.rand())],
        }  # fmt: skip


class Numbers(data.IterableDataset[int]):
    """The numbers below `count`, shared among workers unless each `gives_all`."""

    def __init__(self, count: int, gives_all: bool = False) -> None:
        self.count, self.gives_all = count, gives_all

    def __iter__(self) -> Iterator[int]:
        worker = None if self.gives_all else data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(range(first, self.count, step))


def failing(worker: int) -> None:
    raise OverflowError(f"cannot begin {worker}")


def flat(lists: Iterable[list[int]]) -> list[int]:
    return [*itertools.chain.from_iterable(lists)]


def seen(loader: Any) -> list[list[int]]:
    return [batch["array"][:, 0, 0].tolist() for batch in loader]


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (3, {}),
        (3, {"num_workers": 2, "multiprocessing_context": "fork"}),
        (9_000, {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}),
        (9_000, {"num_workers": 1, "multiprocessing_context": "spawn"}),
    ],
)
def test_batches_of_every_kind(size: int, options: dict[str, Any]) -> None:
    batches = list(DataLoader(Records(size=size), batch_size=4, **options))
    assert [len(each["flag"]) for each in batches] == [4, 4, 3]
    first = batches[0]
    assert first["tensor"].shape == (4, size) and first["tensor"].dtype == tg.float32
    assert tg.equal(first["tensor"][:, 1], tg.arange(4).float())
    assert first["array"].dtype == tg.int64 and first["array"].shape == (4, 2, size)
    assert [each.dtype for each in first["pair"]] == [tg.int64, tg.float64]
    assert type(first["point"]) is Point and first["point"].label == ("0", "1", "2", "3")
    assert first["flag"].tolist() == [True, False, True, False]
    assert {each for batch in batches for each in batch["worker"].tolist()} == set(
        range(options.get("num_workers", 0)) or [-1]
    )
    first["tensor"] += 1  # shared memory is the reader's own
    assert first["tensor"][0, 0] == 1 and batches[1]["tensor"][0, 0] == 4


def test_order_and_what_is_left_out() -> None:
    assert seen(DataLoader(Records(), 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(DataLoader(Records(), 4, drop_last=True)) == 2 and len(DataLoader(Records(), 4)) == 3
    assert seen(DataLoader(Records(), batch_sampler=[[3, 1], [2]])) == [[3, 1], [2]]
    assert seen(DataLoader(Records(), 2, sampler=[5, 4, 9])) == [[5, 4], [9]]
    single = DataLoader(Records(3), batch_size=None)
    assert [each["array"].shape for each in single] == [(2, 3)] * 3
    generator = tg.Generator().manual_seed(3)
    loader = DataLoader(Records(), 4, shuffle=True, generator=generator)
    orders = [seen(loader), seen(loader)]
    assert orders[0] != orders[1] and all(
        sorted(flat(order)) == list(range(11)) for order in orders
    )
    generator.manual_seed(3)
    assert [seen(loader), seen(loader)] == orders
    generator.manual_seed(3)
    workers = DataLoader(Records(), 4, shuffle=True, generator=generator, num_workers=2)
    assert [seen(workers), seen(workers)] == orders


def test_iterable_datasets() -> None:
    for workers, wanted in ((0, [[0, 1, 2], [3, 4, 5], [6]]), (2, [[0, 2, 4], [1, 3, 5], [6]])):
        loader = DataLoader(Numbers(7), 3, num_workers=workers)
        assert [each.tolist() for each in loader] == wanted
    everything = DataLoader(Numbers(5, gives_all=True), 2, num_workers=2, drop_last=True)
    counts = Counter(flat(each.tolist() for each in everything))
    assert counts == dict.fromkeys(range(4), 2)
    assert list(DataLoader(Numbers(0), 2, num_workers=2)) == []
    chained = Numbers(2) + Numbers(1)
    assert [each.tolist() for each in DataLoader(chained, 2)] == [[0, 1], [0]]


def test_persistent_workers_serve_each_loop_whole() -> None:
    loader = DataLoader(
        Records(), 2, num_workers=2, persistent_workers=True, shuffle=True, in_order=False
    )
    processes = set()
    for _ in range(3):
        assert sorted(flat(seen(loader))) == list(range(11))
        left = iter(loader)
        next(left)
        assert loader._workers is not None
        processes.add(tuple(each.pid for each in loader._workers.workers.processes))
        del left  # the rest of what was asked for is dropped
    assert len(processes) == 1
    old, new = iter(loader), iter(loader)
    next(new)
    with pytest.raises(RuntimeError, match="a later one has the workers"):
        next(old)


def test_workers_draw_numbers_of_their_own() -> None:
    tg.manual_seed(5)
    loader = DataLoader(Records(8), 1, num_workers=2)
    first = [tuple(float(part) for part in each["drawn"]) for each in loader]
    assert len(set(first)) == 8 and len({each[1] for each in first}) == 8
    tg.manual_seed(5)
    assert [tuple(float(part) for part in each["drawn"]) for each in loader] == first


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_come_with_their_traceback(workers: int) -> None:
    loader = iter(DataLoader(Records(bad=3), 2, num_workers=workers))
    next(loader)
    with pytest.raises(KeyError, match="no example 3") as caught:
        next(loader)
    if workers:
        text = str(caught.value)
        assert "Caught KeyError in DataLoader worker process 1." in text
        assert "in __getitem__" in text and "\n" in text
        assert next(loader)["flag"].tolist() == [True, False]  # the loop can go on


def test_other_failures_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tgraph.utils.data.workers._PATIENCE", 0.2)
    with pytest.raises(OverflowError, match="cannot begin 0"):
        next(iter(DataLoader(Records(), num_workers=1, worker_init_fn=failing)))
    with pytest.raises(RuntimeError, match=r"in DataLoader worker process 0(.|\n)*pickle"):
        next(iter(DataLoader(Records(), num_workers=1, collate_fn=lambda batch: lambda: 1)))

    def killed(batch: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"worker \(pid\(s\) \d+ \(exit code -9\)\) exited"):
        next(iter(DataLoader(Records(), num_workers=1, collate_fn=killed)))
    with pytest.raises(RuntimeError, match=r"timed out after 0\.1 seconds"):
        next(iter(DataLoader(Records(), num_workers=1, timeout=0.1,
                             collate_fn=lambda batch: time.sleep(30))))  # fmt: skip


PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told to ignore it
import tgraph as tg
from tgraph.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, at):
        time.sleep(0.01)
        return tg.zeros(50_000)
if __name__ == "__main__":
    loader = iter(DataLoader(Slow(), 2, num_workers=2, prefetch_factor=4))
    next(loader)
    workers = loader._used.workers.processes
    print(*[each.pid for each in workers], flush=True)
    for _ in loader:
        pass
"""


def _is_running(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc for the state of processes")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_loader(ending: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C goes to all processes of a terminal; a kill to one."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        workers = [int(each) for each in program.stdout.readline().split()]
        assert len(workers) == 2 and all(map(_is_running, workers))
        if ending is signal.SIGINT:
            os.killpg(program.pid, ending)
        else:
            program.kill()
        _, errors = program.communicate(timeout=60)
        assert program.returncode in (-ending, 130, 1)
        assert errors.count("Traceback") == (ending is signal.SIGINT)  # none of a worker
        end = time.monotonic() + 60
        while any(map(_is_running, workers)):
            assert time.monotonic() < end, "workers are still there"
            time.sleep(0.05)


def test_samplers() -> None:
    generator = tg.Generator().manual_seed(1)
    drawn = list(data.RandomSampler(range(4), replacement=True, num_samples=1000))
    assert len(drawn) == 1000 and set(drawn) == {0, 1, 2, 3}
    assert len(list(data.RandomSampler(range(4), num_samples=9))) == 9
    weighted = data.WeightedRandomSampler([0.0, 3.0, 1.0], 2000, generator=generator)
    counts = Counter(weighted)
    assert counts[0] == 0 and 2 < counts[1] / counts[2] < 4.5
    assert sorted(data.SubsetRandomSampler([7, 5, 9])) == [5, 7, 9]
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    with pytest.raises(ValueError, match="batch_size should be a positive integer"):
        data.BatchSampler(range(5), 0, False)


def test_datasets_of_datasets() -> None:
    rows = TensorDataset(tg.arange(10.0), tg.arange(10) * 2)
    both = rows + rows
    assert len(both) == 20 and both[13] == (tg.tensor(3.0), tg.tensor(6)) == both[-7]
    with pytest.raises(IndexError):
        both[20]
    part = data.Subset(rows, [4, 2, 0])
    again = data.Subset(part, [2, 1])
    for each in (DataLoader(again, 2), DataLoader(again, 2, collate_fn=data.default_collate)):
        ((x, y),) = list(each)
        assert x.tolist() == [0.0, 2.0] and y.tolist() == [0, 4]

    class Doubled(TensorDataset):
        """What it is derived from reads rows at once; its own examples are others."""

        rows = ("not", "ours")

        def __getitem__(self, at: Any) -> Any:
            return tuple(each * 2 for each in super().__getitem__(at))

    doubled = Doubled(tg.arange(3), tg.arange(3))
    for each in (doubled, data.Subset(doubled, [0, 1, 2])):
        ((x, y),) = list(DataLoader(each, 3))
        assert x.tolist() == y.tolist() == [0, 2, 4]
    named = data.StackDataset(a=rows, b=range(10))
    assert named[3]["b"] == 3 and [each["b"] for each in named.__getitems__([1, 2])] == [1, 2]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        empty = data.random_split(range(2), [1.0, 0.0])
    assert [len(each) for each in empty] == [2, 0]
    parts = data.random_split(range(10), [3, 7], generator=tg.Generator().manual_seed(1))
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        data.random_split(range(10), [3, 6])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"timeout": -1}, "timeout option should be non-negative"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DataLoader(Records(), **options)


def test_other_errors() -> None:
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Numbers(3), shuffle=True)
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        DataLoader(Records()).batch_size = 3
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays"):
        data.default_collate([object()])
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(DataLoader(Records(2), pin_memory=True))


def test_batches_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    examples: list[list[Any]] = [
        [1, 2], [1.5, 2.5], [True, False], ["a", "b"], [b"a", b"b"], [np.float32(1), np.float32(2)],
        [np.arange(3), np.arange(3)], [(1, "a"), (2, "b")], [[1, 2.0], [3, 4.0]],
        [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}], [Point(1, 2), Point(3, 4)],
        [np.array(3), np.array(4)], [range(3), range(3)],
    ]  # fmt: skip

    def plain(value: Any) -> Any:
        if isinstance(value, (tg.Tensor, torch.Tensor)):
            return value.tolist(), str(value.dtype).split(".")[-1]
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [plain(each) for each in value]
        return value

    for batch in examples:
        theirs = torch.utils.data.default_collate(batch)
        assert plain(data.default_collate(batch)) == plain(theirs), batch
        one = torch.utils.data.default_convert(batch[0])
        assert plain(data.default_convert(batch[0])) == plain(one), batch


def test_each_epoch_has_an_order_of_its_own() -> None:
    """Without a generator the seed of all tensors tells them."""
    dataset = TensorDataset(tg.arange(64))

    def epochs() -> list[list[int]]:
        tg.manual_seed(5)
        loader = DataLoader(dataset, shuffle=True, batch_size=64)
        return [next(iter(loader))[0].tolist() for _ in range(2)]

    first, second = epochs()
    assert first != second and sorted(first) == sorted(second) == list(range(64))
    assert epochs() == [first, second]
