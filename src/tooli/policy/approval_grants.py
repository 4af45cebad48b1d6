"""Approvals of calls by humans: find a grant and use it, or store a request for one.

A request describes the call. The description has a maximum length, and says how many lines and
characters are omitted. Invisible characters are escaped.
"""

from __future__ import annotations

import re

from tooli.core.call_fingerprint import caller_arguments, fingerprint, to_stable_json
from tooli.core.event_loop import is_in_event_loop
from tooli.errors import ApprovalRequired, Suggestion, shell_quote
from tooli.pipeline.dry_run_recorder import supports_dry_run
from tooli.pipeline.planning import digest_plan, make_plan
from tooli.pipeline.single_use_claims import SingleUseClaim
from tooli.storage.approval_store import ApprovalStore
from tooli.storage.audit_log import log_event
from tooli.text.json_encoder import encode
from tooli.text.jsonable import (
    format_timestamp,
    is_list,
    is_object,
    is_set,
    iter_children,
    to_jsonable,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call, Caller, Stage
    from tooli.errors import ToolError
    from tooli.storage.approval_store import ApprovalRequest


class ApprovalGrant(SingleUseClaim):
    """A human's grant that a call has claimed."""

    def __init__(self, store: ApprovalStore, request: ApprovalRequest) -> None:
        self._store = store
        self._request = request
        self._call: Call | None = None

    def start(self, call: Call) -> None:
        """Log the use of the grant before the function runs."""
        super().start(call)
        self._call = call
        log_event("approval_used", call, request=self._request.id)

    def commit(self) -> None:
        """Delete the grant, because the function has run."""
        self._store.mark_used(self._request)

    def release(self) -> None:
        """Make the grant usable again for the same call."""
        self._store.release(self._request)
        if self._call is not None:
            log_event("approval_returned", self._call, request=self._request.id)


def take_grant(call: Call, reason: str, confinement_stages: Sequence[Stage]) -> ApprovalGrant:
    """Claim and return the grant of a human for exactly this call.

    Raises ApprovalRequired if there is none. The error names the stored request, or reports that
    a human declined it.
    """
    _check_inputs_known(call)
    store = ApprovalStore()
    plan = plan_for_display(call, confinement_stages)
    match = _build_match_key(store, call, None if plan is None else digest_plan(plan))
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
        app=tool.app,
        tool=tool.id,
        arguments=escape_value(arguments_for_display(call)),
        plan=escape_value(plan),
        effects=list(tool.behavior.labels()),
        caller=escape_text(_describe_caller(call.caller)),
        danger=tool.guard.danger,
    )
    log_event("approval_requested", call, request=request.id)
    raise _approval_pending_error(call, reason, request)


def _build_match_key(store: ApprovalStore, call: Call, plan: str | None) -> str:
    caller = call.caller
    is_verified = caller.principal is not None
    caller_key = [
        caller.surface,
        is_verified,
        caller.principal if is_verified else caller.name or "",
    ]
    secrets = _secret_digests(store, list(caller_arguments(call).values()), {})
    return store.digest_parts(call.tool.id, fingerprint(call), secrets, caller_key, plan)


def _secret_digests(store: ApprovalStore, value: Any, visited: dict[int, list[str]]) -> list[str]:
    """Return digests of all secrets in a value, so that a grant is bound to them.

    The digest of a secret passed as `@file` or `env:NAME` is made from its value, not from its
    location. The digests of the items of a set are sorted, because a set has no order.
    """
    kind = value.__class__
    if hasattr(kind, "reveal"):
        return [store.digest_secret(value.reveal())]
    if hasattr(kind, "get_secret_value"):
        return [store.digest_secret(value.get_secret_value())]
    if id(value) in visited:  # seen before, or a cycle
        return visited[id(value)]
    visited[id(value)] = []
    found = [(part, _secret_digests(store, part, visited)) for part in iter_children(value)]
    if is_set(value):
        digests = sorted(
            [
                store.digest_parts(to_stable_json(part), secrets)
                for part, secrets in found
                if secrets
            ]
        )
    else:
        digests = [secret for _, secrets in found for secret in secrets]
    visited[id(value)] = digests
    return digests


def _check_inputs_known(call: Call) -> None:
    """Raise ApprovalRequired if the call reads a pipe or a stream.

    Its content cannot be shown to the human who approves the call.
    """
    for name, value in caller_arguments(call).items():
        items: list[Any] = list(value) if type(value) in (list, tuple) else [value]
        if any([getattr(item, "is_stdin", False) or _is_one_shot(item) for item in items]):
            raise ApprovalRequired(
                f"{call.tool.name} needs a human's approval, but {name!r} is a pipe or a stream, "
                "whose content cannot be shown to the human.",
                field=name,
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Put the input into a file and pass the file, or let a human run the command "
                    "at a terminal.",
                ),
            )


def _is_one_shot(value: object) -> bool:
    """True for a stream, which can be read only once. Showing it would consume it."""
    kind = value.__class__
    if hasattr(kind, "tooli_json"):
        return False
    return any([hasattr(kind, name) for name in ("__next__", "__anext__", "read")])


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


def _approval_pending_error(call: Call, reason: str, request: ApprovalRequest) -> ToolError:
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
            }
        },
    )


def _program_argv(call: Call) -> tuple[str, ...]:
    """Return the program that a human types to decide on a request."""
    return (call.caller.prog or (call.tool.app,)) if call.tool.cli_path else ("tooli",)


def _approval_denied_error(call: Call, request: ApprovalRequest) -> ToolError:
    return ApprovalRequired(
        f"A human declined {call.tool.name} (request {request.id}).",
        code="E2103",
        suggestion=Suggestion("abort", "Do not repeat the call. Ask the human what to do instead."),
    )


# ------------------------------------------------------------------ descriptions for humans

_MAX_LINE_CHARS, _MAX_LINES = 160, 24


def arguments_for_display(call: Call) -> dict[str, Any]:
    """Return the bound arguments as JSON values.

    Secrets are replaced by a placeholder. A value that can be read only once is replaced by the
    name of its class.
    """
    return {
        name: f"<{value.__class__.__name__}>" if _is_one_shot(value) else to_jsonable(value, [])
        for name, value in caller_arguments(call).items()
    }


def plan_for_display(call: Call, confinement_stages: Sequence[Stage]) -> Any:
    """Return the plan of a call, or None if the function cannot make one.

    On an event loop, it also returns None if the plan needs a dry run, which would block the loop.
    """
    tool = call.tool
    can_dry_run = not tool.has_handles and supports_dry_run(tool.fn) and not is_in_event_loop()
    if not can_dry_run and getattr(tool.fn, "tooli_plan", None) is None:
        return None
    return to_jsonable(make_plan(call, confinement_stages), [])


def describe_call(call: Call, confinement_stages: Sequence[Stage]) -> str:
    """Return a description of a call and its plan, to be shown before the question."""
    effects = ", ".join(call.tool.behavior.labels())
    lines = [
        call.tool.id,
        *format_lines(arguments_for_display(call), plan_for_display(call, confinement_stages)),
    ]
    return "\n".join([*lines, f"  effects: {effects}"] if effects else lines)


def format_lines(arguments: object, plan: object, max_lines: int = _MAX_LINES) -> list[str]:
    """Return the arguments and the plan as lines. An extra last line counts omitted lines."""
    lines = _format_value(arguments, 1)
    if plan is not None:
        lines += ["  plan:", *_format_value(plan, 2)]
    if len(lines) > max_lines:
        lines[max_lines:] = [f"  … and {len(lines) - max_lines} more lines"]
    return lines


def _format_value(value: object, depth: int) -> list[str]:
    indent = "  " * depth
    pairs: list[tuple[str, Any]]
    if is_object(value):
        pairs = [(f"{escape_text(str(name))}: ", item) for name, item in value.items()]
    elif is_list(value):
        pairs = [("- ", item) for item in value]
    else:
        return [indent + _truncate_line(_format_scalar(value))]
    lines: list[str] = []
    for head, item in pairs:
        if (is_object(item) or is_list(item)) and item:
            lines += [indent + _truncate_line(head.rstrip()), *_format_value(item, depth + 1)]
        else:
            lines.append(indent + _truncate_line(head + _format_scalar(item)))
    return lines


def _format_scalar(value: object) -> str:
    return escape_text(encode(value, []).decode())


def _truncate_line(text: str) -> str:
    if len(text) <= _MAX_LINE_CHARS:
        return text
    return f"{text[:_MAX_LINE_CHARS]}… and {len(text) - _MAX_LINE_CHARS} more characters"


def escape_value(value: object) -> Any:
    """Return a JSON value with every string escaped for a terminal."""
    if isinstance(value, str):
        return escape_text(value)
    if is_object(value):
        return {escape_text(str(name)): escape_value(item) for name, item in value.items()}
    return [escape_value(item) for item in value] if is_list(value) else value


_PRINTABLE_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that `str.isprintable` accepts, such as variation selectors."""


def escape_text(text: str) -> str:
    """Return a text in which control and invisible characters are escaped."""
    if text.isascii() and text.isprintable():
        return text
    text = "".join([c if c.isprintable() else _escape(c) for c in text])
    return _PRINTABLE_INVISIBLE.sub(lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
