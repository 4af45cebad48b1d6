"""Other spellings: underscores, arguments by name, the name of an only command."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from tooli import Annotated, Argument, Tooli
from tooli.testing import invoke


@pytest.fixture
def finder() -> Tooli:
    """Return an app with a single command that returns its arguments."""
    app = Tooli("finder")

    @app.command()
    def find_files(
        pattern: str, places: Annotated[list[str] | None, Argument()] = None, max_size: int = 0
    ) -> dict[str, Any]:
        return {"pattern": pattern, "places": places, "max_size": max_size}

    return app


@pytest.fixture
def printer() -> Tooli:
    """Return an app with a single command that prints."""
    app = Tooli("printer")

    @app.command()
    def show(name: str, max_size: int = 0) -> None:
        print(name, max_size)

    return app


@pytest.mark.parametrize(
    "argv",
    [
        ["x", "a", "b", "--max-size", "3"],
        ["find-files", "x", "a", "b", "--max-size", "3"],
        ["x", "a", "b", "--max_size", "3"],
        ["x", "a", "b", "--max_size=3"],
        ["--pattern", "x", "a", "b", "--max-size", "3"],
        ["a", "b", "--pattern=x", "--max-size", "3"],
        ["x", "--places", "a", "--places", "b", "--max_size", "3"],
        ["find-files", "--max-size", "3", "--pattern", "x", "--", "a", "b"],
    ],
)
@pytest.mark.parametrize("flags", [["--json"], ["--response_format", "detailed", "--json"]])
def test_spellings_mean_the_same(finder: Tooli, argv: list[str], flags: list[str]) -> None:
    done = invoke(finder, *flags, *argv)
    assert done.result == {"pattern": "x", "places": ["a", "b"], "max_size": 3}


def test_typer_path_accepts_the_same_spellings() -> None:
    app = Tooli("typer", context_settings={"help_option_names": ["-h", "--help"]})

    @app.command(native=False)
    def pair(first: str, second: str = "s", max_size: int = 0) -> list[object]:
        return [first, second, max_size]

    assert invoke(app, "--second", "-b", "a", "--max_size", "3", "--json").result == ["a", "-b", 3]
    assert invoke(app, "--json", "pair", "--second=-b", "--first", "a").result == ["a", "-b", 0]
    assert invoke(app, "pair", "--first", "a", "--json").result == ["a", "s", 0]


def test_last_value_of_an_argument_by_name_wins(finder: Tooli) -> None:
    assert invoke(finder, "--pattern", "x", "--pattern", "y", "--json").result["pattern"] == "y"


def test_argument_by_name_without_a_value(finder: Tooli) -> None:
    error = invoke(finder, "--json", "--pattern").error
    assert error is not None
    assert error["details"]["errors"][0]["message"] == "Option --pattern needs a value"


def test_argument_by_name_after_a_missing_one_is_an_error() -> None:
    app = Tooli("pairs")

    @app.command()
    def pair(
        first: Annotated[str, Argument()] = "f", second: Annotated[str, Argument()] = "s"
    ) -> list[str]:
        return [first, second]

    error = invoke(app, "--second", "b", "--json").error
    assert error is not None
    assert error["message"] == "'second' is an argument: give it by position, without a name"


def test_flag_of_the_framework_wins_over_the_name_of_an_argument() -> None:
    app = Tooli("limits")

    @app.command()
    def cut(limit: int) -> list[int]:
        return [1, 2, 3][:limit]

    assert invoke(app, "3", "--limit", "1", "--json").result == [1]


def test_name_of_the_command_can_be_an_argument(finder: Tooli) -> None:
    assert invoke(finder, "--json", "--", "find-files").result["pattern"] == "find-files"
    assert invoke(finder, "find-files", "find-files", "--json").result["pattern"] == "find-files"


def test_suggested_line_keeps_a_name_as_an_argument(finder: Tooli) -> None:
    error = invoke(finder, "--json", "--max-size", "x", "--", "docs").error
    assert error is not None
    argv = error["suggestion"]["argv"]
    assert argv == ["finder", "--max-size", "<max_size>", "--json", "--", "docs"]


@pytest.mark.parametrize("argv", [["show", "Ada"], ["--name", "Ada"], ["Ada", "--max_size", "3"]])
def test_typer_rejects_other_spellings_of_a_printing_command(
    printer: Tooli, argv: list[str]
) -> None:
    done = invoke(printer, *argv)
    assert done.exit_code == 2 and done.stderr.startswith("Usage: printer")


@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        (["show", "Ada"], "Ada 0"),
        (["--name", "Ada"], "Ada 0"),
        (["Ada", "--max_size", "3"], "Ada 3"),
        (["show"], "show 0"),
        (["show", "--max_size", "3"], "show 3"),
    ],
)
def test_printing_command_with_a_framework_flag(
    printer: Tooli, argv: list[str], printed: str
) -> None:
    assert invoke(printer, *argv, "--json").result == printed


def test_typer_decides_with_tooli_output_text(finder: Tooli) -> None:
    assert invoke(finder, "x", "--max_size", "3", mode="text").exit_code == 2
    assert invoke(finder, "x", "--max_size", "3", "--json", mode="text").result["max_size"] == 3
    assert "find-files" in invoke(finder, "find-files", mode="text").stdout


class Size(TypedDict):
    width: int


@pytest.mark.parametrize("mode", ["auto", "json", "text", "plain"])
@pytest.mark.parametrize(
    "argv", [["--size", '{"width": 3}'], ["--size.width", "3"], ['{"width": 3}']]
)
def test_object_by_name_in_every_mode(argv: list[str], mode: str) -> None:
    """Typer has no objects, so it decides nothing about the commands that take them."""
    app = Tooli("app")
    app.command("other")(lambda: None)

    @app.command()
    def show(size: Size) -> None:
        print(size["width"])

    assert "3" in invoke(app, "show", *argv, mode=mode).stdout
    assert invoke(app, "show", *argv, mode=mode).exit_code == 0
