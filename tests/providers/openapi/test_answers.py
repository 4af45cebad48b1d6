"""Answers become values, text, content or files."""

from __future__ import annotations

from email.message import Message
from typing import TYPE_CHECKING, Any

import pytest

from tooli import Audio, Image
from tooli.core.result_types import Embedded
from tooli.errors import DependencyError
from tooli.inputs.output import Output
from tooli.providers.openapi import answers as module
from tooli.providers.openapi.answers import find_mismatch, read_answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FakeAnswer:
    """An answer without a connection."""

    url = "https://api.test/file?key=secret"
    reason = "OK"

    def __init__(
        self, body: bytes, content_type: str = "", status: int = 200, **headers: str
    ) -> None:
        self._body = body
        self.status = status
        self.headers = Message()
        for name, value in headers.items():
            self.headers[name.replace("_", "-")] = value
        if content_type:
            self.headers["Content-Type"] = content_type

    @property
    def media_type(self) -> str:
        return self.headers.get_content_type() if "content-type" in self.headers else ""

    def read(self, max_bytes: int) -> bytes:
        if len(self._body) > max_bytes:
            raise DependencyError("The answer is larger than the limit.")
        return self._body

    def chunks(self) -> Iterator[bytes]:
        yield self._body[:1]
        yield self._body[1:]


def read(*arguments: Any, **headers: str) -> Any:
    answer: Any = FakeAnswer(*arguments, **headers)
    return read_answer(answer)


@pytest.mark.parametrize(
    ("body", "content_type", "status", "expected"),
    [
        (b'{"a": "\xc3\xa9"}', "application/json", 200, {"a": "é"}),
        (b"[1]", "application/vnd.x+json; charset=utf-8", 201, [1]),
        (b"null", "application/json", 200, None),
        (b"", "application/json", 200, None),
        (b"ignored", "text/plain", 204, None),
        (b"caf\xe9", "text/plain; charset=latin-1", 200, "café"),
        (b"caf\xc3\xa9", "text/html; charset=nonsense", 200, "café"),
        (b"caf\xc3\xa9", "text/plain; charset=idna", 200, "café"),
        (b"<a/>", "application/xml", 200, "<a/>"),
        (b'{"a":1}\n\n{"a":2}\n', "application/x-ndjson", 200, [{"a": 1}, {"a": 2}]),
        (b"text", "", 200, "text"),
        (b"", "image/png", 200, None),
    ],
)
def test_values(body: bytes, content_type: str, status: int, expected: Any) -> None:
    assert read(body, content_type, status) == expected


def test_content() -> None:
    assert read(b"\x89PNG", "image/png") == Image(b"\x89PNG", "image/png")
    assert read(b"RIFF", "audio/wav") == Audio(b"RIFF", "audio/wav")
    found = read(b"PK", "application/zip")
    assert isinstance(found, Embedded)
    assert (found.content, found.mime_type) == (b"PK", "application/zip")
    assert "secret" not in found.uri


def test_invalid_json_is_an_error() -> None:
    with pytest.raises(DependencyError, match="invalid JSON") as caught:
        read(b"{\x1b[31m", "application/json")
    assert "\x1b" not in str(caught.value.details)
    with pytest.raises(DependencyError, match="invalid JSON"):
        read(b"[" * 100_000, "application/json")


def test_large_content_needs_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MAX_INLINE_BYTES", 3)
    with pytest.raises(DependencyError) as caught:
        read(b"data", "application/zip")
    assert caught.value.suggestion is not None
    assert "output_file" in caught.value.suggestion.fix
    target = Output(str(tmp_path / "a.zip"))
    answer: Any = FakeAnswer(b"data", "application/zip")
    assert read_answer(answer, target) == {
        "file": target.target,
        "bytes": 4,
        "media_type": "application/zip",
    }
    target.verify()
    target.commit()
    assert (tmp_path / "a.zip").read_bytes() == b"data"
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 3)
    with pytest.raises(DependencyError, match="larger than the limit of 3 bytes"):
        read_answer(answer, Output(str(tmp_path / "b.zip")))
    assert "media_type" not in read_answer(FakeAnswer(b"x"), Output(str(tmp_path / "c")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (
            {"a": [{"b": 1}]},
            {
                "type": "object",
                "properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}},
            },
            "a[0].b must be string",
        ),
        (None, {"type": "object"}, "the result must be object"),
        (None, {"type": ["object", "null"]}, None),
        (1.5, {"type": ["integer", "null"]}, "the result must be integer or null"),
        (2.0, {"type": "integer"}, None),
        (2, {"type": "number"}, None),
        (True, {"type": "integer"}, "the result must be integer"),
        ([1, 2], {"type": "array", "items": {"type": "integer"}}, None),
        ({"a": 1}, {"properties": {"b": {"type": "string"}}}, None),
        ("x", {}, None),
    ],
)
def test_mismatches(value: Any, schema: dict[str, Any], expected: str | None) -> None:
    assert find_mismatch(value, schema) == expected
