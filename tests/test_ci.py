"""The tools of CI: what is left out is counted, and other versions of Python are found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import pythons
import skips

TESTS = Path(__file__).parent
PROGRAM = """
import pytest

@pytest.mark.skipif(True, reason="no 7 devices")
def test_skipped(): pass

def test_skips_itself(): pytest.skip("no 8 devices")

@pytest.mark.gpu
def test_on_a_gpu(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_slow(number): pass

@pytest.mark.xfail
def test_fails(): assert False

def test_passes(): pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_runs_write_what_they_left_out(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PROGRAM)
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_module')")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  gpu\n  slow\n")
    (tmp_path / "counts").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "skips", "-n", workers, str(tmp_path)]
    environ = {
        **os.environ, "PYTHONPATH": str(TESTS), "TGRAPH_RUN": "small",
        "TGRAPH_SKIPS": str(tmp_path / "counts"),
    }  # fmt: skip
    subprocess.run(
        [*command, "-m", "not gpu and not slow"],
        env=environ, cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    missing = "could not import 'no_module': No module named 'no_module'"
    assert skips.read(tmp_path / "counts") == {
        "small": {
            "no 7 devices": 1,
            "no 8 devices": 1,
            missing: 1,
            "needs a CUDA device (marker gpu)": 1,
            "takes more than a few seconds (marker slow)": 3,
        }
    }


LISTED = """
# a comment
main|other | always | no \\d devices | Few machines have them.
main | sometimes | rare | By chance.
"""


@pytest.mark.parametrize(
    "counts, expected",
    [
        ({"main": {"no 7 devices": 2}}, []),
        ({"other": {"no 7 devices": 2}, "main": {"rare": 1}}, []),
        ({"main": {}}, ["no longer needed: main|other | no \\d devices"]),
        ({"a third": {}}, []),
        (
            {"main": {"no 7 devices": 2}, "other": {"rare": 3}},
            ["not in the list: 3 in the run 'other': rare"],
        ),
        (
            {"main": {"no 7 devices at all": 1, "no 7 devices": 1}},
            ["not in the list: 1 in the run 'main': no 7 devices at all"],
        ),
    ],
)
def test_reasons_are_those_listed(counts: dict[str, dict[str, int]], expected: list[str]) -> None:
    found = {run: Counter(reasons) for run, reasons in counts.items()}
    assert [*skips.faults(found, skips.listed(LISTED))] == expected


def test_the_list_can_be_read() -> None:
    assert all(each.why.endswith(".") for each in skips.listed(skips.LIST.read_text()))
    with pytest.raises(ValueError, match="line 1 is not"):
        list(skips.listed("main | never | this | why"))


def test_a_python_is_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "{}.{}".format(*sys.version_info)
    broken = tmp_path / f"python{version}"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    installed = tmp_path / "versions" / f"{version}.9" / "bin"
    installed.mkdir(parents=True)
    (installed / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert pythons.interpreter(version) == str(installed / "python")
    assert pythons.interpreter("3.99") is None


def test_one_version_has_the_oldest_packages() -> None:
    old, new = pythons.requirements(pythons.OLDEST), pythons.requirements(pythons.VERSIONS[-1])
    assert "numpy==2.1" in old and "numpy>=2.1" in new
    assert pythons.oldest("llvmlite>=0.45,<0.51") == "llvmlite==0.45"
    assert any(each.startswith("pytest>=") for each in old)
    assert all((TESTS / each).exists() for each in pythons.SELECTION)
