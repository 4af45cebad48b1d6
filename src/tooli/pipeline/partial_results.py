"""Build the outcome of a function that returned a `Partial`: items that succeeded, and failures.

    Partial(items, failed) ─▶ read_failures: each entry becomes an ItemFailure
                           ─▶ partial_outcome: Failed(PartialFailure, value=items)

`read_failures` runs where the function runs, which may be another process. There the exceptions are
known; a message for another process has no room for them.
"""

from __future__ import annotations

from tooli.core.call import Failed, Ok
from tooli.core.result_types import ItemFailure, Partial
from tooli.errors import PartialFailure, Suggestion, ToolError, ToolRuntimeError, plain_text
from tooli.pipeline.failure import as_tool_error
from tooli.pipeline.present import for_caller
from tooli.pipeline.suggestions import suggest_call
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject

MAX_FAILURES = 200
"""Maximum number of failures that an answer describes. The summary counts all of them."""

_ERROR_FIELDS = ("code", "field", "suggestion", "is_retryable", "details")


def read_failures(partial: Partial[Any]) -> Partial[Any]:
    """Return a Partial with an ItemFailure for each entry of `failed`."""
    return Partial(partial.items, [_read_failure(entry) for entry in partial.failed])


def _read_failure(entry: Any) -> ItemFailure:
    if isinstance(entry, ItemFailure):
        return entry
    if is_list(entry) and len(entry) == 2:
        return ItemFailure(entry[0], _read_error(entry[1]))
    item = entry.get("item") if is_object(entry) else None
    return ItemFailure(item, _read_error(entry))


def _read_error(cause: object) -> ToolError:
    """Return the error that an exception, a message or a dict with a message describes."""
    if isinstance(cause, Exception):
        return as_tool_error(cause)
    if is_object(cause):
        fields: dict[str, Any] = {
            name: cause[name] for name in _ERROR_FIELDS if cause.get(name) is not None
        }
        message = plain_text(cause.get("message")) or "It failed."
        return as_tool_error(ToolRuntimeError(message, **fields))
    return ToolRuntimeError(plain_text(cause) or "It failed.")


def partial_outcome(partial: Partial[Any], call: Call) -> Outcome:
    """Return the outcome for a Partial: a success if nothing has failed."""
    if not partial.failed:
        return Ok(partial.items)
    errors = [_check_error(failure.error, call) for failure in partial.failed]
    retryable = sum([error.is_retryable for error in errors])
    succeeded, failed = len(partial.items), len(errors)
    entries = [
        _describe(failure.item, for_caller(error, call))
        for failure, error in zip(partial.failed[:MAX_FAILURES], errors, strict=False)
    ]
    details: JsonObject = {
        "summary": {
            "total": succeeded + failed,
            "succeeded": succeeded,
            "failed": failed,
            "retryable": retryable,
        },
        "errors": entries,
    }
    error = PartialFailure(
        f"{failed} of {succeeded + failed} items failed.",
        details=details,
        is_retryable=retryable == failed,
        suggestion=_suggest_retry(partial, call),
    )
    return Failed(error, value=partial.items)


def _check_error(error: ToolError, call: Call) -> ToolError:
    """Return the error for the caller. On a server, unexpected errors are logged and masked."""
    error = as_tool_error(error)
    return error if call.request is None else call.request.check_error(error, call)


def _describe(item: object, error: ToolError) -> JsonObject:
    """Return the entry of `error.details.errors` for a failure."""
    fields: JsonObject = error.to_dict()
    return fields if item is None else {"item": item, **fields}


def _suggest_retry(partial: Partial[Any], call: Call) -> Suggestion | None:
    """Return the call with only the items that failed, if they are values of one parameter."""
    failed = [plain_text(failure.item) for failure in partial.failed if failure.item is not None]
    if len(failed) < len(partial.failed):
        return None
    arguments = call.tool.arguments_by_param(call.arguments)
    for name, value in arguments.items():
        if not is_list(value):
            continue
        texts = [plain_text(item) for item in value]
        if len(value) > len(failed) and set(failed) <= set(texts):
            kept = [item for item, text in zip(value, texts, strict=True) if text in failed]
            suggestion = Suggestion(
                "retry_with_modified_input",
                f"Correct the causes in error.details.errors, and repeat the call with the {name} "
                "that failed.",
            )
            suggestion.target = suggest_call(
                call, {**arguments, name: kept}, without=("idempotency_key", "cursor", "apply")
            )
            return suggestion
    return None
