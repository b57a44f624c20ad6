"""A Picture as DOT text, and DOT text as SVG or PNG by way of Graphviz.

`dot` is taken from PATH if it is there; the `graphviz-pure` package brings a program that does
the same and needs no installation of Graphviz.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Any

from ..runtime.records import NamedTuple
from .picture import Arrow, Box, Cluster, Picture

_INSTALL = "pip install tgraph[draw]"
_INK, _FAINT = "#1f2933", "#52606d"
_LONGEST = 48
# Shapes stand beside the arrows in pictures of at most this many boxes, and at their heads in
# larger ones, where Graphviz would take long to make room for them.
_ROOM_FOR_LABELS = 150
# Larger pictures than this are laid out with less care, since time grows with the square.
_CAREFUL = 700


class Style(NamedTuple):
    """How one kind of box looks, and what the legend calls it."""

    legend: str
    fill: str
    line: str
    shape: str = "box"
    ink: str = _INK
    dashed: bool = False


# Fonts of Helvetica's widths, by which the boxes were measured.
_FONTS = b'"Helvetica,Arial,Liberation Sans,Arimo,sans-serif"'

# Tints with dark text and full colours with white text, each of contrast 4.5:1 or better; kinds
# also differ in shape, so that nothing depends on seeing colours.
STYLES = {
    "argument": Style("argument", "#ffffff", "#1f4e79", "oval"),
    "parameter": Style("parameter", "#d8ecd3", "#38761d", "cylinder"),
    "captured": Style("captured tensor", "#f1f8ee", "#38761d", "cylinder"),
    "number": Style("Python number", "#ffffff", "#8a6d00", "oval"),
    "random": Style("random key", "#fff2c2", "#8a6d00", "oval"),
    "saved": Style("saved by the forward plan", "#f4f4f2", "#1f4e79", "cylinder"),
    "leaf": Style("leaf", "#f1f8ee", "#38761d", "cylinder"),
    "constant": Style("constant", "#f4f4f2", "#7b8794", "note"),
    "elementwise": Style("elementwise", "#dcebf7", "#4a7fb0"),
    "reduce": Style("reduction", "#fde3cb", "#c26a1b"),
    "view": Style("view, movement", "#ebedf0", "#8894a3"),
    "gather": Style("indexing", "#d3efe8", "#2b8a78"),
    "contraction": Style("matrix product, convolution", "#e5dcf3", "#7452a8"),
    "sampling": Style("random bits", "#fff2c2", "#8a6d00"),
    "control": Style("branch or loop", "#e3e0f4", "#5b4ba6", "hexagon"),
    "opaque": Style("Python function", "#f9d8d5", "#b03a32"),
    "compiled": Style("compiled function", "#fffaec", "#c79a2b"),
    "composite": Style("function with its own gradient", "#dfe3fa", "#4f5bb5"),
    "gemm": Style("library call", "#6b489d", "#4b2f74", ink="#ffffff"),
    "python": Style("Python step", "#a8322a", "#751f19", ink="#ffffff"),
    "kernel": Style("fused kernel", "#fffaec", "#c79a2b"),
    "free": Style("view of memory, no work", "#ffffff", "#8894a3", dashed=True),
    "module": Style("module", "#dcebf7", "#4a7fb0", "folder"),
    "line": Style("line of the program", "#dcebf7", "#4a7fb0"),
    "note": Style("left out", "#ffffff", "#8894a3", dashed=True),
    "elsewhere": Style("value from elsewhere", "#ffffff", "#8894a3", dashed=True),
    "output": Style("output", "#1f4e79", "#12304b", "oval", "#ffffff"),
    "written": Style("written back in place", "#38761d", "#234a12", "cylinder", "#ffffff"),
}

# The border of boxes that come from a line that computes gradients or takes a step with them.
PHASES = {"backward": ("backward pass", "#b03a32"), "step": ("optimizer step", "#38761d")}

_GRAPH = (
    'bgcolor="white" fontname="Helvetica" fontsize="12" labelloc="t" labeljust="l" rankdir="TB" '
    'ranksep="0.34" nodesep="0.22" pad="0.15"'
)
_NODE = (
    'fontname="Helvetica" fontsize="11" shape="box" style="filled,rounded" margin="0.1,0.05" '
    f'height="0.3" width="0.5" fontcolor="{_INK}"'
)
_EDGE = (
    'fontname="Helvetica" fontsize="8" arrowsize="0.55" color="#616e7c" '
    f'fontcolor="{_FAINT}" labeldistance="1.9" labelangle="50"'
)


def to_dot(picture: Picture) -> str:
    """The picture in Graphviz' language: the same text for the same picture."""
    haste = ' nslimit="2" mclimit="0.5"' if len(picture.boxes) > _CAREFUL else ""
    lines = ["digraph tgraph {", f"  graph [{_GRAPH}{haste} label={_heading(picture)}]"]
    lines += [f"  node [{_NODE}]", f"  edge [{_EDGE}]"]
    inside: dict[str, list[Box]] = {cluster.key: [] for cluster in picture.clusters}
    free: list[Box] = []
    linked = {box.link for box in picture.boxes}
    for box in picture.boxes:
        inside.get(box.cluster, free).append(box)
    for cluster in picture.clusters:
        lines += _cluster(cluster, inside[cluster.key], linked)
    lines += [f"  {_box(box, linked)}" for box in free]
    attr = "label" if len(picture.boxes) <= _ROOM_FOR_LABELS else "headlabel"
    lines += [f"  {_arrow(arrow, attr)}" for arrow in picture.arrows]
    return "\n".join([*lines, "}", ""])


def _heading(picture: Picture) -> str:
    """Title, summary, notes and legend, as a table."""
    rows = [f"<b>{_escape(picture.title)}</b>"]
    below = [(_FAINT, picture.summary), *(("#a8322a", note) for note in picture.notes)]
    rows += [f'<font point-size="10" color="{ink}">{_escape(text)}</font>' for ink, text in below]
    if picture.boxes:
        rows.append(_legend(picture))
    cells = "".join(f'<tr><td align="left">{row}</td></tr>' for row in rows)
    return f'<<table border="0" cellspacing="1">{cells}</table>>'


def _legend(picture: Picture) -> str:
    used = {box.kind for box in picture.boxes} | {cluster.kind for cluster in picture.clusters}
    phases = {box.phase for box in picture.boxes}
    chips = [
        f'<td border="1" style="rounded" color="{style.line}" bgcolor="{style.fill}">'
        f'<font point-size="9" color="{style.ink}">{style.legend}</font></td>'
        for kind, style in STYLES.items()
        if kind in used
    ]
    chips += [
        f'<td border="2" style="rounded" color="{line}"><font point-size="9">{legend}</font></td>'
        for phase, (legend, line) in PHASES.items()
        if phase in phases
    ]
    rows = "".join(f"<tr>{''.join(chips[at : at + 5])}</tr>" for at in range(0, len(chips), 5))
    return f'<table border="0" cellspacing="4" cellpadding="3">{rows}</table>'


def _cluster(cluster: Cluster, boxes: Iterable[Box], linked: set[str]) -> list[str]:
    style = STYLES[cluster.kind]
    label = f'<<b>{_escape(_clip(cluster.title))}</b><br align="left"/>'
    label += f'<font point-size="9" color="{_FAINT}">{_escape(cluster.detail)}</font>'
    label += '<br align="left"/>>'
    attrs = (
        f'label={label} labeljust="l" fontsize="10" style="filled,rounded" margin="8" '
        f'fillcolor="{style.fill}" color="{style.line}" tooltip="{_quote(cluster.tooltip)}"'
    )
    inner = [f"    {_box(box, linked)}" for box in boxes]
    return [f'  subgraph "cluster_{cluster.key}" {{', f"    graph [{attrs}]", *inner, "  }"]


def _box(box: Box, linked: set[str]) -> str:
    style = STYLES[box.kind]
    faint = style.ink if style.ink != _INK else _FAINT
    label = f"<b>{_escape(_clip(box.title))}</b>"
    if box.detail:
        label += f"&#160;{_escape(_clip(box.detail))}"
    if box.lines:
        below = "<br/>".join(_escape(_clip(line)) for line in box.lines)
        label += f'<br/><font point-size="9" color="{faint}">{below}</font>'
    attrs = [f"label=<{label}>", f'fillcolor="{style.fill}"']
    if box.phase:
        attrs.append(f'color="{PHASES[box.phase][1]}" penwidth="1.8"')
    else:
        attrs.append(f'color="{style.line}"')
    if style.shape != "box":
        attrs += [f'shape="{style.shape}"', 'style="filled"']
    if style.dashed:
        attrs.append('style="filled,rounded,dashed"')
    if style.ink != _INK:
        attrs.append(f'fontcolor="{style.ink}"')
    attrs.append(f'tooltip="{_quote(box.tooltip or box.title)}"')
    if box.link:
        attrs.append(f'URL="#{_quote(box.link)}"')
    if box.key in linked:
        attrs.append(f'id="{_quote(box.key)}"')
    return f'"{_quote(box.key)}" [{" ".join(attrs)}]'


def _arrow(arrow: Arrow, label: str) -> str:
    attrs = []
    if arrow.label:
        attrs.append(f'{label}=" {_quote(arrow.label)} "')
    if arrow.tooltip:
        attrs.append(f'tooltip="{_quote(arrow.tooltip)}"')
    ends = f'"{_quote(arrow.source)}" -> "{_quote(arrow.target)}"'
    return f"{ends} [{' '.join(attrs)}]" if attrs else ends


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _escape(text: str) -> str:
    """For labels that are written like HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;")


def _quote(text: str) -> str:
    """For strings in quotes, where a backslash begins an escape of Graphviz' own."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- rendering ---------------------------------------------------------------------------------


def find_dot() -> str:
    """The program that lays graphs out; RuntimeError says what to install."""
    found = shutil.which("dot") or shutil.which("graphviz-pure") or _installed_program()
    if found is None:
        raise RuntimeError(
            "tg.draw needs Graphviz to lay out the picture, and found neither `dot` nor "
            f"`graphviz-pure` on PATH. Install either, for example with `{_INSTALL}`."
        )
    return found


def _installed_program() -> str | None:
    """The program of the graphviz-pure package, where its folder is not on PATH."""
    from importlib import metadata  # takes 10 ms, which `import tgraph` need not pay

    try:
        files = metadata.files("graphviz-pure") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in ("graphviz-pure", "graphviz-pure.exe"):
            return shutil.which(str(file.locate()))
    return None


def render(text: str, format: str) -> bytes:
    """DOT text as "svg" or "png".

    RuntimeError tells what to install where a part is missing, and what Graphviz says where it
    fails.
    """
    try:
        from graphviz.backend.execute import CalledProcessError, run_check
    except ImportError as error:
        raise RuntimeError(
            f"tg.draw needs the graphviz package; install it with `{_INSTALL}`"
        ) from error
    command: list[Any] = [find_dot(), "-Kdot", f"-T{format}"]
    try:
        done = run_check(command, input=text.encode(), capture_output=True, quiet=True)
    except CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"Graphviz could not draw the picture: {said}") from error
    picture: bytes = done.stdout
    return picture.replace(b'"Helvetica,sans-Serif"', _FONTS) if format == "svg" else picture
