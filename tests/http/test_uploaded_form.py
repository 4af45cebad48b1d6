"""Files in forms become arguments; they are bounded, and nothing of them is left."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tests.http.asgi_client import HOST, AsgiClient, send

from tooli import Annotated, Option, SecretInput, StdinOr, Tooli, Within
from tooli.annotations import Destructive
from tooli.errors import TemporaryError
from tooli.execution.sandbox import temp_dirs
from tooli.http.uploaded_form import _make_folder


class Person(pydantic.BaseModel):
    name: str
    age: int = 0


app = Tooli("files", version="1")


@app.command()
def size(
    data: bytes,
    n: int = 1,
    tags: list[str] | None = None,
    person: Person | None = None,
    people: list[Person] | None = None,
    key: SecretInput[str] | None = None,
    flag: bool = False,
) -> dict[str, Any]:
    """Return the size, and the other arguments."""
    return {
        "size": len(data),
        "n": n,
        "tags": tags,
        "person": person,
        "people": people,
        "flag": flag,
    }


@app.command()
def oldest(data: StdinOr[list[Person]]) -> Person:
    """Return the oldest person."""
    return max(data, key=lambda person: person.age)


@app.command()
def show(data: StdinOr[Path]) -> list[Any]:
    """Return the source and the text."""
    return [data.source, data.is_stdin, data.read_text()]  # type: ignore[attr-defined]


@app.command()
def read(
    files: Annotated[list[Path], Option(exists=True, resolve_path=True)], mode: int = 0
) -> list[Any]:
    """Return what the function gets for each path."""
    return [
        [file.read_text(), file.upload_name, file.suffix, oct(os.stat(file.parent).st_mode & 0o777)]  # type: ignore[attr-defined]
        for file in files
    ]


@app.command(capabilities=["fs:read:/nowhere"])
async def first(file: Path) -> str:
    """Return the text of a file."""
    return file.read_text()


@app.command()
def rows(data: StdinOr[Iterator[str]]) -> Iterator[str]:
    """Yield the lines."""
    yield from data


@app.command(annotations=Destructive)
def wipe(file: Annotated[Path, Option(exists=True)]) -> str:
    """Need a confirmation."""
    return file.read_text()


@app.command()
def within(file: Annotated[Path, Within("/tmp"), Option(exists=True)]) -> str:
    """Take files of one folder only."""
    return str(file)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put the temporary files into an empty folder, which is empty again at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


FORM = (b"content-type", b"multipart/form-data; boundary=XX")


def form(*parts: tuple[str, bytes], end: bytes = b"--XX--\r\n") -> bytes:
    return (
        b"".join(
            [
                b"--XX\r\nContent-Disposition: form-data; "
                + head.encode()
                + b"\r\n\r\n"
                + data
                + b"\r\n"
                for head, data in parts
            ]
        )
        + end
    )


def file(name: str, file_name: str = "a.txt", content: bytes = b"text") -> tuple[str, bytes]:
    return f'name="{name}"; filename="{file_name}"', content


async def upload(path: str, *parts: tuple[str, bytes], **settings: Any) -> AsgiClient:
    query = settings.pop("query", b"")
    api: Any = app.asgi(mcp=False, **settings)
    return await send(api, "POST", path, form(*parts), FORM, query=query)


async def test_bytes_and_other_fields() -> None:
    client = await upload(
        "/tools/size",
        file("data", content=b"\0\xff\r\n--X"),
        *[
            ('name="n"', b"3"),
            ('name="tags"', b"a"),
            ('name="tags"', b"1"),
            ('name="flag"', b"True"),
        ],
        ('name="person"', b'{"name": "Ada"}'),
        ('name="people"', b'{"name": "a"}'),
        ('name="people"', b'{"name": "b"}'),
        ('name="key"', b"top secret"),
    )
    result = client.json()["result"]
    assert (result["size"], result["n"], result["tags"], result["flag"]) == (7, 3, ["a", "1"], True)
    assert result["person"] == {"name": "Ada", "age": 0}
    assert [person["name"] for person in result["people"]] == ["a", "b"]
    client = await upload(
        "/uploads/size",
        ('name="data"\r\nContent-Type: application/octet-stream', b"\xff"),
        ('name="people"\r\nContent-Type: application/json', b'[{"name": "a"}]'),
    )
    assert client.json()["result"]["size"] == 1
    assert client.json()["result"]["people"] == [{"name": "a", "age": 0}]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\a.txt", "a.txt"),
        ("/abs/a.txt", "a.txt"),
        ("-", "upload"),
        ("..", "upload"),
        ("a\x1b[31mb", "a[31mb"),
        ("x" * 300, "x" * 200),
    ],
)
async def test_name_of_the_client_is_never_a_path(given: str, name: str) -> None:
    client = await upload("/tools/show", file("data", given))
    assert client.json()["result"] == [name, False, "text"]


async def test_formats_and_paths() -> None:
    client = await upload("/tools/oldest", file("data", "p.csv", b"name,age\nada,3\nbob,5\n"))
    assert client.json()["result"] == {"name": "bob", "age": 5}
    client = await upload(
        "/tools/read", file("files", "a.tar.gz", b"1"), file("files", "b.s!h", b"2")
    )
    assert client.json()["result"] == [
        ["1", "a.tar.gz", ".gz", "0o700"],
        ["2", "b.s!h", "", "0o700"],
    ]
    assert (await upload("/tools/first", file("file"))).json()["result"] == "text"
    assert (await upload("/tools/rows", file("data", "a", b"1\n2\n"))).json()["result"] == [
        "1",
        "2",
    ]


async def test_rules_for_paths_of_callers_do_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_ALLOW_PATHS", "/usr/lib")
    strict = Tooli("strict", security_policy="strict")
    strict.command("first", capabilities=["fs:read:/usr/lib"], auth=[])(first)
    strict.command("show", auth=[])(show)
    api: Any = strict.asgi(mcp=False)
    for path, name in (("first", "file"), ("show", "data")):
        client = await send(api, "POST", f"/tools/{path}", form(file(name)), FORM)
        assert client.json().get("ok") is True, client.body
        named = await send(api, "POST", f"/tools/{path}", b'{"%b": "/etc/passwd"}' % name.encode())
        assert named.code == "E2005"


@pytest.mark.parametrize(
    ("path", "parts", "status", "part"),
    [
        ("/tools/size", [file("n")], 422, "Files can be sent for: data"),
        ("/tools/size", [file("data"), file("data")], 422, "one file"),
        ("/tools/size", [file("data"), ('name="data"', b"x")], 422, "one value"),
        ("/tools/size", [file("data"), ('name="n"', b"1"), ('name="n"', b"2")], 422, "2 times"),
        ("/tools/size", [file("data"), ('name="person"', b"{")], 400, "not valid JSON"),
        ("/tools/size", [file("data"), ('name="person"', b"[" * 500)], 400, "person"),
        ("/tools/size", [file("data"), ('name="dat"', b"x")], 422, "data"),
        ("/tools/size", [file("data"), ('name="n"', b"\xff")], 400, "UTF-8"),
        ("/tools/size", [file("data", "", b"")], 422, "data"),
        ("/tools/wipe", [file("file")], 428, "yes"),
        ("/tools/within", [file("file")], 415, "JSON"),
        ("/uploads/within", [file("file")], 404, "within"),
        ("/plans/wipe", [file("file")], 415, "JSON"),
    ],
)
async def test_problems_with_a_form(path: str, parts: Any, status: int, part: str) -> None:
    client = await upload(path, *parts)
    assert client.status == status, client.body
    assert part in client.body.decode()


async def test_limits() -> None:
    for parts, settings in (
        ([file("data", content=b"x" * 2000)], {"max_upload": 1000}),
        ([file("data"), ('name="n"', b"1" * 2000)], {"max_body": 1000}),
        ([file("data", content=b"x" * 9000)], {"max_upload": 1000, "max_body": 1000}),
        ([(f'name="n{i}"', b"") for i in range(1001)], {}),
        ([file("files", f"{i}", b"") for i in range(1001)], {}),
    ):
        path = "/tools/read" if "files" in parts[0][0] else "/tools/size"
        client = await upload(path, *parts, **settings)
        assert (client.status, client.code) == (413, "E1413"), client.body
        assert client.headers["connection"] == "close"


async def test_stopped_and_broken_uploads_leave_nothing(folder: Path) -> None:
    api: Any = app.asgi(mcp=False, chunk_timeout=0.05)
    for body in (form(file("data"), end=b""), form(file("data", content=b"x" * 600_000), end=b"")):
        client = AsgiClient(api)
        client.send_body(body, more=True)
        task = client.start("POST", "/tools/size", [HOST, FORM])
        await asyncio.wait_for(task, 120)
        assert (client.status, client.code) == (408, "E1408")
        client = AsgiClient(api)
        client.send_body(body, more=True)
        client.disconnect()
        await asyncio.wait_for(client.start("POST", "/tools/size", [HOST, FORM]), 120)
        assert client.sent == []
        cut = await send(api, "POST", "/tools/size", body, FORM)
        assert (cut.status, cut.code) == (400, "E1008")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), TemporaryError("no folder")]
)
async def test_full_disk_is_a_temporary_failure(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise failure

    monkeypatch.setattr("tooli.http.uploaded_form.make_temp_folder", fail)
    client = await upload("/tools/size", file("data"))
    assert client.status == 503
    assert client.headers["retry-after"] == "5"


async def test_folder_without_descriptors_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.execution.sandbox.temp_dirs.os.supports_dir_fd", set())
    assert (await upload("/tools/size", file("data"))).json()["result"]


def test_folder_of_a_killed_server_is_removed(tmp_path: Path) -> None:
    """The next server that gets an upload removes it."""
    code = """
import os, signal
from tooli.http.uploaded_form import _make_folder
path = _make_folder().path
open(os.path.join(path, "1.txt"), "w").close()
print(path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    left = Path(killed.stdout.strip())
    assert (left / "1.txt").exists()
    temp_dirs._swept_dirs.clear()
    other = _make_folder()
    assert not left.exists()
    other.remove()


async def test_uploads_of_a_server_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.http.uploaded_form.MAX_TOTAL_UPLOADS", 0)
    assert (await upload("/tools/size", file("data"))).status == 503


async def test_token_is_checked_before_the_form() -> None:
    api: Any = app.asgi(mcp=False, token="secret")
    client = AsgiClient(api)  # it sends no body at all
    await asyncio.wait_for(client.start("POST", "/uploads/size", [HOST, FORM]), 120)
    assert client.status == 401
    foreign = await send(
        api, "POST", "/tools/size", form(file("data")), FORM, (b"origin", b"https://evil.example")
    )
    assert foreign.status == 403
    wrong = await send(app.asgi(mcp=False), "POST", "/uploads/size", b"{}")
    assert (wrong.status, wrong.code) == (415, "E1415")


async def test_files_with_one_name_and_other_content_are_other_calls() -> None:
    key = (b"idempotency-key", b"k1")
    api: Any = app.asgi(mcp=False)

    async def call(content: bytes) -> AsgiClient:
        return await send(api, "POST", "/tools/show", form(file("data", "a", content)), FORM, key)

    assert (await call(b"1")).json()["result"][2] == "1"
    assert (await call(b"1")).json()["meta"]["idempotency"]["replayed"] is True
    assert (await call(b"2")).status in (409, 422)
