"""Render the documents for agents: SKILL.md, AGENTS.md, CLAUDE.md, llms.txt and the manifest.

A skill is a folder that an agent loads on demand: SKILL.md and a page for each command. llms.txt
follows llmstxt.org: a title, a blockquote, a paragraph, and lists of links to these pages.
"""

from __future__ import annotations

from tooli.config.setting_definitions import documented_variables
from tooli.core import CONTRACT_VERSION
from tooli.describe import calls, sections
from tooli.describe.agent_help import render_usage
from tooli.describe.compositions import infer_compositions, pipe_input, pipe_output
from tooli.describe.front_matter import SKILL_TARGETS, command_note, render_front_matter
from tooli.describe.markdown import bullets, code, fence, join_blocks, link, sentence, single_line
from tooli.describe.schema_formats import describe_tool
from tooli.describe.schema_text import object_properties
from tooli.errors import ERROR_CODES, EXIT_CODES, shell_quote
from tooli.schema.json_schema import output_schema, param_schema
from tooli.schema.notation import format_type

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.describe.sections import AppInfo

_DETAIL_BUDGETS = (
    (sections.FULL, 2_300),
    (sections.SHORT, 3_100),
    (sections.LINES, 4_500),
    (sections.NAMES, 5_000),
    (sections.CALLS, 5_000),
    (sections.INDEX, 5_000),
    (sections.GROUPS, 5_000),
)
"""Token budget of each level of detail. Token estimates are about a third too high."""


def build_skill_files(app_info: AppInfo) -> dict[str, str]:
    """Return SKILL.md and a page for each command, by path."""
    files = {"SKILL.md": render_skill_md(app_info, linked=True)}
    for tool in app_info.tools:
        files[sections.reference_path(tool)] = render_reference_page(app_info, tool)
    return files


def render_skill_md(app_info: AppInfo, *, linked: bool = False) -> str:
    """Return SKILL.md. With `linked`, it has links to the pages of the commands."""
    return sections.render_within_budget(
        app_info, lambda info, detail: _render_skill(info, detail, linked), *_DETAIL_BUDGETS
    )


def _render_skill(app_info: AppInfo, detail: int, linked: bool) -> str:
    workflow = list(sections.workflow_section(app_info)) if detail < sections.NAMES else []
    return f"{render_front_matter(app_info)}\n\n" + join_blocks(
        f"# {single_line(app_info.name)}",
        app_info.description,
        "## Commands",
        sections.command_sections(app_info, detail, linked),
        ["## Workflows", *workflow] if workflow else [],
        sections.served_section(app_info),
        _script_section(app_info),
        "## Output",
        sections.response_section(app_info),
        sections.exit_code_line(),
        bullets(sections.safety_rules(app_info)),
        _caller_section(app_info),
        sections.author_sections(app_info),
    )


_MIN_TOOLS_FOR_SCRIPTS = 3
"""The documents of an app with fewer commands do not mention scripts."""


def _script_section(app_info: AppInfo) -> list[str]:
    """Return the section that says when a script is better than calls; none for a small app."""
    callable_tools = [
        tool for tool in app_info.tools if not tool.guard.callers or "code" in tool.guard.callers
    ]
    if len(callable_tools) < _MIN_TOOLS_FOR_SCRIPTS:
        return []
    run, stubs = (
        code(sections.shlex_join(app_info.builtin_argv("orchestrate", word)))
        for word in ("run", "stubs")
    )
    rows = [
        "Many calls, or large results of which you need little: run one Python script instead.",
        f"{stubs} prints the commands as async functions: `await name(…)`, `asyncio.gather`.",
        f"{run} FILE returns the last value only. It needs `tooli[eval]`.",
    ]
    return ["## Scripts", bullets(rows)]


def _caller_section(app_info: AppInfo) -> list[str]:
    """Return the section about how an agent identifies itself."""
    name = "my-agent" if app_info.skill_target == SKILL_TARGETS[0] else "claude-code"
    line = fence([f"TOOLI_CALLER={name} {sections.example_call(app_info)}"], "bash")
    if app_info.skill_target == "claude-code":
        return ["## Agent Integration", line]
    rows = [" | ".join(row) for row in sections.CALLER_VARIABLES]
    table = ["Variable | Required | Description", "--- | --- | ---", *rows]
    verify = " ".join(map(shell_quote, app_info.builtin_argv("detect-context", "--json")))
    return [
        "## Agent Integration",
        "Set `TOOLI_CALLER` before you call the program:",
        line,
        "\n".join([f"| {row} |" for row in table]),
        "The output is then JSON by default, errors contain suggestions, nothing is asked at a "
        "terminal, and `meta` contains the session.",
        f"Verify the detection: {code(verify)}",
    ]


# ------------------------------------------------------------------ one command


def render_reference_page(app_info: AppInfo, tool: Tool) -> str:
    """Return the page of one command."""
    return join_blocks(
        f"# {app_info.name} {' '.join(tool.cli_path)}".rstrip(),
        reference_sections(app_info, tool, 2),
    )


def reference_sections(app_info: AppInfo, tool: Tool, level: int) -> Iterator[str]:
    """Yield the sections of a command's page. `level` is the level of their headings."""
    mark = "#" * level
    yield tool.doc.summary
    yield tool.doc.description or ""
    if tool.guidance.when_to_use:
        yield f"When to use it: {sentence(tool.guidance.when_to_use)}"
    facts = [*sections.effect_phrases(tool), *sections.requirement_phrases(tool)]
    yield bullets([f"{fact[:1].upper()}{fact[1:]}" for fact in facts])
    yield f"{mark} Usage"
    yield code(f"{app_info.program} {render_usage(tool)}")
    yield "\n".join(sections.parameter_bullets(tool))
    yield bullets(sections.callback_bullets([tool]))
    yield from _example_blocks(app_info, tool)
    returned = sections.return_sentence(tool)
    if returned:
        yield f"{mark} Result"
        yield returned
        yield from _result_fields(tool)
    failures = sections.declared_errors(tool)
    if failures:
        yield f"{mark} Errors"
        yield bullets([f"{code(name)}: {text}; {sections.remedy(name)}" for name, text in failures])
    yield from _related_commands(app_info, tool, mark)


def _example_blocks(app_info: AppInfo, tool: Tool) -> Iterator[str]:
    """Yield the author's examples, with their outputs if the examples were run."""
    if not tool.guidance.examples:
        yield fence([calls.shortest_call(app_info.program, tool)], "bash")
    for i, example in enumerate(tool.guidance.examples):
        description = example.get("description")
        yield f"{single_line(str(description)).rstrip('.:')}:" if description else ""
        line = calls.format_command_line(
            app_info.program, tool, example.get("args", ()), *calls.output_flags(tool)
        )
        yield fence([line], "bash")
        if (tool.key, i) in app_info.example_outputs:
            yield fence([app_info.example_outputs[tool.key, i]], "json")


def _result_fields(tool: Tool) -> Iterator[str]:
    """Yield the documented fields of the result."""
    documented = [
        f"{code(name)} ({format_type(inner)}): {single_line(str(inner['description']))}"
        for name, inner in object_properties(output_schema(tool) or {}).items()
        if inner.get("description")
    ]
    yield bullets(documented)


def _related_commands(app_info: AppInfo, tool: Tool, mark: str) -> Iterator[str]:
    following, preceding = (
        sections.next_commands(tool),
        sections.previous_commands(app_info, tool),
    )
    if following or preceding:
        yield f"{mark} Workflow"
        yield bullets(
            [
                *[f"Next: {code(name)}{f', {when}' if when else ''}" for name, when in following],
                *[f"Often after {code(name)}" for name in preceding],
            ]
        )


# ------------------------------------------------------------------ formats by agent


FULL_FILE_NAME = "llms-full.txt"
_MAX_AGENTS_MD_TOKENS = 4_000  # estimated
_MAX_CLAUDE_MD_TOKENS = 1_000  # estimated

_FORMAT_BY_AGENT = {
    "claude-code": "claude-md",
    **dict.fromkeys(
        (
            *("codex", "copilot-cli", "copilot-vscode", "cursor", "gemini-cli", "opencode"),
            *("qwen-code", "kilo", "amp", "goose", "crush", "auggie", "pi", "cline", "roo"),
        ),
        "agents-md",
    ),
}
"""The document that each agent prefers. Other agents get the skill."""


def render_bootstrap(app_info: AppInfo, agent: str | None) -> str:
    """Return the document that an agent of that name prefers."""
    return render_document(app_info, _FORMAT_BY_AGENT.get(agent or "", "skill"))


# ------------------------------------------------------------------ AGENTS.md


def render_agents_md_block(app_info: AppInfo) -> str:
    """Return the app's section of an AGENTS.md that may have other content."""
    return sections.render_within_budget(
        app_info,
        _render_agents_md,
        *[(detail, _MAX_AGENTS_MD_TOKENS) for detail in range(sections.GROUPS + 1)],
    )


def _render_agents_md(app_info: AppInfo, detail: int) -> str:
    workflow = list(sections.workflow_section(app_info)) if detail < sections.NAMES else []
    return join_blocks(
        f"## {single_line(app_info.name)}",
        app_info.description,
        command_note(app_info),
        "### Commands",
        sections.command_sections(app_info, detail, level=3),
        ["### Workflows", *workflow] if workflow else [],
        "### Output",
        sections.response_section(app_info),
        sections.exit_code_line(),
        "### Rules",
        bullets(
            [
                "Always pass `--json`, and read `ok` before `result`.",
                *sections.safety_rules(app_info),
            ]
        ),
        sections.author_sections(app_info, 3),
    )


# ------------------------------------------------------------------ CLAUDE.md


def render_claude_md_block(app_info: AppInfo, *, refer_to_agents_md: bool = False) -> str:
    """Return the app's section of a CLAUDE.md, which Claude Code always keeps in its context.

    With `refer_to_agents_md` it is short and imports AGENTS.md.
    """
    if refer_to_agents_md:
        return join_blocks(
            "@AGENTS.md",
            f"## {single_line(app_info.name)}",
            command_note(app_info),
            _invocation_section(app_info),
        )
    return sections.render_within_budget(
        app_info,
        _render_claude_md,
        *[(detail, _MAX_CLAUDE_MD_TOKENS) for detail in range(sections.LINES, sections.GROUPS + 1)],
    )


BLOCKS: dict[str, tuple[str, Callable[[AppInfo], str]]] = {
    "agents-md": ("AGENTS.md", render_agents_md_block),
    "claude-md": ("CLAUDE.md", render_claude_md_block),
}
"""The documents that contain a section per app: file name, and function that renders a section."""


def render_document(
    app_info: AppInfo, document_format: str, mark: Callable[[str], str] | None = None
) -> str:
    """Return a document by format: skill, claude-md or agents-md.

    `mark` encloses the app's section of a document in markers.
    """
    if document_format not in BLOCKS:
        return render_skill_md(app_info)
    file, render_block = BLOCKS[document_format]
    block = render_block(app_info)
    return join_blocks(f"# {file}", mark(block) if mark else block)


def _render_claude_md(app_info: AppInfo, detail: int) -> str:
    return join_blocks(
        f"## {single_line(app_info.name)}",
        app_info.description,
        command_note(app_info),
        "### Commands",
        sections.command_sections(app_info, detail, level=3),
        _invocation_section(app_info),
        sections.author_sections(app_info, 3),
    )


def _invocation_section(app_info: AppInfo) -> list[str]:
    line = sections.example_call(app_info)
    rules = [
        'The output is `{"ok":…,"result":…}`, or `{"ok":false,"error":{…}}` with '
        "`error.suggestion.argv`: a command line that works.",
        f"More about a command: {code(app_info.call_line('--help-agent'))}.",
        "Claude Code is detected; a script that it starts sets `TOOLI_CALLER=claude-code`.",
        *sections.safety_rules(app_info),
    ]
    return ["### Agent invocation", fence([line], "bash"), bullets(rules)]


# ------------------------------------------------------------------ llms.txt


def render_llms_txt(app_info: AppInfo) -> str:
    """Return llms.txt: what the app is, how to call it, and links to the commands."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        bullets(sections.settings_bullets(app_info)),
        _command_groups(app_info),
        "## Optional",
        bullets([f"{link(FULL_FILE_NAME, FULL_FILE_NAME)}: Everything in one file"]),
    )


def render_llms_full(app_info: AppInfo) -> str:
    """Return llms-full.txt: the app and every command's page."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        bullets(sections.settings_bullets(app_info)),
        app_info.description.partition("\n\n")[2],
        [block for tool in app_info.tools for block in _command_reference(app_info, tool)],
        "## Output",
        sections.response_section(app_info),
        sections.exit_code_line(),
        bullets(sections.safety_rules(app_info)),
        sections.author_sections(app_info),
    )


def build_llms_files(app_info: AppInfo) -> dict[str, str]:
    """Return llms.txt, llms-full.txt and the pages that llms.txt links to, by path."""
    pages = {
        sections.reference_path(tool): render_reference_page(app_info, tool)
        for tool in app_info.tools
    }
    return {
        "llms.txt": render_llms_txt(app_info),
        FULL_FILE_NAME: render_llms_full(app_info),
        **pages,
    }


def _summary_line(app_info: AppInfo) -> str:
    """Return the first paragraph of the description on one line."""
    summary = app_info.description.partition("\n\n")[0]
    return sentence(summary) or f"The commands of {app_info.name}."


def _usage_paragraph(app_info: AppInfo) -> str:
    """Return a paragraph about how to call the commands."""
    call = single_line(f"{app_info.call_line()} … --json")
    version = f" (version {single_line(app_info.version)})" if app_info.version else ""
    return (
        f"{single_line(app_info.name)}{version} is a command line program. Call it as "
        f'{code(call)}: stdout is one JSON document, `{{"ok":true,"result":…}}` or '
        '`{"ok":false,"error":{…}}`, whose `error.suggestion` says what to do. '
        f"{code('--help-agent')} shows more about a command, `--schema` its schema."
    )


def _command_groups(app_info: AppInfo) -> Iterator[str]:
    """Yield the commands, each group under its own heading."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(" ".join(tool.cli_path[:-1]), []).append(tool)
    for group, tools in groups.items():
        yield f"## Commands: {single_line(group)}" if group else "## Commands"
        yield bullets([_command_link(tool) for tool in tools])


def _command_link(tool: Tool) -> str:
    title = calls.command_title(tool).replace("[", "(").replace("]", ")")
    labels = [label for label in tool.effects.labels() if label in ("read-only", "destructive")]
    annotations = f"({', '.join(labels)})" if labels else ""
    about = " ".join(filter(None, (single_line(tool.doc.summary), annotations)))
    target = link(title, sections.reference_path(tool))
    return f"{target}: {about}" if about else target


def _command_reference(app_info: AppInfo, tool: Tool) -> Iterator[str]:
    yield f"## {single_line(' '.join((app_info.name, *tool.cli_path)))}"
    yield from reference_sections(app_info, tool, 3)


# ------------------------------------------------------------------ manifest


KNOWN_CALLERS = (
    *("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"),
    *("openai-agents", "langchain", "google-adk", "claude-agent-sdk", "pydantic-ai"),
)
"""Caller names of well-known agents. Any other name is allowed."""


def build_manifest(app_info: AppInfo) -> JsonObject:
    """Return the manifest: a complete description of an app for agents and planners."""
    head: JsonObject = {"name": app_info.name}
    if app_info.version:
        head["version"] = app_info.version
    if app_info.description:
        head["description"] = app_info.description
    head["contract"] = CONTRACT_VERSION
    settings = app_info.settings
    setting_variables = [] if settings is None else settings.variables
    return {
        **head,
        "invocation": {
            "argv": [*app_info.call_words, "--json"],
            "answer": {"ok": True, "result": "matches output_schema", "meta": {}},
            "failure": {"ok": False, "error": _EXAMPLE_ERROR, "meta": {}},
            "arguments_as_json": "--input JSON|@file|-",
            "stream": "--jsonl",
            "events": "--stream",
            "plan_only": "--dry-run",
            "confirm": "--yes",
            "contract": "--schema [json|mcp|openai|anthropic]",
            "mcp": app_info.builtin_argv("mcp", "serve"),
        },
        **({} if app_info.permissions is None else {"permissions": list(app_info.permissions)}),
        "commands": {
            tool.key or tool.name: _describe_command(app_info, tool) for tool in app_info.tools
        },
        **_settings_fields(app_info),
        **_served_fields(app_info),
        "compositions": [
            found.to_dict() for found in infer_compositions(app_info.program, app_info.tools)
        ],
        "errors": {
            code: text
            for code, (text, _, _) in ERROR_CODES.items()
            if code[:3] not in _HTTP_ONLY_FAMILIES
        },
        "exit_codes": {str(code): text for code, text in EXIT_CODES.items()},
        "caller_convention": {
            "env_var": "TOOLI_CALLER",
            "version_var": "TOOLI_CALLER_VERSION",
            "session_var": "TOOLI_SESSION_ID",
            "well_known_values": list(KNOWN_CALLERS),
            "detect_command": app_info.builtin_argv("detect-context", "--json"),
        },
        "environment": [*setting_variables, *documented_variables()],
    }


_EXAMPLE_ERROR = {
    "code": "E3010",
    "category": "state",
    "message": "what is wrong",
    "field": "the parameter",
    "suggestion": {"fix": "what to do", "argv": ["a", "valid", "command", "line"]},
    "is_retryable": False,
}
_HTTP_ONLY_FAMILIES = ("E14", "E24")
"""Prefixes of error codes that only an HTTP server returns."""


def _describe_command(app_info: AppInfo, tool: Tool) -> JsonObject:
    """Describe one command, without the names and the version that the manifest already has."""
    described = describe_tool(tool, "json")
    for name in ("name", "tool"):
        described.pop(name, None)
    if described.get("version") == app_info.version:
        described.pop("version", None)
    call = {
        "argv": [*app_info.start_words, *tool.cli_path],
        "example": calls.shortest_call(app_info.program, tool),
    }
    pipe = {"input": pipe_input(tool), "output": pipe_output(tool)}
    extra: JsonObject = {
        "commonly_after": sections.previous_commands(app_info, tool),
        # The output of most commands follows from output_schema.
        "pipe": {name: part.to_dict() for name, part in pipe.items() if part is not None}
        if pipe["input"] is not None or tool.guidance.pipe_output is not None
        else None,
    }
    return {**call, **described, **{name: value for name, value in extra.items() if value}}


def build_discovery(app_info: AppInfo) -> JsonObject:
    """Return the names and summaries of all commands. `--schema` has the details."""
    head = {"name": app_info.name, "version": app_info.version, "description": app_info.description}
    app_fields = {key: value for key, value in head.items() if value}
    return {
        **app_fields,
        "commands": [
            {"name": tool.key or tool.name, "description": tool.doc.summary}
            for tool in app_info.tools
        ],
        "tools": [
            {
                "name": tool.key or tool.name,
                "summary": tool.doc.summary,
                "streaming": tool.is_streaming,
                "session_mode": False,
            }
            for tool in app_info.tools
        ],
        **_served_fields(app_info),
        "schema": [*app_info.call_words, "--schema"],
    }


def _settings_fields(app_info: AppInfo) -> JsonObject:
    """Return the fields of the settings object, each with its flags, variable and schema."""
    settings = app_info.settings
    if settings is None:
        return {}
    texts = settings.help_texts
    fields: JsonObject = {
        param.name: {
            "flags": [*param.flags, *param.negations],
            "environment": settings.variable(param),
            "required": param.required,
            "schema": param_schema(param, texts.get(param.name)),
        }
        for param in settings.shown_params
    }
    return {"settings": fields}


def _served_fields(app_info: AppInfo) -> JsonObject:
    """Return the resources and prompts, and how to read them; nothing if there are none."""
    fields: JsonObject = {}
    if app_info.resources:
        fields["resources"] = list(app_info.resources)
        fields["read_resource"] = [*app_info.builtin_argv("resources", "read"), "URI"]
    if app_info.prompts:
        fields["prompts"] = list(app_info.prompts)
        fields["get_prompt"] = [*app_info.builtin_argv("prompts", "get"), "NAME", "argument=value"]
    return fields
