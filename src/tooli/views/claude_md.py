"""CLAUDE.md: the little that Claude Code should have in mind all the time."""

from __future__ import annotations

from tooli.views import chapters
from tooli.views.markdown import bullets, code, fence, flat, page

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.views.portrait import Portrait

_ROOM = 1_000  # tokens, estimated
_ROOMS = [(detail, _ROOM) for detail in (chapters.LINES, chapters.NAMES, chapters.GROUPS)]


def write_claude_md(portrait: Portrait) -> str:
    """The whole file."""
    return page("# CLAUDE.md", claude_block(portrait))


def claude_block(portrait: Portrait, *, thin: bool = False) -> str:
    """The app's part of such a file; `thin` where AGENTS.md beside it says the rest."""
    if thin:
        return page("@AGENTS.md", f"## {flat(portrait.name)}", _invoking(portrait))
    return chapters.richest(lambda detail: _block(portrait, detail), *_ROOMS)


def _block(portrait: Portrait, detail: int) -> str:
    return page(
        f"## {flat(portrait.name)}",
        portrait.description,
        "### Commands",
        chapters.commands(portrait, detail, level=3),
        _invoking(portrait),
        chapters.sections(portrait, 3),
    )


def _invoking(portrait: Portrait) -> list[str]:
    line = chapters.first_call(portrait)
    rules = [
        'The answer is `{"ok":…,"result":…}`, or `{"ok":false,"error":{…}}` with '
        "`error.suggestion.argv`: a command line that would work.",
        f"More about a command: {code(f'{portrait.name} COMMAND --help-agent')}.",
        "Claude Code is recognised by itself; a script that it starts says "
        "`TOOLI_CALLER=claude-code`.",
        *chapters.care(portrait),
    ]
    return ["### Agent invocation", fence([line], "bash"), bullets(rules)]
