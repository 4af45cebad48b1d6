"""Short texts that match a regular expression, for sample values.

    matching_texts("^[A-Z]{3}-[0-9]+$")  ──▶ "AAA-0", "AAA-00", …

Python's own parser reads the expression. It is not public, and the expressions of pydantic have
another syntax in places. Therefore each text is checked before it is returned.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from string import ascii_letters, digits, printable

from tooli.schema.pattern_search import PatternTimeout, has_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_PARSER = "re._parser" if sys.version_info >= (3, 11) else "sre_parse"
_PREFERRED_CHARACTERS = dict.fromkeys(ascii_letters + digits + printable.strip() + " éß日")
_MAX_REPEATS, _MAX_CHARS = 64, 4_000
_CATEGORIES = {"DIGIT": str.isdigit, "SPACE": str.isspace}


def matching_texts(pattern: str) -> Iterator[str]:
    """Iterate over texts that match a pattern, from short to long. There may be none."""
    try:
        re.compile(pattern)
        nodes = import_module(_PARSER).parse(pattern)
    except (re.error, ImportError, RecursionError, OverflowError):  # not an expression of Python
        return
    before = None
    for repeats in range(_MAX_REPEATS + 1):
        try:
            text = _Generator(repeats).generate(nodes)
        except OverflowError:
            return
        if text != before and matches(pattern, text):
            yield text
        before = text


def matches(pattern: str, text: str) -> bool:
    """True if a text contains a match. False if the pattern is not valid, or needs long."""
    try:
        return has_match(pattern, text, can_wait=False)
    except (re.error, PatternTimeout):
        return False


class _Generator:
    """Generates one text. Optional parts are repeated `repeats` times, if the pattern allows it.

    Raises OverflowError if the text becomes too long, as that of `((a+)+)+` does.
    """

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._chars = 0
        self._groups: dict[int, str] = {}

    def generate(self, nodes: Sequence[tuple[object, Any]]) -> str:
        self._chars += len(nodes)
        if self._chars > _MAX_CHARS:
            raise OverflowError
        return "".join([self._node(str(kind), detail) for kind, detail in nodes])

    def _node(self, kind: str, detail: Any) -> str:
        match kind:
            case "LITERAL":
                return chr(detail)
            case "NOT_LITERAL":
                return next(c for c in _PREFERRED_CHARACTERS if ord(c) != detail)
            case "ANY":
                return "a"
            case "IN":
                found = [c for c in _PREFERRED_CHARACTERS if _is_in_class(c, detail)]
                return (found or [chr(_first_code(detail))])[0]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, part = detail
                count = min(max(int(low), self._repeats), int(high), max(int(low), _MAX_REPEATS))
                return "".join([self.generate(part) for _ in range(count)])
            case "BRANCH":
                return self.generate(detail[1][0])
            case "SUBPATTERN":
                text = self._groups[detail[0]] = self.generate(detail[3])
                return text
            case "ATOMIC_GROUP":
                return self.generate(detail)
            case "GROUPREF":
                return self._groups.get(detail, "")
            case _:  # anchors and lookarounds have no text of their own
                return ""


def _first_code(members: Sequence[tuple[object, Any]]) -> int:
    """Return the first character of a class that has no preferred character."""
    for kind, detail in members:
        if str(kind) in ("LITERAL", "RANGE"):
            return detail if str(kind) == "LITERAL" else detail[0]
    return ord("a")


def _is_in_class(character: str, members: Sequence[tuple[object, Any]]) -> bool:
    is_negated = bool(members) and str(members[0][0]) == "NEGATE"
    return is_negated != any([_is_member(character, str(k), detail) for k, detail in members])


def _is_member(character: str, kind: str, detail: Any) -> bool:
    if kind == "CATEGORY":
        name = str(detail).removeprefix("CATEGORY_")
        is_word = character.isalnum() or character == "_"
        check = _CATEGORIES.get(name.removeprefix("NOT_"))
        return name.startswith("NOT_") != (check(character) if check is not None else is_word)
    code = ord(character)
    if kind == "RANGE":
        return detail[0] <= code <= detail[1]
    return kind == "LITERAL" and code == detail
