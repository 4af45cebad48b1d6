"""Change a JSON document that is too large for the agent that reads it.

Most documents are small, so this module is loaded for the others only.
"""

from __future__ import annotations

from json import loads

from tooli.cli.caller_defaults import compute_result_options
from tooli.core.call import Ok
from tooli.core.output_limits import find_output_limit
from tooli.detect import detect_from_environment
from tooli.pipeline.present import Presented
from tooli.records.size_limits import exceeded_limit, size_limits
from tooli.serving.late_limits import limit_value
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.cli import Invocation
    from tooli.core.call import Call, Outcome


def limit_document(invocation: Invocation, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """Return a JSON document as the caller can read it, truncated if it is too large."""
    if not isinstance(outcome, Ok):
        return data
    if call.options.result_options is not None:  # it has been truncated, unless there is no limit
        return _break_long_line(data)
    result_options = compute_result_options(invocation, call.tool)
    if result_options is None:
        return _break_long_line(data)
    limits = size_limits(result_options)
    if not result_options.max_items and exceeded_limit(limits, data + b"\n") is None:
        return data
    limited_call, truncated = limit_value(call, loads(data).get("result"), result_options)
    if not isinstance(truncated, Ok):
        return data
    return Presented(truncated, limited_call, invocation.milliseconds).envelope_json()


def _break_long_line(document: bytes) -> bytes:
    """Return a document with each record on its own line, if the agent drops a longer line."""
    limit = find_output_limit(detect_from_environment().caller_id)
    if limit is None or not limit.drops_long_lines or len(document) < limit.amount:
        return document
    fields: dict[str, Any] = loads(document)
    if not is_list(fields.get("result")):
        return document
    records = [b"\n" + encode(record, []) for record in fields["result"]]
    meta = encode(fields["meta"], [])
    return b'{"ok":true,"result":[' + b",".join(records) + b'\n],"meta":' + meta + b"}"
