"""Asking the human at the other end: approvals, and questions in an era without a way back.

    call ─▶ needs a yes ─▶ the client asks its human ─▶ the same call, approved
                                        └─▶ no: the call fails, as it would have

In the stateless era the server cannot ask while a call waits. The call ends with the
questions and a sealed state; the client sends it again with the answers.
"""

from __future__ import annotations

from tooli.core.peer import InputRequired, Peer
from tooli.mcp.protocol import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from tooli.pipeline.client_requests import YES_NO_SCHEMA, build_elicit, is_yes, parse_reply
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.peer import Question
    from tooli.core.tool import Tool
    from tooli.errors import ToolError

APPROVAL_KEY = "approval"
"""The key of the question whether a call may run at all."""

_MAX_SHOWN_CHARS = 2000
"""Characters of a call and its plan that a client is asked to show."""

_CAPABILITY_BY_METHOD = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def client_supports(capabilities: Any, method: str) -> bool:
    """Whether a client's declared capabilities let it answer such a question."""
    name = _CAPABILITY_BY_METHOD.get(method)
    if name is None or not is_object(capabilities):
        return False
    declared: Any = capabilities.get(name)
    if not is_object(declared):
        return False
    if name == "elicitation":  # {} means forms; a client may declare only links
        return not declared or "form" in declared or "url" not in declared
    return True


def missing_capability_error(error: ToolError) -> RpcError | None:
    """The protocol's own refusal of a call that had to ask what the client cannot be asked."""
    if error.code != "E2102":
        return None
    methods: Any = (error.details or {}).get("asked", ())
    required_capabilities: dict[str, dict[str, Any]] = {
        _CAPABILITY_BY_METHOD[method]: {} for method in methods if method in _CAPABILITY_BY_METHOD
    }
    data: dict[str, Any] = {"requiredCapabilities": required_capabilities, "error": error.to_dict()}
    return RpcError(MISSING_CAPABILITY, error.message, data)


def approval_question(error: ToolError) -> Mapping[str, Question]:
    """What the human is asked before the call runs after all: the tool, with which values."""
    call_text = error.approval_text or ""
    if len(call_text) > _MAX_SHOWN_CHARS:
        call_text = f"{call_text[:_MAX_SHOWN_CHARS]}… and {len(call_text) - _MAX_SHOWN_CHARS} more characters"
    return {APPROVAL_KEY: build_elicit(f"{error.message} Run it?\n{call_text}", YES_NO_SCHEMA)}


def is_approved(answers: Mapping[str, Any]) -> bool:
    """Whether the human said yes."""
    return is_yes(parse_reply(answers.get(APPROVAL_KEY)))


# ------------------------------------------------------------------ the stateless era


class RequestState:
    """The answers that a repeated request brings along, and the seal that vouches for them."""

    def __init__(self, tool: Tool, params: Mapping[str, Any], client: str | None) -> None:
        self._call_binding = [tool.id, _hash_arguments(params.get("arguments") or {}), client or ""]
        self.responses: dict[str, Any] = {}
        state, input_responses = params.get("requestState"), params.get("inputResponses")
        asked: list[str] = []
        if state is not None:
            self.responses, asked = self._read_state(state)
        if is_object(input_responses):
            answers: dict[str, Any] = input_responses
            # Anything may be answered before it is asked, but a human's yes: only a seal of ours
            # says that a human was asked for it.
            accepted = {
                k: v for k, v in answers.items() if k != APPROVAL_KEY or APPROVAL_KEY in asked
            }
            self.responses.update(accepted)

    def _read_state(self, state: Any) -> tuple[dict[str, Any], list[str]]:
        from tooli.storage.signing import InvalidToken, verify_message

        try:
            message = verify_message(state if isinstance(state, str) else "")
        except InvalidToken as broken:
            raise RpcError(INVALID_PARAMS, f"requestState is not valid: {broken}") from None
        if message.get("call") != self._call_binding:
            raise RpcError(INVALID_PARAMS, "requestState belongs to another call")
        return dict(message["answers"]), list(message["asked"])

    def input_required(self, pause: InputRequired) -> dict[str, Any]:
        """What the client gets instead of a result: the questions, and what to bring back."""
        from tooli.storage.signing import sign_message

        input_requests = {
            key: {"method": question.method, "params": question.params()}
            for key, question in pause.questions.items()
        }
        state = sign_message(
            {"call": self._call_binding, "answers": self.responses, "asked": list(input_requests)}
        )
        return {
            "resultType": "input_required",
            "inputRequests": input_requests,
            "requestState": state,
        }


class StatelessPeer(Peer):
    """A client that answers by sending the request again; the rest goes through its door."""

    def __init__(
        self, request_state: RequestState, capabilities: Any, transport_peer: Peer | None
    ) -> None:
        self._request_state = request_state
        self._capabilities = capabilities
        self._transport_peer = transport_peer or Peer()
        self._ask_counts: dict[str, int] = {}

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        """Whether the client does not want the answer any more."""
        return self._transport_peer.cancelled

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come."""
        self._transport_peer.progress(done, total, message)

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on."""
        self._transport_peer.log(level, data)

    def disconnect_client(self) -> None:
        """End the client's connection, where it can come back for the answer later."""
        self._transport_peer.disconnect_client()

    def supports(self, method: str) -> bool:
        """Whether the client can answer such a question."""
        return client_supports(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The answers that came along; a Pause where one is missing."""
        keys = {name: self._unique_key(name) for name in questions}
        answers = self._request_state.responses
        if any([key not in answers for key in keys.values()]):
            raise InputRequired({keys[name]: question for name, question in questions.items()})
        return {name: answers[key] for name, key in keys.items()}

    def _unique_key(self, name: str) -> str:
        """The second question of a name has another one: a call asks in the same order again."""
        count = self._ask_counts[name] = self._ask_counts.get(name, 0) + 1
        return name if count == 1 else f"{name}-{count}"


def _hash_arguments(arguments: Any) -> str:
    from hashlib import sha256
    from json import dumps

    return sha256(dumps(arguments, sort_keys=True).encode()).hexdigest()
