"""The stdio front: MCP on the standard library alone, for what clients ask all day.

    line ─▶ Front ─┬▶ initialize, server/discover, ping, tools/list: answered at once
                   ├▶ tools/call: in a thread, many at a time
                   └▶ anything else: the official SDK takes the live stream over

Importing the SDK costs more than most sessions need altogether. Every id gets exactly one
answer, whatever the line was; whatever is in doubt is the SDK's to decide.
"""

from __future__ import annotations

import sys

from tooli.contract.jsonable import is_list, is_object
from tooli.surfaces.mcp.flights import Flight, Flights
from tooli.surfaces.mcp.forms import (
    Doubt,
    calling,
    greeting,
    has_envelope,
    ids_of,
    is_id,
    listing,
    plain,
    route,
    wrong_with,
)
from tooli.surfaces.mcp.hands import Hands
from tooli.surfaces.mcp.service import Service, caller_named
from tooli.surfaces.mcp.wire import Oversize, Wire, from_json, ids_in
from tooli.surfaces.mcp.words import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
    invalid_params,
    no_method,
)
from tooli.surfaces.serving import is_installed, too_busy

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.surfaces.mcp.handover import Handover

BATCHES = "2025-03-26"
"""The one version that knows batches."""

GRACE = 10.0
"""Seconds that calls have to end, once the client has closed its end of stdin."""


class Front:
    """One client, served over stdin and stdout."""

    def __init__(self, app: Any, wire: Wire, *, deferred: bool = False) -> None:
        self.service = Service(app, deferred=deferred)
        self.wire = wire
        self.whole = is_installed("mcp")
        self.told = False  # what is missing without the SDK
        self.modern: bool | None = None  # the first request decides
        self.version: str | None = None
        self.client: Any = None
        self.capabilities: Any = {}
        self.opening: list[dict[str, Any]] = []  # what the SDK must have heard to go on
        self.flights = Flights(self)
        self.hands = Hands()
        self.sdk: Handover | None = None

    def serve(self) -> None:
        """Answer until the client has gone."""
        house = self.service.app._house
        if not self.whole and (house.resources or house.prompts):
            self._say_what_is_missing("resources and prompts")
        house.watchers.append(self._changed)
        for line in self.wire.lines():
            if self.wire.broken:
                break
            self._take(line)
        house.watchers.remove(self._changed)
        self.wait(GRACE)
        self.hands.rest()

    def wait(self, seconds: float) -> None:
        """Let the calls end, as long as somebody is there to read their answers."""
        from time import monotonic

        until = monotonic() + seconds
        self.flights.wait(seconds)
        if self.sdk is not None:
            self.sdk.wait(until - monotonic())

    @property
    def busy(self) -> bool:
        """Whether anything is not answered yet."""
        return self.flights.busy or (self.sdk is not None and self.sdk.busy)

    def _say_what_is_missing(self, what: str) -> None:
        """Say once how to get the rest."""
        if not self.told:
            self.told = True
            say(f"without the MCP SDK there are only tools; for {what}: pip install 'tooli[mcp]'")

    def _changed(self, what: str, uri: str | None) -> None:
        """Tell a client that has shaken hands that a list is not what it was."""
        ready = len(self.opening) > 1 and self.whole and self.sdk is None
        if ready and uri is None:
            self.wire.write({"jsonrpc": "2.0", "method": f"notifications/{what}/list_changed"})

    # -------------------------------------------------------------- lines

    def _take(self, line: bytes | Oversize) -> None:
        if isinstance(line, Oversize):
            error = RpcError(INVALID_REQUEST, "The line is too long")
            self._refuse(ids_in(line) or [None], error)
            return
        if not line.strip():
            return
        try:
            message = from_json(line)
        except (ValueError, RecursionError) as failure:
            deep = isinstance(failure, RecursionError)
            reason = "it is nested too deeply" if deep else str(failure)
            error = RpcError(PARSE_ERROR, f"The line is not JSON: {reason}")
            self._refuse(ids_in(line) or [None], error)
            return
        if is_list(message):
            self._take_batch(message)
        else:
            self.take(message)

    def _take_batch(self, messages: Sequence[Any]) -> None:
        if self.version == BATCHES and messages:
            for message in messages:
                self.take(message)
            return
        error = RpcError(INVALID_REQUEST, "Batches are not part of this protocol version")
        self._refuse(ids_of(messages) or [None], error)

    def _refuse(self, ids: Sequence[Any], error: RpcError) -> None:
        """Answer with an error; an id that is in flight gets its answer from its call."""
        for one in ids:
            if one is None or not self._is_open(one):
                self.wire.write({"jsonrpc": "2.0", "id": one, "error": error.to_dict()})

    def _is_open(self, given: int | str) -> bool:
        return given in self.flights or (self.sdk is not None and given in self.sdk)

    # -------------------------------------------------------------- messages

    def take(self, message: Any) -> None:
        """Deal with one message; nothing that it says can end the server."""
        try:
            self._take_message(message)
        except Exception as failure:
            say(f"{type(failure).__name__}: {failure}")
            given = message.get("id") if is_object(message) else None
            if is_id(given):
                self._refuse([given], RpcError(INTERNAL_ERROR, "Internal server error"))

    def _take_message(self, message: Any) -> None:
        wrong = wrong_with(message)
        if wrong is not None:
            ids = ids_of(message if is_list(message) else [message])
            self._refuse(ids or [None], RpcError(INVALID_REQUEST, wrong))
            return
        method = message.get("method")
        if method is None:
            if not self.flights.answered(message) and self.sdk is not None:
                self.sdk.send(message)
        elif "id" not in message:
            self._notice(method, message)
        elif self._is_open(message["id"]):
            say(f"a second request with id {message['id']!r} was left unanswered")
        elif self.sdk is not None:
            self.sdk.send(message)
        else:
            self._request(method, message)

    def _notice(self, method: str, message: dict[str, Any]) -> None:
        """A notification: cancelling is ours, the rest is for whoever has to know it."""
        if method == "notifications/cancelled":
            params: Any = message.get("params") or {}
            given = params.get("requestId")
            if type(given) not in (int, str) or self.flights.cancel(given):
                return
            if self.sdk is not None:
                self.sdk.forget(given)
        if self.sdk is not None:
            self.sdk.send(message)
        elif method == "notifications/initialized" and self.modern is False:
            self.opening.append(message)

    def _request(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        if self.modern is None:
            self.modern = method != "initialize" and has_envelope(params)
        try:
            answer = (self._modern if self.modern else self._legacy)(method, message, params)
        except RpcError as error:
            self._refuse([message["id"]], error)
            return
        except Doubt:
            if not self._pass_on(message):
                self._refuse([message["id"]], invalid_params())
            return
        if answer is not None:
            self.wire.write({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    # -------------------------------------------------------------- the two eras

    def _legacy(self, method: str, message: dict[str, Any], params: Any) -> dict[str, Any] | None:
        if method != "initialize" and has_envelope(params):
            raise RpcError(
                INVALID_REQUEST,
                "this connection serves the handshake protocol era; "
                "requests carrying the 2026-07-28 envelope are not accepted on it",
            )
        if method == "initialize":
            version, self.client, self.capabilities = greeting(params)
            self.opening = [message]
            answer = self.service.initialize(version, whole=self.whole)
            self.version = answer["protocolVersion"]
            return answer
        if method == "ping":
            plain(params)
            return {}
        if method not in ("tools/list", "tools/call"):
            return self._other(method, message)
        check = listing if method == "tools/list" else calling
        check(params)
        if self.version is None:
            raise invalid_params()
        if method == "tools/list":
            return self.service.list_tools(_said(params, "cursor"), modern=False)
        return self._call(message, params, self.client, self.capabilities)

    def _modern(self, method: str, message: dict[str, Any], params: Any) -> dict[str, Any] | None:
        if method == "initialize":
            requested = _said(params, "protocolVersion")
            data: dict[str, Any] = {"supported": list(MODERN)}
            if isinstance(requested, str):
                data["requested"] = requested
            raise RpcError(
                UNSUPPORTED_VERSION,
                "connection is serving the 2026-07-28 protocol; "
                "the initialize handshake is not accepted",
                data,
            )
        client, capabilities = route(params)
        if method == "server/discover":
            return self.service.discover(whole=self.whole)
        if method == "tools/list":
            listing(params)
            return self.service.list_tools(params.get("cursor"), modern=True)
        if method == "tools/call":
            calling(params)
            return self._call(message, params, client, capabilities)
        return self._other(method, message)

    def _other(self, method: str, message: dict[str, Any]) -> None:
        """A method that is not the front's."""
        if not self._pass_on(message):
            self._say_what_is_missing(method)
            raise no_method(method)

    # -------------------------------------------------------------- calls

    def _call(
        self, message: dict[str, Any], params: dict[str, Any], client: Any, capabilities: Any
    ) -> dict[str, Any] | None:
        flight = Flight(self.flights, message["id"], params, capabilities)
        caller, modern = caller_named(client), bool(self.modern)
        request = self.service.request(params, caller, flight, modern=modern)
        if self.flights.full:
            return request.refuse(too_busy())
        self.flights.add(flight)
        if request.is_async:
            self.hands.run_async(request.arun, flight)
        else:
            self.hands.run(request.run, flight)
        return None

    def _pass_on(self, message: dict[str, Any]) -> bool:
        """Give a request to the SDK, which takes over from here; False where there is none."""
        if not self.whole:
            return False
        from tooli.surfaces.mcp.handover import Handover

        try:
            self.sdk = Handover(self.service, self.wire, self.opening)
        except ImportError as missing:  # it is there, but not the one that we know
            self.whole = False
            say(f"the MCP SDK cannot be used: {missing}")
            return False
        self.sdk.send(message)
        return True


def say(text: str) -> None:
    """A line for whoever reads the server's log."""
    try:
        shown = " ".join(text[:300].split())  # clients' words stand in it: one line, and not long
        sys.stderr.write(f"[tooli] {shown}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def _said(params: Any, name: str) -> Any:
    return params.get(name) if params is not None else None
