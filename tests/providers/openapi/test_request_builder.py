"""Requests contain the arguments where the document says."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
from tests.providers.openapi.api_server import parameter
from tests.providers.openapi.test_operations import body, single, swagger

from tooli.errors import InputError
from tooli.providers.openapi.request_builder import build_request
from tooli.providers.openapi.security_schemes import Credential

BASE = "https://api.test/v1/"


def build(arguments: dict[str, Any], path: str = "/", method: str = "get", **more: Any) -> Any:
    return build_request(single(path, method, **more), BASE, arguments)


def test_places_of_arguments() -> None:
    declared = [
        parameter("id", "path"),
        parameter("q"),
        parameter("raw", allowReserved=True),
        parameter("X-Trace", "header"),
        parameter("c", "cookie"),
        parameter("d", "cookie"),
        {"name": "f", "in": "query", "content": {"application/json": {"schema": {}}}},
    ]
    arguments = {
        "id": "a/b",
        "q": "x y",
        "raw": "a/b",
        "X-Trace": "t",
        "c": "1",
        "d": "2",
        "f": {"a": [1]},
    }
    request = build(arguments, "/u/{id}/p q", parameters=declared)
    assert request.method == "GET"
    assert request.url == (
        "https://api.test/v1/u/a%2Fb/p%20q?q=x%20y&raw=a/b&f=%7B%22a%22%3A%20%5B1%5D%7D"
    )
    assert request.headers["X-Trace"] == "t"
    assert request.headers["Cookie"] == "c=1; d=2"
    assert request.headers["Accept"] == "application/json, */*;q=0.5"
    assert request.body is None


def test_a_fixed_query_and_a_fragment_in_the_path() -> None:
    request = build({"q": "1"}, "/run?action=list&v=2#note", parameters=[parameter("q")])
    assert request.url == "https://api.test/v1/run?action=list&v=2&q=1"


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_path_parameter_cannot_change_the_path(value: str) -> None:
    with pytest.raises(InputError) as caught:
        build({"id": value}, "/u/{id}", parameters=[parameter("id", "path")])
    assert caught.value.field == "id"


@pytest.mark.parametrize("value", ["../admin", "a/../../b", "..\\admin", "./x", "a/.."])
def test_dot_segments_between_encoded_slashes(value: str) -> None:
    """Some servers decode `..%2Fadmin` before they choose what to serve."""
    with pytest.raises(InputError, match="must not be"):
        build({"id": value}, "/u/{id}", parameters=[parameter("id", "path")])


@pytest.mark.parametrize("value", ["a/b", "..a", "a..b", "...", "%2E%2E/x"])
def test_other_values_with_dots_and_slashes(value: str) -> None:
    url = build({"id": value}, "/u/{id}", parameters=[parameter("id", "path")]).url
    assert unquote(url.rpartition("/")[2]) == value


def test_several_parameters_cannot_make_a_dot_segment() -> None:
    declared = [parameter("a", "path"), parameter("b", "path", style="label")]
    with pytest.raises(InputError, match="must not be"):
        build({"a": ".", "b": ""}, "/u/{a}{b}", parameters=[declared[0], declared[1]])


def test_credentials_are_added() -> None:
    credentials = [
        Credential("header", "X-Key", "k"),
        Credential("query", "key", "a&b"),
        Credential("cookie", "sid", "c;d"),
    ]
    made = build_request(
        single(parameters=[parameter("q")]), BASE, {"q": "1"}, credentials, {"X-A": "b"}
    )
    assert made.url.endswith("?q=1&key=a%26b")
    assert made.headers["X-Key"] == "k"
    assert made.headers["X-A"] == "b"
    assert made.headers["Cookie"] == "sid=c%3Bd"
    assert build_request(single(), BASE, {}, credentials).url.endswith("/?key=a%26b")
    paged = build_request(single(parameters=[parameter("q")]), BASE, {"q": "1"}, query="page=2")
    assert paged.url.endswith("/v1/?page=2")


def test_accept_names_what_the_document_has() -> None:
    answers = {"200": {"content": {"application/vnd.a+json": {}, "text/csv": {}}}}
    assert build({}, responses=answers).headers["Accept"].startswith("application/vnd.a+json, ")
    assert build({}, responses={"200": {"content": {"image/png": {}}}}).headers["Accept"] == (
        "image/png, application/json;q=0.9, */*;q=0.5"
    )


# ------------------------------------------------------------------ bodies

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array"}}}


def send(media_type: str, arguments: dict[str, Any], **media: Any) -> tuple[str, bytes]:
    schema = media.pop("schema", PERSON)
    declared = {"required": True, "content": {media_type: {"schema": schema, **media}}}
    request = build(arguments, method="post", requestBody=declared)
    return request.headers.get("Content-Type"), request.body


def test_json_bodies() -> None:
    assert send("application/json", {"name": "é"}) == ("application/json", '{"name":"é"}'.encode())
    assert send("application/json", {}) == ("application/json", b"{}")
    assert send("application/x+json", {"body": None}, schema={}) == ("application/x+json", b"null")
    nothing = build({}, method="post", **body(PERSON))
    assert (nothing.body, "Content-Type" in nothing.headers) == (None, False)
    nothing = build({}, method="post", **body({"type": "array"}))
    assert nothing.body is None


FORM = "application/x-www-form-urlencoded"
FIELDS = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}}}


def test_forms() -> None:
    values = {"a": "x y&z", "b": [1, 2], "c": {"k": {"l": 1}}, "d": [{"e": 1}]}
    assert send(FORM, values, schema=FIELDS) == (
        FORM,
        b"a=x+y%26z&b=1&b=2&c%5Bk%5D%5Bl%5D=1&d%5B0%5D%5Be%5D=1",
    )
    encoding = {"b": {"style": "form", "explode": False}, "c": {"style": "form"}, "a": 7}
    found = send(FORM, {"b": [1, 2], "c": {"k": 1}}, schema=FIELDS, encoding=encoding)
    assert found[1] == b"b=1,2&k=1"
    assert send(FORM, {"body": "raw=1"}, schema={"type": "string"}) == (FORM, b"raw=1")


def upload(data: bytes, source: str) -> Any:
    return SimpleNamespace(read_bytes=lambda: data, source=source)


def parts(content_type: str, data: bytes) -> list[tuple[bytes, bytes]]:
    found = re.fullmatch(r"multipart/form-data; boundary=(tooli-[0-9a-f]+)", content_type)
    assert found is not None
    boundary = b"--" + found[1].encode()
    assert data.endswith(boundary + b"--\r\n")
    pieces = data.removesuffix(boundary + b"--\r\n").split(boundary + b"\r\n")[1:]
    return [tuple(piece.removesuffix(b"\r\n").split(b"\r\n\r\n", 1)) for piece in pieces]  # type: ignore[misc]


def test_multipart() -> None:
    values = {"a": 'te"xt\r\n', "b": ["1", 2], "c": {"k": 1}, "d": upload(b"\x89P", "/tmp/x y.png")}
    found = parts(*send("multipart/form-data", values, schema=FIELDS))
    named = b'Content-Disposition: form-data; name="%s"'
    assert found == [
        (named % b"a", b'te"xt\r\n'),
        (named % b"b", b"1"),
        (named % b"b", b"2"),
        (named % b"c" + b"\r\nContent-Type: application/json", b'{"k": 1}'),
        (named % b"d" + b'; filename="x y.png"\r\nContent-Type: image/png', b"\x89P"),
    ]


def test_the_encoding_of_parts() -> None:
    encoding = {
        "a": {"contentType": "image/*, text/plain"},
        "b": {"explode": False},
        "c": {"contentType": "application/xml\r\nX: y"},
        "d": {"contentType": "application/json"},
    }
    values = {"a": upload(b"1", "-"), "b": [1, 2], "c": {"k": 1}, "d": ["x"]}
    found = parts(*send("multipart/form-data", values, schema=FIELDS, encoding=encoding))
    assert [head.partition(b"Content-Type: ")[2] for head, _ in found] == [
        *(b"application/octet-stream", b"text/plain", b"application/xmlX: y", b"application/json"),
    ]
    assert b'filename="upload"' in found[0][0]
    assert [content for _, content in found] == [b"1", b"1,2", b'{"k": 1}', b'["x"]']


def test_binary_and_text_bodies() -> None:
    text = {"type": "string"}
    assert send("application/zip", {"body": upload(b"PK", "a.zip")}, schema=text) == (
        "application/zip",
        b"PK",
    )
    assert send("application/zip", {"body": b"PK"}, schema=text)[1] == b"PK"
    assert send("text/csv", {"body": "a,b"}, schema=text) == ("text/csv", b"a,b")
    assert send("application/xml", {"body": {"a": 1}}, schema={})[1] == b'{"a":1}'


def test_swagger_collection_formats_in_forms() -> None:
    fields = [
        {"name": "a", "in": "formData", "type": "array", "collectionFormat": "csv"},
        {"name": "b", "in": "formData", "type": "array", "collectionFormat": "multi"},
    ]
    request = build_request(swagger("post", parameters=fields), BASE, {"a": [1, 2], "b": [3, 4]})
    assert request.body == b"a=1,2&b=3&b=4"
