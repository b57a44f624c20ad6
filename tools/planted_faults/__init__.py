"""Small faults planted in a copy of the project, to see whether the tests find them.

`python -m tools.planted_faults` plants each fault of `faults/*.toml` in a copy of the working tree,
runs the tests that are meant to find it, and reports "found" or "missed". A missed fault shows what
the test suite does not check. This is mutation testing with a table written by hand: each fault is
a slip that a maintainer could make, with one sentence on what a user would get wrong.

    python -m tools.planted_faults                                # all faults
    python -m tools.planted_faults --only 'dropout*' --kind "guard left out"
    python -m tools.planted_faults --tree 3e39f146 --suite old    # with the tests of another commit
    python -m tools.planted_faults --write docs/planted_faults.md

- Results are saved in a JSON file (`--results`) after each fault. A second run continues there and
  repeats only faults whose text or tests changed. `--again` repeats all of them.
- Each run has an empty cache folder and no prebuilt objects, so no stored code can hide a fault.
- A fault is found if a test fails, or if the tests run longer than `--timeout`. The tests that
  failed are then run without any fault. A test that fails there too does not count, and the fault
  is reported as "unclear".
- `--tree` takes the folder `tests/` from another commit or folder. Where test files have other
  names there, `renamed_tests.toml` maps a present path to the older ones.
- The exit code is 0 if all faults are found, 1 if any is missed or unclear.

To add a fault, add an entry to a file in `faults/`: `find` is text that occurs exactly once in
`file`, `replace` is what takes its place, and `tests` are the arguments of pytest for the tests of
that part of the code. `tests/test_planted_faults.py` checks the table, without planting anything.
When code changes and that test fails, update `find`, or replace the fault by a similar one.
"""
