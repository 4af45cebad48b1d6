"""The output modes of the command line, in one table.

To add a mode, write its renderer and add a row. `-o`, `TOOLI_OUTPUT`, `Tooli(default_output=…)`,
settings, help, shell completion, man pages and the tables in the documentation derive from the
table.

The kind of a mode decides what its renderer does:

    document   `render(envelope) -> str`: one document for a result or a failure. A stream is
               collected into a list. `envelope` holds JSON types only.
    lines      `open_writer(call)`: an object with `items(iterator)` and `value(value)`, which both
               return an iterator of lines as bytes, without the newline.
    text       `write(value, call, end)`: text on the process's own stdout. `end` is the text after
               each record; mode `text` ignores it.

An ordinary call in mode `json` does not load this module: `tooli.cli` writes that document itself.
"""

from __future__ import annotations

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class OutputMode(Record):
    """One output mode."""

    name: str
    kind: str  # "document" | "lines" | "text"; "auto" chooses another mode
    renderer: str  # "module:function", loaded when the mode is used
    summary: str  # for help and documentation
    has_flag: bool = False  # `--NAME` is a flag of its own
    reports_errors: bool = True  # a failure is an envelope on stdout; False: text on stderr
    is_interactive: bool = False  # prompts, colour, and Typer's help and error messages
    ends_with_envelope: bool = False  # its lines are events; the last one has the envelope

    @property
    def is_document(self) -> bool:
        """True if the answer is one document, with the envelope."""
        return self.kind == "document"

    @property
    def owns_stdout(self) -> bool:
        """True if stdout contains the answer only, so that `print` goes to stderr."""
        return self.kind != "text"

    @property
    def is_plain_text(self) -> bool:
        """True if the answer is text without colour and without Typer's messages."""
        return self.kind == "text" and not self.is_interactive

    @property
    def flag(self) -> str:
        """The command line text that selects the mode, such as `--json` or `-o yaml`."""
        return f"--{self.name}" if self.has_flag else f"-o {self.name}"

    def load_renderer(self) -> Any:
        """Import the module of the renderer and return the function."""
        from importlib import import_module

        module, _, function = self.renderer.partition(":")
        return getattr(import_module(module), function)


MODE_TABLE = (
    OutputMode(
        "auto",
        "auto",
        "",
        "the default: `text` for a person at a terminal, `json` for everyone else",
    ),
    OutputMode(
        "json",
        "document",
        "tooli.cli.outcome_writer:render_json",
        "one JSON document, for success and for every failure",
        has_flag=True,
    ),
    OutputMode(
        "jsonl",
        "lines",
        "tooli.cli.outcome_writer:JsonLines",
        "one JSON value per line, as soon as a generator yields it; a failure is the last line",
        has_flag=True,
    ),
    OutputMode(
        "stream",
        "lines",
        "tooli.cli.event_lines:EventLines",
        "one JSON event per line: progress, logs, artifacts and items; the last is the envelope",
        has_flag=True,
        ends_with_envelope=True,
    ),
    OutputMode(
        "text",
        "text",
        "tooli.cli.outcome_writer:write_text",
        "tables and text for people; errors on stderr",
        has_flag=True,
        reports_errors=False,
        is_interactive=True,
    ),
    OutputMode(
        "plain",
        "text",
        "tooli.cli.plain_output:write_records",
        "no colour, no boxes, one record per line, columns separated by tabs; errors on stderr",
        has_flag=True,
        reports_errors=False,
    ),
    OutputMode(
        "toon",
        "document",
        "tooli.cli.toon:encode",
        "the document of `json` as TOON (toonformat.dev): fewer tokens, and still easy to read",
    ),
    OutputMode(
        "yaml",
        "document",
        "tooli.cli.yaml_output:encode",
        "the document of `json` as YAML 1.2",
    ),
    OutputMode(
        "csv",
        "lines",
        "tooli.cli.tables:csv_writer",
        "records only, as in RFC 4180; errors on stderr",
        reports_errors=False,
    ),
    OutputMode(
        "md",
        "lines",
        "tooli.cli.tables:markdown_writer",
        "records only, as a Markdown table; errors on stderr",
        reports_errors=False,
    ),
)

OUTPUT_MODES = tuple([mode.name for mode in MODE_TABLE])
"""The names of all modes, in the order of the table."""
FLAG_MODES = tuple([mode.name for mode in MODE_TABLE if mode.has_flag])
"""The modes that have a flag of their own, such as `--json`."""


def find_mode(name: str) -> OutputMode:
    """Return the row of a mode; raises KeyError for an unknown name."""
    return _MODES_BY_NAME[name]


_MODES_BY_NAME = {mode.name: mode for mode in MODE_TABLE}
