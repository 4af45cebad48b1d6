"""Run one call for each idempotency key; a repeated call gets the stored outcome."""

from __future__ import annotations

import sys
from json import loads
from threading import Event, Thread

from tooli.core.call import Failed, Ok
from tooli.core.call_fingerprint import fingerprint, make_keyed_digest
from tooli.core.caller_key import caller_key
from tooli.core.event_loop import is_in_event_loop
from tooli.errors import StateError, Suggestion, TemporaryError, shell_quote
from tooli.pipeline.single_use_claims import is_awaiting_input, is_held
from tooli.pipeline.stdout_capture import tee_stdout
from tooli.pipeline.suggestions import suggest_call
from tooli.records.record_flow import RecordProcessor
from tooli.storage.idempotency_sqlite import (
    close_at_exit,
    get_idempotency_store,
    load_secrets_key,
)
from tooli.storage.idempotency_store import (
    STORE_TIMEOUT_SECONDS,
    AlreadyRunning,
    IndeterminateAttempt,
    KeyMismatch,
    NewAttempt,
    ScopedKey,
    StoredReplay,
    StoreUnavailable,
)
from tooli.storage.outcome_codec import (
    MAX_OUTCOME_BYTES,
    NOT_STORED,
    decode_outcome,
    encode_items,
    encode_outcome,
    restore_type,
)
from tooli.storage.outcome_quota import MAX_KEYS_PER_CALLER, MAX_READ_ONLY_BYTES, remote_quota
from tooli.text.json_encoder import encode_text, to_json_and_value
from tooli.text.jsonable import format_timestamp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage, StageRun
    from tooli.errors import ToolError
    from tooli.pipeline import StageContext
    from tooli.records.record_flow import Push
    from tooli.storage.idempotency_store import AttemptToken, BeginResult, IdempotencyStore

EVENT_LOOP_WAIT_SECONDS = 2.0
"""Seconds to wait for other processes on an event loop. The wait blocks the loop."""
MAX_STORE_ATTEMPTS = 300
"""Maximum number of attempts to store an outcome while the store is busy."""
STOPPED_CODES = frozenset(("E4051", "E4130", "E4143"))
"""Codes of calls that were stopped from outside."""


def run_once(context: StageContext) -> Stage:
    """Run one call for each idempotency key, and replay its outcome.

    It stores the complete result of the command. Filters, pages and limits apply to the replay.
    """
    store_url = context.state.security_settings.get("store")

    def run_with_key(call: Call) -> StageRun:
        store = get_idempotency_store(store_url)
        try:
            found = _look_up_key(call, store, store_url)
            if isinstance(found, NewAttempt):
                _check_quota(call, store, found)
            if isinstance(found, StoredReplay):
                return _replay(call, found)
            if not isinstance(found, NewAttempt):
                raise _refusal_error(call, found)
            return (yield from _run(call, store, found))
        finally:
            if call.caller.owns_process:  # the process ends with the call
                store.close()
            else:
                close_at_exit()

    return run_with_key


# ------------------------------------------------------------------ before


def _look_up_key(call: Call, store: IdempotencyStore, store_url: str | None) -> BeginResult:
    """Look up the key of a call.

    If the store was damaged, a new call is rejected, unless it may run twice and the policy is not
    `strict`.
    """
    key, behavior = call.options.idempotency_key or "", call.tool.behavior
    scoped_key = ScopedKey(call.tool.id, call.caller.principal or "", key)
    may_run_twice = behavior.idempotent or behavior.read_only
    can_rerun = may_run_twice or is_held(call, _claim_id(call))
    must_be_intact = not may_run_twice or call.policy == "strict"

    def digest_secret(data: bytes) -> str:
        try:
            return make_keyed_digest(load_secrets_key(store_url))(data)
        except StoreUnavailable as error:
            raise _store_unavailable_error(error) from error

    call_fingerprint = fingerprint(
        call,
        *_requested_page(call),
        *(["--null"] if call.options.nul else ()),
        digest_secret=digest_secret,
    )
    timeout = EVENT_LOOP_WAIT_SECONDS if is_in_event_loop() else STORE_TIMEOUT_SECONDS
    for attempt in (1, 2):
        try:
            return store.begin(
                scoped_key,
                call_fingerprint,
                can_rerun=can_rerun,
                durable=not behavior.read_only,
                timeout=timeout,
                require_intact=must_be_intact,
            )
        except StoreUnavailable as error:
            if attempt == 2 or must_be_intact or error.damaged_path is None:
                raise _store_unavailable_error(error) from error
            call.warnings.append(error.reason)
    raise AssertionError


def _check_quota(call: Call, store: IdempotencyStore, found: NewAttempt) -> None:
    """Release the key and refuse the call if its caller has too many keys."""
    if not call.caller.is_remote or remote_quota.has_key_left(_quota_key(call)):
        return
    try:
        store.release(found.token)
    except StoreUnavailable as error:
        raise _store_unavailable_error(error) from error
    raise TemporaryError(
        f"The caller has used {MAX_KEYS_PER_CALLER:,} idempotency keys, which is the limit. "
        "Nothing ran.",
        code="E4029",
        suggestion=Suggestion("retry_later", "Wait until older keys have expired."),
        details={"retry_after": 3600},
    )


def _quota_key(call: Call) -> str:
    return caller_key(call.caller.principal, call.caller.address)


def _claim_id(call: Call) -> str:
    return f"key {call.options.idempotency_key}"


def _requested_page(call: Call) -> tuple[Any, ...]:
    """Return the requested page if the function pages itself: it then counts as an argument."""
    return (
        call.flow.requested_page()[:2]
        if call.tool.limits.returns_page and call.flow is not None
        else ()
    )


def _replay(call: Call, found: StoredReplay) -> Outcome:
    try:
        stored = decode_outcome(found.outcome)
    except ValueError as error:
        reason = f"The stored outcome of the first call cannot be read: {error}"
        raise _store_unavailable_error(StoreUnavailable(reason, _NEW_KEY_FIX)) from error
    if stored.outcome is None:
        raise _result_not_kept_error(call, found)
    _set_meta(call, found.started_at, replayed=True)
    call.warnings.extend([warning for warning in stored.warnings if warning not in call.warnings])
    if stored.printed and call.caller.gets_printed_text:
        sys.stdout.write(stored.printed)
    outcome = stored.outcome
    if isinstance(outcome, Failed):
        vars(outcome.error)["is_logged"] = True  # the first run was logged
    if outcome.value is None or call.caller.gets_printed_text:
        return outcome
    return outcome.with_value(restore_type(call.tool, outcome.value))


# ------------------------------------------------------------------ the run


def _run(call: Call, store: IdempotencyStore, found: NewAttempt) -> StageRun:
    """Run the call. Store its outcome, or release the key if the function did not start."""
    _set_meta(call, found.started_at, replayed=False)
    items = _ItemRecorder()
    if call.flow is not None:
        call.flow.processors.append(items)  # innermost: it sees every item of the function
    is_printed = call.tool.returns_printed_text and call.caller.gets_printed_text
    stop_tee, warning_count = tee_stdout() if is_printed else None, len(call.warnings)
    outcome = yield call
    printed = stop_tee() if stop_tee is not None else ""
    is_refused = isinstance(outcome, Failed) and not outcome.has_started
    is_stopped = is_refused or (isinstance(outcome, Failed) and _was_stopped(outcome.error))
    state, data = "broken" if is_stopped else "done", None
    try:
        if is_refused and not is_held(call, _claim_id(call)):  # held: it ran, and asked a question
            store.release(found.token)
            return outcome
        if call.peer is not None and is_awaiting_input(outcome):
            call.peer.hold_claim(_claim_id(call))
        data, outcome = _pack_outcome(
            call, found.started_at, outcome, items, call.warnings[warning_count:], printed
        )
        if call.caller.is_remote:
            data = _apply_quota(call, found, state, data)
            if data is None:
                store.release(found.token)
                return outcome
        if not store.finish(found.token, state, data):
            call.warnings.append("Another call with this idempotency key ran at the same time.")
    except StoreUnavailable as unavailable:  # the call has run, so its outcome must be returned
        call.warnings.append(f"The outcome of the call could not be stored. {unavailable.reason}")
        _set_meta(call, found.started_at, replayed=False, kept=False)
        if unavailable.is_busy and not call.caller.owns_process:
            _finish_later(store, found.token, state, data)
    return outcome


def _apply_quota(call: Call, found: NewAttempt, state: str, data: bytes) -> bytes | None:
    """Return the outcome of a remote call as it is stored; None if it is not stored at all.

    A read-only command may run again, so its key is released instead of storing a large result.
    """
    if state == "done" and call.tool.behavior.read_only and len(data) > MAX_READ_ONLY_BYTES:
        _set_meta(call, found.started_at, replayed=False, kept=False)
        return None
    if remote_quota.count(_quota_key(call), len(data)):
        return data
    call.warnings.append(
        "The result was not stored: the stored results of the caller are too large."
    )
    _set_meta(call, found.started_at, replayed=False, kept=False)
    return NOT_STORED


def _finish_later(
    store: IdempotencyStore, token: AttemptToken, state: str, data: bytes | None
) -> None:
    """Start a thread that stores the outcome, or releases the key, when the store is not busy.

    Without it, the call would count as running until this process ends.
    """

    def retry() -> None:
        timer = Event()  # never set: only used to wait
        for _ in range(MAX_STORE_ATTEMPTS):
            timer.wait(1.0)
            try:
                store.release(token) if data is None else store.finish(token, state, data)
                return
            except StoreUnavailable as error:
                if not error.is_busy:
                    return

    Thread(target=retry, name="tooli-idempotency", daemon=True).start()


def _pack_outcome(
    call: Call,
    started_at: float,
    outcome: Outcome,
    items: _ItemRecorder,
    warnings: list[str],
    printed: str,
) -> tuple[bytes, Outcome]:
    """Return the outcome as bytes (NOT_STORED if it cannot be encoded), and the outcome itself."""
    try:
        if items.is_opened and isinstance(outcome, Ok):
            return encode_items(call, items.encoded_items, warnings), outcome
        if items.is_opened and outcome.value is not None:  # filtered, unlike the recorded items
            all_items = [loads(item) for item in items.encoded_items or ()]
            data, _ = encode_outcome(call, outcome.with_value(all_items), printed, warnings)
            return data, outcome
        data, outcome = encode_outcome(call, outcome, printed, warnings)
        call.warnings.extend([line for line in warnings if line not in call.warnings])
        return data, outcome
    except Exception as error:  # whatever the encoder raises, the call has run
        kind = type(error).__name__
        call.warnings.append(
            f"The result could not be stored, because it cannot be encoded ({kind})."
        )
        _set_meta(call, started_at, replayed=False, kept=False)
        return NOT_STORED, outcome


def _was_stopped(error: ToolError) -> bool:
    """True if the call was stopped from outside, so that its progress is unknown."""
    cause = error.__cause__
    if error.code in STOPPED_CODES or (cause is not None and not isinstance(cause, Exception)):
        return not isinstance(cause, SystemExit)
    return error.code == "E4050" and not error.is_translated


class _ItemRecorder(RecordProcessor):
    """Keeps a copy of the items of a stream, up to a limit.

    A call with a key runs to its end, even if this caller wants only some of the items, because a
    repeated call can get the others. So the stream is read to its end.
    """

    def __init__(self) -> None:
        self.encoded_items: list[bytes] | None = []
        self._size = 0
        self._has_enough = False

    def open(self, push: Push) -> Push:
        """Return the function that receives the items."""

        def record(item: object) -> object:
            if self.encoded_items is not None:
                text, item = to_json_and_value(item, [])
                self.encoded_items.append(encode_text(text))
                self._size += len(self.encoded_items[-1]) + 1
                if self._size > MAX_OUTCOME_BYTES:
                    self.encoded_items = None
            self._has_enough = self._has_enough or bool(push(item))
            return False

        return record

    def finish(self) -> object:
        """Return True if the caller needs no more items, so that the next processors add none."""
        return self._has_enough


# ------------------------------------------------------------------ messages


def _set_meta(call: Call, started_at: float, *, replayed: bool, kept: bool = True) -> None:
    if call.meta is not None:
        call.meta["idempotency"] = {
            "key": call.options.idempotency_key,
            "replayed": replayed,
            "first_run": format_timestamp(started_at),
            **({} if kept else {"kept": False}),
        }


def _details(call: Call, started_at: float, **fields: Any) -> dict[str, object]:
    return {
        "key": call.options.idempotency_key,
        "first_run": format_timestamp(started_at),
        **fields,
    }


_NEW_KEY_FIX = "Use a new key, once you know whether the first call took effect."


def _refusal_error(call: Call, found: BeginResult) -> StateError:
    if isinstance(found, KeyMismatch):
        suggestion = Suggestion("retry_with_modified_input", "Use a new key for a new call.")
        target = suggest_call(call, idempotency_key="<idempotency_key>")
        suggestion.target = target.replace(has_placeholders=True)
        return StateError(
            "This idempotency key was used for the same command with other arguments.",
            code="E3050",
            suggestion=suggestion,
            details=_details(call, found.started_at),
        )
    if isinstance(found, AlreadyRunning):
        return StateError(
            "A call with this idempotency key is running.",
            code="E3051",
            suggestion=Suggestion("retry_later", "Repeat the call with the same key in a moment."),
            is_retryable=True,
            details=_details(call, found.started_at, owner=found.owner),
        )
    assert isinstance(found, IndeterminateAttempt)
    return _interrupted_error(call, found)


def _interrupted_error(call: Call, found: IndeterminateAttempt) -> StateError:
    """Return the error for an interrupted call. A human has to find out if it took effect."""
    details = _details(call, found.started_at, owner=found.owner)
    try:
        stored = decode_outcome(found.outcome).outcome if found.outcome else None
    except ValueError:
        stored = None
    if isinstance(stored, Failed):
        details["ended_by"] = {"code": stored.error.code, "message": stored.error.message}
    program = call.caller.prog or (call.tool.app,)
    argv = [*program, "idempotency", "forget", call.options.idempotency_key or ""]
    return StateError(
        "A call with this idempotency key was interrupted. Its effect is unknown.",
        code="E3052",
        suggestion=Suggestion(
            "ask_human",
            "Find out whether the call took effect. If it did, do nothing. If not, ask a human to "
            f"run `{' '.join(map(shell_quote, argv))}` at their terminal, and repeat the call.",
            argv=argv,
        ),
        details=details,
    )


def _result_not_kept_error(call: Call, found: StoredReplay) -> StateError:
    return StateError(
        "The call with this idempotency key has run. Its result was not stored: it was too large, "
        "or could not be written.",
        code="E3052",
        suggestion=Suggestion(
            "ask_human",
            "The call took effect and is not run again. With a new key, it would take effect a "
            "second time.",
        ),
        details=_details(call, found.started_at, done=True, most=MAX_OUTCOME_BYTES),
    )


def _store_unavailable_error(error: StoreUnavailable) -> TemporaryError:
    return TemporaryError(
        f"{error.reason} Nothing ran.",
        code="E4060",
        suggestion=Suggestion("ask_human", error.fix),
    )
