"""Resources and prompts on the command line, in Python and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.http import asgi_client

from tooli import Image, InputError, Message, NotFoundError, Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DefinitionError
from tooli.serving.served_functions import (
    list_prompts,
    list_resources,
    prompt_request,
    resource_call,
    resource_request,
)
from tooli.testing import invoke
from tooli.testing.app_interfaces import HandshakeInterface


def make_app(**keywords: Any) -> Tooli:
    app = Tooli("notes", version="1.0", **keywords)
    for name in ("go", "stop"):
        app.command(name, auth=[], annotations=ReadOnly)(lambda: None)

    @app.resource("notes://{number}", auth=[])
    def note(number: int) -> dict[str, int]:
        """A note."""
        if number > 9:
            raise NotFoundError(f"There is no note {number}.")
        return {"number": number}

    @app.resource(auth=[])
    async def greeting(name: str, loud: bool = False) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    @app.resource("notes://about.txt", auth=["about"])
    def about() -> str:
        """About the notes."""
        return "notes"

    @app.prompt(auth=[])
    def review(code: str, depth: int = 1) -> list[Any]:
        """Review code."""
        return [f"depth {depth}: {code}", Message("fine", "assistant"), Message(Image(b"x"))]

    @app.prompt(auth=[])
    async def summarize(text: str) -> dict[str, str]:
        """Summarize a text."""
        return {"text": text}

    return app


async def send(api: Any, method: str, target: str, body: bytes | None = None, *headers: Any) -> Any:
    """Send a request; the target may have a query."""
    path, _, query = target.partition("?")
    return await asgi_client.send(api, method, path, body, *headers, query=query.encode())


async def read_over_http(app: Tooli, uri: str, **options: str) -> Mapping[str, Any]:
    query = urlencode({"uri": uri, **options})
    response = await send(app.asgi(), "GET", f"/resources/read?{query}")
    return response.json()


def read_over_mcp(app: Tooli, method: str, params: Mapping[str, Any]) -> Any:
    return HandshakeInterface(app)._send(method, params)


# ------------------------------------------------------------------ every interface


@pytest.mark.parametrize(
    ("uri", "result"),
    [
        ("notes://7", {"number": 7}),
        ("notes://greeting/Ada", "Hello Ada"),
        ("notes://greeting/Ada%20L%2Fö", "Hello Ada L/ö"),
    ],
)
async def test_resource_is_the_same_on_every_interface(uri: str, result: object) -> None:
    app = make_app()
    line = invoke(app, "resources", "read", uri, mode="json")
    python = app.read_resource(uri)
    http = await read_over_http(app, uri)
    aresult = await app.options().aread_resource(uri)
    assert line.envelope["result"] == python.result == http["result"] == aresult.result == result


@pytest.mark.parametrize(
    ("uri", "code", "exit_code"),
    [
        ("notes://70", "E3010", 10),
        ("notes://seven", "E1003", 2),
        ("note://7", "E3010", 10),
        ("notes://" + "7" * 3000, "E3010", 10),
    ],
)
async def test_errors_are_the_same_on_every_interface(uri: str, code: str, exit_code: int) -> None:
    app = make_app()
    line = invoke(app, "resources", "read", uri, mode="json")
    python = app.read_resource(uri).to_dict()
    http = await read_over_http(app, uri)
    assert line.exit_code == exit_code
    for envelope in (line.envelope, python, http):
        assert envelope["ok"] is False
        error = envelope["error"]
        assert (error["code"], error["message"]) == (code, http["error"]["message"])
        assert "argv" not in error.get("suggestion", {})  # it is no command
        assert "arguments" not in error.get("suggestion", {})


async def test_prompt_is_the_same_on_every_interface() -> None:
    app = make_app()
    line = invoke(app, "prompts", "get", "review", "code=a=b", "depth=2", mode="json")
    python = app.get_prompt("review", code="a=b", depth=2)
    query = urlencode({"code": "a=b", "depth": "2"})
    get = (await send(app.asgi(), "GET", f"/prompts/review?{query}")).json()
    body = json.dumps({"code": "a=b", "depth": 2}).encode()
    post = (await send(app.asgi(), "POST", "/prompts/review", body)).json()
    mcp = read_over_mcp(
        app, "prompts/get", {"name": "review", "arguments": {"code": "a=b", "depth": "2"}}
    )
    assert line.envelope["result"] == python.to_dict()["result"] == get["result"] == post["result"]
    assert get["result"]["messages"] == mcp["result"]["messages"]
    assert get["result"]["messages"][0]["content"]["text"] == "depth 2: a=b"
    assert get["result"]["messages"][2]["content"]["type"] == "image"


async def test_async_prompt_returns_json_as_text() -> None:
    app = make_app()
    found = await app.options().aget_prompt("summarize", text="x")
    assert found.result["messages"][0]["content"]["text"] == '{"text":"x"}'
    assert app.get_prompt("summarize", text="x").result == found.result


# ------------------------------------------------------------------ lists


async def test_lists_are_the_same_on_every_interface() -> None:
    app = make_app()
    resources = invoke(app, "resources", "list", mode="json").envelope["result"]
    prompts = invoke(app, "prompts", "list", mode="json").envelope["result"]
    assert resources == app.list_resources() == list_resources(app)
    assert prompts == app.list_prompts() == list_prompts(app)
    api = app.asgi()
    assert (await send(api, "GET", "/resources")).json() == {"resources": resources}
    assert (await send(api, "GET", "/prompts")).json() == {"prompts": prompts}
    uris = [entry.get("uri", entry.get("uriTemplate")) for entry in resources]
    assert uris == ["notes://{number}", "notes://greeting/{name}", "notes://about.txt"]
    assert prompts[0]["arguments"] == [
        {"name": "code", "required": True},
        {"name": "depth", "required": False},
    ]


async def test_strict_server_lists_what_the_caller_may_use() -> None:
    api = make_app(security_policy="strict").asgi(token="t", scopes=[])
    header = (b"authorization", b"Bearer t")
    found = (await send(api, "GET", "/resources", None, header)).json()["resources"]
    assert [entry["name"] for entry in found] == ["note", "greeting"]
    hidden = await send(api, "GET", "/resources/read?uri=notes://about.txt", None, header)
    assert (hidden.status, hidden.json()["error"]["code"]) == (404, "E3010")


def test_app_without_resources_has_empty_lists() -> None:
    app = Tooli("empty")
    app.command("go")(lambda: None)
    app.command("other")(lambda: None)
    assert invoke(app, "resources", "list", mode="json").envelope["result"] == []
    assert app.list_prompts() == []
    error = app.read_resource("a://b").error
    assert error is not None
    assert error.suggestion is not None
    assert error.suggestion["fix"] == "The app has no resources."


# ------------------------------------------------------------------ documents


def test_documents_name_them() -> None:
    app = make_app()
    help_text = invoke(app, "--help-agent").stdout
    assert "notes resources read URI; URIs: notes://{number}, notes://greeting/{name}" in help_text
    assert "notes prompts get review code=… [depth=…] | summarize text=…" in help_text
    for flag in ("--discover", "--agent-manifest"):
        document = json.loads(invoke(app, flag).stdout)
        assert [entry["name"] for entry in document["resources"]] == ["note", "greeting", "about"]
        assert [entry["name"] for entry in document["prompts"]] == ["review", "summarize"]
        assert document["read_resource"] == ["notes", "resources", "read", "URI"]
    tools = json.loads(invoke(app, "--discover").stdout)["tools"]
    assert tools[0] == {"name": "go", "summary": "", "streaming": False, "session_mode": False}
    skill = invoke(app, "generate-skill").stdout
    assert "`notes resources read URI` reads a resource:" in skill
    assert "- `notes://{number}`: A note." in skill
    assert "- `review code=… [depth=…]`: Review code." in skill


def test_documents_of_other_apps_are_unchanged() -> None:
    app = Tooli("plain")
    app.command("go")(lambda: None)
    assert "resources" not in invoke(app, "--help-agent").stdout
    assert "resources" not in json.loads(invoke(app, "--discover").stdout)
    assert "Resources and prompts" not in invoke(app, "generate-skill").stdout


# ------------------------------------------------------------------ requests


def test_closest_name_is_suggested() -> None:
    app = make_app()
    with pytest.raises(NotFoundError) as failure:
        prompt_request(app, "reviw")
    assert failure.value.suggestion is not None
    assert failure.value.suggestion.fix == "Did you mean review?"
    with pytest.raises(NotFoundError):
        resource_request(app, "notes://7", lambda tool: False)
    assert resource_call(app, "notes://7")[0].name == "note"


def test_options_apply_to_resources() -> None:
    app = make_app()
    assert app.options(fields="number").read_resource("notes://7").result == {"number": 7}
    error = app.options(timeout=-1).read_resource("notes://7").error
    assert error is not None
    assert isinstance(error.to_exception(), InputError)


def test_invalid_definition_is_an_error_of_the_call() -> None:
    app = Tooli("broken")
    app.command("go")(lambda: None)

    @app.resource("broken://{value}")
    def broken(value: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    @app.prompt()
    def also_broken(value: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    @app.resource("whole://{value}")
    def whole(value: str) -> str:
        return value

    assert [entry["name"] for entry in app.list_resources()] == ["whole"]
    assert app.list_prompts() == []
    for result in (app.read_resource("broken://1"), app.get_prompt("also_broken")):
        assert result.error is not None
        assert result.error.code == "E5000"
        assert "Missing" in result.error.message
    done = invoke(app, "resources", "read", "broken://1", mode="json")
    assert done.envelope["error"]["code"] == "E5000"


@pytest.mark.parametrize(
    ("app_name", "uri"),
    [("notes", "notes://greet-all/{name}"), ("My App_2", "my-app-2://greet-all/{name}")],
)
def test_default_uri(app_name: str, uri: str) -> None:
    app = Tooli(app_name)

    @app.resource()
    def greet_all(name: str, loud: bool = False) -> str:
        return name

    assert app.list_resources()[0]["uriTemplate"] == uri
    with pytest.raises(DefinitionError, match=r"or @app\.resource\(\)"):
        app.resource(greet_all)  # type: ignore[arg-type]
