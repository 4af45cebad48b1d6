"""An MCP client for a server process on stdio, for all protocol versions."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.integration.app_process import APPS, PROCESS_TIMEOUT, environment, parse_json

SERVED = APPS / "served.py"
HANDSHAKE_VERSION, STATELESS_VERSION = "2025-11-25", "2026-07-28"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
CLIENT = {"name": "test-client", "version": "0.1"}
ELICITATION: dict[str, Any] = {"elicitation": {}}

LAUNCHER_CODE = "from tooli.launcher import main; main()"
"""The code that the program `tooli` runs."""


WITHOUT_SDK = """
import sys
class SdkBlocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, SdkBlocker())
"""
"""Code that makes the MCP SDK look as if it were not installed; tests put it before an app."""


def serve_command(app: Path | str, *flags: str) -> list[str]:
    """Return the command of an app that serves itself."""
    return [sys.executable, str(app), "mcp", "serve", *flags]


def launcher_command(app: Path | str, *flags: str) -> list[str]:
    """Return the command of the launcher that serves an app."""
    return [sys.executable, "-c", LAUNCHER_CODE, "serve", str(app), *flags]


class StdioClient:
    """A connection to a server process. Asserts that each line of its stdout is JSON-RPC."""

    def __init__(self, process: subprocess.Popen[bytes], version: str) -> None:
        self.process = process
        self.version = version
        self.stateless = version == STATELESS_VERSION
        self.capabilities: dict[str, Any] = {}
        self.client: dict[str, Any] | None = dict(CLIENT)
        self.received: list[dict[str, Any]] = []  # messages that no method has returned yet
        self.stderr = bytearray()
        self._last_id = 0
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr_changed = threading.Condition()
        targets = (self._read_stdout, self._read_stderr)
        self._readers = [threading.Thread(target=target) for target in targets]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):  # the test has closed stdout
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._stderr_changed:
                self.stderr += line
                self._stderr_changed.notify_all()
        with self._stderr_changed:
            self._stderr_changed.notify_all()

    # -------------------------------------------------------------- messages

    def write(self, data: bytes) -> None:
        """Send bytes unchanged."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> dict[str, Any] | None:
        """Return the next message, or None after the last one."""
        line = self._lines.get(timeout=PROCESS_TIMEOUT)
        if line is None:
            return None
        assert line.endswith(b"\n"), line[-200:]
        message = parse_json(line)
        assert type(message) is dict, line[:200]
        assert message.get("jsonrpc") == "2.0", line[:200]
        assert ("method" in message) != ("result" in message or "error" in message), line[:200]
        return message

    def remaining_messages(self) -> list[dict[str, Any]]:
        """Close stdin; return the messages until the server closes stdout."""
        self.close_stdin()
        return [*self.received, *iter(self.read, None)]

    def close_stdin(self) -> None:
        """Close the stdin of the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -------------------------------------------------------------- requests

    def params(self, params: dict[str, Any] | None, **meta: Any) -> dict[str, Any] | None:
        """Return parameters with `_meta`. In a stateless version it describes the client."""
        if self.stateless:
            meta[f"{META}protocolVersion"] = self.version
            meta[f"{META}clientCapabilities"] = self.capabilities
            if self.client is not None:
                meta[f"{META}clientInfo"] = self.client
        if not meta:
            return params
        params = params or {}
        return {**params, "_meta": {**meta, **params.get("_meta", {})}}

    def send_request(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> int:
        """Send a request without waiting for the response; return its id."""
        self._last_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        params = self.params(params, **meta)
        if params is not None:
            message["params"] = params
        self.send(message)
        return self._last_id

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def response_to(self, request_id: int | str | None) -> dict[str, Any]:
        """Return the response to a request. Messages before it are kept in `received`."""
        for index, message in enumerate(self.received):
            if "method" not in message and message.get("id") == request_id:
                return self.received.pop(index)
        while (message := self.read()) is not None:
            if "method" not in message and message.get("id") == request_id:
                return message
            self.received.append(message)
        raise AssertionError(
            f"no response to {request_id!r}; stderr: {bytes(self.stderr)[-2000:]!r}"
        )

    def next_question(self) -> dict[str, Any]:
        """Return the next request that the server sends to the client."""
        while (message := self.read()) is not None:
            if "method" in message and "id" in message:
                return message
            self.received.append(message)
        raise AssertionError("the server sent no request")

    def request(
        self, method: str, params: dict[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Send a request and return the response."""
        return self.response_to(self.send_request(method, params, **meta))

    def result(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """Send a request and return its result."""
        answer = self.request(method, params, **meta)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """Send a request and return its JSON-RPC error."""
        answer = self.request(method, params, **meta)
        assert "error" in answer, answer
        return answer["error"]

    def initialize(self, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send `initialize`, or `server/discover` in a stateless version; return the result."""
        self.capabilities = capabilities or {}
        if self.stateless:
            return self.result("server/discover")
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": self.client,
        }
        result = self.result("initialize", params)
        self.notify("notifications/initialized")
        return result

    # -------------------------------------------------------------- tools

    def start_call(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> int:
        """Send a tool call without waiting for the response; return its id."""
        return self.send_request("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    def call(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> Any:
        """Call a tool and return the result."""
        answer = self.response_to(self.start_call(name, arguments, **meta))
        assert "result" in answer, answer
        return answer["result"]

    def value(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool and return its value, without the `result` wrapper and its `meta`."""
        result = self.call(name, arguments)
        assert not result["isError"], result
        structured = result["structuredContent"]
        keys = structured.keys() if type(structured) is dict else ()
        wrapped = keys == {"result", "meta"} or (keys == {"result"} and not self.stateless)
        return structured["result"] if wrapped else structured

    def failure(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool that must fail and return its error."""
        return failure_of(self.call(name, arguments))

    # -------------------------------------------------------------- the process

    def wait_for_stderr(self, text: bytes) -> None:
        """Block until the server has written a text to stderr."""
        with self._stderr_changed:
            assert self._stderr_changed.wait_for(lambda: text in self.stderr, PROCESS_TIMEOUT), (
                bytes(self.stderr)
            )

    def shut_down(self) -> int:
        """Close stdin, wait for the server to exit, and return its exit code."""
        self.remaining_messages()
        return self.process.wait(PROCESS_TIMEOUT)

    def close(self) -> None:
        """Kill the server and close its streams."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait(PROCESS_TIMEOUT)
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def failure_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the error in a failed result. Its text and its `_meta` contain the envelope.

    The structured content is what the call has produced before it failed.
    """
    assert result["isError"] is True, result
    (block,) = result["content"]
    envelope = parse_json(block["text"])
    assert ("structuredContent" in result) == ("result" in envelope)
    assert result.get("structuredContent", {}).get("result") == envelope.get("result")
    assert result["_meta"]["io.tooli/envelope"] == envelope
    assert envelope["ok"] is False
    return envelope["error"]


@contextlib.contextmanager
def connect(
    app: Path | str = SERVED,
    version: str = HANDSHAKE_VERSION,
    *flags: str,
    initialize: bool = True,
    capabilities: dict[str, Any] | None = None,
    command: list[str] | None = None,
    **popen_kwargs: Any,
):
    """Start a server and yield a client for it; kill the server at the end."""
    process = subprocess.Popen(
        command or serve_command(app, *flags),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=popen_kwargs.pop("env", None) or environment(),
        **popen_kwargs,
    )
    client = StdioClient(process, version)
    try:
        if initialize:
            client.initialize(capabilities)
        yield client
    finally:
        client.close()
