"""Check a command line with the parser of the app. Nothing runs, no callbacks either."""

from __future__ import annotations

from tooli.cli.argv import parse_command_line
from tooli.cli.spellings import parse_other_spellings
from tooli.core.tool import Choice, ConversionError, Scalar, item_shape, unwrap_optional
from tooli.inputs.source import SourceShape
from tooli.schema import RawText, convert_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tooli.cli.argv import CommandLine
    from tooli.core.protocols import ToolSource
    from tooli.core.tool import Param, Tool


def find_line_problems(app: ToolSource, argv: Sequence[str]) -> list[str]:
    """Return what is wrong with a command line, which does not include the program.

    Unknown commands and options, missing values and values of plain types are found. A line that
    only Typer understands, such as one for a custom group class, has no problems.
    """
    tree = app.tree()
    line = parse_command_line(tree, argv)
    if line.needs_lookup or line.is_ambiguous or line.group.has_dynamic_commands:
        return []
    line = parse_other_spellings(tree, argv, line)
    if line.tool is None:
        return [f"There is no command {' '.join(argv)!r}"]
    found = [problem.message for problem in line.problems]
    return found or list(_find_value_problems(line, line.tool))


def _find_value_problems(line: CommandLine, tool: Tool) -> Iterator[str]:
    for param in tool.params:
        raw = line.arguments.get(param.name)
        if raw is None and _is_missing(line, param):
            yield f"'{param.name}' is missing"
        is_custom = param.option_kwargs.keys() & {"parser", "click_type", "callback"}
        is_plain = isinstance(item_shape(param.shape), (Scalar, Choice)) and not is_custom
        if is_plain and type(raw) is RawText:
            try:
                convert_text(param, raw)
            except ConversionError as error:
                yield f"'{param.name}': {error}"


def _is_missing(line: CommandLine, param: Param) -> bool:
    """True if a value is required, and neither the line nor a question to a person gives it."""
    if not param.required or param.kind == "injected" or line.has_payload:
        return False
    is_read_from_pipe = isinstance(unwrap_optional(param.shape), SourceShape)
    return not is_read_from_pipe and not param.option_kwargs.get("prompt")
