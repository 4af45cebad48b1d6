from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest
import typer
from typer.core import TyperGroup

from tooli import Context, Depends, Output, SecretInput, StdinOr, Tooli
from tooli.core.tool import Tool
from tooli.errors import DefinitionError
from tooli.providers.command_routes import read_callback
from tooli.schema.json_schema import input_schema


def find(app: Tooli, name: str = "run") -> Tool:
    tool = app.find(name)
    assert tool is not None
    return tool


def parse(text: str) -> complex:
    return complex(text)


def run(name: str = "x") -> str:
    return name


def make_app(**kwargs: Any) -> Tooli:
    app = Tooli("a", **kwargs)
    app.command()(run)
    app.command("other")(lambda: None)
    return app


def test_an_app_without_callbacks_has_no_routes() -> None:
    tool = find(make_app(context_settings={"help_option_names": ["-h", "--help"]}))
    assert tool.route is None
    assert tool.fn is run


def refuse_default(value: str) -> str:
    if value == "x":
        raise typer.BadParameter("choose a name")
    return value.upper()


@pytest.mark.parametrize(
    ("option", "given", "missing"),
    [
        (typer.Option("x", callback=refuse_default), "ADA", "'name': choose a name"),
        (typer.Option("1", parser=parse), None, (1 + 0j)),
        (typer.Option(..., parser=parse), None, "'name' is required: text"),
    ],
)
def test_defaults_are_converted_and_checked_as_on_the_command_line(
    option: Any, given: str | None, missing: object
) -> None:
    """A check in the callback of an option cannot be avoided by leaving the option out."""
    app = Tooli("a")

    @app.command("run")
    def show(name: str = option) -> Any:
        return [name]

    if given is not None:
        assert app.call("run", name="Ada").unwrap() == [given]
    found = app.call("run")
    assert missing == (found.result[0] if found.ok else found.error.message)


def test_a_callback_that_only_has_a_docstring_needs_no_route() -> None:
    app = make_app()

    @app.callback()
    def main() -> None:
        """Do many things."""

    assert find(app).fn is run

    @app.callback()
    def other() -> None: ...

    assert find(app).fn is run


@pytest.mark.parametrize(
    "kwargs",
    [
        {"context_settings": {"obj": 1}},
        {"context_settings": {"default_map": {"run": {"name": "y"}}}},
        {"result_callback": lambda value: None},
        {"cls": type("Custom", (TyperGroup,), {"invoke": lambda self, ctx: None})},
    ],
    ids=["obj", "default_map", "result_callback", "cls"],
)
def test_settings_that_change_a_run_need_a_route(kwargs: dict[str, Any]) -> None:
    assert find(make_app(**kwargs)).route is not None


def test_parameters_of_callbacks_follow_those_of_the_command() -> None:
    app, group = Tooli("a"), Tooli()
    app.add_typer(group, name="user-data")

    @app.callback()
    def main(name: str = "app", level: Annotated[int, typer.Option(help="How deep.")] = 0) -> None:
        """Start.

        Args:
            name: Who starts it.
        """

    @group.callback()
    def between(name: str = "group", level: int = 1) -> None: ...

    @group.command("run")
    def command(name: str) -> str:
        return name

    tool = find(app, "user-data.run")
    names = ["name", "app_name", "level", "user_data_name", "user_data_level"]
    assert [param.name for param in tool.public_params] == names
    properties = input_schema(tool)["properties"]
    assert properties["level"] == {"type": "integer", "default": 0, "description": "How deep."}
    assert properties["app_name"]["description"] == "Who starts it."
    assert input_schema(tool)["required"] == ["name"]


def test_names_that_are_still_taken_get_an_underscore() -> None:
    app = Tooli("a")

    @app.callback()
    def main(name: str = "x") -> None: ...

    @app.command()
    def run(name: str, app_name: str = "y") -> None: ...

    assert [p.name for p in find(app).public_params] == ["name", "app_name", "app_name_"]


def test_values_that_typer_converts_are_given_as_text() -> None:
    app = Tooli("a")

    @app.callback()
    def main(
        config: Annotated[typer.FileText, typer.Option()],
        size: Annotated[complex, typer.Option(parser=parse)] = 0j,
        token: Annotated[str, typer.Option(envvar="TOKEN")] = ...,  # type: ignore[assignment]
        files: Annotated[Optional[list[typer.FileText]], typer.Option()] = None,  # noqa: UP045
    ) -> None: ...

    @app.command()
    def run() -> None: ...

    schema = input_schema(find(app))
    assert schema["properties"]["config"]["type"] == "string"
    assert schema["required"] == ["config"]  # Typer reads TOKEN
    assert schema["properties"]["files"]["anyOf"][0]["items"]["type"] == "string"
    assert schema["properties"]["size"]["anyOf"][0]["type"] == "string"


def test_a_command_with_an_open_file_has_a_route(tmp_path: Path) -> None:
    app = Tooli("a")

    @app.command()
    def count(file: typer.FileText) -> list[Any]:
        return [isinstance(file, io.TextIOWrapper), len(file.read())]

    (tmp_path / "text").write_text("abc")
    assert app.call("count", file=str(tmp_path / "text")).result == [True, 3]
    assert app.call("count", file=tmp_path / "text").result == [True, 3]
    error = app.call("count", file=str(tmp_path / "missing")).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "file")
    assert app.call("count", file=io.StringIO("abc")).error is not None


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (SecretInput, "do not support SecretInput; declare it in the commands, or take the text"),
        (SecretInput[str] | None, "take the text as str"),
        (list[SecretInput[str]], "take the text as str"),
        (StdinOr[Path], "take the text as str"),
        (Output, "do not support Output"),
        (Context, "do not support Context; use typer.Context, or declare it in the commands"),
        (Annotated[str, Depends(lambda: "x")], "use typer.Context"),
    ],
)
def test_callbacks_do_not_take_what_only_a_call_can_provide(annotation: Any, message: str) -> None:
    def main(value: Any) -> None: ...

    main.__annotations__["value"] = annotation
    with pytest.raises(DefinitionError, match=r"main\(value\): callbacks") as caught:
        read_callback(main)
    assert message in str(caught.value)
    assert f"{__file__}:{main.__code__.co_firstlineno}" in str(caught.value)
    app = make_app()
    app.callback()(main)
    with pytest.raises(DefinitionError, match="callbacks do not support"):
        find(app)
    assert "callbacks do not support" in str(app.call("run").error)
