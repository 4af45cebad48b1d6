"""approvals list, grant, deny: a human's answers to calls that wait for one."""

from __future__ import annotations

import sys
from typing import Annotated

from tooli.pipeline.context import Context  # noqa: TC001  it is read when the command is
from tooli.schema.param_info import Argument

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.errors import ToolError
    from tooli.storage.approval_store import ApprovalRequest, ApprovalStore

_CODE_LENGTH = 4
_MAX_LINES = 400


def add_approvals(group: Any, app: Any = None) -> None:
    """`approvals list`, `approvals grant`, `approvals deny`; of all apps, where none is named."""
    group.command("list")(_list_command(app))
    group.command("grant")(_grant_command(app))
    group.command("deny")(_deny_command(app))


def _app_name(app: Any) -> str | None:
    return None if app is None else app._state.name


def _list_command(app: Any) -> Any:
    def list_() -> list[dict[str, object]]:
        """List the calls that wait for a human: who wants to run what, and what it would do."""
        from tooli.storage.approval_store import ApprovalStore

        return [_request_row(request) for request in ApprovalStore().list_pending(_app_name(app))]

    return list_


def _grant_command(app: Any) -> Any:
    def grant(
        request: Annotated[str, Argument(help="The id of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Let a call run that waits for a human: once, within fifteen minutes, exactly as it is.

        It is asked at a terminal, with a code to be typed. No flag and no variable answers.
        """
        from tooli.errors import ApprovalRequired
        from tooli.storage.approval_store import ApprovalStore

        if not ctx.caller.can_prompt or ctx.options.no_input:
            raise _human_required_error("nobody is to be asked")
        _require_human()
        store = ApprovalStore()
        found = _find_request(store, app, request)
        if not _confirm_with_code(found):
            raise ApprovalRequired(
                f"The code is not what was typed: {found.id} is not granted, and goes on waiting.",
                code="E2103",
            )
        return _record_decision(store, found, "granted", app, ctx)

    return grant


def _deny_command(app: Any) -> Any:
    def deny(
        request: Annotated[str, Argument(help="The id of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Refuse a call that waits for a human: whoever repeats it is told so, once."""
        from tooli.storage.approval_store import ApprovalStore

        store = ApprovalStore()
        found = _find_request(store, app, request)
        return _record_decision(store, found, "denied", app, ctx)

    return deny


def _request_row(request: ApprovalRequest) -> dict[str, object]:
    """A request as lists show it."""
    from tooli.pipeline.approval_view import format_timestamp

    row: dict[str, object] = {
        "id": request.id,
        "tool": request.tool,
        "arguments": request.arguments,
        "plan": request.plan,
        "effects": request.effects or None,
        "caller": request.caller,
        "danger": request.danger,
        "created": format_timestamp(request.created),
        "expires": format_timestamp(request.expires),
    }
    return {name: value for name, value in row.items() if value is not None}


def _find_request(store: ApprovalStore, app: Any, id: str) -> ApprovalRequest:
    from tooli.errors import NotFoundError, Suggestion

    for request in store.list_pending(_app_name(app)):
        if request.id == id.strip().lower():
            return request
    raise NotFoundError(
        f"No request {id!r} waits: it was answered, or its time is over.",
        field="request",
        suggestion=Suggestion("fix", "approvals list shows what waits."),
    )


def _record_decision(
    store: ApprovalStore, request: ApprovalRequest, state: str, app: Any, ctx: Context
) -> dict[str, object]:
    """Put a human's word on record, and then into force: never the second without the first."""
    _write_audit_entry(request, state, app, ctx)
    if not store.decide(request, state):
        from tooli.errors import ConflictError

        raise ConflictError(f"Somebody else has answered {request.id} meanwhile.")
    return {"id": request.id, "tool": request.tool, "state": state}


def _write_audit_entry(request: ApprovalRequest, state: str, app: Any, ctx: Context) -> None:
    """Write it into the app's own log; of an app that is only known by name, into the usual one."""
    from tooli.storage.audit_log import log_app_event, set_log_path

    policy = "standard"
    if app is not None:
        house = app._state
        set_log_path(house.name, house.security_settings.get("audit_log"))
        policy = house.policy
    facts = {"request": request.id, "tool": request.tool}
    wrong = log_app_event(request.app, f"approval_{state}", policy, **facts)
    if wrong is not None:
        ctx.warn(wrong)


# ------------------------------------------------------------------ a person, and nobody else


def _require_human() -> None:
    """Refuse whoever shows that they are no person at a terminal."""
    from tooli.pipeline.terminal_prompts import is_agent_present

    streams = (sys.stdin, sys.stderr)
    if not all([stream is not None and stream.isatty() for stream in streams]):  # pyright: ignore[reportUnnecessaryComparison]
        raise _human_required_error("there is no terminal here")
    if is_agent_present():
        raise _human_required_error("an agent is around")


def _human_required_error(reason: str) -> ToolError:
    from tooli.errors import ApprovalRequired, Suggestion

    return ApprovalRequired(
        f"A request is granted by a person at a terminal, and {reason}.",
        code="E2102",
        suggestion=Suggestion(
            "ask_human", "Ask a human to grant it in a terminal of their own, outside of any agent."
        ),
    )


def _confirm_with_code(request: ApprovalRequest) -> bool:
    """Whether the person types the code that they are shown: nobody could have known it before."""
    from tooli.pipeline.approval_view import escape_text, format_lines, format_timestamp
    from tooli.pipeline.terminal_prompts import ask_line
    from tooli.storage.approval_store import generate_code

    code = generate_code(_CODE_LENGTH)
    lines = [
        f"{escape_text(request.caller)} wants to run {escape_text(request.tool)}",
        *format_lines(request.arguments, request.plan, _MAX_LINES),
        *([f"  effects: {', '.join(request.effects)}"] if request.effects else []),
        *([f"  danger: {request.danger}"] if request.danger else []),
        f"asked {format_timestamp(request.created)}; the grant runs it once, within fifteen minutes",
    ]
    sys.stderr.write("\n".join(lines) + "\n")
    try:
        answer = ask_line(f"Type {code} to grant {request.id}: ")
    except EOFError:
        return False
    return answer.strip().lower() == code
