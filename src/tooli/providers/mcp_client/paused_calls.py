"""PausedCalls: calls of servers that wait for an answer of their caller.

In the stateless version of MCP, a question ends the call of the caller, who repeats the call with
the answer. The request to the server must not be sent again, because it may have had effects. It
stays open, and the repeated call continues it.
"""

from __future__ import annotations

from json import dumps
from threading import Lock
from time import monotonic

from tooli.core.peer import InputRequired

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context
    from tooli.providers.mcp_client.server_call import ServerCall

PAUSE_SECONDS = 600.0
"""Seconds after which a call whose question nobody has answered is given up."""
MAX_PAUSED_CALLS = 100


class PausedCalls:
    """The calls that wait, by tool, arguments and caller. The oldest one is given up first."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, ServerCall]] = []
        self._lock = Lock()

    @staticmethod
    def binding(name: str, arguments: JsonObject, ctx: Context) -> str:
        """Return a text that is the same for a call and its repetition only."""
        caller = ctx.caller
        parts = [name, arguments, caller.name, caller.principal, caller.surface]
        return dumps(parts, sort_keys=True, default=str)

    def run(self, call: ServerCall, binding: str, ctx: Context) -> Any:
        """Run a call. If it asks a question that is answered later, keep it."""
        try:
            return call.run(ctx)
        except InputRequired:
            self._keep(call, binding)
            raise

    def run_answered(self, binding: str, ctx: Context) -> tuple[Any] | None:
        """Continue the call whose question the caller has answered; None if there is none.

        Each question has a key that nobody can guess, so the answer belongs to one call only.
        """
        self._give_up_old()
        peer = ctx._call.peer
        with self._lock:
            waiting = [entry for entry in self._calls if entry[0] == binding]
        for entry in waiting:
            key = entry[1].open_question
            if peer is None or key is None or not peer.has_answer(key):
                continue
            with self._lock:
                if entry not in self._calls:
                    continue
                self._calls.remove(entry)
            return (self.run(entry[1], binding, ctx),)
        return None

    def _keep(self, call: ServerCall, binding: str) -> None:
        call.expires = monotonic() + PAUSE_SECONDS
        with self._lock:
            self._calls.append((binding, call))
        self._give_up_old()

    def _give_up_old(self) -> None:
        now = monotonic()
        with self._lock:
            is_full = len(self._calls) > MAX_PAUSED_CALLS
            old = [entry for entry in self._calls if entry[1].expires < now]
            old = old or (self._calls[:1] if is_full else [])
            self._calls = [entry for entry in self._calls if entry not in old]
        for _, call in old:
            call.cancel()
