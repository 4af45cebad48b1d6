"""The names and parameters of tools in scripts."""

from __future__ import annotations

import pytest

from tooli import InputError, Tooli
from tooli.annotations import ReadOnly
from tooli.orchestrate.script_tools import ScriptTool, read_script_tools, select_tools


@pytest.fixture
def tools() -> dict[str, ScriptTool]:
    app = Tooli("a")
    users = Tooli("users")
    app.add_typer(users, name="users")

    @users.command("create")
    def create(name: str, class_: str = "x", *, age: int) -> str:
        """Create a user."""
        return name

    for name in ("list", "json", "2fa", "find-all"):
        app.command(name, annotations=ReadOnly)(lambda: 1)
    app.command("hidden", hidden=True)(lambda: 1)
    app.command("direct", callers=["direct"])(lambda: 1)
    return read_script_tools(app.catalog)


def test_names_are_valid_and_hide_no_builtin(tools: dict[str, ScriptTool]) -> None:
    assert sorted(tools) == ["find_all", "json_", "list_", "tool_2fa", "users_create"]


def test_app_with_one_command() -> None:
    app = Tooli("greet")
    app.command()(lambda name: name)
    assert len(read_script_tools(app.catalog)) == 1


def test_required_parameters_come_first(tools: dict[str, ScriptTool]) -> None:
    assert list(tools["users_create"].parameters)[:2] == ["name", "age"]


def test_arguments_by_position_and_by_name(tools: dict[str, ScriptTool]) -> None:
    create = tools["users_create"]
    assert create.read_arguments(("Ada",), {"age": 3}) == {"name": "Ada", "age": 3}
    for args, kwargs, message in (
        (("a", 1, "b", 2), {}, "takes 3 positional arguments but 4 were given"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
        ((), {"nam": "b"}, "unexpected keyword argument 'nam'; did you mean 'name'?"),
    ):
        with pytest.raises(TypeError, match=message.replace("?", r"\?")):
            create.read_arguments(args, kwargs)


def test_selection(tools: dict[str, ScriptTool]) -> None:
    assert list(select_tools(tools, ["find-all", "users.create"], read_only=False)) == [
        *("find_all", "users_create"),
    ]
    assert "users_create" not in select_tools(tools, None, read_only=True)
    with pytest.raises(InputError, match="did you mean 'find_all'"):
        select_tools(tools, ["find-al"], read_only=False)
