"""An MCP server for tests, with the standard library only. Its faults are chosen by the arguments.

    fake_server.py [handshake | stateless] [FAULT …]

It writes one line for each start, and one for each call, to the file in the variable `FAKE_LOG`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

ERA = next((word for word in sys.argv[1:] if word in ("handshake", "stateless")), "handshake")
FAULTS = {*sys.argv[1:]}
META = "io.modelcontextprotocol/"
INTEGERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def tool(name: str, schema: dict[str, Any] = EMPTY, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Run {name}.", "inputSchema": schema, **fields}


TOOLS = [
    tool("add", INTEGERS, outputSchema=SUM, annotations={"readOnlyHint": True}),
    tool("echo", {"type": "object", "properties": {"text": {"type": "string"}}}),
    tool("fail"),
    tool("hang", annotations={"readOnlyHint": True}),
    tool("die"),
    tool("die_once", annotations={"readOnlyHint": True}),
    tool("ask"),
    tool("sample"),
    tool("steps"),
    tool("content"),
    tool("large"),
    tool("change"),
    tool("environment"),
    tool("broken", {"type": "string"}),
]

write_lock = threading.Lock()
waiting: dict[str, Any] = {}
cancelled: set[Any] = set()


def log(text: str) -> None:
    path = os.environ.get("FAKE_LOG")
    if path:
        with open(path, "a") as file:
            file.write(f"{text}\n")


def send(message: dict[str, Any]) -> None:
    with write_lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text_result(text: str, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **fields}


def ask(method: str, params: dict[str, Any]) -> Any:
    """Send a request to the client and wait for its answer."""
    key = f"q{len(waiting) + 1}"
    waiting[key] = event = threading.Event()
    send({"id": key, "method": method, "params": params})
    event.wait(60)
    return event.answer  # type: ignore[attr-defined]


FORM = {
    "message": "Who are\x1b[31m you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Your name"}},
        "required": ["name"],
    },
}
PROMPT = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}],
    "maxTokens": 7,
    "temperature": 0.5,
}


def question(params: dict[str, Any], method: str, request: dict[str, Any]) -> Any:
    """Return the answer to a question, or the result that asks it."""
    if ERA == "handshake":
        return ask(method, request)
    answers = params.get("inputResponses")
    if answers is None:
        requests = {"who": {"method": method, "params": request}}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "s1"}
    assert params["requestState"] == "s1"
    return answers["who"]


def call(number: Any, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = params["name"], params.get("arguments") or {}
    log(f"call {name}")
    meta = params.get("_meta") or {}
    if name == "add":
        total = arguments.get("a", 0) + arguments.get("b", 0)
        return text_result(json.dumps({"sum": total}), structuredContent={"sum": total})
    if name == "echo":
        return text_result(json.dumps(arguments))
    if name == "fail":
        return text_result("No such\x1b[31m file.", isError=True)
    if name == "hang":
        while number not in cancelled:
            time.sleep(0.01)
        log("cancelled hang")
        return text_result("too late")
    if name in ("die", "die_once"):
        marker = os.environ.get("FAKE_LOG", "") + ".died"
        if name == "die" or not os.path.exists(marker):
            if name == "die_once":
                open(marker, "w").close()
            sys.stderr.write("fatal: the disk is full\n")
            sys.stderr.flush()
            os._exit(3)
        return text_result("alive")
    if name == "ask":
        answer = question(params, "elicitation/create", FORM)
        return answer if "resultType" in answer else text_result(json.dumps(answer))
    if name == "sample":
        answer = question(params, "sampling/createMessage", PROMPT)
        return answer if "resultType" in answer else text_result(json.dumps(answer))
    if name == "steps":
        token = meta.get("progressToken")
        for step in (1, 2):
            progress = {"progressToken": token, "progress": step, "total": 2, "message": f"s{step}"}
            send({"method": "notifications/progress", "params": progress})
        note = {"level": "warning", "data": "almost\x1b[31m done"}
        send({"method": "notifications/message", "params": note})
        return text_result("done")
    if name == "content":
        return {
            "content": [
                {"type": "text", "text": "a picture:"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
                {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
                {"type": "image", "data": 7},
            ]
        }
    if name == "large":
        return text_result("x" * (50 << 20))
    if name == "change":
        TOOLS.append(tool(f"new_{len(TOOLS)}"))
        send({"method": "notifications/tools/list_changed"})
        return text_result("changed")
    return text_result(json.dumps(dict(os.environ)))


def answer(message: dict[str, Any]) -> None:
    number, method, params = message["id"], message["method"], message.get("params") or {}
    info = {"name": "fake", "version": "1"}
    result: dict[str, Any] = {}
    if method == "initialize" and ERA == "handshake":
        version = "1999-01-01" if "old" in FAULTS else params["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        result = {"protocolVersion": version, "serverInfo": info, "capabilities": capabilities}
    elif method == "server/discover" and ERA == "stateless":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "_meta": {}}
        result["_meta"][f"{META}serverInfo"] = info
    elif method == "tools/list":
        start = int(params.get("cursor", "0"))
        result = {"tools": TOOLS[start : start + 10]}
        if start + 10 < len(TOOLS):
            result["nextCursor"] = str(start + 10)
    elif method == "tools/call":
        if params["name"] not in [entry["name"] for entry in TOOLS]:
            send({"id": number, "error": {"code": -32602, "message": "Unknown tool"}})
            return
        result = call(number, params)
    elif method != "ping":
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
        return
    if number not in cancelled:
        send({"id": number, "result": result})


def main() -> None:
    log(f"start {os.getpid()}")
    if "silent" in FAULTS:
        time.sleep(600)
    if "noise" in FAULTS:
        while True:
            print("Welcome to the server!")
    if "exit" in FAULTS:
        sys.exit("cannot start: no licence")
    if "banner" in FAULTS:
        print("Listening …", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "server/discover" and "strict" in FAULTS:
            sys.exit("unknown request")
        if "method" not in message:
            event = waiting[message["id"]]
            event.answer = message.get("result") or message.get("error")
            event.set()
        elif message["method"] == "notifications/cancelled":
            cancelled.add(message["params"]["requestId"])
        elif "id" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
    if "stubborn" in FAULTS:
        time.sleep(600)


main()
