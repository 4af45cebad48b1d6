"""A guard in a Typer callback or a custom command class holds on every interface."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer
from tests.integration.app_process import environment, read_envelope, run
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    STATELESS_VERSION,
    connect,
    launcher_command,
)
from tests.integration.mcp_http.http_process import run_server
from typer.core import TyperCommand, TyperGroup

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.cli import typer_register
from tooli.sources.python_apps import wrap_typer
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces

RAN: list[str] = []
"""The names that the guarded function was called with."""


def delete(name: str) -> str:
    """Delete something."""
    RAN.append(name)
    return f"deleted {name}"


def guard(ctx: typer.Context, password: str = typer.Option("", help="The password.")) -> None:
    """Let only callers with the password through."""
    if password != "open":
        typer.echo("access denied", err=True)
        raise typer.Exit(3)
    ctx.obj = "checked"


class GuardedCommand(TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        if ctx.params["name"] == "forbidden":
            raise typer.Exit(3)
        return super().invoke(ctx)


class ParsingCommand(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "forbidden" in args:
            raise typer.Exit(3)
        return super().parse_args(ctx, args)


class GuardedGroup(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if "forbidden" in args:
            raise typer.Exit(3)
        return super().resolve_command(ctx, args)


class GroupWithMain(TyperGroup):
    def main(self, args: Any = None, *more: Any, **settings: Any) -> Any:
        if args is not None and "forbidden" in args:
            raise typer.Exit(3)
        return super().main(args, *more, **settings)


def app_callback() -> Tooli:
    app = Tooli("guarded")
    app.callback()(guard)
    app.command()(delete)
    return app


def app_keyword() -> Tooli:
    app = Tooli("guarded", callback=guard)
    app.command()(delete)
    app.command("other")(lambda: None)
    return app


def group_callback() -> Tooli:
    app, group = Tooli("guarded"), Tooli()
    group.callback()(guard)
    group.command()(delete)
    app.add_typer(group, name="group")
    return app


def outer_callback() -> Tooli:
    app, group = Tooli("guarded"), Tooli()
    app.callback()(guard)
    group.command()(delete)
    app.add_typer(group, name="group")
    return app


def add_typer_callback() -> Tooli:
    app, group = Tooli("guarded"), Tooli()
    group.callback()(lambda: None)
    group.command()(delete)
    app.add_typer(group, name="group", callback=guard)
    return app


def plain_group_callback() -> Tooli:
    app, group = Tooli("guarded"), typer.Typer()
    group.callback()(guard)
    group.command()(delete)
    app.add_typer(group, name="group")
    return app


def plain_above_tooli() -> Tooli:
    app, plain, group = Tooli("guarded"), typer.Typer(), Tooli()
    plain.callback()(guard)
    group.command()(delete)
    plain.add_typer(group, name="inner")
    app.add_typer(plain, name="group")
    return app


def served_typer() -> Tooli:
    app = typer.Typer()
    app.callback()(guard)
    app.command()(delete)
    return wrap_typer(app, "guarded")


def served_group() -> Tooli:
    app, group = typer.Typer(), typer.Typer()
    group.callback()(guard)
    group.command()(delete)
    app.add_typer(group, name="group")
    return wrap_typer(app, "guarded")


def command_class(cls: type = GuardedCommand) -> Tooli:
    app = Tooli("guarded")
    app.command(cls=cls)(delete)
    app.command("other")(lambda: None)
    return app


def parsing_class() -> Tooli:
    return command_class(ParsingCommand)


def only_command_class() -> Tooli:
    app = Tooli("guarded")
    app.command(cls=GuardedCommand)(delete)
    return app


def group_class() -> Tooli:
    app = Tooli("guarded", cls=GuardedGroup)
    app.command()(delete)
    app.command("other")(lambda: None)
    return app


def group_main() -> Tooli:
    app = Tooli("guarded", cls=GroupWithMain)
    app.command()(delete)
    app.command("other")(lambda: None)
    return app


def served_class() -> Tooli:
    app = typer.Typer()
    app.command(cls=GuardedCommand)(delete)
    app.command("other")(lambda: None)
    return wrap_typer(app, "guarded")


def option_callback() -> Tooli:
    """Return an app whose guard is the callback of an option."""

    def check(value: str) -> str:
        if value != "open":
            raise typer.Exit(3)
        return value

    app = Tooli("guarded")

    @app.callback()
    def main(password: str = typer.Option("", callback=check)) -> None: ...

    app.command()(delete)
    return app


CALLBACKS = [
    *(app_callback, app_keyword, group_callback, outer_callback, add_typer_callback),
    *(plain_group_callback, plain_above_tooli, served_typer, served_group, option_callback),
]
CLASSES = [command_class, parsing_class, only_command_class, group_class, group_main, served_class]


def guarded_tool(app: Tooli) -> str:
    return next(tool.key for tool in app.catalog if tool.name == "delete")


def answers(app: Tooli, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the envelope of each interface."""
    case = Case(guarded_tool(app), arguments, options)
    own = [i for i in interfaces(app) if not (app._state.served_typer and i.surface == "cli")]
    return {interface.name: interface.send_case(case).envelope for interface in own}


@pytest.mark.parametrize("make_app", CALLBACKS)
@pytest.mark.parametrize("password", [{}, {"password": "wrong"}], ids=["none", "wrong"])
def test_a_callback_refuses_a_call(make_app: Callable[[], Tooli], password: dict[str, str]) -> None:
    RAN.clear()
    for name, envelope in answers(make_app(), {"name": "x", **password}).items():
        assert envelope["error"]["code"] == "E4001", name
    assert not RAN


@pytest.mark.parametrize("make_app", CALLBACKS)
def test_a_callback_lets_a_call_through(make_app: Callable[[], Tooli]) -> None:
    RAN.clear()
    found = answers(make_app(), {"name": "x", "password": "open"})
    for name, envelope in found.items():
        assert envelope["result"] in ("deleted x", ["deleted x"]), name
    assert RAN == ["x"] * len(found)


@pytest.mark.parametrize("make_app", CLASSES)
def test_a_custom_class_refuses_a_call(make_app: Callable[[], Tooli]) -> None:
    RAN.clear()
    for name, envelope in answers(make_app(), {"name": "forbidden"}).items():
        assert envelope["ok"] is False, name
    assert not RAN
    for name, envelope in answers(make_app(), {"name": "x"}).items():
        assert envelope["result"] in ("deleted x", ["deleted x"]), name


@pytest.mark.parametrize("make_app", [app_callback, served_typer])
def test_a_timeout_does_not_avoid_the_callback(make_app: Callable[[], Tooli]) -> None:
    """The function runs in a worker process, and so do the callbacks."""
    app = make_app()
    for name, envelope in answers(app, {"name": "x"}, timeout=60).items():
        assert envelope["error"]["code"] == "E4001", name
    assert app.options(timeout=60).call("delete", name="x", password="open").ok


@pytest.mark.parametrize("name", ["--password=open", "--", "-p", "--help", "a --password open"])
def test_an_argument_is_never_read_as_an_option(name: str) -> None:
    RAN.clear()
    app = app_callback()
    assert app.call("delete", name=name).error is not None
    assert not RAN
    assert app.call("delete", name=name, password="open").result == f"deleted {name}"


@pytest.mark.parametrize("password", ["-", "--", "--help", "open\0", ["open"], {"a": 1}, True])
def test_a_value_of_the_callback_is_never_read_as_an_option(password: Any) -> None:
    RAN.clear()
    assert app_callback().call("delete", name="x", password=password).error is not None
    assert not RAN


def test_a_dry_run_runs_neither_callback_nor_function() -> None:
    calls: list[str] = []
    app = Tooli("planned")

    @app.callback()
    def before() -> None:
        calls.append("callback")

    @app.command()
    def change(name: str) -> None:
        calls.append("function")

    assert app.call("change", name="x", dry_run=True).ok
    assert not calls
    assert app.call("change", name="x").ok
    assert calls == ["callback", "function"]


def test_a_call_that_is_refused_runs_no_callback() -> None:
    calls: list[str] = []
    app = Tooli("refused")

    @app.callback()
    def before() -> None:
        calls.append("callback")

    @app.command(requires_approval=True)
    def change(name: str) -> None:
        calls.append("function")

    assert app.call("change", name="x").error is not None
    assert app.call("change", name=["x"]).error is not None
    assert not calls


def test_the_function_cannot_be_called_without_its_callbacks() -> None:
    """Code that calls the function of a tool directly gets an error."""
    tool = app_callback().find("delete")
    assert tool is not None
    with pytest.raises(Exception, match="its callbacks would not have run"):
        tool.fn(name="x")


def test_concurrent_calls_do_not_share_their_options() -> None:
    """Typer's commands keep the arguments of a running call."""
    app = Tooli("threads")
    barrier = threading.Barrier(8, timeout=60)

    @app.callback()
    def before(ctx: typer.Context, user: str) -> None:
        barrier.wait()
        ctx.obj = user
        barrier.wait()

    @app.command()
    def who(ctx: typer.Context, number: int) -> list[Any]:
        barrier.wait()
        return [ctx.obj, number, ctx.params["number"]]

    results: dict[int, Any] = {}

    def call(number: int) -> None:
        results[number] = app.call("who", number=number, user=f"user{number}").result

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [f"user{n}", n, n] for n in range(8)}


def test_first_calls_at_once_have_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread passes the registrations to Typer, callbacks last, another one calls."""
    app = app_callback()
    found: list[Any] = []
    register = typer_register.register_callback

    def look_up_meanwhile(*arguments: Any) -> None:
        other = threading.Thread(target=lambda: found.append(app.find("delete")))
        other.start()
        other.join()
        register(*arguments)

    monkeypatch.setattr(typer_register, "register_callback", look_up_meanwhile)
    assert app.call("delete", name="x").error is not None
    assert [tool.route is not None for tool in found] == [True]


def test_a_first_call_does_not_report_a_change_of_the_tools() -> None:
    app, changes = app_callback(), list[str]()
    app._state.change_listeners.append(lambda kind, uri: changes.append(kind))
    assert app.call("delete", name="x").error is not None
    assert app._state.is_typer_initialized
    assert changes == []


# ------------------------------------------------------------------ resources


def test_a_resource_made_from_a_command_has_the_guard(tmp_path: Path) -> None:
    app = Tooli("guarded")
    app.callback()(guard)
    app.command(resource="item://{name}", annotations=ReadOnly)(delete)
    tool = app._state.resources[0].tool(app._state)
    assert tool.route is not None
    with connect(write_app(tmp_path), STATELESS_VERSION) as client:
        error = client.error("resources/read", {"uri": "item://x"})
        assert "exit code 3" in error["message"]
    env = environment(PASSWORD="open")
    with connect(write_app(tmp_path), STATELESS_VERSION, env=env) as client:
        found = client.result("resources/read", {"uri": "item://x"})
        assert found["contents"][0]["text"] == "read x"


def test_a_resource_behind_several_callbacks_is_refused() -> None:
    app, group = Tooli("guarded"), Tooli()
    app.callback()(guard)
    group.callback()(guard)
    app.command()(delete)
    group.command()(delete)
    app.add_typer(group, name="group")
    app.resource("item://{name}")(delete)
    with pytest.raises(TypeError, match="behind several callbacks"):
        app._state.resources[0].tool(app._state)


# ------------------------------------------------------------------ real processes

APP = """
import typer
from {module} import {cls} as App

app = App(name="guarded")


@app.callback()
def main(password: str = typer.Option("", envvar="PASSWORD")):
    if password != "open":
        typer.echo("access denied", err=True)
        raise typer.Exit(3)


@app.command()
def delete(name: str) -> str:
    with open("ran", "a") as file:
        file.write(name)
    return f"deleted {{name}}"


{more}

if __name__ == "__main__":
    app()
"""
RESOURCE = '''
from tooli.annotations import ReadOnly

@app.command(resource="item://{name}", annotations=ReadOnly)
def read(name: str) -> str:
    """Read an item."""
    return f"read {name}"
'''


def write_app(folder: Path, *, plain: bool = False) -> Path:
    path = folder / "guarded.py"
    source = APP.replace("{module}", "typer" if plain else "tooli")
    source = source.replace("{cls}", "Typer" if plain else "Tooli").replace("{{name}}", "{name}")
    path.write_text(source.replace("{more}", "" if plain else RESOURCE))
    return path


def test_the_command_line_has_the_guard_with_input(tmp_path: Path) -> None:
    """Arguments from `--input` do not avoid Typer."""
    path = write_app(tmp_path)
    for argv in (["x"], ["--input", '{"name": "x"}'], ["--input", "-"]):
        stdin = b'{"name": "x"}'
        done = run(path, "delete", *argv, "--json", stdin=stdin, cwd=tmp_path)
        assert done.code == 3, argv
    assert not (tmp_path / "ran").exists()
    payload = '{"name": "x", "password": "open"}'
    done = run(path, "delete", "--input", payload, "--json", cwd=tmp_path)
    assert read_envelope(done.out)["result"] == "deleted x"
    both = ("--password", "open", "delete", "--input", '{"name": "x"}', "--json")
    assert run(path, *both, cwd=tmp_path).code == 2


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("plain", [False, True], ids=["tooli", "typer"])
@pytest.mark.parametrize("deferred", [False, True], ids=["listed", "run_tool"])
def test_mcp_servers_have_the_guard(
    tmp_path: Path, version: str, plain: bool, deferred: bool
) -> None:
    path = write_app(tmp_path, plain=plain)
    flags = ("--defer-loading",) if deferred else ()
    command = launcher_command(path, *flags)

    def arguments(**given: str) -> tuple[str, dict[str, Any]]:
        return (
            ("run_tool", {"name": "delete", "arguments": given})
            if deferred
            else (
                "delete",
                given,
            )
        )

    with connect(path, version, command=command, cwd=tmp_path) as client:
        failure = client.failure(*arguments(name="x"))
        assert failure["code"] == "E4001"
        assert not (tmp_path / "ran").exists()
        client.call(*arguments(name="x", password="open"))
        assert (tmp_path / "ran").read_text() == "x"


def test_http_servers_have_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with run_server(write_app(tmp_path), interface=("api",)) as server:
        base = server.url.rstrip("/")
        denied = httpx2.post(f"{base}/tools/delete", json={"name": "x"})
        assert denied.json()["error"]["code"] == "E4001"
        assert not (tmp_path / "ran").exists()
        done = httpx2.post(f"{base}/tools/delete", json={"name": "x", "password": "open"})
        assert done.json()["result"] == "deleted x"
        document = httpx2.get(f"{base}/openapi.json").json()
        body = document["paths"]["/tools/delete"]["post"]["requestBody"]
        assert "password" in json.dumps(body) or "password" in json.dumps(document["components"])


@pytest.mark.parametrize("mode", ["import", "subprocess"])
def test_exported_functions_have_the_guard(tmp_path: Path, mode: str) -> None:
    path, out = write_app(tmp_path), tmp_path / "out"
    program = f"{sys.executable} {path}"
    export = ("export", "--target", "python", "--mode", mode, "--out", str(out))
    more = ("--command", program) if mode == "subprocess" else ("--app", "guarded:app")
    assert run(path, *export, *more, cwd=tmp_path).code == 0
    generated = next(out.glob("*.py")).stem
    argv = [sys.executable, "-c", f"import {generated} as g; print(g.delete(name='x'))"]
    env = environment(PYTHONPATH=f"{tmp_path}:{out}")
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, timeout=300)
    assert b"exit code 3" in done.stderr
    assert not (tmp_path / "ran").exists()
    env["PASSWORD"] = "open"
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, timeout=300)
    assert done.stdout == b"deleted x\n", done.stderr
