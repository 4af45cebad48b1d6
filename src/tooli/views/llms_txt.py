"""llms.txt and llms-full.txt: an app for models that read websites, as llmstxt.org has them.

llms.txt is a title, one quoted line, one paragraph, then lists of links; readers take nothing
else. The links lead to the pages of the commands, which stand beside it.
"""

from __future__ import annotations

from tooli.views import chapters, story
from tooli.views.markdown import bullets, code, flat, link, page, sentence
from tooli.views.skill import reference_blocks, reference_page

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

FULL = "llms-full.txt"


def llms_txt(portrait: Portrait) -> str:
    """The index: what the app is, how it is called, and where each command is described."""
    return page(
        f"# {flat(portrait.name)}",
        f"> {_about(portrait)}",
        _calling(portrait),
        _sections(portrait),
        "## Optional",
        bullets([f"{link(FULL, FULL)}: All of it in one file"]),
    )


def llms_full(portrait: Portrait) -> str:
    """Everything in one file: the app, then every command's page."""
    return page(
        f"# {flat(portrait.name)}",
        f"> {_about(portrait)}",
        _calling(portrait),
        _more(portrait),
        [block for tool in portrait.tools for block in _whole(portrait, tool)],
        "## Answers",
        chapters.answers(portrait),
        chapters.exits(),
        bullets(chapters.care(portrait)),
        chapters.sections(portrait),
    )


def llms_files(portrait: Portrait) -> dict[str, str]:
    """Both of them, and the pages that the index leads to, by their places in a folder."""
    pages = {chapters.reference(tool): reference_page(portrait, tool) for tool in portrait.tools}
    return {"llms.txt": llms_txt(portrait), FULL: llms_full(portrait), **pages}


def _about(portrait: Portrait) -> str:
    """What the app is, in one line."""
    about = portrait.description.partition("\n\n")[0]
    return sentence(about) or f"The commands of {portrait.name}."


def _more(portrait: Portrait) -> str:
    return portrait.description.partition("\n\n")[2]


def _calling(portrait: Portrait) -> str:
    """How commands are called, as one paragraph."""
    alone = [tool for tool in portrait.tools if not tool.words]
    call = flat(f"{portrait.name}{'' if alone else ' COMMAND'} … --json")
    version = f" (version {flat(portrait.version)})" if portrait.version else ""
    return (
        f"{flat(portrait.name)}{version} is a program for the command line. Call it as "
        f'{code(call)}: stdout is then one JSON document, `{{"ok":true,"result":…}}` or '
        '`{"ok":false,"error":{…}}`, where `error.suggestion` says what to do. '
        f"{code('--help-agent')} tells more about a command, `--schema` gives its contract."
    )


def _sections(portrait: Portrait) -> Iterator[str]:
    """The commands, each group under a heading of its own."""
    groups: dict[str, list[Tool]] = {}
    for tool in portrait.tools:
        groups.setdefault(" ".join(tool.words[:-1]), []).append(tool)
    for group, tools in groups.items():
        yield f"## Commands: {flat(group)}" if group else "## Commands"
        yield bullets([_entry(tool) for tool in tools])


def _entry(tool: Tool) -> str:
    title = story.title(tool).replace("[", "(").replace("]", ")")
    said = [word for word in tool.behavior.words() if word in ("read-only", "destructive")]
    about = " ".join(filter(None, (flat(tool.doc.summary), f"({', '.join(said)})" if said else "")))
    target = link(title, chapters.reference(tool))
    return f"{target}: {about}" if about else target


def _whole(portrait: Portrait, tool: Tool) -> Iterator[str]:
    yield f"## {flat(' '.join((portrait.name, *tool.words)))}"
    yield from reference_blocks(portrait, tool, 3)
