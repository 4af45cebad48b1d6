"""Render the sections of an app's documents, in several levels of detail."""

from __future__ import annotations

from tooli.describe import tool_facts
from tooli.describe.agent_help import render_usage
from tooli.describe.markdown import bullets, code, fence, link, sentence, single_line
from tooli.errors import EXIT_CODES
from tooli.text.tokens import estimate_tokens

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

FULL, SHORT, LINES, NAMES, GROUPS = range(5)
"""Levels of detail, from everything about each command to the names of the groups."""

_MAX_INLINE_OUTPUT = 200  # characters of an example's output

CALLER_VARIABLES = (
    ("TOOLI_CALLER", "your name: `claude-code`, `cursor`, `langchain`, …"),
    ("TOOLI_CALLER_VERSION", "your version"),
    ("TOOLI_SESSION_ID", "one ID for related calls"),
)


def render_within_budget(render: Callable[[int], str], *budgets: tuple[int, int]) -> str:
    """Return the most detailed document that fits its token budget, or else the last one.

    Args:
        render: Returns the document in a level of detail.
        budgets: Pairs of level of detail and maximum number of tokens, most detailed first.
    """
    text = ""
    for detail, max_tokens in budgets:
        text = render(detail)
        if estimate_tokens(text) <= max_tokens:
            break
    return text


# ------------------------------------------------------------------ commands


def command_sections(
    app_info: AppInfo, detail: int, linked: bool = False, level: int = 2
) -> Iterator[str]:
    """Yield every command, grouped by task group if there are several."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(tool.guidance.task_group or "", []).append(tool)
    if detail == GROUPS:
        yield _group_counts(app_info)
        return
    for group, tools in groups.items():
        below = level + 1
        if group and len(groups) > 1:
            yield f"{'#' * below} {single_line(group)}"
            below += 1
        if detail >= LINES:
            yield bullets([_command_bullet(tool, detail, linked) for tool in tools])
        else:
            for tool in tools:
                yield from _command_section(app_info, tool, detail, linked, below)


def _group_counts(app_info: AppInfo) -> str:
    """Return the number of commands in each group, and how to search them."""
    counts: dict[str, int] = {}
    for tool in app_info.tools:
        group = tool.path[0] if len(tool.path) > 1 else "(top level)"
        counts[group] = counts.get(group, 0) + 1
    rows = [f"{code(group)}: {count} commands" for group, count in list(counts.items())[:100]]
    search_hint = f"Search: {code(f'{app_info.name} search-tools TEXT --json')}"
    return f"{bullets(rows)}\n\n{search_hint}"


def _command_bullet(tool: Tool, detail: int, linked: bool) -> str:
    effects = "; ".join(tool_facts.effect_phrases(tool))
    usage = render_usage(tool) if detail == LINES else tool_facts.command_title(tool)
    more = f" {link('More', reference_path(tool))}." if linked and detail == LINES else ""
    summary = sentence(tool.doc.summary)
    about = f"{summary} ({effects})" if effects else summary
    return f"{code(usage)}: {about}{more}" if about else f"{code(usage)}{more}"


def _command_section(
    app_info: AppInfo, tool: Tool, detail: int, linked: bool, level: int
) -> Iterator[str]:
    yield f"{'#' * level} {tool_facts.command_title(tool)}"
    effects = "; ".join(tool_facts.effect_phrases(tool))
    use = tool.guidance.when_to_use
    about = [sentence(tool.doc.summary), f"Use it {_when_clause(use)}" if use else ""]
    yield " ".join(filter(None, [*about, f"({effects})" if effects else ""]))
    yield fence([tool_facts.shortest_call(app_info.name, tool)], "bash")
    output = app_info.example_outputs.get((tool.key, tool_facts.best_example(tool) or 0), "")
    if detail == FULL and 0 < len(output) < _MAX_INLINE_OUTPUT:
        yield fence([output], "json")
    if detail == FULL:
        yield "\n".join(filter(None, [code(render_usage(tool)), *parameter_bullets(tool)]))
    elif tool.public_params:
        yield code(render_usage(tool))
    yield " ".join(filter(None, [*_outcome_sentences(tool), _more_link(tool, linked)]))


def _when_clause(text: str) -> str:
    """Return the author's `when_to_use` so that it completes the sentence "Use it …"."""
    line = sentence(text)
    head = line.split(" ", 1)[0].lower()
    if head in ("when", "if", "to", "for", "whenever", "before", "after", "where", "as", "in"):
        return line[:1].lower() + line[1:]
    return f"for: {line}"


def _more_link(tool: Tool, linked: bool) -> str:
    return f"{link('More', reference_path(tool))}." if linked else ""


def reference_path(tool: Tool) -> str:
    """Return the path of a command's page, relative to the document."""
    return f"references/{tool_facts.file_stem(tool)}.md"


def parameter_bullets(tool: Tool) -> list[str]:
    """Return a bullet for each documented parameter."""
    docs = tool.doc.params
    documented = [(param, param.help or docs.get(param.name)) for param in tool.public_params]
    return [
        f"- {code(max(param.flags, key=len) if param.flags else param.name)}: {single_line(text)}"
        for param, text in documented
        if text and not param.hidden
    ]


def _outcome_sentences(tool: Tool) -> Iterator[str]:
    yield tool_facts.return_sentence(tool)
    failures = [f"{code(name)} ({text})" for name, text in tool_facts.declared_errors(tool)]
    if failures:
        yield f"Fails with {', '.join(failures)}."
    following = [
        f"{code(name)}{f' ({when})' if when else ''}"
        for name, when in tool_facts.next_commands(tool)
    ]
    if following:
        yield f"Next: {', '.join(following)}."


# ------------------------------------------------------------------ common sections


def response_section(app_info: AppInfo) -> str:
    """Return the section about the JSON output and how to get help."""
    help_line = code(f"{app_info.name} COMMAND --help-agent")
    return bullets(
        [
            '`--json` makes stdout one JSON document: `{"ok":true,"result":…,"meta":{…}}`, or '
            '`{"ok":false,"error":{…},"meta":{…}}`. Read `ok` first.',
            "`error` has `code`, `message`, `field`, `is_retryable` and `suggestion`: its `fix` "
            "says what to do, its `argv` is a command line that works.",
            "Long lists in fewer tokens: `-o toon` (same document), `-o csv` (records only).",
            f"Unsure about a flag? Use {help_line} or `--schema`; never guess.",
            "Arguments as JSON, without shell quoting: `--input '{…}'`, `--input @file`, "
            "`--input -`.",
        ]
    )


def exit_code_line() -> str:
    """Return the exit codes in one line."""
    rows = [f"{n} {text.replace(';', ',')}" for n, text in EXIT_CODES.items() if n < 128]
    return f"Exit codes: {'; '.join(rows)}."


def safety_rules(app_info: AppInfo) -> list[str]:
    """Return the safety rules that apply to this app."""
    rules: list[str] = []
    if any([tool.behavior.destructive for tool in app_info.tools]):
        rules.append(
            "Run a destructive command with `--dry-run` first, and with `--yes` only if the human "
            "agrees."
        )
    if any([tool.guard.may_need_approval for tool in app_info.tools]):
        rules.append(
            "Exit code 101: show the human `error.details.approval.command` and wait. After they "
            "have run it, repeat the same call. Do not try to bypass it."
        )
    return rules


def example_call(app_info: AppInfo) -> str:
    """Return an example call, of a read-only command if there is one."""
    tools = sorted(app_info.tools, key=lambda tool: not tool.behavior.read_only)
    return (
        tool_facts.shortest_call(app_info.name, tools[0])
        if tools
        else f"{app_info.name} --help-agent"
    )


def workflow_section(app_info: AppInfo) -> Iterator[str]:
    """Yield the workflows: the usual order of commands, and examples of pipes."""
    steps: list[str] = []
    for tool in app_info.tools:
        before = tool_facts.previous_commands(app_info, tool)
        if before:
            steps.append(
                f"{code(tool_facts.command_title(tool))} often follows {_join_code(before)}"
            )
    if steps:
        yield bullets(steps)
    lines = tool_facts.pipe_examples(app_info)
    if lines:
        yield fence(lines, "bash")


def _join_code(names: Iterable[str]) -> str:
    return ", ".join([code(name) for name in names])


def author_sections(app_info: AppInfo, level: int = 2) -> Iterator[str]:
    """Yield the author's own sections."""
    for title, text in app_info.sections.items():
        yield f"{'#' * level} {single_line(title)}"
        yield text.strip()
