"""A client that speaks lines with a real server, in either era of the protocol."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.integration.outside import APPS, PATIENCE, environment, parse

SERVED = APPS / "served.py"
HANDSHAKE_VERSION, STATELESS_VERSION = "2025-11-25", "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
CLIENT = {"name": "talker", "version": "0.1"}
FORMS: dict[str, Any] = {"elicitation": {}}

LAUNCH = "from tooli.launcher import main; main()"
"""What the program `tooli` runs."""


def serving(app: Path | str, *flags: str) -> list[str]:
    """The words with which an app serves itself."""
    return [sys.executable, str(app), "mcp", "serve", *flags]


def launching(app: Path | str, *flags: str) -> list[str]:
    """The words with which the launcher serves an app."""
    return [sys.executable, "-c", LAUNCH, "serve", str(app), *flags]


class Talk:
    """One conversation. Whatever the server says must be JSON-RPC, one message a line."""

    def __init__(self, process: subprocess.Popen[bytes], version: str) -> None:
        self.process = process
        self.version = version
        self.stateless = version == STATELESS_VERSION
        self.capabilities: dict[str, Any] = {}
        self.client: dict[str, Any] | None = dict(CLIENT)
        self.heard: list[dict[str, Any]] = []  # what was neither asked for nor taken yet
        self.err = bytearray()
        self._count = 0
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._news = threading.Condition()
        self._readers = [threading.Thread(target=one) for one in (self._listen, self._log)]
        for reader in self._readers:
            reader.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):  # closed by us
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.err += line
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    # -------------------------------------------------------------- lines

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> dict[str, Any] | None:
        """Return the next message, or None after the last one."""
        line = self._lines.get(timeout=PATIENCE)
        if line is None:
            return None
        assert line.endswith(b"\n"), line[-200:]
        message = parse(line)
        assert type(message) is dict, line[:200]
        assert message.get("jsonrpc") == "2.0", line[:200]
        assert ("method" in message) != ("result" in message or "error" in message), line[:200]
        return message

    def rest(self) -> list[dict[str, Any]]:
        """Close stdin and return every message that still comes."""
        self.close_stdin()
        return [*self.heard, *iter(self.read, None)]

    def close_stdin(self) -> None:
        """Say that nothing more will be asked."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -------------------------------------------------------------- requests

    def params(self, params: dict[str, Any] | None, **meta: Any) -> dict[str, Any] | None:
        """Parameters as the era has them; in the later one each request says who asks."""
        if self.stateless:
            meta[f"{META}protocolVersion"] = self.version
            meta[f"{META}clientCapabilities"] = self.capabilities
            if self.client is not None:
                meta[f"{META}clientInfo"] = self.client
        if not meta:
            return params
        given = params or {}
        return {**given, "_meta": {**meta, **given.get("_meta", {})}}

    def start(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> int:
        """Send a request, and do not wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._count, "method": method}
        params = self.params(params, **meta)
        if params is not None:
            message["params"] = params
        self.send(message)
        return self._count

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def answer_to(self, given: int | str | None) -> dict[str, Any]:
        """The response to a request; what comes before it is kept in `heard`."""
        for index, message in enumerate(self.heard):
            if "method" not in message and message.get("id") == given:
                return self.heard.pop(index)
        while (message := self.read()) is not None:
            if "method" not in message and message.get("id") == given:
                return message
            self.heard.append(message)
        raise AssertionError(f"no answer to {given!r}; stderr: {bytes(self.err)[-2000:]!r}")

    def asked(self) -> dict[str, Any]:
        """The next request of the server's to us."""
        while (message := self.read()) is not None:
            if "method" in message and "id" in message:
                return message
            self.heard.append(message)
        raise AssertionError("the server asked nothing")

    def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """The response to a request."""
        return self.answer_to(self.start(method, params, **meta))

    def result(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """The result of a request."""
        answer = self.ask(method, params, **meta)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """The error that a request ends with."""
        answer = self.ask(method, params, **meta)
        assert "error" in answer, answer
        return answer["error"]

    def open(self, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        """Open the conversation as the era does it."""
        self.capabilities = capabilities or {}
        if self.stateless:
            return self.result("server/discover")
        payload = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": self.client,
        }
        opened = self.result("initialize", payload)
        self.notify("notifications/initialized")
        return opened

    # -------------------------------------------------------------- tools

    def begin(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> int:
        """Send a call, and do not wait for its answer."""
        return self.start("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    def call(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> Any:
        """The result of a call."""
        answer = self.answer_to(self.begin(name, arguments, **meta))
        assert "result" in answer, answer
        return answer["result"]

    def value(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """What a tool gave, out of its wrapping."""
        result = self.call(name, arguments)
        assert not result["isError"], result
        structured = result["structuredContent"]
        wrapped = (
            not self.stateless and type(structured) is dict and structured.keys() == {"result"}
        )
        return structured["result"] if wrapped else structured

    def failure(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The error of a call that must fail."""
        return failure_of(self.call(name, arguments))

    # -------------------------------------------------------------- the process

    def wait_for_err(self, text: bytes) -> None:
        """Block until the server has written something to stderr."""
        with self._news:
            assert self._news.wait_for(lambda: text in self.err, PATIENCE), bytes(self.err)

    def end(self) -> int:
        """Close the conversation; the exit code."""
        self.rest()
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Leave nothing behind."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def failure_of(result: dict[str, Any]) -> dict[str, Any]:
    """The error in a failed result: the envelope stands in the text and in `_meta`."""
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    (block,) = result["content"]
    envelope = parse(block["text"])
    assert result["_meta"]["io.tooli/envelope"] == envelope
    assert envelope["ok"] is False
    return envelope["error"]


@contextlib.contextmanager
def talk(
    app: Path | str = SERVED,
    version: str = HANDSHAKE_VERSION,
    *flags: str,
    open: bool = True,
    capabilities: dict[str, Any] | None = None,
    words: list[str] | None = None,
    **more: Any,
):
    """A conversation with an app that serves itself; it has ended in order when the block ends."""
    process = subprocess.Popen(
        words or serving(app, *flags),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=more.pop("env", None) or environment(),
        **more,
    )
    conversation = Talk(process, version)
    try:
        if open:
            conversation.open(capabilities)
        yield conversation
    finally:
        conversation.close()
