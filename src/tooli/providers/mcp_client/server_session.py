"""ServerSession: a connection to an MCP server, in one of its protocol eras.

    server/discover ─┬─ an answer ─▶ 2026-07-28: each request carries version and capabilities
                     └─ an error ──▶ initialize: the versions with a handshake

A thread of the connection delivers messages; each request has a queue from which its own thread
takes what belongs to it. In the handshake versions, a program on stdio does not say to which call
its question belongs. A call that asks waits for the answer, and the other calls end meanwhile: the
session starts no other call until one is left, which must be the one that asks.
"""

from __future__ import annotations

from itertools import count
from queue import Empty, SimpleQueue
from threading import Condition, Event, Lock, Thread
from time import monotonic
from typing import Any

from tooli.errors import DependencyError, ToolError
from tooli.providers.mcp_client.server_process import ServerGone
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from tooli.core.protocols import JsonObject

    class Transport(Protocol):
        """How messages reach a server."""

        def start(self) -> None: ...
        def send(
            self,
            message: JsonObject,
            request: PendingRequest | None = None,
            headers: Mapping[str, str] | None = None,
        ) -> None: ...
        def cancel(self, request: PendingRequest) -> None: ...
        def set_version(self, version: str, *, is_stateless: bool) -> None: ...
        def listen(self) -> None: ...
        def output_tail(self) -> JsonObject: ...
        def close(self, grace: float = 1.0) -> None: ...


STATELESS_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions with a handshake that the client speaks. Newest first."""
CAPABILITIES: JsonObject = {"elicitation": {}, "sampling": {}}
"""What servers may ask. It is the same for every caller: the list of tools depends on it."""

PROBE_SECONDS = 10.0
"""Seconds that a server has to answer `server/discover`, before the handshake is tried."""
ATTRIBUTION_SECONDS = 30.0
"""Seconds that the question of a server waits until only one call is left that may ask it."""
NOISE_SECONDS = 6.0
"""Seconds that a new server has to answer a request after it has printed text that is not MCP."""
LISTEN_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds between attempts to listen for changes."""
MAX_LIST_PAGES = 500
MAX_LISTED_TOOLS = 10_000

_META = "io.modelcontextprotocol/"
METHOD_NOT_FOUND, INVALID_PARAMS, REFUSED = -32601, -32602, -32000
QUESTIONS = frozenset(("elicitation/create", "sampling/createMessage"))


class RpcFailure(Exception):  # noqa: N818
    """A JSON-RPC error in the answer of a server."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = clean_text(message, 2_000)
        self.data = data


class NotMcp(Exception):  # noqa: N818
    """A program prints text that is not MCP, and does not answer."""


class PendingRequest:
    """A request that waits for its result.

    Its events are ("result", value), ("failure", exception), ("question", message),
    ("progress", params), ("log", params), ("stop", None) and ("noise", None).
    """

    def __init__(self, number: int, method: str) -> None:
        self.id = number
        self.method = method
        self.events: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.is_done = False  # its result or its failure is in the queue
        self.is_sent = False

    def put(self, kind: str, value: object = None) -> None:
        """Add an event, unless the request is done."""
        if not self.is_done:
            self.is_done = kind in ("result", "failure")
            self.events.put((kind, value))


class ServerSession:
    """A connection to a server that was started, and the requests that are running.

    `on_list_changed` is called when the server says that its list of tools has changed.
    """

    def __init__(self, source: str, on_list_changed: Callable[[], None]) -> None:
        self.source = source
        self.version = ""
        self.server_info: JsonObject = {}
        self.gone: ServerGone | None = None
        self._on_list_changed = on_list_changed
        self._transport: Any = None
        self._ids = count(1)
        self._pending: dict[int, PendingRequest] = {}
        self._calls: set[PendingRequest] = set()
        self._has_answered = False  # a message of the server was received
        self._noise_limit: float | None = None  # the time until which a new server must answer
        self._open_questions = 0  # questions whose call is not known yet
        self._asking: dict[object, PendingRequest] = {}  # calls that wait for an answer
        self._changed = Condition(Lock())
        self.ended = Event()

    @property
    def is_stateless(self) -> bool:
        """True for the versions without a handshake."""
        return self.version == STATELESS_VERSION

    # -------------------------------------------------------------- start and end

    def open(self, transport: Transport, deadline: float, era: str | None = None) -> None:
        """Start the transport and agree on a version. `era` is the version of an earlier session.

        Raises ServerGone, TimeoutError, RpcFailure, NotMcp or an error of tooli.
        """
        self._transport = transport
        self._has_answered = bool(era)  # the server has answered in an earlier session
        transport.start()
        if era is None or era == STATELESS_VERSION:
            try:
                self._discover(deadline)
                return
            except (RpcFailure, TimeoutError, NotMcp):
                if monotonic() >= deadline:
                    raise
            if self._noise_limit is not None:  # an old server may ignore an unknown request
                self._noise_limit = monotonic() + NOISE_SECONDS
        self._initialize(deadline)

    def _discover(self, deadline: float) -> None:
        self._set_version(STATELESS_VERSION)
        try:
            limit = min(deadline, monotonic() + PROBE_SECONDS)
            found = self.request("server/discover", {}, limit)
            versions = found.get("supportedVersions")
            if not is_list(versions) or STATELESS_VERSION not in versions:
                raise RpcFailure(REFUSED, "the server does not support this version")
        except BaseException:
            self._set_version("")
            raise
        meta = found.get("_meta")
        info = meta.get(f"{_META}serverInfo") if is_object(meta) else None
        self.server_info = info if is_object(info) else {}

    def _initialize(self, deadline: float) -> None:
        self._transport.set_version("", is_stateless=False)
        params = {
            "protocolVersion": HANDSHAKE_VERSIONS[0],
            "capabilities": CAPABILITIES,
            "clientInfo": _client_info(),
        }
        found = self.request("initialize", params, deadline)
        version = found.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise DependencyError(
                f"{self.source} speaks version {clean_text(str(version), 40)!r} of MCP, which is "
                "not supported."
            )
        self._set_version(str(version))
        info = found.get("serverInfo")
        self.server_info = info if is_object(info) else {}
        self.notify("notifications/initialized", {})

    def _set_version(self, version: str) -> None:
        self.version = version
        self._transport.set_version(version, is_stateless=self.is_stateless)

    def close(self, grace: float = 1.0) -> None:
        """End the connection. Requests that are running fail."""
        self.end(ServerGone("the connection was closed"))
        if self._transport is not None:
            self._transport.close(grace)

    def end(self, reason: ServerGone) -> None:
        """Fail all requests, because the connection has ended."""
        with self._changed:
            if self.gone is None:
                self.gone = reason
            pending, self._pending = list(self._pending.values()), {}
            self._changed.notify_all()
        for request in pending:
            request.put("failure", self.gone)
        self.ended.set()

    def output_tail(self) -> JsonObject:
        """Return the end of what the server printed, for errors."""
        return {} if self._transport is None else self._transport.output_tail()

    # -------------------------------------------------------------- requests

    def start(
        self,
        method: str,
        params: JsonObject,
        *,
        is_call: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> PendingRequest:
        """Send a request and return it. Raises ServerGone if the connection has ended."""
        request = PendingRequest(next(self._ids), method)
        meta: JsonObject = {"progressToken": request.id} if is_call else {}
        if self.is_stateless:
            meta[f"{_META}protocolVersion"] = self.version
            meta[f"{_META}clientInfo"] = _client_info()
            meta[f"{_META}clientCapabilities"] = CAPABILITIES
            if is_call:
                meta[f"{_META}logLevel"] = "info"
        with self._changed:
            while is_call and self._open_questions and self.gone is None:
                self._changed.wait(1.0)
            if self.gone is not None:
                raise ServerGone(self.gone.reason, was_sent=False)
            self._pending[request.id] = request
            if is_call:
                self._calls.add(request)
        message: JsonObject = {"jsonrpc": "2.0", "id": request.id, "method": method}
        message["params"] = {**params, "_meta": meta} if meta else params
        request.is_sent = True
        self._transport.send(message, request, headers)
        return request

    def finish(self, request: PendingRequest) -> None:
        """Forget a request."""
        with self._changed:
            self._pending.pop(request.id, None)
            self._calls.discard(request)
            self._changed.notify_all()

    def request(self, method: str, params: JsonObject, deadline: float) -> JsonObject:
        """Send a request and return its result. The deadline is a time of `time.monotonic`.

        Raises RpcFailure, ServerGone, TimeoutError, or NotMcp if the server has never answered.
        """
        pending = self.start(method, params)
        try:
            while True:
                noise_limit = self._noise_limit
                limit = deadline if noise_limit is None else min(deadline, noise_limit)
                try:
                    kind, value = pending.events.get(timeout=max(0.0, limit - monotonic()))
                except Empty:
                    if self._noise_limit != noise_limit:
                        continue
                    self.cancel(pending)
                    raise (TimeoutError(method) if limit == deadline else NotMcp) from None
                if kind == "failure":
                    raise value
                if kind == "result":
                    return value
        finally:
            self.finish(pending)

    def cancel(self, request: PendingRequest) -> None:
        """Tell the server that nobody waits for the result of a request."""
        if request.method != "initialize" and self.gone is None and not request.is_done:
            self._transport.cancel(request)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._transport.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, question: JsonObject, result: JsonObject) -> None:
        """Answer a question of the server."""
        self._answered(question)
        self._transport.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def refuse(self, question: JsonObject, code: int, message: str) -> None:
        """Answer a question of the server with an error."""
        self._answered(question)
        error = {"code": code, "message": message}
        self._transport.send({"jsonrpc": "2.0", "id": question["id"], "error": error})

    def listen(self) -> None:
        """Ask the server to report changes of its list of tools. Returns at once."""
        if self.is_stateless:
            Thread(target=self._subscribe, name="tooli-mcp-listen", daemon=True).start()
        else:
            self._transport.listen()

    def _subscribe(self) -> None:
        """Keep a subscription open; after it has broken off, the list may have changed."""
        attempt = 0
        while self.gone is None:
            started = monotonic()
            try:
                wanted = {"notifications": {"toolsListChanged": True}}
                request = self.start("subscriptions/listen", wanted)
            except ServerGone:
                return
            kind, value = request.events.get()
            self.finish(request)
            if kind == "failure" and not isinstance(value, ServerGone):
                return  # the server has no such method
            attempt = 0 if monotonic() - started > LISTEN_PAUSES[-1] else attempt + 1
            if self.ended.wait(LISTEN_PAUSES[min(attempt, len(LISTEN_PAUSES) - 1)]):
                return
            self._on_list_changed()

    def list_tools(self, deadline: float) -> list[JsonObject]:
        """Return the tools, as the server describes them."""
        tools: list[JsonObject] = []
        params: JsonObject = {}
        for _ in range(MAX_LIST_PAGES):
            found = self.request("tools/list", params, deadline)
            page = found.get("tools")
            if not is_list(page) or not all([is_object(tool) for tool in page]):
                raise DependencyError(f"{self.source}: its list of tools is not valid.")
            tools += page
            if len(tools) > MAX_LISTED_TOOLS:
                raise DependencyError(f"{self.source} has more than {MAX_LISTED_TOOLS:,} tools.")
            cursor = found.get("nextCursor")
            if not isinstance(cursor, str):
                return tools
            params = {"cursor": cursor}
        raise DependencyError(f"{self.source}: its list of tools has too many pages.")

    def is_alive(self, seconds: float) -> bool:
        """True if the server answers within that time."""
        method = "server/discover" if self.is_stateless else "ping"
        try:
            self.request(method, {}, monotonic() + seconds)
        except RpcFailure:
            return True
        except (ServerGone, TimeoutError, ToolError):
            return False
        return True

    # -------------------------------------------------------------- messages of the server

    def receive_noise(self) -> None:
        """Note that the server has printed text that is no message."""
        if not self._has_answered and self._noise_limit is None:
            self._noise_limit = monotonic() + NOISE_SECONDS
            with self._changed:
                pending = list(self._pending.values())
            for request in pending:
                request.put("noise")

    def receive(self, message: JsonObject, source: PendingRequest | None = None) -> None:
        """Deliver a message. `source` is the request whose HTTP answer contains it."""
        self._has_answered, self._noise_limit = True, None
        method = message.get("method")
        if not isinstance(method, str):
            self._receive_answer(message)
        elif "id" in message:
            self._receive_question(message, method, source)
        else:
            self._receive_notification(message, method, source)

    def _receive_answer(self, message: JsonObject) -> None:
        number = message.get("id")
        request = self._pending.get(number) if type(number) is int else None
        if request is None:
            return  # an answer to a request that was cancelled
        error, result = message.get("error"), message.get("result")
        if is_object(error):
            code, text = error.get("code"), error.get("message")
            failure = RpcFailure(
                code if type(code) is int else 0, str(text or "an error"), error.get("data")
            )
            request.put("failure", failure)
        elif is_object(result):
            request.put("result", result)
        else:
            request.put("failure", RpcFailure(0, "the answer is no result of MCP"))

    def _receive_question(
        self, message: JsonObject, method: str, source: PendingRequest | None
    ) -> None:
        if not isinstance(message["id"], (int, str)):
            return
        if method == "ping":
            self.reply(message, {})
        elif method not in QUESTIONS:
            self.refuse(message, METHOD_NOT_FOUND, f"The client does not support {method[:80]}.")
        elif source is not None and source in self._calls:
            source.put("question", message)
        else:
            Thread(target=self._attribute, args=(message,), daemon=True).start()

    def _attribute(self, message: JsonObject) -> None:
        """Give a question to the call that asks it: the only one that is left."""
        limit = monotonic() + ATTRIBUTION_SECONDS
        with self._changed:
            self._open_questions += 1
            try:
                calls = self._calls_that_may_ask()
                while len(calls) > self._open_questions and self.gone is None:
                    if not self._changed.wait(max(0.0, limit - monotonic())):
                        break
                    calls = self._calls_that_may_ask()
                if len(calls) == 1:
                    self._asking[message["id"]] = calls[0]
            finally:
                self._open_questions -= 1
                self._changed.notify_all()
        if len(calls) == 1:
            calls[0].put("question", message)
        else:
            self.refuse(message, REFUSED, "It is not known which of several calls asks this.")

    def _calls_that_may_ask(self) -> list[PendingRequest]:
        """Return the calls that are running, without those whose question is not answered yet."""
        return [call for call in self._calls if call not in self._asking.values()]

    def _answered(self, question: JsonObject) -> None:
        with self._changed:
            self._asking.pop(question["id"], None)
            self._changed.notify_all()

    def _receive_notification(
        self, message: JsonObject, method: str, source: PendingRequest | None
    ) -> None:
        params = message.get("params")
        params = params if is_object(params) else {}
        if method == "notifications/tools/list_changed":
            self._on_list_changed()
        elif method == "notifications/progress":
            token = params.get("progressToken")
            request = self._pending.get(token) if type(token) is int else None
            if request is not None and request in self._calls:
                request.put("progress", params)
        elif method == "notifications/message":
            calls = list(self._calls)
            request = source if source in calls else calls[0] if len(calls) == 1 else None
            if request is not None:
                request.put("log", params)


def _client_info() -> JsonObject:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return {"name": "tooli", "version": version("tooli")}
    except PackageNotFoundError:  # the package is not installed, but on the path
        return {"name": "tooli", "version": "0"}
