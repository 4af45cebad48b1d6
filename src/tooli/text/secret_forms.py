"""List the encodings in which a secret may appear in output: JSON, URL, hex, base64."""

from __future__ import annotations

from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MIN_SECRET_CHARS = 4
"""Shorter secrets are not searched for, because they occur in ordinary text."""
MIN_ENCODED_CHARS = 8
"""Shorter encodings of a secret are not searched for."""


def list_secret_forms(secrets: Iterable[Any]) -> list[str]:
    """Return all forms of the loaded secrets, the longest first."""
    found: dict[str, None] = {}
    for secret in secrets:
        if secret.is_loaded:
            for text in _iter_texts(secret.reveal()):
                found.update(dict.fromkeys(_iter_forms(text)))
    return sorted(found, key=len, reverse=True)


def _iter_texts(value: Any) -> Iterator[str]:
    """Yield the texts in the value of a secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (bytes, bytearray)):
        yield bytes(value).decode("utf-8", "surrogateescape")
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, dict):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _iter_texts(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _iter_texts(item)
    else:
        step = to_jsonable(value, [])
        if isinstance(step, (str, dict, list)):
            yield from _iter_texts(step)
        else:
            yield str(step)


def _iter_forms(text: str) -> Iterator[str]:
    if len(text) < MIN_SECRET_CHARS:
        return
    yield text
    for form in {*_escaped_forms(text), *_base64_forms(text)} - {text}:
        if len(form) >= MIN_ENCODED_CHARS:
            yield form


def _escaped_forms(text: str) -> Iterator[str]:
    """Yield the text as JSON, Python, URLs and HTML forms encode it."""
    from json import dumps
    from urllib.parse import quote, quote_plus

    yield text.strip()
    yield dumps(text)[1:-1]
    yield dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    data = text.encode("utf-8", "surrogateescape")
    for url in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield url
        head, *rest = url.split("%")
        yield "%".join([head, *[part[:2].lower() + part[2:] for part in rest]])
    yield data.hex()
    yield data.hex().upper()


def _base64_forms(text: str) -> Iterator[str]:
    """Yield the base64 of a text at every offset, as in the encoding of `user:secret`."""
    from base64 import b64encode

    data = text.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = b64encode(bytes(before) + data).decode()
        first = (before * 8 + 5) // 6  # the characters that depend on the secret only
        last = (before + len(data)) * 8 // 6
        yield whole[first:last]
        yield whole[first:last].replace("+", "-").replace("/", "_")
