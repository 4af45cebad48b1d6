"""SessionIds: signed ids of MCP sessions, which every process of a server can read.

    initialize ─▶ issue ─▶ "s" + base64url( session, process, client, owner │ signature )
    request    ─▶ read  ─▶ SessionId: of this process, or of another one

A request may reach another process than the one that opened its session: another worker, another
replica, or the same server after a restart. That process reads the name of the client from the id
and answers the request without a session. The id gives no access: it contains only the
name and version that the client has sent, and the access control checks every request.
"""

from __future__ import annotations

import os
from hashlib import sha256
from json import dumps, loads
from typing import TYPE_CHECKING

from tooli.core import Record
from tooli.core.held_keys import hold_key
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.mcp.client_limits import MAX_INITIALIZE_CHARS
from tooli.storage.signing import (
    InvalidToken,
    decode_token,
    encode_token,
    load_or_create_key,
    load_shared_key,
)
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject

MAX_CACHED_IDS = 1000
"""Number of ids whose content is kept. Clients send their id with each request."""

_PREFIX, _SIGNATURE_BYTES, _KEY_BYTES = "s", 16, 32


class SessionId(Record):
    """The content of the id of a session."""

    name: str  # the id that the SDK uses in the process that opened the session
    is_local: bool  # True: this process opened the session
    client: JsonObject  # the name and version of the client


class SessionIds:
    """The ids of the sessions of one process. Create it in the process that serves."""

    def __init__(self) -> None:
        shared = load_shared_key("sessions") or load_or_create_key("sessions")
        self._key = shared or os.urandom(_KEY_BYTES)
        hold_key(self._key)
        self._process = os.urandom(8).hex()
        self._cache: dict[tuple[str, str | None], SessionId] = {}  # ids that were read

    def issue(self, name: str, client: JsonObject, principal: str | None) -> str:
        """Return the id of a session of this process."""
        content = [name, self._process, client, _digest_owner(principal)]
        return encode_token(_PREFIX, dumps(content).encode(), self._key, _SIGNATURE_BYTES)

    def read(self, text: str, principal: str | None) -> SessionId | None:
        """Return the content of an id; None if it is invalid or belongs to another principal."""
        known = self._cache.get((text, principal))
        if known is not None:
            return known
        try:
            content = loads(decode_token(_PREFIX, text, self._key, _SIGNATURE_BYTES))
        except (InvalidToken, ValueError):
            return None
        if not is_list(content) or len(content) != 4:
            return None
        name, process, client, owner = content
        if owner != _digest_owner(principal) or not isinstance(name, str) or not is_object(client):
            return None
        found = SessionId(name, process == self._process, client)
        if len(self._cache) >= MAX_CACHED_IDS:
            self._cache.clear()
        self._cache[text, principal] = found
        return found


def _digest_owner(principal: str | None) -> str | None:
    """Return what an id contains of its owner. The id is not a secret of the principal."""
    return None if principal is None else sha256(principal.encode()).hexdigest()[:16]


def read_client_info(body: bytes) -> JsonObject | None:
    """Return the name and version of the client in an `initialize` request.

    None if the message is another one. The values are cut, because the id contains them.
    """
    if len(body) > MAX_INITIALIZE_CHARS or b'"initialize"' not in body:
        return None
    try:
        message = loads(body)
    except (ValueError, RecursionError):
        return None
    if not is_object(message) or message.get("method") != "initialize":
        return None
    params = message.get("params")
    info: object = params.get("clientInfo") if is_object(params) else None
    fields = info if is_object(info) else {}
    return {
        key: cut_text(value, MAX_QUOTED_CHARS)
        for key in ("name", "version")
        if isinstance(value := fields.get(key), str)
    }
