"""AGENTS.md: an app's commands, for agents that read one file about a project."""

from __future__ import annotations

from tooli.views import chapters
from tooli.views.markdown import bullets, flat, page

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.views.portrait import Portrait

_ROOM = 4_000  # tokens, estimated
_ROOMS = [
    (detail, _ROOM)
    for detail in (chapters.FULL, chapters.SHORT, chapters.LINES, chapters.NAMES, chapters.GROUPS)
]


def write_agents_md(portrait: Portrait) -> str:
    """The whole file."""
    return page("# AGENTS.md", agents_block(portrait))


def agents_block(portrait: Portrait) -> str:
    """The app's part of such a file, where others write to it as well."""
    return chapters.richest(lambda detail: _block(portrait, detail), *_ROOMS)


def _block(portrait: Portrait, detail: int) -> str:
    together = list(chapters.onward(portrait)) if detail < chapters.NAMES else []
    return page(
        f"## {flat(portrait.name)}",
        portrait.description,
        "### Commands",
        chapters.commands(portrait, detail, level=3),
        ["### Together", *together] if together else [],
        "### Answers",
        chapters.answers(portrait),
        chapters.exits(),
        "### Rules",
        bullets(["Always pass `--json`, and read `ok` before `result`.", *chapters.care(portrait)]),
        chapters.sections(portrait, 3),
    )
