"""The chapters that an app's documents are made of, each in as much detail as there is room for."""

from __future__ import annotations

from tooli.contract.tokens import estimate
from tooli.errors import EXIT_CODES
from tooli.views import story
from tooli.views.brief import call_for_agents
from tooli.views.markdown import bullets, code, fence, flat, link, sentence

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

FULL, SHORT, LINES, NAMES, GROUPS = range(5)
"""How much is told about each command, from everything to the groups that there are."""

_SHORT_OUTPUT = 200  # characters of an example's answer that stand beside it

CALLER_ROWS = (
    ("TOOLI_CALLER", "who calls: `claude-code`, `cursor`, `langchain`, …"),
    ("TOOLI_CALLER_VERSION", "its version"),
    ("TOOLI_SESSION_ID", "one id for calls that belong together"),
)


def richest(write: Callable[[int], str], *rooms: tuple[int, int]) -> str:
    """The document in the most detail that its room allows: (detail, tokens) are tried in turn."""
    text = ""
    for detail, room in rooms:
        text = write(detail)
        if estimate(text) <= room:
            break
    return text


# ------------------------------------------------------------------ commands


def commands(
    portrait: Portrait, detail: int, linked: bool = False, level: int = 2
) -> Iterator[str]:
    """Every command, under its task group where the author made some."""
    groups: dict[str, list[Tool]] = {}
    for tool in portrait.tools:
        groups.setdefault(tool.guidance.task_group or "", []).append(tool)
    if detail == GROUPS:
        yield _groups(portrait)
        return
    for group, tools in groups.items():
        below = level + 1
        if group and len(groups) > 1:
            yield f"{'#' * below} {flat(group)}"
            below += 1
        if detail >= LINES:
            yield bullets([_line(tool, detail, linked) for tool in tools])
        else:
            for tool in tools:
                yield from _command(portrait, tool, detail, linked, below)


def _groups(portrait: Portrait) -> str:
    """Too many commands to name: how many stand where, and how to find one."""
    counts: dict[str, int] = {}
    for tool in portrait.tools:
        place = tool.path[0] if len(tool.path) > 1 else "(top level)"
        counts[place] = counts.get(place, 0) + 1
    shown = [f"{code(place)}: {count} commands" for place, count in list(counts.items())[:100]]
    finding = f"Find one: {code(f'{portrait.name} search-tools TEXT --json')}"
    return f"{bullets(shown)}\n\n{finding}"


def _line(tool: Tool, detail: int, linked: bool) -> str:
    said = "; ".join(story.effects(tool))
    words = call_for_agents(tool) if detail == LINES else story.title(tool)
    more = f" {link('More', reference(tool))}." if linked and detail == LINES else ""
    summary = sentence(tool.doc.summary)
    about = f"{summary} ({said})" if said else summary
    return f"{code(words)}: {about}{more}" if about else f"{code(words)}{more}"


def _command(
    portrait: Portrait, tool: Tool, detail: int, linked: bool, level: int
) -> Iterator[str]:
    yield f"{'#' * level} {story.title(tool)}"
    said = "; ".join(story.effects(tool))
    use = tool.guidance.when_to_use
    about = [sentence(tool.doc.summary), f"Use it {_when(use)}" if use else ""]
    yield " ".join(filter(None, [*about, f"({said})" if said else ""]))
    yield fence([story.shortest(portrait.name, tool)], "bash")
    output = portrait.outputs.get((tool.key, story.best_example(tool) or 0), "")
    if detail == FULL and 0 < len(output) < _SHORT_OUTPUT:
        yield fence([output], "json")
    if detail == FULL:
        yield "\n".join(filter(None, [code(call_for_agents(tool)), *parameters(tool)]))
    elif tool.public:
        yield code(call_for_agents(tool))
    yield " ".join(filter(None, [*_ending(tool), _more(tool, linked)]))


def _when(text: str) -> str:
    """The author's words, as they go on behind "Use it"."""
    line = sentence(text)
    head = line.split(" ", 1)[0].lower()
    if head in ("when", "if", "to", "for", "whenever", "before", "after", "where", "as", "in"):
        return line[:1].lower() + line[1:]
    return f"for: {line}"


def _more(tool: Tool, linked: bool) -> str:
    return f"{link('More', reference(tool))}." if linked else ""


def reference(tool: Tool) -> str:
    """Where the page of one command stands, beside the document."""
    return f"references/{story.stem(tool)}.md"


def parameters(tool: Tool) -> list[str]:
    """What each parameter means, a bullet each; those that nobody explained are left out."""
    docs = tool.doc.params
    told = [(param, param.help or docs.get(param.name)) for param in tool.public]
    return [
        f"- {code(max(param.flags, key=len) if param.flags else param.name)}: {flat(text)}"
        for param, text in told
        if text and not param.hidden
    ]


def _ending(tool: Tool) -> Iterator[str]:
    yield story.returning(tool)
    failures = [f"{code(name)} ({text})" for name, text in story.failures(tool)]
    if failures:
        yield f"Fails with {', '.join(failures)}."
    following = [
        f"{code(name)}{f' ({when})' if when else ''}" for name, when in story.followers(tool)
    ]
    if following:
        yield f"Next: {', '.join(following)}."


# ------------------------------------------------------------------ what holds for all


def answers(portrait: Portrait) -> str:
    """The envelope, and how to read it."""
    help_line = code(f"{portrait.name} COMMAND --help-agent")
    return bullets(
        [
            '`--json` makes stdout one JSON document: `{"ok":true,"result":…,"meta":{…}}`, or '
            '`{"ok":false,"error":{…},"meta":{…}}`. Read `ok` first.',
            "`error` has `code`, `message`, `field`, `is_retryable` and `suggestion`: its `fix` "
            "says what to do, its `argv` is a command line that would work.",
            "Long lists in fewer tokens: `-o toon`, the same document; `-o csv`, the records "
            "alone.",
            f"Unsure about a flag? {help_line} or `--schema`; never guess.",
            "Arguments as JSON, without shell quoting: `--input '{…}'`, `--input @file`, "
            "`--input -`.",
        ]
    )


def exits() -> str:
    """The exit codes, in a line."""
    shown = [f"{n} {text.replace(';', ',')}" for n, text in EXIT_CODES.items() if n < 128]
    return f"Exit codes: {'; '.join(shown)}."


def care(portrait: Portrait) -> list[str]:
    """The rules that a careful agent follows, as far as this app needs them."""
    rules: list[str] = []
    if any([tool.behavior.destructive for tool in portrait.tools]):
        rules.append(
            "Run a destructive command with `--dry-run` first; with `--yes` only if the human "
            "wants it done."
        )
    if any([tool.guard.careful for tool in portrait.tools]):
        rules.append(
            "Exit code 101: show the human `error.details.approval.command`, and wait; when they "
            "have run it, repeat the same call. There is no way around it."
        )
    return rules


def first_call(portrait: Portrait) -> str:
    """A call to begin with: one that changes nothing, if there is one."""
    tools = sorted(portrait.tools, key=lambda tool: not tool.behavior.read_only)
    return story.shortest(portrait.name, tools[0]) if tools else f"{portrait.name} --help-agent"


def onward(portrait: Portrait) -> Iterator[str]:
    """What goes with what: next steps, and pipes."""
    steps: list[str] = []
    for tool in portrait.tools:
        before = story.leaders(portrait, tool)
        if before:
            steps.append(f"{code(story.title(tool))} commonly comes after {_either(before)}")
    if steps:
        yield bullets(steps)
    lines = story.pipes(portrait)
    if lines:
        yield fence(lines, "bash")


def _either(names: Iterable[str]) -> str:
    return ", ".join([code(name) for name in names])


def sections(portrait: Portrait, level: int = 2) -> Iterator[str]:
    """What the author wants said, under his own titles."""
    for title, text in portrait.sections.items():
        yield f"{'#' * level} {flat(title)}"
        yield text.strip()
