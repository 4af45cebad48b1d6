"""Lines that no server should have to read, and which of them want an answer."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from tests.integration.mcp.talk import META, STATELESS_VERSION

BATCHES = "2025-03-26"
"""The version in which a batch is served, and not refused."""


class Line(NamedTuple):
    """What is sent, the ids that must be answered for it, and what one of them must be told."""

    data: bytes
    wanted: tuple[int | str, ...] = ()
    expected: Any = None


ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e300, 10**30, "", "x", "\ud800", "\x00", [], {}),
    *([None], [[]], {"a": None}, {"": {}}, ["2.0"], {"name": "add"}, "tools/call", "2.0"),
]


class Generator:
    """Hostile and good lines, the same ones for the same seed."""

    def __init__(self, seed: int, version: str) -> None:
        self.random = Random(seed)
        self.stateless = version == STATELESS_VERSION
        self.version = version
        self.count = 1000
        self.unwanted: set[int | str] = set()  # ids that must never be answered
        self.gates: list[str] = []

    def make(self, number: int) -> list[Line]:
        """About that many lines."""
        kinds = [
            *(self.good, self.good, self.good, self.truncated, self.truncated, self.binary),
            *(self.twisted, self.twisted, self.twisted, self.bad_bytes, self.bad_id),
            *(self.constant, self.batch, self.batch, self.numbered_notice, self.response),
            *(self.blank, self.meta, self.notice, self.cut_anywhere),
        ]
        lines: list[Line] = []
        for index in range(number):
            lines.append(self.random.choice(kinds)())
            if index % 250 == 100:
                lines.append(self.deep())
            if index % 500 == 200:
                lines.append(self.long_method())
            if index % 1000 == 300 and len(self.gates) < 8:
                lines += self.twins()
        return lines

    # -------------------------------------------------------------- pieces

    def id(self) -> int | str:
        """An id that no other request has."""
        self.count += 1
        number = self.count
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

    def request(self, method: str, params: dict[str, Any], given: Any = None) -> dict[str, Any]:
        given = self.id() if given is None else given
        pairs = [
            ("jsonrpc", "2.0"),
            ("id", given),
            ("method", method),
            ("params", self.params(params)),
        ]
        self.random.shuffle(pairs)
        return dict(pairs)

    def call(self, tool: str = "add", **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def line(self, message: Any, *wanted: int | str, expected: Any = None) -> Line:
        plain = self.random.random() < 0.5
        try:
            data = json.dumps(message, ensure_ascii=plain).encode()
        except UnicodeEncodeError:
            data = json.dumps(message).encode()
        return Line(data, wanted, expected)

    # -------------------------------------------------------------- kinds

    def good(self) -> Line:
        a, b = self.random.randrange(1000), self.random.randrange(1000)
        message = self.call(a=a, b=b)
        return self.line(message, message["id"], expected=a + b)

    def truncated(self) -> Line:
        """A request whose end is missing; its id may still be there."""
        message = self.call(a=1)
        data = json.dumps(message).encode()
        told = b'"id": ' + json.dumps(message["id"]).encode()
        end = data.index(told) + len(told) + 1  # with the comma that ends a number
        cut = self.random.randrange(end, len(data)) if end < len(data) else len(data) - 1
        return Line(data[:cut], (message["id"],) if cut >= end else ())

    def cut_anywhere(self) -> Line:
        data = self.good().data
        where = self.random.randrange(len(data))
        return Line(data[where:] if self.random.random() < 0.5 else data[where : where + 20])

    def binary(self) -> Line:
        size = self.random.choice([1, 10, 1000, 70_000])
        return Line(self.random.randbytes(size).replace(b"\n", b"").replace(b'"id"', b""))

    def twisted(self) -> Line:
        """A request in which one thing is of another type."""
        message = self.call(a=1, b=2)
        given = message["id"]
        place = self.random.choice(
            ["jsonrpc", "method", "params", "name", "arguments", "a", "_meta", "more"]
        )
        odd = self.random.choice(ODD)
        if place in ("name", "arguments", "_meta"):
            message["params"][place] = odd
        elif place == "a":
            message["params"]["arguments"]["a"] = odd
        else:
            message[place] = odd
        return self.line(message, given)

    def bad_bytes(self) -> Line:
        message = self.call("greet", name="MARK")
        bad = self.random.choice([b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80", b"\x80"])
        return Line(json.dumps(message).encode().replace(b"MARK", bad), (message["id"],))

    def bad_id(self) -> Line:
        message = self.call(a=1)
        odd = self.random.choice([None, True, 1.5, [], {}, [1], {"id": 1}, 1e400])
        if odd is None and self.random.random() < 0.5:
            return Line(json.dumps(message).encode().replace(b'"id"', b'"Id"'))
        message["id"] = odd
        data = json.dumps(message).encode()
        return Line(data.replace(b"Infinity", b"9" * 5000))

    def constant(self) -> Line:
        message = self.call("echo", value=self.random.choice([float("nan"), float("-inf")]))
        return Line(json.dumps(message).encode(), (message["id"],))

    def batch(self) -> Line:
        one, two = self.call(a=1), self.call(a=2)
        ids = (one["id"], two["id"])
        kind = self.random.randrange(7)
        if kind == 0:
            return Line(self.random.choice([b"[]", b"[[]]", b"[1, 2]", b"[null]", b"[[[{}]]]"]))
        if kind == 1:
            return self.line([[one], [[two]]], *ids)
        if kind == 2:
            twice = [one] if self.version != BATCHES else []
            return self.line([one, *twice, two, 7, None], *ids)
        if kind == 3:
            return Line(json.dumps([one, two]).encode()[:-1], ids)
        if kind == 4:
            return self.line([one, {"jsonrpc": "2.0", "method": "notifications/x"}, two], *ids)
        return self.line([one, two], *ids)

    def numbered_notice(self) -> Line:
        method = self.random.choice(["notifications/initialized", "notifications/cancelled"])
        message = self.request(method, {"requestId": 5})
        return self.line(message, message["id"])

    def notice(self) -> Line:
        method = self.random.choice(
            ["notifications/cancelled", "notifications/progress", "notifications/x", "tools/call"]
        )
        params = self.random.choice(
            [{}, {"requestId": 3}, {"requestId": []}, {"progressToken": {}}]
        )
        return self.line({"jsonrpc": "2.0", "method": method, "params": params})

    def response(self) -> Line:
        given = self.id()
        self.unwanted.add(given)
        error_text = self.random.choice([{"result": {}}, {"error": {"code": 1, "message": "x"}}])
        return self.line({"jsonrpc": "2.0", "id": given, **error_text})

    def blank(self) -> Line:
        return Line(
            self.random.choice([b"", b" ", b"\r", b"\t\t", b"\x00", b"\x0b", b"null", b"7"])
        )

    def meta(self) -> Line:
        """Odd things where clients put their notes."""
        token = self.random.choice(ODD)
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
        depth = self.random.choice([200, 900, 1100, 5000, 100_000])
        kind = self.random.randrange(3)
        given = self.id()
        start, end = [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")][kind]
        nest = start * depth + b"1" + end * depth
        if self.random.random() < 0.3:
            nest = start * depth
        head = b'{"jsonrpc":"2.0","id":' + json.dumps(given).encode()
        head += b',"method":"tools/call","params":{"name":"echo","arguments":{"value":'
        return Line(head + nest + b"}}}", (given,))

    def long_method(self) -> Line:
        message = self.request("m" * 1_000_000, {})
        return self.line(message, message["id"])

    def twins(self) -> list[Line]:
        """Requests with the id of a pending request."""
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

    def huge(self, size: int, *, last: bool) -> Line:
        """A line that is longer than any line may be."""
        given = self.id()
        told = b'"id":' + json.dumps(given).encode()
        head = b'{"jsonrpc":"2.0","method":"tools/call",' + (b"" if last else told + b",")
        body = b'"params":{"name":"echo","arguments":{"id":5,"value":"' + b"x" * size + b'"}}'
        return Line(head + body + (b"," + told if last else b"") + b"}", (given,))
