"""docs/source_files.md names every file of the three floors and of the tools, in its own words."""

from __future__ import annotations

from tools.source_files import PAGE, page


def test_the_page_knows_every_file() -> None:
    assert PAGE.read_text() == page(), "run `python -m tools.source_files`"
