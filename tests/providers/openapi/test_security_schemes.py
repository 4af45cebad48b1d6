"""Credentials come from variables and files, and follow the security schemes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.openapi.test_operations import single

from tooli import SecretInput
from tooli.core.call_secrets import call_secrets
from tooli.errors import AuthError, DefinitionError
from tooli.providers.openapi.document import Document
from tooli.providers.openapi.security_schemes import (
    Authenticator,
    Credential,
    check_source,
    read_source,
)

if TYPE_CHECKING:
    from pathlib import Path

SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "sid": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "head": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "user": {"type": "http", "scheme": "Basic"},
    "token": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "digest": {"type": "http", "scheme": "digest"},
    "odd": {"type": "apiKey", "in": "body"},
    "tls": {"type": "mutualTLS"},
}


def authenticator(auth: Any, folder: str = "/", schemes: Any = SCHEMES) -> Authenticator:
    document = {"components": {"securitySchemes": schemes}}
    return Authenticator(Document(json.dumps(document).encode(), "api.json"), "3.0", auth, folder)


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ken-value")
    monkeypatch.setenv("LOGIN", "ada:pass-word")
    monkeypatch.delenv("MISSING", raising=False)


@pytest.mark.parametrize(
    ("scheme", "source", "expected"),
    [
        ("key", "env:TOKEN", Credential("query", "api_key", "t0ken-value")),
        ("sid", "env:TOKEN", Credential("cookie", "sid", "t0ken-value")),
        ("head", "env:TOKEN", Credential("header", "X-Key", "t0ken-value")),
        ("user", "env:LOGIN", Credential("header", "Authorization", "Basic YWRhOnBhc3Mtd29yZA==")),
        ("token", "env:TOKEN", Credential("header", "Authorization", "Bearer t0ken-value")),
        ("oauth", "env:TOKEN", Credential("header", "Authorization", "Bearer t0ken-value")),
    ],
)
def test_schemes(scheme: str, source: str, expected: Credential) -> None:
    secured = single(security=[{scheme: []}])
    assert authenticator({scheme: source}).credentials(secured) == [expected]
    assert authenticator(source).credentials(secured) == [expected]


def test_swagger_schemes() -> None:
    document = {"securityDefinitions": {"login": {"type": "basic"}, "bad": 7}}
    opened = Document(json.dumps(document).encode(), "api.json")
    (found,) = Authenticator(opened, "2.0", "env:LOGIN", "/").credentials(
        single(security=[{"login": []}])
    )
    assert found.value.startswith("Basic ")


def names(auth: Any, security: Any) -> list[str]:
    return [c.name for c in authenticator(auth).credentials(single(security=security))]


def test_alternatives() -> None:
    both = [{"key": [], "head": []}, {"token": ["read"]}]
    assert [
        c.name
        for c in authenticator({"key": "env:TOKEN", "head": "env:TOKEN"}).credentials(
            single(security=both)
        )
    ] == ["api_key", "X-Key"]
    assert [
        c.name for c in authenticator({"token": "env:TOKEN"}).credentials(single(security=both))
    ] == ["Authorization"]
    assert [c.name for c in authenticator("env:TOKEN").credentials(single(security=both))] == [
        "Authorization"
    ]
    with pytest.raises(AuthError, match="needs credentials for key and head or token"):
        authenticator({"user": "env:LOGIN"}).credentials(single(security=both))
    for scheme in ("digest", "odd", "tls", "unknown"):
        with pytest.raises(AuthError, match=scheme):
            authenticator("env:TOKEN").credentials(single(security=[{scheme: []}]))


def test_operations_that_need_none() -> None:
    for security in ([], [{}]):
        assert authenticator("env:TOKEN").credentials(single(security=security)) == []
    optional = [{}, {"key": []}]
    assert len(authenticator("env:TOKEN").credentials(single(security=optional))) == 1
    assert authenticator({"user": "env:LOGIN"}).credentials(single(security=optional)) == []
    assert authenticator(None).credentials(single(security=[{"key": []}])) == []


def test_operations_that_do_not_say_what_they_need() -> None:
    assert authenticator("env:TOKEN").credentials(single())[0].name == "api_key"
    assert authenticator({"head": "env:TOKEN"}).credentials(single())[0].name == "X-Key"
    bare = authenticator("env:TOKEN", schemes={})
    assert bare.credentials(single()) == [
        Credential("header", "Authorization", "Bearer t0ken-value")
    ]
    assert authenticator({}, schemes={}).credentials(single()) == []


def test_names_of_schemes() -> None:
    with pytest.raises(DefinitionError, match=r"has no security scheme 'tokem'.*token"):
        authenticator({"tokem": "env:TOKEN"})
    found = authenticator(None)
    assert found.schemes_of(single(security=[{"key": []}, {"key": [], "sid": []}])) == [
        "key",
        "sid",
    ]
    assert found.schemes_of(single()) == list(SCHEMES)
    assert ("api_key", "query") in found.parameters


# ------------------------------------------------------------------ sources


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text("from-file\n")
    assert read_source("@token.txt", "auth", str(tmp_path)) == "from-file"
    assert read_source("env:TOKEN", "auth", "/") == "t0ken-value"
    assert read_source(SecretInput("direct"), "auth", "/") == "direct"
    assert read_source("plain", "headers", "/") == "plain"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"x" * 70_000, "too large"),
        (b"\xff", "not text"),
        (b"a\nb", "line break"),
    ],
)
def test_files_that_are_no_credentials(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "token.txt").write_bytes(content)
    with pytest.raises(AuthError, match=message) as caught:
        read_source("@token.txt", "auth", str(tmp_path))
    assert caught.value.suggestion is not None
    assert caught.value.suggestion.action == "ask_human"


def test_missing_sources(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="MISSING is not set"):
        read_source("env:MISSING", "auth", "/")
    with pytest.raises(AuthError, match="No such file"):
        read_source("@no.txt", "auth", str(tmp_path))


def test_credentials_are_hidden_in_the_output_of_the_call() -> None:
    secrets: list[Any] = []
    token = call_secrets.set(secrets)
    try:
        authenticator("env:LOGIN").credentials(single(security=[{"user": []}]))
    finally:
        call_secrets.reset(token)
    assert [s.reveal() for s in secrets] == ["ada:pass-word", "YWRhOnBhc3Mtd29yZA==", "pass-word"]


@pytest.mark.parametrize("value", ["token", "", "env:", "@", 7, None])
def test_a_credential_in_the_code_is_an_error(value: Any) -> None:
    with pytest.raises(DefinitionError, match="env:NAME"):
        check_source(value, "auth")


def test_valid_sources() -> None:
    for value in ("env:A", "@file", SecretInput("x"), SimpleNamespace(reveal=str)):
        check_source(value, "auth")
    check_source("text", "headers", allows_text=True)
