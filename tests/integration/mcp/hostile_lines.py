"""Generate hostile and valid lines for an MCP server, with the ids that need an answer."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from tests.integration.mcp.stdio_client import META, STATELESS_VERSION

BATCH_VERSION = "2025-03-26"
"""The protocol version that has batches. Other versions reject them."""


class Line(NamedTuple):
    """A line, the ids that must be answered, and the expected result of the first of them."""

    data: bytes
    answered_ids: tuple[int | str, ...] = ()
    expected: Any = None


ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e300, 10**30, "", "x", "\ud800", "\x00", [], {}),
    *([None], [[]], {"a": None}, {"": {}}, ["2.0"], {"name": "add"}, "tools/call", "2.0"),
]


class LineGenerator:
    """Generates hostile and valid lines. Equal seeds give equal lines."""

    def __init__(self, seed: int, version: str) -> None:
        self.random = Random(seed)
        self.stateless = version == STATELESS_VERSION
        self.version = version
        self.last_number = 1000
        self.unanswered_ids: set[int | str] = set()  # ids that must never be answered
        self.gates: list[str] = []  # keys of calls that wait until `release` is called

    def make(self, number: int) -> list[Line]:
        """Return about `number` lines."""
        kinds = [
            *(self.valid, self.valid, self.valid, self.truncated, self.truncated, self.binary),
            *(self.wrong_type, self.wrong_type, self.wrong_type, self.bad_bytes, self.bad_id),
            *(self.constant, self.batch, self.batch, self.notification_with_id, self.response),
            *(self.not_a_message, self.meta, self.notification, self.fragment),
        ]
        lines: list[Line] = []
        for index in range(number):
            lines.append(self.random.choice(kinds)())
            if index % 250 == 100:
                lines.append(self.deep())
            if index % 500 == 200:
                lines.append(self.long_method())
            if index % 1000 == 300 and len(self.gates) < 8:
                lines += self.duplicate_ids()
        return lines

    # -------------------------------------------------------------- parts of lines

    def id(self) -> int | str:
        """Return a unique request id."""
        self.last_number += 1
        number = self.last_number
        return self.random.choice(
            [
                number,
                number,
                -number,
                10**25 + number,
                f"s{number}",
                f'é"\\{number}',
                f"\ud83d{number}",
            ]
        )

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.stateless:
            return params
        meta = {f"{META}protocolVersion": self.version, f"{META}clientCapabilities": {}}
        return {**params, "_meta": {**meta, **params.get("_meta", {})}}

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        pairs = [
            ("jsonrpc", "2.0"),
            ("id", self.id()),
            ("method", method),
            ("params", self.params(params)),
        ]
        self.random.shuffle(pairs)
        return dict(pairs)

    def call(self, tool: str = "add", **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def line(self, message: Any, *answered_ids: int | str, expected: Any = None) -> Line:
        is_ascii = self.random.random() < 0.5
        try:
            data = json.dumps(message, ensure_ascii=is_ascii).encode()
        except UnicodeEncodeError:
            data = json.dumps(message).encode()
        return Line(data, answered_ids, expected)

    # -------------------------------------------------------------- kinds of lines

    def valid(self) -> Line:
        a, b = self.random.randrange(1000), self.random.randrange(1000)
        message = self.call(a=a, b=b)
        return self.line(message, message["id"], expected=a + b)

    def truncated(self) -> Line:
        """Return a request without its end. Its id may still be complete."""
        message = self.call(a=1)
        data = json.dumps(message).encode()
        id_field = b'"id": ' + json.dumps(message["id"]).encode()
        end = data.index(id_field) + len(id_field) + 1  # includes the comma, which ends a number
        cut = self.random.randrange(end, len(data)) if end < len(data) else len(data) - 1
        return Line(data[:cut], (message["id"],) if cut >= end else ())

    def fragment(self) -> Line:
        """Return a part of a request."""
        data = self.valid().data
        start = self.random.randrange(len(data))
        return Line(data[start:] if self.random.random() < 0.5 else data[start : start + 20])

    def binary(self) -> Line:
        size = self.random.choice([1, 10, 1000, 70_000])
        return Line(self.random.randbytes(size).replace(b"\n", b"").replace(b'"id"', b""))

    def wrong_type(self) -> Line:
        """Return a request in which one value has an unexpected type."""
        message = self.call(a=1, b=2)
        request_id = message["id"]
        key = self.random.choice(
            ["jsonrpc", "method", "params", "name", "arguments", "a", "_meta", "more"]
        )
        odd = self.random.choice(ODD_VALUES)
        if key in ("name", "arguments", "_meta"):
            message["params"][key] = odd
        elif key == "a":
            message["params"]["arguments"]["a"] = odd
        else:
            message[key] = odd
        return self.line(message, request_id)

    def bad_bytes(self) -> Line:
        """Return a request that is not valid UTF-8."""
        message = self.call("greet", name="MARK")
        bad = self.random.choice([b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80", b"\x80"])
        return Line(json.dumps(message).encode().replace(b"MARK", bad), (message["id"],))

    def bad_id(self) -> Line:
        """Return a request whose id is invalid or missing."""
        message = self.call(a=1)
        odd = self.random.choice([None, True, 1.5, [], {}, [1], {"id": 1}, 1e400])
        if odd is None and self.random.random() < 0.5:
            return Line(json.dumps(message).encode().replace(b'"id"', b'"Id"'))
        message["id"] = odd
        data = json.dumps(message).encode()
        return Line(data.replace(b"Infinity", b"9" * 5000))

    def constant(self) -> Line:
        """Return a request with NaN or Infinity, which are not JSON."""
        message = self.call("echo", value=self.random.choice([float("nan"), float("-inf")]))
        return Line(json.dumps(message).encode(), (message["id"],))

    def batch(self) -> Line:
        first, second = self.call(a=1), self.call(a=2)
        ids = (first["id"], second["id"])
        kind = self.random.randrange(7)
        if kind == 0:
            return Line(self.random.choice([b"[]", b"[[]]", b"[1, 2]", b"[null]", b"[[[{}]]]"]))
        if kind == 1:
            return self.line([[first], [[second]]], *ids)
        if kind == 2:
            repeated = [first] if self.version != BATCH_VERSION else []
            return self.line([first, *repeated, second, 7, None], *ids)
        if kind == 3:
            return Line(json.dumps([first, second]).encode()[:-1], ids)
        if kind == 4:
            return self.line([first, {"jsonrpc": "2.0", "method": "notifications/x"}, second], *ids)
        return self.line([first, second], *ids)

    def notification_with_id(self) -> Line:
        method = self.random.choice(["notifications/initialized", "notifications/cancelled"])
        message = self.request(method, {"requestId": 5})
        return self.line(message, message["id"])

    def notification(self) -> Line:
        method = self.random.choice(
            ["notifications/cancelled", "notifications/progress", "notifications/x", "tools/call"]
        )
        params = self.random.choice(
            [{}, {"requestId": 3}, {"requestId": []}, {"progressToken": {}}]
        )
        return self.line({"jsonrpc": "2.0", "method": method, "params": params})

    def response(self) -> Line:
        response_id = self.id()
        self.unanswered_ids.add(response_id)
        outcome = self.random.choice([{"result": {}}, {"error": {"code": 1, "message": "x"}}])
        return self.line({"jsonrpc": "2.0", "id": response_id, **outcome})

    def not_a_message(self) -> Line:
        """Return a line that is blank or not an object."""
        return Line(
            self.random.choice([b"", b" ", b"\r", b"\t\t", b"\x00", b"\x0b", b"null", b"7"])
        )

    def meta(self) -> Line:
        """Return a request with an unusual `_meta`."""
        token = self.random.choice(ODD_VALUES)
        deep: Any = {}
        for _ in range(self.random.choice([1, 50, 400])):
            deep = (
                {"a": deep, "progressToken": [deep]} if self.random.random() < 0.01 else {"a": deep}
            )
        params = {
            "name": "steps",
            "arguments": {"n": 1},
            "_meta": {"progressToken": token, "x": deep},
        }
        message = self.request("tools/call", params)
        return self.line(message, message["id"])

    def deep(self) -> Line:
        """Return a request with deeply nested arguments."""
        depth = self.random.choice([200, 900, 1100, 5000, 100_000])
        kind = self.random.randrange(3)
        request_id = self.id()
        start, end = [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")][kind]
        nested = start * depth
        if self.random.random() >= 0.3:
            nested += b"1" + end * depth
        head = b'{"jsonrpc":"2.0","id":' + json.dumps(request_id).encode()
        head += b',"method":"tools/call","params":{"name":"echo","arguments":{"value":'
        return Line(head + nested + b"}}}", (request_id,))

    def long_method(self) -> Line:
        message = self.request("m" * 1_000_000, {})
        return self.line(message, message["id"])

    def duplicate_ids(self) -> list[Line]:
        """Return a request that stays pending, and further requests with its id."""
        key = f"gate-{len(self.gates)}"
        self.gates.append(key)
        first = self.call("wait", key=key)
        again = {**self.call(a=1), "id": first["id"]}
        broken = json.dumps({"id": first["id"], "method": 7}).encode()
        return [
            self.line(first, first["id"], expected=key),
            self.line(again),
            self.line({**again, "jsonrpc": "1.0"}),
            Line(broken),
            Line(broken[:-3]),
            self.line([again]),
        ]

    def huge(self, size: int, *, id_at_end: bool) -> Line:
        """Return a request with an argument of a size, and its id at the start or the end."""
        request_id = self.id()
        id_field = b'"id":' + json.dumps(request_id).encode()
        head = b'{"jsonrpc":"2.0","method":"tools/call",' + (b"" if id_at_end else id_field + b",")
        body = b'"params":{"name":"echo","arguments":{"id":5,"value":"' + b"x" * size + b'"}}'
        return Line(head + body + (b"," + id_field if id_at_end else b"") + b"}", (request_id,))
