"""MockServer: answers as the HTTP API does, for commands with every kind of parameter and answer.

python tests/integration/page/mock_server.py     serves the page at http://127.0.0.1:8377/
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tooli.http.html_page import read_page
from tooli.http.info_pages import describe_options

TOKEN = "open sesame"
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"&amp;'


class Request(NamedTuple):
    """One received call."""

    path: str
    query: dict[str, str]
    body: Any
    accept: str


# ------------------------------------------------------------------ commands


def command(
    name: str, properties: dict[str, Any], positional: str = "", **more: Any
) -> dict[str, Any]:
    """Return an entry of GET /tools. The names in `positional` are also required."""
    path = name.split(" ")
    arguments = positional.split()
    required = more.pop("required", arguments)
    flags = {key: "--" + key.replace("_", "-") for key in properties if key not in arguments}
    switches = {key for key in flags if _is_boolean(properties[key])}
    entry: dict[str, Any] = {
        "name": name,
        "tool": "file-tools." + ".".join(path),
        "path": path,
        "mcp_name": "_".join(path).replace("-", "_"),
        "description": more.pop("description", name.capitalize() + "."),
        "input_schema": {"type": "object", "properties": properties},
        "positional": arguments,
        "flags": flags,
        "negations": {key: "--no-" + key.replace("_", "-") for key in sorted(switches)},
    }
    if required:
        entry["input_schema"]["required"] = required
    entry["input_schema"]["additionalProperties"] = False
    if "defs" in more:
        entry["input_schema"]["$defs"] = more.pop("defs")
    return {**entry, **more}


def _is_boolean(schema: dict[str, Any]) -> bool:
    alternatives = [schema, *schema.get("anyOf", ())]
    return any(alternative.get("type") == "boolean" for alternative in alternatives)


def optional(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of `T | None = None`."""
    return {"anyOf": [schema, {"type": "null"}], "default": None, **more}


TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
PATH = {"type": "string", "format": "path"}
PATHS = {"type": "array", "items": PATH}
ROW = {
    "type": "object",
    "properties": {"path": TEXT, "size": INTEGER},
    "required": ["path", "size"],
}
REPLACE = {
    "type": "object",
    "properties": {"old": {"type": "string", "minLength": 1}, "new": {**TEXT, "default": ""}},
    "required": ["old"],
    "description": "One text in the name, and what to write in its place.",
}
RULE = {
    "type": "object",
    "description": "The rule: JSON, @file, or part by part, as in --rule.match '*.txt'.",
    "properties": {
        "match": {**TEXT, "description": "Glob for the names to change, such as 'IMG_*.jpg'."},
        "prefix": {**TEXT, "default": "", "description": "Written in front of the name."},
        "ending": optional(TEXT, description="The new ending, such as '.md'."),
        "replace": optional(REPLACE, description="A text to exchange."),
    },
    "required": ["match"],
}
CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat", "type": "string"}, "lives": {**INTEGER, "default": 9}},
    "required": ["kind"],
}
DOG = {
    "type": "object",
    "properties": {"kind": {"const": "dog", "type": "string"}, "name": TEXT},
    "required": ["kind", "name"],
}
DEEP = {
    "type": "object",
    "properties": {
        "one": {
            "type": "object",
            "properties": {
                "two": {
                    "type": "object",
                    "properties": {
                        "three": {"type": "object", "properties": {"four": INTEGER}},
                    },
                }
            },
        }
    },
}
NODE = {
    "type": "object",
    "properties": {
        "v": INTEGER,
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
    },
    "required": ["v"],
}
SIZES = ["xs", "s", "m", "l", "xl", "xxl", "one size fits all of them", "made to measure"]

EVERY_TYPE: dict[str, dict[str, Any]] = {
    "text": {**TEXT, "description": "Any text; Shift+Enter makes a new line."},
    "greeting": {**TEXT, "default": "hello"},
    "count": {**INTEGER, "minimum": 1, "maximum": 100, "default": 10},
    "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.25},
    "huge": INTEGER,
    "verbose": {"type": "boolean", "default": False, "description": "Print more."},
    "colour": {"type": "boolean", "default": True},
    "agreed": {"type": "boolean", "description": "Required, so it has no default state."},
    "perhaps": optional({"type": "boolean"}),
    "level": {"enum": ["low", "mid", "high"], "type": "string", "default": "mid"},
    "size": {"enum": SIZES, "type": "string", "default": "m"},
    "mixed": {"enum": [1, "1", True]},
    "tags": {"type": "array", "items": TEXT, "description": "Enter adds one, Alt+↑ moves it."},
    "numbers": {"type": "array", "items": INTEGER, "uniqueItems": True, "default": []},
    "point": {
        "type": "array",
        "prefixItems": [{"type": "number"}, TEXT],
        "minItems": 2,
        "maxItems": 2,
    },
    "day": {**TEXT, "format": "date"},
    "moment": {**TEXT, "format": "date-time"},
    "hour": {**TEXT, "format": "time"},
    "wait": {**TEXT, "format": "duration"},
    "key": {**TEXT, "format": "uuid"},
    "mail": {**TEXT, "format": "email"},
    "file": {**PATH, "default": "."},
    "secret": {**TEXT, "format": "password"},
    "bytes": {**TEXT, "format": "binary"},
    "blob": {**TEXT, "format": "base64"},
    "limit": optional(INTEGER),
    "when": {
        "anyOf": [INTEGER, {**TEXT, "format": "date"}, {"type": "null"}],
        "default": None,
        "description": "A number of days, or a date.",
    },
    "pet": {"anyOf": [CAT, DOG]},
    "pets": {"type": "array", "items": CAT},
    "labels": {"type": "object", "additionalProperties": INTEGER},
    "rule": RULE,
    "deep": DEEP,
    "node": {"$ref": "#/$defs/Node"},
    "anything": {},
    "free": {"type": "object", "additionalProperties": True},
    "__proto__": {**TEXT, "description": "A name with a special meaning in JavaScript."},
}


def make_tools_document() -> dict[str, Any]:
    """Return the answer to GET /tools."""
    create = {
        "name": TEXT,
        "mail": {**TEXT, "format": "email"},
        "role": {"type": "string", "enum": ["reader", "writer", "admin"], "default": "reader"},
    }
    commands = [
        command(
            "find-files",
            {
                "pattern": {**TEXT, "description": "Glob for the file's name, such as '*.py'."},
                "root": {**PATH, "default": ".", "description": "Folder to start in."},
                "max_depth": {
                    **INTEGER,
                    "minimum": 1,
                    "maximum": 100,
                    "default": 10,
                    "description": "Levels of folders to look at; 1 is the root alone.",
                },
                "include_hidden": {
                    "type": "boolean",
                    "default": False,
                    "description": "Look at names that start with a dot, too.",
                },
            },
            "pattern",
            description="Find files by name, in a folder and the folders below it.\n\n"
            "Folders that cannot be read are left out, with a warning.",
            output_schema={"type": "array", "items": ROW},
            annotations=["read-only", "idempotent"],
            examples=[
                {
                    "args": ["*.py", "--root", "src", "--include-hidden"],
                    "description": "Every Python file below src",
                }
            ],
            error_codes={"E3001": "no file matches the pattern"},
            when_to_use="You know a part of the name, and not the place.",
        ),
        command(
            "search",
            {
                "text": {**TEXT, "description": "What to look for."},
                "rows": {**INTEGER, "default": 5},
                "delay": {"type": "number", "default": 0},
                "fail": {"type": "boolean", "default": False},
            },
            "text",
            description="Find lines that contain a text; each comes as soon as it is found.",
            output_schema={"type": "array", "items": {"type": "object"}},
            annotations=["read-only"],
            streams=True,
        ),
        command(
            "checksum",
            {
                "files": {**PATHS, "description": "The files to read."},
                "algorithm": {"enum": ["sha256", "sha1", "md5"], "default": "sha256"},
            },
            "files",
            description="Compute the digests of files, all at the same time.",
            annotations=["read-only", "idempotent"],
            examples=[{"args": ["app.py", "data.csv"], "description": "Two files"}],
        ),
        command(
            "rename",
            {"rule": RULE, "root": {**PATH, "default": "."}},
            description="Rename the files of one folder by a rule; nothing is overwritten.",
            required=["rule"],
            examples=[
                {
                    "args": ["--rule.match", "*.txt", "--rule.ending", ".md"],
                    "description": "Turn .txt files into .md files",
                },
                {"args": ["--rule", "@rule.json"], "description": "Take the rule from a file"},
            ],
        ),
        command(
            "delete",
            {"files": {**PATHS, "description": "If one of them is missing, all of them stay."}},
            "files",
            description="Delete files, and return what was deleted.",
            annotations=["destructive"],
            output_schema={"type": "array", "items": ROW},
            examples=[{"args": ["old.log", "--yes"], "description": "Delete one file"}],
        ),
        command(
            "every",
            EVERY_TYPE,
            "text",
            description="Take a parameter of every type, and return what was received.",
            required=["text", "agreed", "rule"],
            defs={"Node": NODE},
        ),
        command(
            "big", {"rows": {**INTEGER, "default": 10000}}, description="Return many rows."
        ),
        command("nested", {}, description="Return nested values."),
        command("nothing", {"empty_list": {"type": "boolean", "default": False}}),
        command("count", {}, description="Return a number.", output_schema=INTEGER),
        command(
            "attach",
            {"picture": {**TEXT, "format": "binary"}, "pages": PATHS, "count": INTEGER},
            description="Take files.",
            uploads=["picture", "pages"],
        ),
        command("slow", {}, description="Take three seconds."),
        command("broken", {}, description="Answer without an envelope."),
        command("disconnect", {}, description="Close the connection without an answer."),
        command("guarded", {}, description="Needs a token.", auth=["files:write"]),
        command(
            "deploy",
            {"target": {"enum": ["staging", "production"]}},
            description="Deploy a version.",
            requires_approval=True,
            danger_level="high",
            annotations=["open-world"],
        ),
        command("old", {}, description="A deprecated command.", deprecated="use find-files"),
        command("users list", {}, description="List the users.", annotations=["read-only"]),
        command("users create", create, "name mail", description="Create a user."),
        command(
            "users remove", {"name": TEXT}, "name", annotations=["destructive"],
            description="Remove a user.",
        ),
        command(
            HOSTILE.replace(" ", "_"),
            {"p" + HOSTILE: {**TEXT, "description": HOSTILE, "default": HOSTILE}},
            description=HOSTILE,
            when_to_use=HOSTILE,
            error_codes={HOSTILE: HOSTILE},
            examples=[{"args": ["--p" + HOSTILE, HOSTILE], "description": HOSTILE}],
        ),
    ]  # fmt: skip
    return {
        "app": "file-tools",
        "version": "1.2.0",
        "description": "Small tools for files and the people who own them.",
        "prog": "file-tools",
        "options": describe_options(),
        "commands": commands,
    }


# ------------------------------------------------------------------ answers


def success(tool: str, result: Any = None, **meta: Any) -> dict[str, Any]:
    """Return the envelope of a success."""
    head = {"ok": True} if result is None else {"ok": True, "result": result}
    return {**head, "meta": {"tool": tool, "duration_ms": 12, **meta}}


def failure(tool: str, code: str, message: str, **more: Any) -> dict[str, Any]:
    """Return the envelope of a failure."""
    category = {"1": "input", "2": "auth", "3": "state", "4": "runtime"}.get(code[1], "internal")
    error = {"code": code, "category": category, "message": message, **more}
    error.setdefault("is_retryable", category == "input")
    return {"ok": False, "error": error, "meta": {"tool": tool, "duration_ms": 3}}


def matching_files(pattern: str) -> list[dict[str, Any]]:
    """Return made-up files that match a pattern."""
    ending = pattern.lstrip("*")
    names = ("src/tooli/app", "src/tooli/call/pipeline", "tests/surfaces/test_render", "setup")
    long = "docs/" + "a-very-long-folder-name/" * 6 + "page"
    return [
        {"path": name + ending, "size": 1812 * (n + 1), "changed": f"2026-0{n + 1}-14"}
        for n, name in enumerate((*names, long))
    ]


def answer(name: str, body: Any, options: dict[str, str]) -> tuple[int, Any]:
    """Return the status and the envelope of a call that does not stream."""
    tool = "file-tools." + name.replace("/", ".")
    if not isinstance(body, dict):
        return 400, failure(tool, "E1008", "The body must be a JSON object.")
    if name in ("delete", "users/remove"):
        if options.get("dry_run") == "true":
            plan = {"tool": tool, "arguments": body, "effects": ["destructive"]}
            return 200, success(tool, plan, dry_run=True)
        if options.get("yes") != "true":
            argv = ["file-tools", *name.split("/"), *map(str, body.get("files", [])), "--yes"]
            return 428, failure(
                tool,
                "E1010",
                f"{name} may destroy data and needs a confirmation.",
                suggestion={
                    "action": "ask_human",
                    "fix": "Look with --dry-run first; when it is wanted, repeat it with --yes.",
                    "argv": argv,
                    "example": " ".join(argv),
                    "applicability": "maybe_incorrect",
                },
            )
        return 200, success(tool, [{"path": path, "size": 10} for path in body.get("files", [])])
    match name:
        case "find-files":
            return _find(tool, body)
        case "attach":
            return 200, success(tool, sorted(body))
        case "every":
            return 200, success(tool, {"received": body})
        case "rename":
            return _rename(tool, body)
        case "checksum":
            return 404, failure(tool, "E3010", "There is no file 'b.txt'.", field="files.1")
        case "big":
            count = body.get("rows", 10000)
            return 200, success(
                tool,
                [
                    {"id": n, "name": f"row {n}", "share": n / 7, "note": None, "tags": ["a", "b"]}
                    for n in range(count)
                ],
            )
        case "nested":
            rest = {"list": list(range(250)), "deep": {"er": {"still": True}}}
            return 200, success(tool, [{"name": "a", "inner": rest}, {"name": "b", "inner": rest}])
        case "nothing":
            return 200, success(tool, [] if body.get("empty_list") else None)
        case "count":
            return 200, success(tool, 9007199254740993, warnings=["The number is large."])
        case "slow":
            time.sleep(3)
            return 200, success(tool, "at last")
        case "deploy":
            return 428, failure(
                tool,
                "E2101",
                "deploy needs a human's approval.",
                suggestion={"action": "ask_human", "fix": "Ask a human to run it at a terminal."},
            )
        case "users/list":
            users = [{"name": "Ada", "role": "admin"}, {"name": HOSTILE, "role": HOSTILE}]
            return 200, success(tool, users)
        case "users/create":
            return 200, success(tool, {**body, "id": 7, "groups": ["a", "b"], "quota": None})
        case _ if name.startswith("<img"):
            return 422, failure(
                tool,
                "E1003",
                HOSTILE,
                field="p" + HOSTILE,
                suggestion={"action": "fix", "fix": HOSTILE, "argv": [HOSTILE, "--x"]},
            )
        case _:
            return 200, success(tool, {"received": body})


def _find(tool: str, body: dict[str, Any]) -> tuple[int, Any]:
    pattern, depth = body.get("pattern"), body.get("max_depth", 10)
    errors: list[dict[str, Any]] = []
    if pattern is None:
        errors.append({"field": "pattern", "code": "E1002", "message": "'pattern' is required"})
    if not isinstance(depth, int) or not 1 <= depth <= 100:
        errors.append(
            {"field": "max_depth", "code": "E1003", "message": f"'max_depth': {depth} is not 1–100"}
        )
    for name in body.keys() - {"pattern", "root", "max_depth", "include_hidden"}:
        errors.append({"field": name, "code": "E1004", "message": f"no parameter {name!r}"})
    if not errors:
        return 200, success(tool, matching_files(pattern))
    argv = ["python", "app.py", "find-files", str(pattern or "<pattern>"), "--max-depth", "100"]
    return 422, failure(
        tool,
        errors[0]["code"],
        errors[0]["message"],
        field=errors[0]["field"],
        suggestion={
            "action": "retry_with_modified_input",
            "fix": "Give 'max_depth' a whole number from 1 to 100.",
            "argv": argv,
            "example": " ".join(argv),
            "applicability": "has_placeholders" if pattern is None else "maybe_incorrect",
        },
        details={"errors": errors},
    )


def _rename(tool: str, body: dict[str, Any]) -> tuple[int, Any]:
    rule = body.get("rule") or {}
    if "match" in rule:
        return 200, success(tool, [{"old": "a.txt", "new": "a.md"}])
    problem = {"code": "E1002", "field": "rule.match", "message": "'rule.match' is required"}
    deep = {"code": "E1003", "field": "rule.replace.old", "message": "too short"}
    return 422, failure(
        tool, "E1002", problem["message"], field="rule.match", details={"errors": [problem, deep]}
    )


def _read_form(content_type: str, raw: bytes) -> dict[str, Any]:
    """Return the parts of a form: JSON values, and each file as its name and its bytes."""
    message = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + raw)
    body: dict[str, Any] = {}
    for part in message.get_payload():
        assert isinstance(part, Message)
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if part.get_filename() is None:
            assert part.get_content_type() == "application/json"
            body[str(name)] = json.loads(content)
        else:
            body.setdefault(str(name), []).append([part.get_filename(), content])
    return body


# ------------------------------------------------------------------ the server


class MockServer(ThreadingHTTPServer):
    """The server. It records the calls; tests set the answer to GET /tools."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.requests: list[Request] = []
        self.tools_document: Any = make_tools_document()
        self.tools_status = 200
        self.stopped_streams = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def start(self) -> MockServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def reset(self) -> None:
        """Restore the initial state, before each test."""
        self.requests.clear()
        self.tools_document, self.tools_status = make_tools_document(), 200
        self.stopped_streams = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: MockServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        if self.path == "/":
            page = read_page()
            assert page is not None
            headers = {key.decode(): value.decode() for key, value in page.headers}
            self._send(200, page.body, headers.pop("content-type"), *headers.items())
        elif self.path == "/tools":
            status = self.server.tools_status
            if status == 401 and self._has_token():
                status = 200
            self._json(status, self.server.tools_document if status == 200 else {"ok": False})
        else:
            self._json(404, failure("file-tools", "E1001", "There is no such page."))

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        name = "/".join(unquote(part) for part in parts.path.split("/")[2:])
        options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content_type = self.headers.get("Content-Type", "")
        if content_type.startswith("multipart/form-data"):
            body: Any = _read_form(content_type, raw)
        else:
            body = json.loads(raw) if raw else None
        accept = self.headers.get("Accept", "")
        self.server.requests.append(Request(name, options, body, accept))
        if name == "broken":
            self._send(502, b"<h1>Bad gateway</h1>", "text/html")
        elif name == "disconnect":
            self.close_connection = True
            self.connection.close()
        elif name == "guarded" and not self._has_token():
            self._json(401, failure("file-tools.guarded", "E2000", "A token is required."))
        elif name == "search" and "ndjson" in accept:
            self._stream(body)
        else:
            self._json(*answer(name, body, options))

    def _has_token(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for n in range(body.get("rows", 5)):
                self._line(
                    {"path": f"src/file_{n}.py", "line": n * 3, "text": body["text"] + HOSTILE}
                )
                time.sleep(body.get("delay", 0))
            if body.get("fail"):
                self._line(failure("file-tools.search", "E4040", "The disk failed."))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.stopped_streams += 1

    def _line(self, value: Any) -> None:
        line = json.dumps(value).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()

    def _json(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(
        self, status: int, content: bytes, content_type: str, *headers: tuple[str, str]
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)


if __name__ == "__main__":
    print("http://127.0.0.1:8377/", flush=True)
    MockServer(8377).serve_forever()
