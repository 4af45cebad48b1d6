"""A human's grant for a call: looked up, used, or asked for in writing."""

from __future__ import annotations

from tooli.call.canonical import fingerprint, given_to, stable
from tooli.call.claims import Claim
from tooli.contract.jsonable import is_set
from tooli.contract.parts import parts_of
from tooli.errors import ApprovalRequired, Suggestion, quote
from tooli.state.audit import note

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.call.model import Call, Caller, Stage
    from tooli.errors import ToolError
    from tooli.state.approvals import Approvals, Request


class Grant(Claim):
    """A human's grant, taken for a call."""

    def __init__(self, store: Approvals, request: Request) -> None:
        self._store = store
        self._request = request
        self._call: Call | None = None

    def begin(self, call: Call) -> None:
        """The function is about to run: that is on record before it does."""
        super().begin(call)
        self._call = call
        note("approval_used", call, request=self._request.id)

    def keep(self) -> None:
        """It has run: the grant is gone for good."""
        self._store.use_up(self._request)

    def give_back(self) -> None:
        """The same call may use it again."""
        self._store.give_back(self._request)
        if self._call is not None:
            note("approval_returned", self._call, request=self._request.id)


def take_grant(call: Call, why: str, holding: Sequence[Stage]) -> Grant:
    """The grant of a human for exactly this call.

    Where there is none the call is refused: with the request that waits for a human, or with the
    human's no.
    """
    from tooli.call.planning import digest_of
    from tooli.call.shown import own_plan, seen, shown_arguments, visible
    from tooli.state.approvals import Approvals

    _check_known(call)
    store = Approvals()
    plan = own_plan(call, holding)
    match = _match(store, call, None if plan is None else digest_of(plan))
    granted = store.take(match)
    if granted is not None:
        return Grant(store, granted)
    denied = store.take_denial(match)
    if denied is not None:
        note("approval_denied", call, request=denied.id)
        raise _denied(call, denied)
    tool = call.tool
    request = store.ask(
        match,
        app=tool.app,
        tool=tool.id,
        arguments=seen(shown_arguments(call)),
        plan=seen(plan),
        effects=list(tool.behavior.words()),
        caller=visible(_shown(call.caller)),
        danger=tool.guard.danger,
    )
    note("approval_requested", call, request=request.id)
    raise _waiting(call, why, request)


def _match(store: Approvals, call: Call, plan: str | None) -> str:
    caller = call.caller
    known = caller.principal is not None
    who = [caller.surface, known, caller.principal if known else caller.name or ""]
    secrets = _hidden(store, list(given_to(call).values()), {})
    return store.bind(call.tool.id, fingerprint(call), secrets, who, plan)


def _hidden(store: Approvals, value: Any, known: dict[int, list[str]]) -> list[str]:
    """What tells the secrets in a value from others, however deep they are.

    One that is named by its place is read: what is there may be another one tomorrow. Those in
    a set stand for what they belong to, in an order of their own: a set has none.
    """
    kind = value.__class__
    if hasattr(kind, "reveal"):
        return [store.hide(value.reveal())]
    if hasattr(kind, "get_secret_value"):
        return [store.hide(value.get_secret_value())]
    if id(value) in known:  # by another way, or it is inside of itself
        return known[id(value)]
    known[id(value)] = []
    found = [(part, _hidden(store, part, known)) for part in parts_of(value)]
    if is_set(value):
        told = sorted([store.bind(stable(part), secrets) for part, secrets in found if secrets])
    else:
        told = [secret for _, secrets in found for secret in secrets]
    known[id(value)] = told
    return told


def _check_known(call: Call) -> None:
    """Refuse a call whose input nobody can know before it runs: nobody can approve that."""
    for name, value in given_to(call).items():
        items: list[Any] = list(value) if type(value) in (list, tuple) else [value]
        if any([_is_fleeting(item) for item in items]):
            raise ApprovalRequired(
                f"{call.tool.name} needs a human's approval, and what {name!r} will read from a "
                "pipe or a stream cannot be shown to anybody first.",
                field=name,
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Put the input into a file and name that, or let a human run it at a terminal.",
                ),
            )


def _is_fleeting(value: Any) -> bool:
    kind = value.__class__
    if hasattr(kind, "is_stdin"):
        return bool(value.is_stdin)
    return any([hasattr(kind, name) for name in ("__next__", "__anext__", "read")])


def _shown(caller: Caller) -> str:
    """A caller as people are shown them: nobody gives themselves a name that looks verified."""
    if caller.principal is not None:
        return f"{caller.principal} ({caller.surface}, verified)"
    name = caller.name or "somebody"
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return f"{name if plain else repr(name)} ({caller.surface})"


# ------------------------------------------------------------------ refusals


def _waiting(call: Call, why: str, request: Request) -> ToolError:
    from tooli.call.shown import when

    command = " ".join(
        [quote(word) for word in (*_program(call), "approvals", "grant", request.id)]
    )
    return ApprovalRequired(
        f"{why} Request {request.id} waits for a human.",
        suggestion=Suggestion(
            "ask_human",
            f"Ask a human to run `{command}` at a terminal of theirs; when they have, repeat "
            "exactly the same call.",
        ),
        details={
            "approval": {"id": request.id, "expires": when(request.expires), "command": command}
        },
    )


def _program(call: Call) -> tuple[str, ...]:
    """What a human types first; an app that is one single command may take all words for itself."""
    return (call.caller.prog or (call.tool.app,)) if call.tool.words else ("tooli",)


def _denied(call: Call, request: Request) -> ToolError:
    return ApprovalRequired(
        f"A human has said no to {call.tool.name} (request {request.id}).",
        code="E2103",
        suggestion=Suggestion("abort", "Do not repeat the call; ask what is wanted instead."),
    )
