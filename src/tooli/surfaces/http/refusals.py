"""Refusals: who was not let in, on record; so few a minute that nobody fills the log."""

from __future__ import annotations

from time import monotonic

from tooli.surfaces.http.words import NOBODY
from tooli.surfaces.serving import without_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.errors import ToolError

MOST = 20
"""How many are written down in a minute; of the others it is told how many they were."""
_MINUTE = 60.0


class Refusals:
    """What the guard of one door has refused."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._since = 0.0
        self._noted = 0
        self._unnoted = 0

    def wants(self, error: ToolError) -> bool:
        """Whether a refusal is to be written down; it counts as written by that."""
        if error.code[:2] != "E2" or self._app._house.policy == "off":
            return False
        now = monotonic()
        if now - self._since >= _MINUTE:
            self._since, self._noted = now, 0
        if self._noted >= MOST:
            self._unnoted += 1
            return False
        self._noted += 1
        return True

    def note(self, error: ToolError, address: str) -> None:
        """Write one down: why, and where it came from; nothing that the request says itself."""
        from tooli.state.audit import note

        facts: dict[str, Any] = {"address": address}
        if self._unnoted:
            facts["unnoted"], self._unnoted = self._unnoted, 0
        call = without_tool(self._app, NOBODY)
        note("denial", call, code=error.code, message=error.message, **facts)
