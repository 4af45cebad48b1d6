"""ToolDispatcher: tools by name, options among the arguments, errors without a tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tooli import InputError, Tooli
from tooli.core.call import Caller
from tooli.core.tool import Tool
from tooli.providers import Provider
from tooli.serving.dispatcher import (
    ToolDispatcher,
    check_rate_limit,
    is_installed,
    path_without_root,
    present_request_error,
    split_options,
    too_busy_error,
    unknown_tool_error,
)

CALLER = Caller("http", maybe_agent=True)


def make_app() -> Tooli:
    app, users = Tooli("shop", version="1"), Tooli("users")

    @users.command("list")
    def list_users(limit: int = 3) -> int:
        """List users."""
        return limit

    @app.command()
    def buy(item: str, timeout: int = 0) -> str:
        """Buy something."""
        return item

    app.add_typer(users, name="users")
    return app


def test_tools_include_commands_that_are_added_later() -> None:
    app = make_app()
    dispatcher = ToolDispatcher(app)
    assert list(dispatcher.tools) == ["buy", "users_list"]
    app.command("late")(lambda: 1)
    assert "late" in dispatcher.tools
    assert (dispatcher.name, dispatcher.version) == ("shop", "1")


def test_invalid_definition_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Partial(Provider):
        name = "partial"
        problems: Mapping[str, str] = {"a": "it is torn"}

        def tools(self) -> list[Tool]:
            return []

    provider = Partial()
    app = Tooli("app")
    app.add_provider(provider)
    dispatcher = ToolDispatcher(app)
    for text, reports in (("it is torn", 1), ("it is torn", 0), ("it is wet", 1), ("it is wet", 0)):
        provider.problems = {"a": text}
        app._state.mounts[0].reload()
        app._state.invalidate()
        assert list(dispatcher.tools) == []
        assert capsys.readouterr().err.count(f"a: {text}") == reports


def test_prepared_call_returns_its_result() -> None:
    dispatcher = ToolDispatcher(make_app())
    prepared = dispatcher.prepare(dispatcher.tools["users_list"], {"limit": 5}, CALLER)
    assert prepared.run().envelope()["result"] == 5


def test_invalid_rate_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    check_rate_limit("10/minute")
    with pytest.raises(InputError, match="The setting rate_limit is 'often'"):
        check_rate_limit("often")
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "often")
    with pytest.raises(InputError) as caught:
        ToolDispatcher(make_app())
    assert caught.value.field == "rate_limit"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("buyy", "did you mean 'buy'"),
        ("users.lst", "did you mean 'list'"),
        ("users/lst", "did you mean 'list'"),
        ("users", "command"),
    ],
)
def test_unknown_tool_error_suggests_a_name(name: str, message: str) -> None:
    error = unknown_tool_error(make_app(), name)
    assert message in error.message
    assert error.code == "E1001"


def test_request_error_has_the_app_as_its_tool() -> None:
    envelope = present_request_error(make_app(), CALLER, too_busy_error()).envelope()
    assert envelope["error"]["code"] == "E4075"
    assert envelope["meta"]["tool"] == "shop"


@pytest.mark.parametrize(
    ("arguments", "requested", "remaining", "field", "value"),
    [
        ({"dry_run": True}, None, {}, "dry_run", True),
        ({"dry_run": "true"}, None, {}, "dry_run", True),
        ({"dry_run": " False"}, {"dry_run": "True"}, {}, "dry_run", True),
        ({"dry_run": None, "limit": None, "verbose": None}, None, {}, "dry_run", False),
        ({"dry_run": True}, {"dry_run": None}, {}, "dry_run", True),
        ({}, {"dry_run": True}, {}, "dry_run", True),
        ({"dry_run": True}, {"dry_run": False}, {}, "dry_run", False),
        ({}, {"dry_run": 1}, {}, "dry_run", True),
        ({"timeout": 5}, None, {"timeout": 5}, "timeout", None),  # a parameter of the tool
        ({}, {"timeout": 5}, {}, "timeout", 5),
        ({"tooli_timeout": 5, "timeout": 1}, None, {"timeout": 1}, "timeout", 5),
        ({}, {"dryrun": None}, {}, "dry_run", False),
    ],
)
def test_options_are_separated_from_arguments(
    arguments: dict[str, Any], requested: object, remaining: dict[str, Any], field: str, value: Any
) -> None:
    tool = make_app().find("buy")
    assert tool is not None
    rest, options, problems = split_options(tool, arguments, requested)
    assert (rest, problems) == (remaining, ())
    assert getattr(options, field) == value


def test_invalid_option_is_reported_as_a_problem() -> None:
    tool = make_app().find("buy")
    assert tool is not None
    (problem,) = split_options(tool, {}, {"timeout": "soon"})[2]
    assert problem.field == "timeout"
    for value in ("maybe", 2, [], {}, 0.5):
        _, options, (problem,) = split_options(tool, {"yes": value}, None)
        assert (problem.code, problem.field, options.yes) == ("E1007", "yes", False)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ({"dryrun": True}, "Unknown option 'dryrun'; did you mean 'dry_run'?"),
        ({"dry-run": True}, "Unknown option 'dry-run'; did you mean 'dry_run'?"),
        ({"zzz": 1}, "Unknown option 'zzz'; the options are "),
        ({"x" * 5000: 1}, "Unknown option 'xxx"),
        ("dry_run", "The options must be a JSON object"),
        ([], "The options must be a JSON object"),
        (False, "The options must be a JSON object"),
    ],
)
def test_unknown_option_is_reported_as_a_problem(requested: object, message: str) -> None:
    """The caller believes that the call is a dry run."""
    tool = make_app().find("buy")
    assert tool is not None
    for arguments in ({}, {"yes": True}):
        _, options, (problem,) = split_options(tool, arguments, requested)
        assert (problem.code, options.dry_run) == ("E1007", False)
        assert problem.message.startswith(message) and len(problem.message) < 1000
    many = {f"option{i}": 1 for i in range(1000)}
    assert len(split_options(tool, {}, many)[2]) == 10


@pytest.mark.parametrize(
    ("path", "root", "result"),
    [
        ("/a/b", "", "/a/b"),
        ("/a/b", "/a", "/b"),
        ("/a", "/a/", "/"),
        ("/ab", "/a", "/ab"),
        ("/b", "/", "/b"),
        ("/b", None, "/b"),
    ],
)
def test_root_path_is_removed_from_the_path(path: str, root: str | None, result: str) -> None:
    assert path_without_root({"path": path, "root_path": root}) == result


def test_is_installed_finds_packages_without_import(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_installed("json")
    assert is_installed("wsgiref")  # not imported yet
    assert not is_installed("no_such_package")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert not is_installed("uvicorn")
