"""The settings object of an app is the same on every interface, and no caller can set it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from tooli import Context, Depends, Tooli
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_formats import describe_tool
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces


@dataclass
class Settings:
    database: str
    size: int = 5


def get_size(settings: Settings) -> int:
    return settings.size


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Tooli:
    monkeypatch.setenv("SHOP_DATABASE", "sqlite://")
    app = Tooli("shop", version="1.0", settings=Settings)

    @app.command()
    def find(text: str, settings: Settings) -> str:
        """Find a text."""
        return f"{text} {settings.database}"

    @app.command()
    async def afind(
        text: str, ctx: Context, size: Annotated[int, Depends(get_size)], settings: Settings
    ) -> str:
        """Find a text in async code."""
        return f"{text} {ctx.settings.database} {size} {settings.size}"

    @app.command(timeout=30)
    def forked(settings: Settings) -> str:
        """Run in a process of its own."""
        return settings.database

    @app.command()
    def items(settings: Settings) -> list[int]:
        """Return numbers."""
        return list(range(settings.size))

    return app


@pytest.mark.parametrize(
    ("case", "result"),
    [
        (Case("find", {"text": "x"}), "x sqlite://"),
        (Case("afind", {"text": "x"}), "x sqlite:// 5 5"),
        (Case("forked", {}), "sqlite://"),
        (Case("items", {}), [0, 1, 2, 3, 4]),
    ],
)
def test_every_interface_passes_the_object(app: Tooli, case: Case, result: Any) -> None:
    assert_parity(app, case)
    for interface in interfaces(app):
        found = interface.send_case(case).envelope["result"]
        assert found in (result, [result]), interface.name  # a stream is a list


def test_object_is_in_no_description(app: Tooli) -> None:
    for tool in app.catalog:
        assert "settings" not in tool.param_names
        assert "database" not in json.dumps(describe_tool(tool, "json"))
    assert '"settings"' not in json.dumps(build_openapi("shop", "1.0", None, app.catalog))


def test_caller_cannot_set_the_object(app: Tooli) -> None:
    case = Case("find", {"text": "x", "settings": {"database": "evil"}})
    for interface in interfaces(app):
        response = interface.send_case(case)
        assert response.envelope["error"]["code"] in ("E1004", "E1007"), interface.name
