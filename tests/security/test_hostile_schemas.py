"""A schema from elsewhere, or the text of a caller, cannot keep the process busy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.providers import Provider, described_tool
from tooli.schema import pattern_search
from tooli.testing import invoke

LONG = "a" * 60 + "b"
"""A text for which Python's `re` needs 2**60 steps with the pattern `^(a+)+$`."""


class Source(Provider):
    name = "source"

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def tools(self) -> Any:
        yield described_tool("find", lambda given: given, input_schema=self.schema)


def make_app(schema: dict[str, Any]) -> Tooli:
    app = Tooli("app", security_policy="off")
    app.add_provider(Source(schema))
    return app


@pytest.mark.parametrize(
    ("schema", "arguments", "code"),
    [
        ({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}, {"a": LONG}, "E1003"),
        (
            {"properties": {"a": {"type": "string", "pattern": "^(a+)+$(?!x)"}}},
            {"a": LONG},
            "E1003",
        ),
        (
            {"properties": {"a": {"propertyNames": {"pattern": "^(a|a)*$"}}}},
            {"a": {LONG: 1}},
            "E1003",
        ),
        (
            {"properties": {"a": {"patternProperties": {"^(a|aa)+$": {"type": "string"}}}}},
            {"a": {LONG: 1}},
            None,
        ),
        (
            {
                "properties": {
                    "a": {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
                }
            },
            {"a": {LONG: 1}},
            "E1003",
        ),
        (
            {
                "properties": {
                    "a": {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}
                }
            },
            {"a": {LONG: 1}},
            "E4040",
        ),
    ],
)
async def test_pattern_of_a_source(
    schema: dict[str, Any],
    arguments: dict[str, Any],
    code: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pattern_search, "MAX_SECONDS", 0.2)
    app = make_app(schema)
    assert app.call("find", **arguments).ok is (code is None)
    answer = await post(app.asgi(mcp=False), "find", arguments)
    assert (None if answer.status == 200 else answer.code) == code


def test_documents_of_a_source(tmp_path: Path) -> None:
    """Sample values are compared with the patterns of the schema."""
    patterns = ["^(a+)+$(?!x)", "^(a|a)*[^a]$", "^((a+)+)+b(?<!b)", "(x+x+)+y", "^(?=(a+)+$)b"]
    properties = {f"p{i}": {"type": "string", "pattern": p} for i, p in enumerate(patterns)}
    schema = {"properties": properties, "required": [*properties]}
    script = (
        "from tests.security.test_hostile_schemas import make_app\n"
        f"make_app({schema!r})(['generate-skill'])\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=120, text=True, check=False
    )
    assert "# app" in finished.stdout, finished.stderr


def test_definitions_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: dict[str, Any] = {
        f"p{i}": {"allOf": [{"$ref": f"#/$defs/p{i + 1}"}] * 2} for i in range(25)
    }
    parts["p25"] = {}
    schema = {"$defs": parts, "properties": {"a": {"$ref": "#/$defs/p0"}}}
    app = make_app(schema)
    found = app.call("find", a=1)
    assert found.error is not None
    assert "too complex" in found.error.message
    for line in (["find", "--help"], ["find", "--schema"], ["--help-agent"], ["docs", "llms"]):
        assert invoke(app, *line).exit_code == 0


@pytest.mark.parametrize(
    "part",
    [
        {"type": "array", "items": {}, "minItems": 10**9},
        {"type": "string", "minLength": 10**10},
        {"type": "string", "pattern": "a", "minLength": 10**10},
        {"type": "object", "minProperties": 10**9},
        {"type": "number", "multipleOf": 0},
        {"type": "number", "minimum": 10**400, "maximum": 1},
        {"type": "number", "exclusiveMinimum": True},
        {"oneOf": []},
        {"not": {}},
        {"$ref": "#/$defs/p0"},
        {"$ref": "#/$defs/loop"},
        {"$ref": "#/$defs/tree"},
    ],
)
def test_samples_of_a_schema(part: dict[str, Any]) -> None:
    """Documents contain an example of each required argument."""
    parts: dict[str, Any] = {
        f"p{i}": {"allOf": [{"$ref": f"#/$defs/p{i + 1}"}] * 2} for i in range(25)
    }
    parts |= {"p25": {"type": "object"}, "loop": {"allOf": [{"$ref": "#/$defs/loop"}]}}
    parts["tree"] = {"type": "object", "properties": {}, "required": ["a", "b"]}
    parts["tree"]["properties"] = {name: {"$ref": "#/$defs/tree"} for name in ("a", "b")}
    app = make_app({"properties": {"a": part}, "required": ["a"], "$defs": parts})
    lines = [["generate-skill"], ["--agent-manifest"], ["docs", "man"], ["find", "--help"]]
    if app.catalog.problems:  # a tool with an invalid schema is left out
        assert part == {"type": "number", "multipleOf": 0}
        lines.pop()
    for line in lines:
        found = invoke(app, *line)
        assert (found.exit_code, len(found.stdout) < 1_000_000) == (0, True), found.stderr
