"""What each public operation can do, found by running the table of operations: docs/operations.md.

The table is that of the tests, whose folder is made importable here.
"""

import sys
from pathlib import Path

TESTS = str(Path(__file__).parents[2] / "tests")
for folder in (f"{TESTS}/transforms", f"{TESTS}/cuda_target", TESTS):
    if folder not in sys.path:
        sys.path.append(folder)
