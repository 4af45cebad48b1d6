"""A caller passes paths that no file system accepts: their resolution would take quadratic time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import pydantic
import pytest
from tests.http.asgi_client import AsgiClient, post

from tooli import Output, Tooli, Within
from tooli.annotations import Destructive

LONG_PATHS = [
    "a/" * 150_000,
    "../" * 100_000,
    "a" * 300_000,
    "a" * 256,
    "ä" * 128,
    "x/" + "b" * 300,
]


class Document(pydantic.BaseModel):
    file: Path


@pytest.fixture(autouse=True)
def resolved_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The long paths that are resolved."""
    found: list[str] = []
    resolve = os.path.realpath

    def record(path, **kwargs):
        if len(os.fspath(path)) > 4096:
            found.append(path)
            raise AssertionError("a long path is resolved")
        return resolve(path, **kwargs)

    monkeypatch.setattr(os.path, "realpath", record)
    return found


def make_app() -> Tooli:
    app = Tooli("files")

    @app.command(annotations=Destructive)
    def delete(file: Path) -> str:
        return str(file)

    @app.command()
    def delete_all(files: list[Path]) -> int:
        return len(files)

    @app.command()
    def inside(file: Annotated[str, Within(".")]) -> str:
        return file

    @app.command()
    def write(file: Output) -> str:
        return file.target

    @app.command(annotations=Destructive)
    def delete_document(document: Document) -> str:
        return "done"

    return app


async def call(app: Tooli, path: str, body: object, query: bytes = b"") -> AsgiClient:
    return await post(app.asgi(mcp=False), path, body, query=query)


@pytest.mark.parametrize("path", LONG_PATHS, ids=range(len(LONG_PATHS)))
@pytest.mark.parametrize(
    ("command", "query"),
    [("delete", b""), ("delete", b"dry_run=true"), ("inside", b""), ("write", b"")],
)
async def test_long_path_is_an_input_error(
    command: str, query: bytes, path: str, resolved_paths: list[str]
) -> None:
    client = await call(make_app(), command, {"file": path}, query)
    assert (client.status, client.code) == (422, "E1003"), client.body[:300]
    assert "bytes; the maximum is" in client.json()["error"]["message"]
    assert len(client.body) < 5000
    assert not resolved_paths


async def test_long_path_in_a_list_is_an_input_error() -> None:
    client = await call(make_app(), "delete-all", {"files": ["a", "b/" * 5000]})
    assert (client.status, client.code) == (422, "E1003")


@pytest.mark.parametrize("query", [b"", b"dry_run=true"])
@pytest.mark.parametrize("allow_paths", [None, "."])
async def test_long_path_in_an_object_is_not_resolved(
    query: bytes,
    allow_paths: str | None,
    resolved_paths: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if allow_paths is not None:
        monkeypatch.setenv("TOOLI_ALLOW_PATHS", allow_paths)
    body = {"document": {"file": "a/" * 5000}}
    client = await call(make_app(), "delete-document", body, query)
    assert client.status == (422 if allow_paths else client.status)
    assert client.status < 500
    assert not resolved_paths


@pytest.mark.parametrize("path", ["a/" * 2047 + "a", "b" * 255, "x" * 63, "ä" * 127])
async def test_longest_path_is_accepted(path: str) -> None:
    client = await call(make_app(), "delete-all", {"files": [path]})
    assert client.status == 200
