"""The table of framework options. Every interface derives its options from it.

A framework option controls how tooli handles a call; it is not an argument of the tool. Examples:
`--timeout 5` on the command line, `?timeout=5` over HTTP, `timeout=5` in Python, and
`"io.tooli/options": {"timeout": 5}` over MCP.
To add one, add an `Option` to `OPTIONS`, run `make docs`, and write the stage that implements it.
The stage finds the value in the field of `call.options` with the option's name, or in
`call.options.extra` if `Options` has no such field.

The command line reads the tables in `_hot_tables.py`, which `make docs` generates from this module,
so that an ordinary call does not load the help texts.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.output_modes import FLAG_MODES, MODE_TABLE, OUTPUT_MODES
from tooli.core.timeout_values import MAX_TIMEOUT_SECONDS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

RESPONSE_FORMATS = ("concise", "detailed")
SCHEMA_FORMATS = ("json", "mcp", "openai", "anthropic")
ALL_INTERFACES = ("cli", "http", "mcp", "python")


class Option(Record):
    """One framework option.

    `kind` is how a value is read: "flag" (true or false), "count" (how often a flag is given),
    "choice", "number" (a whole number from 0), "seconds", "token" (printable ASCII without
    spaces), "text", or "list" (comma-separated names, or a JSON list).
    """

    name: str
    kind: str
    group: str  # its row in --help, one of OPTION_GROUPS
    help: str  # one line, without a full stop
    # Spellings on the command line, the main one first, if they are not just --name.
    spellings: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ("cli",)
    metavar: str = ""
    choices: tuple[str, ...] = ()
    shortcuts: tuple[tuple[str, str], ...] = ()  # flags without a value, and the value they set
    implied_value: str | None = None  # the value of a flag that is given without one
    # The record that it fills: "options" or "result_options". "detail" fills both `detailed` and
    # `concise` of Options. "" fills no record: only the command line reads the option.
    target: str = ""
    field: str = ""  # the field of that record, if it is not the option's name
    # What it changes besides the presentation: "input", "records" (which ones are read, and where a
    # stream ends) or "run". A human's approval of a call is bound to such an option.
    affects: str = ""
    aliases: tuple[str, ...] = ()  # other names in HTTP, MCP and Python
    header: str | None = None  # the HTTP request header that sets it
    max_length: int = 0  # of a token, in characters
    setting: str | None = None  # the setting that has the same effect
    # "tool" or "app": the command line prints a description of it instead of a result.
    describes: str = ""
    in_openapi: str = ""  # operations that list it: "all", "paginated", "changing" or "plannable"
    in_tool_schema: str = ""  # MCP tools that list it: "paginated", "destructive", …
    tool_schema_help: str = ""  # its description in the MCP schema, as short as possible
    note: str = ""  # more sentences for man pages and OpenAPI
    page: str = ""  # the page in docs/ that explains it

    @property
    def names(self) -> tuple[str, ...]:
        """Names in HTTP, MCP and Python."""
        return (self.name, *self.aliases)

    @property
    def flags(self) -> tuple[str, ...]:
        """Spellings on the command line, the main one first."""
        if "cli" not in self.interfaces:
            return ()
        return self.spellings or (f"--{self.name.replace('_', '-')}",)

    @property
    def target_field(self) -> str:
        """The name of the field that it fills."""
        return self.field or self.name

    @property
    def is_run_option(self) -> bool:
        """True if `tooli.records.call_options` validates its value."""
        return self.target == "options" and self.kind in ("seconds", "token")

    @property
    def value_name(self) -> str:
        """Placeholder for its value in help texts, or "" if it takes none."""
        name = self.metavar or "|".join(self.choices)
        return f"[{name}]" if self.implied_value is not None else name

    @property
    def description(self) -> str:
        """Help text as full sentences, with the note."""
        return f"{self.help}. {self.note}".strip()

    @property
    def json_schema(self) -> dict[str, object]:
        """JSON Schema of its value."""
        if self.kind == "flag":
            return {"type": "boolean"}
        if self.kind in ("count", "number"):
            return {"type": "integer", "minimum": 0}
        if self.kind == "seconds":
            return {"type": "number", "exclusiveMinimum": 0, "maximum": int(MAX_TIMEOUT_SECONDS)}
        if self.kind == "token" and self.header:  # a header may be quoted
            quoted = f'^"*[!#-~]([!-~]{{0,{self.max_length - 2}}}[!#-~])?"*$'
            return {"type": "string", "pattern": quoted}
        return {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}

    @property
    def usage(self) -> str:
        """Spellings on the command line, each with the placeholder for its value."""
        value = f" {self.value_name}" if self.value_name else ""
        shortcuts = [flag for flag, _ in self.shortcuts]
        return ", ".join([*[f"{flag}{value}" for flag in self.flags], *shortcuts])


OPTION_GROUPS = (
    *("output", "records", "size", "confirm", "run", "input", "messages", "describe", "agents"),
)
"""Rows of the "Framework options" panel in `--help`."""


def _result_option(name: str, kind: str, group: str, summary: str, **fields: Any) -> Option:
    """Return an option that fills a field of `ResultOptions`."""
    fields |= {"interfaces": ALL_INTERFACES, "page": "filtering-and-paging.md"}
    fields["affects"] = "records"
    return Option(name, kind, group, summary, target="result_options", **fields)


OPTIONS: tuple[Option, ...] = (
    Option(
        "output",
        "choice",
        "output",
        "Set the output mode",
        spellings=("--output", "-o"),
        shortcuts=tuple([(f"--{mode}", mode) for mode in FLAG_MODES]),
        metavar="MODE",
        choices=OUTPUT_MODES,
        setting="output",
        note=" ".join([f"`{mode.name}`: {mode.summary}." for mode in MODE_TABLE]),
        page="output.md",
    ),
    Option(
        "response_format",
        "choice",
        "size",
        "Choose the level of detail of the answer",
        interfaces=("cli", "http", "python"),
        choices=RESPONSE_FORMATS,
        target="detail",
        setting="response_format",
        in_openapi="all",
        note=(
            "`concise` leaves out the fields that the schema of the result marks with `detail`. "
            "With `detailed`, `meta.output_schema` describes the result."
        ),
        page="output.md",
    ),
    Option(
        "detailed",
        "flag",
        "size",
        "Add the schema of the result",
        interfaces=("mcp", "python"),
        target="options",
    ),
    Option(
        "concise",
        "flag",
        "size",
        "Leave out the fields marked as details",
        interfaces=("mcp", "python"),
        target="options",
    ),
    _result_option(
        "limit",
        "number",
        "records",
        "Return one page of this many records; 0 returns all of them",
        metavar="N",
        in_openapi="paginated",
        in_tool_schema="paginated",
        tool_schema_help="Records on a page; 0 is all.",
    ),
    _result_option(
        "cursor",
        "text",
        "records",
        "Continue after the page whose `meta.page.next_cursor` this is",
        metavar="CURSOR",
        in_openapi="paginated",
        in_tool_schema="paginated",
        tool_schema_help="The next_cursor of the previous page.",
    ),
    _result_option(
        "filter",
        "text",
        "records",
        "Return only matching records, such as 'size > 1000'",
        metavar="EXPRESSION",
    ),
    _result_option(
        "fields",
        "list",
        "records",
        "Return only these fields of a record, such as 'path, size as bytes'",
        spellings=("--fields", "--select"),
        metavar="LIST",
        aliases=("select",),
    ),
    Option(
        "python_eval",
        "text",
        "records",
        "Return the value of a Python expression about the result, `data`",
        metavar="EXPRESSION",
        target="options",
        note="It runs in a sandbox. The app must allow it: `Tooli(allow_python_eval=True)`.",
        page="orchestration.md",
    ),
    _result_option(
        "max_items",
        "number",
        "size",
        "Return at most this many records",
        metavar="N",
        setting="max_items",
        note="A truncated answer states its full size and how to get the rest.",
    ),
    _result_option(
        "max_bytes",
        "number",
        "size",
        "Limit the answer to this many bytes",
        metavar="N",
        setting="max_bytes",
    ),
    _result_option(
        "max_tokens",
        "number",
        "size",
        "Limit the answer to about this many tokens",
        metavar="N",
        setting="max_tokens",
    ),
    Option(
        "yes",
        "flag",
        "confirm",
        "Confirm a command that may destroy data",
        interfaces=ALL_INTERFACES,
        target="options",
        in_openapi="changing",
        in_tool_schema="confirmable",
        tool_schema_help="True only if a human has agreed to this call.",
        page="safety.md",
    ),
    Option(
        "dry_run",
        "flag",
        "confirm",
        "Validate the call and return a plan; nothing is changed",
        interfaces=ALL_INTERFACES,
        target="options",
        affects="run",
        in_tool_schema="destructive",
        tool_schema_help="Only plan.",
        page="plans.md",
    ),
    Option(
        "validate",
        "flag",
        "confirm",
        "Check the call, and run nothing",
        interfaces=ALL_INTERFACES,
        target="options",
        affects="run",
        note='The answer is `{"valid": true}`, or the error with all problems.',
        page="validation.md",
    ),
    Option(
        "apply",
        "token",
        "confirm",
        "Run exactly the plan for which a dry run returned this token",
        interfaces=ALL_INTERFACES,
        metavar="TOKEN",
        target="options",
        affects="run",
        max_length=4096,
        in_openapi="plannable",
        in_tool_schema="plannable",
        tool_schema_help="Plan token: run exactly that plan.",
        page="plans.md",
    ),
    Option(
        "no_input",
        "flag",
        "confirm",
        "Never prompt",
        interfaces=("cli", "python"),
        target="options",
        setting="no_input",
    ),
    Option(
        "timeout",
        "seconds",
        "run",
        "Stop the call after this many seconds",
        interfaces=ALL_INTERFACES,
        metavar="SECONDS",
        target="options",
        affects="run",
        setting="timeout",
        in_openapi="all",
        note="Write it in plain digits. A shorter timeout of the command still applies.",
        page="timeouts.md",
    ),
    Option(
        "idempotency_key",
        "token",
        "run",
        "Run a call only once per key; a repetition returns the first answer",
        interfaces=ALL_INTERFACES,
        metavar="KEY",
        target="options",
        affects="run",
        header="Idempotency-Key",
        max_length=255,
        in_openapi="all",
        page="idempotency.md",
    ),
    Option(
        "input",
        "text",
        "input",
        "Read arguments from a JSON object: text, a file, or stdin",
        metavar="JSON|@FILE|-",
        page="inputs.md",
    ),
    Option(
        "null",
        "flag",
        "input",
        "Read the values of the list argument from stdin, terminated by NUL",
        target="options",
        field="nul",
        affects="input",
        page="inputs.md",
    ),
    Option(
        "print0",
        "flag",
        "input",
        "Terminate records with NUL instead of a newline; implies --plain",
        page="output.md",
    ),
    Option(
        "sample_via",
        "text",
        "run",
        "Answer the questions of the command to a language model",
        metavar="stdin|URL",
        affects="run",
        note=(
            "`stdin` writes each question as a line of JSON to stdout and reads the answer from "
            "stdin. A URL gets each question as a POST request."
        ),
        page="conversations.md",
    ),
    Option(
        "quiet",
        "flag",
        "messages",
        "Print no warnings and no progress",
        spellings=("--quiet", "-q"),
        interfaces=("cli", "mcp", "python"),
        target="options",
        setting="quiet",
    ),
    Option(
        "verbose",
        "count",
        "messages",
        "Print more messages on stderr; may be repeated",
        spellings=("--verbose", "-v"),
        interfaces=("cli", "mcp", "python"),
        target="options",
        setting="verbose",
    ),
    Option(
        "no_color",
        "flag",
        "messages",
        "Print no colour; NO_COLOR has the same effect",
        setting="color",
    ),
    Option(
        "help",
        "flag",
        "describe",
        "Show the help",
        describes="tool",
    ),
    Option(
        "help_agent",
        "flag",
        "describe",
        "Show compact help for agents",
        describes="tool",
    ),
    Option(
        "schema",
        "choice",
        "describe",
        "Show the schema of the command or of all commands",
        choices=SCHEMA_FORMATS,
        implied_value="json",
        describes="tool",
    ),
    Option(
        "show_version",
        "flag",
        "describe",
        "Show the version",
        spellings=("--version",),
        describes="tool",
    ),
    Option(
        "discover",
        "flag",
        "agents",
        "List the names and descriptions of the commands, as JSON",
        describes="app",
        page="documents.md",
    ),
    Option(
        "agent_manifest",
        "flag",
        "agents",
        "Show everything about the app as JSON",
        describes="app",
        page="documents.md",
    ),
    Option(
        "agent_bootstrap",
        "flag",
        "agents",
        "Show the document that the calling agent expects: SKILL.md, AGENTS.md or CLAUDE.md",
        describes="app",
        page="documents.md",
    ),
)
"""Every framework option."""


def options_for(interface: str) -> dict[str, Option]:
    """Return the options that an interface accepts, by each name that it accepts."""
    return {
        name: option
        for option in OPTIONS
        if interface in option.interfaces
        for name in (option.names if interface != "cli" else (option.name,))
    }


def setting_flag(setting: str) -> str | None:
    """Return the flag of the option that corresponds to a setting, or None."""
    return next((option.flags[0] for option in OPTIONS if option.setting == setting), None)


def help_rows() -> Iterator[tuple[str, str]]:
    """Yield the rows of the "Framework options" panel: a group, and its flags."""
    for group in OPTION_GROUPS:
        flags = [
            text
            for option in OPTIONS
            if option.group == group and option.flags
            for text in _panel_flags(option)
        ]
        yield group.capitalize(), ", ".join(flags)


def _panel_flags(option: Option) -> list[str]:
    """Return the flags of an option for the panel. Values that have a shortcut are not listed."""
    if not option.shortcuts:
        return ["/".join(option.flags)]
    others = [value for value in option.choices if value not in dict(option.shortcuts).values()]
    others = [value for value in others if value != "auto"]
    return [*dict(option.shortcuts), f"{option.flags[-1]} {'|'.join(others)}"]


BUILTIN_GROUPS = {
    "serve": ("mcp", "api"),
    "documents": ("generate-skill", "generate-agents-md", "docs", "export", "skills"),
    "inspect": (*("search-tools", "resources", "prompts", "detect-context", "doctor", "config"),),
    "records": ("approvals", "audit", "idempotency"),
    "scripts": ("orchestrate", "python-eval"),
}
"""The built-in commands by purpose, as the help lists them."""


def builtin_rows(program: str, own_names: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the rows of the "Built-in commands" panel: a purpose, and its commands.

    `own_names` are the names of the app's own commands, which take precedence.
    """
    for purpose, names in BUILTIN_GROUPS.items():
        reachable = [f"tooli {name}" if name in own_names else name for name in names]
        yield purpose.capitalize(), ", ".join(reachable)
    yield "Details", f"{program} tooli --help"
