"""The OpenAPI document of a served app, mounted back, gives the same answers as the app itself."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.providers.openapi_round_trip import app as original

from tooli import Tooli
from tooli.providers import OpenAPIProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("find", {"pattern": "o"}),
    ("find", {"pattern": "ü", "kind": "exact"}),
    ("find", {"pattern": "gold"}),
    ("find", {"pattern": "x", "kind": "neither"}),
    ("find", {}),
    ("total", {"names": ["bolt", "cog"]}),
    ("total", {"names": [], "rates": {}}),
    ("total", {"names": ["bolt"], "rates": {"bolt": 3.5}}),
    ("total", {"names": ["bolt"], "rates": {"bolt": "much"}}),
    ("store", {"item": {"name": "a/b & c", "price": 1}, "count": 3}),
    ("store", {"item": {"name": "x"}}),
    ("store", {"item": {"name": "x", "price": 1}, "count": "many"}),
    ("remove", {"name": "bolt"}),
]


@pytest.fixture(scope="module")
def mounted() -> Iterator[Tooli]:
    """Return an app with the operations of the served app."""
    command = [sys.executable, "-m", "tests.integration.providers.openapi_round_trip"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    found = re.search(r"http://\S+:(\d+)", server.stderr.readline())
    try:
        assert found is not None
        app = Tooli("mounted")
        app.add_provider(OpenAPIProvider(f"http://127.0.0.1:{found[1]}/openapi.json"))
        yield app
    finally:
        server.terminate()
        server.communicate(timeout=30)


def outcome(app: Tooli, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
    """Return what a caller learns: the result, or the code, the field and the retry of the error.

    The message names the interface in some errors, so it is compared for failures of the tool.
    """
    result = app.options(**options).call(tool, **arguments)
    if result.ok:
        return result.result
    error = result.error
    message = error.message if error.code[:2] != "E1" else None
    return error.code, error.field, error.is_retryable, message


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_the_answers_are_the_same(mounted: Tooli, tool: str, arguments: dict[str, Any]) -> None:
    expected = outcome(original, tool, arguments)
    assert outcome(mounted, tool, arguments) == expected


def test_a_destructive_command_stays_one(mounted: Tooli) -> None:
    assert outcome(mounted, "remove", {"name": "bolt"})[0] == "E1010"
    confirmed = mounted.options(yes=True)  # the other app asks for the parameter `yes`
    assert confirmed.call("remove", name="bolt").error.code == "E1010"
    assert confirmed.call("remove", name="bolt", yes=True).result == "removed bolt"
