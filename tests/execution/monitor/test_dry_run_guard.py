"""A dry run does nothing, also if the function ignores what `record_dry_action` returns."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tooli import DefinitionError, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive
from tooli.execution.monitor.audit_hook import Monitor
from tooli.testing.app_interfaces import Case, interfaces

INTERFACES = [interface.name for interface in interfaces(Tooli("names"))]


def act(kind: str, path: Path) -> None:
    """Do something that a dry run must not do."""
    record_dry_action(kind, path)
    if kind == "delete":
        path.unlink()
    elif kind == "write":
        path.write_text("changed")
    elif kind == "make":
        (path.parent / "new").mkdir()
    elif kind == "move":
        path.rename(path.with_name("moved"))
    elif kind == "start":
        subprocess.run([sys.executable, "-c", f"open({str(path)!r}, 'w')"], check=True)
    else:
        import socket

        socket.create_connection(("127.0.0.1", 9), timeout=1)


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    @dry_run_support
    def plain(kind: str, path: Path) -> str:
        """Act."""
        act(kind, path)
        return "done"

    @app.command(annotations=Destructive)
    @dry_run_support
    def caught(kind: str, path: Path) -> str:
        """Act, and hide the error."""
        try:
            act(kind, path)
        except OSError:
            return "hidden"
        return "done"

    @app.command(annotations=Destructive)
    @dry_run_support
    async def later(kind: str, path: Path) -> str:
        """Act in a coroutine."""
        act(kind, path)
        return "done"

    @app.command(annotations=Destructive)
    @dry_run_support
    def rows(kind: str, path: Path) -> Iterator[str]:
        """Act in a stream."""
        yield "before"
        act(kind, path)

    @app.command(annotations=Destructive)
    @dry_run_support
    async def arows(kind: str, path: Path) -> AsyncIterator[str]:
        """Act in an async stream."""
        yield "before"
        act(kind, path)

    @app.command(annotations=Destructive)
    @dry_run_support
    def careful(path: Path) -> str:
        """Read, use a temporary file, and skip the action."""
        path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "part").write_text("x")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("x")
        if not record_dry_action("delete", path, state=path):
            path.unlink()
        return "done"

    @app.command(annotations=Destructive)
    @dry_run_support(allow=["proc:spawn"])
    def started(path: Path) -> str:
        """Start a program to plan."""
        subprocess.run([sys.executable, "-c", ""], check=True)
        record_dry_action("delete", path)
        return "done"

    return app


def dry_run(name: str, command: str, **arguments: Any) -> dict[str, Any]:
    interface = next(i for i in interfaces(make_app()) if i.name == name)
    case = Case(command, arguments, {"dry_run": True, "yes": True})
    return interface.send_case(case).envelope


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_text("content")
    return file


@pytest.mark.parametrize("command", ["plain", "caught", "later", "rows", "arows"])
@pytest.mark.parametrize("name", INTERFACES)
def test_function_that_ignores_the_recorder_is_stopped(name: str, command: str, path: Path) -> None:
    error = dry_run(name, command, kind="delete", path=path)["error"]
    assert path.read_text() == "content"
    assert error["message"] == f"{command} was stopped in a dry run, before fs:delete of {path}."
    assert "allow=" in error["suggestion"]["fix"]


@pytest.mark.parametrize("kind", ["write", "make", "move", "start", "connect"])
def test_every_kind_of_action_is_stopped(kind: str, path: Path) -> None:
    answer = dry_run("call", "plain", kind=kind, path=path)
    assert "was stopped in a dry run" in answer["error"]["message"]
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.read_text() == "content"


@pytest.mark.parametrize("command", ["careful", "started"])
@pytest.mark.parametrize("name", INTERFACES)
def test_dry_run_that_only_plans_is_not_stopped(name: str, command: str, path: Path) -> None:
    result: Any = dry_run(name, command, path=path)["result"]
    plan: Any = result if "actions" in result else result[0]
    assert [action["target"] for action in plan["actions"]] == [str(path)]
    assert path.exists()


def test_run_is_not_monitored(path: Path) -> None:
    assert make_app().call("plain", kind="delete", path=path, yes=True).ok
    assert not path.exists()


def test_first_part_of_apply_is_guarded(path: Path) -> None:
    """`--apply` runs the function as a dry run first, and only then does its actions."""
    app = make_app()
    token = app.call("careful", path=path, dry_run=True).unwrap()["token"]
    assert app.call("careful", path=path, apply=token, yes=True).ok
    assert not path.exists()


def test_unknown_capability_is_a_definition_error() -> None:
    with pytest.raises(DefinitionError, match="dry_run_support"):
        dry_run_support(allow=["everything"])(make_app)


def test_warning_if_the_dry_run_cannot_be_monitored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Monitor, "begin", Mock(return_value=False))
    answer = make_app().call("careful", path=path, dry_run=True)
    assert answer.ok
    assert any("not monitored" in warning for warning in answer.meta["warnings"])
