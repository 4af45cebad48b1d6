"""Tools that a JSON Schema describes have the same answers on all interfaces."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.provided import ToolList, echo_tool

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DependencyError
from tooli.providers import described_tool
from tooli.testing import Case, assert_parity


def fail(arguments: dict[str, Any]) -> None:
    raise DependencyError("The server does not answer.")


def count(arguments: dict[str, Any]) -> Any:
    yield from range(arguments.get("to", 2))


def make_app() -> Tooli:
    app = Tooli("app", version="1.0")

    @app.command()
    def local() -> int:
        return 1

    tools = (
        *(echo_tool(), echo_tool("users.get-all"), echo_tool("drop", annotations=None)),
        described_tool("fail", fail, annotations=ReadOnly),
        described_tool(
            "count", count, annotations=ReadOnly,
            input_schema={"properties": {"to": {"type": "integer"}}},
            output_schema={"type": "array", "items": {"type": "integer"}},
        ),
    )  # fmt: skip
    app.add_provider(ToolList(*tools), namespace="remote")
    app.add_provider(ToolList(*tools[:1]))
    return app


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("echo", {"kind": "a"}),
        ("remote.echo", {"kind": "a"}),
        ("remote.users.get-all", {"kind": "b", "$filter": "x y", "max_results": 3}),
        ("remote.echo", {"kind": "a", "from": "2026-01-31", "tags": ["x", "-y"], "ratio": 0.5}),
        ("remote.echo", {"kind": "a", "user": {"name": "Ada", "tags": [1, 2]}, "deep": False}),
        ("remote.echo", {"kind": "a", "target": 5, "note": "", "help": "me"}),
        ("remote.echo", {"kind": "a", "target": "five"}),
        # failures
        ("remote.echo", {}),
        ("remote.echo", {"kind": "c"}),
        ("remote.echo", {"kind": "a", "max_results": 99, "from": "yesterday"}),
        ("remote.echo", {"kind": "a", "user": {"age": 1}}),
        ("remote.drop", {"kind": "a"}),
        ("remote.fail", {}),
        ("remote.count", {}),
        ("remote.count", {"to": 3}),
    ],
)
def test_parity(tool: str, arguments: dict[str, Any]) -> None:
    assert_parity(make_app(), Case(tool, arguments))
