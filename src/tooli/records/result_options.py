"""Shaping: how much of a result a caller wants, which records and fields, from where on."""

from __future__ import annotations

from tooli.core._hot_tables import OPTION_ALIASES, OPTION_KINDS
from tooli.core.call import Problem
from tooli.core.record import Record
from tooli.text.jsonable import is_list
from tooli.text.tokens import BYTES_PER_TOKEN

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.tool import Tool

MAX_NUMBER = 1 << 40


class ResultOptions(Record):
    """What a caller wants of a result beyond the result itself; 0 is no limit.

    Sizes that are `assumed` were not said but are known of whoever calls; what is said wins
    over the tool's own `max_tokens=`, what is assumed does not.
    """

    limit: int | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    max_tokens: int | None = None
    max_lines: int | None = None  # where a record is a line
    cursor: str | None = None
    filter: str | None = None
    fields: str | None = None
    has_default_sizes: bool = False
    can_save_overflow: bool = False  # what is cut off may be kept in a file
    argv: tuple[str, ...] | None = None  # the words after the program, where they were typed
    problems: tuple[Problem, ...] = ()

    @property
    def has_size_limit(self) -> bool:
        """Whether the caller said how large an answer may be."""
        return not self.has_default_sizes and (
            self.max_bytes is not None or self.max_tokens is not None
        )

    @property
    def byte_budget(self) -> tuple[int, str] | None:
        """How many bytes an answer may have, and which word says so; None: any number."""
        sizes = [(self.max_bytes, "max-bytes")] if self.max_bytes else []
        if self.max_tokens:
            sizes.append((self.max_tokens * BYTES_PER_TOKEN, "max-tokens"))
        return min(sizes, default=None)

    @property
    def is_paged(self) -> bool:
        """Whether a page is wanted."""
        return bool(self.limit) or self.cursor is not None

    @property
    def has_limit(self) -> bool:
        """Whether there is any limit to an answer."""
        return bool(self.max_items or self.max_bytes or self.max_tokens or self.max_lines)


def read_result_options(
    values: Mapping[str, Any], argv: tuple[str, ...] | None = None
) -> ResultOptions:
    """What a caller said, in the words of any door: numbers may be text, fields a list."""
    parsed: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in values.items():
        if value is None:
            continue
        option = OPTION_ALIASES.get(name, name)
        kind = OPTION_KINDS[option]
        if kind == "number":
            number = _parse_number(value)
            if number is None:
                message = f"{_flag_name(name)} is a whole number, 0 or more, not {str(value)!r:.60}"
                problems.append(Problem("E1007", name, message))
            else:
                parsed[option] = number
        elif isinstance(value, str) and (value.strip() or name == "cursor"):
            parsed[option] = value
        elif kind == "list" and value and is_list(value):
            parsed[option] = ",".join(map(str, value))
        else:
            problems.append(
                Problem("E1007", name, f"{_flag_name(name)} is text, not {str(value)!r:.60}")
            )
    return ResultOptions(
        **parsed, argv=argv, can_save_overflow=argv is not None, problems=tuple(problems)
    )


def _parse_number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def _flag_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def resolve_result_options(result_options: ResultOptions | None, tool: Tool) -> ResultOptions:
    """What holds for a call: what was said, else what the tool's author says."""
    limits = tool.limits
    result_options = result_options or ResultOptions()
    if result_options.limit is None and limits.page_size:
        result_options = result_options.replace(limit=limits.page_size)
    if limits.max_tokens and not result_options.has_size_limit:
        max_tokens = min(result_options.max_tokens or limits.max_tokens, limits.max_tokens)
        result_options = result_options.replace(max_tokens=max_tokens)
    return result_options
