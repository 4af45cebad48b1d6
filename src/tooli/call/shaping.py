"""Shaping: how much of a result a caller wants, which records and fields, from where on."""

from __future__ import annotations

from tooli.call.model import Problem
from tooli.contract.jsonable import is_list
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.contract.tool import Tool

NUMBERS = ("limit", "max_items", "max_bytes", "max_tokens")
TEXTS = ("cursor", "filter", "fields")
WORDS = (*NUMBERS, *TEXTS, "select")
"""What a caller may say; `select` is another word for `fields`."""
LARGEST = 1 << 40
BYTES_PER_TOKEN = 3
"""As `contract.tokens` estimates them."""


class Shaping(Record):
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
    assumed: bool = False
    spills: bool = False  # what is cut off may be kept in a file
    typed: tuple[str, ...] | None = None  # the words after the program, where they were typed
    problems: tuple[Problem, ...] = ()

    @property
    def sized(self) -> bool:
        """Whether the caller said how large an answer may be."""
        return not self.assumed and (self.max_bytes is not None or self.max_tokens is not None)

    @property
    def room(self) -> tuple[int, str] | None:
        """How many bytes an answer may have, and which word says so; None: any number."""
        sizes = [(self.max_bytes, "max-bytes")] if self.max_bytes else []
        if self.max_tokens:
            sizes.append((self.max_tokens * BYTES_PER_TOKEN, "max-tokens"))
        return min(sizes, default=None)

    @property
    def paged(self) -> bool:
        """Whether a page is wanted."""
        return bool(self.limit) or self.cursor is not None

    @property
    def bounded(self) -> bool:
        """Whether there is any limit to an answer."""
        return bool(self.max_items or self.max_bytes or self.max_tokens or self.max_lines)


def read_shaping(said: Mapping[str, Any], typed: tuple[str, ...] | None = None) -> Shaping:
    """What a caller said, in the words of any door: numbers may be text, fields a list."""
    read: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in said.items():
        if value is None:
            continue
        if name in NUMBERS:
            number = _number(value)
            if number is None:
                message = f"{_flag(name)} is a whole number, 0 or more, not {str(value)!r:.60}"
                problems.append(Problem("E1007", name, message))
            else:
                read[name] = number
        elif isinstance(value, str) and (value.strip() or name == "cursor"):
            read["fields" if name == "select" else name] = value
        elif name in ("fields", "select") and value and is_list(value):
            read["fields"] = ",".join(map(str, value))
        else:
            problems.append(
                Problem("E1007", name, f"{_flag(name)} is text, not {str(value)!r:.60}")
            )
    return Shaping(**read, typed=typed, spills=typed is not None, problems=tuple(problems))


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    return value if type(value) is int and 0 <= value <= LARGEST else None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def resolve(shaping: Shaping | None, tool: Tool) -> Shaping:
    """What holds for a call: what was said, else what the tool's author says."""
    limits = tool.limits
    shaping = shaping or Shaping()
    if shaping.limit is None and limits.page:
        shaping = shaping.replace(limit=limits.page)
    if limits.max_tokens and not shaping.sized:
        most = min(shaping.max_tokens or limits.max_tokens, limits.max_tokens)
        shaping = shaping.replace(max_tokens=most)
    return shaping
