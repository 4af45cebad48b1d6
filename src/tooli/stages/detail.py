"""`--response-format detailed`: the shape of the result, beside the result."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def add_output_schema(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Put the schema of the result into `meta`, for a caller that wants to learn it."""
    from tooli.contract.schema import output_schema

    schema = output_schema(call.tool)
    if schema is not None and call.meta is not None:
        call.meta["output_schema"] = schema
    return (yield call)
