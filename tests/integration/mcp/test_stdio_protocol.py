"""The MCP protocol over stdio, in handshake and stateless versions, against a real process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.integration.app_process import environment, parse_json, run
from tests.integration.mcp.stdio_client import (
    CLIENT,
    ELICITATION,
    HANDSHAKE_VERSION,
    HANDSHAKE_VERSIONS,
    META,
    SERVED,
    STATELESS_VERSION,
    WITHOUT_SDK,
    StdioClient,
    connect,
    failure_of,
    launcher_command,
)

VERSIONS = [HANDSHAKE_VERSION, STATELESS_VERSION]
SERVER = {"name": "served", "version": "2.1", "description": "Tools to be called by clients."}


@pytest.fixture(
    scope="module", params=[*VERSIONS, f"{HANDSHAKE_VERSION} SDK", f"{STATELESS_VERSION} SDK"]
)
def client(request: pytest.FixtureRequest):
    """Yield a client that tests without side effects share.

    StdioServer answers it, or the SDK after the handover.
    """
    version, _, uses_sdk = request.param.partition(" ")
    with connect(version=version) as client:
        if uses_sdk:
            client.result("resources/list")
        yield client


@pytest.fixture(params=VERSIONS)
def own_client(request: pytest.FixtureRequest):
    """Yield a client for a single test."""
    with connect(version=request.param) as client:
        yield client


def meta_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the `meta` of the envelope."""
    return result["_meta"]["io.tooli/meta"]


# ------------------------------------------------------------------ handshake and versions


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_supported_version_is_accepted(version: str) -> None:
    with connect(version=version) as client:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        result = client.result("initialize", params)
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == SERVER
    assert result["instructions"] == "Tools to be called by clients."
    assert result["capabilities"]["tools"] == {"listChanged": True}


@pytest.mark.parametrize("version", ["2023-01-01", "2026-07-28", "", "x" * 1000])
def test_unknown_version_gets_the_latest_handshake_version(version: str) -> None:
    with connect(initialize=False) as client:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        assert client.result("initialize", params)["protocolVersion"] == HANDSHAKE_VERSION


def test_discovery_returns_versions_and_capabilities() -> None:
    with connect(version=STATELESS_VERSION, initialize=False) as client:
        result = client.initialize()
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == [STATELESS_VERSION]
    assert result["_meta"][f"{META}serverInfo"] == SERVER
    assert result["ttlMs"] > 0 and result["cacheScope"] == "private"
    assert "logging" not in result["capabilities"]
    assert result["capabilities"]["tools"] == {"listChanged": True}


def test_only_handshake_versions_have_ping() -> None:
    with connect() as client:
        assert client.result("ping") == {}
    with connect(version=STATELESS_VERSION) as client:
        assert client.error("ping")["code"] == -32601


def test_only_ping_works_before_the_handshake() -> None:
    with connect(initialize=False) as client:
        assert client.result("ping") == {}
        assert client.error("tools/list")["code"] == -32602
        assert client.error("tools/call", {"name": "add"})["code"] == -32602
        client.initialize()
        assert client.value("add", {"a": 1}) == 2


def test_connection_does_not_mix_handshake_and_stateless_versions() -> None:
    with connect() as client:
        client.stateless, client.version = True, STATELESS_VERSION
        assert client.error("tools/list")["code"] == -32600
    with connect(version=STATELESS_VERSION) as client:
        client.stateless = False
        error = client.error("initialize", {"protocolVersion": HANDSHAKE_VERSION})
        assert error["code"] == -32022
        assert error["data"] == {"supported": [STATELESS_VERSION], "requested": HANDSHAKE_VERSION}
        assert client.error("tools/list")["code"] == -32602  # has no `_meta`


def test_unsupported_version_error_lists_supported_versions() -> None:
    with connect(version=STATELESS_VERSION) as client:
        client.version = "2027-01-01"
        error = client.error("tools/list")
    assert error["code"] == -32022
    assert error["data"] == {"supported": [STATELESS_VERSION], "requested": "2027-01-01"}


def test_unknown_methods_are_json_rpc_errors(own_client: StdioClient) -> None:
    assert own_client.error("no/such")["code"] == -32601
    assert own_client.error("x" * 100_000)["code"] == -32601


# ------------------------------------------------------------------ tools/list


def test_listed_tools_are_valid(client: StdioClient) -> None:
    tools = client.result("tools/list")["tools"]
    assert [tool["name"] for tool in tools][:3] == ["add", "items", "pet"]
    assert "secret" not in [tool["name"] for tool in tools]
    for tool in tools:
        assert re.fullmatch("[a-z0-9_]{1,64}", tool["name"])
        assert tool["title"] and tool["description"]
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
        jsonschema.Draft202012Validator.check_schema(schema)
        output = tool.get("outputSchema")
        if output is not None:
            assert "$ref" not in output
            assert client.stateless or output["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(output)
        hints = tool.get("annotations", {})
        assert {type(hint) for hint in hints.values()} <= {bool}


def test_listed_tool_has_the_expected_fields(client: StdioClient) -> None:
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    number = {"type": "integer"}
    meta = {"type": "object"}
    fields = {"result": number, "meta": meta}
    wrapped = {"type": "object", "properties": fields, "required": ["result"]}
    bare = {"anyOf": [number, {"type": "object", "required": ["result", "meta"]}]}
    assert tools["add"] == {
        "name": "add",
        "title": "Add",
        "description": "Add two numbers.\n\nBoth are whole.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "b": {"type": "integer", "default": 1},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        "outputSchema": bare if client.stateless else wrapped,
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
        "_meta": {
            "anthropic/searchHint": "Add two numbers. To add.",
            "io.tooli/tool": {"version": "3", "when_to_use": "To add."},
        },
    }
    assert tools["users_create_one"]["title"] == "Users create one"
    assert {"yes", "dry_run"} <= tools["wipe"]["inputSchema"]["properties"].keys()
    assert tools["wipe"]["annotations"]["destructiveHint"] is True
    assert tools["launch"]["inputSchema"]["properties"].keys() == {"target"}
    assert tools["launch"]["_meta"]["io.tooli/tool"]["requires_approval"] is True
    assert tools["launch"]["_meta"]["io.tooli/tool"]["danger_level"] == "high"
    assert "outputSchema" not in tools["loose"]


@pytest.mark.parametrize("cursor", ["", "p0", "p7000", "p٣", "-1", "x" * 10_000])
def test_unknown_cursor_is_rejected(client: StdioClient, cursor: str) -> None:
    assert client.error("tools/list", {"cursor": cursor})["code"] == -32602


def test_list_has_several_pages(tmp_path: Path) -> None:
    app = tmp_path / "many.py"
    app.write_text(
        "from tooli import Tooli\n"
        "app = Tooli('many')\n"
        "for i in range(1203):\n"
        "    def fn(x: int = 1) -> int:\n"
        "        return x\n"
        "    app.command(f'tool-{i}')(fn)\n"
        "app()\n"
    )
    with connect(app) as client:
        names: list[str] = []
        page: dict[str, Any] = {}
        while not names or "nextCursor" in page:
            page = client.result("tools/list", {"cursor": page["nextCursor"]} if page else None)
            names += [tool["name"] for tool in page["tools"]]
    assert names == [f"tool_{i}" for i in range(1203)]


# ------------------------------------------------------------------ tools/call


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", {"a": 1, "b": 2}, 3),
        ("add", {"a": "1"}, 2),
        ("items", {"n": 2}, [0, 1]),
        ("items", {"n": 0}, []),
        ("greet", {"name": "é\N{SNOWMAN}\U0001f680"}, "Hello é\N{SNOWMAN}\U0001f680!"),
    ],
)
def test_handshake_versions_wrap_results_that_are_not_objects(
    client: StdioClient, name: str, arguments: dict[str, Any], expected: Any
) -> None:
    result = client.call(name, arguments)
    structured = expected if client.stateless else {"result": expected}
    assert result["structuredContent"] == structured
    assert [block["type"] for block in result["content"]] == ["text"]
    assert parse_json(result["content"][0]["text"]) == structured
    assert result["isError"] is False
    assert result.get("resultType") == ("complete" if client.stateless else None)


def test_object_is_not_wrapped(client: StdioClient) -> None:
    assert client.call("pet", {"name": "Rex"})["structuredContent"] == {"name": "Rex", "age": 1}


MODELS_APP = """
import pydantic
from tooli import Tooli

app = Tooli("models")

class Address(pydantic.BaseModel):
    street: str
    number: int = 1

class Person(pydantic.BaseModel):
    name: str
    address: Address | None = None

@app.command()
def move(person: Person, street: str) -> Person:
    return person.model_copy(update={"address": Address(street=street)})

@app.command()
def people(persons: list[Person]) -> list[Person]:
    return persons

app()
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_models_are_arguments_and_results(version: str, tmp_path: Path) -> None:
    app = tmp_path / "models.py"
    app.write_text("from __future__ import annotations\n" + MODELS_APP)
    with connect(app, version) as client:
        tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
        moved = client.call("move", {"person": {"name": "Ada"}, "street": "Elm"})
        address = {"street": "Elm", "number": 1}
        assert moved["structuredContent"] == {"name": "Ada", "address": address}
        jsonschema.validate(moved["structuredContent"], tools["move"]["outputSchema"])
        people = client.call("people", {"persons": [{"name": "Ada"}]})["structuredContent"]
        jsonschema.validate(people, tools["people"]["outputSchema"])
        assert client.failure("move", {"person": {"nam": "x"}, "street": "y"})["code"] == "E1004"


def test_optional_result_is_always_wrapped(client: StdioClient) -> None:
    assert client.call("maybe")["structuredContent"] == {"result": None}
    assert client.call("maybe", {"there": True})["structuredContent"] == {"result": 1}


def test_only_objects_are_structured_without_a_declared_type(client: StdioClient) -> None:
    def content_of(kind: str) -> tuple[Any, Any]:
        result = client.call("loose", {"kind": kind})
        return [block["text"] for block in result["content"]], result.get("structuredContent")

    assert content_of("str") == (["text"], None)
    assert content_of("none") == ([], None)
    assert content_of("dict") == (['{"a":1}'], {"a": 1})
    assert content_of("list") == (["[1,2]"], None)


def test_printed_text_is_the_result(client: StdioClient) -> None:
    result = client.call("shout", {"word": "hey"})
    assert result["content"] == [{"type": "text", "text": "HEY"}]
    assert "structuredContent" not in result
    error = client.failure("shout", {"word": "hey", "fail": True})
    assert error["details"]["printed"] == "HEY"


def test_values_that_json_cannot_represent_are_replaced(client: StdioClient) -> None:
    result = client.call("odd")
    data = {"nan": None, "lone": "\ufffd", "snow": "\N{SNOWMAN}", "inf": None, "b": "/w=="}
    warnings = meta_of(result)["warnings"]
    assert warnings
    assert result["structuredContent"] == {**data, "meta": {"warnings": warnings}}


def test_large_result_is_complete(client: StdioClient) -> None:
    assert len(client.value("big", {"size": 4_000_000})) == 4_000_000


def test_result_that_is_too_large_for_a_message_has_a_cursor(client: StdioClient) -> None:
    shown, cursor = 0, None
    while shown == 0 or cursor is not None:
        arguments = {"size": 12_000_000, **({"cursor": cursor} if cursor else {})}
        line = client.call("big", arguments)
        assert len(json.dumps(line)) < 10 * 1024 * 1024
        content = line["structuredContent"]
        is_wrapped = isinstance(content, dict)
        shown += len(content["result"] if is_wrapped else content)
        cursor = content.get("meta", {}).get("page", {}).get("next_cursor") if is_wrapped else None
    assert shown == 12_000_000


def test_results_match_their_output_schemas(client: StdioClient) -> None:
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    for name, arguments in {
        "add": {"a": 1},
        "items": {},
        "pet": {"name": "x"},
        "maybe": {},
        "greet": {"name": "x"},
        "odd": {},
        "whoami": {},
    }.items():
        result = client.call(name, arguments)
        jsonschema.validate(result["structuredContent"], tools[name]["outputSchema"])


def test_meta_contains_the_caller(client: StdioClient) -> None:
    meta = meta_of(client.call("add", {"a": 1}))
    assert type(meta.pop("duration_ms")) is int
    assert meta == {
        "tool": "served.add",
        "version": "3",
        "caller_id": "test-client",
        "caller_version": "0.1",
    }
    assert client.value("whoami") == {"surface": "mcp", "name": "test-client", "version": "0.1"}


def test_environment_sets_session_and_default_caller() -> None:
    env = environment(TOOLI_SESSION_ID="s-1", TOOLI_CALLER="somebody")
    with connect(env=env) as client:
        meta = meta_of(client.call("add", {"a": 1}))
        assert (meta["session_id"], meta["caller_id"]) == ("s-1", "test-client")
    with connect(version=STATELESS_VERSION, env=env, initialize=False) as client:
        client.client = None
        meta = meta_of(client.call("add", {"a": 1}))
        assert (meta["session_id"], meta["caller_id"]) == ("s-1", "somebody")


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("fail", {}, "E1004"),
        ("fail", {"kind": "crash"}, "E5000"),
        ("fail", {"kind": "deep"}, "E5000"),
        ("add", {"a": "x"}, "E1003"),
        ("add", {}, "E1002"),
        ("add", {"a": 1, "c": 2}, "E1004"),
        ("greet", {"name": "x", "tone": "hot"}, "E1003"),
    ],
)
def test_tool_failure_is_a_result_with_is_error(
    client: StdioClient, name: str, arguments: dict[str, Any], code: str
) -> None:
    error = client.failure(name, arguments)
    assert error["code"] == code
    assert error["message"]


def test_failure_keeps_its_suggestion(client: StdioClient) -> None:
    error = client.failure("fail")
    assert error["field"] == "kind"
    assert error["suggestion"]["fix"] == "Say something else."


@pytest.mark.parametrize("kind", ["exit", "exit0", "interrupt"])
def test_exit_in_a_tool_ends_only_the_call(client: StdioClient, kind: str) -> None:
    result = client.call("fail", {"kind": kind})
    assert result["isError"] is (kind != "exit0")
    assert client.value("add", {"a": 1}) == 2


@pytest.mark.parametrize("name", ["nope", "ad", "", "secret", "x" * 100_000, "\ud800"])
def test_unknown_tool_is_a_json_rpc_error(client: StdioClient, name: str) -> None:
    error = client.error("tools/call", {"name": name})
    assert error["code"] == -32602
    assert error["message"].startswith("Unknown tool")
    if name == "ad":
        assert "add" in json.dumps(error)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 1},
        {"name": None},
        {"name": "add", "arguments": [1]},
        {"name": "add", "arguments": "a=1"},
    ],
)
def test_invalid_parameters_are_json_rpc_errors(
    client: StdioClient, params: dict[str, Any]
) -> None:
    assert client.error("tools/call", params)["code"] == -32602


# ------------------------------------------------------------------ progress and logs


@pytest.mark.parametrize("token", [7, "seven", 0])
def test_progress_is_sent_with_the_progress_token(
    own_client: StdioClient, token: int | str
) -> None:
    own_client.call("steps", {"n": 2}, progressToken=token)
    assert {message["method"] for message in own_client.received} == {"notifications/progress"}
    assert [message["params"] for message in own_client.received] == [
        {"progressToken": token, "progress": 1, "total": 2, "message": "stepping"},
        {"progressToken": token, "progress": 2, "total": 2, "message": "stepping"},
        {"progressToken": token, "progress": 2, "total": 2, "message": "done"},
    ]


def test_no_progress_without_a_progress_token(own_client: StdioClient) -> None:
    assert own_client.value("steps", {"n": 2}) == 2
    assert own_client.received == []


def test_handshake_versions_log_from_level_info_by_default() -> None:
    with connect() as client:
        result = client.call("chat")
        assert [(m["params"]["level"], m["params"]["data"]) for m in client.received] == [
            ("error", "loud"),
            ("info", "plain"),
        ]
        assert meta_of(result)["warnings"] == ["careful"]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, []),
        ("error", ["loud"]),
        ("info", ["loud", "plain"]),
        ("debug", ["loud", "plain", "quiet"]),
    ],
)
def test_stateless_request_sets_its_log_level(level: str | None, expected: list[str]) -> None:
    with connect(version=STATELESS_VERSION) as client:
        client.call("chat", **({f"{META}logLevel": level} if level else {}))
        assert [message["params"]["data"] for message in client.received] == expected


# ------------------------------------------------------------------ concurrency and cancellation


@pytest.mark.parametrize("name", ["wait", "wait_async"])
def test_slow_call_does_not_block_others(own_client: StdioClient, name: str) -> None:
    slow = own_client.start_call(name, {"key": "k"})
    assert own_client.value("happened", {"event": "wait k"}) == 1
    assert own_client.value("add", {"a": 1}) == 2
    assert own_client.result("tools/list")["tools"]
    assert own_client.received == []
    own_client.call("release", {"key": "k"})
    assert own_client.response_to(slow)["result"]["isError"] is False


def test_blocking_calls_run_concurrently(own_client: StdioClient) -> None:
    waiting = [own_client.start_call("wait", {"key": "k"}) for _ in range(40)]
    assert own_client.value("happened", {"event": "wait k", "count": 40}) == 40, own_client.received
    own_client.call("release", {"key": "k"})
    for request_id in waiting:
        assert own_client.response_to(request_id)["result"]["isError"] is False


def test_calls_above_the_thread_limit_wait(own_client: StdioClient) -> None:
    waiting = [own_client.start_call("wait", {"key": "k"}) for _ in range(100)]
    assert own_client.value("happened", {"event": "wait k", "count": 64}) == 64
    assert own_client.result("tools/list")["tools"]
    own_client.call("release", {"key": "k"})
    for request_id in waiting:
        assert own_client.response_to(request_id)["result"]["isError"] is False


def test_call_that_is_cancelled_while_it_waits_does_not_run(own_client: StdioClient) -> None:
    waiting = [own_client.start_call("wait", {"key": "k"}) for _ in range(64)]
    assert own_client.value("happened", {"event": "wait k", "count": 64}) == 64
    request_id = own_client.start_call("wait", {"key": "late"})
    own_client.notify("notifications/cancelled", {"requestId": request_id})
    own_client.call("release", {"key": "k"})
    own_client.call("release", {"key": "late"})
    for request_id in waiting:
        own_client.response_to(request_id)
    last = own_client.start_call("wait", {"key": "k"})
    assert own_client.response_to(last)["result"]["isError"] is False
    assert own_client.value("count_of", {"event": "wait late"}) == 0


@pytest.mark.parametrize("name", ["wait", "wait_async", "wait_loop"])
@pytest.mark.parametrize("id_type", [int, str])
def test_cancelled_call_gets_no_answer(own_client: StdioClient, name: str, id_type: type) -> None:
    request_id = own_client.start_call(name, {"key": "k"})
    assert own_client.value("happened", {"event": "wait k"}) == 1
    own_client.notify(
        "notifications/cancelled", {"requestId": id_type(request_id), "reason": "enough"}
    )
    if name != "wait":  # these check for a cancellation
        assert own_client.value("happened", {"event": "cancelled k"}) == 1
    own_client.call("release", {"key": "k"})
    assert own_client.value("add", {"a": 1}) == 2
    assert [
        message for message in own_client.remaining_messages() if message.get("id") == request_id
    ] == []


def test_cancelling_an_unknown_request_is_ignored(own_client: StdioClient) -> None:
    for request_id in (99, "99", None, True, 1.5, [], {}, "x" * 10_000, 10**100):
        own_client.notify("notifications/cancelled", {"requestId": request_id})
    own_client.notify("notifications/cancelled")
    assert own_client.value("add", {"a": 1}) == 2


@pytest.mark.parametrize("method", ["ping", "tools/call", "no/such", None])
def test_request_with_a_pending_id_is_not_answered(own_client: StdioClient, method: str) -> None:
    own_client.send(
        {
            "jsonrpc": "2.0",
            "id": "dup",
            "method": "tools/call",
            "params": own_client.params({"name": "wait", "arguments": {"key": "k"}}),
        }
    )
    assert own_client.value("happened", {"event": "wait k"}) == 1
    params = own_client.params({"name": "add", "arguments": {"a": 1}})
    own_client.send({"jsonrpc": "2.0", "id": "dup", "method": method, "params": params})
    own_client.write(b'{"id": "dup", \n')
    own_client.write(b'[{"jsonrpc": "2.0", "id": "dup", "method": "ping"}]\n')
    own_client.call("release", {"key": "k"})
    answers = [message for message in own_client.remaining_messages() if message.get("id") == "dup"]
    assert [answer["result"]["isError"] for answer in answers] == [False]


def test_integer_and_string_ids_differ(own_client: StdioClient) -> None:
    for request_id in (70, "70"):
        params = own_client.params({"name": "wait", "arguments": {"key": "k"}})
        own_client.send(
            {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        )
    assert own_client.value("happened", {"event": "wait k", "count": 2}) == 2
    own_client.call("release", {"key": "k"})
    assert own_client.response_to(70)["result"] and own_client.response_to("70")["result"]


# ------------------------------------------------------------------ handover to the SDK


def test_pending_calls_survive_the_handover_to_the_sdk(own_client: StdioClient) -> None:
    calls = [own_client.start_call(name, {"key": "k"}) for name in ("wait", "wait_async", "wait")]
    assert own_client.value("happened", {"event": "wait k", "count": 3}) == 3
    assert own_client.result("resources/list")["resources"]
    later = own_client.start_call("wait", {"key": "k"})
    assert own_client.value("happened", {"event": "wait k", "count": 4}) == 4
    own_client.notify("notifications/cancelled", {"requestId": calls[2]})
    own_client.call("release", {"key": "k"})
    for request_id in (*calls[:2], later):
        assert own_client.response_to(request_id)["result"]["isError"] is False
    assert calls[2] not in [message.get("id") for message in own_client.remaining_messages()]


def test_pending_question_survives_the_handover_to_the_sdk() -> None:
    with connect(capabilities=ELICITATION) as client:
        before = client.start_call("ask_name")
        first = client.next_question()
        client.result("resources/list")
        after = client.start_call("ask_name")
        second = client.next_question()
        for question, name in ((second, "after"), (first, "before")):
            answer = {"action": "accept", "content": {"name": name}}
            client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        for request_id, name in ((before, "before"), (after, "after")):
            text = client.response_to(request_id)["result"]["structuredContent"]
            assert text == {"result": f"accept: {name}"}


def test_request_state_stays_valid_after_the_handover_to_the_sdk() -> None:
    with connect(version=STATELESS_VERSION, capabilities=ELICITATION) as client:
        paused = PausedCall(client, "wipe", {"path": "/x"})
        client.result("resources/list")
        assert paused.resume(YES)["result"]["isError"] is False
        assert paused.resume(YES)["error"]["code"] == -32602


def test_cancelled_call_gets_no_answer_with_the_sdk(own_client: StdioClient) -> None:
    own_client.result("resources/list")
    for name in ("wait", "wait_async", "wait_loop"):
        request_id = own_client.start_call(name, {"key": name})
        assert own_client.value("happened", {"event": f"wait {name}"}) == 1
        own_client.notify("notifications/cancelled", {"requestId": request_id})
        if name != "wait":
            assert own_client.value("happened", {"event": f"cancelled {name}"}) == 1
        own_client.call("release", {"key": name})
    assert own_client.value("add", {"a": 1}) == 2
    assert own_client.remaining_messages() == []


# ------------------------------------------------------------------ destructive tools


@pytest.mark.parametrize("name", ["wipe", "wipe_async"])
def test_destructive_call_must_be_confirmed(client: StdioClient, name: str) -> None:
    assert client.failure(name, {"path": "/x"})["code"] == "E1010"
    assert client.failure(name, {"path": "/x", "yes": False})["code"] == "E1010"
    assert client.value(name, {"path": "/x", "yes": True}) == "wiped /x"
    dry_run = client.call(name, {"path": "/x", "dry_run": True})
    assert meta_of(dry_run)["dry_run"] is True
    assert '"basis":"declared"' in dry_run["content"][0]["text"]
    assert dry_run["isError"] is False


def test_arguments_cannot_approve_a_call(client: StdioClient) -> None:
    for arguments in ({}, {"yes": True}, {"approved": True}, {"confirm": True}):
        error = client.failure("launch", {"target": "/x", **arguments})
        assert error["code"] == ("E2101" if arguments in ({}, {"yes": True}) else "E1004")


ANSWERS: list[tuple[Any, bool]] = [
    ({"result": {"action": "accept", "content": {"yes": True}}}, True),
    ({"result": {"action": "accept", "content": {"yes": False}}}, False),
    ({"result": {"action": "accept", "content": {"yes": "true"}}}, False),
    ({"result": {"action": "accept"}}, False),
    ({"result": {"action": "decline"}}, False),
    ({"result": {"action": "cancel"}}, False),
    ({"result": {}}, False),
    ({"error": {"code": -1, "message": "no"}}, False),
]


@pytest.fixture(scope="module")
def handshake_client():
    """Yield a client of a handshake version that supports elicitation."""
    with connect(capabilities=ELICITATION) as client:
        yield client


@pytest.mark.parametrize("name", ["wipe", "wipe_async", "launch"])
@pytest.mark.parametrize(("answer", "approved"), ANSWERS)
def test_approval_decides_the_call_in_handshake_versions(
    handshake_client: StdioClient, name: str, answer: Any, approved: bool
) -> None:
    request_id = handshake_client.start_call(name, {"target" if name == "launch" else "path": "/x"})
    question = handshake_client.next_question()
    assert question["method"] == "elicitation/create"
    assert "/x" in question["params"]["message"]
    assert question["params"]["requestedSchema"]["properties"].keys() == {"yes"}
    handshake_client.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    result = handshake_client.response_to(request_id)["result"]
    if approved:
        assert result["isError"] is False
    else:
        error = failure_of(result)
        assert error["code"] == "E2103"
        assert error["is_retryable"] is False


def test_pending_question_does_not_block_other_calls() -> None:
    with connect(capabilities=ELICITATION) as client:
        request_id = client.start_call("launch", {"target": "/x"})
        question = client.next_question()
        assert client.value("add", {"a": 1}) == 2
        client.notify("notifications/cancelled", {"requestId": request_id})
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        assert [m for m in client.remaining_messages() if m.get("id") == request_id] == []


class PausedCall:
    """A call of a stateless version that needs input: it must be sent again with answers."""

    def __init__(self, client: StdioClient, name: str, arguments: dict[str, Any]) -> None:
        self.client = client
        self.params: dict[str, Any] = {"name": name, "arguments": arguments}
        self.first = client.result("tools/call", self.params)
        assert self.first["resultType"] == "input_required"
        self.state = self.first["requestState"]
        ((self.key, self.question),) = self.first["inputRequests"].items()

    def resume(self, answer: Any, **changed: Any) -> dict[str, Any]:
        """Send the call again with an answer; return the response."""
        answers = {"inputResponses": {self.key: answer}, "requestState": self.state}
        return self.client.request("tools/call", {**self.params, **answers, **changed})


YES = {"action": "accept", "content": {"yes": True}}


@pytest.fixture(scope="module")
def stateless_client():
    """Yield a client of a stateless version that supports elicitation."""
    with connect(version=STATELESS_VERSION, capabilities=ELICITATION) as client:
        yield client


@pytest.mark.parametrize("name", ["wipe", "wipe_async", "launch"])
@pytest.mark.parametrize(("answer", "approved"), [a for a in ANSWERS if a[0].get("result")])
def test_approval_decides_the_call_in_stateless_versions(
    stateless_client: StdioClient, name: str, answer: Any, approved: bool
) -> None:
    paused = PausedCall(stateless_client, name, {"target" if name == "launch" else "path": "/x"})
    assert paused.question["method"] == "elicitation/create"
    assert "/x" in paused.question["params"]["message"]
    result = paused.resume(answer["result"])["result"]
    assert result["resultType"] == "complete"
    if approved:
        assert result["isError"] is False
    else:
        assert failure_of(result)["code"] == "E2103"


@pytest.mark.parametrize("name", ["wipe", "launch"])
def test_request_state_is_valid_for_one_call_and_once(
    stateless_client: StdioClient, name: str
) -> None:
    field = "target" if name == "launch" else "path"
    paused = PausedCall(stateless_client, name, {field: "/x"})
    other = PausedCall(stateless_client, name, {field: "/y"})
    state = paused.state
    body, signature = state[:-43], state[-43:]
    flipped = ("B" if signature[0] != "B" else "C") + signature[1:]
    for state in ("", "x", ".", body, f"{body}.", f"{body}{flipped}", f"r{signature}", "é.é"):
        assert paused.resume(YES, requestState=state)["error"]["code"] == -32602, state
    assert paused.resume(YES, requestState=other.state)["error"]["code"] == -32602
    assert paused.resume(YES, arguments={field: "/z"})["error"]["code"] == -32602
    fresh = PausedCall(stateless_client, name, {field: "/x"})
    stateless_client.client = {"name": "another", "version": "1"}
    try:
        assert fresh.resume(YES)["error"]["code"] == -32602
    finally:
        stateless_client.client = dict(CLIENT)
    used = PausedCall(stateless_client, name, {field: "/x"})
    assert used.resume(YES)["result"]["isError"] is False
    assert used.resume(YES)["error"]["code"] == -32602


@pytest.mark.parametrize("name", ["wipe", "launch"])
def test_approval_without_request_state_is_ignored(
    stateless_client: StdioClient, name: str
) -> None:
    field = "target" if name == "launch" else "path"
    params = {"name": name, "arguments": {field: "/x"}, "inputResponses": {"approval": YES}}
    assert stateless_client.result("tools/call", params)["resultType"] == "input_required"


@pytest.mark.parametrize("answer", [{}, None, True, "accept", {"action": "perhaps"}])
def test_invalid_answer_is_rejected(answer: Any) -> None:
    with connect(version=STATELESS_VERSION, capabilities=ELICITATION) as client:
        assert PausedCall(client, "wipe", {"path": "/x"}).resume(answer)["error"]["code"] == -32602


EXPIRING_APP = """
import tooli.storage.signing as signing

signing.sign_message.__defaults__ = (-1.0,)
import runpy, sys
sys.argv[0] = {app!r}
runpy.run_path({app!r}, run_name="__main__")
"""


def test_request_state_expires(tmp_path: Path) -> None:
    app = tmp_path / "expiring.py"
    app.write_text(EXPIRING_APP.format(app=str(SERVED)))
    with connect(app, STATELESS_VERSION, capabilities=ELICITATION) as client:
        error = PausedCall(client, "wipe", {"path": "/x"}).resume(YES)["error"]
    assert error["code"] == -32602
    assert "expired" in error["message"]


# ------------------------------------------------------------------ questions of a tool


def test_elicitation_returns_the_answer_in_handshake_versions() -> None:
    with connect(capabilities=ELICITATION) as client:
        request_id = client.start_call("ask_name")
        question = client.next_question()
        assert question["params"]["message"] == "Who are you?"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert client.response_to(request_id)["result"]["structuredContent"] == {
            "result": "accept: Ada"
        }
        request_id = client.start_call("ask_twice")
        for word in ("a", "b"):
            answer = {"action": "accept", "content": {"x": word}}
            client.send({"jsonrpc": "2.0", "id": client.next_question()["id"], "result": answer})
        assert client.response_to(request_id)["result"]["structuredContent"] == {"result": "a b"}


def test_elicitation_returns_the_answer_in_stateless_versions(
    stateless_client: StdioClient,
) -> None:
    paused = PausedCall(stateless_client, "ask_name", {})
    answered = paused.resume({"action": "accept", "content": {"name": "Ada"}})
    assert answered["result"]["structuredContent"] == "accept: Ada"
    paused = PausedCall(stateless_client, "ask_twice", {})
    second = paused.resume({"action": "accept", "content": {"x": "a"}})["result"]
    assert second["resultType"] == "input_required"
    ((paused.key, _),) = second["inputRequests"].items()
    paused.state = second["requestState"]
    last = paused.resume({"action": "accept", "content": {"x": "b"}})["result"]
    assert last["structuredContent"] == "a b"


def test_sampling_returns_the_text_of_the_client() -> None:
    sampled = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"}
    with connect(capabilities={"sampling": {}}) as client:
        request_id = client.start_call("think", {"prompt": "6 x 7"})
        question = client.next_question()
        assert question["method"] == "sampling/createMessage"
        assert question["params"]["maxTokens"] == 50
        assert question["params"]["systemPrompt"] == "Be brief."
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": sampled})
        assert client.response_to(request_id)["result"]["structuredContent"] == {"result": "42"}
    with connect(version=STATELESS_VERSION, capabilities={"sampling": {}}) as client:
        paused = PausedCall(client, "think", {"prompt": "6 x 7"})
        assert paused.question["method"] == "sampling/createMessage"
        assert paused.resume(sampled)["result"]["structuredContent"] == "42"


def test_question_without_the_client_capability_is_an_error() -> None:
    with connect() as client:
        assert client.failure("ask_name")["code"] == "E2102"
        assert client.failure("think", {"prompt": "x"})["code"] == "E2102"
    with connect(version=STATELESS_VERSION) as client:
        error = client.error("tools/call", {"name": "ask_name", "arguments": {}})
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"] == {"elicitation": {}}


# ------------------------------------------------------------------ deferred loading


@pytest.mark.parametrize("version", VERSIONS)
def test_deferred_tools_are_found_and_run(version: str) -> None:
    with connect(SERVED, version, "--defer-loading") as client:
        names = [tool["name"] for tool in client.result("tools/list")["tools"]]
        assert names == ["search_tools", "run_tool", "users_create_one"]
        found = client.value("search_tools", {"query": "add two numbers"})
        assert found[0]["name"] == "add"
        assert "a" in found[0]["signature"]
        (tool,) = client.value("search_tools", {"query": "add", "limit": 1, "with_schema": True})
        assert tool["inputSchema"]["required"] == ["a"]
        target = {"name": "add", "arguments": {"a": 1}}
        direct, indirect = client.call("add", {"a": 1}), client.call("run_tool", target)
        for result in (direct, indirect):
            meta_of(result)["duration_ms"] = 0
        assert indirect == direct
        assert client.failure("run_tool", {"name": "nope"})["code"] == "E1001"
        assert (
            client.failure("run_tool", {"name": "add", "arguments": {"a": "x"}})["code"] == "E1003"
        )
        assert client.failure("run_tool", {"name": "wipe", "arguments": {"path": "x"}})
        assert client.failure("run_tool", {"name": 1})["code"] == "E1003"


def test_app_setting_enables_deferred_loading(tmp_path: Path) -> None:
    app = tmp_path / "large.py"
    app.write_text(
        "from tooli import Tooli\n"
        "app = Tooli('large', defer_loading=True)\n"
        "@app.command()\n"
        "def one() -> int:\n    return 1\n"
        "@app.command()\n"
        "def two() -> int:\n    return 2\n"
        "app()\n"
    )
    with connect(app) as client:
        names = [tool["name"] for tool in client.result("tools/list")["tools"]]
        assert names == ["search_tools", "run_tool"]
        assert "search_tools" in client.initialize()["instructions"]


# ------------------------------------------------------------------ start of the server


def test_launcher_serves_tooli_and_typer_apps(tmp_path: Path) -> None:
    with connect(command=launcher_command(SERVED)) as client:
        assert client.value("add", {"a": 1}) == 2
        assert client.shut_down() == 0
    plain = tmp_path / "plain.py"
    plain.write_text(
        "import typer\n"
        "cli = typer.Typer()\n"
        "@cli.command()\n"
        "def hello(name: str):\n    print('hello', name)\n"
        "@cli.command()\n"
        "def add(a: int, b: int = 2) -> int:\n    return a + b\n"
    )
    with connect(command=launcher_command(f"{plain}:cli"), version=STATELESS_VERSION) as client:
        assert client.call("hello", {"name": "x"})["content"][0]["text"] == "hello x"
        assert client.value("add", {"a": 1}) == 3


def test_unknown_transport_is_an_input_error() -> None:
    done = run(SERVED, "mcp", "serve", "--transport", "carrier-pigeon")
    assert done.code == 2
    assert b"carrier-pigeon" in done.out + done.err
    assert b"stdio" in done.out + done.err


def test_app_setting_selects_the_stdio_transport(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    text = SERVED.read_text().replace('version="2.1"', 'version="2.1", mcp_transport="stdio"')
    app.write_text(text)
    with connect(app) as client:
        assert client.value("add", {"a": 1}) == 2
    with connect(app, HANDSHAKE_VERSION, "--transport", "stdio") as client:
        assert client.value("add", {"a": 1}) == 2


def test_app_setting_selects_the_http_transport(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    text = SERVED.read_text().replace('version="2.1"', 'version="2.1", mcp_transport="http"')
    app.write_text(text)
    with connect(app, HANDSHAKE_VERSION, "--port", "0", initialize=False) as client:
        client.wait_for_stderr(b"http://127.0.0.1:")
        client.process.terminate()
        assert client.process.wait(60) in (0, -15, 143)
        assert client.remaining_messages() == []


UNSUPPORTED_SDK = """
import sys
sys.modules["mcp_types"] = None  # as in an unsupported version of the SDK
"""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "setup", [WITHOUT_SDK, UNSUPPORTED_SDK, 'import sys\nsys.modules["mcp"] = None\n']
)
def test_server_works_without_the_sdk(version: str, setup: str, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(setup + SERVED.read_text())
    with connect(app, version) as client:
        assert client.value("add", {"a": 1}) == 2
        listed = client.request("resources/list")["result"]["resources"]
        assert [resource["uri"] for resource in listed][:1] == ["fact://one"]
        assert client.error("completion/complete")["code"] == -32601
        client.wait_for_stderr(b"pip install 'tooli[mcp]>=7.0a1'")
        assert client.value("add", {"a": 1}) == 2
        assert client.call("chat")["isError"] is False
        if setup != UNSUPPORTED_SDK:
            capabilities = client.initialize()["capabilities"]
            assert set(capabilities) == {"prompts", "resources", "tools"}
            assert not capabilities["resources"]["subscribe"]
        assert client.shut_down() == 0
        assert b"Traceback" not in client.stderr
