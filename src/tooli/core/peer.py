"""Peer: the client of a running call, for tools that talk to it during the call.

    tool ── ctx.elicit(…) ──▶ Peer.ask ──▶ the client, its user or its model
    tool ◀──────── Reply ◀────────────────┘

An interface that can talk to its client (MCP) gives its calls a Peer. Without one, progress and
logs are discarded and questions cannot be asked. If the protocol cannot deliver an answer to a
waiting call, `ask` ends the call with InputRequired. The interface sends the questions to the
client, and the call runs again with the answers.
"""

from __future__ import annotations

from time import monotonic

from tooli.core import Record
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject


UNANSWERED_TEXT = "The client did not answer before the timeout of the call."
"""Message of the TimeoutExceeded for a question that is open at the deadline of its call."""


class Question(Record):
    """A question to the client."""

    method = ""  # pyright: ignore[reportUnannotatedClassAttribute]  the MCP method

    def params(self) -> JsonObject:
        """Return the params of the MCP request."""
        raise NotImplementedError


class Elicit(Question):
    """A form for the client's user: a message and the JSON Schema of a flat object."""

    message: str
    schema: Mapping[str, Any]

    method = "elicitation/create"

    def params(self) -> JsonObject:
        """Return the params of the MCP request."""
        return {"message": self.message, "requestedSchema": dict(self.schema)}


class Sample(Question):
    """A prompt for the client's model."""

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system: str | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] = ()

    method = "sampling/createMessage"

    def params(self) -> JsonObject:
        """Return the params of the MCP request."""
        fields: JsonObject = {
            "messages": list(self.messages),
            "maxTokens": self.max_tokens,
            "systemPrompt": self.system,
            "temperature": self.temperature,
            "stopSequences": list(self.stop_sequences) or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def prompt(self) -> str:
        """The texts of all messages, with an empty line between them."""
        texts: list[str] = []
        for message in self.messages:
            content = message.get("content")
            for block in content if is_list(content) else [content]:
                text = block.get("text") if is_object(block) else None
                texts += [text] if isinstance(text, str) else []
        return "\n\n".join(texts)


class Roots(Question):
    """A request for the folders that the client's user has opened."""

    method = "roots/list"

    def params(self) -> JsonObject:
        """Return the params of the MCP request."""
        return {}


class Artifact(Record):
    """Something that a call has made: a file or another resource."""

    name: str
    uri: str
    mime_type: str | None = None

    def to_dict(self) -> JsonObject:
        """Return its fields, without empty ones."""
        fields: JsonObject = {"name": self.name, "uri": self.uri}
        return fields if self.mime_type is None else {**fields, "mime_type": self.mime_type}


class Peer:
    """The client of a running call. An interface overrides the methods."""

    cancelled = False  # True once the client has cancelled the call
    receives_events = True  # False: it only answers questions
    deadline: float | None = None  # as time.monotonic(): when `ask` stops waiting
    # IDs of the approval, plan token and idempotency key with which this call asked a question
    # before. The client has sent the call again, with the answers to all questions.
    held_claims: frozenset[str] = frozenset()

    def hold_claim(self, claim_id: str) -> None:
        """Keep a claim for the call that answers the question with which this call ends."""

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report progress."""

    def log(self, level: str, data: object) -> None:
        """Send a log message."""

    def artifact(self, artifact: Artifact) -> None:
        """Report something that the call has made. By default, this is a log message."""
        self.log("info", {"type": "artifact", **artifact.to_dict()})

    def supports(self, method: str) -> bool:
        """True if the client can answer questions of this MCP method."""
        return False

    def can_wait(self) -> bool:
        """True if `ask` may block this thread. False on an event loop that must read the answer."""
        return True

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        """Ask the client and return its answers as MCP results, by key. Blocks the thread.

        Raises TimeoutExceeded at the deadline.
        """
        raise NotImplementedError

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        """Ask the client without blocking the event loop."""
        return self.ask(questions)

    def has_answer(self, key: str) -> bool:
        """True if this call was sent again with the answer to the question of this key."""
        return False

    def ask_approval(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        """Ask whether the call may run. The function of the call never asks this question."""
        return self.ask(questions)

    async def ask_approval_async(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        """Ask whether the call may run, without blocking the event loop."""
        return await self.ask_async(questions)

    def remaining_time(self) -> float | None:
        """Return the seconds until the deadline; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    def close(self) -> None:
        """Send what is left. Nothing is sent after that."""

    def disconnect_client(self) -> None:
        """Close the connection to the client if the client can reconnect to get the answer."""


class InputRequired(BaseException):
    """Raised to end a call that needs answers from the client. The call runs again with them.

    It derives from BaseException, so that `except Exception` in a tool does not catch it.

    Args:
        questions: the questions by key.
        asks_approval: True if tooli asks whether the call may run. The answers to the questions of
            a function never approve a call.
    """

    def __init__(self, questions: Mapping[str, Question], *, asks_approval: bool = False) -> None:
        super().__init__(", ".join(questions))
        self.questions = questions
        self.asks_approval = asks_approval
