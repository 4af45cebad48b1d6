"""AppInfo, facts about tools, and the sections of documents.

Sections have several levels of detail, so that a document fits its token budget.
"""

from __future__ import annotations

import sys
from hashlib import sha256

from tooli.core import Record
from tooli.core._hot_tables import FLAGS
from tooli.core.command_words import callback_options
from tooli.describe.agent_help import (
    parameter_text,
    place_of_options,
    render_usage,
    usage_of_callbacks,
    usage_of_settings,
)
from tooli.describe.calls import (
    best_example,
    command_title,
    drop_broken_examples,
    shortest_call,
    spell_flag,
)
from tooli.describe.compositions import Composition, infer_compositions
from tooli.describe.markdown import bullets, code, fence, link, sentence, single_line
from tooli.describe.mcp_resources import prompt_usage, resource_uri
from tooli.errors import EXIT_CODES, shell_quote
from tooli.schema.json_schema import output_schema
from tooli.schema.notation import format_type
from tooli.text.token_estimate import estimate_tokens

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tooli.config.app_settings import AppSettings
    from tooli.core.protocols import JsonObject, ToolSource
    from tooli.core.tool import Tool


class AppInfo(Record):
    """An app's description and its visible tools."""

    name: str  # also the name of the program
    tools: tuple[Tool, ...]
    version: str | None = None
    description: str = ""
    sections: Mapping[str, str] = {}  # the author's own sections, by title
    import_path: str | None = None  # "package.module:app"
    example_outputs: Mapping[tuple[str, int], str] = {}  # by tool and index of the example

    skill_target: str = "generic-skill"  # who reads SKILL.md
    command: tuple[str, ...] = ()  # starts the program if its name does not
    own_names: frozenset[str] = frozenset()  # the first words of its commands, hidden ones as well
    is_custom_group: bool = False  # a class of the author's decides what the words mean
    permissions: tuple[str, ...] | None = None  # the most that its commands may use; None: no limit
    resources: tuple[JsonObject, ...] = ()  # descriptions of the resources and prompts
    prompts: tuple[JsonObject, ...] = ()
    problems: tuple[str, ...] = ()  # what the author should correct: examples that do not work
    settings: AppSettings | None = None  # of `Tooli(settings=…)`

    def with_command(self, words: Sequence[str]) -> AppInfo:
        """Return the description with other words that start the program, if there are any."""
        return self.replace(command=tuple(words)) if words else self

    @property
    def start_words(self) -> tuple[str, ...]:
        """The words that start the program."""
        return self.command or (self.name,)

    @property
    def program(self) -> str:
        """The start of every command line."""
        return " ".join(map(shell_quote, self.start_words))

    @property
    def call_words(self) -> tuple[str, ...]:
        """The words before the arguments of a call; COMMAND stands for the command."""
        has_one_command = any([not tool.cli_path for tool in self.tools])
        return self.start_words if has_one_command else (*self.start_words, "COMMAND")

    def call_line(self, *flags: str) -> str:
        """Return `call_words` and flags as a line for a shell."""
        return " ".join(map(shell_quote, (*self.call_words, *flags)))

    def builtin_argv(self, *words: str) -> list[str]:
        """Return a command line that runs a built-in command of the app.

        An own command of that name, or a single command that takes the words as its arguments, is
        bypassed with the word `tooli`, or else with the program `tooli`.
        """
        only = next((tool for tool in self.tools if not tool.cli_path), None)
        if only is None or not only.returns_printed_text:
            prefixes = [("tooli",)] if words[0] in self.own_names else [()]
        else:
            prefixes = [prefix for prefix in ((), ("tooli",)) if _rejects(only, (*prefix, *words))]
        if prefixes and not self.is_custom_group:
            return [*self.start_words, *prefixes[0], *words]
        end = next((i for i, word in enumerate(words) if word[:1] == "-"), len(words))
        return ["tooli", *words[:end], self.import_path or "APP", *words[end:]]


def collect_app_info(app: ToolSource) -> AppInfo:
    """Return the description of an app."""
    state, tree = app._state, app.tree()
    resources, prompts = served_entries(app)
    checked = [drop_broken_examples(app, tool) for tool in app.catalog if not tool.hidden]
    return AppInfo(
        state.name,
        tuple([tool for tool, _ in checked]),
        state.version,
        (state.description or "").strip(),
        state.sections,
        _import_path(app),
        own_names=frozenset(tree.names),
        is_custom_group=tree.has_dynamic_commands and tree.only_command is None,
        permissions=state.permissions,
        resources=resources,
        prompts=prompts,
        problems=tuple([problem for _, problems in checked for problem in problems]),
        settings=state.app_settings,
        # a plain Typer app has the options of tooli only if `tooli run` starts it
        command=state.launcher_words,
    )


def served_entries(app: ToolSource) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]]:
    """Return the descriptions of the resources and prompts of an app.

    An app without any has not loaded their module.
    """
    served = app._state.app
    if "tooli.providers.resources" not in sys.modules or served is None:
        return (), ()
    return tuple(served.list_resources()), tuple(served.list_prompts())


def served_section(app_info: AppInfo) -> list[str]:
    """Return the section about the resources and prompts; nothing if there are none."""
    if not (app_info.resources or app_info.prompts):
        return []
    lines: list[str] = []
    if app_info.resources:
        read = shlex_join(app_info.builtin_argv("resources", "read"))
        rows = [f"{code(resource_uri(r))}: {_first(r)}" for r in app_info.resources]
        lines += [f"{code(f'{read} URI')} reads a resource:", bullets(rows)]
    if app_info.prompts:
        get = shlex_join(app_info.builtin_argv("prompts", "get"))
        rows = [f"{code(prompt_usage(p))}: {_first(p)}" for p in app_info.prompts]
        lines += [f"{code(f'{get} NAME argument=value')} fills in a prompt:", bullets(rows)]
    return ["## Resources and prompts", *lines]


def shlex_join(words: Iterable[str]) -> str:
    """Return words as a command line of a POSIX shell."""
    return " ".join(map(shell_quote, words))


def _first(entry: JsonObject) -> str:
    return single_line(str(entry.get("description", "")).partition("\n")[0])


def _rejects(tool: Tool, words: tuple[str, ...]) -> bool:
    """True if a command does not accept these words as its arguments and options."""
    values = [word for word in words if word[:1] != "-"]
    arguments = [param for param in tool.params if param.kind == "argument"]
    if not any(param.is_multiple for param in arguments):
        return sum(param.nargs for param in arguments) < len(values)
    known = {flag for param in tool.params for flag in (*param.flags, *param.negations)}
    return any(word[:2] == "--" and word not in known and word not in FLAGS for word in words)


def _import_path(app: ToolSource) -> str | None:
    """Return "package.module:name" of the app, or None if it cannot be imported."""
    module_globals: JsonObject = app._state.module_globals
    spec = module_globals.get("__spec__")
    module = getattr(spec, "name", None) or module_globals.get("__name__", "")
    if module == "__main__":
        path = str(module_globals.get("__file__") or "").replace("\\", "/")
        module = path.rpartition("/")[2].partition(".")[0]
    names = [name for name, value in module_globals.items() if value is app and name[:1] != "_"]
    return f"{module}:{names[0]}" if module.replace(".", "").isidentifier() and names else None


# ------------------------------------------------------------------ names


def file_stem(tool: Tool) -> str:
    """Return the command's name for use in a file name."""
    parts = tool.path or (tool.app,)
    plain_parts = [
        "".join([c if c.isalnum() or c in "-_" else "-" for c in part]) for part in parts
    ]
    name = ".".join(plain_parts).strip("-.") or "command"
    if tuple(plain_parts) == tool.path and name.islower():
        return name
    # A digest keeps names unique if characters were replaced or names differ only in case.
    return f"{name}-{sha256(repr(parts).encode()).hexdigest()[:6]}"


# ------------------------------------------------------------------ results


def result_type(tool: Tool) -> str:
    """Return the type of the result in short notation; "" if none is declared."""
    schema = output_schema(tool)
    return "" if schema is None else format_type(schema)


def return_sentence(tool: Tool) -> str:
    """Return a sentence about the result."""
    result = result_type(tool)
    if tool.is_streaming:
        item = result[1:-1] if result[:1] == "[" else result
        return (
            f"Streams {code(item)}, one per line with `--jsonl`, as events with `--stream`; "
            "`--json` returns a list."
        )
    if result:
        return f"Returns {code(result)}."
    return "Returns its printed text." if tool.returns_printed_text else ""


# ------------------------------------------------------------------ effects, limits, errors


def effect_phrases(tool: Tool) -> list[str]:
    """Return short phrases about a tool's effects, approval, capabilities and cost."""
    effects, guard, limits = tool.effects, tool.guard, tool.limits
    is_confirmed = tool.behavior.destructive  # other commands never ask
    confirmation = "" if guard.needs_human else f", `{spell_flag(tool, '--yes')}` to confirm"
    dry_run = spell_flag(tool, "--dry-run")
    forbidden = ", never runs" if guard.danger == "forbidden" else ""
    reason = "" if tool.deprecated is True else f": {tool.deprecated}"
    phrases = {
        "read-only": effects.read_only,
        f"destructive: `{dry_run}` first{confirmation}": is_confirmed,
        "may change or destroy data": effects.destructive and not is_confirmed,
        "safe to repeat": effects.idempotent and not effects.read_only,
        "accesses other machines": effects.open_world,
        "a human must approve each call": guard.needs_human,
        f"danger: {guard.danger}{forbidden}": guard.danger,
        f"requires the scopes {', '.join(guard.scopes or ())}": guard.scopes,
        f"capabilities: {_code_list(guard.capabilities)}": guard.capabilities,
        f"cost: {single_line(str(limits.cost_hint))}": limits.cost_hint,
        f"deprecated{reason}": tool.deprecated,
    }
    return [phrase for phrase, applies in phrases.items() if applies]


def requirement_phrases(tool: Tool) -> list[str]:
    """Return short phrases about permissions, timeout, token limit and delegation."""
    guard, limits, hint = tool.guard, tool.limits, tool.guidance.delegation_hint
    allowed = [_code_list(permissions) for permissions in guard.app_permissions]
    phrases = {
        f"permissions of the app: {'; '.join(allowed)}": allowed,
        f"takes up to {limits.timeout or 0:g} s": limits.timeout,
        f"returns at most {limits.max_tokens} tokens": limits.max_tokens,
        f"delegate: {single_line(hint or '')}": hint,
    }
    return [phrase for phrase, applies in phrases.items() if applies]


def _code_list(names: Iterable[str]) -> str:
    return ", ".join([code(name) for name in names])


def declared_errors(tool: Tool) -> list[tuple[str, str]]:
    """Return the errors that the tool declares: code and meaning."""
    return [(code, single_line(text)) for code, text in tool.guidance.error_codes.items()]


_REMEDIES = {
    "E1": "correct the call as `error.suggestion` says",
    "E2": "ask the human; do not try a workaround",
    "E3": "check the state that it describes, then retry",
    "E4": "retry later, or continue without it",
    "E5": "report a bug in the tool",
}


def remedy(code: str) -> str:
    """Return advice about an error, which depends on the first digit of its code."""
    return _REMEDIES.get(code[:2], "read `error.suggestion`")


# ------------------------------------------------------------------ related commands


def next_commands(tool: Tool) -> list[tuple[str, str]]:
    """Return the commands that may follow, and when."""
    return [
        (handoff.command.replace(".", " "), single_line(handoff.when))
        for handoff in tool.guidance.handoffs
    ]


def previous_commands(app_info: AppInfo, tool: Tool) -> list[str]:
    """Return the commands that hand off to this one."""
    return [
        command_title(other)
        for other in app_info.tools
        if other is not tool
        and any([handoff.command == tool.key for handoff in other.guidance.handoffs])
    ]


# ------------------------------------------------------------------ sections


FULL, SHORT, LINES, NAMES, CALLS, INDEX, GROUPS = range(7)
"""Levels of detail, from everything about each command to the number of commands in each group.

The last ones are: summaries, required parameters, names, numbers.
"""

_MAX_INLINE_OUTPUT = 200  # characters of an example's output

CALLER_VARIABLES = (
    ("`TOOLI_CALLER`", "Recommended", "Your name: `claude-code`, `cursor`, `langchain`, …"),
    ("`TOOLI_CALLER_VERSION`", "No", "Your version"),
    ("`TOOLI_SESSION_ID`", "No", "One ID for related calls"),
)


def render_within_budget(
    app_info: AppInfo, render: Callable[[AppInfo, int], str], *budgets: tuple[int, int]
) -> str:
    """Return the most detailed document that fits its token budget, or the least detailed one.

    Outputs of examples do not count: `docs check` renders the document without running them.

    Args:
        app_info: What the document describes.
        render: Returns the document in a level of detail.
        budgets: Pairs of level of detail and maximum number of tokens, most detailed first.
    """
    counted = app_info.replace(example_outputs={}) if app_info.example_outputs else app_info
    detail, text = 0, ""
    for detail, max_tokens in budgets:
        text = render(counted, detail)
        if estimate_tokens(text) <= max_tokens:
            break
    return text if counted is app_info else render(app_info, detail)


# ------------------------------------------------------------------ commands


def command_sections(
    app_info: AppInfo, detail: int, linked: bool = False, level: int = 2
) -> Iterator[str]:
    """Yield every command, grouped by task group if there are several."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(tool.guidance.task_group or "", []).append(tool)
    yield bullets([*callback_bullets(app_info.tools), *settings_bullets(app_info)])
    if detail >= CALLS:
        yield _group_index(app_info, detail)
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


def group_tools(app_info: AppInfo) -> dict[str, list[Tool]]:
    """Return the tools by the first word of their command; "" for those without a group."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(tool.path[0] if len(tool.path) > 1 else "", []).append(tool)
    return groups


def _group_index(app_info: AppInfo, detail: int) -> str:
    """Return the names, or only the number, of the commands of each group, and how to search."""
    rows: list[str] = []
    for group, tools in list(group_tools(app_info).items())[:_MAX_GROUPS]:
        if detail == GROUPS:
            about = f"{len(tools)} commands"
        else:
            about = ", ".join([_index_entry(tool, detail, bool(group)) for tool in tools])
        rows.append(f"{code(group)}: {about}" if group else about)
    has_marks = detail != GROUPS and any(map(_danger_mark, app_info.tools))
    notes = ["`!` marks what may destroy data, or needs a human."] if has_marks else []
    search = " ".join(map(shell_quote, app_info.builtin_argv("search-tools", "TEXT", "--json")))
    help_line = app_info.call_line("--help-agent")
    notes.append(f"Search: {code(search)}. Details: {code(help_line)}.")
    return f"{bullets(rows)}\n\n{' '.join(notes)}"


def _index_entry(tool: Tool, detail: int, is_in_group: bool) -> str:
    """Return a command without its group: its name, or with its required parameters."""
    words = render_usage(tool, only_required=True) if detail == CALLS else command_title(tool)
    text = words.removeprefix(f"{tool.path[0]} ") if is_in_group else words
    return f"{code(text) if detail == CALLS else text}{_danger_mark(tool)}"


_MAX_GROUPS = 100


def _danger_mark(tool: Tool) -> str:
    """Return a mark for a command that may destroy data or needs a human; "" for others."""
    is_marked = tool.behavior.destructive or tool.guard.may_need_approval or tool.guard.danger
    return "!" if is_marked else ""


def _command_bullet(tool: Tool, detail: int, linked: bool) -> str:
    effects = "; ".join(effect_phrases(tool))
    usage = render_usage(tool) if detail == LINES else command_title(tool)
    more = f" {_more_link(tool)}" if linked and detail == LINES else ""
    summary = sentence(tool.doc.summary)
    about = f"{summary} ({effects})" if effects else summary
    return f"{code(usage)}: {about}{more}" if about else f"{code(usage)}{more}"


def _command_section(
    app_info: AppInfo, tool: Tool, detail: int, linked: bool, level: int
) -> Iterator[str]:
    yield f"{'#' * level} {command_title(tool)}"
    effects = "; ".join(effect_phrases(tool))
    use = tool.guidance.when_to_use
    about = [sentence(tool.doc.summary), f"Use it {_when_clause(use)}" if use else ""]
    yield " ".join(filter(None, [*about, f"({effects})" if effects else ""]))
    yield fence([shortest_call(app_info.program, tool)], "bash")
    output = app_info.example_outputs.get((tool.key, best_example(tool) or 0), "")
    if detail == FULL and 0 < len(output) < _MAX_INLINE_OUTPUT:
        yield fence([output], "json")
    if detail == FULL:
        yield "\n".join(filter(None, [code(render_usage(tool)), *parameter_bullets(tool)]))
    elif tool.command_params:
        yield code(render_usage(tool))
    yield " ".join(filter(None, [*_outcome_sentences(tool), _more_link(tool) if linked else ""]))


def _when_clause(text: str) -> str:
    """Return the author's `when_to_use` so that it completes the sentence "Use it …"."""
    line = sentence(text)
    head = line.split(" ", 1)[0].lower()
    if head in ("when", "if", "to", "for", "whenever", "before", "after", "where", "as", "in"):
        return line[:1].lower() + line[1:]
    return f"for: {line}"


def _more_link(tool: Tool) -> str:
    return f"{link('More', reference_path(tool))}."


def reference_path(tool: Tool) -> str:
    """Return the path of a command's page, relative to the document."""
    return f"references/{file_stem(tool)}.md"


def parameter_bullets(tool: Tool) -> list[str]:
    """Return a bullet for each parameter about which there is more to know than its usage says."""
    texts = [(param, parameter_text(tool, param)) for param in tool.command_params]
    return [
        f"- {code(max(param.flags, key=len) if param.flags else param.name)}: {single_line(text)}"
        for param, text in texts
        if text and not param.hidden
    ]


def callback_bullets(tools: Sequence[Tool]) -> list[str]:
    """Return the options of callbacks: where they are typed, and what each of them means."""
    options = callback_options(tools)
    found: list[str] = []
    for path, usage in usage_of_callbacks(tools).items():
        found.append(f"Options {place_of_options(path)}: {code(usage)}")
        found += [
            f"{code(max(param.flags, key=len) if param.flags else param.name)}: "
            f"{single_line(param.help)}"
            for param in options[path]
            if param.help
        ]
    return found


def settings_bullets(app_info: AppInfo) -> list[str]:
    """Return the flags and variables of the settings object, which every command takes."""
    settings = app_info.settings
    if settings is None:
        return []
    flags, variables = usage_of_settings(settings)
    texts = settings.help_texts
    return [
        f"Settings of every command: {code(flags)}; variables: {_code_list(variables)}",
        *[
            f"{code(param.flags[0])}: {single_line(texts[param.name])}"
            for param in settings.shown_params
            if param.flags and param.name in texts
        ],
    ]


def _outcome_sentences(tool: Tool) -> Iterator[str]:
    yield return_sentence(tool)
    failures = [f"{code(name)} ({text})" for name, text in declared_errors(tool)]
    if failures:
        yield f"Fails with {', '.join(failures)}."
    following = [
        f"{code(name)}{f' ({when})' if when else ''}" for name, when in next_commands(tool)
    ]
    if following:
        yield f"Next: {', '.join(following)}."


# ------------------------------------------------------------------ common sections


def response_section(app_info: AppInfo) -> str:
    """Return the section about the JSON output and how to get help."""
    help_line = code(app_info.call_line("--help-agent"))
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
    if app_info.permissions is not None:
        rules.append(f"Permissions: the commands use at most {_code_list(app_info.permissions)}.")
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
        shortest_call(app_info.program, tools[0]) if tools else f"{app_info.program} --help-agent"
    )


def workflow_section(app_info: AppInfo) -> Iterator[str]:
    """Yield the workflows: the usual order of commands, and command lines that belong together."""
    steps: list[str] = []
    for tool in app_info.tools:
        before = previous_commands(app_info, tool)
        if before:
            names = ", ".join(map(code, before))
            steps.append(f"{code(command_title(tool))} often follows {names}")
    if steps:
        yield bullets(steps)
    found = infer_compositions(app_info.program, app_info.tools)
    if found:
        yield fence(_composition_lines(found), "bash")


def _composition_lines(compositions: list[Composition]) -> Iterator[str]:
    for composition in compositions:
        yield f"# {single_line(composition.why)}"
        yield from composition.lines


def author_sections(app_info: AppInfo, level: int = 2) -> Iterator[str]:
    """Yield the author's own sections."""
    for title, text in app_info.sections.items():
        yield f"{'#' * level} {single_line(title)}"
        yield text.strip()
