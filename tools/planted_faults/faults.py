"""The table of faults: reads `faults/*.toml` and checks that each fault can be planted."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "faults"
RENAMED = Path(__file__).parent / "renamed_tests.toml"
FLOORS = ("tgraph", "compiler", "runtime")

KINDS = {
    "guard left out": "a condition that protects against a wrong result is missing",
    "wrong comparison": "`<` for `<=`, `min` for `max`, a bound that is off",
    "wrong condition": "a branch is taken in the wrong case",
    "off by one": "an index, a size or a counter is one too large or too small",
    "wrong index": "an index map, an axis or a stride is another one",
    "operands exchanged": "two operands, arguments or results are in the wrong order",
    "cast forgotten": "a value keeps a data type or a device that it should not keep",
    "sum in the wrong type": "a sum or a product is computed in too small a type",
    "version bump forgotten": "a write that nobody is informed of",
    "memory reused too early": "memory is overwritten while it is still read",
    "memory shared": "a result shares memory that it should not share, or the reverse",
    "barrier dropped": "threads do not wait for each other",
    "lock not taken": "threads change the same data at the same time",
    "wrong gradient": "a rule of derivatives with a wrong sign, factor or operand",
    "incomplete key": "a key of a cache or an equality that lacks a part",
    "error swallowed": "an error is not raised, or raised too late",
    "wrong constant": "a coefficient, a default or a special value is wrong",
    "state not kept": "state is not saved, not restored, not reset or not written back",
    "wrong order": "steps, hooks or results come in the wrong order",
    "unsound rewrite": "an optimisation is applied where it changes the result",
}


@dataclass(frozen=True)
class Fault:
    """One fault: text to find in a file, what replaces it, and the tests meant to find it."""

    name: str
    kind: str
    file: str
    find: str
    replace: str
    reason: str
    tests: tuple[str, ...]

    @property
    def floor(self) -> str:
        return self.file.split("/")[0]

    def key(self) -> str:
        """A digest of everything that the result depends on, apart from the code around it."""
        told = {name: value for name, value in asdict(self).items() if name != "reason"}
        return blake2b(repr(told).encode(), digest_size=8).hexdigest()

    def plant(self, text: str) -> str:
        """The text of the file with the fault; ValueError where it cannot be planted."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.name}: `find` occurs {count} times in {self.file}, expected 1")
        return text.replace(self.find, self.replace)


def _fault(row: dict[str, Any]) -> Fault:
    return Fault(**{**row, "tests": tuple(row["tests"])})


def load(folder: Path = FOLDER) -> list[Fault]:
    """All faults, in the order of the files and of their entries."""
    rows = [
        row
        for file in sorted(folder.glob("*.toml"))
        for row in tomllib.loads(file.read_text())["fault"]
    ]
    return [_fault(row) for row in rows]


def older_paths() -> dict[str, list[str]]:
    """The names that test files had in older commits: `{present path: [older path, ...]}`."""
    return tomllib.loads(RENAMED.read_text()) if RENAMED.exists() else {}


def paths_of_tests(fault: Fault) -> list[str]:
    """The files and folders among the arguments of pytest."""
    return [part.split("::")[0] for part in fault.tests if part.startswith("tests/")]
