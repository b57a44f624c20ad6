"""What `make gpu` consists of: its choice of tests, its processes, its report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from gpu_run import command, jobs, probe, report, surroundings, worker
from gpu_run.jobs import Findings, Found, Share, Tool
from gpu_run.report import Result
from gpu_run.worker import Candidate, Journal, Recorder
from sampling import rotating

pytest_plugins = ["cuda_tools.build_folder"]

TESTS = Path(__file__).parent.parent

# -- which tests ---------------------------------------------------------------------------------


def options(**given: Any) -> Namespace:
    return Namespace(**{"device": "real", "only": [], "quick": False, "all": False,
                        "shard": (0, 1), "test": [], **given})  # fmt: skip


CANDIDATES = [
    (Candidate(name, frozenset(fixtures), frozenset(marks)), name.upper())
    for name, fixtures, marks in [
        ("slow one", ["cuda"], ["slow"]),
        ("one", ["cuda", "tmp_path"], []),
        ("host", ["tmp_path"], []),
        ("gpu", ["gpu"], ["gpu"]),
        ("marked", [], ["gpu"]),
        ("two", ["cuda"], []),
    ]
]


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, ["one", "gpu", "marked", "two", "slow one"]),
        ({"device": "fake"}, ["one", "two", "slow one"]),
        ({"quick": True}, ["one", "gpu", "marked", "two"]),
        ({"only": ["one", "tw"]}, ["one", "two", "slow one"]),
        ({"all": True, "device": "fake"}, ["one", "host", "two", "slow one"]),
        ({"shard": (1, 2)}, ["gpu", "two"]),
        ({"test": ["two", "slow one"]}, ["two", "slow one"]),
    ],
)
def test_choice(given: dict[str, Any], expected: list[str]) -> None:
    found = worker.chosen(CANDIDATES, options(**given))
    assert [(candidate.id, item) for candidate, item in found] == [
        (name, name.upper()) for name in expected
    ]


def test_one_case_of_every_operation_comes_first() -> None:
    eager, compiled = "t/test_eager_cuda.py::", "t/test_compiled_cuda.py::"
    given = [
        (f"{eager}test_forward[sum]", "sum", False),
        (f"{eager}test_forward[sum_dim]", "sum", False),
        (f"{eager}test_other_types[sum]", "sum", False),
        (f"{eager}test_forward[abs]", "abs", False),
        ("t/test_memory.py::test_it", "", False),
        ("t/test_slow.py::test_it", "", True),
        (f"{compiled}test_forward[sum]", "sum", True),
        (f"{compiled}test_forward[sum_dim]", "sum", True),
        (f"{compiled}test_gradient[sum]", "sum", True),
    ]
    candidates = [
        (Candidate(name, frozenset(["cuda"]), frozenset(["slow"] * slow), operation), None)
        for name, operation, slow in given
    ]
    found = [each.id for each, _ in worker.chosen(candidates, options())]
    assert found[:3] == [
        f"{eager}test_forward[sum]", f"{eager}test_forward[abs]", f"{compiled}test_forward[sum]",
    ]  # fmt: skip
    assert found[3] == "t/test_memory.py::test_it" and found[-1] == "t/test_slow.py::test_it"
    assert len(found) == len(given)


@pytest.mark.parametrize(
    "without",
    [
        pytest.param([], id="pytest", marks=pytest.mark.slow),
        pytest.param(["--without-pytest"], id="without"),
    ],
)
def test_operations_are_known_by_their_rows(
    tmp_path: Path, build: Path, without: list[str]
) -> None:
    """Of real modules, of which nothing is run."""
    journal = tmp_path / "journal"
    modules = [str(each) for each in command.device_modules() if each.stem in command.FIRST]
    env = surroundings.environment(build, "fake", 1)
    given = ["--device", "fake", "--modules", *modules, *without]
    line = surroundings.command("gpu_run.worker", str(journal), *given)
    process = subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not journal.exists() or not journal.read_text().endswith("\n"):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    jobs.end(process)
    first = json.loads(journal.read_text().splitlines()[0])
    forward = [each for each in first["tests"] if "test_forward[" in each]
    operations = len({each.split("[")[1] for each in forward})
    count = next(n for n, each in enumerate(first["tests"]) if "test_forward[" not in each)
    assert 400 < count < len(forward) and operations > 400  # 234 eager ones and 225 compiled


def test_tests_have_limits(tmp_path: Path) -> None:
    tests, _ = make_tests(tmp_path)
    marks = {"quick": [], "slow": ["slow"]}
    tests.announce([Candidate(n, frozenset(), frozenset(m)) for n, m in marks.items()])
    tests.hangs = 20.0
    for name in marks:
        tests.around(name, lambda: ("passed", ""))
    limits = {each["test"]: each["limit"] for each in events_in(tmp_path) if "limit" in each}
    assert limits == {"quick": 20.0, "slow": 60.0} and worker.HANGS["real"] == 20.0


def test_modules_are_found() -> None:
    found = [path.stem for path in command.device_modules()]
    assert found[:2] == ["test_compiled_cuda", "test_eager_cuda"]
    assert {"test_products", "test_fake_cupy", *command.ALONE} <= set(found)
    assert not {"test_shim", "test_golden_cuda", "test_gpu_run", "test_ops"} & set(found)


# -- the device after a test ---------------------------------------------------------------------


class FakeDevice:
    """What is asked of `tgraph.cuda`."""

    error: Exception | None = None

    def synchronize(self) -> None:
        if self.error is not None:
            raise self.error


def make_tests(tmp_path: Path) -> tuple[Recorder, FakeDevice]:
    tests = Recorder(Journal(tmp_path / "journal"), "fake")
    tests.device = FakeDevice()
    return tests, tests.device


def events_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal").read_text().splitlines()]


def test_what_a_test_leaves_on_the_device_fails_it(tmp_path, monkeypatch) -> None:
    tests, device = make_tests(tmp_path)
    monkeypatch.setattr(tests, "_lost", lambda: False)
    tests.around("good", lambda: ("passed", ""))
    device.error = IndexError("index 9")
    tests.around("bad", lambda: ("passed", ""))
    good, bad = (each for each in events_in(tmp_path) if each["event"] == "end")
    assert good["outcome"] == "passed" and bad["outcome"] == "failed"
    assert "left behind" in bad["why"] and "IndexError: index 9" in bad["why"]


def test_a_lost_device_ends_the_process(tmp_path, monkeypatch) -> None:
    tests, _ = make_tests(tmp_path)
    monkeypatch.setattr(tests, "_lost", lambda: True)
    monkeypatch.setattr(
        worker.os, "_exit", lambda status: (_ for _ in ()).throw(SystemExit(status))
    )
    tests.around("good", lambda: ("passed", ""))
    with pytest.raises(SystemExit) as ended:
        tests.around("bad", lambda: ("failed", "illegal address"))
    assert ended.value.code == worker.LOST
    assert events_in(tmp_path)[-1] == {"event": "lost", "test": "bad"}


# -- processes -----------------------------------------------------------------------------------

WORKER = """
import json, os, sys, time
path = sys.argv[1]
before = open(path).read() if os.path.exists(path) else ""
file = open(path, "a")
def write(event, **values):
    file.write(json.dumps({"event": event, **values}) + "\\n")
    file.flush()
tests = TESTS
write("collected", tests=tests)
for test in tests:
    if f'"start", "test": "{test}"' in before:
        continue
    write("start", test=test, limit=LIMIT)
    if test in BADS:
        BAD
    write("end", test=test, outcome="passed", why="", seconds=0.5)
write("memory", used=5, known=5, bad=False)
write("done")
"""


def share_of(
    bad: str, folder: Path, limit: float = 60.0, names: str = "a bad c"
) -> tuple[Share, Findings]:
    tests = [f"m.py::{name}" for name in names.split()]
    bads = [test for test in tests if "bad" in test]
    script = folder / "worker.py"
    text = WORKER.replace("BADS", repr(bads)).replace("BAD", bad)
    script.write_text(text.replace("TESTS", repr(tests)).replace("LIMIT", str(limit)))
    findings = Findings()
    line = [sys.executable, "-E", "-s", str(script)]  # the journal comes fifth
    return Share("share", line, dict(os.environ), folder, findings), findings


def finish(*made: Any, seconds: float = 60.0) -> None:
    jobs.run(made, time.monotonic() + seconds, lambda: None)


def test_a_share_is_read_to_its_end(tmp_path: Path) -> None:
    share, findings = share_of("pass", tmp_path)
    finish(share)
    assert [each.outcome for each in findings.tests.values()] == ["passed"] * 3
    assert findings.memory == [
        {"process": "share", "event": "memory", "used": 5, "known": 5, "bad": False}
    ]
    assert not findings.not_run


@pytest.mark.parametrize(
    "bad, message",
    [
        ("print('the last words'); os.kill(os.getpid(), 11)", "status -11:\nthe last words"),
        ("os._exit(0)", "status 0"),
    ],
)
def test_a_crash_is_the_fault_of_the_test_that_ran(tmp_path: Path, bad: str, message: str) -> None:
    share, findings = share_of(f"sys.stdout.reconfigure(line_buffering=True); {bad}", tmp_path)
    finish(share)
    found = findings.tests
    assert [each.test for each in findings.of("passed")] == ["m.py::a", "m.py::c"]
    assert message in found["m.py::bad"].why
    assert not findings.not_run


STUCK = "import faulthandler, signal; faulthandler.register(signal.SIGUSR1); time.sleep(1000)"


def test_a_hanging_test_is_ended(tmp_path: Path) -> None:
    """And tells what it is at."""
    share, findings = share_of(STUCK, tmp_path, limit=0.5)
    finish(share)
    assert [each.test for each in findings.of("passed")] == ["m.py::a", "m.py::c"]
    why = findings.tests["m.py::bad"].why
    assert "did not end within 0 s" in why or "did not end within 1 s" in why
    assert "worker.py" in why and "most recent call first" in why


def test_three_that_hang_end_a_share(tmp_path: Path) -> None:
    names = "a bad1 b bad2 bad3 c bad4"
    share, findings = share_of("time.sleep(1000)", tmp_path, limit=0.2, names=names)
    finish(share)
    assert [each.test for each in findings.of("passed")] == ["m.py::a", "m.py::b"]
    failed = [each.test for each in findings.of("failed")]
    assert failed == ["m.py::bad1", "m.py::bad2", "m.py::bad3", "share::(process)"]
    assert "3 tests hung" in findings.tests["share::(process)"].why
    assert findings.not_run == ["m.py::c", "m.py::bad4"]


def test_a_process_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(jobs, "SILENT", 0.5)
    findings = Findings()
    line = [sys.executable, "-c", "import time; time.sleep(1000)", ""]
    finish(Share("share", line, dict(os.environ), tmp_path, findings))
    (found,) = findings.of("failed")
    assert found.test == "share::(process)" and "nothing happened for" in found.why


def test_a_lost_device_gets_a_fresh_process(tmp_path: Path) -> None:
    lost = (
        "write('end', test=test, outcome='failed', why='illegal address', seconds=0); "
        f"write('lost', test=test); os._exit({worker.LOST})"
    )
    share, findings = share_of(lost, tmp_path)
    finish(share)
    assert findings.tests["m.py::bad"].why == "illegal address"
    assert len(findings.of("passed")) == 2


def test_the_time_is_over(tmp_path: Path) -> None:
    share, findings = share_of("time.sleep(1000)", tmp_path)
    deadline = time.monotonic() + 60
    while share.running is None or share.running[0] != "m.py::bad":
        assert time.monotonic() < deadline
        share.poll()
        time.sleep(0.01)
    finish(share, seconds=0)
    assert list(findings.tests) == ["m.py::a"]
    assert findings.not_run == ["m.py::bad", "m.py::c"]


def test_a_process_that_cannot_begin_is_a_failure(tmp_path: Path) -> None:
    findings = Findings()
    line = [sys.executable, "-c", "raise ImportError('no numpy')", ""]
    finish(Share("share", line, dict(os.environ), tmp_path, findings))
    (found,) = findings.of("failed")
    assert found.test == "share::(process)" and "no numpy" in found.why


@pytest.mark.parametrize("status, outcome", [(0, "passed"), (86, "failed")])
def test_a_tool_is_good_by_its_status(tmp_path: Path, status: int, outcome: str) -> None:
    findings = Findings()
    line = ["sh", "-c", f"echo ERROR SUMMARY; exit {status}"]
    finish(Tool("sanitizer", line, dict(os.environ), tmp_path, findings))
    found = findings.tests["sanitizer::sample"]
    assert found.outcome == outcome
    assert found.why == ("ERROR SUMMARY" if status else "")


def test_a_tool_without_time_is_not_run(tmp_path: Path) -> None:
    findings = Findings()
    tool = Tool("sanitizer", ["sleep", "1000"], dict(os.environ), tmp_path, findings)
    finish(tool, seconds=0)
    assert findings.not_run == ["sanitizer::sample"]
    assert tool.process.status == -signal.SIGTERM


# -- surroundings --------------------------------------------------------------------------------


def test_the_package_is_imported_from_links(tmp_path: Path, build: Path) -> None:
    env = surroundings.environment(build, "fake", 1)
    code = "import tgraph.compiler.ir, tgraph.runtime.cuda.plan as p; print(p.__file__)"
    # Without site-packages' .pth files nothing else makes tgraph importable.
    places = [each for each in sys.path if each.endswith("site-packages")]
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], *places])
    line = [sys.executable, "-S", "-P", "-c", code]
    done = subprocess.run(line, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == f"{build}/site/tgraph/runtime/cuda/plan.py", done.stderr
    assert not list((build / "site").rglob("__pycache__/plan*"))


def test_the_surroundings_of_processes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "/elsewhere")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    env = surroundings.environment(tmp_path, "real", 3)
    assert env["TGRAPH_CACHE_DIR"] == str(tmp_path / "cache")
    assert env["TGRAPH_NUM_THREADS"] == "3"
    assert "PYTHONDONTWRITEBYTECODE" not in env
    assert surroundings.environment(tmp_path, "fake", 3)["CUDA_VISIBLE_DEVICES"] == ""


def test_the_sanitizer_is_found_on_the_path(tmp_path: Path, monkeypatch) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe.sanitizer() == str(tool)


# -- the report ----------------------------------------------------------------------------------

PLAIN = """\
Traceback (most recent call last):
  File "test_x.py", line 3, in test
    check(x)
  File "x.py", line 7, in check
    raise ValueError("wrong\\nthing")
ValueError: wrong
thing
  where x = 3"""
OF_PYTEST = """\
test_x.py:3: in test
    check(x)
E   AssertionError: assert 3 == 4
E    +  where 3 = f()"""


def test_the_core_of_a_traceback() -> None:
    assert report.core(PLAIN) == ["ValueError: wrong", "thing"]
    assert report.core(OF_PYTEST) == ["AssertionError: assert 3 == 4", "+  where 3 = f()"]
    assert report.core("it did not end") == ["it did not end"]
    assert report.core("") == ["no message"]


def some_result() -> Result:
    result = Result({"gpu": "Some GPU", "date": "2026-01-02"})
    for test, outcome, why in [
        ("t/test_a.py::one", "passed", ""),
        ("t/test_a.py::two", "failed", PLAIN),
        ("t/test_a.py::three", "failed", PLAIN),
        ("t/test_b.py::four", "skipped", "two devices"),
        ("sanitizer-memcheck::sample", "failed", "Invalid write"),
    ]:
        result.findings.add(Found(test, outcome, why, 1.25))
    result.findings.not_run.append("t/test_b.py::five")
    result.findings.warnings["UserWarning: careful"] = 3
    result.left_out["the shim"] = "g++ is not installed"
    result.seconds["checks"] = 12.0
    return result


def test_the_table() -> None:
    expected = """
    part                passed  failed  skipped   not run  seconds
    sanitizer-memcheck               1                         1.2
    test_a                   1       2                         3.8
    test_b                                    1         1      1.2
    the shim                                     left out
    """
    assert report.table(some_result()) == textwrap.dedent(expected).strip()


def test_the_ending_tells_everything() -> None:
    told = report.ending(some_result())
    for part in (
        "2 x ValueError: wrong\n      such as t/test_a.py::two",
        "1 x Invalid write",
        "left out: the shim: g++ is not installed",
        "not run for want of time: 1 tests",
        "skipped 1: two devices",
        "warned 3 times: UserWarning: careful",
        "BAD: 5 tests in 12 s",
    ):
        assert part in told


@pytest.mark.parametrize("what", ["nothing", "a test", "memory", "the benchmark"])
def test_what_makes_a_run_bad(what: str) -> None:
    result = Result({"gpu": "x"}, benchmark=1 if what == "the benchmark" else 0)
    result.findings.add(Found("m::t", "failed" if what == "a test" else "passed"))
    memory = {"process": "tests0", "used": 9, "known": 1, "bad": what == "memory"}
    result.findings.memory.append(memory)
    assert result.good is (what == "nothing")
    assert ("tests0: 9 bytes are left, 1 are known" in report.ending(result)) is (what == "memory")


def test_the_files() -> None:
    result = some_result()
    data = json.loads(json.dumps(report.as_json(result)))
    assert not data["good"]
    assert [each["test"] for each in data["failures"]] == [
        "sanitizer-memcheck::sample", "t/test_a.py::three", "t/test_a.py::two",
    ]  # fmt: skip
    assert data["failures"][1]["why"] == PLAIN
    assert data["not_run"] == ["t/test_b.py::five"]
    text = report.markdown(result)
    assert "- gpu: Some GPU" in text and "| test_a | 1 | 2 |" in text
    assert "`t/test_a.py::two`\n\n```\nValueError: wrong\nthing\n```" in text


def test_the_data_stay_small(monkeypatch) -> None:
    monkeypatch.setattr(report, "WHOLE", 1)
    failures = report.as_json(some_result())["failures"]
    assert [each["why"] for each in failures] == [
        "Invalid write", "ValueError: wrong\nthing", "ValueError: wrong\nthing",
    ]  # fmt: skip


# -- the command ---------------------------------------------------------------------------------


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    line = [sys.executable, str(TESTS / "gpu.py"), *arguments]
    return subprocess.run(line, env=env, capture_output=True, text=True)


def test_without_a_device_it_says_so(build: Path) -> None:
    done = run_command("--build", str(build))
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("make gpu: no CUDA device can be used: ")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "ml_dtypes.py").write_text("raise ImportError('No module named ml_dtypes')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(command, "TESTS", tmp_path)
    with pytest.raises(command.NoDeviceError, match=r"cannot be used here.*No module named ml_d"):
        command.Run(command.parsed(["--build", str(tmp_path / "build")]))


def test_progress_tells_failures_once(capsys, monkeypatch) -> None:
    run = object.__new__(command.Run)
    written: list[int] = []
    monkeypatch.setattr(run, "write", lambda: written.append(1))
    run.result, run._told, run.began = some_result(), 0, time.monotonic()
    run._last = time.monotonic() + 100
    run._progress()
    assert capsys.readouterr().out.count("FAILED") == 3
    run._last = time.monotonic() - 100
    run._progress()
    assert "5 tests are done, 3 failed" in capsys.readouterr().out
    assert written == [1]


@pytest.mark.slow
@pytest.mark.parametrize("without", rotating([[], ["--without-pytest"]], 2))
def test_the_whole_on_the_stand_in(tmp_path: Path, without: list[str]) -> None:
    only = "test_one_of_each,test_growth_is_seen,test_views_that_begin_anywhere"
    done = run_command(
        "--device", "fake", "--build", str(tmp_path), "--only", only, "--seconds", "200", *without
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = tmp_path.glob("*-checks.json")
    data = json.loads(written.read_text())
    assert data["good"] and data["benchmark"] == 0
    assert {row["part"] for row in data["table"]} >= {
        "test_compiled_cuda", "test_memory_on_device", "test_programs_on_device", "benchmark",
    }  # fmt: skip
    assert set(data["tests"].values()) == {"passed"}
    assert data["tests"]["ladder::all of it"] == "passed" and "12/12" in done.stdout
    assert "good: " in done.stdout and written.with_suffix(".md").exists()


@pytest.mark.slow
def test_the_sample_for_sanitizers_runs(tmp_path: Path) -> None:
    env = surroundings.environment(tmp_path, "fake", 1)
    line = surroundings.command("gpu_run.sample", "--device", "fake")
    done = subprocess.run(line, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 10
