"""Stop a caller that repeats a failing call, such as an agent in a loop.

    failure 1, 2    the error
    failure 3, 4    the error, with a suggestion that mentions the repetition
    failure 5 …     the error E4031, and the function does not run

A changed argument, a success, or ten minutes in which the call did not run reset the count. Calls
that may succeed later, or that wait for a human, are never blocked. Calls that are refused because
of the caller's token or scopes are not counted.
"""

from __future__ import annotations

import os
from time import time

from tooli.core.call import Failed, Ok
from tooli.core.tool import Handle, is_path, unwrap_optional
from tooli.pipeline.present import present_text
from tooli.schema import Converted, RawText
from tooli.storage.state_files import (
    FAILURE_RETENTION_SECONDS,
    FileFailureHistory,
    RepeatedFailure,
)
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.pipeline import StageContext
    from tooli.storage.state_files import MemoryFailureHistory

WARN_AT, BLOCK_AT, ASK_HUMAN_AT = 3, 5, 8
"""Failure counts at which the error warns, the call is blocked, and a human should be asked."""
_STOPPED_CODES = ("E4130", "E4143", "E4031")
_MAX_WAIT_SECONDS = 300
_MAX_MESSAGE_CHARS = 500
_PROCESS_KEY = os.urandom(32)


def count_failures_in_files(call: Call) -> StageRun:
    """Count the failures of a session on the command line, where each call is a new process."""
    session_key = _session_id(call)
    if session_key is None:
        return (yield call)
    return (yield from _track_failures(call, session_key, FileFailureHistory()))


def count_failures_on_server(context: StageContext) -> Stage:
    """Count the failures of each session in the memory of a server."""
    history, settings = context.failure_history, context.state.security_settings
    assert history is not None

    def count_failures(call: Call) -> StageRun:
        caller = call.caller
        session_key = f"{caller.surface} {caller.principal or ''} {caller.session or ''}"
        work_dir = settings.get("work_dir", "")
        return (yield from _track_failures(call, session_key, history, work_dir))

    return count_failures


def _track_failures(
    call: Call,
    session_key: str,
    history: MemoryFailureHistory | FileFailureHistory,
    work_dir: str = "",
) -> StageRun:
    """Count identical failures in a row; block the call when there are too many."""
    previous, call_digest = history.last_failure(session_key, call.tool.id), None
    if previous is not None:
        call_digest = digest_call(call, work_dir)
        if (
            previous.call_digest == call_digest
            and previous.count + 1 >= BLOCK_AT
            and previous.error.get("blocks")
        ):
            repeated = previous.replace(count=previous.count + 1)
            history.record_failure(session_key, call.tool.id, repeated)
            raise _blocked_error(call, repeated)
    outcome = yield call
    if isinstance(outcome, Ok):
        if previous is not None:
            history.forget(session_key, call.tool.id)
        return outcome
    return _record_outcome(
        call, outcome, previous, call_digest or digest_call(call, work_dir), session_key, history
    )


def record_failure(call: Call, outcome: Failed) -> Outcome:
    """Record the first failure of a session, for the stage `record_first_failure`."""
    session_key = _session_id(call)
    if session_key is None:
        return outcome
    history = FileFailureHistory()
    return _record_outcome(call, outcome, None, digest_call(call), session_key, history)


def _record_outcome(
    call: Call,
    outcome: Failed,
    previous: RepeatedFailure | None,
    call_digest: str,
    session_key: str,
    history: MemoryFailureHistory | FileFailureHistory,
) -> Outcome:
    error = outcome.error
    if error.code in _STOPPED_CODES:  # the call was stopped or blocked, it did not fail
        return outcome
    if error.category == "auth" and not outcome.has_started:
        return outcome  # its arguments may not have been read, and the audit log has each refusal
    message = present_text(error.message, call)  # the stored message must not contain secrets
    failure_text = error.code if error.category == "input" else f"{error.code} {message}"
    failure_digest = _digest(failure_text.encode(errors="surrogatepass"))
    is_same = previous is not None and (previous.call_digest, previous.error_digest) == (
        call_digest,
        failure_digest,
    )
    count = previous.count + 1 if previous is not None and is_same else 1
    stored_error: JsonObject = {
        "code": error.code,
        "message": message[:_MAX_MESSAGE_CHARS],
        "blocks": not (_may_succeed_later(error) or _may_read_stdin(call)),
    }
    history.record_failure(
        session_key,
        call.tool.id,
        RepeatedFailure(call_digest, failure_digest, count, time(), stored_error),
    )
    if count < WARN_AT:
        return outcome
    return outcome.replace(error=_with_repeat_warning(error, count))


# ------------------------------------------------------------------ session


def _session_id(call: Call) -> str | None:
    """Return the session of a command line, from TOOLI_SESSION_ID or a variable of an agent."""
    if not call.caller.owns_process:
        return None  # a server counts in its own memory
    if call.caller.session is not None:
        return call.caller.session
    from tooli.detect import detect_from_environment

    return detect_from_environment().session_id


# ------------------------------------------------------------------ digest of a call


def digest_call(call: Call, work_dir: str = "") -> str:
    """Return a digest of the tool, the arguments as given, and the options.

    It includes the size and modification time of the files that arguments name. So a call with a
    corrected input file is not a repetition. It is made with a key, because the arguments as given
    contain secrets, and the digest is stored.
    """
    from tooli.core.call_fingerprint import ValueEncoder, make_keyed_digest, requested_id

    arguments = {name: _raw_value(value) for name, value in call.arguments.items()}
    options = call.options
    requested = [
        *(options.yes, options.dry_run, options.apply, options.idempotency_key, options.timeout),
        *(call.approved, call.caller.principal, repr(options.result_options)),
    ]
    problems = [[problem.code, problem.field, problem.message] for problem in call.problems]
    files = list(_file_states(_file_candidates(call, arguments), work_dir))
    parts = [arguments, requested, problems, files]
    keyed_digest = make_keyed_digest(_load_key(call))
    tool_id = requested_id(call.tool).encode()
    return keyed_digest(tool_id + b"\0" + ValueEncoder(keyed_digest).encode(parts))


def _load_key(call: Call) -> bytes:
    """Return the user's key, or the key of this process on a server, which stores no digests."""
    if not call.caller.owns_process:
        return _PROCESS_KEY
    from tooli.storage.signing import load_or_create_key

    return load_or_create_key("failures") or _PROCESS_KEY


def _digest(data: bytes) -> str:
    from tooli.core.call_fingerprint import digest

    return digest(data, 16).hex()


def _raw_value(value: object) -> Any:
    """Return a value as it was given: the texts of a command line, or the converted value."""
    if isinstance(value, RawText):
        dotted: list[Any] = [[name, *words] for name, words in (value.dotted or {}).items()]
        return [*value.texts, *dotted]
    return value.value if isinstance(value, Converted) else value


def _file_candidates(call: Call, arguments: dict[str, Any]) -> list[Any]:
    """Return the values that may be file names.

    On a command line, these are all arguments. On a server the caller is not trusted, so these
    are only the parameters that are paths.
    """
    if call.caller.owns_process:
        return list(arguments.values())
    paths = {param.name for param in call.tool.params if is_path(param.shape)}
    return [value for name, value in arguments.items() if name in paths]


def _file_states(values: list[Any], work_dir: str) -> Iterator[list[Any]]:
    """Yield the current folder, then the size and modification time of each named file."""
    try:
        yield [os.getcwd()]
    except OSError:
        yield []
    for value in values:
        texts: list[Any] = list(value) if is_list(value) else [value]
        for text in texts:
            path: Any = text.lstrip("@") if isinstance(text, str) else text
            if isinstance(path, (str, os.PathLike)):
                yield _stat_key(path, work_dir)


def _stat_key(path: Any, work_dir: str) -> list[int]:
    """Return size and modification time of a file; an empty list if it cannot be read."""
    try:
        found = os.stat(os.path.join(os.path.expanduser(work_dir), path))
    except (OSError, ValueError, TypeError):
        return []
    return [found.st_size, found.st_mtime_ns]


def _may_read_stdin(call: Call) -> bool:
    """True if a command line may have read stdin, whose content the digest does not include."""
    if not call.caller.owns_process or not call.tool.has_handles:
        return False
    arguments = {name: _raw_value(value) for name, value in call.arguments.items()}
    handle_names = [
        p.name for p in call.tool.params if isinstance(unwrap_optional(p.shape), Handle)
    ]
    return any([name not in arguments or arguments[name] in ("-", ["-"]) for name in handle_names])


# ------------------------------------------------------------------ messages


def _may_succeed_later(error: ToolError) -> bool:
    """True if the same call may succeed later, or after a human's answer."""
    is_transient = error.is_retryable and error.category not in ("input", "auth")
    return is_transient or error.exit_code in (75, 101) or _needs_human(error)


def _needs_human(error: ToolError) -> bool:
    return error.category == "human" or error.code == "E1010"  # a surface may ask the user


def _with_repeat_warning(error: ToolError, count: int) -> ToolError:
    """Return a copy of the error, with a suggestion that mentions the repetition."""
    from tooli.errors import Suggestion, copy_error

    error = copy_error(error)
    previous = error.suggestion or Suggestion()
    previous_fix = f" {previous.fix}" if previous.fix else ""
    details: dict[str, object] = {**(error.details or {}), "repeated": count}
    if _needs_human(error):
        error.suggestion = previous.replace(
            action="ask_human",
            fix=f"Asked {count} times. Do not repeat it before a human has answered.{previous_fix}",
        )
    elif _may_succeed_later(error):
        wait = details.setdefault("retry_after", min(2 ** (count - WARN_AT + 1), _MAX_WAIT_SECONDS))
        error.suggestion = Suggestion(
            "retry_later", f"Failed {count} times in a row: wait {wait} s before the next attempt."
        )
    else:
        is_input = error.category == "input"
        error.suggestion = previous.replace(
            action="retry_with_modified_input" if is_input else "use_different_tool",
            fix=f"The same call has failed {count} times in the same way; repeating it does not "
            f"help: change its arguments, or use another command.{previous_fix}",
        )
    error.details = details
    return error


def _blocked_error(call: Call, failure: RepeatedFailure) -> ToolError:
    """Return the error for a blocked call."""
    from tooli.errors import Suggestion, ToolRuntimeError

    last_error = {"code": failure.error.get("code"), "message": failure.error.get("message")}
    minutes = int(FAILURE_RETENTION_SECONDS // 60)
    return ToolRuntimeError(
        f"{call.tool.name} was not run: the same call has failed {BLOCK_AT - 1} times in the "
        f"same way ({last_error['code']}).",
        code="E4031",
        is_retryable=False,
        suggestion=Suggestion(
            "ask_human" if failure.count >= ASK_HUMAN_AT else "abort",
            f"Stop repeating it. Change an argument, use another tool or ask a human. "
            f"The unchanged call is blocked until {minutes} minutes after its last failure.",
        ),
        details={"repeated": failure.count, "error": last_error},
    )
