"""Refusals: who was not let in, on record; so few a minute that nobody fills the log."""

from __future__ import annotations

from time import monotonic

from tooli.http.request_options import ANONYMOUS_CALLER
from tooli.serving.dispatcher import make_toolless_call

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.errors import ToolError

MAX_DENIALS_PER_MINUTE = 20
"""How many are written down in a minute; of the others it is told how many they were."""
_MINUTE = 60.0


class DenialLog:
    """What the guard of one door has refused."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._window_start = 0.0
        self._recorded = 0
        self._skipped = 0

    def should_record(self, error: ToolError) -> bool:
        """Whether a refusal is to be written down; it counts as written by that."""
        if error.code[:2] != "E2" or self._app._state.policy == "off":
            return False
        now = monotonic()
        if now - self._window_start >= _MINUTE:
            self._window_start, self._recorded = now, 0
        if self._recorded >= MAX_DENIALS_PER_MINUTE:
            self._skipped += 1
            return False
        self._recorded += 1
        return True

    def record(self, error: ToolError, address: str) -> None:
        """Write one down: why, and where it came from; nothing that the request says itself."""
        from tooli.storage.audit_log import log_event

        facts: dict[str, Any] = {"address": address}
        if self._skipped:
            facts["unnoted"], self._skipped = self._skipped, 0
        call = make_toolless_call(self._app, ANONYMOUS_CALLER)
        log_event("denial", call, code=error.code, message=error.message, **facts)
