"""Null means that an argument is not given, unless null is a value of the parameter."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Annotated, Any, Optional

import pydantic
import pytest
import typer

from tooli import Option, Tooli
from tooli.annotations import Destructive
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces


class Color(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int = 0


POINT = Point(x=1)


class Order(pydantic.BaseModel):
    sku: str
    count: int = 3
    note: Optional[str] = "none"  # noqa: UP045


def parse_word(text: str) -> str:
    return text.upper()


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def defaults(
        count: int = 3,
        ratio: float = 0.5,
        flag: bool = True,
        name: str = "tea",
        path: Path = Path("here"),
        color: Color = Color.RED,
        items: Annotated[list[str], Option()] = ["a"],  # noqa: B006
        point: Annotated[Point, Option()] = POINT,
        bounded: Annotated[int, Option(min=1)] = 2,
        field: Annotated[int, pydantic.Field(ge=1)] = 5,
        word: Annotated[str, Option(parser=parse_word)] = "abc",
        *,
        made: Annotated[list[int], typer.Option(default_factory=lambda: [1])],
    ) -> dict[str, Any]:
        """Return the arguments."""
        return dict(locals())

    @app.command()
    def nullable(
        limit: Optional[int] = 5,  # noqa: UP045
        anything: Any = 1,
        point: Annotated[Optional[Point], Option()] = POINT,  # noqa: UP045
    ) -> dict[str, Any]:
        """Return the arguments."""
        return dict(locals())

    @app.command()
    def required(count: int) -> int:
        """Return the argument."""
        return count

    @app.command(input_model=Order)
    def order(order: Order) -> dict[str, Any]:
        """Return the order."""
        return order.model_dump()

    @app.command(annotations=Destructive)
    def drop(name: str = "x") -> str:
        """Drop something."""
        return f"dropped {name}"

    @app.command(paginated=2)
    def rows(count: int = 3) -> list[int]:
        """Show the rows."""
        return list(range(count))

    return app


def answers(tool: str, arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the envelope of each interface that takes JSON or Python values."""
    app = make_app()
    found = {
        interface.name: interface.send_case(Case(tool, arguments)).envelope
        for interface in interfaces(app)
        if interface.surface != "cli" and not interface.streams
    }
    found["--input"] = invoke(app, tool, "--input", json.dumps(arguments), mode="json").envelope
    assert {"call", "acall", "http", "mcp", "mcp-stateless"} <= found.keys()
    return found


def test_null_is_the_default_of_a_parameter() -> None:
    tool = make_app().find("defaults")
    assert tool is not None
    expected = make_app().call("defaults").to_dict()["result"]
    for name, envelope in answers("defaults", dict.fromkeys(tool.param_names)).items():
        assert envelope["ok"], (name, envelope)
        assert envelope["result"] == expected, name


def test_null_stays_null_where_it_is_a_value() -> None:
    nulls = {"limit": None, "anything": None, "point": None}
    for name, envelope in answers("nullable", nulls).items():
        assert envelope["result"] == nulls, name


def test_null_is_an_error_for_a_required_parameter() -> None:
    for name, envelope in answers("required", {"count": None}).items():
        assert envelope["error"]["code"] in ("E1002", "E1003"), name


def test_null_is_the_default_of_a_field_of_the_input_model() -> None:
    for name, envelope in answers("order", {"sku": "a", "count": None, "note": None}).items():
        assert envelope["ok"], (name, envelope)
        assert envelope["result"] == {"sku": "a", "count": 3, "note": None}, name


def test_option_that_is_null_is_not_given() -> None:
    for name, envelope in answers("rows", {"count": 2, "limit": None, "yes": None}).items():
        assert envelope.get("result") == [0, 1], (name, envelope)
    for name, envelope in answers("rows", {"nowhere": None}).items():
        assert envelope["error"]["code"] == "E1004", name


MCP = ("mcp", "mcp-stateless")
PYTHON = ("call", "acall")


@pytest.mark.parametrize("name", [*MCP, *PYTHON])
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"yes": None}, "E1010"),
        ({"yes": "false"}, "E1010"),
        ({"yes": "true"}, None),
        ({"yes": "True", "dry_run": None}, None),
        ({"yes": "perhaps"}, "E1007"),
    ],
)
def test_options_may_be_null_or_text(name: str, options: dict[str, Any], code: Any) -> None:
    found = next(each for each in interfaces(make_app()) if each.name == name)
    tool = found.app.find("drop")
    assert tool is not None
    envelope = found.send_case(Case("drop", options)).envelope
    assert envelope.get("error", {}).get("code") == code, envelope


@pytest.mark.parametrize("name", [*MCP, *PYTHON])
@pytest.mark.parametrize(
    ("options", "shown"),
    [({"limit": None, "cursor": None}, 2), ({"limit": "1"}, 1), ({"limit": 0}, 3)],
)
def test_page_options_may_be_null_or_text(name: str, options: Any, shown: int) -> None:
    found = next(each for each in interfaces(make_app()) if each.name == name)
    assert len(found.send_case(Case("rows", options)).envelope["result"]) == shown


@pytest.mark.parametrize("name", ["call", "cli", "http", "mcp", "mcp-stateless"])
@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({"yes": "true"}, "wiped"),
        ({"yes": True, "limit": None}, "wiped"),
        ({"yes": None}, "E1010"),
        ({"yes": "false"}, "E1010"),
        ({"yes": "maybe"}, "E1007"),
        ({"dry_run": "true"}, "plan"),
        ({"dry_run": "true", "yes": True}, "plan"),
    ],
)
def test_options_among_the_arguments(options: dict[str, Any], outcome: str, name: str) -> None:
    """Clients that know no other place send the options with the arguments: `--input` as well."""
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def wipe(word: str) -> str:
        """Wipe."""
        return "wiped"

    arguments = {"word": "x", **options}
    if name == "cli":
        answer = invoke(app, "wipe", "--input", json.dumps(arguments), mode="json").envelope
    else:
        interface = next(i for i in interfaces(app) if i.name == name)
        answer = interface.send_case(Case("wipe", arguments)).envelope
    result = answer.get("result")
    found = answer["error"]["code"] if not answer["ok"] else result
    assert ("plan" if isinstance(found, dict) else found) == outcome


@pytest.mark.parametrize("option", ["yes", "apply"])
def test_file_does_not_confirm_its_own_call(option: str, tmp_path: Path) -> None:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def wipe(word: str) -> str:
        """Wipe."""
        raise AssertionError

    file = tmp_path / "arguments.json"
    file.write_text(json.dumps({"word": "x", option: "true"}))
    for words, text in ((["--input", f"@{file}"], None), (["--input", "-"], file.read_text())):
        error = invoke(app, "wipe", *words, mode="json", input=text).envelope["error"]
        assert (error["code"], error["field"]) == ("E1007", option)
