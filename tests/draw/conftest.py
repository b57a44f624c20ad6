import sys

import pytest


@pytest.fixture
def without_graphviz(monkeypatch):
    """As if the graphviz package were not installed."""
    for name in [each for each in sys.modules if each.split(".")[0] == "graphviz"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "graphviz", None)
