"""Versions in the path and the query of a request, and headers about the end of a command."""

from __future__ import annotations

from tests.http.asgi_client import post, send

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.http.version_selection import lifecycle_headers
from tooli.providers import described_tool


def make_app() -> Tooli:
    app = Tooli("app")

    @app.command("get", version="1", annotations=ReadOnly)
    def first(name: str = "one") -> str:
        return name

    @app.command("get", version="2", annotations=ReadOnly)
    def second(name: str = "two") -> str:
        return name

    @app.command(annotations=ReadOnly)
    def release(version: str) -> str:
        return version

    return app


async def test_version_in_the_query_of_a_get_request() -> None:
    api = make_app().asgi(mcp=False)
    answer = await send(api, "GET", "/tools/get", query=b"version=1")
    assert answer.json()["result"] == "one"
    named = await send(api, "GET", "/tools/get", query=b"name=Ada&version=1")
    assert (named.json()["result"], named.json()["meta"]["version"]) == ("Ada", "1")


async def test_version_may_be_a_parameter() -> None:
    api = make_app().asgi(mcp=False)
    answer = await send(api, "GET", "/tools/release", query=b"version=3")
    assert answer.json()["result"] == "3"


async def test_unknown_paths_stay_unknown() -> None:
    api = make_app().asgi(mcp=False)
    for path in ("nothing@1", "release@1", "get@3"):
        answer = await post(api, path, {"version": "1"})
        assert answer.status == 404


def test_headers_of_a_tool() -> None:
    def headers(name: str, **options: str) -> dict[bytes, bytes]:
        tool = described_tool(name, dict, **options)  # type: ignore[arg-type]  # pyright: ignore
        return dict(lifecycle_headers(tool.replace(path=tuple(name.split("."))), "/shop"))

    assert headers("a") == {}
    assert headers("a", sunset="2024-02-29") == {
        b"deprecation": b"@0",
        b"sunset": b"Thu, 29 Feb 2024 23:59:59 GMT",
    }
    link = b'</shop/tools/users/get>; rel="successor-version"'
    assert headers("users.get@1", deprecated="old")[b"link"] == link
