"""The table of planted faults fits the code: each fault can be planted, and nothing is run."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.planted_faults.faults import FLOORS, KINDS, Fault, load, paths_of_tests
from tools.planted_faults.tree_copy import ROOT

FAULTS = load()
MIN_FAULTS = 150
MAX_FAULTS_OF_A_FILE = 3


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_can_be_planted(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    planted = fault.plant(text)
    assert planted != text
    compile(planted, fault.file, "exec")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_entry_is_complete(fault: Fault) -> None:
    assert fault.kind in KINDS
    assert fault.reason.endswith(".")
    paths = paths_of_tests(fault)
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_names_are_unique() -> None:
    assert not [
        name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1
    ]


def test_faults_are_spread_over_files_and_floors() -> None:
    assert len(FAULTS) >= MIN_FAULTS
    assert max(Counter(fault.file for fault in FAULTS).values()) <= MAX_FAULTS_OF_A_FILE
    floors = Counter(fault.floor for fault in FAULTS)
    assert all(floors[floor] >= MIN_FAULTS // 10 for floor in FLOORS)
    assert {fault.kind for fault in FAULTS} == set(KINDS)
