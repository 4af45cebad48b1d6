"""The MCP protocol: versions, keys, JSON-RPC errors, validation, and questions to clients.

Functions that cannot decide whether parameters are valid raise `NeedsSdk`; then the SDK decides.

    call ─▶ needs approval ─▶ the client asks its human ─▶ yes: the call runs, approved
                                                        └▶ no: the call fails

In the stateless protocol versions the server cannot ask while a call waits. The call ends with
the questions and a signed state; the client sends the call again with the answers.
"""

from __future__ import annotations

from json import dumps

from tooli.core.call_fingerprint import requested_id
from tooli.core.peer import InputRequired, Peer
from tooli.core.tool import MAX_MESSAGE_CHARS, MAX_QUOTED_CHARS, cut_text
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit, is_yes, parse_reply
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias, TypeGuard

    from tooli.core.call import Caller
    from tooli.core.peer import Artifact, Question
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError

    RequestId: TypeAlias = int | str

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Handshake versions: a connection starts with `initialize`. Oldest first."""

TEXT_ONLY_VERSIONS = HANDSHAKE_VERSIONS[:2]
"""Versions before structured content and output schemas. Results are text only."""

STATELESS_VERSIONS = ("2026-07-28",)
"""Stateless versions: every request contains its version, client and capabilities."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

META_KEY = "io.tooli/meta"
"""Key of the envelope's `meta` in the `_meta` of a result."""

ENVELOPE_KEY = "io.tooli/envelope"
"""Key of the whole envelope, in the `_meta` of a failure or in the data of a JSON-RPC error."""

OPTIONS_KEY = "io.tooli/options"
"""Key of the framework options in the `_meta` of a request, such as `{"dry_run": true}`."""

MESSAGE_DEPTH = 2
"""The number of objects around the arguments of a call: the message and its `params`."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # used in handshake versions only
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, from the least to the most severe."""

DEFAULT_LOG_LEVEL = "info"
"""Minimum log level in handshake versions, until the client sets another one."""


class RpcError(Exception):
    """A JSON-RPC error, as opposed to the failure of a tool."""

    def __init__(self, code: int, message: str, data: JsonObject | str | None = None) -> None:
        message = cut_text(message, MAX_MESSAGE_CHARS)
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> JsonObject:
        """Return the error as JSON-RPC represents it."""
        error: JsonObject = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def invalid_params_error() -> RpcError:
    """Return the error for invalid parameters, with the same message as the SDK."""
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def method_not_found_error(method: str) -> RpcError:
    """Return the error for an unknown method."""
    return RpcError(METHOD_NOT_FOUND, "Method not found", method)


# ------------------------------------------------------------------ request parameters


class NeedsSdk(Exception):  # noqa: N818
    """The SDK must decide whether the parameters are valid."""


def has_version_meta(params: JsonObject) -> bool:
    """True if a request contains its protocol version, as in the stateless versions."""
    meta = params.get("_meta")
    return is_object(meta) and VERSION_KEY in meta


def check_params(params: JsonObject) -> None:
    """Check the `_meta` in the parameters of a request."""
    meta = params.get("_meta")
    if meta is None:
        return
    if not is_object(meta):
        raise invalid_params_error()
    if "progressToken" in meta and type(meta["progressToken"]) not in (str, int):
        raise NeedsSdk


def check_list_params(params: JsonObject) -> None:
    """Check the parameters of a list request."""
    check_params(params)
    if not isinstance(params.get("cursor"), (str, type(None))):
        raise invalid_params_error()


def check_call_params(params: JsonObject) -> None:
    """Check the parameters of a tool call."""
    if not isinstance(params.get("name"), str):
        raise invalid_params_error()
    check_params(params)
    if not isinstance(params.get("arguments"), (dict, type(None))):
        raise invalid_params_error()
    responses = params.get("inputResponses", {})
    if (
        not params.keys() <= {"name", "arguments", "_meta", "requestState", "inputResponses"}
        or not isinstance(params.get("requestState", ""), str)
        or not is_object(responses)
        or not all([_is_elicit_result(response) for response in responses.values()])
    ):
        raise NeedsSdk


def check_read_params(params: JsonObject) -> None:
    """Check the parameters of `resources/read`."""
    _check_exact_params(params, "uri")


def check_prompt_params(params: JsonObject) -> None:
    """Check the parameters of `prompts/get`."""
    arguments = params.get("arguments")
    if arguments is not None:
        is_valid = is_object(arguments) and all([isinstance(v, str) for v in arguments.values()])
        if not is_valid:
            raise NeedsSdk
    _check_exact_params(params, "name", "arguments")


def _check_exact_params(params: JsonObject, name: str, *optional: str) -> None:
    """Check parameters of which `name` is a text. The SDK checks those with other fields."""
    if not params.keys() <= {name, "_meta", *optional} or not isinstance(params.get(name), str):
        raise NeedsSdk
    check_params(params)


LIST_CHANGED_FIELDS = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}
"""Fields of the filter of `subscriptions/listen`, and the kinds of changes that they select."""


def read_listen_params(params: JsonObject) -> JsonObject:
    """Return the filter of `subscriptions/listen`, without fields that are false.

    The SDK serves streams that also subscribe to resources.
    """
    check_params(params)
    requested = params.get("notifications")
    if not is_object(requested) or not params.keys() <= {"notifications", "_meta"}:
        raise NeedsSdk
    if not requested.keys() <= LIST_CHANGED_FIELDS.keys():
        raise NeedsSdk
    if not all([isinstance(value, bool) for value in requested.values()]):
        raise NeedsSdk
    return {name: True for name in LIST_CHANGED_FIELDS if requested.get(name)}


def _is_elicit_result(response: object) -> bool:
    """True if an answer is a valid result of an elicitation."""
    if not is_object(response) or not response.keys() <= {"action", "content"}:
        return False
    if response.get("action") not in ("accept", "decline", "cancel"):
        return False
    content = response.get("content", {})
    return is_object(content) and all([type(v) in (str, int, bool) for v in content.values()])


def read_initialize_params(params: JsonObject) -> tuple[str, JsonObject, JsonObject]:
    """Return the version, client and capabilities of an `initialize` request."""
    check_params(params)
    version = params.get("protocolVersion")
    if not isinstance(version, str) or not is_object(params.get("capabilities")):
        raise invalid_params_error()
    client = _check_client(params.get("clientInfo"))
    return version, client, _check_capabilities(params["capabilities"])


def read_stateless_meta(params: JsonObject) -> tuple[JsonObject | None, JsonObject]:
    """Return the client and capabilities of a stateless request; raises an RpcError if invalid."""
    meta = params.get("_meta")
    if not is_object(meta):
        raise RpcError(
            INVALID_PARAMS,
            "params._meta must be an object carrying the required "
            f"{VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope keys",
        )
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        keys = ", ".join(missing)
        raise RpcError(
            INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {keys}"
        )
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in STATELESS_VERSIONS:
        data = {
            "supported": list(STATELESS_VERSIONS),
            "requested": cut_text(version, MAX_QUOTED_CHARS),
        }
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    client = meta.get(CLIENT_INFO_KEY)
    checked_client = None if client is None else _check_client(client)
    return checked_client, _check_capabilities(meta[CAPABILITIES_KEY])


_CLIENT_INFO_KEYS = frozenset(("name", "version", "title", "description", "websiteUrl"))


def _check_client(client: object) -> JsonObject:
    """Return the information about a client if it is valid."""
    if (
        not is_object(client)
        or not isinstance(client.get("name"), str)
        or not isinstance(client.get("version"), str)
    ):
        raise invalid_params_error()
    if any([k not in _CLIENT_INFO_KEYS or not isinstance(v, str) for k, v in client.items()]):
        raise NeedsSdk
    return client


def _check_capabilities(capabilities: object) -> JsonObject:
    """Return the client's capabilities if they are valid.

    Raises NeedsSdk unless each capability is an object and all its values are objects. The values
    of `roots` must be booleans instead.
    """
    if not is_object(capabilities):
        raise invalid_params_error()
    for name, value in capabilities.items():
        part_type = bool if name == "roots" else dict
        if not is_object(value) or not all([isinstance(v, part_type) for v in value.values()]):
            raise NeedsSdk
    return capabilities


# ------------------------------------------------------------------ messages


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """True if a value is a valid request id."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def request_ids(messages: Iterable[object]) -> list[RequestId]:
    """Return the ids of the requests in a batch, nested batches included."""
    found: dict[RequestId, None] = {}
    queue = [messages]
    while queue:
        for item in queue.pop():
            if is_list(item):
                queue.append(item)
            elif (
                is_object(item)
                and is_request_id(item.get("id"))
                and not {"result", "error"} & item.keys()
            ):
                found[item["id"]] = None
    return list(found)


_MAX_METHOD_CHARS = 200


def check_message(message: object) -> JsonObject:
    """Return a message if it is valid JSON-RPC; raises an RpcError otherwise."""
    if not is_object(message):
        problem = "A message must be a JSON object"
    elif message.get("jsonrpc") != "2.0":
        problem = 'jsonrpc must be "2.0"'
    elif "id" in message and not is_request_id(message["id"]):
        problem = "id must be a string or an integer"
    elif "method" not in message and "result" not in message and "error" not in message:
        problem = "method is missing"
    elif not isinstance(message.get("method", ""), str):
        problem = "method must be a string"
    elif len(message.get("method", "")) > _MAX_METHOD_CHARS:
        raise RpcError(METHOD_NOT_FOUND, "method is too long")
    elif "method" in message and not isinstance(message.get("params"), (dict, type(None))):
        problem = "params must be an object"
    else:
        return message
    raise RpcError(INVALID_REQUEST, problem)


# ------------------------------------------------------------------ questions to clients


APPROVAL_KEY = "approval"
"""How the key of the question starts that asks for approval of a call."""
_FUNCTION_KEY_PREFIX = "question-"  # of a function's question whose name starts like an approval


_CAPABILITY_BY_METHOD = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
QUESTION_CAPABILITIES = frozenset(_CAPABILITY_BY_METHOD.values())
"""The capabilities of clients that tooli uses."""


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
        _CAPABILITY_BY_METHOD[method]: {}
        for method in methods
        if isinstance(method, str) and method in _CAPABILITY_BY_METHOD
    }
    data: JsonObject = {"requiredCapabilities": required_capabilities, "error": error.to_dict()}
    return RpcError(MISSING_CAPABILITY, error.message, data)


def approval_question(error: ToolError) -> Mapping[str, Question]:
    """Return the question that asks for approval. It shows the tool and its arguments.

    The key of the question contains a digest of what it shows. So an answer is an answer to this
    question only. If something has changed when a stateless client sends the answer, the human is
    asked again.
    """
    question = build_elicit(f"{error.message} Run it?\n{error.approval_text}", YES_NO_SCHEMA)
    parts = error.approval_parts
    return {APPROVAL_KEY if parts is None else f"{APPROVAL_KEY}-{_hash_arguments(parts)}": question}


def is_approved(answers: Mapping[str, Any]) -> bool:
    """True if the human approved the call."""
    return bool(answers) and all([is_yes(parse_reply(answer)) for answer in answers.values()])


# ------------------------------------------------------------------ stateless versions


class RequestState:
    """The client's answers to the questions of a call, from its request and the signed state.

    Answers to the questions of the function (`responses`) and answers to tooli's question whether
    the call may run (`approvals`) are separate. The function chooses the names and texts of its
    questions, so none of its answers may count as an approval.
    """

    def __init__(self, tool: Tool, params: JsonObject, caller: Caller) -> None:
        arguments = _hash_arguments(params.get("arguments") or {})
        tool_id = requested_id(tool)
        self._call_binding = [tool_id, arguments, caller.name or "", caller.principal]
        self.responses: JsonObject = {}
        self.approvals: JsonObject = {}
        self.held_claims: frozenset[str] = frozenset()
        self.new_claims: list[str] = []
        state, input_responses = params.get("requestState"), params.get("inputResponses")
        asked_approvals: list[str] = []
        if state is not None:
            asked, asked_approvals, claims = self._read_state(state)
            if is_object(input_responses) and input_responses.keys() >= {*asked, *asked_approvals}:
                self.held_claims = frozenset(claims)
        if is_object(input_responses):
            # A client may send an answer before the question was asked. An approval counts only
            # if our signed state proves that tooli asked the human. Earlier answers do not change.
            for key, answer in input_responses.items():
                if key in asked_approvals:
                    self.approvals.setdefault(key, answer)
                elif not str(key).startswith(APPROVAL_KEY):
                    self.responses.setdefault(key, answer)

    def _read_state(self, state: object) -> tuple[list[str], list[str], list[str]]:
        """Read earlier answers; return the keys of the questions and approvals, and the claims."""
        from tooli.storage.signing import InvalidToken, verify_message

        def check_owner(message: JsonObject) -> None:
            if message.get("call") != self._call_binding:
                raise RpcError(INVALID_PARAMS, "requestState belongs to another call")

        try:
            message = verify_message(state if isinstance(state, str) else "", check_owner)
        except InvalidToken as broken:
            raise RpcError(INVALID_PARAMS, f"requestState is not valid: {broken}") from None
        self.responses = dict(message["answers"])
        self.approvals = dict(message["approvals"])
        return message["asked"], message["asked_approvals"], message["claims"]

    def input_required(self, pause: InputRequired) -> JsonObject:
        """Return the result that asks the client: the questions and the signed state."""
        from tooli.storage.signing import sign_message

        input_requests = {
            key: {"method": question.method, "params": question.params()}
            for key, question in pause.questions.items()
        }
        keys = list(input_requests)
        state = sign_message(
            {
                "call": self._call_binding,
                "answers": self.responses,
                "approvals": self.approvals,
                "asked": [] if pause.asks_approval else keys,
                "asked_approvals": keys if pause.asks_approval else [],
                "claims": self.new_claims,
            }
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

        self.held_claims = request_state.held_claims

    def hold_claim(self, claim_id: str) -> None:
        """Put a claim into the signed state, with which the client sends the answers."""
        self._request_state.new_claims.append(claim_id)

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

    def artifact(self, artifact: Artifact) -> None:
        """Report something that the call has made."""
        self._transport_peer.artifact(artifact)

    def disconnect_client(self) -> None:
        """Close the connection to a client that can reconnect to get the answer."""
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

    def has_answer(self, key: str) -> bool:
        """True if the request contains the answer to the question of this key."""
        return key in self._request_state.responses

    def ask_approval(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Return the approvals in the request; raises InputRequired if one is missing."""
        approvals = self._request_state.approvals
        if any([key not in approvals for key in questions]):
            raise InputRequired(questions, asks_approval=True)
        return {key: approvals[key] for key in questions}

    async def ask_approval_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Return the approvals in the request; raises InputRequired if one is missing."""
        return self.ask_approval(questions)

    def _unique_key(self, name: str) -> str:
        """Return a key that is unique within the call, and not the key of an approval.

        A repeated request asks the same questions in the same order, so it gets the same keys.
        """
        if name.startswith(APPROVAL_KEY):
            name = _FUNCTION_KEY_PREFIX + name
        count = self._ask_counts[name] = self._ask_counts.get(name, 0) + 1
        return name if count == 1 else f"{name}-{count}"


def _hash_arguments(arguments: object) -> str:
    from hashlib import sha256

    return sha256(dumps(arguments, sort_keys=True).encode()).hexdigest()
