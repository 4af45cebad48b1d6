"""Commands that have reached their end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.errors import DefinitionError
from tooli.stages import removal


def make_app(app_version: str | None, **options: str) -> Tooli:
    app = Tooli("app", version=app_version)

    @app.command(**options)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def old() -> int:
        return 1

    return app


@pytest.mark.parametrize(
    ("day", "is_refused"), [("2027-01-30", False), ("2027-01-31", False), ("2027-02-01", True)]
)
def test_command_is_refused_after_its_last_day(
    monkeypatch: pytest.MonkeyPatch, day: str, is_refused: bool
) -> None:
    from datetime import datetime, timezone

    now = datetime.fromisoformat(f"{day}T23:59:59").replace(tzinfo=timezone.utc).timestamp()
    monkeypatch.setattr(removal, "time", SimpleNamespace(time=lambda: now))
    result = make_app(None, sunset="2027-01-31").call("old")
    assert result.meta["deprecated"] == "refused after 2027-01-31"
    if is_refused:
        assert result.error is not None
        assert result.error.code == "E3041"
        assert "its last day was 2027-01-31" in result.error.message
    else:
        assert result.unwrap() == 1


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [(None, False), ("2.9", False), ("3.0rc1", False), ("3", True), ("3.1", True), ("new", False)],
)
def test_command_is_refused_from_a_version_of_the_app(
    version: str | None, is_refused: bool
) -> None:
    result = make_app(version, deprecated="use new", deprecated_version="3.0").call("old")
    assert result.meta["deprecated"] == "use new (removed in version 3.0)"
    assert result.ok is not is_refused


async def test_http_answers_410_with_headers() -> None:
    api = make_app("1", sunset="2020-01-31", deprecated="use new").asgi(mcp=False)
    answer = await post(api, "old")
    assert answer.status == 410
    headers = answer.headers
    assert headers["deprecation"] == "@0"
    assert headers["sunset"] == "Fri, 31 Jan 2020 23:59:59 GMT"
    assert "link" not in headers


@pytest.mark.parametrize(
    "options",
    [{"sunset": "soon"}, {"sunset": "2027-02-30"}, {"deprecated_version": ""}, {"version": "a@b"}],
)
def test_invalid_ends_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(DefinitionError):
        make_app(None, **options)
