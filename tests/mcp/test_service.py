"""McpService: server information, pages, and the results of tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Caller
from tooli.mcp import service
from tooli.mcp.protocol import ENVELOPE_KEY, INVALID_PARAMS, META_KEY, SERVER_INFO_KEY, RpcError
from tooli.mcp.service import McpService, RequestContext, caller_from_client_info

CALLER = Caller("mcp", "client", maybe_agent=True)


def make_app() -> Tooli:
    app = Tooli("shop", version="1.2", description="A shop.")

    @app.command()
    def echo(value: object = None) -> object:
        """Return the value."""
        return value

    @app.command()
    def total(count: int) -> int:
        """Return a number."""
        return count

    @app.command()
    def table() -> dict[str, int]:
        """Return a list although the type is an object."""
        return [1]  # type: ignore[return-value]

    return app


def call(name: str, arguments: dict[str, Any], *, stateless: bool = False) -> dict[str, Any]:
    context = RequestContext(CALLER, None, stateless)
    params = {"name": name, "arguments": arguments}
    return McpService(make_app()).tool_call_request(params, context).run()


def test_server_information_depends_on_the_protocol_version() -> None:
    app_service = McpService(make_app())
    info = {"name": "shop", "version": "1.2", "description": "A shop."}
    assert app_service.info() == info
    assert app_service.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
    assert app_service.initialize("1999-01-01")["protocolVersion"] == "2025-11-25"
    assert "logging" in app_service.capabilities(stateless=False)
    assert "logging" not in app_service.capabilities(stateless=True)
    without_sdk = app_service.capabilities(stateless=False, has_sdk=False)
    assert set(without_sdk) == {"prompts", "resources", "tools"}
    assert without_sdk["resources"] == {"subscribe": False, "listChanged": True}
    discovered = app_service.discover()
    assert discovered["resultType"] == "complete"
    assert discovered["_meta"] == {SERVER_INFO_KEY: info}


def test_server_information_has_the_title_and_icons_of_the_app() -> None:
    icon = "https://shop.example/icon.png"
    app = Tooli("shop", title="The Shop", icons=[icon], meta={"com.example/team": "a"})

    @app.command()
    def show() -> str:
        """Show something."""
        return ""

    app_service = McpService(app)
    info = app_service.info()
    assert (info["title"], info["icons"]) == ("The Shop", [{"src": icon}])
    (listed,) = app_service.list_tools(None, stateless=True)["tools"]
    assert listed["_meta"] == {"com.example/team": "a"}


def test_instructions_explain_deferred_discovery() -> None:
    assert McpService(make_app()).instructions() == "A shop."
    deferred = McpService(make_app(), deferred=True).instructions()
    assert deferred == "A shop.\n\nFind tools with search_tools, then call them with run_tool."


def test_tools_are_listed_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PAGE_SIZE", 2)
    app_service = McpService(make_app())
    first = app_service.list_tools(None, stateless=False)
    assert [tool["name"] for tool in first["tools"]] == ["echo", "total"]
    last = app_service.list_tools(first["nextCursor"], stateless=True)
    assert [tool["name"] for tool in last["tools"]] == ["table"]
    assert "nextCursor" not in last
    assert last["ttlMs"] == service.LIST_TTL_MS
    for cursor in ("", "p0", "p3", "p02", "p-1", "p\u0662", "x"):
        with pytest.raises(RpcError, match="Unknown cursor"):
            app_service.list_tools(cursor, stateless=False)


def test_result_has_structured_content_and_text() -> None:
    result = call("total", {"count": 3})
    assert result["structuredContent"] == {"result": 3}
    assert result["content"] == [{"type": "text", "text": '{"result":3}'}]
    assert result["_meta"][META_KEY]["tool"] == "shop.total"
    stateless = call("total", {"count": 3}, stateless=True)
    assert (stateless["structuredContent"], stateless["resultType"]) == (3, "complete")


def test_failure_has_the_envelope_as_text_and_in_meta() -> None:
    result = call("total", {"count": "x"})
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert result["_meta"][ENVELOPE_KEY]["error"]["code"] == "E1003"


def test_result_that_does_not_match_its_schema_fails() -> None:
    error = call("table", {})["_meta"][ENVELOPE_KEY]["error"]
    assert error["message"] == "table did not return the object that it declares."


def test_lone_surrogates_are_replaced() -> None:
    text = call("echo", {"value": {"k\ud800": ["\udfff", 1]}})["content"][0]["text"]
    assert text.encode() == '{"result":{"k\ufffd":["\ufffd",1]}}'.encode()


def test_unknown_tool_has_a_suggestion() -> None:
    with pytest.raises(RpcError, match="Unknown tool: totl; did you mean total") as caught:
        call("totl", {})
    assert caught.value.code == INVALID_PARAMS
    assert isinstance(caught.value.data, dict)
    assert caught.value.data[ENVELOPE_KEY]["error"]["code"] == "E1001"


def test_caller_comes_from_the_client_or_the_environment() -> None:
    env = {"TOOLI_CALLER": "env", "TOOLI_CALLER_VERSION": "2", "TOOLI_SESSION_ID": "s"}
    named = caller_from_client_info({"name": "client", "version": 3}, env)
    assert (named.name, named.version, named.session) == ("client", None, "s")
    anonymous = caller_from_client_info(None, env)
    assert (anonymous.name, anonymous.version) == ("env", "2")
    assert caller_from_client_info({}, {}).name is None
