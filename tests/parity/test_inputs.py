"""Inputs, secrets and outputs: every interface returns the same envelope, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from tooli import Identifier, Option, Output, SecretInput, StdinOr, Tooli, Within
from tooli.annotations import Destructive
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces

CANARY = "c4nary-5ecret"
BY_LOCATION = {
    "cli": "a command line contains the locations of inputs and secrets, not their content"
}


class Row(pydantic.BaseModel):
    name: str
    age: int


def make_app() -> Tooli:
    app = Tooli("inputs", version="1.0")

    @app.command()
    def text(data: StdinOr[str], times: int = 1) -> str:
        """Read text."""
        return data * times

    @app.command()
    def rows(data: StdinOr[Iterator[Row]]) -> Iterator[dict[str, Any]]:
        """Read rows one by one."""
        for row in data:
            yield row.model_dump()

    @app.command()
    async def later(data: StdinOr[list[dict]]) -> int:
        """Read objects in async code."""
        return len(data)

    @app.command()
    def file(data: StdinOr[Path]) -> list[Any]:
        """Read the input like a file."""
        return [len(data.read_bytes()), data.is_stdin]

    @app.command()
    def write(out: Annotated[Output, Option()], text: str, fail: bool = False) -> str:
        """Write a file; fail afterwards if `fail` is set."""
        out.write_text(text)
        if fail:
            raise RuntimeError("failed after writing")
        return "ok"

    @app.command()
    def login(token: SecretInput[str], port: int = 1, fail: bool = False) -> dict[str, Any]:
        """Take a secret; fail with it in the message if `fail` is set."""
        if fail:
            raise RuntimeError(f"{token} {token!r} {locals()}")
        return {"length": len(token.reveal()), "token": token, "all": [token]}

    @app.command()
    def pin(number: SecretInput[int]) -> int:
        """Take a secret number."""
        return 1

    @app.command(annotations=Destructive)
    def drop(token: SecretInput[str]) -> str:
        """Take a secret in a destructive command."""
        return "dropped"

    @app.command()
    def get(id: Annotated[str, Identifier], file: Annotated[str, Within("/usr")] = "/usr") -> str:
        """Take an identifier and a path inside a folder."""
        return id

    return app


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "good.csv").write_text("name,age\nada,36\nbob,5\n")
    (folder / "bad.csv").write_text("name,age\nada,36\nbob,x\n")
    (folder / "good.json").write_text('[{"a": 1}, {"a": 2}]')
    (folder / "bad.json").write_text('[{"a": 1},\n')
    (folder / "latin").write_bytes(b"na\xefve")
    return folder


ITEMWISE = dict.fromkeys(("stream", "astream", "jsonl"), "a stream returns items before the error")
CASES = [
    Case("text", {"data": "good.csv"}),
    Case("text", {"data": "good.csv", "times": 2}),
    Case("text", {"data": "nope", "times": "x"}),
    Case("text", {"data": "latin"}),
    Case("text", {"data": "http://127.0.0.1:1/"}),
    Case("text", {"data": "ftp://example.com/"}),
    Case("text", {"data": "good.csv", "tims": 2}),
    Case("text", {}),
    Case("text", {"data": "good.csv"}, {"dry_run": True}),
    Case("text", {"data": {"text": "abc"}}, skip=BY_LOCATION),
    Case("text", {"data": {"txt": "abc"}}, skip=BY_LOCATION),
    Case("rows", {"data": "good.csv"}),
    Case("rows", {"data": "bad.csv"}),
    Case("rows", {"data": [{"name": "a", "age": "1"}]}, skip=BY_LOCATION),
    Case("later", {"data": "good.json"}),
    Case("later", {"data": "bad.json"}),
    Case("file", {"data": "good.csv"}),
    Case("write", {"text": "x", "out": "new"}),
    Case("write", {"text": "x", "out": "nowhere/new"}),
    Case("write", {"text": "x", "out": "new", "fail": True}),
    Case("login", {"token": CANARY}, skip=BY_LOCATION),
    Case("login", {"token": CANARY, "port": "x"}, skip=BY_LOCATION),
    Case("login", {"token": CANARY, "prt": 1}, skip=BY_LOCATION),
    Case("login", {"token": CANARY}, {"dry_run": True}, skip=BY_LOCATION),
    Case(
        "login",
        {"token": CANARY},
        {"verbose": 2, "detailed": True},
        skip=BY_LOCATION | {"http": "HTTP has no option `verbose`"},
    ),
    Case("login", {"token": CANARY, "fail": True}, skip=BY_LOCATION),
    Case("login", {"token": ""}, skip=BY_LOCATION),
    Case("login", {"token": [CANARY]}, skip=BY_LOCATION),
    Case("pin", {"number": CANARY}, skip=BY_LOCATION),
    Case("drop", {"token": CANARY}, skip=BY_LOCATION),
    Case("drop", {"token": CANARY}, {"yes": True}, skip=BY_LOCATION),
    Case("login", argv=[CANARY]),
    Case("login", argv=["@token", "--port", "x"]),
    Case("login", argv=["@token"]),
    Case("drop", argv=["@token"]),
    Case("get", {"id": "a"}),
    Case("get", {"id": "../a"}),
    Case("get", {"id": "a%2fb", "file": "/etc/passwd"}),
    Case("get", {"id": "a", "file": "/usr/../etc/passwd"}),
]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.tool} {case.argv or case.arguments}"
)
@pytest.mark.parametrize("load_typer", [False, True], ids=["without-typer", "with-typer"])
def test_interfaces_agree(folder: Path, monkeypatch, case: Case, load_typer: bool) -> None:
    monkeypatch.chdir(folder)
    (folder / "token").write_text(CANARY + "\n")
    app = make_app()
    if load_typer:
        assert app.registered_commands
    envelope = assert_parity(app, case)
    assert CANARY not in json.dumps(envelope)
    assert not list(folder.glob(".new*"))


@pytest.mark.parametrize("case", [c for c in CASES if c.tool in ("login", "pin", "drop")], ids=str)
def test_no_interface_outputs_a_secret(folder: Path, monkeypatch, capfd, case: Case) -> None:
    """The secret is neither in the answer nor on stdout or stderr."""
    monkeypatch.chdir(folder)
    (folder / "token").write_text(CANARY + "\n")
    for interface in interfaces(make_app()):
        if interface.skip_reason(case) is None:
            assert CANARY not in json.dumps(interface.send_case(case).envelope), interface.name
    out, err = capfd.readouterr()
    assert CANARY not in out + err


@pytest.mark.parametrize("tool", ["text", "file"])
def test_servers_have_no_stdin(tool: str) -> None:
    for interface in interfaces(make_app()):
        if interface.surface in ("mcp", "http"):
            error = interface.send_case(Case(tool, {"data": "-"})).envelope["error"]
            assert (error["code"], error["field"]) == ("E1035", "data"), interface.name
            assert "stdin is not available here" in error["message"]
