"""Writes docs/source_files.md: every file of the package with what it says of itself.

Run: python -m tools.source_files
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "source_files.md"
FLOORS = ("tgraph", "compiler", "runtime", "tools")
HEAD = """# Where things stand

Every file of the package, floor by floor, and of the tools beside it, with the first words of it.
[architecture.md](architecture.md) tells how they work together, and why.
`python -m tools.source_files` writes this page from the files, and a test holds it to them.
"""


def about(file: Path) -> str:
    """The first paragraph of a file's docstring, in one line."""
    found = re.search(r'"""(.*?)"""', file.read_text(), re.DOTALL)
    paragraph = found[1].split("\n\n")[0] if found else ""
    return " ".join(paragraph.split()).replace("|", r"\|")


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for folder in sorted({file.parent for floor in FLOORS for file in (ROOT / floor).rglob("*.py")},
                         key=lambda folder: (FLOORS.index(folder.relative_to(ROOT).parts[0]),
                                             folder)):  # fmt: skip
        rows = [
            f"| [`{file.name}`](../{file.relative_to(ROOT).as_posix()}) | {about(file)} |"
            for file in sorted(folder.glob("*.py"))
            if file.name != "__init__.py"
        ]
        init = folder / "__init__.py"
        what = about(init) if init.exists() else ""
        title = f"## {folder.relative_to(ROOT).as_posix()}/\n"
        table = "\n".join(["| file | what |", "| --- | --- |", *rows, ""]) if rows else ""
        parts.append("\n".join(each for each in (title, what and what + "\n", table) if each))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
