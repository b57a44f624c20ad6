"""The benchmark of compile time finds the stages that it times."""

from benchmarks import compile_time


def test_every_stage_is_timed() -> None:
    stages = compile_time.Stages()
    step = compile_time.tg.compile(compile_time.CASES["adam_step"](3, "one"))
    with stages.watching():
        step()
    assert set(stages.seconds) == set(compile_time.STAGES)


def test_a_row_has_a_number_for_every_stage() -> None:
    row = compile_time.measure("sgd_step", 3, "one", calls=1).split()
    assert len(row) == 3 + len(compile_time.STAGES) + 3
