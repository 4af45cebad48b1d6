"""Asking the human at the other end: approvals, and questions in an era without a way back.

    call ─▶ needs a yes ─▶ the client asks its human ─▶ the same call, approved
                                        └─▶ no: the call fails, as it would have

In the stateless era the server cannot ask while a call waits. The call ends with the
questions and a sealed state; the client sends it again with the answers.
"""

from __future__ import annotations

from tooli.call.peer import Pause, Peer
from tooli.call.replies import YES_OR_NO, form, reply, says_yes
from tooli.contract.jsonable import is_object
from tooli.surfaces.mcp.words import INVALID_PARAMS, MISSING_CAPABILITY, RpcError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.peer import Question
    from tooli.contract.tool import Tool
    from tooli.errors import ToolError

APPROVAL = "approval"
"""The key of the question whether a call may run at all."""

_LONGEST = 2000
"""Characters of a call and its plan that a client is asked to show."""

_CAPABILITY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def declares(capabilities: Any, method: str) -> bool:
    """Whether a client's declared capabilities let it answer such a question."""
    name = _CAPABILITY.get(method)
    if name is None or not is_object(capabilities):
        return False
    declared: Any = capabilities.get(name)
    if not is_object(declared):
        return False
    if name == "elicitation":  # {} means forms; a client may declare only links
        return not declared or "form" in declared or "url" not in declared
    return True


def lacking(error: ToolError) -> RpcError | None:
    """The protocol's own refusal of a call that had to ask what the client cannot be asked."""
    if error.code != "E2102":
        return None
    methods: Any = (error.details or {}).get("asked", ())
    needed: dict[str, dict[str, Any]] = {
        _CAPABILITY[method]: {} for method in methods if method in _CAPABILITY
    }
    data: dict[str, Any] = {"requiredCapabilities": needed, "error": error.to_dict()}
    return RpcError(MISSING_CAPABILITY, error.message, data)


def approval_question(error: ToolError) -> Mapping[str, Question]:
    """What the human is asked before the call runs after all: the tool, with which values."""
    shown = error.shown or ""
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}… and {len(shown) - _LONGEST} more characters"
    return {APPROVAL: form(f"{error.message} Run it?\n{shown}", YES_OR_NO)}


def is_approved(answers: Mapping[str, Any]) -> bool:
    """Whether the human said yes."""
    return says_yes(reply(answers.get(APPROVAL)))


# ------------------------------------------------------------------ the stateless era


class Rounds:
    """The answers that a repeated request brings along, and the seal that vouches for them."""

    def __init__(self, tool: Tool, params: Mapping[str, Any], client: str | None) -> None:
        self._bound = [tool.id, _canonical(params.get("arguments") or {}), client or ""]
        self.answers: dict[str, Any] = {}
        state, given = params.get("requestState"), params.get("inputResponses")
        asked: list[str] = []
        if state is not None:
            self.answers, asked = self._open(state)
        if is_object(given):
            answers: dict[str, Any] = given
            # Anything may be answered before it is asked, but a human's yes: only a seal of ours
            # says that a human was asked for it.
            vouched = {k: v for k, v in answers.items() if k != APPROVAL or APPROVAL in asked}
            self.answers.update(vouched)

    def _open(self, state: Any) -> tuple[dict[str, Any], list[str]]:
        from tooli.state.seals import BrokenSeal, unseal

        try:
            message = unseal(state if isinstance(state, str) else "")
        except BrokenSeal as broken:
            raise RpcError(INVALID_PARAMS, f"requestState is not valid: {broken}") from None
        if message.get("call") != self._bound:
            raise RpcError(INVALID_PARAMS, "requestState belongs to another call")
        return dict(message["answers"]), list(message["asked"])

    def input_required(self, pause: Pause) -> dict[str, Any]:
        """What the client gets instead of a result: the questions, and what to bring back."""
        from tooli.state.seals import seal

        asked = {
            key: {"method": question.method, "params": question.params()}
            for key, question in pause.questions.items()
        }
        state = seal({"call": self._bound, "answers": self.answers, "asked": list(asked)})
        return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


class StatelessPeer(Peer):
    """A client that answers by sending the request again; the rest goes through its door."""

    def __init__(self, rounds: Rounds, capabilities: Any, door: Peer | None) -> None:
        self._rounds = rounds
        self._capabilities = capabilities
        self._door = door or Peer()
        self._asked: dict[str, int] = {}

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        """Whether the client does not want the answer any more."""
        return self._door.cancelled

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come."""
        self._door.progress(done, total, message)

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on."""
        self._door.log(level, data)

    def let_go(self) -> None:
        """End the client's connection, where it can come back for the answer later."""
        self._door.let_go()

    def can(self, method: str) -> bool:
        """Whether the client can answer such a question."""
        return declares(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The answers that came along; a Pause where one is missing."""
        keys = {name: self._numbered(name) for name in questions}
        answers = self._rounds.answers
        if any([key not in answers for key in keys.values()]):
            raise Pause({keys[name]: question for name, question in questions.items()})
        return {name: answers[key] for name, key in keys.items()}

    def _numbered(self, name: str) -> str:
        """The second question of a name has another one: a call asks in the same order again."""
        count = self._asked[name] = self._asked.get(name, 0) + 1
        return name if count == 1 else f"{name}-{count}"


def _canonical(arguments: Any) -> str:
    from hashlib import sha256
    from json import dumps

    return sha256(dumps(arguments, sort_keys=True).encode()).hexdigest()
