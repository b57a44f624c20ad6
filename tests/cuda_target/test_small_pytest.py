"""The stand-in for pytest, with which `make gpu` runs where pytest is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpu_run import command, report, small_pytest

TESTS = Path(__file__).parent.parent

SAMPLE = """
import warnings
from enum import Enum
from pathlib import Path

import pytest

LOG = Path(__file__).with_suffix(".log")


def log(text):
    with LOG.open("a") as file:
        print(text, file=file)


class Color(Enum):
    RED = 1


class Plain:
    pass


@pytest.fixture
def simple():
    log("make simple")
    yield 7
    log("end simple")


@pytest.fixture
def outer(simple):
    log("make outer")
    yield simple + 1
    log("end outer")


@pytest.fixture(autouse=True)
def always():
    log("make always")
    yield
    log("end always")


@pytest.fixture(scope="session")
def once():
    log("make once")
    return []


@pytest.fixture(params=["a", pytest.param("b", marks=pytest.mark.skip(reason="not b"))])
def letter(request, simple):
    return request.param * simple


@pytest.fixture(params=[1, 2], ids=["one", "two"], name="number")
def _number(request):
    request.addfinalizer(lambda: log(f"finalized {request.param}"))
    return request.param


@pytest.fixture
def broken():
    raise KeyError("in the fixture")


@pytest.fixture
def ends_badly():
    yield
    raise OSError("at the end")


@pytest.fixture
def skips():
    pytest.skip("in the fixture")


def test_passes(outer):
    assert outer == 8


def test_fails(outer):
    assert outer == 9


def test_skips():
    pytest.skip("by itself")


def test_fails_by_itself():
    pytest.fail("no")


def test_of_a_skipping_fixture(outer, skips):
    raise ValueError


def test_of_a_broken_fixture(outer, broken):
    pass


def test_that_ends_badly(ends_badly, outer):
    pass


def test_without_its_fixture(nothing_of_this_name):
    pass


@pytest.mark.skipif(True, reason="the condition holds")
def test_skipped():
    raise ValueError


@pytest.mark.skipif(False, reason="it does not hold")
def test_not_skipped():
    pass


@pytest.mark.usefixtures("outer")
def test_uses():
    pass


@pytest.mark.parametrize("x", [1, 2.5, "t w", None, True, Color.RED, Plain, len, lambda: 0,
                               lambda: 1, Plain(), b"z", (1, 2), pytest.param(3, id="three"),
                               "\\u00e4", "", 1, "1"])
def test_ids(x):
    assert x != 2.5


@pytest.mark.parametrize("same", ["s", "s", "s0", 5, 5])
def test_equal_ids(same):
    pass


@pytest.mark.parametrize("x, y", [(1, 2), pytest.param(3, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("z",), [("p",), ("q",)])
def test_two_axes(x, y, z):
    assert (x, z) != (3, "q")


@pytest.mark.parametrize("v", [1, 2, 3], ids=lambda v: f"v{v}" if v < 3 else None)
def test_ids_by_function(v):
    pass


@pytest.mark.parametrize("v", [1, 2])
def test_parameters_of_fixtures(letter, number, v, once):
    once.append(letter)
    assert len(once) < 4


@pytest.mark.parametrize("number", [8, 9], indirect=True)
def test_indirect_parameters(number):
    assert number == 8


@pytest.mark.parametrize("number, v", [(8, 1), (9, 2)], indirect=["number"])
def test_some_indirect_parameters(number, v):
    assert number == v + 7


@pytest.mark.parametrize("number", [5])
def test_parameters_instead_of_a_fixture(number):
    assert number == 5


def test_raises():
    with pytest.raises((KeyError, ValueError), match="wro.g") as caught:
        raise ValueError("something wrong")
    assert caught.type is ValueError and caught.value.args == ("something wrong",)


def test_raises_nothing():
    with pytest.raises(ValueError):
        pass


def test_raises_another():
    with pytest.raises(ValueError):
        raise KeyError("x")


def test_raises_with_another_text():
    with pytest.raises(ValueError, match="^wrong"):
        raise ValueError("something wrong")


@pytest.mark.parametrize("found, expected, rel, abs_", [
    (1.0000001, 1.0, None, None), (1.1, 1.0, None, None), (1.1, 1.0, 0.2, None),
    (1e-13, 0.0, None, None), (1e-11, 0.0, None, None), (1.05, 1.0, None, 0.1),
    (100.05, 100.0, 1e-9, 0.1), (float("inf"), float("inf"), None, None),
    (float("inf"), 1.0, 1.0, 1.0), (float("nan"), float("nan"), None, None),
])
def test_approx(found, expected, rel, abs_):
    assert found == pytest.approx(expected, rel=rel, abs=abs_)


def test_approx_of_several():
    assert [1.0, 2.0 + 1e-9] == pytest.approx([1.0, 2.0])
    assert [1.0, 2.1] != pytest.approx([1.0, 2.0])


def test_monkeypatch(monkeypatch, tmp_path):
    import os
    import sys

    monkeypatch.setattr(Plain, "there", 3, raising=False)
    monkeypatch.setattr("os.sep", "|")
    monkeypatch.setitem(os.environ, "SAMPLE", "1")
    monkeypatch.setenv("SAMPLE_2", "2")
    monkeypatch.delenv("NOT_THERE", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert Plain.there == 3 and os.sep == "|" and sys.path[0] == str(tmp_path)
    with pytest.raises(AttributeError):
        monkeypatch.setattr(Plain, "not_there", 3)


def test_after_monkeypatch():
    import os

    assert os.sep == "/" and "SAMPLE" not in os.environ and "SAMPLE_2" not in os.environ
    assert not hasattr(Plain, "there")


def test_importorskip():
    assert pytest.importorskip("json").dumps([]) == "[]"
    pytest.importorskip("no_such_module", reason="it is not there")


def test_request(request):
    assert request.getfixturevalue("outer") == 8


def test_warns():
    warnings.warn("careful", UserWarning)


def helper_is_no_test():
    raise ValueError
"""

SKIPPED_MODULE = 'import pytest\n\npytest.skip("all of it", allow_module_level=True)\n'


def run_sample(folder: Path, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of a run of the sample, and what its fixtures wrote."""
    folder.mkdir()
    module = folder / "test_sample.py"
    module.write_text(SAMPLE)
    journal = folder / "journal"
    # What the surroundings of this test tell pytest is not meant for the other one.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "gpu_run.worker", str(journal), *options, "--modules", str(module)],
        env={**env, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    return events, (folder / "test_sample.log").read_text().splitlines()


def name_of(test: str) -> str:
    return test.split("::", 1)[1]


def ends(events: list[dict[str, Any]]) -> dict[str, str]:
    return {name_of(e["test"]): e["outcome"] for e in events if e["event"] == "end"}


def reasons(events: list[dict[str, Any]]) -> dict[str, str]:
    """Why tests were skipped."""
    return {
        name_of(each["test"]): each["why"]
        for each in events
        if each["event"] == "end" and each["outcome"] == "skipped"
    }


def test_the_stand_in_agrees_with_pytest(tmp_path: Path) -> None:
    theirs, their_log = run_sample(tmp_path / "pytest", "--all")
    ours, our_log = run_sample(tmp_path / "without", "--all", "--without-pytest")
    assert ends(ours) == ends(theirs)
    assert reasons(ours) == reasons(theirs)
    # pytest puts tests that share a parameter of a fixture beside each other.
    assert sorted(our_log) == sorted(their_log)
    outcomes = list(ends(ours).values())
    assert outcomes.count("failed") > 10 and outcomes.count("skipped") > 5
    assert outcomes.count("passed") > 40
    for events in (theirs, ours):
        (warned,) = (each for each in events if each["event"] == "warning")
        assert warned["text"] == "UserWarning: careful"
        assert events[-1] == {"event": "done"}
        why = {name_of(e["test"]): e["why"] for e in events if e["event"] == "end"}
        assert "assert outer == 9" in why["test_fails"]
        assert report.core(why["test_of_a_broken_fixture"])[0] == "KeyError: 'in the fixture'"
        assert "fixture 'nothing_of_this_name' not found" in why["test_without_its_fixture"]
    assert "where outer = 8" in why["test_fails"]


def test_fixtures_end_in_the_opposite_order(tmp_path: Path) -> None:
    _, log = run_sample(tmp_path / "one", "--all", "--without-pytest", "--only", "test_passes")
    made = ["make always", "make simple", "make outer"]
    assert log == [*made, "end outer", "end simple", "end always"]


def test_what_was_begun_is_not_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "again"
    run_sample(folder, "--all", "--without-pytest", "--only", "test_passes")
    folder.rename(tmp_path / "old")
    folder.mkdir()
    (tmp_path / "old" / "journal").rename(folder / "journal")
    (folder / "test_sample.py").write_text(SAMPLE)
    before = len((folder / "journal").read_text().splitlines())
    subprocess.run(
        [sys.executable, "-m", "gpu_run.worker", str(folder / "journal"), "--all",
         "--without-pytest", "--only", "test_passes,test_uses", "--modules",
         str(folder / "test_sample.py")],
        env={**os.environ, "PYTHONPATH": str(TESTS)}, check=True,
    )  # fmt: skip
    lines = (folder / "journal").read_text().splitlines()[before:]
    # Another folder gives other names: the first test is taken for a new one only there.
    started = [json.loads(line)["test"] for line in lines if '"start"' in line]
    assert [name_of(each) for each in started] == ["test_uses"]


@pytest.mark.parametrize("options", [(), ("--without-pytest",)])
def test_a_module_that_cannot_be_imported_is_told(tmp_path: Path, options: tuple[str]) -> None:
    module = tmp_path / "test_bad.py"
    module.write_text("import no_such_module\n")
    journal = tmp_path / "journal"
    subprocess.run(
        [sys.executable, "-m", "gpu_run.worker", str(journal), *options, "--modules", str(module)],
        env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True,
    )  # fmt: skip
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    (broken,) = (each for each in events if each["event"] == "broken")
    assert "No module named 'no_such_module'" in broken["why"]


REFUSED = {
    "test_class": ("class TestAll:\n    def test_one(self): pass", "classes need pytest"),
    "test_mark": ("@pytest.mark.xfail\ndef test_one(): pass", "xfail needs pytest"),
    "test_fixture": ("@pytest.fixture\ndef x(x): return x", "fixture of its own name"),
}


def test_what_the_stand_in_cannot_do_is_refused(tmp_path: Path) -> None:
    modules = [tmp_path / f"{name}.py" for name in REFUSED]
    for module in modules:
        module.write_text(f"import pytest\n\n{REFUSED[module.stem][0]}\n")
    journal = tmp_path / "journal"
    subprocess.run(
        [sys.executable, "-m", "gpu_run.worker", str(journal), "--without-pytest", "--modules",
         *map(str, modules)],
        env={**os.environ, "PYTHONPATH": str(TESTS)}, check=True,
    )  # fmt: skip
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    broken = [each["why"] for each in events if each["event"] == "broken"]
    assert len(broken) == len(REFUSED)
    for (_, message), why in zip(REFUSED.values(), broken, strict=True):
        assert message in why


COLLECT = """
import sys
from pathlib import Path
from gpu_run import command, small_pytest

small_pytest.install()
from gpu_run import small_runner

for path in command.device_modules():
    for item in small_runner.collect(path, command.TESTS, command.ROOT):
        print(item.id)
"""


@pytest.mark.slow
def test_the_stand_in_knows_all_tests_of_a_device() -> None:
    """A test that needs more of pytest than the stand-in has would be left out on a GPU."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env |= {"PYTHONPATH": str(TESTS), "TGRAPH_ALL_ROWS": "1"}  # pytest alone makes rows rotate
    modules = map(str, command.device_modules())
    pytests = ["-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *modules]
    found = []
    for arguments in (pytests, ["-c", COLLECT]):
        line = [sys.executable, *arguments]
        done = subprocess.run(line, env=env, cwd=TESTS.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append({line for line in done.stdout.splitlines() if "::" in line})
    assert found[0] and found[0] == found[1]


def test_what_the_stand_in_lacks_is_named() -> None:
    with pytest.raises(AttributeError, match="has no 'deprecated_call'"):
        _ = small_pytest.deprecated_call
