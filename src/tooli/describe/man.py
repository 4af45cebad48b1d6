"""Render man pages: one for an app and one for each of its commands.

    AppInfo ─▶ {"file-tools.1": …, "file-tools-find-files.1": …}

Parameters and results are described from their JSON Schemas. The module `roff` formats the text.
"""

from __future__ import annotations

from unicodedata import combining, normalize

from tooli import errors
from tooli.config.setting_definitions import documented_variables
from tooli.core.command_words import callback_options, command_words
from tooli.core.options import OPTIONS
from tooli.core.tool import quote
from tooli.describe import roff, schema_text
from tooli.describe.agent_help import place_of_options
from tooli.describe.markdown import sentence
from tooli.describe.roff import bold, italic, prose
from tooli.describe.schema_formats import envvar_names
from tooli.errors import ERROR_CODES, EXIT_CODES, NotFoundError, Suggestion, shell_quote
from tooli.schema.json_schema import input_schema, output_schema, param_schema
from tooli.schema.notation import without_null
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool
    from tooli.describe.sections import AppInfo

DEFAULT_DATE = "1970-01-01"
"""The date of pages if SOURCE_DATE_EPOCH is not set. It is fixed for reproducible pages."""

_MAX_SYNOPSIS_OPTIONS = 12
_MAX_SEE_ALSO = 20
_COMMON_ERROR_CODES = ("E1002", "E1003", "E1004")


def build_man_pages(app_info: AppInfo, date: str = DEFAULT_DATE) -> dict[str, str]:
    """Return the pages of an app by file name. An app with a single command has one page."""
    pages = _tools_by_page(app_info)
    lines_by_page = {
        name: _app_page(app_info, name, pages, date)
        if tool is None
        else _command_page(app_info, tool, name, pages, date)
        for name, tool in pages.items()
    }
    return {f"{name}.1": "\n".join(lines) + "\n" for name, lines in lines_by_page.items()}


def build_man_page(app_info: AppInfo, command_path: Sequence[str], date: str = DEFAULT_DATE) -> str:
    """Return the page of a command; without a command path, the page of the app."""
    pages = _tools_by_page(app_info)
    path = " ".join(command_path).replace(".", " ").split()
    for name, tool in pages.items():
        if [*(tool.cli_path if tool is not None else ())] == path:
            return build_man_pages(app_info, date)[f"{name}.1"]
    known = [" ".join(tool.cli_path) for tool in pages.values() if tool is not None]
    suggestion_name = closest_match(" ".join(path), known)
    raise NotFoundError(
        f"There is no command {quote(' '.join(path))}.",
        field="command",
        suggestion=Suggestion("retry_with_modified_input", f"Try {suggestion_name!r}.")
        if suggestion_name
        else None,
    )


def _tools_by_page(app_info: AppInfo) -> dict[str, Tool | None]:
    """Return the tools by page name. The first page is the app's, with None as its tool.

    Page names are unique on file systems that ignore case, too.
    """
    top = _slug(app_info.name)
    pages: dict[str, Tool | None] = {top: None}
    taken: set[str] = set()
    for tool in app_info.tools:
        name = base = "-".join([top, *map(_slug, tool.cli_path)])
        count = 1
        while name.lower() in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name.lower())
        pages[name] = tool
    return pages


def _slug(name: str) -> str:
    """Return a name for a file: café becomes cafe, other characters become hyphens."""
    letters = [c for c in normalize("NFKD", name) if not combining(c)]
    known = [c if c.isascii() and (c.isalnum() or c in "._+") else " " for c in letters]
    return "-".join("".join(known).split()).strip(".") or "app"


# ------------------------------------------------------------------ pages


def _app_page(
    app_info: AppInfo, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """Return the page of an app: its commands and what they have in common."""
    about = app_info.description.partition("\n\n")[0]
    usage = f"{bold(app_info.name)} {italic('command')} [{italic('options')}]"
    listed = [
        (f"{bold(' '.join(tool.cli_path))}, {_page_reference(page)}", prose(tool.doc.summary))
        for page, tool in pages.items()
        if tool
    ]
    return [
        *_page_header(app_info, name, about or f"the commands of {app_info.name}", date),
        *_section("SYNOPSIS", [usage]),
        *_section("DESCRIPTION", roff.render_text(app_info.description)),
        *_section("COMMANDS", roff.tagged_list(listed)),
        *_callback_sections(app_info.tools),
        *_settings_section(app_info),
        *_author_sections(app_info),
        *_common_options_section(frozenset()),
        *_section("OUTPUT", [_envelope_sentence()]),
        *_exit_status_section(),
        *_errors_section({}, ERROR_CODES),
        *_environment_section({**_setting_variables(app_info), **documented_variables()}),
    ]


def _command_page(
    app_info: AppInfo, tool: Tool, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """Return the page of a command. For an app with a single command it includes the app's page."""
    doc = tool.doc
    is_root = not tool.cli_path
    schemas: JsonObject = input_schema(tool).get("properties", {})
    visible = [
        (param, schemas.get(param.name, {})) for param in tool.command_params if not param.hidden
    ]
    arguments = [one for one in visible if one[0].kind == "argument"]
    options = [one for one in visible if one[0].kind != "argument"]
    summary = doc.summary or (app_info.description.partition("\n\n")[0] if is_root else "")
    argument_lines = [line for one in arguments for line in _parameter_item(*one, doc.params)]
    option_lines = [line for one in options for line in _parameter_item(*one, doc.params)]
    variables = documented_variables()
    framework_variables = variables if is_root else {"TOOLI_OUTPUT": variables["TOOLI_OUTPUT"]}
    return [
        *_page_header(
            app_info, name, summary or f"the command {tool.name} of {app_info.name}", date
        ),
        *_section("SYNOPSIS", _synopsis(app_info.name, tool, arguments, options)),
        *_section("DESCRIPTION", [*_description(app_info, tool), *_behavior_paragraph(tool)]),
        *_section("ARGUMENTS", argument_lines),
        *_section("OPTIONS", option_lines),
        *_callback_sections([tool]),
        *(_settings_section(app_info) if is_root else _settings_summary(app_info, pages)),
        *(_author_sections(app_info) if is_root else ()),
        *_common_options(tool, pages),
        *_output_section(tool),
        *_exit_status_section(),
        *_errors_section(
            _documented_errors(tool), ERROR_CODES if is_root else _common_errors(tool)
        ),
        *_environment_section(
            {**_parameter_variables(tool), **_setting_variables(app_info), **framework_variables}
        ),
        *_section("EXAMPLES", _example_lines(app_info.name, tool)),
        *_section("SEE ALSO", _see_also(tool, name, pages)),
    ]


def _callback_sections(tools: Sequence[Tool]) -> list[str]:
    """Return the sections of the options that callbacks take."""
    schemas: JsonObject = {}
    for tool in tools:
        schemas.update(input_schema(tool).get("properties", {}))
    return [
        line
        for path, params in callback_options(tools).items()
        for line in _section(
            f"OPTIONS {place_of_options(path).upper()}",
            [
                text
                for param in params
                for text in _parameter_item(param, schemas.get(param.name, {}), {})
            ],
        )
    ]


def _settings_section(app_info: AppInfo) -> list[str]:
    """Return the section of the flags that fill the settings object of the app."""
    settings = app_info.settings
    if settings is None:
        return []
    texts = settings.help_texts
    items = [_parameter_item(param, param_schema(param), texts) for param in settings.shown_params]
    return _section("SETTINGS", [line for item in items for line in item])


def _settings_summary(app_info: AppInfo, pages: Mapping[str, Tool | None]) -> list[str]:
    """Return a short section about the settings that refers to the page of the app."""
    shown = [] if app_info.settings is None else app_info.settings.shown_params
    flags = ", ".join([bold(_flag_names(param)[0]) for param in shown])
    page = _page_reference(next(iter(pages)))
    return _section("SETTINGS", [f"{flags}: see {page}."] if flags else [])


def _setting_variables(app_info: AppInfo) -> dict[str, str]:
    """Return the environment variables of the settings object of the app."""
    settings = app_info.settings
    if settings is None:
        return {}
    return {
        settings.variable(param): f"Default of {_flag_names(param)[0]}."
        for param in settings.shown_params
    }


def _page_header(app_info: AppInfo, name: str, summary: str, date: str) -> list[str]:
    source = " ".join(filter(None, (app_info.name, app_info.version)))
    summary_line = " ".join(summary.split()).rstrip(".")
    if not any([letter.isalnum() for letter in summary_line]):  # whatis needs a description
        summary_line = f"part of {name}"
    if summary_line[1:2].islower() or summary_line[1:2] == " ":
        summary_line = summary_line[0].lower() + summary_line[1:]
    title, origin = roff.escape(name.upper()), roff.escape(source)
    return [
        '.\\" Generated by tooli. Changes to this file will be lost.',
        *(".nr HY 0", ".ds AD l"),  # no hyphenation, no justified lines
        f'.TH "{title}" 1 "{date}" "{origin}" "User Commands"',
        ".ad l",
        roff.heading("NAME"),
        roff.name_line(name, summary_line),
    ]


def _page_reference(page: str) -> str:
    return f"{bold(page)}(1)"


def _author_sections(app_info: AppInfo) -> list[str]:
    """Return the sections that the app's author wrote."""
    author_texts = app_info.sections.items()
    return [
        line for title, text in author_texts for line in _section(title, roff.render_text(text))
    ]


# ------------------------------------------------------------------ parts of a command's page


def _synopsis(
    program: str,
    tool: Tool,
    arguments: list[tuple[Param, JsonObject]],
    options: list[tuple[Param, JsonObject]],
) -> list[str]:
    """Return the usage line; optional parameters are in brackets."""
    parts: list[str] = []
    if len(options) > _MAX_SYNOPSIS_OPTIONS:
        needed = [one for one in options if one[0].required]
        parts = [f"[{italic('options')}]"] if len(needed) < len(options) else []
        options = needed
    for param, schema in options:
        value = "" if param.is_flag else f" {_placeholder(param, schema)}"
        parts.append(_mark_optional(param, f"{bold(_flag_names(param)[0])}{value}"))
    for param, schema in arguments:
        parts.append(_mark_optional(param, _placeholder(param, schema)))
    return [bold(" ".join((program, *tool.cli_path))), *map(roff.protect_line, parts)]


def _mark_optional(param: Param, text: str) -> str:
    text = text.replace(" ", "\\ ")  # lines are broken between parameters only
    dots = "\\&..." if param.is_multiple else ""
    return f"{text}{dots}" if param.required else f"[{text}]{dots}"


def _description(app_info: AppInfo, tool: Tool) -> list[str]:
    doc = tool.doc
    paragraphs = [app_info.description] if not tool.cli_path and app_info.description else []
    paragraphs += [
        text for text in (doc.summary, doc.description) if text and text not in paragraphs
    ]
    return roff.render_text("\n\n".join(paragraphs))


def _common_options(tool: Tool, pages: Mapping[str, Tool | None]) -> list[str]:
    taken = frozenset([flag for p in tool.command_params for flag in (*p.flags, *p.negations)])
    if not tool.cli_path:
        return _common_options_section(taken)
    return _common_options_summary(taken, _page_reference(next(iter(pages))))


def _see_also(tool: Tool, name: str, pages: Mapping[str, Tool | None]) -> list[str]:
    """Return references to the pages of the app and of the commands in the same group."""
    if not tool.cli_path:
        return []
    top, *others = pages
    siblings = [
        page
        for page in others
        if page != name and (sibling := pages[page]) and sibling.cli_path[:-1] == tool.cli_path[:-1]
    ]
    return [", ".join([_page_reference(page) for page in [top, *siblings[:_MAX_SEE_ALSO]]])]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Return a section, or nothing if it has no lines."""
    body = list(lines)
    if body[:1] == [".PP"]:  # a heading starts a paragraph
        del body[0]
    return [roff.heading(title), *body] if body else []


# ------------------------------------------------------------------ parameters


def _parameter_item(param: Param, schema: JsonObject, docs: Mapping[str, str]) -> list[str]:
    """Return one parameter: its flags, its meaning and the allowed values."""
    meaning = prose(sentence(param.help or docs.get(param.name) or ""))
    notes = " ".join([prose(note) for note in _parameter_notes(param, schema)])
    if param.kind == "argument":
        tag = f"{_placeholder(param, schema)} ({prose(schema_text.describe_type(schema))})"
    else:
        value = "" if param.is_flag else f" {_placeholder(param, schema)}"
        tag = ", ".join([bold(flag) for flag in (*_flag_names(param), *param.negations)]) + value
    lines = roff.tagged_item(tag, meaning, notes)
    parts = schema_text.object_properties(schema)
    if not parts or param.is_multiple:
        return lines
    flag_prefix = (
        _flag_names(param)[0] if param.kind != "argument" else f"--{param.name.replace('_', '-')}"
    )
    needed = schema_text.required_properties(schema)
    inner = [
        line
        for name, part in parts.items()
        for line in _property_item(f"{flag_prefix}.{name}", part, name in needed)
    ]
    return [*lines, ".RS", *inner, ".RE"]


def _property_item(flag: str, schema: JsonObject, is_required: bool) -> list[str]:
    """Return one property of an object parameter, with the flag that sets it."""
    sentences = [sentence(str(schema.get("description") or "")), *_value_notes(schema)]
    sentences += ["Required."] if is_required else []
    return roff.tagged_item(
        f"{bold(flag)} {italic(schema_text.describe_type(schema))}",
        " ".join([prose(text) for text in sentences if text]),
    )


def _placeholder(param: Param, schema: JsonObject) -> str:
    """Return the placeholder of a parameter's value."""
    metavar = param.option_kwargs.get("metavar")
    if isinstance(metavar, str) and metavar:
        return italic(metavar)
    if param.kind == "argument":
        return italic(param.name.upper())
    schema = without_null(schema)
    choices = schema_text.choice_texts(schema)
    if choices and len("|".join(choices)) <= 40:
        return "|".join([italic(choice) for choice in choices])
    if param.nargs > 1:
        row: list[JsonObject] = schema.get("prefixItems") or [{}] * param.nargs
        return " ".join([italic(schema_text.describe_type(part)) for part in row])
    items = schema.get("items") if param.is_multiple else schema
    kind = schema_text.describe_type(items or {})
    return italic("json" if kind.startswith(("object", "list")) else kind)


def _flag_names(param: Param) -> list[str]:
    """Return the flags of an option, the longest first."""
    return sorted(param.flags, key=len, reverse=True) or [f"--{param.name.replace('_', '-')}"]


def _parameter_notes(param: Param, schema: JsonObject) -> Iterator[str]:
    """Yield sentences about the allowed values of a parameter."""
    settings = param.option_kwargs
    if param.kind != "argument" and schema_text.choice_texts(without_null(schema)):
        text = schema_text.describe_type(schema)
        yield f"{text[:1].upper()}{text[1:]}."
    if settings.get("exists"):
        yield "Each must exist." if param.is_multiple else "Must exist."
    if param.is_multiple and param.kind != "argument":
        yield "May be repeated."
    if settings.get("count"):
        yield "Repeat it for a higher level."
    show_default = settings.get("show_default", True)
    if isinstance(show_default, str):
        schema = {**schema, "default": show_default}
    elif show_default is False or param.default is False:
        schema = {key: value for key, value in schema.items() if key != "default"}
    yield from _value_notes(schema)
    if param.required and param.kind != "argument":
        yield "Required."
    variables = envvar_names(param)
    if variables:
        yield f"Environment variable: {' or '.join(variables)}."


def _value_notes(schema: JsonObject) -> Iterator[str]:
    limits, default = schema_text.describe_limits(schema), schema_text.describe_default(schema)
    if limits:
        yield limits
    if default:
        yield "On by default." if default == "true" else f"Default: `{default}`."


# ------------------------------------------------------------------ behavior and output


def _behavior_paragraph(tool: Tool) -> list[str]:
    """Return a paragraph about a command's effects and restrictions."""
    effects, guard, limits = tool.effects, tool.guard, tool.limits
    is_confirmed = tool.behavior.destructive  # other commands never ask
    confirmation = "" if guard.needs_human else " and requires --yes if it cannot prompt"
    sentences = {
        f"Deprecated: {tool.deprecated}": isinstance(tool.deprecated, str),
        "Deprecated.": tool.deprecated is True,
        "It changes nothing.": effects.read_only,
        f"It may destroy data{confirmation}.": is_confirmed,
        "It may change or destroy data.": effects.destructive and not is_confirmed,
        "Running it twice has the same effect as running it once.": effects.idempotent,
        "It accesses other machines.": effects.open_world,
        "A human must approve each run.": guard.needs_human,
        "It is forbidden and never runs.": guard.danger == "forbidden",
        f"It requires the scope {', '.join(guard.scopes or ())}.": guard.scopes,
        f"It is stopped after {limits.timeout or 0:g} seconds.": limits.timeout,
        f"Cost: {limits.cost_hint}.": limits.cost_hint,
        f"When to use it: {tool.guidance.when_to_use}": tool.guidance.when_to_use,
    }
    line = " ".join([prose(sentence(text)) for text, applies in sentences.items() if applies])
    return [".PP", line] if line else []


def _output_section(tool: Tool) -> list[str]:
    """Return the section about the result and the JSON envelope."""
    schema = output_schema(tool)
    returns_text = prose(tool.doc.returns)
    lines: list[str] = []
    if schema is not None:
        parts = schema_text.object_properties(schema)
        each = "; each of them has:" if schema.get("type") == "array" else " with:"
        lines = [prose(f"{schema_text.describe_result(schema)}{each if parts else '.'}")]
        for name, part in parts.items():
            about = str(part.get("description") or "")
            kind = schema_text.describe_type(part)
            lines += roff.tagged_item(bold(name), prose(f"{kind[:1].upper()}{kind[1:]}. {about}"))
        if tool.is_streaming:
            lines += [
                ".PP",
                prose("Items are streamed; `--jsonl` writes one per line, `--stream` events."),
            ]
    elif tool.returns_printed_text:
        lines = ["The text that the command prints."]
    lead = (
        [returns_text, ".PP"] if returns_text and lines else [returns_text] if returns_text else []
    )
    return _section(
        "OUTPUT", [*lead, *lines, *([".PP"] if lead or lines else []), _envelope_sentence()]
    )


def _envelope_sentence() -> str:
    return prose(
        'With `--json` the output is one JSON document: `{"ok":true,"result":…,"meta":…}`, '
        'or `{"ok":false,"error":…,"meta":…}` if the command fails.'
    )


def _exit_status_section() -> list[str]:
    """Return the section with the exit codes."""
    meanings = {str(code): text for code, text in EXIT_CODES.items()}
    return _section("EXIT STATUS", _code_list(meanings))


def _code_list(meanings: Mapping[str, str]) -> list[str]:
    rows = [
        (bold(code), prose(sentence(f"{meaning[:1].upper()}{meaning[1:]}")))
        for code, meaning in meanings.items()
    ]
    return roff.compact_list(rows)


def _documented_errors(tool: Tool) -> dict[str, str]:
    """Return the errors that the author documents, in `error_codes=` or in the docstring."""
    if tool.guidance.error_codes:
        return dict(tool.guidance.error_codes)
    found: dict[str, str] = {}
    for name, text in tool.doc.raises.items():
        kind = getattr(errors, name.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, errors.ToolError):
            found.setdefault(kind.code, text or ERROR_CODES[kind.code][0])
    return found


def _common_errors(tool: Tool) -> dict[str, tuple[str, int, int]]:
    """Return the framework's errors that callers of a command may get."""
    codes = [*_COMMON_ERROR_CODES]
    codes += ["E1010"] if tool.behavior.destructive else []
    codes += ["E2101"] if tool.guard.needs_human else []
    return {code: ERROR_CODES[code] for code in codes}


def _errors_section(
    declared: Mapping[str, str], common: Mapping[str, tuple[str, int, int]]
) -> list[str]:
    """Return the section with error codes, the command's own first."""
    framework_codes = {
        code: row[0] for code, row in common.items() if not row[0].startswith("HTTP")
    }
    meanings = {**declared, **framework_codes, **declared}  # declared ones first, unchanged
    lead = prose("The code of a failure is in `error.code` of the JSON document.")
    return _section("ERRORS", [lead, *_code_list(meanings)])


# ------------------------------------------------------------------ options, environment, examples


def _common_options_section(taken_flags: frozenset[str]) -> list[str]:
    """Return the section about the framework options.

    If the command uses a flag itself, the framework's flag is `--tooli-NAME`.
    """
    rows = [
        (
            " ".join([_format_option_token(text, taken_flags) for text in option.usage.split()]),
            prose(option.description),
        )
        for option in OPTIONS
        if option.flags
    ]
    return _section("COMMON OPTIONS", roff.tagged_list(rows))


def _common_options_summary(taken_flags: frozenset[str], page: str) -> list[str]:
    """Return a short section about the framework options that refers to the app's page."""
    flags = "--json, --jsonl, --plain, --dry-run, --yes, --schema, --help"
    named = " ".join([_format_option_token(flag, taken_flags) for flag in flags.split()])
    return _section("COMMON OPTIONS", [f"{named} and more: see {page}."])


def _format_option_token(token: str, taken_flags: frozenset[str]) -> str:
    """Return a formatted flag, or the placeholder of a value.

    A flag that the command uses itself gets the prefix `--tooli-`.
    """
    flag = token.rstrip(",")
    if flag[:1] != "-":
        return italic(token)
    free = f"--tooli-{flag.lstrip('-')}" if flag in taken_flags and flag[:2] == "--" else flag
    return bold(free) + token[len(flag) :]


def _parameter_variables(tool: Tool) -> dict[str, str]:
    """Return the environment variables of a command's parameters."""
    return {
        name: f"Default of {param.name.upper() if not param.flags else _flag_names(param)[0]}."
        for param in tool.command_params
        if not param.hidden
        for name in envvar_names(param)
    }


def _environment_section(variables: Mapping[str, str]) -> list[str]:
    rows = [(bold(name), prose(text)) for name, text in variables.items()]
    return _section("ENVIRONMENT", roff.tagged_list(rows))


def _example_lines(program: str, tool: Tool) -> list[str]:
    """Return the examples as command lines, each with its description."""
    lines: list[str] = []
    for example in tool.guidance.examples:
        argv = [program, *command_words(tool, [*map(str, example.get("args", ()))])]
        about = prose(str(example.get("description") or ""))
        command_line = " ".join(map(shell_quote, argv)).split("\n")
        lines += [*([".PP", about] if about else []), *roff.example_block(command_line)]
    return lines
