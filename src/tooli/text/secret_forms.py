r"""The texts that reveal a secret: its value, other spellings of it, and encodings.

    the value         with and without surrounding white space, in upper and lower case
    several lines     with other line ends, on one line, and each line of 8 or more characters
    a number          1234567, 1,234,567, 1_234_567, 1.234567e6, 0x12d687
    an encoding       JSON, Python, shell, HTML, URL, hexadecimal, base64 (also in a longer text)

A secret of less than 4 characters is not searched for, because it occurs in ordinary text.
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object, is_set, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal
    from typing import Any, TypeAlias

    SecretData: TypeAlias = tuple[dict[str, None], dict[str, None], set[Any]]

MIN_SECRET_CHARS = 4
"""Shorter secrets are not searched for, because they occur in ordinary text."""
MIN_ENCODED_CHARS = 8
"""Shorter encodings of a secret, and shorter lines of it, are not searched for."""
MAX_ENCODED_SECRETS = 1000
"""If a call has more secrets, only their values are searched for, without encodings."""
MAX_SECRET_LINES = 1000
"""Number of lines of a secret that are searched for one by one."""


MAX_ENCODED_CHARS = 1 << 16
"""The value of a longer secret, its lines and its JSON are searched for, but no other encodings."""


class SecretForms:
    """The texts and numbers that reveal secrets.

    `texts` are all forms, the longest first. `values` are the values of the secrets, as written in
    text, in JSON and in Python. `numbers` are the values of secrets that are numbers.
    """

    __slots__ = ("numbers", "texts", "values")

    def __init__(self, secrets: Iterable[Any] = ()) -> None:
        loaded = [secret for secret in secrets if secret.is_loaded]
        texts: dict[str, None] = {}
        values: dict[str, None] = {}
        numbers: set[Any] = set()
        has_encodings = not _are_too_many(loaded)
        for secret in loaded:
            found = secret.forms if has_encodings else None
            if found is None:
                found = _read_forms(secret, has_encodings)
            texts.update(found[0])
            values.update(found[1])
            numbers |= found[2]
        self.texts = sorted(texts, key=len, reverse=True)
        self.values = list(values)
        self.numbers = numbers

    def __bool__(self) -> bool:
        return bool(self.texts)

    def find_in_json(self, text: str) -> list[str]:
        """Return the forms that occur in the strings, keys and numbers of a JSON text."""
        if self.texts and "\\" not in text:  # nothing is escaped
            return [form for form in self.texts if form in text]
        return [
            form
            for form in self.texts
            if form in text or any([variant in text for variant in _to_json(form)])
        ]

    def occur_in(self, value: object, *, with_remains: bool) -> bool:
        """True if a secret occurs in a value of JSON types.

        With `with_remains`, also if the remains of a secret occur next to an ellipsis.
        """
        if isinstance(value, str):
            if any([form in value for form in self.texts]):
                return True
            return with_remains and any([True for _ in self._iter_remains(value)])
        if is_object(value):
            value = [*value, *value.values()]
        if is_list(value):
            return any([self.occur_in(item, with_remains=with_remains) for item in value])
        return type(value) in (int, float) and value in self.numbers

    def find_spans(self, text: str, forms: Iterable[str]) -> list[tuple[int, int]]:
        """Return the ranges of a text that reveal a secret, in order. They do not overlap.

        All of them are found in the same text, because a mask could hide only a part of a secret
        that overlaps another one. `forms` are those to search for.
        """
        found = [span for form in forms if form in text for span in _iter_spans(text, form)]
        if self.texts:
            found += self._iter_remains(text)
        spans: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if spans and start < spans[-1][1]:
                start, previous_end = spans.pop()
                end = max(end, previous_end)
            spans.append((start, end))
        return spans

    def _iter_remains(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of a text that are the remains of a secret.

        The remains are the beginning of a secret before an ellipsis, or its end after one. Messages
        of pydantic contain such shortened values, for example.
        """
        if not has_cut_mark(text):
            return
        heads: list[tuple[str, bool]] = []
        tails: list[tuple[str, bool]] = []
        for value in self.values:
            is_limited = not has_cut_mark(value)  # its remains contain no other mark
            if value[:MIN_SECRET_CHARS] in text:
                heads.append((value, is_limited))
            if value[-MIN_SECRET_CHARS:] in text:
                tails.append((value, is_limited))
        if not heads and not tails:
            return
        marks = _find_cut_marks(text)
        checked_count = _MAX_CUT_CHECKS // (len(heads) + len(tails))
        limits = [0, *[end for _, end in marks]], [*[start for start, _ in marks[1:]], len(text)]
        for (start, end), after, before in zip(marks[:checked_count], *limits, strict=False):
            for value, is_limited in heads:
                yield from _find_head(text, value, after if is_limited else 0, start)
            for value, is_limited in tails:
                yield from _find_tail(text, value, end, before if is_limited else len(text))
        reach = max([len(value) for value in self.values])
        for start, end in marks[checked_count:]:  # too many to check: all text near them is hidden
            yield max(0, start - reach), end + reach


_MAX_CUT_CHECKS = 100_000
"""Number of ellipses in a text that are checked, multiplied by the number of values."""
_MAX_CUT_STARTS = 100
"""Number of places near an ellipsis where the remains of one value may begin or end."""


def _find_cut_marks(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the ellipses in a text. Several in a row are one range."""
    import re

    return [match.span() for match in re.finditer(r"(?:…|\.{3,}|\\u2026)+", text)]


def _find_head(text: str, value: str, first: int, mark: int) -> Iterator[tuple[int, int]]:
    """Yield the range before a mark that is the beginning of a value.

    If the value may begin at too many places, all text from the first of them counts.
    """
    head = value[:MIN_SECRET_CHARS]
    first_start = start = text.find(head, max(first, mark - len(value)), mark)
    for _ in range(_MAX_CUT_STARTS):
        if start < 0:
            return
        if value.startswith(text[start:mark]):
            yield start, mark
            return
        start = text.find(head, start + 1, mark)
    if start >= 0:
        yield first_start, mark


def _find_tail(text: str, value: str, mark_end: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the range after a mark that is the end of a value, as `_find_head` does."""
    tail = value[-MIN_SECRET_CHARS:]
    last = min(last, mark_end + len(value))
    last_start = start = text.rfind(tail, mark_end, last)
    for _ in range(_MAX_CUT_STARTS):
        if start < 0:
            return
        if value.endswith(text[mark_end : start + len(tail)]):
            yield mark_end, start + len(tail)
            return
        start = text.rfind(tail, mark_end, start + len(tail) - 1)
    if start >= 0:
        yield mark_end, last_start + len(tail)


def _iter_spans(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a text that a form covers. A form may overlap itself."""
    size = len(form)
    at = text.find(form)
    while at >= 0:
        start, end = at, at + size
        following = text.find(form, at + 1, end + size - 1)
        while following >= 0:
            step = form[at - following :]
            end = following + size
            while text.startswith(step, end):  # the form follows at the same distance
                end += len(step)
            at = end - size
            following = text.find(form, at + 1, end + size - 1)
        yield start, end
        at = text.find(form, end)


def has_cut_mark(text: str) -> bool:
    """True if a text, or the text that some JSON contains, may have been cut."""
    return "..." in text or "…" in text or "\\u2026" in text


def _are_too_many(secrets: list[Any]) -> bool:
    """True if the secrets have more than MAX_ENCODED_SECRETS values."""
    if len(secrets) > MAX_ENCODED_SECRETS:
        return True
    count = 0
    for secret in secrets:
        for _ in _iter_texts(secret.reveal()):
            count += 1
            if count > MAX_ENCODED_SECRETS:
                return True
    return False


def _read_forms(secret: Any, has_encodings: bool) -> SecretData:
    """Return the forms of one secret, its values and its numbers. The secret keeps all forms."""
    texts: dict[str, None] = {}
    values: dict[str, None] = {}
    numbers: set[Any] = set()
    for value in _iter_texts(secret.reveal()):
        if len(value) < MIN_SECRET_CHARS or value in values:
            continue
        values[value] = None
        numbers.update(_iter_numbers(value))
        texts.update(dict.fromkeys(_iter_forms(value) if has_encodings else (value,)))
        if has_encodings and not (value.isascii() and value.isprintable()):
            values.update(dict.fromkeys(_json_and_python(value)))
    if has_encodings:
        secret.forms = texts, values, numbers
    return texts, values, numbers


NO_FORMS = SecretForms()


def _iter_texts(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in the value of a secret, as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (bytes, bytearray)):
        yield bytes(value).decode("utf-8", "surrogateescape")
    elif is_object(value) or is_list(value) or is_set(value):
        for item in value.values() if is_object(value) else value:
            yield from _iter_texts(item)
    elif value is not None and not isinstance(value, bool):
        step = to_jsonable(value, [])
        yield from _iter_texts(str(step) if isinstance(step, (int, float)) else step)


def _iter_forms(text: str) -> Iterator[str]:
    yield text
    others: set[str] = {text.strip(), *_line_forms(text)}
    if len(text) > MAX_ENCODED_CHARS:
        others.update(_json_and_python(text))
    else:
        for spelling in _line_end_spellings(text):
            others.update(_escaped_forms(spelling), _base64_forms(spelling))
        others.update(_plain_spellings(text), _base64_lines(text))
    for form in others - {text}:
        if len(form) >= MIN_ENCODED_CHARS:
            yield form
    for form in _number_forms(text):
        if len(form) >= MIN_SECRET_CHARS:
            yield form


def _plain_spellings(text: str) -> Iterator[str]:
    """Yield the text as programs print it: stripped, in another case, on one line, sanitized."""
    stripped = text.strip()
    yield stripped
    yield stripped.upper()
    yield stripped.lower()
    words = stripped.split()
    if len(words) > 1:
        yield " ".join(words)
        yield "".join(words)
    if not stripped.isprintable():
        yield "".join([char for char in stripped if char.isprintable() or char in "\t\n\r"])
    yield text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _line_end_spellings(text: str) -> list[str]:
    """Return the text, and the text with other line ends and without the last one."""
    lines = text.splitlines()
    if len(lines) < 2:
        return [text]
    return list(dict.fromkeys([text, *[end.join(lines) for end in ("\n", "\r\n", "\r")]]))


def _line_forms(text: str) -> Iterator[str]:
    """Yield each line of a text of several lines, without indentation.

    The first and last line of a PEM file are the same in every file, so they are left out.
    """
    lines = text.splitlines() if "\n" in text or "\r" in text else []
    for line in lines[:MAX_SECRET_LINES]:
        line = line.strip()
        if len(line) >= MIN_ENCODED_CHARS and not line.startswith(("-----BEGIN", "-----END")):
            yield line
            yield from _json_and_python(line)


def _to_json(text: str) -> tuple[str, str]:
    """Return a text in JSON without its quotes, in ASCII and as readable text."""
    from json import dumps

    return dumps(text)[1:-1], dumps(text, ensure_ascii=False)[1:-1]


def _json_and_python(text: str) -> Iterator[str]:
    for escaped in _to_json(text):
        yield escaped
        yield escaped.replace("/", "\\/")
        yield from _to_json(escaped)  # JSON as text in JSON
    yield repr(text)[1:-1]
    yield ascii(text)[1:-1]


def _escaped_forms(text: str) -> Iterator[str]:
    """Yield the encodings of a text in JSON, Python, shell, HTML, URLs and hexadecimal digits."""
    from urllib.parse import quote, quote_plus

    yield from _json_and_python(text)
    if "'" in text:
        yield text.replace("'", "'\"'\"'")  # shlex.quote
        yield text.replace("'", "'\\''")
        yield text.replace("'", "''")
    yield text.replace('"', '""')
    html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield html
    yield html.replace('"', "&quot;").replace("'", "&#x27;")
    yield html.replace('"', "&#34;").replace("'", "&#39;")
    data = text.encode("utf-8", "surrogateescape")
    yield repr(data)[2:-1]
    for url in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield url
        head, *rest = url.split("%")
        yield "%".join([head, *[part[:2].lower() + part[2:] for part in rest]])
    yield data.hex()
    yield data.hex().upper()


def _base64_forms(text: str) -> Iterator[str]:
    """Yield the base64 of a text as part of a longer text, such as `secret` in `user:secret`.

    Base64 encodes groups of three bytes, so the result depends on the offset in such a group.
    """
    data = text.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = _to_base64(bytes(before) + data)
        first = (before * 8 + 5) // 6  # the characters that depend on the secret only
        last = (before + len(data)) * 8 // 6
        yield whole[first:last]
        yield whole[first:last].replace("+", "-").replace("/", "_")


def _to_base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()


def _base64_lines(text: str) -> Iterator[str]:
    """Yield the lines of the base64 of a long text, in the line lengths of PEM and MIME."""
    whole = _to_base64(text.encode("utf-8", "surrogateescape"))
    for width in (64, 76):
        if len(whole) > width:
            yield from [whole[i : i + width] for i in range(0, len(whole), width)]


# ------------------------------------------------------------------ numbers

_MAX_NUMBER_CHARS = 28
"""Longer numbers are searched for as they are. Decimal arithmetic would round them."""


_MAX_EXACT_DIGITS = 15
"""An integer of so many digits is equal to its float."""


def _to_decimal(text: str) -> Decimal:
    from decimal import Decimal

    return Decimal(text)


def _plain_number(text: str) -> str:
    """Return a number without exponent and trailing zeros; "" if it is too short to search for."""
    if not (len(text) <= _MAX_NUMBER_CHARS and text.isascii()):
        return ""
    if text.lstrip()[:1] not in "+-.0123456789":
        return ""
    try:
        number = float(text)
    except ValueError:
        return ""
    if number - number != 0:  # infinite or NaN
        return ""
    plain = f"{_to_decimal(text).normalize():f}"
    return plain if len(plain.lstrip("-")) >= MIN_SECRET_CHARS else ""


def _iter_numbers(text: str) -> Iterator[Any]:
    """Yield the numbers that a text stands for. Equal numbers of other types are equal to them."""
    if len(text) <= _MAX_EXACT_DIGITS and text.isascii() and text.isdigit():
        number = int(text)
        if number >= 10 ** (MIN_SECRET_CHARS - 1):
            yield number
            yield -number
    elif _plain_number(text):
        for number in (_to_decimal(text), float(text)):
            yield number
            yield -number
    elif _MAX_NUMBER_CHARS < len(text) < 4300 and text.isascii() and text.isdigit():
        yield int(text)


def _number_forms(text: str) -> Iterator[str]:
    """Yield other spellings of a number: with separators, an exponent, or in another base."""
    plain = _plain_number(text)
    if not plain:
        return
    yield plain
    yield repr(float(text))
    digits, _, fraction = plain.lstrip("-").partition(".")
    ending = f".{fraction}" if fraction else ""
    for separator in (",", "_", " ", "'", "\u202f", "\xa0"):
        yield f"{int(digits):,}".replace(",", separator) + ending
    yield from _exponent_forms(plain)
    if not fraction:
        number = int(digits)
        yield from (f"0x{number:x}", f"0X{number:X}", f"0x{number:X}", f"0o{number:o}")
        for form in (f"{number:x}", f"{number:X}", f"{number:o}", f"{number:b}"):
            if len(form) >= MIN_ENCODED_CHARS:
                yield form


def _exponent_forms(plain: str) -> Iterator[str]:
    number = _to_decimal(plain).normalize()
    figures = "".join(map(str, number.as_tuple().digits))
    mantissa = figures[0] + (f".{figures[1:]}" if figures[1:] else "")
    exponent = number.adjusted()
    padded = f"{float(plain):e}"
    if _to_decimal(padded) == number:
        yield padded
    for letter in "eE":
        for sign in ("-",) if exponent < 0 else ("", "+"):
            yield f"{mantissa}{letter}{sign}{abs(exponent)}"
            yield f"{mantissa}{letter}{sign}{abs(exponent):02d}"


# ------------------------------------------------------------------ names


_SECRET_NAMES = (
    *("password", "passwd", "passphrase", "secret", "token", "credential"),
    *("apikey", "privatekey", "authorization"),
)


def is_secret_name(name: str) -> bool:
    """True if a name such as `api_token` says that its value is a secret."""
    normalized = name.lower().replace("_", "").replace("-", "")
    return any([part in normalized for part in _SECRET_NAMES])
