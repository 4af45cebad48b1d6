"""Files that Typer opens: every interface passes an open file, never its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces


def make_app() -> Tooli:
    app = Tooli("files")

    @app.command()
    def read(file: typer.FileText) -> list[Any]:
        return [type(file).__name__, file.read()]

    @app.command()
    def both(one: typer.FileBinaryRead, two: typer.FileText = typer.Option("default")) -> list[Any]:  # noqa: B008
        return [one.read().decode(), two.read()]

    @app.command()
    def many(files: list[typer.FileText]) -> list[str]:
        return [file.read() for file in files]

    @app.command()
    def write(file: typer.FileTextWrite, text: str) -> int:
        return file.write(text)

    return app


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "default"):
        (tmp_path / name).write_text(f"text of {name}")
    return tmp_path


@pytest.mark.parametrize(
    ("case", "result"),
    [
        (Case("read", {"file": "a"}), ["TextIOWrapper", "text of a"]),
        (Case("both", {"one": "a"}), ["text of a", "text of default"]),
        (Case("both", {"one": "a", "two": "b"}), ["text of a", "text of b"]),
        (Case("many", {"files": ["a", "b"]}), ["text of a", "text of b"]),
    ],
    ids=str,
)
def test_files_are_open(files: Path, case: Case, result: Any) -> None:
    assert assert_parity(make_app(), case)["result"] == result


def test_files_are_written_and_closed(files: Path) -> None:
    for interface in interfaces(make_app()):
        path = files / f"out-{interface.name}"
        envelope = interface.send_case(Case("write", {"file": str(path), "text": "x"})).envelope
        assert envelope["ok"], interface.name
        assert path.read_text() == "x", interface.name


def test_missing_files_are_input_errors(files: Path) -> None:
    for interface in interfaces(make_app()):
        error = interface.send_case(Case("read", {"file": "missing"})).envelope["error"]
        assert (error["code"], error["field"]) == ("E1003", "file"), interface.name


def test_servers_do_not_read_stdin(files: Path) -> None:
    for interface in interfaces(make_app()):
        if interface.surface != "cli":
            error = interface.send_case(Case("read", {"file": "-"})).envelope["error"]
            assert "stands for stdin on a command line only" in error["message"], interface.name


def test_path_rules_apply_to_open_files(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_DENY_PATHS", str(files / "b"))
    for interface in interfaces(make_app()):
        if interface.surface != "cli":
            envelope = interface.send_case(Case("read", {"file": str(files / "b")})).envelope
            assert envelope["error"]["code"] == "E2005", interface.name
