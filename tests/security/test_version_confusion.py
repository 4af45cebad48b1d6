"""What belongs to a call of one version of a command is not valid for another version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import ToolError, Tooli


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def make_app(*versions: str) -> tuple[Tooli, list[str]]:
    """An app with versions of one command, and the versions that have run."""
    app, runs = Tooli("calc"), list[str]()

    def register(version: str) -> None:
        @app.command("add", version=version, paginated=True)
        def add(count: int) -> list[str]:
            runs.append(version)
            if count < 0:
                raise ToolError("too small", code="E3001")
            return [version] * count

    for version in versions:
        register(version)
    return app, runs


def call(app: Tooli, name: str, **options: Any) -> Any:
    arguments = {"count": options.pop("count", 3)}
    return app.options(**options).call(name, **arguments)


@pytest.mark.parametrize("other", ["add@2.0", "add"])
def test_idempotency_key_of_another_version(other: str) -> None:
    app, runs = make_app("1.0", "2.0")
    assert call(app, "add@1.0", idempotency_key="k").result == ["1.0"] * 3
    refused = call(app, other, idempotency_key="k")
    assert (refused.ok, refused.error.category) == (False, "state")
    assert call(app, "add@1.0", idempotency_key="k").meta["idempotency"]["replayed"] is True
    assert runs == ["1.0"]


def test_call_without_a_version_is_replayed_after_a_new_version() -> None:
    """A retry must not run twice because the app was updated in between."""
    old, _ = make_app("1.0")
    assert call(old, "add", idempotency_key="k").result == ["1.0"] * 3
    new, runs = make_app("1.0", "2.0")
    assert call(new, "add", idempotency_key="k").result == ["1.0"] * 3
    assert runs == []


def test_cursor_of_another_version() -> None:
    app, _ = make_app("1.0", "2.0")
    cursor = call(app, "add@1.0", limit=1).meta["page"]["next_cursor"]
    assert call(app, "add@1.0", limit=1, cursor=cursor).result == ["1.0"]
    assert call(app, "add@2.0", limit=1, cursor=cursor).error.code == "E1042"


async def test_failures_of_another_version_do_not_block() -> None:
    app, runs = make_app("1.0", "2.0")
    api = app.asgi(mcp=False)
    session = (b"tooli-session-id", b"one")
    codes = [(await post(api, "add@1.0", {"count": -1}, session)).code for _ in range(6)]
    assert (codes[0], codes[-1]) == ("E3001", "E4031")
    assert (await post(api, "add@2.0", {"count": -1}, session)).code == "E3001"
    assert runs[-1] == "2.0"
