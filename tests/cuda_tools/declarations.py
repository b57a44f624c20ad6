"""Of the declarations in front of CUDA C, those that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_WORD = re.compile(r"[A-Za-z_]\w*")
_BRACKET = re.compile(r"[{}();]|^#.*$", re.MULTILINE)
_INSIDE = re.compile(r"\{.*\}|\([^()]*\)|\btemplate\s*<[^{}();]*?>", re.DOTALL)
_COMMON = frozenset(
    _WORD.findall(
        "__attribute__ alignas aligned always_inline auto bool char class const constexpr double"
        " extern float inline int long noexcept short signed static struct template typedef"
        " typename unsigned void"
    )
)


class Declaration(NamedTuple):
    text: str
    declares: frozenset[str]  # empty: it is needed always
    uses: frozenset[str]


def declarations(text: str) -> list[Declaration]:
    """The declarations of a text without comments, whose macros are expanded, in their order."""
    return [_declaration(each) for each in _pieces(text) if each.strip()]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that each end where no bracket is open; directives are their own."""
    depth = start = 0
    for match in _BRACKET.finditer(text):
        found = match[0]
        if found[0] == "#" and depth:
            continue
        if found[0] == "#":
            yield from (text[start : match.start()], f"\n{found}\n")
            start = match.end()
            continue
        depth += (found in "({") - (found in ")}")
        if depth == 0 and (found == ";" or (found == "}" and not _goes_on(text, match.end()))):
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]


def _goes_on(text: str, at: int) -> bool:
    return text[at:].lstrip()[:1] == ";"


def _declaration(text: str) -> Declaration:
    words = frozenset(_WORD.findall(text))
    if text.lstrip()[:1] == "#" or text.lstrip().startswith("namespace"):
        return Declaration(text, frozenset(), words if text.lstrip()[:1] != "#" else frozenset())
    head, before = text, ""
    while head != before:
        head, before = _INSIDE.sub(" ", head), head
    named = {each for each in _WORD.findall(head) if len(each) > 1}
    return Declaration(text, frozenset(named) - _COMMON, words)


def needed(known: Sequence[Declaration], text: str) -> str:
    """The declarations that a text uses, and those that these use."""
    words = set(_WORD.findall(text))
    chosen = {at for at, each in enumerate(known) if not each.declares}
    for at in chosen:
        words |= known[at].uses
    grows = True
    while grows:
        more = {
            at
            for at, each in enumerate(known)
            if at not in chosen and not words.isdisjoint(each.declares)
        }
        for at in more:
            words |= known[at].uses
        chosen |= more
        grows = bool(more)
    return "".join(known[at].text for at in sorted(chosen))
