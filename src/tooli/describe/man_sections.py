"""The sections that man pages are made of, as lines that `roff` has written."""

from __future__ import annotations

from tooli import errors as tree
from tooli.config.setting_definitions import SETTINGS
from tooli.core.options import OPTIONS
from tooli.core.output_modes import OUTPUT_MODES
from tooli.describe import roff
from tooli.describe import schema_text as words
from tooli.describe.roff import bold, italic, prose
from tooli.errors import ERROR_CODES, EXIT_CODES, shell_quote
from tooli.schema.json_schema import output_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from tooli.core.tool import Param, Tool

_COMMON_ERROR_CODES = ("E1002", "E1003", "E1004")
ENVIRONMENT_VARIABLES = {
    "TOOLI_OUTPUT": f"The output mode: {', '.join(OUTPUT_MODES)}.",
    "TOOLI_CALLER": "Who is calling.",
    "TOOLI_CALLER_VERSION": "The caller's version.",
    "TOOLI_SESSION_ID": "The session that calls belong to.",
    "TOOLI_STATE_DIR": "The folder for what must last.",
    "TOOLI_FRAMEWORK_HELP": "0 takes the common options out of the help.",
    "NO_COLOR": "If set, nothing is coloured.",
    "TOOLI_TOKEN_FILE": "The file with the caller's token.",
    "TOOLI_CONFIG": "off leaves the settings of project and user alone.",
    **{
        key.variable: f"{key.description[:1].upper()}{key.description[1:]}: {key.type.replace('|', ', ')}."
        for key in SETTINGS.values()
        if key.name != "output"
    },
}
"""What the framework reads from the environment."""


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A section, unless there is nothing in it."""
    body = list(lines)
    if body[:1] == [".PP"]:  # a heading begins a paragraph already
        del body[0]
    return [roff.heading(title), *body] if body else []


def sentence(text: str) -> str:
    """Words that others may follow: with an end."""
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?:;…" else f"{text}."


# ------------------------------------------------------------------ what a command takes


def parameter_item(param: Param, schema: dict[str, Any], docs: Mapping[str, str]) -> list[str]:
    """One parameter: how it is given, what it means, and what it may be."""
    meaning = prose(sentence(param.help or docs.get(param.name) or ""))
    notes = " ".join([prose(note) for note in _parameter_notes(param, schema)])
    if param.kind == "argument":
        tag = f"{placeholder(param, schema)} ({prose(words.describe_type(schema))})"
    else:
        value = "" if param.is_flag else f" {placeholder(param, schema)}"
        tag = ", ".join([bold(flag) for flag in (*flag_names(param), *param.negations)]) + value
    lines = roff.tagged_item(tag, meaning, notes)
    parts = words.object_properties(schema)
    if not parts or param.is_multiple:
        return lines
    flag_prefix = (
        flag_names(param)[0] if param.kind != "argument" else f"--{param.name.replace('_', '-')}"
    )
    needed = words.required_properties(schema)
    inner = [
        line
        for name, part in parts.items()
        for line in _property_item(f"{flag_prefix}.{name}", part, name in needed)
    ]
    return [*lines, ".RS", *inner, ".RE"]


def _property_item(flag: str, schema: dict[str, Any], is_required: bool) -> list[str]:
    """One part of an object, by the flag that gives it alone."""
    sentences = [sentence(str(schema.get("description") or "")), *_value_notes(schema)]
    sentences += ["Required."] if is_required else []
    return roff.tagged_item(
        f"{bold(flag)} {italic(words.describe_type(schema))}",
        " ".join([prose(text) for text in sentences if text]),
    )


def placeholder(param: Param, schema: dict[str, Any]) -> str:
    """The word that stands for a parameter's value."""
    metavar = param.settings.get("metavar")
    if isinstance(metavar, str) and metavar:
        return italic(metavar)
    if param.kind == "argument":
        return italic(param.name.upper())
    schema = words.without_null(schema)
    choices = words.choice_texts(schema)
    if choices and len("|".join(choices)) <= 40:
        return "|".join([italic(choice) for choice in choices])
    if param.nargs > 1:
        row: list[dict[str, Any]] = schema.get("prefixItems") or [{}] * param.nargs
        return " ".join([italic(words.describe_type(part)) for part in row])
    items = schema.get("items") if param.is_multiple else schema
    kind = words.describe_type(items or {})
    return italic("json" if kind.startswith(("object", "list")) else kind)


def flag_names(param: Param) -> list[str]:
    """The names that an option answers to, the long one first."""
    return sorted(param.flags, key=len, reverse=True) or [f"--{param.name.replace('_', '-')}"]


def _parameter_notes(param: Param, schema: dict[str, Any]) -> Iterator[str]:
    """What a parameter's value may be, where its meaning does not say it."""
    settings = param.settings
    if param.kind != "argument" and words.choice_texts(words.without_null(schema)):
        yield f"Say {words.describe_type(schema)}."
    if settings.get("exists"):
        yield "Each must exist." if param.is_multiple else "It must exist."
    if param.is_multiple and param.kind != "argument":
        yield "It may be given more than once."
    if settings.get("count"):
        yield "Each time counts."
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
        yield f"Without it, {' or '.join(variables)} is taken from the environment."


def _value_notes(schema: dict[str, Any]) -> Iterator[str]:
    limits, default = words.describe_limits(schema), words.describe_default(schema)
    if limits:
        yield limits
    if default:
        yield "It is on by default." if default == "true" else f"Default: `{default}`."


def envvar_names(param: Param) -> list[str]:
    """The environment variables that stand in for an option."""
    envvar = param.settings.get("envvar") or ()
    return [envvar] if isinstance(envvar, str) else list(envvar)


# ------------------------------------------------------------------ what it does, what it gives


def behavior_paragraph(tool: Tool) -> list[str]:
    """What a command does to the world, and who may run it, as a paragraph."""
    behavior, guard, limits = tool.behavior, tool.guard, tool.limits
    sentences = [
        f"Deprecated: {tool.deprecated}" if isinstance(tool.deprecated, str) else "",
        "Deprecated." if tool.deprecated is True else "",
        "It changes nothing." if behavior.read_only else "",
        "It may destroy data, and wants --yes where nobody can be asked."
        if behavior.destructive and not guard.needs_human
        else "It may destroy data."
        if behavior.destructive
        else "",
        "Running it twice does no more than running it once." if behavior.idempotent else "",
        "It reaches beyond this machine." if behavior.open_world else "",
        "A human must approve each run." if guard.needs_human else "",
        "It is forbidden: nobody runs it." if guard.danger == "forbidden" else "",
        f"It needs the scope {', '.join(guard.scopes)}." if guard.scopes else "",
        f"It is given {limits.timeout:g} seconds." if limits.timeout else "",
        f"Cost: {limits.cost_hint}." if limits.cost_hint else "",
        f"When to use it: {tool.guidance.when_to_use}" if tool.guidance.when_to_use else "",
    ]
    line = " ".join([prose(sentence(text)) for text in sentences if text])
    return [".PP", line] if line else []


def output_section(tool: Tool) -> list[str]:
    """What comes back, in words, and the JSON around it."""
    schema = output_schema(tool)
    returns_text = prose(tool.doc.returns)
    lines: list[str] = []
    if schema is not None:
        parts = words.object_properties(schema)
        each = "; each of them has:" if schema.get("type") == "array" else " with:"
        lines = [prose(f"{words.describe_result(schema)}{each if parts else '.'}")]
        for name, part in parts.items():
            about = str(part.get("description") or "")
            kind = words.describe_type(part)
            lines += roff.tagged_item(bold(name), prose(f"{kind[:1].upper()}{kind[1:]}. {about}"))
        if tool.is_streaming:
            lines += [".PP", prose("Items are given out as they come; `--jsonl` writes each line.")]
    elif tool.returns_printed_text:
        lines = ["What the command prints."]
    lead = (
        [returns_text, ".PP"] if returns_text and lines else [returns_text] if returns_text else []
    )
    return section(
        "OUTPUT", [*lead, *lines, *([".PP"] if lead or lines else []), *_envelope_paragraph()]
    )


def _envelope_paragraph() -> list[str]:
    text = (
        'With `--json` the answer is one document, `{"ok":true,"result":…,"meta":…}`; '
        'a failure is `{"ok":false,"error":…,"meta":…}`.'
    )
    return [prose(text)]


def app_output_section() -> list[str]:
    """What holds for the answers of all commands."""
    return section("OUTPUT", _envelope_paragraph())


def exit_status_section() -> list[str]:
    """The table of exit codes."""
    rows = [line for code, text in EXIT_CODES.items() for line in _definition_row(str(code), text)]
    return section("EXIT STATUS", [".PD 0", *rows, ".PD"])


def _definition_row(code: str, meaning: str) -> list[str]:
    return [".TP 8", bold(code), prose(sentence(f"{meaning[:1].upper()}{meaning[1:]}"))]


def declared_errors(tool: Tool) -> dict[str, str]:
    """The errors that a command's author names, by code or in the docstring."""
    if tool.guidance.error_codes:
        return dict(tool.guidance.error_codes)
    found: dict[str, str] = {}
    for name, text in tool.doc.raises.items():
        kind = getattr(tree, name.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, tree.ToolError):
            found.setdefault(kind.default_code, text or ERROR_CODES[kind.default_code][0])
    return found


def common_errors(tool: Tool) -> dict[str, Any]:
    """The errors of the framework that a command's callers meet."""
    codes = [*_COMMON_ERROR_CODES]
    codes += ["E1010"] if tool.behavior.destructive else []
    codes += ["E2101"] if tool.guard.needs_human else []
    return {code: ERROR_CODES[code] for code in codes}


def errors_section(declared: Mapping[str, str], common: Mapping[str, Any]) -> list[str]:
    """Codes and their meanings, a command's own first."""
    behavior = {code: row[0] for code, row in common.items() if not row[0].startswith("HTTP")}
    meanings = {
        **declared,
        **{code: text for code, text in behavior.items() if code not in declared},
    }
    lead = prose("A failure has a code, in `error.code` of the JSON document.")
    rows = [line for code, text in meanings.items() for line in _definition_row(code, text)]
    return section("ERRORS", [lead, ".PD 0", *rows, ".PD"])


# ------------------------------------------------------------------ what is around it


def common_options_section(taken_flags: frozenset[str]) -> list[str]:
    """Describe the framework options. A flag that a command has itself is `--tooli-NAME`."""
    rows = [
        line
        for option in OPTIONS
        if option.flags
        for line in roff.tagged_item(
            " ".join([_format_option_word(text, taken_flags) for text in option.usage.split()]),
            prose(option.description),
        )
    ]
    return section("COMMON OPTIONS", rows)


def common_options_summary(taken_flags: frozenset[str], page: str) -> list[str]:
    """The options that every command takes, in a line."""
    flags = "--json, --jsonl, --plain, --dry-run, --yes, --schema, --help"
    named = " ".join([_format_option_word(flag, taken_flags) for flag in flags.split()])
    return section(
        "COMMON OPTIONS", [f"{named} and others, as every command takes them: see {page}."]
    )


def _format_option_word(word: str, taken_flags: frozenset[str]) -> str:
    """A flag by the name that is left to the framework, or a word that stands for a value."""
    flag = word.rstrip(",")
    if flag[:1] != "-":
        return italic(word)
    free = f"--tooli-{flag.lstrip('-')}" if flag in taken_flags and flag[:2] == "--" else flag
    return bold(free) + word[len(flag) :]


def framework_variables(include_all: bool) -> dict[str, str]:
    """The framework's variables: all of them, or the one that is used every day."""
    return (
        ENVIRONMENT_VARIABLES
        if include_all
        else {"TOOLI_OUTPUT": ENVIRONMENT_VARIABLES["TOOLI_OUTPUT"]}
    )


def parameter_variables(tool: Tool) -> dict[str, str]:
    """The variables that stand in for a command's parameters."""
    return {
        name: f"The value of {param.name.upper() if not param.flags else flag_names(param)[0]}, "
        "where it is not given."
        for param in tool.public_params
        if not param.hidden
        for name in envvar_names(param)
    }


def environment_section(
    parameter_envvars: Mapping[str, str], common: Mapping[str, str]
) -> list[str]:
    """The variables that are read."""
    variables_by_name = {**parameter_envvars, **common}
    rows = [
        line
        for name, text in variables_by_name.items()
        for line in roff.tagged_item(bold(name), prose(text))
    ]
    return section("ENVIRONMENT", rows)


def example_lines(program: str, tool: Tool) -> list[str]:
    """Lines that work, each with what it does."""
    lines: list[str] = []
    for example in tool.guidance.examples:
        argv = [program, *tool.cli_path, *map(str, example.get("args", ()))]
        about = prose(str(example.get("description") or ""))
        lines += [*([".PP", about] if about else []), *roff.example_block(_quote_command(argv))]
    return lines


def _quote_command(argv: Iterable[str]) -> list[str]:
    return " ".join(map(shell_quote, argv)).split("\n")
