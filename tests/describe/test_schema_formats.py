"""Descriptions of tools in the formats of `--schema`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import jsonschema
import pytest

from tooli import Option, Tooli
from tooli.annotations import Destructive, Idempotent
from tooli.core import CONTRACT_VERSION
from tooli.describe.mcp_tools import description_text, safe_name
from tooli.describe.schema_formats import describe_app, describe_tool
from tooli.errors import DefinitionError
from tooli.testing import invoke

FORMATS = ("json", "mcp", "openai", "anthropic")


@pytest.fixture
def app() -> Tooli:
    app, users = Tooli("files", version="1.0"), Tooli("users")

    @app.command(
        annotations=Destructive | Idempotent,
        examples=[{"args": ["x"], "description": "y"}],
        when_to_use="rarely",
        timeout=3,
        auth=["w"],
        capabilities=["fs:read"],
        danger_level="high",
        deprecated="use rm",
    )
    def delete_files(
        path: str,
        token: Annotated[str, Option(envvar="TOKEN")] = "",
        key: Annotated[str, Option(envvar=["KEY", "OLD_KEY"])] = "",
    ) -> dict[str, int]:
        """Delete files.

        All of them.

        Args:
            path: where they are
        """
        return {}

    @app.command(hidden=True)
    def secret(): ...

    @users.command()
    def create(name: str = "x") -> list[str]:
        """Create a user."""
        return [name]

    app.add_typer(users)
    return app


def schema_in(described: dict, schema_format: str) -> dict:
    return {
        "json": lambda d: d["input_schema"],
        "mcp": lambda d: d["inputSchema"],
        "openai": lambda d: d["function"]["parameters"],
        "anthropic": lambda d: d["input_schema"],
    }[schema_format](described)


@pytest.mark.parametrize("schema_format", FORMATS)
def test_every_format_has_the_same_valid_schema(app, schema_format) -> None:
    expected = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where they are"},
            "token": {"type": "string", "default": ""},
            "key": {"type": "string", "default": ""},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    found = schema_in(describe_tool(app.find("delete-files"), schema_format), schema_format)
    jsonschema.Draft202012Validator.check_schema(found)
    if schema_format == "mcp":  # --yes and --dry-run are arguments
        confirmation = {name: found["properties"].pop(name) for name in ("yes", "dry_run")}
        assert [option["type"] for option in confirmation.values()] == ["boolean", "boolean"]
    assert found == expected


def test_json_contains_every_declared_field(app) -> None:
    found = describe_tool(app.find("delete-files"), "json")
    found.pop("input_schema")
    assert found == {
        "name": "delete-files",
        "tool": "files.delete-files",
        "version": "1.0",
        "description": "Delete files.\n\nAll of them.",
        "output_schema": {"type": "object", "additionalProperties": {"type": "integer"}},
        "annotations": ["idempotent", "destructive"],
        "when_to_use": "rarely",
        "examples": [{"args": ["x"], "description": "y"}],
        "timeout": 3,
        "deprecated": "use rm",
        "auth": ["w"],
        "capabilities": ["fs:read"],
        "danger_level": "high",
        "environment": ["TOKEN", "KEY", "OLD_KEY"],
    }


def test_json_of_a_minimal_tool() -> None:
    app = Tooli("a")
    app.command("x")(lambda: None)
    assert describe_tool(app.find("x"), "json") == {
        "name": "x",
        "tool": "a.x",
        "description": "",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    }


def test_empty_auth_differs_from_no_auth() -> None:
    app = Tooli("a")
    app.command("open", auth=[])(lambda: None)
    app.command("other", capabilities=["fs:read"])(lambda: None)
    assert describe_tool(app.find("open"), "json")["auth"] == []
    assert "auth" not in describe_tool(app.find("other"), "json")


def test_openai_and_anthropic(app) -> None:
    tool = app.find("users.create")
    assert describe_tool(tool, "openai")["type"] == "function"
    assert describe_tool(tool, "openai")["function"]["name"] == "users_create"
    assert list(describe_tool(tool, "anthropic")) == ["name", "description", "input_schema"]


class TestDescribeApp:
    def test_json_lists_every_command(self, app) -> None:
        found = describe_app("files", "1.0", app.catalog, "json")
        assert (found["app"], found["version"]) == ("files", "1.0")
        assert [c["name"] for c in found["commands"]] == ["delete-files", "users.create"]
        assert "TOOLI_OUTPUT" in found["environment"]
        assert "version" not in describe_app("files", None, app.catalog, "json")

    def test_mcp(self, app) -> None:
        found = describe_app("files", None, app.catalog, "mcp")
        assert [t["name"] for t in found["tools"]] == ["delete_files", "users_create"]

    @pytest.mark.parametrize("schema_format", ["openai", "anthropic"])
    def test_openai_and_anthropic_list_every_command(self, app, schema_format) -> None:
        assert len(describe_app("files", None, app.catalog, schema_format)) == 2


def test_name_and_description(app) -> None:
    assert safe_name(app.find("users.create")) == "users_create"
    assert description_text(app.find("users.create")) == "Create a user."


def make_described_app() -> Tooli:
    app = Tooli("prices", version="1.0")

    @app.command(
        summary="Look up a price.",
        tags=["shop", "money"],
        cost_hint="medium",
        output_schema={"type": "object", "properties": {"price": {"type": "number"}}},
    )
    def look_up(item: str):  # the schema describes the result
        """Some internal text.

        More about it.
        """
        return {"price": 1.5, "item": item}

    app.command("other")(lambda: None)
    return app


def test_keywords_of_the_author_describe_the_command() -> None:
    app = make_described_app()
    described = describe_tool(app.catalog["look-up"], "json")
    assert described["description"].startswith("Look up a price.")
    assert "internal" not in described["description"]
    assert (described["tags"], described["cost_hint"]) == (["shop", "money"], "medium")
    assert described["output_schema"]["properties"] == {"price": {"type": "number"}}
    mcp = describe_tool(app.catalog["look-up"], "mcp")
    fields = mcp["outputSchema"]["properties"]
    assert fields == {"price": {"type": "number"}, "meta": {"type": "object"}}
    assert mcp["_meta"]["io.tooli/tool"]["tags"] == ["shop", "money"]


def test_declared_schema_makes_the_returned_value_the_result() -> None:
    app = make_described_app()
    assert invoke(app, "look-up", "tea", "--json").result == {"price": 1.5, "item": "tea"}
    assert "Look up a price." in invoke(app, "--help", "--plain").stdout


def test_version_of_the_contract() -> None:
    app = make_described_app()
    assert json.loads(invoke(app, "--schema").stdout)["contract"] == CONTRACT_VERSION
    assert json.loads(invoke(app, "--agent-manifest").stdout)["contract"] == CONTRACT_VERSION
    done = invoke(app, "look-up", "tea", "--json", "--response-format", "detailed")
    assert done.envelope["meta"]["contract"] == CONTRACT_VERSION
    assert "contract" not in invoke(app, "look-up", "tea", "--json").envelope["meta"]
    assert app.call("look-up", item="tea", detailed=True).meta["contract"] == CONTRACT_VERSION


@pytest.mark.parametrize(
    ("keyword", "value", "message"),
    [
        ("cost_hint", "cheap", "must be one of low, medium, high"),
        ("tags", "shop", "must be a list of strings"),
        ("output_schema", "object", "must be a JSON Schema in a dict"),
        ("summary", 1, "must be a string"),
    ],
)
def test_invalid_keywords(keyword: str, value: Any, message: str) -> None:
    keywords: Any = {keyword: value}
    with pytest.raises(DefinitionError, match=message):
        Tooli("x").command(**keywords)
