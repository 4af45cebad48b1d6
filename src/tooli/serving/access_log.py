"""Lines of the access log: one for each call, and one for each HTTP request without a call.

    ServerRequest ─▶ request_fields ─▶ interface=http method=POST path=/tools/find status=200 …
                                   └▶ attributes of the log record

Clients choose some of the values. All values are escaped and cut, so that none adds a line.
"""

from __future__ import annotations

import logging
from time import perf_counter

from tooli.text.escapes import escape_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.serving.server_request import ServerRequest

MAX_VALUE_CHARS = 200
"""Maximum number of characters of one value in a line."""

_PLAIN_CHARACTERS = frozenset(map(chr, range(0x21, 0x7F))) - set('"=\\')


def write_access_line(logger: logging.Logger, request: ServerRequest) -> None:
    """Write the line of a request that has ended."""
    fields = request_fields(request)
    fields["ms"] = round((perf_counter() - request.started) * 1000, 1)
    record = logger.makeRecord(
        logger.name, logging.INFO, __file__, 0, format_fields(fields), (), None, extra=fields
    )
    logger.handle(record)


def request_fields(request: ServerRequest) -> dict[str, object]:
    """Return what the logs say about a request: only fields that have a value, all escaped."""
    call = request.call
    caller = None if call is None else call.caller
    name = None if caller is None else caller.name
    if caller is not None and name is not None and caller.version is not None:
        name = f"{name}/{caller.version}"
    fields: dict[str, object] = {
        "interface": request.surface,
        "client": request.address or (None if caller is None else caller.address),
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "tool": None if call is None else call.tool.id,
        "code": request.code,
        "request_id": request.id,
        "rpc_id": request.rpc_id,
        "session": request.session if caller is None else caller.session,
        "caller": name,
        "principal": request.principal if caller is None else caller.principal,
        "trace": request.trace,
    }
    return {
        key: escape_text(value[:MAX_VALUE_CHARS]) if isinstance(value, str) else value
        for key, value in fields.items()
        if value is not None
    }


def format_fields(fields: Mapping[str, object]) -> str:
    """Return the fields as `key=value`, with quotes around values that contain other characters."""
    return " ".join([f"{key}={_format_value(value)}" for key, value in fields.items()])


def _format_value(value: object) -> str:
    text = str(value)
    if text and _PLAIN_CHARACTERS.issuperset(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
