"""Add the schema of the result to `meta`: on request, and on the first call of a session."""

from __future__ import annotations

from tooli.schema.json_schema import output_schema
from tooli.storage.state_files import is_first_call

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def add_output_schema(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Add the schema of the result to `meta`, if it was requested or on a session's first call."""
    schema = output_schema(call.tool)
    if (
        schema is not None
        and call.meta is not None
        and (call.options.detailed or (call.options.detailed is None and _is_first_call(call)))
    ):
        call.meta["output_schema"] = schema
    return (yield call)


def _is_first_call(call: Call) -> bool:
    """True if this is the first call of its session."""
    app, session = call.tool.id.partition(".")[0], call.caller.session
    return session is not None and is_first_call(app, session)
