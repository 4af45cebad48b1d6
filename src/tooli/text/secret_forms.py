"""Traces: the ways in which a secret may come to be written, so that none of them goes out."""

from __future__ import annotations

from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MIN_SECRET_CHARS = 4
"""A secret of fewer characters is part of too many words to be looked for."""
MIN_ENCODED_CHARS = 8
"""The same of what is not the secret itself, but an encoding of it."""


def list_secret_forms(secrets: Iterable[Any]) -> list[str]:
    """All forms of what entered as secrets, the longest first; what nobody read is none."""
    found: dict[str, None] = {}
    for secret in secrets:
        if secret.is_loaded:
            for text in _iter_texts(secret.reveal()):
                found.update(dict.fromkeys(_iter_forms(text)))
    return sorted(found, key=len, reverse=True)


def _iter_texts(value: Any) -> Iterator[str]:
    """The texts that a secret is made of."""
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
    """As JSON, Python, a URL and a form write it."""
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
    """Its base64, wherever in a longer text it stands: `user:secret` is encoded as one."""
    from base64 import b64encode

    data = text.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = b64encode(bytes(before) + data).decode()
        first = (before * 8 + 5) // 6  # the letters that are made of the secret's bits alone
        last = (before + len(data)) * 8 // 6
        yield whole[first:last]
        yield whole[first:last].replace("+", "-").replace("/", "_")
