"""Reject every call of an app whose security settings are invalid."""

from __future__ import annotations

from tooli.config.layers import make_settings_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome, Stage
    from tooli.pipeline import StageContext


def reject_invalid_settings(context: StageContext) -> Stage:
    """Reject every call while the security settings are invalid.

    An invalid setting may have been meant to forbid the call, so nothing runs.
    """
    faults = context.state.security_settings.get("faults", [])

    def reject_call(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        raise make_settings_error(faults)

    return reject_call
