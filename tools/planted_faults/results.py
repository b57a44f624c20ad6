"""Results of planted faults, saved after each fault, so that an interrupted run can continue."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from .faults import Fault


@dataclass(frozen=True)
class Result:
    """What the tests said about one fault."""

    key: str
    verdict: str
    """"found", "missed", "unclear" (the test fails without the fault), or "error"."""
    seconds: float
    first_failure: str = ""
    confirmed: bool = False
    """Whether the first failing test was seen to pass without the fault."""


class Results:
    """The results of several suites in one JSON file: `{suite: {name of a fault: result}}`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.suites: dict[str, dict[str, Result]] = {
            suite: {name: Result(**each) for name, each in rows.items()}
            for suite, rows in stored.items()
        }

    def get(self, suite: str, fault: Fault) -> Result | None:
        """The result of a fault, unless the fault has changed since."""
        result = self.suites.get(suite, {}).get(fault.name)
        return result if result is not None and result.key == fault.key() else None

    def put(self, suite: str, fault: Fault, result: Result) -> None:
        with self._lock:
            self.suites.setdefault(suite, {})[fault.name] = result
            self._save()

    def settle(self, suite: str, fault: Fault, passes: bool) -> None:
        """Enter whether the test that found the fault passes without it."""
        result = self.suites[suite][fault.name]
        verdict = "found" if passes else "unclear"
        self.put(suite, fault, replace(result, verdict=verdict, confirmed=True))

    def _save(self) -> None:
        rows = {
            suite: {name: asdict(each) for name, each in sorted(rows.items())}
            for suite, rows in self.suites.items()
        }
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(rows, indent=1) + "\n")
        os.replace(new, self.path)
