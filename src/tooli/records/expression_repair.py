"""Correct invalid filters and selections of fields, for suggestions.

name = Ada L        ──▶  name = "Ada L"      text gets quotes
day >= 2026-01-02   ──▶  day >= "2026-01-02"
nme == 'x' && big   ──▶  name == 'x' and big
id,nme              ──▶  id,name
"""

from __future__ import annotations

from tooli.records.fields import ExpressionError, compile_selection, parse_path
from tooli.records.filter import (
    COMPARISONS,
    CONSTANTS,
    KEYWORDS,
    SYMBOLS,
    find_word_end,
)
from tooli.records.filter import compile_filter as compile_filter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.records.fields import RecordFields

_OTHER_KEYWORDS = {"&&": "and", "||": "or", "&": "and", "|": "or", "!": "not"}


def repair_filter(text: str, fields: RecordFields) -> str | None:
    """Return a filter that is probably meant by an invalid one; None if there is none."""
    pieces = list(_split(text))
    repaired = ""
    before = ""  # the last piece that is not space
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        keyword = _as_keyword(piece)
        if piece[0] in "\"'":
            repaired += piece if len(piece) > 1 and piece[-1] == piece[0] else piece + piece[0]
        elif keyword is not None:
            piece = keyword
            repaired += keyword
        elif piece.isspace() or piece in SYMBOLS:
            repaired += piece
        elif before in COMPARISONS and before != "in":
            end = _find_operand_end(pieces, i)
            repaired += _repair_operand("".join(pieces[i:end]), fields)
            i = end - 1
        else:
            repaired += _repair_field(piece, fields)
        before = before if piece.isspace() else piece
        i += 1
    return repaired if repaired != text and _is_valid(repaired, fields) else None


def repair_selection(text: str, fields: RecordFields) -> str | None:
    """Return the fields of a selection that exist, with corrected names; None if there are none."""
    kept: list[str] = []
    for field_text in text.split(","):
        name, *rest = field_text.split() or [""]
        repaired = " ".join([_repair_field(name, fields), *rest])
        try:
            compile_selection(",".join([*kept, repaired]), fields)
        except ExpressionError:
            continue
        kept.append(repaired)
    return ",".join(kept) or None


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a filter: quoted texts, symbols, words, and the space between them."""
    position = 0
    while position < len(text):
        end = position + 1
        symbol = next((symbol for symbol in SYMBOLS if text.startswith(symbol, position)), None)
        if text[position].isspace():
            while text[end : end + 1].isspace():
                end += 1
        elif text[position] in "\"'":
            while end < len(text) and text[end] != text[position]:
                end += 2 if text[end] == "\\" else 1
            end += 1
        elif symbol is not None:
            end = position + len(symbol)
        else:
            end = max(find_word_end(text, position), end)
        yield text[position:end]
        position = end


def _as_keyword(piece: str) -> str | None:
    keyword = _OTHER_KEYWORDS.get(piece, piece.lower())
    return keyword if keyword in KEYWORDS else None


def _find_operand_end(pieces: list[str], start: int) -> int:
    """Return the end of the words after a comparison, which may be one text without quotes."""
    end = position = start
    while position < len(pieces) and pieces[position] not in SYMBOLS:
        if pieces[position][0] in "\"'" or _as_keyword(pieces[position]) is not None:
            break
        position += 1
        if not pieces[position - 1].isspace():
            end = position
    return end


def _repair_operand(text: str, fields: RecordFields) -> str:
    """Return a value as it is, or text in quotes."""
    if text in CONSTANTS or _is_number(text) or _is_field(text, fields):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _repair_field(text: str, fields: RecordFields) -> str:
    try:
        fields.schemas_at(parse_path(text))
    except ExpressionError as error:
        return error.suggested_path or text
    return text


def _is_field(text: str, fields: RecordFields) -> bool:
    try:
        return fields.schemas_at(parse_path(text)) is not None
    except ExpressionError:
        return False


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0] in "-+.0123456789" and "_" not in text


def _is_valid(text: str, fields: RecordFields) -> bool:
    try:
        compile_filter(text, fields)
    except ExpressionError:
        return False
    return True
