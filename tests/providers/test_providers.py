"""Registered commands and the tree that they form."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.core import AppState
from tooli.core.call import PYTHON_CALLER, Call
from tooli.core.tool import Tool
from tooli.errors import DefinitionError
from tooli.providers import (
    Registration,
    apply_rules_of_apps,
    build_command_tree,
    custom_stages_of,
    read_all_tools,
)
from tooli.testing import invoke


def make_app() -> Tooli:
    """An app with a command `list-all` and a group `users` with a command `create`."""
    app, users = Tooli("app", version="2"), Tooli("users")

    @app.command()
    def list_all() -> list[str]:
        """List all.

        With more text.
        """
        return []

    @users.command()
    def create(name: str) -> str:
        return name

    app.add_typer(users, name="users")
    return app


def test_tree_contains_commands_and_groups() -> None:
    tree = make_app().tree()
    assert list(tree.commands) == ["list-all"]
    assert list(tree.groups) == ["users"]
    assert [path for path, _ in tree.walk()] == [("list-all",), ("users", "create")]
    assert tree.only_command is None
    assert tree.typer_reason is None


def test_tree_is_cached_until_a_registration() -> None:
    app = make_app()
    tree = app.tree()
    assert app.tree() is tree
    app.command()(lambda: None)
    assert app.tree() is not tree


def test_tree_is_the_same_once_typer_is_initialized() -> None:
    app = make_app()
    before = [path for path, _ in app.tree().walk()]
    assert app.registered_commands  # initializes Typer
    assert [path for path, _ in build_command_tree(app).walk()] == before


def test_group_without_a_name_is_merged() -> None:
    app, inner = Tooli("app"), Tooli()
    inner.command(name="one")(lambda: None)
    inner.command(name="two")(lambda: None)
    app.add_typer(inner)
    assert list(app.tree().commands) == ["one", "two"]


def test_commands_of_a_plain_typer_group_are_marked() -> None:
    app, plain = Tooli("app"), typer.Typer()
    plain.command(name="greet")(lambda: None)
    app.add_typer(plain, name="plain")
    registration = app.tree().groups["plain"].commands["greet"]
    assert registration.is_from_plain_typer
    assert not make_app().tree().commands["list-all"].is_from_plain_typer


class DynamicGroup(typer.core.TyperGroup):
    """A group with a command `dynamic` that is not registered."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "dynamic":
            return typer.core.TyperCommand("dynamic", callback=lambda: print("done"))
        return super().get_command(ctx, cmd_name)


@pytest.mark.parametrize("is_initialized", [False, True], ids=["registrations", "typer"])
@pytest.mark.parametrize("kwargs", [{"cls": DynamicGroup}, {"context_settings": {"a": 1}}])
def test_tree_reports_keywords_that_only_typer_supports(
    kwargs: dict[str, Any], is_initialized: bool
) -> None:
    app = Tooli("app", **kwargs)
    app.command("one")(lambda: None)
    app.command("two")(lambda: None)
    if is_initialized:
        app._initialize_typer()
    tree = app.tree()
    assert tree.typer_reason == "the app has settings that only Typer supports"
    assert tree.has_dynamic_commands is ("cls" in kwargs)


@pytest.mark.parametrize("is_initialized", [False, True], ids=["registrations", "typer"])
@pytest.mark.parametrize("place", ["app", "callback", "add_typer", "group", "plain group"])
def test_dynamic_command_of_a_custom_group_class_runs(place: str, is_initialized: bool) -> None:
    app = Tooli("app", **({"cls": DynamicGroup} if place == "app" else {}))
    group: Any = typer.Typer(cls=DynamicGroup) if place == "plain group" else Tooli()
    if place == "group":
        group = Tooli(cls=DynamicGroup)
    for each in (app, group):
        each.command("one")(lambda: None)
        each.command("two")(lambda: None)
    if place == "callback":
        app.callback(cls=DynamicGroup)(lambda: None)
    if place == "add_typer":
        app.add_typer(group, name="group", cls=DynamicGroup)
    else:
        app.add_typer(group, name="group", callback=lambda: None)
    if is_initialized:
        app._initialize_typer()
    path = [] if place in ("app", "callback") else ["group"]
    assert invoke(app, "--json", *path, "dynamic").result == "done"
    assert invoke(app, "--json", *path, "unknown").error["code"] == "E1001"


def test_callback_flags_have_their_number_of_values() -> None:
    app = make_app()

    @app.callback()
    def main(verbose: bool = False, size: tuple[int, int] = (1, 1)) -> None: ...

    flags = app.tree().callback_flags()
    assert flags == {"--verbose": 0, "--no-verbose": 0, "--size": 2}


def test_tool_of_the_only_command_has_no_path_on_the_command_line() -> None:
    app = Tooli("app", version="2")
    app.command(name="go")(lambda: None)
    tool = app.find("go")
    assert tool is not None
    assert (tool.id, tool.path, tool.cli_path, tool.version) == ("app.go", ("go",), (), "2")


def test_tool_is_read_once() -> None:
    app = make_app()
    registration = app.tree().commands["list-all"]
    assert registration.tool(("list-all",)) is registration.tool(("list-all",))


def test_short_help_is_the_first_line_of_the_docstring() -> None:
    app = make_app()
    assert app.tree().commands["list-all"].short_help(("list-all",)) == "List all."


class TestLazyCommands:
    def test_module_is_imported_on_first_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = types.ModuleType("lazily_loaded")
        module.work_hard = lambda: "done"  # type: ignore[attr-defined]
        app = Tooli("app")
        app.lazy_command("lazily_loaded:work_hard", help="Work.")
        registration = app.tree().commands["work-hard"]
        assert registration.short_help(("work-hard",)) == "Work."
        monkeypatch.setitem(sys.modules, "lazily_loaded", module)
        assert registration.fn() == "done"
        assert registration.fn is module.work_hard

    def test_missing_module_is_a_definition_error(self) -> None:
        app = Tooli("app")
        app.lazy_command("no_such_module:work")
        with pytest.raises(DefinitionError, match="cannot be loaded: No module named") as caught:
            app.find("work")
        assert __file__ in str(caught.value)

    def test_target_without_a_function_is_a_definition_error(self) -> None:
        with pytest.raises(DefinitionError, match=r"must be 'package\.module:function'"):
            Tooli("app").lazy_command("module")


def test_invalid_command_does_not_affect_the_others() -> None:
    app = make_app()

    @app.command()
    def broken(value: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    tools, problems = read_all_tools(app.tree())
    assert [tool.key for tool in tools] == ["list-all", "users.create"]
    assert list(problems) == ["broken"]
    assert "NoSuchType" in problems["broken"].message
    assert problems["broken"].location.startswith(__file__)


def test_prepare_fills_the_call_only_if_stages_apply() -> None:
    app = make_app()
    tool = app.find("list-all")
    assert tool is not None
    call = Call(tool, {}, PYTHON_CALLER, [])
    assert app.prepare(call) == (call, app.stages_for(tool, call.options))
    prepared, stages = app.prepare(call.replace(options=call.options.replace(dry_run=True)))
    assert len(stages) > 1
    assert (prepared.meta, prepared.secrets) == ({}, [])


def test_command_name_comes_from_the_function_unless_given() -> None:
    state = Tooli("app")._state

    def find_all_files() -> None: ...

    assert Registration(state, None, find_all_files, {}).command_name == "find-all-files"
    assert Registration(state, "ff", find_all_files, {}).command_name == "ff"
    assert Registration(state, None, None, {}, "a.b:do_it").command_name == "do-it"


def test_rules_of_all_apps_along_the_path_apply() -> None:
    root, middle, leaf = (AppState(name, {}) for name in ("root", "middle", "leaf"))
    tool = Tool("root", ("t",), "root.t", ("t",), print, (), frozenset())
    assert apply_rules_of_apps(tool, (root,)) is tool
    root.permissions, leaf.permissions = ("fs:read",), ("fs:read:./data",)
    middle.declared_policy = "strict"
    guard = apply_rules_of_apps(tool, (root, middle, leaf)).guard
    assert guard.app_permissions == (("fs:read:./data",), ("fs:read",))
    assert guard.policy == "strict"


def test_custom_stages_of_outer_apps_come_first() -> None:
    outer, inner = Tooli("outer"), Tooli("inner")
    outer.add_typer(inner, name="inner")

    @inner.use
    def second(call):
        return (yield call)

    @outer.use
    def first(call):
        return (yield call)

    both = custom_stages_of((outer._state, inner._state))
    assert [custom.stage for custom in both] == [first, second]
    assert [custom.stage for custom in custom_stages_of((outer._state,))] == [first]


def test_levels_of_a_command() -> None:
    app = make_app()
    tree = app.tree()
    create = tree.groups["users"].commands["create"]
    assert [state.name for state in tree.levels(("users", "create"), create) or ()] == [
        "app",
        "users",
    ]
    assert tree.levels(("list-all",), create) is None
    assert tree.levels(("nope", "create"), create) is None
    assert tree.levels((), create) is None
