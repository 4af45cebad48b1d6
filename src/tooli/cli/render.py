"""Results and errors for a person: tables, cards and trees that fit the terminal.

    value ──▶ lines of (text, style) spans ──▶ rich's segments ──▶ the terminal
              layout                            colour, encoding, width

rich writes the lines, and measures and splits wide characters. This module lays out tables itself
for two reasons. First, rich.table.Table measures and wraps every cell several times: a table of 5
columns and 1,000 rows takes 0.46 s of processor time with rich and 0.01 s here, and 10,000 rows
take 4.1 s and 0.25 s. Second, rich narrows columns until they are unreadable. This module shows a
list of records as a table if every column is readable, and otherwise as one card per record.

Field names are not changed, because `--fields` and `--filter` take them. Numbers have no thousands
separators: an id, a port or a year must not have one, and a copied number must still be a number.
Booleans are yes and no, null is a dim dash, a missing field is blank. Control characters, such as
ESC, and bidi controls, which reorder text, are shown as escapes.
"""

from __future__ import annotations

import os

from tooli.cli.plain_output import (
    MULTILINE_ESCAPES,
    SINGLE_LINE_ESCAPES,
    failed_items,
    humanize,
    summarize,
)
from tooli.errors import shell_quote
from tooli.pipeline.planning import is_plan
from tooli.pipeline.suggestions import show_call, suggest_call
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from rich.console import Console, ConsoleOptions, RenderResult

    from tooli.cli.plain_output import EscapeTable
    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject

    Span = tuple[str, str]  # text and style
    StyledLine = list[Span]
    Cell = tuple[list[str], str]  # lines and style
    RecordDict = dict[str, object]

COLUMN_GAP = 2
MIN_WIDTH = 20  # columns; a narrower terminal gets lines of this width
MIN_TEXT_COLUMN_WIDTH = 12  # text in a narrower column is hard to read
MAX_WORD_WIDTH = 40  # a longer word (a path, a URL) may be split so that a table fits
MAX_LINE_WIDTH = 100  # wrapped text is easiest to read up to this width
MAX_ROW_LINES = 4  # only a few rows of a table may have more lines
MAX_DEPTH = 6  # deeper values are summarized
MAX_ACTIONS = 200  # actions of a plan that are shown

_ASCII_FALLBACK = str.maketrans("─│├└•–→…", "-||`*->~")


def print_result(
    value: object, *, file: TextIO, width: int | None = None, color: bool | None = None
) -> None:
    """Print a result for a person; None prints nothing.

    `color=None` follows the terminal, NO_COLOR and FORCE_COLOR. With NO_COLOR, and with False, the
    output has no escape sequences, so nothing is bold or dim.
    """
    if value is not None:
        _print(_Page(lambda columns: _render_value(value, columns)), file, width, color)


def print_error(
    error: Mapping[str, object],
    *,
    file: TextIO,
    width: int | None = None,
    color: bool | None = None,
    verbose: bool = False,
) -> None:
    """Print an error, its fix, and the command to try on a line of its own."""
    _print(_Page(lambda columns: _render_error(error, columns, verbose)), file, width, color)


class _Page:
    """A renderable that lays out its lines when rich knows the width."""

    def __init__(self, draw: Callable[[int], Iterable[StyledLine]]) -> None:
        self.draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        newline = Segment.line()
        legacy_encoding = options.encoding if options.ascii_only else ""
        for line in self.draw(max(options.max_width, MIN_WIDTH)):
            for text, style in line:
                shown = _to_encoding(text, legacy_encoding) if legacy_encoding else text
                yield Segment(shown, console.get_style(style) if style else None)
            yield newline


def _to_encoding(text: str, encoding: str) -> str:
    return text.translate(_ASCII_FALLBACK).encode(encoding, "backslashreplace").decode(encoding)


def _print(page: _Page, file: TextIO, width: int | None, color: bool | None) -> None:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process; `StdoutErrorScope` handles a closed pipe instead.
            raise BrokenPipeError

    if color is None and os.environ.get("NO_COLOR"):
        color = False
    terminal = Terminal(
        file=file,
        width=width,
        color_system="auto" if color is None else "standard" if color else None,
        force_terminal=color or None,
        no_color=None if color is None else not color,
        force_jupyter=False,
    )
    terminal.print(page, crop=False)


def _render_value(value: object, width: int) -> Iterator[StyledLine]:
    if isinstance(value, str):
        text = value.removesuffix("\n").replace("\r\n", "\n").translate(MULTILINE_ESCAPES)
        yield from ([(line, "")] for line in text.split("\n"))
    elif _is_container(value) and not value:
        yield [("No results.", "dim")]
    elif value is not None:
        yield from _render_block(value, width, 0)


def _render_block(value: object, width: int, depth: int) -> Iterator[StyledLine]:
    """Lay out any value, never wider than `width`."""
    if value and depth < MAX_DEPTH and width >= MIN_TEXT_COLUMN_WIDTH:
        if is_object(value):
            fields = _render_fields(list(value.items()), width, depth)
            return (line for lines in fields for line in lines)
        if is_list(value):
            records = [item for item in value if is_object(item)]
            has_only_records = len(records) == len(value) and any(records)
            return (
                _render_records(records, width, depth)
                if has_only_records
                else _render_items(value, width, depth)
            )
    return _paragraph(*_inline(value), width)


def _render_items(items: Sequence[object], width: int, depth: int) -> Iterator[StyledLine]:
    """Lay out one item per line, with bullets if an item takes several lines."""
    spans = [_inline_span(item, width - 2, depth) for item in items]
    if all(span and _wrap(span[0], width) == [span[0]] for span in spans):
        yield from ([span] for span in spans if span)
        return
    for item, span in zip(items, spans, strict=True):
        lines = _paragraph(*span, width - 2) if span else _render_block(item, width - 2, depth + 1)
        yield from _prefix_lines(lines, "• ", "  ")


def _render_fields(
    pairs: Sequence[tuple[str, object]], width: int, depth: int, name_width: int = 0
) -> Iterator[Iterator[StyledLine]]:
    """Lay out each name with its value beside it, or below it as a tree.

    `name_width` is the width of the column of names; by default, that of the longest name.
    """
    names = [_escape_text(name, SINGLE_LINE_ESCAPES) for name, _ in pairs]
    name_width = min(name_width or max(map(_cell_width, names)), width * 2 // 5)
    for name, (_, value) in zip(names, pairs, strict=True):
        span = _inline_span(value, width - name_width - COLUMN_GAP, depth)
        yield (
            _render_inline_field(name, span, name_width, width)
            if span
            else _render_nested_field(name, value, width, depth)
        )


def _inline_span(value: object, width: int, depth: int) -> Span | None:
    """Return the value on one line, or None if it needs lines of its own."""
    if (
        not value
        or not _is_container(value)
        or depth + 1 >= MAX_DEPTH
        or width < MIN_TEXT_COLUMN_WIDTH
    ):
        return _inline(value)
    is_record = is_object(value)
    parts = list(value.values()) if is_object(value) else value if is_list(value) else []
    if any(map(_is_container, parts)) or (is_record and not depth):
        return None
    summary = summarize(value, None).translate(SINGLE_LINE_ESCAPES)
    texts = "".join([part for part in parts if isinstance(part, str)])
    fits = _cell_width(summary) <= (min(width, MAX_WORD_WIDTH) if is_record else width)
    is_unambiguous = "," not in texts and "\n" not in texts
    is_list_without_text = not texts and not is_record  # wrapped if it does not fit
    return (summary, "") if is_list_without_text or (fits and is_unambiguous) else None


def _render_inline_field(
    name: str, span: Span, name_width: int, width: int
) -> Iterator[StyledLine]:
    if _cell_width(name) > name_width:
        yield from _paragraph(name, "bold", width)
        name, name_width = "", 0
    value_column = name_width + COLUMN_GAP
    prefix: StyledLine = [(name, "bold"), (" " * (value_column - _cell_width(name)), "")]
    for line in _paragraph(*span, width - value_column):
        yield [*prefix, *line] if line else prefix[:1]
        prefix = [(" " * value_column, "")]


def _render_nested_field(name: str, value: object, width: int, depth: int) -> Iterator[StyledLine]:
    yield from _paragraph(name, "bold", width)
    if not is_object(value):
        yield from _prefix_lines(_render_block(value, width - COLUMN_GAP, depth + 1), "  ", "  ")
        return
    for index, lines in enumerate(_render_fields(list(value.items()), width - 3, depth + 1), 1):
        is_last = index == len(value)
        first, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        yield from _prefix_lines(lines, first, rest)


def _render_records(records: list[RecordDict], width: int, depth: int) -> Iterator[StyledLine]:
    columns = list(dict.fromkeys(name for record in records for name in record))
    has_too_many_columns = len(columns) * (1 + COLUMN_GAP) > width + COLUMN_GAP
    table = None if has_too_many_columns else _render_table(records, columns, width)
    return table or _render_cards(records, columns, width, depth)


def _render_cards(
    records: list[RecordDict], columns: list[str], width: int, depth: int
) -> Iterator[StyledLine]:
    name_width = max(_cell_width(_escape_text(name, SINGLE_LINE_ESCAPES)) for name in columns)
    for number, record in enumerate(records, 1):
        yield [(f"── {number} ".ljust(min(width, MAX_WORD_WIDTH), "─"), "dim")]
        if record:
            for lines in _render_fields(list(record.items()), width, depth + 1, name_width):
                yield from lines


def _render_table(
    records: list[RecordDict], columns: list[str], width: int
) -> Iterator[StyledLine] | None:
    """Lay out records as a table; None if that would be unreadable."""
    grid = [[(_escape_text(name, SINGLE_LINE_ESCAPES), "bold") for name in columns]]
    grid += [
        [_inline(row[name]) if name in row else ("", "") for name in columns] for row in records
    ]
    is_numeric = [_is_numeric(row.get(name) for row in records) for name in columns]
    widths = _column_widths(grid, is_numeric, width - COLUMN_GAP * (len(columns) - 1))
    if widths is None:
        return None
    rows = [
        [(_wrap(text, size), style) for (text, style), size in zip(spans, widths, strict=True)]
        for spans in grid
    ]
    tall_count = sum(max(len(lines) for lines, _ in cells) > MAX_ROW_LINES for cells in rows)
    # A few tall rows are fine in a table; if there are more, cards are easier to read.
    return None if tall_count * 10 > len(rows) else _draw_table(rows, widths, is_numeric)


def _column_widths(
    grid: list[list[Span]], is_numeric: list[bool], total_width: int
) -> list[int] | None:
    """Return the width of each column, or None if the columns do not fit.

    Each column starts with its minimum width. Columns with long text share the space that is left.
    """
    full_widths: list[int] = []
    widths: list[int] = []
    for index in range(len(is_numeric)):
        texts = [row[index][0] for row in grid]
        full_width = max(map(_longest_line_width, texts))
        full_widths.append(full_width)
        widths.append(full_width if is_numeric[index] else _min_text_width(texts, full_width))
    if sum(full_widths) > total_width:
        full_widths = [
            min(full_width, max(width, MAX_LINE_WIDTH))
            for full_width, width in zip(full_widths, widths, strict=True)
        ]
    spare = total_width - sum(widths)
    while spare > 0 and (narrow := [i for i, size in enumerate(full_widths) if widths[i] < size]):
        for index in narrow:
            share = max(1, spare // len(narrow))
            added = min(share, full_widths[index] - widths[index], spare)
            widths[index] += added
            spare -= added
    return widths if spare >= 0 else None


def _min_text_width(texts: list[str], full_width: int) -> int:
    """Return the minimum width of a text column: its longest word fits, and few rows are tall."""
    if full_width <= MIN_TEXT_COLUMN_WIDTH:
        return full_width
    word_width = max(_longest_line_width(text.replace(" ", "\n")) for text in texts)
    wrapped_width = -(-full_width // MAX_ROW_LINES)  # rounded up
    width = min(MAX_WORD_WIDTH, max(word_width, wrapped_width))
    return min(full_width, max(MIN_TEXT_COLUMN_WIDTH, width))


def _draw_table(
    rows: list[list[Cell]], widths: list[int], is_numeric: list[bool]
) -> Iterator[StyledLine]:
    """Draw the rows, the first of them as the header. Numeric columns are right-aligned."""
    rule = "─" * (sum(widths) + COLUMN_GAP * (len(widths) - 1))
    for number, cells in enumerate(rows):
        if number == 1:
            yield [(rule, "dim")]
        for index in range(max(len(lines) for lines, _ in cells)):
            line: StyledLine = []
            pad = 0
            for (lines, style), width, is_right in zip(cells, widths, is_numeric, strict=True):
                text = lines[index] if index < len(lines) else ""
                unused = width - _cell_width(text)
                pad += unused if is_right else 0
                if text:
                    line += [(" " * pad, ""), (text, style)] if style else [(" " * pad + text, "")]
                    pad = 0
                pad += COLUMN_GAP if is_right else COLUMN_GAP + unused
            yield line


def _render_error(error: Mapping[str, object], width: int, verbose: bool) -> Iterator[StyledLine]:
    fields = {name: value for name, value in error.items() if value is not None}
    message = _escape_text(str(fields.pop("message", "Something went wrong.")))
    code = _escape_text(str(fields.pop("code", "")), SINGLE_LINE_ESCAPES)
    suggestion = fields.pop("suggestion", None)
    details = fields.get("details")
    errors = details.get("errors") if is_object(details) else None
    problems = [problem for problem in errors if is_object(problem)] if is_list(errors) else []
    field = _escape_text(str(fields.get("field", "")), SINGLE_LINE_ESCAPES)
    if len(problems) < 2 and field.replace("_", "-") not in message.replace("_", "-"):
        message = f"{field}: {message}"
    yield from _prefix_lines(
        _render_headline(message, code, width - 7), "Error: ", " " * 7, "bold red"
    )
    pairs = [(item, message) for item, message, _ in failed_items(code, details)]
    if not pairs and len(problems) > 1:
        pairs = [(str(p.get("field") or ""), p.get("message")) for p in problems]
    if pairs:
        for lines in _render_fields(pairs, width - 2, 0):
            yield from _prefix_lines(lines, "  ", "  ")
    yield from _render_suggestion(suggestion if is_object(suggestion) else {}, width)
    if verbose and fields:
        yield []
        yield from _render_block(fields, width, 0)


def _render_headline(message: str, code: str, width: int) -> Iterator[StyledLine]:
    *lines, last = _wrap(f"{message}  {code}".rstrip(" "), width)
    yield from ([(line, "")] for line in lines)
    yield [(last.removesuffix(code), ""), (code, "dim")] if last.endswith(code) else [(last, "dim")]


def _render_suggestion(suggestion: RecordDict, width: int) -> Iterator[StyledLine]:
    fix, command, argv = (suggestion.get(name) for name in ("fix", "example", "argv"))
    if fix:
        yield from _prefix_lines(
            _paragraph(_escape_text(str(fix)), "", width - 2), "→ ", "  ", "cyan"
        )
    if not command and is_list(argv):
        command = " ".join([shell_quote(str(text)) for text in argv])
    if command:
        # Never wrapped: a command with a line break cannot be copied.
        yield [("Try: ", "dim"), (_escape_text(str(command), SINGLE_LINE_ESCAPES), "bold")]


def _inline(value: object) -> Span:
    """Return a value as text: a string with its line breaks, a nested value as a summary."""
    if not _is_container(value):
        style = "green" if value is True else "dim" if value is None or value is False else ""
        return _escape_text(humanize(value)), style
    return summarize(value).translate(SINGLE_LINE_ESCAPES), "" if value else "dim"


def _is_numeric(values: Iterable[object]) -> bool:
    types = {type(value) for value in values} - {type(None)}
    return bool(types) and types <= {int, float}


def _is_container(value: object) -> bool:
    return isinstance(value, (dict, list, tuple))


def _escape_text(text: str, table: EscapeTable = MULTILINE_ESCAPES) -> str:
    if text.isprintable():
        return text
    if table is MULTILINE_ESCAPES:
        text = text.replace("\r\n", "\n").strip("\n").expandtabs(4)
    return text.translate(table)


def _paragraph(text: str, style: str, width: int) -> Iterator[StyledLine]:
    return ([(line, style)] if line else [] for line in _wrap(text, width))


def _prefix_lines(
    lines: Iterable[StyledLine], first: str, rest: str, style: str = "dim"
) -> Iterator[StyledLine]:
    prefix = first
    for line in lines:
        yield [(prefix if line else prefix.rstrip(), style), *line]
        prefix = rest


def _cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _longest_line_width(text: str) -> int:
    return max(map(_cell_width, text.split("\n"))) if "\n" in text else _cell_width(text)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, wrapped between words, and within a word only if needed."""
    if "\n" not in text and _cell_width(text) <= width:
        return [text]
    from rich.cells import chop_cells

    lines: list[str] = []
    for row in text.split("\n"):
        if _cell_width(row) <= width:
            lines.append(row)
            continue
        line, remaining = "", 0
        for index, word in enumerate(row.split(" ")):
            size = _cell_width(word)
            if index and size < remaining:
                line += " " + word
                remaining -= size + 1
                continue
            if index:
                lines.append(line.rstrip(" "))
            *full_lines, line = chop_cells(word, width) or [word]
            lines += full_lines
            remaining = min(width, MAX_LINE_WIDTH) - _cell_width(line)
        lines.append(line.rstrip(" "))
    return lines


# ------------------------------------------------------------------ plans


def print_plan(value: object, call: Call, file: TextIO) -> bool:
    """Print a plan, one action per line; return False if the value is not a plan."""
    if not is_object(value) or not is_plan(value):
        return False
    file.write("\n".join(_format_plan(value, call)) + "\n")
    return True


def _format_plan(plan: JsonObject, call: Call) -> list[str]:
    """Return a plan as lines, such as `would delete  old.log`."""
    lines = _format_actions(plan)
    token = plan.get("token")
    if plan.get("complete") is False:
        stopped: JsonObject = plan.get("stopped", {})
        end = f"The plan ends on line {stopped.get('line')}: {stopped.get('reason')}."
        return [*lines, "", end.translate(SINGLE_LINE_ESCAPES), "Nothing was done."]
    if token is None:
        return [*lines, "", "Nothing was done."]
    options: JsonObject = {"yes": True} if plan.get("needs_yes") else {}
    shown, _ = show_call(suggest_call(call, without=("dry_run",), apply=token, **options), call)
    command = " ".join(map(shell_quote, shown["argv"])).translate(SINGLE_LINE_ESCAPES)
    return [
        *lines,
        "",
        "Nothing was done. To run exactly this plan, once and within an hour:",
        f"  {command}",
    ]


def _format_actions(plan: JsonObject) -> list[str]:
    actions: list[JsonObject] | None = plan.get("actions")
    if actions is None:
        arguments = summarize(plan["arguments"], None) if plan["arguments"] else "no arguments"
        effects = ", ".join(plan["effects"]) or "none declared"
        lines = [
            f"would call  {plan['tool']}",
            f"with        {arguments}",
            f"effects     {effects}",
            "The command does not report its actions, so no more is known.",
        ]
        return [line.translate(SINGLE_LINE_ESCAPES) for line in lines]
    if not actions:
        return ["would do nothing"]
    width = max([len(entry["action"]) for entry in actions[:MAX_ACTIONS]])
    lines = [
        _format_action(entry, width).translate(SINGLE_LINE_ESCAPES)
        for entry in actions[:MAX_ACTIONS]
    ]
    hidden_count = len(actions) - MAX_ACTIONS
    return [*lines, f"… and {hidden_count} more"] if hidden_count > 0 else lines


def _format_action(entry: JsonObject, width: int) -> str:
    details = entry.get("details")
    details_text = f"  ({summarize(details, None)})" if details else ""
    return f"would {entry['action']:<{width}}  {entry['target']}{details_text}"
