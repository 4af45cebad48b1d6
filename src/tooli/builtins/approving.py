"""approvals list, grant, deny: a human's answers to calls that wait for one."""

from __future__ import annotations

import sys
from typing import Annotated

from tooli.call.context import Context  # noqa: TC001  it is read when the command is
from tooli.contract.info import Argument

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.errors import ToolError
    from tooli.state.approvals import Approvals, Request

_CODE = 4
_MOST_LINES = 400


def add_approvals(group: Any, app: Any = None) -> None:
    """`approvals list`, `approvals grant`, `approvals deny`; of all apps, where none is named."""
    group.command("list")(_list(app))
    group.command("grant")(_grant(app))
    group.command("deny")(_deny(app))


def _name_of(app: Any) -> str | None:
    return None if app is None else app._house.name


def _list(app: Any) -> Any:
    def list_() -> list[dict[str, object]]:
        """List the calls that wait for a human: who wants to run what, and what it would do."""
        from tooli.state.approvals import Approvals

        return [_row(request) for request in Approvals().waiting(_name_of(app))]

    return list_


def _grant(app: Any) -> Any:
    def grant(
        request: Annotated[str, Argument(help="The id of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Let a call run that waits for a human: once, within fifteen minutes, exactly as it is.

        It is asked at a terminal, with a code to be typed. No flag and no variable answers.
        """
        from tooli.errors import ApprovalRequired
        from tooli.state.approvals import Approvals

        if ctx.caller.surface != "cli" or ctx.options.no_input:
            raise _not_here("nobody is to be asked")
        _check_person()
        store = Approvals()
        found = _find(store, app, request)
        if not _types_code(found):
            raise ApprovalRequired(
                f"The code is not what was typed: {found.id} is not granted, and goes on waiting.",
                code="E2103",
            )
        return _settle(store, found, "granted", app, ctx)

    return grant


def _deny(app: Any) -> Any:
    def deny(
        request: Annotated[str, Argument(help="The id of the request.")], ctx: Context
    ) -> dict[str, object]:
        """Refuse a call that waits for a human: whoever repeats it is told so, once."""
        from tooli.state.approvals import Approvals

        store = Approvals()
        found = _find(store, app, request)
        return _settle(store, found, "denied", app, ctx)

    return deny


def _row(request: Request) -> dict[str, object]:
    """A request as lists show it."""
    from tooli.call.shown import when

    row: dict[str, object] = {
        "id": request.id,
        "tool": request.tool,
        "arguments": request.arguments,
        "plan": request.plan,
        "effects": request.effects or None,
        "caller": request.caller,
        "danger": request.danger,
        "created": when(request.created),
        "expires": when(request.expires),
    }
    return {name: value for name, value in row.items() if value is not None}


def _find(store: Approvals, app: Any, id: str) -> Request:
    from tooli.errors import NotFoundError, Suggestion

    for request in store.waiting(_name_of(app)):
        if request.id == id.strip().lower():
            return request
    raise NotFoundError(
        f"No request {id!r} waits: it was answered, or its time is over.",
        field="request",
        suggestion=Suggestion("fix", "approvals list shows what waits."),
    )


def _settle(
    store: Approvals, request: Request, state: str, app: Any, ctx: Context
) -> dict[str, object]:
    """Put a human's word on record, and then into force: never the second without the first."""
    _note(request, state, app, ctx)
    if not store.settle(request, state):
        from tooli.errors import ConflictError

        raise ConflictError(f"Somebody else has answered {request.id} meanwhile.")
    return {"id": request.id, "tool": request.tool, "state": state}


def _note(request: Request, state: str, app: Any, ctx: Context) -> None:
    """Write it into the app's own log; of an app that is only known by name, into the usual one."""
    from tooli.state.audit import keep_at, note_for

    policy = "standard"
    if app is not None:
        house = app._house
        keep_at(house.name, house.rules.get("audit_log"))
        policy = house.policy
    facts = {"request": request.id, "tool": request.tool}
    wrong = note_for(request.app, f"approval_{state}", policy, **facts)
    if wrong is not None:
        ctx.warn(wrong)


# ------------------------------------------------------------------ a person, and nobody else


def _check_person() -> None:
    """Refuse whoever shows that they are no person at a terminal."""
    from tooli.call.asking import accompanied

    streams = (sys.stdin, sys.stderr)
    if not all([stream is not None and stream.isatty() for stream in streams]):  # pyright: ignore[reportUnnecessaryComparison]
        raise _not_here("there is no terminal here")
    if accompanied():
        raise _not_here("an agent is around")


def _not_here(why: str) -> ToolError:
    from tooli.errors import ApprovalRequired, Suggestion

    return ApprovalRequired(
        f"A request is granted by a person at a terminal, and {why}.",
        code="E2102",
        suggestion=Suggestion(
            "ask_human", "Ask a human to grant it in a terminal of their own, outside of any agent."
        ),
    )


def _types_code(request: Request) -> bool:
    """Whether the person types the code that they are shown: nobody could have known it before."""
    from tooli.call.asking import ask_line
    from tooli.call.shown import lines_of, visible, when
    from tooli.state.approvals import new_code

    code = new_code(_CODE)
    shown = [
        f"{visible(request.caller)} wants to run {visible(request.tool)}",
        *lines_of(request.arguments, request.plan, _MOST_LINES),
        *([f"  effects: {', '.join(request.effects)}"] if request.effects else []),
        *([f"  danger: {request.danger}"] if request.danger else []),
        f"asked {when(request.created)}; the grant runs it once, within fifteen minutes",
    ]
    sys.stderr.write("\n".join(shown) + "\n")
    try:
        typed = ask_line(f"Type {code} to grant {request.id}: ")
    except EOFError:
        return False
    return typed.strip().lower() == code
