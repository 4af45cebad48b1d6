"""Documents from files, URLs and dicts, in JSON and YAML; other files only from the same folder."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.openapi.api_server import Answer, openapi

from tooli.errors import DefinitionError
from tooli.providers.openapi import document_cache
from tooli.providers.openapi import document_loader as module
from tooli.providers.openapi.document_loader import load_document
from tooli.text import yaml_reader

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers.openapi.api_server import ApiServer, Received

JSON = json.dumps(openapi({"/a": {}}))
YAML = """
openapi: 3.0.3
info: {title: T, version: 1.0}
paths:
  /a:
    get:
      responses:
        200: {description: ok}
        default: &other {description: 2024-01-02}
  /b:
    get: {responses: {404: *other}, on: off}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def write(path: Path, content: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_json_files(tmp_path: Path, encoding: str) -> None:
    document, loaded = load_document(write(tmp_path / "api.json", JSON.encode(encoding)))
    assert document.item("/paths", "/a") == {}
    assert loaded.url is None


def test_dicts() -> None:
    document, _ = load_document(openapi({"/a": {}}))
    assert list(document.names("/paths")) == ["/a"]
    with pytest.raises(DefinitionError, match="not JSON"):
        load_document({"paths": {1, 2}})


def test_yaml_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "api.yaml", YAML)
    document, _ = load_document(path)
    responses = document.item("/paths", "/a")["get"]["responses"]
    assert responses == {"200": {"description": "ok"}, "default": {"description": "2024-01-02"}}
    assert document.item("/paths", "/b")["get"]["responses"]["404"]["description"] == "2024-01-02"
    assert document.item("/paths", "/b")["get"]["true"] is False

    def fail(*_: object) -> None:
        raise AssertionError("the JSON is cached")

    monkeypatch.setattr(module, "_parse_yaml", fail)
    assert load_document(path)[0].item("/paths", "/a")["get"]["responses"] == responses


def test_the_sections_of_large_documents_are_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = openapi({f"/p{i}": {"get": {"summary": "x" * 900}} for i in range(1300)})
    path = write(tmp_path / "api.json", json.dumps(large))
    load_document(path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "scan_sections", lambda *_: pytest.fail("the sections are cached"))
        document, _ = load_document(path)
        assert document.item("/paths", "/p1299") == large["paths"]["/p1299"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("<html>", "HTML or XML"),
        ("[1]", "it is a list"),
        ("just text", "must be an object"),
        ("a: [1, 2", "not valid YAML in line"),
        ("a: !!python/object:os.system x", "not valid YAML"),
        ("a: !!binary aGk=", "bytes is not a JSON value"),
        ("a: " + "[" * 5000, "not valid YAML|nested too deeply"),
        (b"\xff\xfe\x00\xd8", "not text in UTF-8"),
        ('{"a": tru}', "not valid JSON"),
    ],
)
def test_other_files_are_errors(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        load_document(write(tmp_path / "api.yaml", content))


def test_missing_and_too_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DefinitionError, match="does not exist"):
        load_document(str(tmp_path / "no.json"))
    with pytest.raises(DefinitionError, match="cannot be read"):
        load_document(str(tmp_path))
    monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(DefinitionError, match="larger than the limit"):
        load_document(write(tmp_path / "api.json", JSON))


def test_aliases_cannot_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_YAML_VALUES", 10_000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(DefinitionError, match="more than 10,000 values"):
        load_document(write(tmp_path / "api.yaml", "\n".join(lines)))


# ------------------------------------------------------------------ other files


def test_files_in_the_folder_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "parts" / "user.yaml", "User: {$ref: 'name.json#/Name'}")
    write(tmp_path / "parts" / "name.json", '{"Name": {"type": "string"}}')
    document, _ = load_document(write(tmp_path / "api.json", JSON))
    assert document.resolve({"$ref": "parts/user.yaml#/User"}) == {"type": "string"}
    monkeypatch.setattr(module, "MAX_OTHER_FILES", 2)
    with pytest.raises(DefinitionError, match="more than 2 files"):
        document.find("parts/third.json#/X")


@pytest.mark.parametrize(
    "reference",
    [
        *("../secret.json#/a", "/etc/passwd", "parts/../../secret.json", "link.json#/a"),
        *("http://127.0.0.1:1/x.json", "file:///etc/passwd", "//127.0.0.1/x.json", "."),
        *(".config/hosts.yml#/token", ".hosts.yml#/token", "hidden.yml#/token", "pipe.json"),
    ],
)
def test_files_elsewhere_are_not_read(tmp_path: Path, reference: str) -> None:
    write(tmp_path / "secret.json", '{"a": 1}')
    folder = tmp_path / "api"
    source = write(folder / "api.json", JSON)
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "hidden.yml").symlink_to(folder / ".hosts.yml")
    write(folder / ".hosts.yml", "token: secret")
    write(folder / ".config" / "hosts.yml", "token: secret")
    os.mkfifo(folder / "pipe.json")
    document, _ = load_document(source)
    with pytest.raises(DefinitionError, match="is not allowed"):
        document.find(reference)


# ------------------------------------------------------------------ URLs


def test_a_document_from_a_url_is_kept(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", lambda: now[0])
    api.answer = Answer(JSON.encode(), headers={"ETag": '"1"', "Last-Modified": "Mon"})
    source = f"{api.url}/v1/openapi.json?key=secret"
    first, loaded = load_document(source)
    assert loaded.url == source
    assert "secret" not in loaded.name
    load_document(source)
    assert len(api.requests) == 1
    now[0] += module.FRESH_SECONDS + 1

    def unchanged(request: Received) -> Answer:
        assert request.headers["if-none-match"] == '"1"'
        assert request.headers["if-modified-since"] == "Mon"
        return Answer(status=304)

    api.answer = unchanged
    assert load_document(source)[0].whole() == first.whole()
    load_document(source)
    assert len(api.requests) == 2
    now[0] += module.FRESH_SECONDS + 1
    api.answer = Answer(status=500)
    assert "answered 500. An earlier copy" in load_document(source)[1].warning
    api.answer = Answer(status=404)
    with pytest.raises(DefinitionError, match="answered 404"):
        load_document(source)


def test_an_unreachable_server_is_a_warning(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer = Answer(JSON.encode())
    source = f"{api.url}/openapi.json"
    load_document(source)
    monkeypatch.setattr(module, "FRESH_SECONDS", -1.0)
    api.answer = Answer(JSON.encode(), is_cut=True)
    document, loaded = load_document(source)
    assert "An earlier copy is used" in loaded.warning
    assert list(document.names("/paths")) == ["/a"]
    with pytest.raises(DefinitionError, match="cannot be read"):
        load_document(f"{api.url}/other.json")


def test_damaged_notes_are_ignored(api: ApiServer) -> None:
    api.answer = Answer(JSON.encode())
    source = f"{api.url}/openapi.json"
    load_document(source)
    key = document_cache.content_key("url 1", source.encode())
    for notes in (b"[", b"[]"):
        document_cache.write_entry(key, notes)
        load_document(source)
    assert len(api.requests) == 3


def test_files_next_to_a_url_are_read(api: ApiServer) -> None:
    answers: dict[str, Any] = {"/v1/openapi.json": openapi({}), "/v1/user.json": {"User": {"a": 1}}}
    api.answer = lambda request: Answer(answers[request.target])
    document, _ = load_document(f"{api.url}/v1/openapi.json")
    assert document.find("user.json#/User") == {"a": 1}
    for reference in ("../x.json", "http://127.0.0.2/x.json", "%2e%2e/x.json", "//x.test/v1/y"):
        with pytest.raises(DefinitionError, match="is not allowed"):
            document.find(reference)
    assert len(api.requests) == 2
