"""`make gpu` as a whole, from the ladder to the report, over stand-ins for a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_tools import as_on_a_gpu, nvrtc, shim
from gpu_run import archive, command, jobs, ladder, probe
from tgraph.runtime.cuda.devices import ARCHITECTURES
from tgraph.runtime.cuda.nvrtc import compile_with_log

pytest_plugins = ["cuda_tools.build_folder"]

TESTS = Path(__file__).parent.parent
NEEDS_COMPILER = pytest.mark.skipif(shim.available() is not None, reason=shim.available() or "")

# -- the ladder ----------------------------------------------------------------------------------


def broken(at: SimpleNamespace) -> str:
    raise ValueError("no such thing")


def test_the_first_rung_that_fails_ends_it(capsys: Any) -> None:
    left: list[SimpleNamespace] = []

    def good(at: SimpleNamespace) -> str:
        left.append(at)
        return "it is well"

    rungs = [("one", good), ("two", good), ("three", broken), ("four", good)]
    assert not ladder.climb(rungs, 60)
    told = capsys.readouterr().out
    assert "1/4  one" in told and told.count("it is well") == 2 and "four" not in told
    assert "FAILED" in told and "in broken" in told and "ValueError: no such thing" in told
    assert left[0] is left[1]


def test_all_rungs_hold(capsys: Any) -> None:
    assert ladder.climb([("one", lambda at: "")] * 2, 60)
    assert "all 2 hold, after " in capsys.readouterr().out


def test_a_rung_that_hangs_tells_what_it_is_at(tmp_path: Path) -> None:
    code = "import time; from gpu_run import ladder; ladder.climb([('stuck', time.sleep)], 0.3)"
    code = code.replace("time.sleep", "lambda at: time.sleep(1000)")
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "1/1  stuck" in done.stdout and "most recent call first" in done.stdout


def test_values_are_compared() -> None:
    ladder.check([1.0, 2.0], [1.0, 2.0 + 1e-7], "numbers", 1e-6)
    for found in ([1.0, 2.5], [1.0], [1.0, float("nan")]):
        with pytest.raises(ladder.Wrong, match="numbers: expected"):
            ladder.check(found, [1.0, 2.0], "numbers", 1e-6)


def test_there_are_twelve_rungs() -> None:
    assert [name for name, _ in ladder.RUNGS] == [
        "import", "transfer", "eager kernel", "NVRTC kernel", "eager plans", "cublasLt by type",
        "capture and replay", "failure flag of the host", "branches and loops", "second stream",
        "200 KB of shared memory", "compiled training step",
    ]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_kernels_of_the_ladder_compile(arch: str) -> None:
    if reason := nvrtc.available():
        pytest.skip(reason)
    assert compile_with_log(ladder.KERNELS, arch).data


# -- logs ----------------------------------------------------------------------------------------


def test_logs_are_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    (folder / "kernels000").mkdir(parents=True)
    (folder / "a.log").write_text("first\nlast\n")
    (folder / "kernels000" / "kernels.cu").write_text("// text")
    path = archive.write(tmp_path / "logs.tar.gz", folder)
    with tarfile.open(path) as made:
        assert made.getnames() == ["checks/a.log", "checks/kernels000/kernels.cu"]
        assert made.extractfile("checks/a.log").read() == b"first\nlast\n"  # type: ignore[union-attr]
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["logs.tar.gz"]


def test_of_too_much_the_ends_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    folder.mkdir()
    for number in range(8):
        noise = os.urandom(1 << 18)
        (folder / f"{number}.log").write_bytes(noise + b"the last words")
    path = archive.write(tmp_path / "logs.tar.gz", folder, most=1 << 20)
    assert path.stat().st_size <= 1 << 20
    with tarfile.open(path) as made:
        entries = made.getmembers()
        assert len(entries) == 8
        for each in entries:
            assert made.extractfile(each).read().endswith(b"the last words")  # type: ignore[union-attr]


# -- parts ---------------------------------------------------------------------------------------


def test_output_is_shown_and_kept(tmp_path: Path, capfd: Any) -> None:
    log, env = tmp_path / "log", dict(os.environ)
    line = ["sh", "-c", "echo one; echo two >&2; exit 3"]
    assert jobs.show(line, env, tmp_path, log, 60) == 3
    assert log.read_text() == capfd.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize("then", ["sleep 1000", "exec >&- 2>&-; sleep 1000"])
def test_what_does_not_end_is_stopped(tmp_path: Path, then: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(jobs, "GRACE", 0.3)
    log = tmp_path / "log"
    assert jobs.show(["sh", "-c", f"echo one; {then}"], dict(os.environ), tmp_path, log, 1) is None
    assert log.read_text() == "one\n"


def test_the_device_may_give_no_answer(tmp_path: Path, monkeypatch: Any) -> None:
    assert command.PROBE_SECONDS == 90 > probe.STUCK
    code = "import sys, time; print('at a call', file=sys.stderr, flush=True); time.sleep(1000)"
    monkeypatch.setattr(command, "command", lambda *_: [sys.executable, "-c", code])
    monkeypatch.setattr(command, "PROBE_SECONDS", 2.0)
    with pytest.raises(command.NoDeviceError, match="gave no answer within 2 s\nat a call"):
        command.Run(command.parsed(["--build", str(tmp_path)]))


def test_the_commit_is_told_where_git_has_no_data(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv(probe.COMMIT, "abc1234 of a copy")
    assert probe.commit() == "abc1234 of a copy"
    from benchmarks import machine

    assert machine._commit() == "abc1234 of a copy"
    monkeypatch.delenv(probe.COMMIT)
    monkeypatch.setattr(probe, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert probe.commit() == "unknown"


def test_only_one_thing_is_done_instead() -> None:
    with pytest.raises(SystemExit):
        command.parsed(["--sanitize", "--repeat-failed"])
    assert command.parsed(["--repeat-failed"]).repeat_failed == command.LAST


def test_there_must_be_something_to_repeat(build: Path, capsys: Any) -> None:
    given = ["--device", "fake", "--build", str(build), "--repeat-failed"]
    assert command.main(given) == 1
    assert "there is no report of an earlier run at" in capsys.readouterr().err


# -- the whole -----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any) -> Any:
    """Runs the command as on a GPU: its status, what it said, and the folder it wrote to."""
    machine, out = tmp_path / "machine", tmp_path / "out"
    as_on_a_gpu.furnish(machine)

    def run_it(*arguments: str, **env: str) -> SimpleNamespace:
        given = {
            **os.environ,
            "PYTHONPATH": str(machine),
            "PATH": f"{machine / 'bin'}{os.pathsep}{os.environ['PATH']}",
            **env,
        }
        line = [sys.executable, str(TESTS / "gpu.py"), "--build", str(tmp_path / "build")]
        line += ["--out", str(out), "--jobs", "2", *arguments]
        done = subprocess.run(line, env=given, capture_output=True, text=True)
        return SimpleNamespace(status=done.returncode, said=done.stdout + done.stderr, out=out)

    return run_it


def report_of(done: SimpleNamespace, name: str) -> Any:
    assert (done.out / f"{name}.md").exists(), done.said
    return json.loads((done.out / f"{name}.json").read_text())


def names_in(path: Path) -> set[str]:
    with tarfile.open(path) as made:
        return set(made.getnames())


GOOD = "test_growth_is_seen"
BAD = "test_numbers_of_the_host_are_fed_anew"


@pytest.mark.slow
@NEEDS_COMPILER
def test_a_ladder_that_breaks_ends_everything(run: Any) -> None:
    done = run(STAND_IN_REFUSES="rung")
    assert done.status == 1
    data = report_of(done, "checks")
    assert data["tests"] == {"ladder::NVRTC kernel": "failed"} and data["benchmark"] is None
    (failure,) = data["failures"]
    assert "LaunchError: launch of kernel rung, 8 blocks of 128 x 1 threads" in failure["why"]
    assert "4/12  NVRTC kernel" in done.said and "eager plans" not in done.said
    assert "Traceback (most recent call last)" in done.said
    assert {"checks/ladder.log", "checks/probe.log"} <= names_in(done.out / "logs.tar.gz")


@pytest.mark.slow
@NEEDS_COMPILER
def test_the_whole_as_on_a_gpu(run: Any) -> None:
    """With a failure, which is then repeated; and with what has been told to be the commit."""
    only = ("--only", f"{GOOD},{BAD}", "--without-pytest", "--no-benchmark")
    done = run(*only, "--commit", "abc1234", STAND_IN_REFUSES="k0_add")
    assert done.status == 1, done.said
    data = report_of(done, "checks")
    assert data["facts"]["gpu"] == "NVIDIA of NumPy" and data["facts"]["commit"] == "abc1234"
    assert data["tests"].pop("ladder::all of it") == "passed"
    (bad,) = {each["test"] for each in data["failures"]}
    assert BAD in bad and "kernel k0_add, " in str(data["failures"])
    assert {"passed"} == {outcome for test, outcome in data["tests"].items() if GOOD in test}
    assert "compute-sanitizer" not in str(data["tests"]) + str(data["left_out"])
    assert {"checks/tests0.log", "checks/tests0.journal"} <= names_in(done.out / "logs.tar.gz")

    again = run("--without-pytest", "--repeat-failed", STAND_IN_REFUSES="k0_add")
    assert again.status == 1, again.said
    repeated = report_of(again, "repeated")
    assert {each["test"] for each in repeated["failures"]} == {
        each["test"] for each in data["failures"]
    }
    kept = names_in(again.out / "repeated-logs.tar.gz")
    assert any(name.startswith("repeated/kernels000/") and name.endswith(".cu") for name in kept)

    mended = run("--without-pytest", "--repeat-failed", str(again.out / "checks.json"))
    assert mended.status == 0, mended.said
    assert f"passed: {bad}" in mended.said
    assert len(list(mended.out.iterdir())) <= 8


@pytest.mark.slow
@NEEDS_COMPILER
def test_sanitizers_are_a_run_of_their_own(run: Any) -> None:
    """Here with one that finds something."""
    done = run("--sanitize")
    assert done.status == 1, done.said
    data = report_of(done, "sanitizer")
    (failure,) = data["failures"]
    assert failure["test"] == "sanitizer-racecheck::sample"
    assert "--tool racecheck" in failure["why"] and "gpu_run.sample" in failure["why"]
    assert data["tests"] == {
        "sanitizer-memcheck::sample": "passed", "sanitizer-racecheck::sample": "failed",
    }  # fmt: skip
    kept = names_in(done.out / "sanitizer-logs.tar.gz")
    assert "sanitizer/sanitizer-racecheck.log" in kept
