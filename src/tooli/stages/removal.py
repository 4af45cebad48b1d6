"""Refuse commands that have reached their end: `sunset=` and `deprecated_version=`."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from tooli.core.versions import compare_key
from tooli.errors import DefinitionError, StateError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, Stage, StageRun
    from tooli.pipeline import StageContext


def refuse_removed(context: StageContext) -> Stage:
    """Refuse a command after its last day, or from the version of the app that ends it."""
    app_version = context.state.root.version

    def check_end(call: Call) -> StageRun:
        guidance = call.tool.guidance
        reason = None
        if guidance.sunset is not None and _today() > guidance.sunset:
            reason = f"its last day was {guidance.sunset}"
        elif _is_reached(guidance.deprecated_version, app_version):
            reason = f"version {guidance.deprecated_version} of {call.tool.app} removed it"
        if reason is not None:
            message = call.tool.deprecated if isinstance(call.tool.deprecated, str) else reason
            raise StateError(
                f"{call.tool.name} is no longer available: {reason}.",
                code="E3041",
                suggestion=Suggestion("use_different_tool", f"Deprecated: {message}."),
            )
        return (yield call)

    return check_end


def _today() -> str:
    """Return the date in UTC."""
    return datetime.fromtimestamp(time.time(), timezone.utc).date().isoformat()


def _is_reached(ends_with: str | None, version: str | None) -> bool:
    """True if a version of the app is at least the one that ends a command."""
    if ends_with is None or version is None:
        return False
    try:
        end, current = compare_key(ends_with), compare_key(version)
    except DefinitionError:  # the version of the app is other text
        return False
    return end[0] == current[0] and current >= end
