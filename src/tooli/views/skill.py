"""SKILL.md and its references: an app as a skill that agents load when they need it."""

from __future__ import annotations

from tooli.contract.schema import output_schema
from tooli.views import chapters, story
from tooli.views.brief import call_for_agents
from tooli.views.markdown import bullets, code, fence, flat, page, sentence

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

_ROOMS = (
    (chapters.FULL, 1_900),
    (chapters.SHORT, 2_600),
    (chapters.LINES, 4_500),
    (chapters.NAMES, 5_000),
    (chapters.GROUPS, 5_000),
)
"""Estimated tokens that each amount of detail may take; real ones are about a quarter fewer."""

_ENTRY = 420  # characters of a description: an agent has those of all its skills in mind


def skill_files(portrait: Portrait) -> dict[str, str]:
    """The whole skill: SKILL.md and a page for each command, by their places in its folder."""
    files = {"SKILL.md": write_skill(portrait, linked=True)}
    for tool in portrait.tools:
        files[chapters.reference(tool)] = reference_page(portrait, tool)
    return files


def skill_slug(name: str) -> str:
    """The skill's name, and its folder's: small letters, digits and single hyphens."""
    letters = "".join([c if c.isascii() and c.isalnum() else "-" for c in name.lower()])
    parts = "-".join(filter(None, letters.split("-")))
    return parts[:64].strip("-") or "app"


def write_skill(portrait: Portrait, *, linked: bool = False) -> str:
    """SKILL.md; `linked` where the pages of its commands stand beside it."""
    return chapters.richest(lambda detail: _skill(portrait, detail, linked), *_ROOMS)


def _skill(portrait: Portrait, detail: int, linked: bool) -> str:
    next_steps = list(chapters.onward(portrait)) if detail < chapters.NAMES else []
    return f"{_front_matter(portrait)}\n\n" + page(
        f"# {flat(portrait.name)}",
        portrait.description,
        "## Commands",
        chapters.commands(portrait, detail, linked),
        ["## Together", *next_steps] if next_steps else [],
        "## Answers",
        chapters.answers(portrait),
        chapters.exits(),
        bullets(chapters.care(portrait)),
        _calling(portrait),
        chapters.sections(portrait),
    )


def _calling(portrait: Portrait) -> list[str]:
    """How an agent says who it is."""
    line = f"TOOLI_CALLER=my-agent {chapters.first_call(portrait)}"
    rows = [f"`{name}`: {text}" for name, text in chapters.CALLER_ROWS]
    return ["## Say who you are", fence([line], "bash"), bullets(rows)]


# ------------------------------------------------------------------ front matter


def _front_matter(portrait: Portrait) -> str:
    lines = ["---", f"name: {skill_slug(portrait.name)}", "description: >-"]
    lines += _folded(_entry(portrait))
    lines += ["compatibility: >-", *_folded(f"Needs the program {portrait.name} on the PATH.")]
    lines += ["metadata:", '  generator: "tooli"']
    if portrait.version:
        lines.append(f"  version: {_quoted(portrait.version)}")
    return "\n".join([*lines, "---"])


def _entry(portrait: Portrait) -> str:
    """What the app is and what to use it for: all that an agent sees before it loads the skill."""
    about = sentence(portrait.description) or f"The commands of {portrait.name}."
    text = f"{about[:600]} Use it to"
    for i, tool in enumerate(portrait.tools):
        task = flat(tool.doc.summary or story.title(tool)).rstrip(".")
        task = task.partition(";")[0].partition(". ")[0]
        more = f"{';' if i else ''} {task[:1].lower()}{task[1:]}"
        if i and len(text) + len(more) > _ENTRY:
            return f"{text}; and more."[:1024]
        text += more
    return f"{text}."[:1024] if portrait.tools else about[:1024]


def _folded(text: str) -> list[str]:
    """Text as the lines of a YAML block; three hyphens would end the front matter there."""
    words = "".join([c if c.isprintable() else " " for c in text.replace("---", "—")])
    lines: list[str] = []
    line = " "
    for word in words.split():
        if len(line) > 1 and len(line) + 1 + len(word) > 98:
            lines.append(line)
            line = " "
        line += f" {word}"
    return [*lines, line]


def _quoted(text: str) -> str:
    from json import dumps

    return dumps(flat(text), ensure_ascii=False)


# ------------------------------------------------------------------ one command


def reference_page(portrait: Portrait, tool: Tool) -> str:
    """Everything about one command, as a page of its own."""
    return page(
        f"# {portrait.name} {' '.join(tool.words)}".rstrip(), reference_blocks(portrait, tool, 2)
    )


def reference_blocks(portrait: Portrait, tool: Tool, level: int) -> Iterator[str]:
    """The same without its title; `level` is that of the headings."""
    mark = "#" * level
    yield tool.doc.summary
    yield tool.doc.description or ""
    if tool.guidance.when_to_use:
        yield f"When to use it: {sentence(tool.guidance.when_to_use)}"
    facts = [*story.effects(tool), *story.needs(tool)]
    yield bullets([f"{fact[:1].upper()}{fact[1:]}" for fact in facts])
    yield f"{mark} Call"
    yield code(f"{portrait.name} {call_for_agents(tool)}")
    yield "\n".join(chapters.parameters(tool))
    yield from _examples(portrait, tool)
    returned = story.returning(tool)
    if returned:
        yield f"{mark} Result"
        yield returned
        yield from _fields(tool)
    failures = story.failures(tool)
    if failures:
        yield f"{mark} Errors"
        yield bullets([f"`{name}`: {text}; {story.remedy(name)}" for name, text in failures])
    yield from _neighbours(portrait, tool, mark)


def _examples(portrait: Portrait, tool: Tool) -> Iterator[str]:
    """The author's examples, with what they really gave where somebody has tried them."""
    if not tool.guidance.examples:
        yield fence([story.shortest(portrait.name, tool)], "bash")
    for i, example in enumerate(tool.guidance.examples):
        about = example.get("description")
        yield f"{flat(str(about)).rstrip('.:')}:" if about else ""
        line = story.typed(portrait.name, tool, example.get("args", ()), *story.answer_flags(tool))
        yield fence([line], "bash")
        if (tool.key, i) in portrait.outputs:
            yield fence([portrait.outputs[tool.key, i]], "json")


def _fields(tool: Tool) -> Iterator[str]:
    """The fields that have something said about them."""
    from tooli.views.types import brief
    from tooli.views.values import parts_of

    told = [
        f"`{name}` ({brief(inner)}): {flat(str(inner['description']))}"
        for name, inner in parts_of(output_schema(tool) or {}).items()
        if inner.get("description")
    ]
    yield bullets(told)


def _neighbours(portrait: Portrait, tool: Tool, mark: str) -> Iterator[str]:
    after, before = story.followers(tool), story.leaders(portrait, tool)
    if after or before:
        yield f"{mark} Together"
        yield bullets(
            [
                *[f"Next: {code(name)}{f', {when}' if when else ''}" for name, when in after],
                *[f"Commonly after {code(name)}" for name in before],
            ]
        )
