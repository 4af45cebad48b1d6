"""Questions to a client's human: approvals, and input requests of the stateless versions.

    call ─▶ needs approval ─▶ the client asks its human ─▶ yes: the same call, approved
                                                        └▶ no: the call fails

In the stateless protocol versions the server cannot ask while a call waits. The call ends with
the questions and a signed state; the client sends the call again with the answers.
"""

from __future__ import annotations

from json import dumps

from tooli.core.peer import InputRequired, Peer
from tooli.mcp.protocol import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit, is_yes, parse_reply
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError

APPROVAL_KEY = "approval"
"""The key of the question that asks for approval of a call."""

_MAX_SHOWN_CHARS = 2000
"""Maximum number of characters of a call and its plan that are shown to the human."""

_CAPABILITY_BY_METHOD = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def client_supports(capabilities: object, method: str) -> bool:
    """True if a client with these capabilities can answer this kind of question."""
    name = _CAPABILITY_BY_METHOD.get(method)
    if name is None or not is_object(capabilities):
        return False
    declared = capabilities.get(name)
    if not is_object(declared):
        return False
    if name == "elicitation":  # {} means that forms are supported; a client may declare only URLs
        return not declared or "form" in declared or "url" not in declared
    return True


def missing_capability_error(error: ToolError) -> RpcError:
    """Return the JSON-RPC error for a call whose question the client cannot answer (E2102)."""
    asked: object = (error.details or {}).get("asked")
    methods = asked if is_list(asked) else ()
    required_capabilities: JsonObject = {
        _CAPABILITY_BY_METHOD[method]: {} for method in methods if method in _CAPABILITY_BY_METHOD
    }
    data: JsonObject = {"requiredCapabilities": required_capabilities, "error": error.to_dict()}
    return RpcError(MISSING_CAPABILITY, error.message, data)


def approval_question(error: ToolError) -> Mapping[str, Question]:
    """Return the question that asks for approval. It shows the tool and its arguments."""
    call_text = error.approval_text or ""
    if len(call_text) > _MAX_SHOWN_CHARS:
        omitted = len(call_text) - _MAX_SHOWN_CHARS
        call_text = f"{call_text[:_MAX_SHOWN_CHARS]}… and {omitted} more characters"
    return {APPROVAL_KEY: build_elicit(f"{error.message} Run it?\n{call_text}", YES_NO_SCHEMA)}


def is_approved(answers: Mapping[str, Any]) -> bool:
    """True if the human approved the call."""
    return is_yes(parse_reply(answers.get(APPROVAL_KEY)))


# ------------------------------------------------------------------ stateless versions


class RequestState:
    """The answers in a repeated request, and its signed state."""

    def __init__(self, tool: Tool, params: JsonObject, client: str | None) -> None:
        self._call_binding = [tool.id, _hash_arguments(params.get("arguments") or {}), client or ""]
        self.responses: JsonObject = {}
        state, input_responses = params.get("requestState"), params.get("inputResponses")
        asked: list[str] = []
        if state is not None:
            self.responses, asked = self._read_state(state)
        if is_object(input_responses):
            # An answer may be sent before its question was asked. An approval may not: only our
            # signed state proves that the human was asked.
            answers: JsonObject = dict(input_responses)
            if APPROVAL_KEY not in asked:
                answers.pop(APPROVAL_KEY, None)
            self.responses.update(answers)

    def _read_state(self, state: object) -> tuple[JsonObject, list[str]]:
        from tooli.storage.signing import InvalidToken, verify_message

        try:
            message = verify_message(state if isinstance(state, str) else "")
        except InvalidToken as broken:
            raise RpcError(INVALID_PARAMS, f"requestState is not valid: {broken}") from None
        if message.get("call") != self._call_binding:
            raise RpcError(INVALID_PARAMS, "requestState belongs to another call")
        return dict(message["answers"]), list(message["asked"])

    def input_required(self, pause: InputRequired) -> JsonObject:
        """Return the result that asks the client: the questions and the signed state."""
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
    """A client of a stateless version, which answers questions by sending the request again.

    Progress and log messages go to the peer of its transport.
    """

    def __init__(
        self, request_state: RequestState, capabilities: object, transport_peer: Peer | None
    ) -> None:
        self._request_state = request_state
        self._capabilities = capabilities
        self._transport_peer = transport_peer or Peer()
        self._ask_counts: dict[str, int] = {}

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        """True if the client has cancelled the call."""
        return self._transport_peer.cancelled

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report the progress of the call."""
        self._transport_peer.progress(done, total, message)

    def log(self, level: str, data: Any) -> None:
        """Send a log message."""
        self._transport_peer.log(level, data)

    def disconnect_client(self) -> None:
        """Close the client's connection if it can reconnect for the answer."""
        self._transport_peer.disconnect_client()

    def supports(self, method: str) -> bool:
        """True if the client can answer this kind of question."""
        return client_supports(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Return the answers in the request; raises InputRequired if one is missing."""
        keys = {name: self._unique_key(name) for name in questions}
        answers = self._request_state.responses
        if any([key not in answers for key in keys.values()]):
            raise InputRequired({keys[name]: question for name, question in questions.items()})
        return {name: answers[key] for name, key in keys.items()}

    def _unique_key(self, name: str) -> str:
        """Return a key that is unique within the call.

        It is the same when the request is sent again, because a call asks in the same order.
        """
        count = self._ask_counts[name] = self._ask_counts.get(name, 0) + 1
        return name if count == 1 else f"{name}-{count}"


def _hash_arguments(arguments: object) -> str:
    from hashlib import sha256

    return sha256(dumps(arguments, sort_keys=True).encode()).hexdigest()
