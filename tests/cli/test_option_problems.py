"""Problems with options, and the closest names."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel

from tooli import Option, Tooli
from tooli.cli.option_problems import choice_problem, unknown_option_problem
from tooli.testing import invoke


def test_choice_with_a_close_value() -> None:
    problem = choice_problem("-o", "output", "jsn", ("json", "text"))
    assert problem.message == "-o: 'jsn' is not one of json, text; did you mean json?"
    assert (problem.code, problem.field, problem.suggested_value) == ("E1007", "output", "json")


def test_choice_without_a_close_value_suggests_all() -> None:
    assert choice_problem("-o", "output", "zzz", ("a", "b")).suggested_value == ("a", "b")


@pytest.mark.parametrize(
    ("name", "message", "suggested"),
    [
        ("--jsn", "There is no option --jsn; did you mean --json?", "--json"),
        ("--zzz", "There is no option --zzz", None),
    ],
)
def test_unknown_option(name: str, message: str, suggested: str | None) -> None:
    problem = unknown_option_problem(name, ["--json", "--yes"])
    assert (problem.message, problem.suggested_value) == (message, suggested)


def test_value_of_an_unknown_option_goes_to_the_closest_parameter() -> None:
    app = Tooli("shop")

    @app.command()
    def price(item: str, count: int = 1, round_up: bool = False) -> int:
        return count

    app.command("other")(lambda: None)
    error = invoke(app, "price", "pear", "--cuont", "3", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "price", "pear", "--count", "3", "--json"]
    error = invoke(app, "price", "pear", "--roundup", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "price", "pear", "--round-up", "--json"]


def make_shop() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def price(item: str) -> str:
        return item

    @app.command()
    def show(item: str) -> None:
        print(item)

    return app


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("--serve-mcp stdio", "mcp serve --transport stdio"),
        ("--serve-mcp http --port 80", "mcp serve --transport http --port 80"),
        ("--serve-mcp", "mcp serve"),
        ("--json --export=openai", "--json export --target openai"),
        ("-h", "--help"),
        ("price -h", "price --help"),
        ("price pear --force", "price pear --yes"),
        ("price pear --export openai", "export --target openai"),
    ],
)
def test_options_that_have_a_counterpart(line: str, fixed: str) -> None:
    done = invoke(make_shop(), *line.split())
    assert done.error is not None and done.exit_code == 2
    assert done.error["suggestion"]["argv"] == ["shop", *fixed.split()]
    shown = invoke(make_shop(), *line.split(), "--text").stderr
    assert f"Try: shop {fixed}" in shown.replace(" --text", "")


@pytest.mark.parametrize("flag", ["--page", "--offset"])
def test_options_for_pages_point_to_the_cursor(flag: str) -> None:
    error = invoke(make_shop(), "price", "pear", flag, "2", "--json").error
    assert error is not None
    assert error["message"].startswith(f"There is no option {flag}; use --limit N, and --cursor")


def test_counterpart_behind_a_command_of_the_app() -> None:
    app = make_shop()
    app.command("mcp")(lambda: None)
    error = invoke(app, "--serve-mcp", "stdio", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"][:4] == ["shop", "tooli", "mcp", "serve"]


def test_parameter_of_that_name_is_suggested_first() -> None:
    app = make_shop()

    @app.command()
    def drop(forced: bool = False) -> None: ...

    error = invoke(app, "drop", "--force", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "drop", "--forced", "--json"]


def test_typer_reports_the_options_of_a_printing_command() -> None:
    assert "No such option: --force" in invoke(make_shop(), "show", "pear", "--force").stderr


def make_finder() -> Tooli:
    app = Tooli("finder")

    @app.command()
    def find_files(pattern: str, root: str = ".") -> str:
        return pattern + root

    return app


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("find-filse a --json", "find-files a --json"),
        ("find_filse a --root b", "find-files a --root b"),
        ("search_tools x", "search-tools x"),
        ("mcpp serve", "mcp serve"),
    ],
)
def test_misspelled_command_of_an_app_with_one_command(line: str, fixed: str) -> None:
    error = invoke(make_finder(), *line.split()).error
    assert error is not None and error["code"] == "E1005"
    assert error["suggestion"]["argv"] == ["finder", *fixed.split()]
    assert error["suggestion"]["fix"] == f"Use {fixed.split()[0]!r}."


def test_extra_argument_that_is_no_command() -> None:
    error = invoke(make_finder(), "alpha", "beta").error
    assert error is not None
    assert error["message"] == "Too many arguments: beta"
    assert error["suggestion"]["argv"] == ["finder", "alpha"]


def test_advice_for_an_option_does_not_repeat_the_problem() -> None:
    error = invoke(make_finder(), "a", "-h", "--json").error
    assert error is not None and error["suggestion"]["fix"] == "Use --help."


class Place(BaseModel):
    city: str


def make_notes() -> tuple[Tooli, list[str]]:
    """Return an app, and the names that its commands have received."""
    app, names = Tooli("notes"), list[str]()

    @app.callback()
    def setup(profile: str = "") -> None:
        """Keep notes."""

    @app.command()
    def add(
        name: Annotated[str, Option("--name", "-n")] = "",
        pair: tuple[str, str] = ("", ""),
        place: Annotated[Place | None, Option()] = None,
        letter: Annotated[str, Option("-l")] = "",
    ) -> str:
        names.append(name)
        return name

    @app.command("print")
    def print_note(name: str = "") -> None:
        names.append(name)

    @app.command()
    def rename(name: str = "") -> str:
        names.append(name)
        return name

    @app.command("own", own_options=["dry_run"])
    def own(name: str = "", dry_run: bool = False) -> str:
        names.append(name)
        return name

    return app, names


@pytest.mark.parametrize(
    ("line", "literal"),
    [
        ("add --name --dry-run", "--name=--dry-run"),
        ("add -n --dry-run", "--name=--dry-run"),
        ("add --name --tooli-dry-run", "--name=--tooli-dry-run"),
        ("add --name --yes", "--name=--yes"),
        ("add --name --timeout 5", "--name=--timeout"),
        ("add --name --timeout=5", "--name=--timeout=5"),
        ("add --name --idempotency-key k", "--name=--idempotency-key"),
        ("add --name --no-input", "--name=--no-input"),
        ("add --name --apply token", "--name=--apply"),
        ("add --pair x --dry-run", "--pair=--dry-run"),
        ("add --place.city --dry-run", "--place.city=--dry-run"),
        ("add -l --dry-run", "-l--dry-run"),
        ("--profile --dry-run add --name x", "--profile=--dry-run"),
        ("print --name --dry-run --yes", "--name=--dry-run"),
        ("own --name --yes", "--name=--yes"),
    ],
)
def test_protecting_flag_is_not_the_value_of_an_option(line: str, literal: str) -> None:
    app, names = make_notes()
    found = invoke(app, *line.split(), mode="json")
    assert (found.exit_code, found.error["code"], names) == (2, "E1007", [])
    assert f"write {literal} if it is the value" in found.error["message"]
    assert "argv" not in found.error["suggestion"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("add --name=--dry-run", "--dry-run"),
        ("add -n--dry-run", "--dry-run"),
        ("add --name --dry-running", "--dry-running"),
        ("add --name --version", "--version"),
        ("own --name --dry-run", "--dry-run"),  # the command's own flag, as in Typer
    ],
)
def test_other_text_is_the_value_of_an_option(line: str, name: str) -> None:
    app, names = make_notes()
    assert invoke(app, *line.split(), mode="json").exit_code == 0
    assert names == [name]


@pytest.mark.parametrize("command", ["rename", "print"])
@pytest.mark.parametrize("output", ["text", None])
def test_typer_decides_in_text_mode_and_for_printing_commands(
    command: str, output: str | None
) -> None:
    app, names = make_notes()
    found = invoke(app, command, "--name", "--dry-run", env={"TOOLI_OUTPUT": output})
    is_typer = output == "text" or command == "print"
    assert (found.exit_code, names) == ((0, ["--dry-run"]) if is_typer else (2, []))
