"""The stdio front, from outside: what a client asks, and what it gets, in both eras."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.integration.mcp.talk import (
    CLIENT,
    FORMS,
    HANDSHAKE,
    HANDSHAKE_VERSION,
    META,
    SERVED,
    STATELESS_VERSION,
    Talk,
    failure_of,
    launching,
    talk,
)
from tests.integration.outside import environment, parse, run

ERAS = [HANDSHAKE_VERSION, STATELESS_VERSION]
SERVER = {"name": "served", "version": "2.1", "description": "Tools to be called by clients."}


@pytest.fixture(
    scope="module", params=[*ERAS, f"{HANDSHAKE_VERSION} SDK", f"{STATELESS_VERSION} SDK"]
)
def line(request: pytest.FixtureRequest):
    """A conversation that is shared by the tests that leave nothing behind.

    With the front, and with the SDK after it has taken over.
    """
    version, _, handed = request.param.partition(" ")
    with talk(version=version) as conversation:
        if handed:
            conversation.result("resources/list")
        yield conversation


@pytest.fixture(params=ERAS)
def own(request: pytest.FixtureRequest):
    """A conversation of the test's own."""
    with talk(version=request.param) as conversation:
        yield conversation


def meta_of(result: dict[str, Any]) -> dict[str, Any]:
    """What the envelope would call `meta`."""
    return result["_meta"]["io.tooli/meta"]


# ------------------------------------------------------------------ opening


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_known_version_is_agreed_on(version: str) -> None:
    with talk(version=version) as line:
        payload = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        opened = line.result("initialize", payload)
    assert opened["protocolVersion"] == version
    assert opened["serverInfo"] == SERVER
    assert opened["instructions"] == "Tools to be called by clients."
    assert opened["capabilities"]["tools"] == {"listChanged": True}


@pytest.mark.parametrize("version", ["2023-01-01", "2026-07-28", "", "x" * 1000])
def test_an_unknown_version_is_answered_with_the_latest_handshake(version: str) -> None:
    with talk(open=False) as line:
        payload = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        assert line.result("initialize", payload)["protocolVersion"] == HANDSHAKE_VERSION


def test_discovery() -> None:
    with talk(version=STATELESS_VERSION, open=False) as line:
        found = line.open()
    assert found["resultType"] == "complete"
    assert found["supportedVersions"] == [STATELESS_VERSION]
    assert found["_meta"][f"{META}serverInfo"] == SERVER
    assert found["ttlMs"] > 0 and found["cacheScope"] == "private"
    assert "logging" not in found["capabilities"]
    assert found["capabilities"]["tools"] == {"listChanged": True}


def test_ping_is_of_the_handshake_era() -> None:
    with talk() as line:
        assert line.result("ping") == {}
    with talk(version=STATELESS_VERSION) as line:
        assert line.error("ping")["code"] == -32601


def test_before_the_handshake_there_is_only_ping() -> None:
    with talk(open=False) as line:
        assert line.result("ping") == {}
        assert line.error("tools/list")["code"] == -32602
        assert line.error("tools/call", {"name": "add"})["code"] == -32602
        line.open()
        assert line.value("add", {"a": 1}) == 2


def test_the_eras_do_not_mix() -> None:
    with talk() as line:
        line.stateless, line.version = True, STATELESS_VERSION
        assert line.error("tools/list")["code"] == -32600
    with talk(version=STATELESS_VERSION) as line:
        line.stateless = False
        refused = line.error("initialize", {"protocolVersion": HANDSHAKE_VERSION})
        assert refused["code"] == -32022
        assert refused["data"] == {"supported": [STATELESS_VERSION], "requested": HANDSHAKE_VERSION}
        assert line.error("tools/list")["code"] == -32602  # without the envelope


def test_a_later_version_is_refused_with_what_is_supported() -> None:
    with talk(version=STATELESS_VERSION) as line:
        line.version = "2027-01-01"
        refused = line.error("tools/list")
    assert refused["code"] == -32022
    assert refused["data"] == {"supported": [STATELESS_VERSION], "requested": "2027-01-01"}


def test_unknown_methods(own: Talk) -> None:
    assert own.error("no/such")["code"] == -32601
    assert own.error("x" * 100_000)["code"] == -32601


# ------------------------------------------------------------------ tools/list


def test_the_list_is_what_clients_accept(line: Talk) -> None:
    tools = line.result("tools/list")["tools"]
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
            assert line.stateless or output["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(output)
        hints = tool["annotations"]
        assert hints.keys() & {"readOnlyHint", "destructiveHint"}
        assert {type(hint) for hint in hints.values()} == {bool}


def test_a_tool_in_the_list(line: Talk) -> None:
    tools = {tool["name"]: tool for tool in line.result("tools/list")["tools"]}
    number = {"type": "integer"}
    wrapped = {"type": "object", "properties": {"result": number}, "required": ["result"]}
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
        "outputSchema": number if line.stateless else wrapped,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"io.tooli/tool": {"version": "3", "when_to_use": "To add."}},
    }
    assert tools["users_create_one"]["title"] == "Users create one"
    assert {"yes", "dry_run"} <= tools["wipe"]["inputSchema"]["properties"].keys()
    assert tools["wipe"]["annotations"]["destructiveHint"] is True
    assert tools["launch"]["inputSchema"]["properties"].keys() == {"target"}
    assert tools["launch"]["_meta"]["io.tooli/tool"]["requires_approval"] is True
    assert tools["launch"]["_meta"]["io.tooli/tool"]["danger_level"] == "high"
    assert "outputSchema" not in tools["loose"]


@pytest.mark.parametrize("cursor", ["", "p0", "p7000", "p٣", "-1", "x" * 10_000])
def test_a_cursor_that_nobody_gave(line: Talk, cursor: str) -> None:
    assert line.error("tools/list", {"cursor": cursor})["code"] == -32602


def test_pages(tmp_path: Path) -> None:
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
    with talk(app) as line:
        names: list[str] = []
        page: dict[str, Any] = {}
        while not names or "nextCursor" in page:
            page = line.result("tools/list", {"cursor": page["nextCursor"]} if page else None)
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
def test_a_result_that_is_no_object_is_wrapped_for_older_clients(
    line: Talk, name: str, arguments: dict[str, Any], expected: Any
) -> None:
    result = line.call(name, arguments)
    structured = expected if line.stateless else {"result": expected}
    assert result["structuredContent"] == structured
    assert [block["type"] for block in result["content"]] == ["text"]
    assert parse(result["content"][0]["text"]) == structured
    assert result["isError"] is False
    assert result.get("resultType") == ("complete" if line.stateless else None)


def test_objects_stand_alone(line: Talk) -> None:
    assert line.call("pet", {"name": "Rex"})["structuredContent"] == {"name": "Rex", "age": 1}


MODELS = """
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


@pytest.mark.parametrize("version", ERAS)
def test_models(version: str, tmp_path: Path) -> None:
    app = tmp_path / "models.py"
    app.write_text("from __future__ import annotations\n" + MODELS)
    with talk(app, version) as line:
        tools = {tool["name"]: tool for tool in line.result("tools/list")["tools"]}
        moved = line.call("move", {"person": {"name": "Ada"}, "street": "Elm"})
        there = {"street": "Elm", "number": 1}
        assert moved["structuredContent"] == {"name": "Ada", "address": there}
        jsonschema.validate(moved["structuredContent"], tools["move"]["outputSchema"])
        shown = line.call("people", {"persons": [{"name": "Ada"}]})["structuredContent"]
        jsonschema.validate(shown, tools["people"]["outputSchema"])
        assert line.failure("move", {"person": {"nam": "x"}, "street": "y"})["code"] == "E1003"


def test_a_bare_null_is_always_wrapped(line: Talk) -> None:
    assert line.call("maybe")["structuredContent"] == {"result": None}
    assert line.call("maybe", {"there": True})["structuredContent"] == {"result": 1}


def test_results_that_nobody_declared(line: Talk) -> None:
    def shown(kind: str) -> tuple[Any, Any]:
        result = line.call("loose", {"kind": kind})
        return [block["text"] for block in result["content"]], result.get("structuredContent")

    assert shown("str") == (["text"], None)
    assert shown("none") == ([], None)
    assert shown("dict") == (['{"a":1}'], {"a": 1})
    assert shown("list") == (["[1,2]"], None)


def test_what_a_command_prints_is_its_result(line: Talk) -> None:
    result = line.call("shout", {"word": "hey"})
    assert result["content"] == [{"type": "text", "text": "HEY"}]
    assert "structuredContent" not in result
    failed = line.failure("shout", {"word": "hey", "fail": True})
    assert failed["details"]["printed"] == "HEY"


def test_what_json_cannot_hold(line: Talk) -> None:
    result = line.call("odd")
    data = {"nan": None, "lone": "\ufffd", "snow": "\N{SNOWMAN}", "inf": None, "b": "/w=="}
    assert result["structuredContent"] == data
    assert meta_of(result)["warnings"]


def test_five_megabytes(line: Talk) -> None:
    assert len(line.value("big", {"size": 5_000_000})) == 5_000_000


def test_every_result_fits_its_schema(line: Talk) -> None:
    tools = {tool["name"]: tool for tool in line.result("tools/list")["tools"]}
    for name, arguments in {
        "add": {"a": 1},
        "items": {},
        "pet": {"name": "x"},
        "maybe": {},
        "greet": {"name": "x"},
        "odd": {},
        "whoami": {},
    }.items():
        result = line.call(name, arguments)
        jsonschema.validate(result["structuredContent"], tools[name]["outputSchema"])


def test_meta_says_who_called(line: Talk) -> None:
    meta = meta_of(line.call("add", {"a": 1}))
    assert type(meta.pop("duration_ms")) is int
    assert meta == {
        "tool": "served.add",
        "version": "3",
        "caller_id": "talker",
        "caller_version": "0.1",
    }
    assert line.value("whoami") == {"surface": "mcp", "name": "talker", "version": "0.1"}


def test_the_environment_names_session_and_caller() -> None:
    env = environment(TOOLI_SESSION_ID="s-1", TOOLI_CALLER="somebody")
    with talk(env=env) as line:
        meta = meta_of(line.call("add", {"a": 1}))
        assert (meta["session_id"], meta["caller_id"]) == ("s-1", "talker")
    with talk(version=STATELESS_VERSION, env=env, open=False) as line:
        line.client = None
        meta = meta_of(line.call("add", {"a": 1}))
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
def test_a_failure_is_a_result(line: Talk, name: str, arguments: dict[str, Any], code: str) -> None:
    failed = line.failure(name, arguments)
    assert failed["code"] == code
    assert failed["message"]


def test_a_failure_keeps_its_suggestion(line: Talk) -> None:
    failed = line.failure("fail")
    assert failed["field"] == "kind"
    assert failed["suggestion"]["fix"] == "Say something else."


@pytest.mark.parametrize("kind", ["exit", "exit0", "interrupt"])
def test_a_tool_that_wants_to_end_the_process_ends_only_its_call(line: Talk, kind: str) -> None:
    result = line.call("fail", {"kind": kind})
    assert result["isError"] is (kind != "exit0")
    assert line.value("add", {"a": 1}) == 2


@pytest.mark.parametrize("name", ["nope", "ad", "", "secret", "x" * 100_000, "\ud800"])
def test_an_unknown_tool_is_an_error_of_the_protocol(line: Talk, name: str) -> None:
    refused = line.error("tools/call", {"name": name})
    assert refused["code"] == -32602
    assert refused["message"].startswith("Unknown tool")
    if name == "ad":
        assert "add" in json.dumps(refused)


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
def test_wrong_parameters(line: Talk, params: dict[str, Any]) -> None:
    assert line.error("tools/call", params)["code"] == -32602


# ------------------------------------------------------------------ progress and logs


@pytest.mark.parametrize("token", [7, "seven", 0])
def test_progress_comes_where_a_token_was_given(own: Talk, token: int | str) -> None:
    own.call("steps", {"n": 2}, progressToken=token)
    assert {message["method"] for message in own.heard} == {"notifications/progress"}
    assert [message["params"] for message in own.heard] == [
        {"progressToken": token, "progress": 1, "total": 2, "message": "stepping"},
        {"progressToken": token, "progress": 2, "total": 2, "message": "stepping"},
        {"progressToken": token, "progress": 2, "total": 2, "message": "done"},
    ]


def test_no_progress_without_a_token(own: Talk) -> None:
    assert own.value("steps", {"n": 2}) == 2
    assert own.heard == []


def test_logs_in_the_handshake_era_are_as_loud_as_usual() -> None:
    with talk() as line:
        result = line.call("chat")
        assert [(m["params"]["level"], m["params"]["data"]) for m in line.heard] == [
            ("error", "loud"),
            ("info", "plain"),
        ]
        assert meta_of(result)["warnings"] == ["careful"]


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        (None, []),
        ("error", ["loud"]),
        ("info", ["loud", "plain"]),
        ("debug", ["loud", "plain", "quiet"]),
    ],
)
def test_logs_in_the_later_era_are_as_loud_as_asked(level: str | None, heard: list[str]) -> None:
    with talk(version=STATELESS_VERSION) as line:
        line.call("chat", **({f"{META}logLevel": level} if level else {}))
        assert [message["params"]["data"] for message in line.heard] == heard


# ------------------------------------------------------------------ at the same time


@pytest.mark.parametrize("name", ["wait", "wait_async"])
def test_a_slow_call_does_not_hold_a_quick_one(own: Talk, name: str) -> None:
    slow = own.begin(name, {"key": "k"})
    assert own.value("happened", {"event": "wait k"}) == 1
    assert own.value("add", {"a": 1}) == 2
    assert own.result("tools/list")["tools"]
    assert own.heard == []
    own.call("release", {"key": "k"})
    assert own.answer_to(slow)["result"]["isError"] is False


def test_many_calls_at_the_same_time(own: Talk) -> None:
    waiting = [own.begin("wait", {"key": "k"}) for _ in range(40)]
    assert own.value("happened", {"event": "wait k", "count": 40}) == 40, own.heard
    own.call("release", {"key": "k"})
    for one in waiting:
        assert own.answer_to(one)["result"]["isError"] is False


def test_more_calls_than_run_at_the_same_time(own: Talk) -> None:
    waiting = [own.begin("wait", {"key": "k"}) for _ in range(100)]
    assert own.value("happened", {"event": "wait k", "count": 64}) == 64
    assert own.result("tools/list")["tools"]
    own.call("release", {"key": "k"})
    for one in waiting:
        assert own.answer_to(one)["result"]["isError"] is False


def test_a_call_that_was_cancelled_before_its_turn_does_not_run(own: Talk) -> None:
    waiting = [own.begin("wait", {"key": "k"}) for _ in range(64)]
    assert own.value("happened", {"event": "wait k", "count": 64}) == 64
    given = own.begin("wait", {"key": "late"})
    own.notify("notifications/cancelled", {"requestId": given})
    own.call("release", {"key": "k"})
    own.call("release", {"key": "late"})
    for one in waiting:
        own.answer_to(one)
    last = own.begin("wait", {"key": "k"})
    assert own.answer_to(last)["result"]["isError"] is False
    assert own.value("count_of", {"event": "wait late"}) == 0


@pytest.mark.parametrize("name", ["wait", "wait_async", "wait_loop"])
@pytest.mark.parametrize("form", [int, str])
def test_nothing_follows_a_cancellation(own: Talk, name: str, form: type) -> None:
    given = own.begin(name, {"key": "k"})
    assert own.value("happened", {"event": "wait k"}) == 1
    own.notify("notifications/cancelled", {"requestId": form(given), "reason": "enough"})
    if name != "wait":  # these notice it themselves
        assert own.value("happened", {"event": "cancelled k"}) == 1
    own.call("release", {"key": "k"})
    assert own.value("add", {"a": 1}) == 2
    assert [message for message in own.rest() if message.get("id") == given] == []


def test_cancelling_what_is_not_there(own: Talk) -> None:
    for given in (99, "99", None, True, 1.5, [], {}, "x" * 10_000, 10**100):
        own.notify("notifications/cancelled", {"requestId": given})
    own.notify("notifications/cancelled")
    assert own.value("add", {"a": 1}) == 2


@pytest.mark.parametrize("later", ["ping", "tools/call", "no/such", None])
def test_a_second_request_with_a_pending_id_is_not_answered(own: Talk, later: str) -> None:
    own.send(
        {
            "jsonrpc": "2.0",
            "id": "dup",
            "method": "tools/call",
            "params": own.params({"name": "wait", "arguments": {"key": "k"}}),
        }
    )
    assert own.value("happened", {"event": "wait k"}) == 1
    params = own.params({"name": "add", "arguments": {"a": 1}})
    own.send({"jsonrpc": "2.0", "id": "dup", "method": later, "params": params})
    own.write(b'{"id": "dup", \n')
    own.write(b'[{"jsonrpc": "2.0", "id": "dup", "method": "ping"}]\n')
    own.call("release", {"key": "k"})
    answers = [message for message in own.rest() if message.get("id") == "dup"]
    assert [answer["result"]["isError"] for answer in answers] == [False]


def test_ids_of_two_kinds_are_two_ids(own: Talk) -> None:
    for given in (70, "70"):
        params = own.params({"name": "wait", "arguments": {"key": "k"}})
        own.send({"jsonrpc": "2.0", "id": given, "method": "tools/call", "params": params})
    assert own.value("happened", {"event": "wait k", "count": 2}) == 2
    own.call("release", {"key": "k"})
    assert own.answer_to(70)["result"] and own.answer_to("70")["result"]


# ------------------------------------------------------------------ handing over


def test_pending_calls_survive_the_sdk_bridge(own: Talk) -> None:
    calls = [own.begin(name, {"key": "k"}) for name in ("wait", "wait_async", "wait")]
    assert own.value("happened", {"event": "wait k", "count": 3}) == 3
    assert own.result("resources/list")["resources"]
    later = own.begin("wait", {"key": "k"})
    assert own.value("happened", {"event": "wait k", "count": 4}) == 4
    own.notify("notifications/cancelled", {"requestId": calls[2]})
    own.call("release", {"key": "k"})
    for one in (*calls[:2], later):
        assert own.answer_to(one)["result"]["isError"] is False
    assert calls[2] not in [message.get("id") for message in own.rest()]


def test_a_question_survives_the_handover() -> None:
    with talk(capabilities=FORMS) as line:
        before = line.begin("ask_name")
        first = line.asked()
        line.result("resources/list")
        after = line.begin("ask_name")
        second = line.asked()
        for asked, name in ((second, "after"), (first, "before")):
            answer = {"action": "accept", "content": {"name": name}}
            line.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        for given, name in ((before, "before"), (after, "after")):
            text = line.answer_to(given)["result"]["structuredContent"]
            assert text == {"result": f"accept: {name}"}


def test_a_seal_of_the_front_is_one_of_the_sdks() -> None:
    with talk(version=STATELESS_VERSION, capabilities=FORMS) as line:
        turn = Round(line, "wipe", {"path": "/x"})
        line.result("resources/list")
        assert turn.again(YES)["result"]["isError"] is False
        assert turn.again(YES)["error"]["code"] == -32602


def test_nothing_follows_a_cancellation_after_the_handover(own: Talk) -> None:
    own.result("resources/list")
    for name in ("wait", "wait_async", "wait_loop"):
        given = own.begin(name, {"key": name})
        assert own.value("happened", {"event": f"wait {name}"}) == 1
        own.notify("notifications/cancelled", {"requestId": given})
        if name != "wait":
            assert own.value("happened", {"event": f"cancelled {name}"}) == 1
        own.call("release", {"key": name})
    assert own.value("add", {"a": 1}) == 2
    assert own.rest() == []


# ------------------------------------------------------------------ destructive tools


@pytest.mark.parametrize("name", ["wipe", "wipe_async"])
def test_a_destructive_call_must_be_confirmed(line: Talk, name: str) -> None:
    assert line.failure(name, {"path": "/x"})["code"] == "E1010"
    assert line.failure(name, {"path": "/x", "yes": False})["code"] == "E1010"
    assert line.value(name, {"path": "/x", "yes": True}) == "wiped /x"
    planned = line.call(name, {"path": "/x", "dry_run": True})
    assert meta_of(planned)["dry_run"] is True
    assert '"basis":"declared"' in planned["content"][0]["text"]
    assert planned["isError"] is False


def test_only_a_human_approves_a_gated_call(line: Talk) -> None:
    for arguments in ({}, {"yes": True}, {"approved": True}, {"confirm": True}):
        failed = line.failure("launch", {"target": "/x", **arguments})
        assert failed["code"] == ("E2101" if arguments in ({}, {"yes": True}) else "E1004")


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
def older():
    """An older client that can ask its human."""
    with talk(capabilities=FORMS) as conversation:
        yield conversation


@pytest.mark.parametrize("name", ["wipe", "wipe_async", "launch"])
@pytest.mark.parametrize(("answer", "approved"), ANSWERS)
def test_older_clients_ask_their_human(older: Talk, name: str, answer: Any, approved: bool) -> None:
    given = older.begin(name, {"target" if name == "launch" else "path": "/x"})
    asked = older.asked()
    assert asked["method"] == "elicitation/create"
    assert "/x" in asked["params"]["message"]
    assert asked["params"]["requestedSchema"]["properties"].keys() == {"yes"}
    older.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    result = older.answer_to(given)["result"]
    if approved:
        assert result["isError"] is False
    else:
        failed = failure_of(result)
        assert failed["code"] == "E2103"
        assert failed["is_retryable"] is False


def test_a_question_does_not_hold_other_calls() -> None:
    with talk(capabilities=FORMS) as line:
        given = line.begin("launch", {"target": "/x"})
        asked = line.asked()
        assert line.value("add", {"a": 1}) == 2
        line.notify("notifications/cancelled", {"requestId": given})
        line.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert [m for m in line.rest() if m.get("id") == given] == []


class Round:
    """A call of the later era that has to be sent again with answers."""

    def __init__(self, line: Talk, name: str, arguments: dict[str, Any]) -> None:
        self.line = line
        self.params: dict[str, Any] = {"name": name, "arguments": arguments}
        self.first = line.result("tools/call", self.params)
        assert self.first["resultType"] == "input_required"
        self.state = self.first["requestState"]
        ((self.key, self.question),) = self.first["inputRequests"].items()

    def again(self, answer: Any, **changed: Any) -> dict[str, Any]:
        given = {"inputResponses": {self.key: answer}, "requestState": self.state}
        return self.line.ask("tools/call", {**self.params, **given, **changed})


YES = {"action": "accept", "content": {"yes": True}}


@pytest.fixture(scope="module")
def asker():
    """A later client that can ask its human."""
    with talk(version=STATELESS_VERSION, capabilities=FORMS) as conversation:
        yield conversation


@pytest.mark.parametrize("name", ["wipe", "wipe_async", "launch"])
@pytest.mark.parametrize(("answer", "approved"), [a for a in ANSWERS if a[0].get("result")])
def test_later_clients_send_the_call_again(
    asker: Talk, name: str, answer: Any, approved: bool
) -> None:
    turn = Round(asker, name, {"target" if name == "launch" else "path": "/x"})
    assert turn.question["method"] == "elicitation/create"
    assert "/x" in turn.question["params"]["message"]
    result = turn.again(answer["result"])["result"]
    assert result["resultType"] == "complete"
    if approved:
        assert result["isError"] is False
    else:
        assert failure_of(result)["code"] == "E2103"


@pytest.mark.parametrize("name", ["wipe", "launch"])
def test_a_seal_is_for_one_call_and_one_time(asker: Talk, name: str) -> None:
    field = "target" if name == "launch" else "path"
    turn = Round(asker, name, {field: "/x"})
    other = Round(asker, name, {field: "/y"})
    state = turn.state
    body, signature = state[:-43], state[-43:]
    flipped = ("B" if signature[0] != "B" else "C") + signature[1:]
    for state in ("", "x", ".", body, f"{body}.", f"{body}{flipped}", f"r{signature}", "é.é"):
        assert turn.again(YES, requestState=state)["error"]["code"] == -32602, state
    assert turn.again(YES, requestState=other.state)["error"]["code"] == -32602
    assert turn.again(YES, arguments={field: "/z"})["error"]["code"] == -32602
    fresh = Round(asker, name, {field: "/x"})
    asker.client = {"name": "another", "version": "1"}
    try:
        assert fresh.again(YES)["error"]["code"] == -32602
    finally:
        asker.client = dict(CLIENT)
    used = Round(asker, name, {field: "/x"})
    assert used.again(YES)["result"]["isError"] is False
    assert used.again(YES)["error"]["code"] == -32602


@pytest.mark.parametrize("name", ["wipe", "launch"])
def test_a_yes_without_a_seal_is_no_yes(asker: Talk, name: str) -> None:
    field = "target" if name == "launch" else "path"
    params = {"name": name, "arguments": {field: "/x"}, "inputResponses": {"approval": YES}}
    assert asker.result("tools/call", params)["resultType"] == "input_required"


@pytest.mark.parametrize("answer", [{}, None, True, "accept", {"action": "perhaps"}])
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    with talk(version=STATELESS_VERSION, capabilities=FORMS) as line:
        assert Round(line, "wipe", {"path": "/x"}).again(answer)["error"]["code"] == -32602


EXPIRED = """
import tooli.storage.signing as signing

signing.sign_message.__defaults__ = (-1.0,)
import runpy, sys
sys.argv[0] = {app!r}
runpy.run_path({app!r}, run_name="__main__")
"""


def test_a_seal_ends(tmp_path: Path) -> None:
    app = tmp_path / "hasty.py"
    app.write_text(EXPIRED.format(app=str(SERVED)))
    with talk(app, STATELESS_VERSION, capabilities=FORMS) as line:
        refused = Round(line, "wipe", {"path": "/x"}).again(YES)["error"]
    assert refused["code"] == -32602
    assert "expired" in refused["message"]


# ------------------------------------------------------------------ asking


def test_a_form_is_filled_in_by_older_clients() -> None:
    with talk(capabilities=FORMS) as line:
        given = line.begin("ask_name")
        asked = line.asked()
        assert asked["params"]["message"] == "Who are you?"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        line.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        assert line.answer_to(given)["result"]["structuredContent"] == {"result": "accept: Ada"}
        given = line.begin("ask_twice")
        for word in ("a", "b"):
            answer = {"action": "accept", "content": {"x": word}}
            line.send({"jsonrpc": "2.0", "id": line.asked()["id"], "result": answer})
        assert line.answer_to(given)["result"]["structuredContent"] == {"result": "a b"}


def test_a_form_is_filled_in_by_later_clients(asker: Talk) -> None:
    turn = Round(asker, "ask_name", {})
    answered = turn.again({"action": "accept", "content": {"name": "Ada"}})
    assert answered["result"]["structuredContent"] == "accept: Ada"
    turn = Round(asker, "ask_twice", {})
    second = turn.again({"action": "accept", "content": {"x": "a"}})["result"]
    assert second["resultType"] == "input_required"
    ((turn.key, _),) = second["inputRequests"].items()
    turn.state = second["requestState"]
    last = turn.again({"action": "accept", "content": {"x": "b"}})["result"]
    assert last["structuredContent"] == "a b"


def test_the_clients_model_answers() -> None:
    payload = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"}
    with talk(capabilities={"sampling": {}}) as line:
        given = line.begin("think", {"prompt": "6 x 7"})
        asked = line.asked()
        assert asked["method"] == "sampling/createMessage"
        assert asked["params"]["maxTokens"] == 50
        assert asked["params"]["systemPrompt"] == "Be brief."
        line.send({"jsonrpc": "2.0", "id": asked["id"], "result": payload})
        assert line.answer_to(given)["result"]["structuredContent"] == {"result": "42"}
    with talk(version=STATELESS_VERSION, capabilities={"sampling": {}}) as line:
        turn = Round(line, "think", {"prompt": "6 x 7"})
        assert turn.question["method"] == "sampling/createMessage"
        assert turn.again(payload)["result"]["structuredContent"] == "42"


def test_a_question_to_a_client_that_cannot_be_asked() -> None:
    with talk() as line:
        assert line.failure("ask_name")["code"] == "E2102"
        assert line.failure("think", {"prompt": "x"})["code"] == "E2102"
    with talk(version=STATELESS_VERSION) as line:
        refused = line.error("tools/call", {"name": "ask_name", "arguments": {}})
        assert refused["code"] == -32021
        assert refused["data"]["requiredCapabilities"] == {"elicitation": {}}


# ------------------------------------------------------------------ deferred loading


@pytest.mark.parametrize("version", ERAS)
def test_deferred_loading(version: str) -> None:
    with talk(SERVED, version, "--defer-loading") as line:
        names = [tool["name"] for tool in line.result("tools/list")["tools"]]
        assert names == ["search_tools", "run_tool", "users_create_one"]
        found = line.value("search_tools", {"query": "add two numbers"})
        assert found[0]["name"] == "add"
        assert "a" in found[0]["signature"]
        (one,) = line.value("search_tools", {"query": "add", "limit": 1, "with_schema": True})
        assert one["inputSchema"]["required"] == ["a"]
        run_it = {"name": "add", "arguments": {"a": 1}}
        direct, through = line.call("add", {"a": 1}), line.call("run_tool", run_it)
        for result in (direct, through):
            meta_of(result)["duration_ms"] = 0
        assert through == direct
        assert line.failure("run_tool", {"name": "nope"})["code"] == "E1001"
        assert line.failure("run_tool", {"name": "add", "arguments": {"a": "x"}})["code"] == "E1003"
        assert line.failure("run_tool", {"name": "wipe", "arguments": {"path": "x"}})
        assert line.failure("run_tool", {"name": 1})["code"] == "E1003"


def test_an_app_may_defer_by_itself(tmp_path: Path) -> None:
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
    with talk(app) as line:
        names = [tool["name"] for tool in line.result("tools/list")["tools"]]
        assert names == ["search_tools", "run_tool"]
        assert "search_tools" in line.open()["instructions"]


# ------------------------------------------------------------------ starting


def test_the_launcher_serves_any_app(tmp_path: Path) -> None:
    with talk(words=launching(SERVED)) as line:
        assert line.value("add", {"a": 1}) == 2
        assert line.end() == 0
    plain = tmp_path / "plain.py"
    plain.write_text(
        "import typer\n"
        "cli = typer.Typer()\n"
        "@cli.command()\n"
        "def hello(name: str):\n    print('hello', name)\n"
        "@cli.command()\n"
        "def add(a: int, b: int = 2) -> int:\n    return a + b\n"
    )
    with talk(words=launching(f"{plain}:cli"), version=STATELESS_VERSION) as line:
        assert line.call("hello", {"name": "x"})["content"][0]["text"] == "hello x"
        assert line.value("add", {"a": 1}) == 3


def test_a_wrong_transport_is_an_input_error() -> None:
    done = run(SERVED, "mcp", "serve", "--transport", "carrier-pigeon")
    assert done.code == 2
    assert b"carrier-pigeon" in done.out + done.err
    assert b"stdio" in done.out + done.err


def test_the_app_chooses_the_transport(tmp_path: Path) -> None:
    app = tmp_path / "pick.py"
    text = SERVED.read_text().replace('version="2.1"', 'version="2.1", mcp_transport="stdio"')
    app.write_text(text)
    with talk(app) as line:
        assert line.value("add", {"a": 1}) == 2
    with talk(app, HANDSHAKE_VERSION, "--transport", "stdio") as line:
        assert line.value("add", {"a": 1}) == 2


def test_the_app_may_choose_http(tmp_path: Path) -> None:
    app = tmp_path / "pick.py"
    text = SERVED.read_text().replace('version="2.1"', 'version="2.1", mcp_transport="http"')
    app.write_text(text)
    with talk(app, HANDSHAKE_VERSION, "--port", "0", open=False) as line:
        line.wait_for_err(b"http://127.0.0.1:")
        line.process.terminate()
        assert line.process.wait(60) in (0, -15, 143)
        assert line.rest() == []


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
BROKEN = """
import sys
sys.modules["mcp_types"] = None  # an SDK that is not the one we know
"""


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("trick", [HIDE, BROKEN, 'import sys\nsys.modules["mcp"] = None\n'])
def test_tools_work_without_the_sdk(version: str, trick: str, tmp_path: Path) -> None:
    app = tmp_path / "alone.py"
    app.write_text(trick + SERVED.read_text())
    with talk(app, version) as line:
        assert line.value("add", {"a": 1}) == 2
        assert line.error("resources/list")["code"] == -32601
        line.wait_for_err(b"pip install 'tooli[mcp]'")
        assert line.value("add", {"a": 1}) == 2
        assert line.call("chat")["isError"] is False
        if trick != BROKEN:
            assert line.open()["capabilities"] == {"tools": {"listChanged": False}}
        assert line.end() == 0
        assert b"Traceback" not in line.err
