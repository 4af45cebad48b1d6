"""Providers in the tree of an app: when they are asked, what they hide, how they change."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.provided import ToolList, echo_tool

from tooli import Tooli
from tooli.errors import DefinitionError, DependencyError
from tooli.providers import Provider, described_tool, provider_mounts
from tooli.providers.provider_mounts import LazyNames, iter_mounts
from tooli.serving.dispatcher import ToolDispatcher
from tooli.testing import invoke

if TYPE_CHECKING:
    from pathlib import Path


def make_app(provider: Provider, namespace: str | None = None) -> Tooli:
    app = Tooli("app", version="1")

    @app.command()
    def local(x: int = 1) -> int:
        """Return a number."""
        return x

    app.add_provider(provider, namespace)
    return app


# ------------------------------------------------------------------ laziness


@pytest.mark.parametrize("namespace", [None, "remote", "corp.remote"])
def test_own_commands_ask_no_provider(namespace: str | None) -> None:
    provider = ToolList(echo_tool())
    app = make_app(provider, namespace)
    assert invoke(app, "local", "--json").result == 1
    assert invoke(app, "local", "--help").exit_code == 0
    assert invoke(app, "local", env={"TOOLI_OUTPUT": "text"}).exit_code == 0
    assert invoke(app, "local", "--x", "1_0", "--json").result == 10  # Typer parses it
    assert app.call("local").unwrap() == 1
    assert provider.asked == 0


def test_provider_is_asked_once() -> None:
    provider = ToolList(echo_tool(), echo_tool("users.get"))
    app = make_app(provider)
    assert app.call("echo", kind="a").ok
    assert app.call("users.get", kind="a").ok
    assert list(app.catalog)
    assert provider.asked == 1


def test_unused_provider_loads_no_module(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from tooli import Tooli\nfrom tooli.providers import Provider\n"
        "class P(Provider):\n    name = 'p'\n    def tools(self): raise SystemExit(3)\n"
        "app = Tooli('app')\n@app.command()\ndef local() -> int:\n    return 1\n"
        "app.add_provider(P(), namespace='p')\n"
        "try: app(['local', '--json'])\nexcept SystemExit: pass\n"
        "import sys; print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    answer, modules = done.stdout.split("\n", 1)
    assert json.loads(answer)["result"] == 1
    heavy = {"typer", "pydantic", "jsonschema", "asyncio", "json", "typing"}
    assert not heavy & set(modules.split())


# ------------------------------------------------------------------ names


def test_paths_of_tools() -> None:
    provider = ToolList(echo_tool(), echo_tool("users.get"))
    assert [t.key for t in make_app(provider).catalog] == ["local", "echo", "users.get"]
    app = make_app(provider, "corp.remote")
    assert [t.id for t in app.catalog] == [
        *("app.local", "app.corp.remote.echo", "app.corp.remote.users.get")
    ]
    assert app.catalog["corp.remote.echo"].cli_path == ("corp", "remote", "echo")
    assert app.commands.corp.remote.echo(kind="a").unwrap() == {"kind": "a"}


def test_own_command_wins_and_the_other_is_reported() -> None:
    provider = ToolList(echo_tool("local"), echo_tool("local.more"), echo_tool())
    app = make_app(provider)
    assert app.call("local").unwrap() == 1
    assert app.call("echo", kind="a").ok
    assert "the app itself has a command 'local'" in app.catalog.problems["local"].message


def test_namespace_may_be_a_group_of_the_app() -> None:
    app, users = Tooli("app"), Tooli("users")

    @users.command()
    def create() -> str:
        return "created"

    app.add_typer(users, name="users")
    app.add_provider(ToolList(echo_tool()), namespace="users")
    assert app.call("users.create").unwrap() == "created"
    assert app.call("users.echo", kind="a").ok
    assert [tool.key for tool in users.catalog] == ["create"]


def test_several_providers_in_one_namespace() -> None:
    app = Tooli("app")
    app.add_provider(ToolList(echo_tool("a")), namespace="x")
    app.add_provider(ToolList(echo_tool("b")), namespace="x")
    app.add_provider(ToolList(echo_tool("a"), echo_tool("c")))
    app.add_provider(ToolList(echo_tool("d")))
    assert [tool.key for tool in app.catalog] == ["a", "c", "d", "x.a", "x.b"]


def test_provider_of_an_inner_app() -> None:
    inner, app = Tooli("inner"), Tooli("app")
    provider = ToolList(echo_tool())
    inner.add_provider(provider, "remote")
    app.mount(inner, namespace="inner")
    assert app.call("inner.remote.echo", kind="a").ok
    assert [mount.provider for mount in iter_mounts(app._state)] == [provider]


def test_mount_without_namespace_uses_the_name_of_the_app() -> None:
    inner, app = Tooli("inner"), Tooli("app")

    @inner.command()
    def one() -> int:
        return 1

    @inner.command()
    def two() -> int:
        return 2

    app.mount(inner)
    assert app.call("inner.two").unwrap() == 2


def test_duplicate_names_of_a_provider_are_reported() -> None:
    provider = ToolList(echo_tool("a"), echo_tool("a"), echo_tool("a.b"), echo_tool("c"))
    problems = make_app(provider).catalog.problems
    assert "two tools with the name 'a'" in problems["a"].message
    assert "in a group that has the name of a tool" in problems["a.b"].message


@pytest.mark.parametrize(("provider", "namespace"), [(object(), None), (ToolList(), "$")])
def test_invalid_arguments_are_refused(provider: Any, namespace: str | None) -> None:
    with pytest.raises(DefinitionError):
        Tooli("app").add_provider(provider, namespace)


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (ConnectionError("no \x1b[1mserver"), "ConnectionError: no server"),
        (DependencyError("The server is down."), "The server is down."),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_failing_provider_hides_no_other_tool(failure: BaseException, reason: str) -> None:
    failing, working = ToolList(), ToolList(echo_tool())
    failing.failure = failure
    app = make_app(failing, "bad")
    app.add_provider(working)
    assert [tool.key for tool in app.catalog] == ["local", "echo"]
    problem = app.catalog.problems["bad"]
    assert problem.message == f"the provider 'listed': it cannot list its tools: {reason}"
    assert problem.location is not None
    assert "test_provider_mounts.py" in problem.location
    result = app.call("bad.thing")
    assert result.error is not None
    assert reason in result.error.message
    help_text = invoke(app, "--help")
    assert f"Warning: {problem}" in help_text.stderr


def test_too_many_tools_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_mounts, "MAX_TOOLS", 2)
    app = make_app(ToolList(*[echo_tool(f"t{i}") for i in range(3)]))
    assert "it has more than 2 tools" in app.catalog.problems["listed"].message


# ------------------------------------------------------------------ changes


def test_changed_tools_replace_the_old_ones_with_one_notice() -> None:
    provider = ToolList(echo_tool("old"))
    app = make_app(provider, "x")
    dispatcher = ToolDispatcher(app)
    notices: list[tuple[str, str | None]] = []
    app._state.change_listeners.append(lambda kind, uri: notices.append((kind, uri)))
    assert list(dispatcher.tools) == ["local", "x_old"]
    running = dispatcher.tools["x_old"]
    provider.items = [echo_tool("new"), echo_tool("newer")]
    assert provider.changed is not None
    provider.changed()
    assert notices == [("tools", None)]
    assert list(dispatcher.tools) == ["local", "x_new", "x_newer"]
    assert running.fn(kind="a") == {"kind": "a"}  # a call in progress keeps its tool
    provider.changed()  # nothing is different: the same tools
    assert notices == [("tools", None)]


def test_failed_reload_keeps_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    provider = ToolList(echo_tool())
    app = make_app(provider)
    dispatcher = ToolDispatcher(app)
    assert list(dispatcher.tools) == ["local", "echo"]
    notices: list[tuple[str, str | None]] = []
    app._state.change_listeners.append(lambda kind, uri: notices.append((kind, uri)))
    provider.failure = OSError("broken")
    assert provider.changed is not None
    provider.changed()
    assert "OSError: broken" in capsys.readouterr().err  # nobody has to list the tools for that
    provider.changed()
    assert capsys.readouterr().err == ""
    assert list(dispatcher.tools) == ["local", "echo"]
    assert "OSError: broken" in app.catalog.problems["listed"].message
    assert notices == []  # the list is the same for clients
    provider.failure = None
    provider.changed()
    assert not app.catalog.problems


def test_change_before_the_first_use_asks_nothing() -> None:
    provider = ToolList(echo_tool())
    app = make_app(provider)
    (mount,) = app._state.mounts
    mount.watch()
    mount.watch()
    assert provider.changed is not None
    provider.changed()
    assert not mount.is_loaded


def test_unknown_command_names_the_tool_that_was_left_out() -> None:
    class Partial(ToolList):
        @property
        def problems(self) -> dict[str, str]:
            return {"torn": "torn: the schema is not valid", "users.old": "too long"}

    app = make_app(Partial(echo_tool()))
    assert "the provider 'listed': torn: the schema" in app.call("torn").error.message
    assert "users.old: too long" in app.call("old").error.message
    assert "provider" not in app.call("other").error.message
    assert app._state.mounts[0].check() is None


def test_provider_that_cannot_be_observed_is_reported() -> None:
    class Broken(ToolList):
        def watch(self, changed: Any) -> None:
            raise OSError("no inotify")

    app = make_app(Broken(echo_tool()))
    assert list(ToolDispatcher(app).tools) == ["local", "echo"]


def test_changes_from_many_threads() -> None:
    provider = ToolList(echo_tool("t0"))
    app = make_app(provider, "x")
    dispatcher = ToolDispatcher(app)
    assert dispatcher.tools

    def change(i: int) -> None:
        provider.items = [echo_tool(f"t{i}"), echo_tool(f"u{i}")]
        assert provider.changed is not None
        provider.changed()
        names = [name[3:] for name in dispatcher.tools if name != "local"]
        assert len(set(names)) == 1  # never half of one list and half of another

    threads = [threading.Thread(target=change, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ------------------------------------------------------------------ the end


def test_used_provider_is_closed_once() -> None:
    used, unused = ToolList(echo_tool()), ToolList()
    app = make_app(used)
    app.add_provider(unused, "unused")
    assert app.call("echo", kind="a").ok
    for mount in app._state.mounts:
        mount.close()
        mount.close()
    assert (used.closed, unused.closed) == (1, 0)


def test_provider_is_closed_when_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from tooli import Tooli\nfrom tooli.providers import Provider, described_tool\n"
        "class P(Provider):\n    name = 'p'\n"
        "    def tools(self): yield described_tool('a', dict)\n"
        "    def close(self): open('closed', 'w').close(); raise OSError('late')\n"
        "app = Tooli('app')\napp.add_provider(P(), namespace='p')\napp()\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "app.py", "p", "a", "--yes", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["ok"]
    assert (tmp_path / "closed").exists()
    assert done.stderr == ""


# ------------------------------------------------------------------ rules


def test_rules_of_the_app_apply_to_provided_tools() -> None:
    app = Tooli("app", security_policy="strict")
    app.add_provider(ToolList(echo_tool(), echo_tool("free", auth=[])))
    refused = app.call("echo", kind="a")
    assert refused.error is not None
    assert refused.error.code == "E2002"
    assert app.call("free", kind="a").ok


def test_tool_without_effects_needs_a_confirmation() -> None:
    app = Tooli("app")
    app.add_provider(ToolList(described_tool("drop", dict, rate_limit="5/minute")))
    refused = app.call("drop")
    assert refused.error is not None
    assert refused.error.code == "E1010"
    assert app.call("drop", yes=True).unwrap() == {}
    assert app.catalog["drop"].limits.rate_counters


def test_lazy_names() -> None:
    calls: list[str] = []

    def load() -> list[tuple[str, int]]:
        calls.append("loaded")
        return [("a", 9), ("b", 2)]

    names = LazyNames({"a": 1}, load)
    assert names["a"] == 1
    assert names.get("a") == 1
    assert not calls
    assert names.get("b") == 2
    assert names.get("c", 3) == 3
    with pytest.raises(KeyError):
        names["c"]
    assert (len(names), list(names), {**names}) == (2, ["a", "b"], {"a": 1, "b": 2})
    assert list(names.values()) == [1, 2]
    assert calls == ["loaded"]


def test_threads_that_need_a_provider_at_once_all_find_its_tools() -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(ToolList):
        def tools(self) -> Any:
            entered.set()
            release.wait(60)
            return super().tools()

    app = Tooli("app")
    app.command("local")(lambda: 1)
    app.add_provider(Slow(echo_tool()))
    found: list[bool] = []

    def call() -> None:
        found.append(app.find("echo") is not None)

    threads = [threading.Thread(target=call) for _ in range(4)]
    threads[0].start()
    entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_dry_run_without_an_optional_argument() -> None:
    app = make_app(ToolList(echo_tool()))
    plan = app.options(dry_run=True).call("echo", kind="a").unwrap()
    assert plan["arguments"] == {"kind": "a"}
