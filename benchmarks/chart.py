"""Lines over two logarithmic axes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from .report import seconds

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 440, 70, 50, 190, 50
COLOURS = ("#1b6ac9", "#d1495b", "#2e8b57", "#8a6d3b", "#6a4c93")
Lines = Mapping[str, Sequence[tuple[float, float]]]


def decades(values: Iterable[float]) -> range:
    """The powers of ten around positive values.

    >>> decades([2e-6, 0.5])
    range(-6, 1)
    """
    every = list(values)
    return range(math.floor(math.log10(min(every))), math.ceil(math.log10(max(every))) + 1)


def logarithmic(title: str, note: str, lines: Lines) -> str:
    """A chart of times; a name before a comma has a colour, the first of a name is dashed."""
    across = decades(x for line in lines.values() for x, _ in line)
    upwards = decades(y for line in lines.values() for _, y in line)
    frame = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT}" y="38" font-size="10" fill="#666">{escape(note)}</text>',
    ]
    drawn = [*_axes(across, upwards), *_lines(across, upwards, lines)]
    return "\n".join([*frame, *drawn, "</svg>"]) + "\n"


def _right(across: range, value: float) -> float:
    share = (math.log10(value) - across[0]) / max(1, len(across) - 1)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _down(upwards: range, value: float) -> float:
    share = (math.log10(value) - upwards[0]) / max(1, len(upwards) - 1)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _axes(across: range, upwards: range) -> Iterator[str]:
    """A rule and a label for each power of ten."""
    low, wide = HEIGHT - BOTTOM, WIDTH - RIGHT
    for power in across:
        x = _right(across, 10.0**power)
        yield _rule(x, TOP, x, low)
        yield f'<text x="{x:.1f}" y="{low + 18}" text-anchor="middle">1e{power}</text>'
    for power in upwards:
        y = _down(upwards, 10.0**power)
        text = seconds(10.0**power)
        yield _rule(LEFT, y, wide, y)
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def _lines(across: range, upwards: range, lines: Lines) -> Iterator[str]:
    """The lines, and their names beside the chart."""
    names: list[str] = []
    for at, (label, line) in enumerate(lines.items()):
        name = label.split(",")[0]
        dashed = name not in names
        names += [name] if dashed else []
        colour = COLOURS[names.index(name) % len(COLOURS)]
        style = f'stroke="{colour}" fill="none" stroke-width="2"'
        style += ' stroke-dasharray="5 4"' if dashed else ""
        points = " ".join(f"{_right(across, x):.1f},{_down(upwards, y):.1f}" for x, y in line)
        yield f'<polyline points="{points}" {style}/>'
        x, y = WIDTH - RIGHT + 12, TOP + 20 * at
        yield f'<line x1="{x}" y1="{y}" x2="{x + 28}" y2="{y}" {style}/>'
        yield f'<text x="{x + 34}" y="{y + 4}">{escape(label)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'
