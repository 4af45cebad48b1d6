"""python-eval: the value of a Python expression about data, such as the answer of a command."""

from __future__ import annotations

from json import loads
from typing import Annotated, Any

from tooli.annotations import ReadOnly
from tooli.builtins import stops_itself
from tooli.errors import FormatError
from tooli.inputs.format_errors import is_envelope, unwrap_envelope
from tooli.inputs.source import Input, StdinOr
from tooli.orchestrate.python_eval import check_allowed, evaluate
from tooli.pipeline.context import Context, call_of
from tooli.schema.param_info import Argument

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App

_Expression = Annotated[str, Argument(help="The expression, or a script. The data is `data`.")]
_Data = Annotated[
    StdinOr[Input],
    Argument(help="JSON or JSONL, also the answer of a command. Default: stdin."),
]


def add_python_eval(builtin_app: App, app: App) -> None:
    """Add `python-eval`."""

    @builtin_app.command("python-eval", annotations=ReadOnly, auth=[], output_schema={})
    @stops_itself
    async def python_eval(expression: _Expression, data: _Data, ctx: Context) -> object:
        """Evaluate a Python expression about data in a sandbox, such as `len(data)`.

        The sandbox has no tools, no files and no network. The result of a command is unwrapped.
        """
        check_allowed(app._state, call_of(ctx))
        return await evaluate(app, call_of(ctx), expression, read_data(data))


def read_data(source: Input) -> Any:
    """Return the data of an input: the result in an envelope, JSON, or the rows of JSONL.

    Raises a FormatError if it is none of these, or the answer of a command that failed.
    """
    text = source.read_text()
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return [_read_row(source, number, line) for number, line in _lines(text)]
    return unwrap_envelope(source, value) if is_envelope(value) else value


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that are not empty, with their numbers."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return lines or [(1, "")]


def _read_row(source: Input, number: int, line: str) -> Any:
    try:
        value = loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"The data is neither JSON nor JSONL: line {number}: {error}.", field="data"
        ) from None
    return unwrap_envelope(source, value, number) if is_envelope(value) else value
