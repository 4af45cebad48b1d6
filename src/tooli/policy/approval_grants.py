"""Approvals of calls by humans: find a grant and use it, or store a request for one.

A request describes the call. The description is made by `call_display.py`.
"""

from __future__ import annotations

from copy import deepcopy

from tooli.core import Record
from tooli.core.call_fingerprint import ValueEncoder, caller_arguments
from tooli.core.caller_key import caller_key
from tooli.core.event_loop import is_in_event_loop
from tooli.errors import ApprovalRequired, InputError, StateError, Suggestion, shell_quote
from tooli.pipeline.context import replace_context
from tooli.pipeline.dry_run_recorder import supports_dry_run
from tooli.pipeline.planning import make_plan
from tooli.pipeline.single_use_claims import SingleUseClaim, is_held
from tooli.policy.call_binding import bind_call, bound_options, changed_parts
from tooli.policy.call_display import (
    MAX_SHOWN_BYTES,
    describe_arguments,
    format_lines,
    shorten_value,
    too_large_error,
)
from tooli.storage.approval_store import ApprovalStore
from tooli.storage.audit_log import log_event
from tooli.storage.signing import digest_for_message
from tooli.text.json_encoder import encode
from tooli.text.jsonable import format_timestamp, to_jsonable
from tooli.text.secret_forms import SecretForms

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call, Caller, Stage
    from tooli.core.call_fingerprint import KeyedDigest
    from tooli.errors import ToolError
    from tooli.policy.call_binding import FileState
    from tooli.storage.approval_store import ApprovalRequest


class ApprovalGrant(SingleUseClaim):
    """A human's grant that a call has claimed."""

    def __init__(
        self, store: ApprovalStore, request: ApprovalRequest, *, is_resumed: bool = False
    ) -> None:
        super().__init__(_claim_id(request), is_resumed=is_resumed)
        self._store = store
        self._request = request

    def start(self, call: Call) -> None:
        """Log the use of the grant before the function runs."""
        super().start(call)
        log_event("approval_used", call, request=self._request.id)

    def commit(self) -> None:
        """Delete the grant, because the function has run."""
        self._store.mark_used(self._request)

    def release(self) -> None:
        """Make the grant usable again for the same call."""
        self._store.release(self._request)


def _claim_id(request: ApprovalRequest) -> str:
    return f"approval {request.id}"


def take_grant(call: Call, reason: str, confinement_stages: Sequence[Stage]) -> ApprovalGrant:
    """Claim and return the grant of a human for exactly this call.

    Raises ApprovalRequired if there is none. The error names the stored request, or reports that
    a human declined it.
    """
    store = ApprovalStore()
    shown = _read_call(call, confinement_stages, store.digest_bytes, must_be_stable=True)
    parts = {**shown.parts, "the caller": store.digest_bytes(_identify_caller(call.caller))}
    match = store.digest_bytes(ValueEncoder().encode(parts))
    for held in store.list_granted(parts["the arguments"]):
        if held.match == match and is_held(call, _claim_id(held)):
            return ApprovalGrant(store, held, is_resumed=True)
    granted = store.claim_grant(match)
    if granted is not None:
        return ApprovalGrant(store, granted)
    denied = store.claim_denial(match)
    if denied is not None:
        log_event("approval_denied", call, request=denied.id)
        raise _approval_denied_error(call, denied)
    tool = call.tool
    request = store.request_approval(
        match,
        caller_key(call.caller.principal, call.caller.address),
        app=tool.app,
        tool=tool.id,
        parts=parts,
        folder=shown.folder,
        arguments=shown.arguments,
        files=shown.files,
        plan=shown.plan,
        effects=list(tool.behavior.labels()),
        caller=_describe_caller(call.caller),
        danger=tool.guard.danger,
    )
    log_event("approval_requested", call, request=request.id)
    changes = _find_changes(store, parts)
    raise _approval_pending_error(call, reason, changes, request)


def mark_approved(call: Call) -> Call:
    """Return a call that a human has approved. Its function is not asked again."""
    return call.replace(approved=True, arguments=replace_context(call.arguments, approved=True))


def check_shown_call(call: Call, confinement_stages: Sequence[Stage]) -> None:
    """Raise an error if an approved call is not what the human was shown."""
    shown = _read_call(call, confinement_stages, digest_for_message, must_be_stable=False)
    if call.approved_parts != shown.parts:
        changes = changed_parts(call.approved_parts or {}, shown.parts)
        raise StateError(
            f"{call.tool.name} is not what the human agreed to any more: "
            f"{_join_changes(changes)} changed. Nothing ran.",
            code="E3053",
            suggestion=Suggestion("ask_human", "Repeat the call, and ask the human again."),
            details={"changed": changes},
        )


def _find_changes(store: ApprovalStore, parts: Mapping[str, str]) -> list[str]:
    """Return what differs from a grant for a call with the same arguments; [] if there is none."""
    for granted in store.list_granted(parts["the arguments"]):
        changes = changed_parts(granted.parts, parts)
        if not {"the command", "the caller"}.intersection(changes):
            return changes
    return []


def _join_changes(changes: Sequence[str]) -> str:
    return " and ".join(changes)


def _identify_caller(caller: Caller) -> bytes:
    is_verified = caller.principal is not None
    name = caller.principal if is_verified else caller.name or ""
    return ValueEncoder().encode([caller.surface, is_verified, name])


class _ShownCall(Record):
    """A call as it is shown to a human, and digests of everything that the human agrees to."""

    folder: str
    arguments: dict[str, Any]
    files: dict[str, Any]
    plan: Any
    parts: dict[str, str]


def _read_call(
    call: Call,
    confinement_stages: Sequence[Stage],
    keyed_digest: KeyedDigest,
    *,
    must_be_stable: bool,
    with_contents: bool = True,
) -> _ShownCall:
    """Read everything that a human is shown. The arguments are read before the dry run."""
    binding = bind_call(call, keyed_digest, must_be_stable=must_be_stable)
    arguments = describe_arguments(call)
    for options in bound_options(call).values():
        arguments |= options
    parts = {**binding.parts, **binding.contents}
    plan = _make_plan(call, confinement_stages)
    shown_plan = to_jsonable(plan, [])
    if plan is not None:
        parts["the plan"] = keyed_digest(
            ValueEncoder(keyed_digest).encode(plan) + ValueEncoder().encode(shown_plan)
        )
    files = {
        name: [state.to_json(with_content=with_contents) for state in states]
        for name, states in binding.files.items()
    }
    _refuse_repeated_secrets(call, arguments, binding.files if with_contents else {}, shown_plan)
    arguments, shown_plan = shorten_value(arguments), shorten_value(shown_plan)
    if len(encode([arguments, files, shown_plan], [])) > MAX_SHOWN_BYTES:
        raise too_large_error(call.tool.name)
    return _ShownCall(binding.folder, arguments, files, shown_plan, parts)


def _refuse_repeated_secrets(
    call: Call,
    arguments: Mapping[str, Any],
    files: Mapping[str, Sequence[FileState]],
    plan: object,
) -> None:
    """Raise E1037 if something that is shown contains a secret of the call.

    It is not masked instead, because the caller chooses the secrets: with a secret that contains
    the text of another argument, the caller could hide that argument from the human.
    """
    if call.policy == "off":
        return
    forms = SecretForms(call.secrets or ())
    if not forms:
        return
    for name, value in arguments.items():
        if forms.occur_in(value, with_remains=False):
            raise _repeated_secret_error(call, repr(name), name)
    for name, states in files.items():
        for state in states:
            is_cut = len(state.beginning.encode()) < (state.size or 0)
            text = f"{state.beginning}…" if is_cut else state.beginning
            if forms.occur_in(text, with_remains=is_cut):
                raise _repeated_secret_error(call, f"the beginning of the file in {name!r}", name)
    if forms.occur_in(plan, with_remains=True):
        raise _repeated_secret_error(call, "the plan", None)


def _describe_caller(caller: Caller) -> str:
    """Return a description of a caller for humans. It says "verified" only with a valid token."""
    if caller.principal is not None:
        return f"{caller.principal} ({caller.surface}, verified)"
    name = caller.name
    if not name:
        return f"an unnamed caller ({caller.surface})"
    is_plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return f"{name if is_plain else repr(name)} ({caller.surface})"


# ------------------------------------------------------------------ errors


def _approval_pending_error(
    call: Call, reason: str, changes: Sequence[str], request: ApprovalRequest
) -> ToolError:
    """Return the error for a call that waits for a human.

    `changes` are the parts that differ from an earlier grant.
    """
    if changes:
        reason += f" It was approved before, but {_join_changes(changes)} changed since then."
    command = " ".join(
        [shell_quote(word) for word in (*_program_argv(call), "approvals", "grant", request.id)]
    )
    return ApprovalRequired(
        f"{reason} The request {request.id} waits for a human.",
        suggestion=Suggestion(
            "ask_human",
            f"Ask a human to run `{command}` at their terminal. Afterwards, repeat "
            "exactly the same call.",
        ),
        details={
            "approval": {
                "id": request.id,
                "expires": format_timestamp(request.expires),
                "command": command,
                **({"changed": list(changes)} if changes else {}),
            }
        },
    )


def _program_argv(call: Call) -> tuple[str, ...]:
    """Return the program that a human types to decide on a request."""
    return (call.caller.prog or (call.tool.app,)) if call.tool.cli_path else ("tooli",)


def _repeated_secret_error(call: Call, subject: str, field: str | None) -> ToolError:
    return InputError(
        f"A human must see the whole call of {call.tool.name}, but {subject} repeats the text of a "
        "secret, which must not be shown.",
        code="E1037",
        field=field,
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Pass the secret only as the secret, and use a secret that is not part of other text.",
        ),
    )


def _approval_denied_error(call: Call, request: ApprovalRequest) -> ToolError:
    return ApprovalRequired(
        f"A human declined {call.tool.name} (request {request.id}).",
        code="E2103",
        suggestion=Suggestion("abort", "Do not repeat the call. Ask the human what to do instead."),
    )


# ------------------------------------------------------------------ descriptions for humans


def _make_plan(call: Call, confinement_stages: Sequence[Stage]) -> Any:
    """Return the plan of a call, or None if the function cannot make one.

    On an event loop, it also returns None if the plan needs a dry run, which would block the loop.
    The dry run gets copies of the arguments, because it may change them.
    """
    tool = call.tool
    can_dry_run = not tool.has_handles and supports_dry_run(tool.fn) and not is_in_event_loop()
    if not can_dry_run and getattr(tool.fn, "tooli_plan", None) is None:
        return None
    copies = {name: _copy_value(value) for name, value in caller_arguments(call).items()}
    return make_plan(call.replace(arguments={**call.arguments, **copies}), confinement_stages)


def _copy_value(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:  # the value cannot be copied
        return value


def describe_call(
    call: Call,
    confinement_stages: Sequence[Stage],
    *,
    must_be_stable: bool,
    is_brief: bool = False,
) -> tuple[str, dict[str, str]]:
    """Return a description of a call to be shown before the question, and digests of its parts.

    A remote client learns nothing about the content of the server's files. With `is_brief`, the
    description is for a user who typed the call: it leaves out what is known about its files.
    """
    shown = _read_call(
        call,
        confinement_stages,
        digest_for_message,
        must_be_stable=must_be_stable,
        with_contents=call.caller.address is None,
    )
    if is_brief:
        head = f"{call.tool.id} may destroy data."
        lines = format_lines(shown.arguments, shown.plan, folder=shown.folder, is_brief=True)
        return "\n".join([head, *lines]), shown.parts
    effects = ", ".join(call.tool.behavior.labels())
    lines = [
        call.tool.id,
        *format_lines(shown.arguments, shown.plan, folder=shown.folder, files=shown.files),
    ]
    text = "\n".join([*lines, f"  effects: {effects}"] if effects else lines)
    return text, shown.parts
