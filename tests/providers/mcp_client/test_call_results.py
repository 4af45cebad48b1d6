"""Results and errors of MCP servers, as values and errors of tooli."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.core.result_types import Content
from tooli.errors import NotFoundError
from tooli.providers.mcp_client.call_results import (
    read_error,
    read_links,
    read_result,
    rpc_error,
)
from tooli.providers.mcp_client.server_session import RpcFailure
from tooli.text.jsonable import to_jsonable

TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def read(result: dict[str, Any], has_schema: bool = False) -> tuple[Any, list[str]]:
    warnings: list[str] = []
    return to_jsonable(read_result(result, has_schema, warnings.append), []), warnings


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ([], None),
        (None, None),
        ("text", None),
        ([TEXT], "a"),
        ([TEXT, TEXT], [TEXT, TEXT]),
        ([IMAGE], IMAGE),
        ([TEXT, IMAGE], [TEXT, IMAGE]),
        ([{"type": "text", "text": 7}], {"type": "text", "text": 7}),
        ([{"type": "image", "data": "AA=="}], {"type": "image", "data": "AA=="}),
        (
            [{"type": "resource", "resource": {"uri": "a"}}],
            {"type": "resource", "resource": {"uri": "a"}},
        ),
        ([{"type": ["x"]}, 5], [{"type": ["x"]}, 5]),
    ],
)
def test_content(content: Any, value: Any) -> None:
    assert read({"content": content}) == (value, [])


@pytest.mark.parametrize(
    "block",
    [
        IMAGE,
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "a", "text": "b"}},
        {"type": "resource", "resource": {"uri": "a", "blob": "AA=="}},
    ],
)
def test_valid_blocks_stay_content(block: dict[str, Any]) -> None:
    value = read_result({"content": [block]}, False, print)
    assert isinstance(value, Content) and value.to_content_block() == block


def test_structured_content() -> None:
    assert read({"structuredContent": {"a": 1}, "content": [TEXT]}, True) == ({"a": 1}, [])
    assert read({"structuredContent": [1], "content": []}) == ([1], [])
    assert read({"structuredContent": None}) == (None, [])


def test_structured_content_and_images() -> None:
    same = {"type": "text", "text": '{"a": 1}'}
    result = {"structuredContent": {"a": 1}, "content": [same, TEXT, IMAGE]}
    assert read(result) == ([{"a": 1}, TEXT, IMAGE], [])
    value, warnings = read(result, True)
    assert value == {"a": 1} and "1 images" in warnings[0]


def test_missing_structured_content() -> None:
    value, warnings = read({"content": [TEXT]}, True)
    assert value == "a" and "no structured content" in warnings[0]


def test_text_of_an_error() -> None:
    error = read_error(
        {"content": [TEXT, IMAGE, {"type": "text", "text": "b\x1b[0m"}]}, "The server"
    )
    assert (error.code, error.message) == ("E4000", "a\nb")
    error = read_error({"structuredContent": {"why": 1}}, "The server")
    assert "The server reported a failure" in error.message
    assert error.details == {"result": {"why": 1}}


def test_error_of_another_tooli_app() -> None:
    fields = {"code": "E3010", "category": "state", "message": "no", "field": "id"}
    envelope = {"ok": False, "error": fields}
    error = read_error({"_meta": {"io.tooli/envelope": envelope}}, "The server")
    assert isinstance(error, NotFoundError) and error.field == "id" and error.exit_code == 10
    failure = RpcFailure(-32603, "x", {"io.tooli/envelope": envelope})
    assert isinstance(rpc_error(failure, "The server", "t"), NotFoundError)


@pytest.mark.parametrize(
    ("code", "expected"), [(-32602, "E1000"), (-32601, "E4040"), (-1, "E4040")]
)
def test_json_rpc_errors(code: int, expected: str) -> None:
    error = rpc_error(RpcFailure(code, "bad\x1b[31m"), "The server", "add")
    assert error.code == expected and error.details == {"rpc_code": code}
    assert error.message == "The server refused the call of add: bad"


def test_links_beside_structured_content_are_artifacts() -> None:
    link = {"type": "resource_link", "uri": "https://example.org/a", "name": "a"}
    broken = {"type": "resource_link", "uri": 5, "name": "b"}
    text = {"type": "text", "text": "{}"}
    result = {"content": [text, link, broken], "structuredContent": {"a": 1}}
    warnings: list[str] = []
    assert read_links(result) == [link]
    assert read_result({**result, "content": [text, link]}, True, warnings.append) == {"a": 1}
    assert warnings == []
    assert read_links({"content": [link]}) == []
    assert read_links({"structuredContent": {}}) == []
