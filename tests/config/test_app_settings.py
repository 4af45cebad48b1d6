"""The settings object of an app: its fields, what sets them, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from tests.config.conftest import Machine

from tooli import Context, Depends, Option, SecretInput, StdinOr, Tooli
from tooli.config.app_settings import AppSettings, find_app_settings
from tooli.describe.man import build_man_pages
from tooli.describe.sections import collect_app_info
from tooli.errors import DefinitionError, InputError
from tooli.schema import RawText
from tooli.testing import invoke


@dataclass
class Settings:
    """Settings of the shop.

    Args:
        database: The URL of the database.
    """

    database: str
    key: SecretInput[str] = field(default_factory=lambda: SecretInput("none"))
    size: Annotated[int, Option(min=1, max=9, help="Records on a page.")] = 5
    debug: bool = False
    tags: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    made: int = field(default=3, init=False)


class Model(BaseModel):
    database: str = Field(description="The URL of the database.")
    size: Annotated[int, Field(ge=1)] = 5
    token: SecretStr = SecretStr("none")
    limits: dict[str, int] = {}


@pytest.fixture(autouse=True)
def use_machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files of the machine, and no others, contain settings."""
    monkeypatch.chdir(machine.here)
    monkeypatch.setenv("HOME", machine.env["HOME"])
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def make(cls: type = Settings, **flags: str) -> AppSettings:
    settings = AppSettings(cls, "my-shop")
    assert settings.set_flags({name: RawText([text]) for name, text in flags.items()}) == []
    return settings


def in_file(text: str) -> str:
    lines = "\n".join([f"      {line}" for line in text.splitlines()])
    return f"apps:\n  my-shop:\n    settings:\n{lines}\n"


def error_of(settings: AppSettings) -> InputError:
    with pytest.raises(InputError) as caught:
        settings.value()
    assert caught.value.code == "E1011"
    return caught.value


@pytest.mark.parametrize("cls", [Settings, Model])
def test_highest_layer_sets_a_field(
    cls: type, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("system", in_file("database: system\nsize: 2"))
    value = make(cls).value()
    assert (type(value), value.database, value.size) == (cls, "system", 2)
    machine.write("user", in_file("database: user"))
    value = make(cls).value()
    assert (value.database, value.size) == ("user", 2)
    monkeypatch.setenv("MY_SHOP_DATABASE", "environment")
    assert make(cls).value().database == "environment"
    assert make(cls, database="flag").value().database == "flag"


def test_values_have_the_types_of_the_fields(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SHOP_KEY", "hunter2")
    monkeypatch.setenv("MY_SHOP_FOLDERS", "/a:/b c")
    machine.write("user", in_file("database: x\ndebug: true\ntags: a b"))
    value = make().value()
    assert value.key.reveal() == "hunter2"
    assert (value.debug, value.tags) == (True, ["a", "b"])
    assert value.folders == [Path("/a"), Path("/b c")]
    assert (value.size, value.made) == (5, 3)


def test_objects_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SHOP_LIMITS", '{"a": 1}')
    assert make(Model, database="x").value().limits == {"a": 1}


def test_object_is_made_once_for_a_command_line() -> None:
    settings = make(database="one")
    assert settings.value() is settings.value()
    settings.set_flags({"database": RawText(["two"])})
    assert settings.value().database == "two"
    replacement = Settings("test")
    settings.replace(replacement)
    assert settings.value() is replacement


@pytest.mark.parametrize("cls", [Settings, Model])
def test_missing_field_names_its_variable_and_flag(cls: type) -> None:
    error = error_of(make(cls))
    assert error.message == (
        "MY_SHOP_DATABASE: database is required: set this variable, or pass --database"
    )
    assert (error.field, error.suggestion and error.suggestion.fix) == (
        "database",
        "Set MY_SHOP_DATABASE.",
    )


def test_all_invalid_fields_are_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SHOP_SIZE", "10")
    machine.write("user", in_file("debug: perhaps"))
    error = error_of(make())
    found = {row["where"]: row["message"] for row in error.details["errors"]}
    assert found["MY_SHOP_SIZE"] == "size: 10 is more than 9, the largest allowed"
    assert "debug" in found[f"{machine.user}:4"]
    assert "MY_SHOP_DATABASE" in found


def test_errors_of_the_class_name_the_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(BaseModel):
        name: Annotated[str, Field(pattern="^[a-z]+$")] = "x"

    monkeypatch.setenv("MY_SHOP_NAME", "7-hunter2")
    error = error_of(AppSettings(Strict, "my-shop"))
    assert "MY_SHOP_NAME" in error.message

    @dataclass
    class Checked:
        low: int = 1

        def __post_init__(self) -> None:
            raise ValueError("low is wrong")

    Checked.__annotations__["low"] = int
    assert error_of(AppSettings(Checked, "my-shop")).message == "Checked: low is wrong"


def test_text_of_a_secret_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Numbers:
        pin: SecretInput[int]

    Numbers.__annotations__["pin"] = SecretInput[int]
    monkeypatch.setenv("MY_SHOP_PIN", "hunter2")
    error = error_of(AppSettings(Numbers, "my-shop"))
    assert "hunter2" not in json.dumps(error.to_dict() if hasattr(error, "to_dict") else str(error))
    missing = AppSettings(Numbers, "my-shop")
    assert missing.set_flags({"pin": RawText(["env:NO_SUCH_VARIABLE"])})
    missing.prepare()
    assert missing.secrets() == []


def test_unknown_name_in_a_file_is_an_error(machine: Machine) -> None:
    machine.write("user", in_file("databse: x"))
    assert error_of(make(database="x")).message == (
        f"{machine.user}:4: unknown setting 'databse' of my-shop; did you mean 'database'?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apps:\n  my-shop:\n    settings: 5\n", "settings must be a section"),
        ("apps:\n  my-shop:\n    settings:\n      a:\n        b: 1\n", "write an object as JSON"),
    ],
)
def test_section_has_names_and_values(machine: Machine, text: str, message: str) -> None:
    machine.write("user", text)
    assert message in str(machine.resolve("my-shop").faults[0])


def test_project_cannot_set_a_field(machine: Machine) -> None:
    machine.write("project", in_file("database: evil"))
    settings = machine.resolve("my-shop")
    assert settings.of_app == {}
    assert "database is ignored" in str(settings.ignored[0])
    assert make(database="x").value().database == "x"


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (int, 5, "every command has a flag --timeout already"),
        (StdinOr[str], None, "settings cannot have this type"),
        (Context, None, "settings cannot have this type"),
    ],
)
def test_field_that_no_flag_can_set_is_refused(annotation: Any, default: Any, message: str) -> None:
    cls = dataclass(
        type("Wrong", (), {"__annotations__": {"timeout": annotation}, "timeout": default})
    )
    with pytest.raises(DefinitionError, match=message):
        AppSettings(cls, "my-shop").params  # noqa: B018


@pytest.mark.parametrize("cls", [int, "Settings", Settings("x")])
def test_class_must_have_fields(cls: Any) -> None:
    with pytest.raises(DefinitionError, match="must be a dataclass or a pydantic model"):
        Tooli("shop", settings=cls)


def test_names_of_variables_and_flags_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named(BaseModel):
        url: Annotated[str, Option("--db", envvar=["DB_URL", "DB"])] = "none"

    settings = AppSettings(Named, "my-shop")
    assert settings.variables == ["DB_URL"]
    assert list(settings.flags) == ["--db"]
    monkeypatch.setenv("DB", "second")
    assert settings.value().url == "second"


# ------------------------------------------------------------------ an app


def make_app(cls: type = Settings) -> Tooli:
    app = Tooli("my-shop", version="1", settings=cls)

    def show(settings: Any) -> dict[str, Any]:
        """Show the settings."""
        return {"database": settings.database, "size": settings.size}

    show.__annotations__["settings"] = cls
    app.command()(show)

    @app.command()
    def plain(x: int = 1) -> int:
        """Use no settings."""
        return x

    return app


@pytest.mark.parametrize(
    "argv",
    [
        ("--database", "x", "--size=7", "show"),
        ("show", "--size", "7", "--database=x"),
        ("--json", "--database", "x", "show", "--size=7"),
    ],
)
def test_flags_are_accepted_anywhere(argv: tuple[str, ...]) -> None:
    result = invoke(make_app(), *argv, "--json")
    assert json.loads(result.stdout)["result"] == {"database": "x", "size": 7}


def test_flags_of_a_command_come_first() -> None:
    app = make_app()

    @app.command()
    def own(ctx: Context, size: int = 0) -> str:
        """Have a parameter of the same name."""
        return f"{size} {ctx.settings.size}"

    result = invoke(app, "--size", "2", "--database=x", "own", "--size", "8", "--json")
    assert json.loads(result.stdout)["result"] == "8 2"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("show", "--size", "10"), "--size: 10 is more than 9, the largest allowed"),
        (("plain", "--size", "10"), "--size: 10 is more than 9, the largest allowed"),
        (("plain", "--database"), "--database needs a value"),
        (("plain", "--debug=1"), "--debug takes no value"),
        (("--databse", "x", "show"), "There is no option --databse; did you mean --database?"),
    ],
)
def test_wrong_flags_are_errors(argv: tuple[str, ...], message: str) -> None:
    result = invoke(make_app(), "--json", *argv)
    error = json.loads(result.stdout)["error"]
    assert (error["message"], result.exit_code) == (message, 2)


def test_command_without_settings_runs_without_them() -> None:
    assert json.loads(invoke(make_app(), "plain", "--json").stdout)["result"] == 1
    refused = json.loads(invoke(make_app(), "show", "--json").stdout)
    assert refused["error"]["code"] == "E1011"


def test_help_shows_the_flags() -> None:
    for argv in (["--help"], ["show", "--help"], ["show", "--help", "--text"]):
        text = invoke(make_app(), *argv).stdout
        assert "Settings" in text, argv
        assert "--database" in text, argv
        assert "MY_SHOP_DATABASE" in text, argv
    compact = invoke(make_app(), "--help-agent").stdout
    assert "settings: --database=<str>" in compact
    schema = json.loads(invoke(make_app(), "--schema").stdout)
    assert "MY_SHOP_SIZE" in schema["environment"]
    assert "size" not in json.dumps(schema["commands"])


def test_documents_have_the_flags_and_the_variables() -> None:
    texts = {
        name: invoke(make_app(), *argv).stdout
        for name, argv in {
            "skill": ["generate-skill"],
            "agents": ["generate-agents-md"],
            "claude": ["generate-skill", "--format", "claude-md"],
            "llms": ["docs", "llms"],
            "man": ["docs", "man"],
            "manifest": ["--agent-manifest"],
        }.items()
    }
    for name, text in texts.items():
        plain = text.replace("\\-", "-")
        assert "--database" in plain, name
        assert "MY_SHOP_DATABASE" in plain, name
        assert "The URL of the database" in plain, name
        assert "MY_SHOP_MADE" not in plain, name
    manifest = json.loads(texts["manifest"])
    assert manifest["settings"]["size"] == {
        "flags": ["--size"],
        "environment": "MY_SHOP_SIZE",
        "required": False,
        "schema": {
            "type": "integer",
            "minimum": 1,
            "maximum": 9,
            "description": "Records on a page.",
            "default": 5,
        },
    }
    assert "MY_SHOP_SIZE" in manifest["environment"]
    assert '.SH "SETTINGS"' in texts["man"] or ".SH SETTINGS" in texts["man"]
    assert "settings" not in json.loads(invoke(Tooli("other"), "--agent-manifest").stdout)


def test_page_of_a_command_refers_to_the_settings() -> None:
    app = make_app()
    app.command("other")(lambda: None)
    pages = build_man_pages(collect_app_info(app))
    assert "SETTINGS" in pages["my-shop.1"]
    page = pages["my-shop-other.1"].partition("SETTINGS")[2]
    assert "\\-\\-database" in page and "see \\fBmy\\-shop\\fR(1)" in page


def test_config_show_names_the_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SHOP_KEY", "hunter2")
    result = invoke(make_app(), "config", "show", "--database", "x", "--json")
    found = json.loads(result.stdout)["result"]["settings"]
    assert found == {
        "database": {"value": "x", "layer": "flag", "origin": "--database"},
        "key": {"value": "***", "layer": "environment", "origin": "MY_SHOP_KEY"},
    }
    assert "settings" not in json.loads(invoke(Tooli("other"), "config", "show").stdout)["result"]


def test_app_has_the_object() -> None:
    app = make_app()
    app.settings = Settings("test", size=2)
    assert app.settings.database == "test"
    assert app.call("show").unwrap() == {"database": "test", "size": 2}
    app.dependency_overrides[Settings] = lambda: Settings("other")
    assert app.call("show").unwrap() == {"database": "other", "size": 5}
    with pytest.raises(AttributeError):
        _ = Tooli("other").settings


def test_apps_have_objects_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Tooli("inner", settings=Model)

    def both(ctx: Context, outer: Any, settings: Any) -> str:
        """Use the objects of both apps."""
        return f"{outer.database} {settings.database} {ctx.settings.database}"

    both.__annotations__.update(outer=Settings, settings=Model)
    inner.command()(both)
    outer = make_app()
    outer.add_typer(inner, name="inner")
    monkeypatch.setenv("INNER_DATABASE", "b")
    monkeypatch.setenv("MY_SHOP_DATABASE", "a")
    assert outer.call("inner.both").unwrap() == "a b b"
    assert [item.cls for item in find_app_settings(outer._state)] == [Settings, Model]
    alone = Tooli("alone")
    alone.command()(both)
    error = alone.call("both").error
    assert error is not None
    assert "Settings is not the settings class of alone" in error.message


def test_dependencies_and_lifespans_use_the_object() -> None:
    app = make_app()

    @app.lifespan
    def open_database(opened: Tooli) -> Iterator[str]:
        yield f"opened {opened.settings.database}"

    def get_database(settings: Any, ctx: Context) -> str:
        return f"{ctx.lifespan}, {settings.size}"

    get_database.__annotations__["settings"] = Settings

    def use(database: Any) -> str:
        """Use a dependency."""
        return database

    use.__annotations__["database"] = Annotated[str, Depends(get_database)]
    app.command()(use)
    result = invoke(app, "use", "--database", "x", "--json")
    assert json.loads(result.stdout)["result"] == "opened x, 5"


def test_secrets_are_removed_from_output(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()

    def leak(ctx: Context) -> str:
        """Return a secret."""
        return f"key {ctx.settings.key.reveal()}"

    app.command()(leak)
    monkeypatch.setenv("MY_SHOP_KEY", "hunter2-hunter2")
    monkeypatch.setenv("MY_SHOP_DATABASE", "x")
    assert json.loads(invoke(app, "leak", "--json").stdout)["result"] == "key ***"


def test_server_does_not_start_with_wrong_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="MY_SHOP_DATABASE"):
        make_app().asgi()
    monkeypatch.setenv("MY_SHOP_DATABASE", "x")
    make_app().asgi()
