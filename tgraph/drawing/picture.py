"""What is to be drawn, before anything is said of how: boxes, arrows, clusters.

`graph_picture` and `autograd_picture` make a Picture, this module makes it smaller where that is
asked for or needed, and `dot` writes it for Graphviz.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import attrgetter

from ..runtime.records import NamedTuple

# More boxes than this are not laid out one by one: that would take minutes.
MAX_BOXES = 2000
# Operations that the box of a group names, most frequent first.
_NAMED = 3


class Box(NamedTuple):
    """One box. `kind` chooses its style, `detail` follows the title, `lines` stand below.

    `module`, `line` and `code` (the text of that line) are what boxes are put together by;
    `phase` is "backward" or "step" where the line says so, `link` the key of a box to jump to.
    """

    key: str
    kind: str
    title: str
    detail: str = ""
    lines: tuple[str, ...] = ()
    tooltip: str = ""
    cluster: str = ""
    module: str = ""
    line: str = ""
    code: str = ""
    phase: str = ""
    link: str = ""


class Arrow(NamedTuple):
    """From box to box; `label` is the shape, where it changes."""

    source: str
    target: str
    label: str = ""
    tooltip: str = ""


class Cluster(NamedTuple):
    """A frame around the boxes that name it."""

    key: str
    kind: str
    title: str
    detail: str = ""
    tooltip: str = ""


class Picture(NamedTuple):
    """A title, a line below it, and what is drawn; `notes` tell what is left out."""

    title: str
    summary: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    clusters: tuple[Cluster, ...] = ()
    notes: tuple[str, ...] = ()


# Boxes that stand for values of the outside; they are never put together with others.
ENDS = frozenset(
    (
        "argument", "parameter", "captured", "number", "random", "saved", "leaf", "output",
        "written",
    )
)  # fmt: skip


# Ways to put boxes together, and the field that says with which others.
COLLAPSES = {"kernel": "cluster", "module": "module", "line": "line"}


def collapse(picture: Picture, by: str) -> Picture:
    """One box for every "kernel", "module" or "line" of the user's program.

    Boxes that belong to none stay as they are, and so do inputs and outputs.
    """
    if by not in COLLAPSES:
        raise ValueError(f"collapse expected one of {', '.join(COLLAPSES)}, got {by!r}")
    clusters = {cluster.key: cluster for cluster in picture.clusters}
    groups = _groups(picture, by)
    members: dict[str, list[Box]] = {}
    for box in picture.boxes:
        if box.key in groups:
            members.setdefault(groups[box.key], []).append(box)
    made = {
        name: _kernel_box(clusters[name], boxes) if by == "kernel" else _group_box(name, by, boxes)
        for name, boxes in members.items()
    }
    return _merged(picture, groups, made)


def _groups(picture: Picture, by: str) -> dict[str, str]:
    """The name of the group for each box that belongs to one."""
    name_of = attrgetter(COLLAPSES[by])
    named = ((box.key, name_of(box)) for box in picture.boxes if box.kind not in ENDS)
    return {key: name for key, name in named if name}


def _group_box(name: str, by: str, boxes: list[Box]) -> Box:
    lines = _code(boxes) if by == "line" else ()
    names = ", ".join(dict.fromkeys(box.line for box in boxes if box.line))
    lines = (*lines, _counts(boxes))
    return Box(f"g_{boxes[0].key}", by, name, "", lines, names, phase=_phase(boxes))


def _kernel_box(cluster: Cluster, boxes: list[Box]) -> Box:
    lines = (cluster.detail, _counts(boxes))
    return Box(
        f"g_{cluster.key}", cluster.kind, cluster.title, "", lines, cluster.tooltip,
        phase=_phase(boxes),
    )  # fmt: skip


def _phase(boxes: list[Box]) -> str:
    phases = {box.phase for box in boxes}
    return phases.pop() if len(phases) == 1 else ""


def _code(boxes: list[Box]) -> tuple[str, ...]:
    return (boxes[0].code,) if boxes[0].code else ()


def _counts(boxes: list[Box]) -> str:
    """Such as "mul 12, add 3, 5 more"."""
    counted = Counter(box.title for box in boxes).most_common()
    named = [f"{title} {count:,}" for title, count in counted[:_NAMED]]
    rest = sum(count for _, count in counted[_NAMED:])
    return ", ".join([*named, *([f"{rest:,} more"] if rest else [])])


def _merged(
    picture: Picture,
    groups: Mapping[str, str],
    made: Mapping[str, Box],
    clusters: tuple[Cluster, ...] = (),
) -> Picture:
    """`picture` with each group of boxes, given by key, replaced by the one made for it.

    Of the clusters only `clusters` are left.
    """
    boxes: dict[str, Box] = {}
    key_of: dict[str, str] = {}
    for box in picture.boxes:
        alone = box if clusters else box._replace(cluster="")
        kept = made[groups[box.key]] if box.key in groups else alone
        boxes[kept.key] = kept
        key_of[box.key] = kept.key
    arrows: dict[tuple[str, str], Arrow] = {}
    for arrow in picture.arrows:
        ends = key_of[arrow.source], key_of[arrow.target]
        if ends[0] != ends[1]:
            arrows.setdefault(ends, arrow._replace(source=ends[0], target=ends[1]))
    return picture._replace(
        boxes=tuple(boxes.values()), arrows=tuple(arrows.values()), clusters=clusters
    )


# What is drawn as one box where several have the same neighbour.
_BUNDLED = {
    "captured": "captured tensors",
    "number": "numbers",
    "saved": "saved values",
    "output": "outputs",
    "written": "written in place",
}
# Names that such a box lists.
_LISTED = 4


def bundled(picture: Picture) -> Picture:
    """Inputs of one kind that only one kernel reads as one box, and outputs that it gives.

    Numbers that several kernels read stand beside each.
    """
    picture = _scattered(picture)
    places = {box.key: box.cluster or box.key for box in picture.boxes}
    near: dict[str, set[tuple[bool, str]]] = {}
    for arrow in picture.arrows:
        near.setdefault(arrow.source, set()).add((True, places[arrow.target]))
        near.setdefault(arrow.target, set()).add((False, places[arrow.source]))
    bundles: dict[str, list[Box]] = {}
    for box in picture.boxes:
        if box.kind in _BUNDLED and len(near.get(box.key, ())) == 1:
            bundles.setdefault(f"{box.kind} {near[box.key]}", []).append(box)
    groups = {box.key: name for name, found in bundles.items() if len(found) > 1 for box in found}
    made = {name: _bundle(found) for name, found in bundles.items() if len(found) > 1}
    return _merged(picture, groups, made, picture.clusters)


def _scattered(picture: Picture) -> Picture:
    places = {box.key: box.cluster or box.key for box in picture.boxes}
    numbers = {box.key: box for box in picture.boxes if box.kind == "number"}
    copies: dict[tuple[str, str], Box] = {}
    arrows: list[Arrow] = []
    for arrow in picture.arrows:
        if arrow.source in numbers:
            near = arrow.source, places[arrow.target]
            key = f"{arrow.source}_at{len(copies)}"
            copy = copies.setdefault(near, numbers[arrow.source]._replace(key=key))
            arrow = arrow._replace(source=copy.key)
        arrows.append(arrow)
    read = {source for source, _ in copies}
    boxes = [box for box in picture.boxes if box.key not in read]
    return picture._replace(boxes=(*copies.values(), *boxes), arrows=tuple(arrows))


def _bundle(boxes: list[Box]) -> Box:
    titles = list(dict.fromkeys(box.title for box in boxes))
    shown = titles if len(titles) <= _LISTED else titles[: _LISTED - 1]
    rest = [f"{len(titles) - len(shown)} more"] if len(titles) > len(shown) else []
    tooltip = "\n".join(f"{box.title}: {', '.join(box.lines)}" for box in boxes)
    title = f"{len(boxes)} {_BUNDLED[boxes[0].kind]}"
    return boxes[0]._replace(title=title, lines=(*shown, *rest), tooltip=tooltip)


def limited(picture: Picture, limit: int = MAX_BOXES) -> Picture:
    """`picture`, put together or cut until it has at most `limit` boxes; a note says so."""
    count = len(picture.boxes)
    if count <= limit:
        return picture
    for by in COLLAPSES:
        groups = _groups(picture, by)
        if count - len(groups) + len(set(groups.values())) <= min(limit, count // 2):
            smaller = collapse(picture, by)
            note = f"{count:,} boxes are too many to draw: one box per {by} instead"
            return smaller._replace(notes=(*picture.notes, note))
    return _cut(picture, limit)


def _cut(picture: Picture, limit: int) -> Picture:
    """The first and the last boxes, and one box for all between."""
    half = (limit - 1) // 2
    middle = picture.boxes[half : len(picture.boxes) - half]
    text = f"{len(middle):,} more boxes"
    left_out = Box("left_out", "note", text, "", (_counts(list(middle)),))
    groups = {box.key: "middle" for box in middle}
    note = f"{text} are left out: {len(picture.boxes):,} are too many to draw"
    cut = _merged(picture, groups, {"middle": left_out})
    return cut._replace(notes=(*picture.notes, note))


# --- long arrows ---------------------------------------------------------------------------------

# Rows that all arrows together may cross before the longest are cut: Graphviz routes an arrow
# around what stands in every row, and the eye does not follow it either.
_CROSSINGS = 3500
_LONGEST = (100, 50, 25, 12)
# Readers that stand within so many rows share the small box.
_SHARED = 4


def shortened(picture: Picture, crossings: int = _CROSSINGS) -> Picture:
    """`picture` with long arrows cut, if there are many: a small box names where they come from."""
    row = _rows(picture)
    lengths = [row[arrow.target] - row[arrow.source] for arrow in picture.arrows]
    if sum(lengths) <= crossings:
        return picture
    for longest in _LONGEST:
        if sum(length for length in lengths if length <= longest) <= crossings:
            break
    box_of = {box.key: box for box in picture.boxes}
    stubs: dict[tuple[str, str, int], Box] = {}
    arrows: list[Arrow] = []
    for arrow, length in zip(picture.arrows, lengths, strict=True):
        if length > longest:
            near = (arrow.source, box_of[arrow.target].cluster, row[arrow.target] // _SHARED)
            stub = stubs.setdefault(near, _stub(box_of[arrow.source], len(stubs)))
            arrow = arrow._replace(source=stub.key)
        arrows.append(arrow)
    return picture._replace(boxes=(*picture.boxes, *stubs.values()), arrows=tuple(arrows))


def _stub(source: Box, number: int) -> Box:
    tooltip = f"comes from elsewhere in the picture:\n{source.tooltip or source.title}"
    lines = (source.line,) if source.line else ()
    return Box(
        f"stub{number}", "elsewhere", source.title, source.detail, lines, tooltip, link=source.key
    )


def _rows(picture: Picture) -> dict[str, int]:
    """About the row in which each box will stand; what nothing leads to stands with its readers."""
    place = {box.key: number for number, box in enumerate(picture.boxes)}
    sources: dict[str, list[str]] = {box.key: [] for box in picture.boxes}
    targets: dict[str, list[str]] = {box.key: [] for box in picture.boxes}
    for arrow in picture.arrows:
        if place[arrow.source] < place[arrow.target]:  # leaves out what closes a circle
            sources[arrow.target].append(arrow.source)
            targets[arrow.source].append(arrow.target)
    row: dict[str, int] = {}
    for key, found in sources.items():
        row[key] = max((row[each] + 1 for each in found), default=0)
    for key, found in sources.items():
        if not found and targets[key]:
            row[key] = min(row[each] for each in targets[key]) - 1
    return row
