"""approvals list, approvals grant, approvals deny: decide calls that wait for a human."""

from __future__ import annotations

import sys
from typing import Annotated

from tooli.builtins import lists_everything
from tooli.core.tool import quote
from tooli.errors import ApprovalRequired, ConflictError, InputError, NotFoundError, Suggestion
from tooli.pipeline.context import Context  # noqa: TC001  evaluated at registration
from tooli.pipeline.terminal_prompts import ask_line, is_agent_present, reset_terminal
from tooli.policy.call_display import escape_value, format_lines
from tooli.schema.param_info import Argument
from tooli.storage.approval_store import ApprovalStore, generate_code
from tooli.storage.audit_log import log_app_event, set_log_path
from tooli.text.escapes import escape_text
from tooli.text.jsonable import format_timestamp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.errors import ToolError
    from tooli.storage.approval_store import ApprovalRequest

_CODE_LENGTH = 4
_MAX_LINES = 400


def add_approvals(group: App, app: App | None = None) -> None:
    """Add `approvals list`, `grant` and `deny`. If `app` is None, they apply to all apps."""

    @group.command("list")
    @lists_everything
    def list_() -> list[dict[str, object]]:
        """List calls that wait for approval, with their effects."""
        return [_request_row(request) for request in ApprovalStore().list_pending(_app_name(app))]

    @group.command("grant")
    def grant(
        request: Annotated[str, Argument(help="ID of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Approve a waiting call: it may run once, unchanged, within fifteen minutes.

        You confirm at a terminal by typing a code. No flag and no environment variable replaces it.
        """
        if not ctx.caller.can_prompt or ctx.options.no_input:
            raise _human_required_error("prompts are disabled")
        _require_human()
        store = ApprovalStore()
        found = _find_request(store, app, request)
        if not _confirm_with_code(found):
            raise InputError(
                f"The code does not match. {found.id} is not approved and is still pending.",
                code="E1003",
                suggestion=Suggestion("retry_with_modified_input", "Run `approvals grant` again."),
            )
        return _record_decision(store, found, "granted", app, ctx)

    @group.command("deny")
    def deny(
        request: Annotated[str, Argument(help="ID of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Deny a waiting call. The next attempt fails with E2103."""
        store = ApprovalStore()
        found = _find_request(store, app, request)
        return _record_decision(store, found, "denied", app, ctx)


def _app_name(app: App | None) -> str | None:
    return None if app is None else app._state.name


def _request_row(request: ApprovalRequest) -> dict[str, object]:
    """Return a request as a row of the list. A request contains text of the caller."""
    row: dict[str, object] = {
        "id": request.id,
        "tool": request.tool,
        "folder": request.folder,
        "arguments": request.arguments,
        "files": request.files or None,
        "plan": request.plan,
        "effects": request.effects or None,
        "caller": request.caller,
        "danger": request.danger,
        "created": format_timestamp(request.created),
        "expires": format_timestamp(request.expires),
    }
    return escape_value({name: value for name, value in row.items() if value is not None})


def _find_request(store: ApprovalStore, app: App | None, id: str) -> ApprovalRequest:
    for request in store.list_pending(_app_name(app)):
        if request.id == id.strip().lower():
            return request
    raise NotFoundError(
        f"There is no pending request {quote(id)}: it was decided, or it has expired.",
        field="request",
        suggestion=Suggestion("fix", "Run `approvals list` to see pending requests."),
    )


def _record_decision(
    store: ApprovalStore, request: ApprovalRequest, state: str, app: App | None, ctx: Context
) -> dict[str, object]:
    """Write the decision to the audit log, then apply it."""
    _write_audit_entry(request, state, app, ctx)
    if not store.decide(request, state):
        raise ConflictError(f"{request.id} was decided by another person in the meantime.")
    return {"id": request.id, "tool": request.tool, "state": state}


def _write_audit_entry(request: ApprovalRequest, state: str, app: App | None, ctx: Context) -> None:
    """Write to the app's audit log. If `app` is None, write to the log at the default path."""
    policy = "standard"
    if app is not None:
        app_state = app._state
        set_log_path(app_state.name, app_state.security_settings.get("audit_log"))
        policy = app_state.policy
    fields = {"request": request.id, "tool": request.tool}
    problem = log_app_event(request.app, f"approval_{state}", policy, **fields)
    if problem is not None:
        ctx.warn(problem)


# ------------------------------------------------------------------ confirmation by a human


def _require_human() -> None:
    """Raise an error unless a human is at a terminal."""
    streams = (sys.stdin, sys.stderr)
    if not all([stream is not None and stream.isatty() for stream in streams]):  # pyright: ignore[reportUnnecessaryComparison]
        raise _human_required_error("there is no terminal")
    if is_agent_present():
        raise _human_required_error("an agent was detected")


def _human_required_error(reason: str) -> ToolError:
    return ApprovalRequired(
        f"Only a person at a terminal can approve this, but {reason}.",
        code="E2102",
        suggestion=Suggestion(
            "ask_human",
            "Ask a human to approve it in a terminal of their own, outside of any agent.",
        ),
    )


def _confirm_with_code(request: ApprovalRequest) -> bool:
    """Show the request and a random code; return True if the person types the code."""
    code = generate_code(_CODE_LENGTH)
    lines = [
        f"{escape_text(request.caller)} wants to run {escape_text(request.tool)}",
        *format_lines(
            request.arguments,
            request.plan,
            _MAX_LINES,
            folder=request.folder,
            files=request.files,
        ),
        *([f"  effects: {', '.join(request.effects)}"] if request.effects else []),
        *([f"  danger: {request.danger}"] if request.danger else []),
        f"requested {format_timestamp(request.created)}; approval is for one run within 15 minutes",
    ]
    reset_terminal()
    sys.stderr.write("\n".join(lines) + "\n")
    try:
        answer = ask_line(f"Type {code} to grant {request.id}: ")
    except EOFError:
        return False
    return answer.strip().lower() == code
