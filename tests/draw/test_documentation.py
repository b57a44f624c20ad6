import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "example.py"
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "drawing.md").read_text(), re.DOTALL)
    program.write_text("\n".join(blocks))
    exec(compile(program.read_text(), str(program), "exec"), {})
    for name in ("traced.svg", "compiled.svg", "autograd.svg"):
        assert "example.py:" in (tmp_path / name).read_text()


@pytest.mark.parametrize("picture", sorted((DOCS / "images").glob("*.svg")), ids=lambda p: p.name)
def test_pictures_are_whole_and_name_no_machine(picture):
    text = picture.read_text()
    ElementTree.fromstring(text)
    assert not re.search(r"(^|[\"; ])(/[a-z]+)+/make_images\.py", text)
