"""Names of operations, and the selection of those that an app wants."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.openapi.api_server import openapi

from tooli.errors import DefinitionError
from tooli.providers.openapi import operation_index as module
from tooli.providers.openapi.document import Document
from tooli.providers.openapi.operation_index import (
    MAX_NAME_CHARS,
    check_version,
    read_index,
    select_entries,
    split_words,
)


def make(document: dict[str, Any]) -> Document:
    return Document(json.dumps(document).encode(), "api.json")


def keys(paths: dict[str, Any]) -> list[str]:
    return [entry.key for entry in read_index(make(openapi(paths)), {})]


@pytest.mark.parametrize(
    ("declared", "version"),
    [
        ({"swagger": "2.0"}, "2.0"),
        ({"swagger": 2.0}, "2.0"),
        ({"openapi": "3.0.3"}, "3.0"),
        ({"openapi": 3.1}, "3.1"),
        ({"openapi": "3.2.0"}, "3.1"),
    ],
)
def test_versions(declared: dict[str, Any], version: str) -> None:
    assert check_version(make(declared)) == version


@pytest.mark.parametrize("declared", [{}, {"openapi": "4.0"}, {"swagger": "1.2"}, {"openapi": []}])
def test_other_documents_are_errors(declared: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=r"api\.json .* (neither|supported)"):
        check_version(make(declared))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("listUserRepos", ["list", "user", "repos"]),
        ("getHTTPStatus", ["get", "http", "status"]),
        ("issues/create_for-repo", ["issues", "create", "for", "repo"]),
        ("v2GetOAuth2Token", ["v2", "get", "o", "auth2", "token"]),
        ("日本", []),
    ],
)
def test_words_of_names(name: str, words: list[str]) -> None:
    assert split_words(name) == words


def test_names_of_operations() -> None:
    paths = {
        "/users/{id}/repos": {"get": {}, "post": {"operationId": "createRepo"}},
        "/issues": {
            "get": {"operationId": "issues/list", "tags": ["issues", "other"]},
            "put": {"operationId": "issues", "tags": ["issues"]},
            "patch": {"operationId": 7, "tags": "issues"},
        },
        "/x": {"get": {"operationId": "issuesList", "tags": ["issues"]}, "summary": "no method"},
        "x-extension": {"get": {}},
    }
    assert keys(paths) == [
        "get-users-id-repos",
        "create-repo",
        "issues.list",
        "issues.issues",
        "patch-issues",
        "issues.list-2",
    ]


def test_long_names_stay_different() -> None:
    paths = {f"/{'long-' * 30}{i}": {"get": {"tags": ["A very long tag " * 5]}} for i in range(9)}
    paths |= {f"/{i}": {"get": {"operationId": "same" * 20}} for i in range(12)}
    found = keys(paths)
    assert len(set(found)) == 21
    assert max(map(len, found)) <= MAX_NAME_CHARS


def test_broken_paths_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: dict[str, str] = {}
    paths = {
        "/a": {"$ref": "#/nothing"},
        "/b": 7,
        "/c": {"get": {}, "post": 3},
        "/d": {"$ref": "#/x-d"},
    }
    document = make(openapi(paths, **{"x-d": {"get": {"operationId": "d"}}}))
    assert [entry.key for entry in read_index(document, problems)] == ["get-c", "d"]
    assert list(problems) == ["/a", "/b"]
    with pytest.raises(DefinitionError, match="must be an object"):
        read_index(make({"openapi": "3.0.0", "paths": []}), {})
    monkeypatch.setattr(module, "_MAX_OPERATIONS", 1)
    with pytest.raises(DefinitionError, match="more than 1 operations"):
        read_index(document, {})


def test_selection() -> None:
    paths = {
        "/a": {"get": {"operationId": "getA", "tags": ["one"]}, "delete": {"operationId": "dropA"}},
        "/b/{id}": {"get": {"operationId": "getB", "tags": ["two"]}},
    }
    entries = read_index(make(openapi(paths)), {})

    def select(only: list[str] | None = None, exclude: list[str] | None = None) -> list[str]:
        return [entry.operation_id for entry in select_entries(entries, only, exclude, problems)]

    problems: dict[str, str] = {}
    assert select() == ["getA", "dropA", "getB"]
    assert select(["getA"]) == select(["one"]) == select(["one.get-a"]) == ["getA"]
    assert select(["/a"]) == ["getA", "dropA"]
    assert select(["GET /b/{id}"]) == ["getB"]
    assert select(["get*"]) == ["getA", "getB"]
    assert select(["/a"], ["DELETE *"]) == ["getA"]
    assert select([]) == []
    assert not problems
    assert select(["getC"], ["nothing*"]) == []
    assert list(problems) == ["only='getC'", "exclude='nothing*'"]
    assert "getA" in problems["only='getC'"]
