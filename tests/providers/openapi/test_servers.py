"""The URL of a server: variables, relative URLs, Swagger hosts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.errors import DefinitionError
from tooli.providers.openapi.document import Document
from tooli.providers.openapi.servers import ServerFinder


def finder(document: dict[str, Any], **options: Any) -> ServerFinder:
    version = "2.0" if "swagger" in document else "3.0"
    return ServerFinder(Document(json.dumps(document).encode(), "api.json"), version, **options)


REGION = {
    "url": "https://{region}.test/{base}",
    "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}, "base": {"default": "v1"}},
}


@pytest.mark.parametrize(
    ("document", "options", "url"),
    [
        (
            {"servers": [{"url": "https://a.test/v1?x=1"}, {"url": "https://b.test"}]},
            {},
            "https://a.test/v1",
        ),
        ({"servers": [REGION]}, {}, "https://eu.test/v1"),
        (
            {"servers": [REGION]},
            {"variables": {"region": "us", "base": "v2"}},
            "https://us.test/v2",
        ),
        (
            {"servers": [{"url": "/v1"}]},
            {"url": "https://a.test/docs/api.json"},
            "https://a.test/v1",
        ),
        (
            {"servers": [{"url": "v1"}]},
            {"url": "https://a.test/docs/api.json"},
            "https://a.test/docs/v1",
        ),
        ({}, {"url": "https://a.test/docs/api.json"}, "https://a.test/"),
        ({"servers": [7]}, {"url": "https://a.test/docs/api.json"}, "https://a.test/"),
        (
            {"servers": [{"url": "https://a.test"}]},
            {"base_url": "http://localhost:8/x"},
            "http://localhost:8/x",
        ),
        ({}, {"base_url": "https://{t}.test", "variables": {"t": "me"}}, "https://me.test"),
        ({"swagger": "2.0", "host": "a.test", "basePath": "/v1"}, {}, "https://a.test/v1"),
        ({"swagger": "2.0", "host": "a.test", "schemes": ["http"]}, {}, "http://a.test"),
        ({"swagger": "2.0", "host": "a.test", "schemes": ["http", "https"]}, {}, "https://a.test"),
        ({"swagger": "2.0", "basePath": "/v1"}, {"url": "http://a.test/x"}, "http://a.test/v1"),
        ({"swagger": "2.0"}, {"url": "http://a.test/x"}, "http://a.test/"),
        ({"swagger": "2.0", "host": "a.test"}, {"url": "http://b.test/x"}, "http://a.test"),
    ],
)
def test_servers_of_documents(document: dict[str, Any], options: dict[str, Any], url: str) -> None:
    assert finder(document, **options).find() == url


def test_operations_have_servers_of_their_own() -> None:
    found = finder({"servers": [{"url": "https://a.test"}]})
    assert found.find([{"url": "https://b.test"}]) == "https://b.test"
    fixed = finder({}, base_url="https://c.test")
    assert fixed.find([{"url": "https://b.test"}]) == "https://c.test"


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ({}, {}, "pass base_url="),
        ({"servers": [{"url": "/v1"}]}, {}, "pass base_url="),
        ({"servers": [{"url": "ftp://a.test"}]}, {}, "pass base_url="),
        ({"servers": [{"url": "https://u:p@a.test"}]}, {}, "pass base_url="),
        ({"servers": [{"url": "https://a.test:99999"}]}, {}, "pass base_url="),
        ({"servers": [{"url": "https://{x}.test"}]}, {}, "server_variables="),
        (
            {"servers": [{"url": "https://{x}.test", "variables": {"x": {}}}]},
            {},
            "server_variables=",
        ),
        ({"servers": [REGION]}, {"variables": {"region": "moon"}}, "one of eu, us"),
        (
            {"servers": [{"url": "https://{x}.test"}]},
            {"variables": {"x": "evil.com/"}},
            "not allowed",
        ),
        ({"servers": [{"url": "https://{x}"}]}, {"variables": {"x": "a@b"}}, "not allowed"),
    ],
)
def test_other_servers_are_errors(
    document: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        finder(document, **options).find()


def test_a_document_from_the_network_cannot_name_private_addresses() -> None:
    assert finder({}).allows_private("http://127.0.0.1/")
    assert finder({}, url="https://a.test/x", base_url="http://10.0.0.1").allows_private(
        "http://10.0.0.1"
    )
    remote = finder({}, url="http://10.0.0.1/x", is_private=True)
    assert remote.allows_private("http://10.0.0.1:8080/v1")
    assert not remote.allows_private("http://127.0.0.1/")
    public = finder({}, url="http://api.test/x")
    assert not public.allows_private("http://api.test/")
