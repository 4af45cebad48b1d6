"""Peer: the client at the other end of a call, for a tool that wants to talk to it meanwhile.

    tool ── ctx.elicit(…) ──▶ Peer.ask ──▶ the client, its person or its model
    tool ◀──────── Reply ◀────────────────┘

A door that has a client to talk to (MCP) gives its calls a Peer; where there is none,
progress and logs go nowhere, and a question cannot be asked. Where the protocol has no way
back to a waiting call, `ask` ends it with a Pause: the door hands the questions to the
client, and the same call begins again with the answers.
"""

from __future__ import annotations

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Question(Record):
    """Something that only the client can answer."""

    method = ""  # pyright: ignore[reportUnannotatedClassAttribute]  how MCP calls it

    def params(self) -> dict[str, Any]:
        """The question in MCP's words."""
        raise NotImplementedError


class Elicit(Question):
    """A form for the client's person: a message, and the JSON Schema of a flat object."""

    message: str
    schema: Mapping[str, Any]

    method = "elicitation/create"

    def params(self) -> dict[str, Any]:
        """The question in MCP's words."""
        return {"message": self.message, "requestedSchema": dict(self.schema)}


class Sample(Question):
    """A prompt for the client's model."""

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system: str | None = None

    method = "sampling/createMessage"

    def params(self) -> dict[str, Any]:
        """The question in MCP's words."""
        fields: dict[str, Any] = {"messages": list(self.messages), "maxTokens": self.max_tokens}
        return fields if self.system is None else {**fields, "systemPrompt": self.system}


class Roots(Question):
    """Which folders the client's person has opened."""

    method = "roots/list"

    def params(self) -> dict[str, Any]:
        """The question in MCP's words."""
        return {}


class Peer:
    """The client of a running call. Each kind of client does what it can."""

    cancelled = False  # the client does not want the answer any more

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come."""

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on."""

    def supports(self, method: str) -> bool:
        """Whether the client can answer such a question."""
        return False

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers, each as MCP writes it, from a thread that may wait."""
        raise NotImplementedError

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same on an event loop."""
        return self.ask(questions)

    def disconnect_client(self) -> None:
        """End the client's connection, where it can come back for the answer later."""


class InputRequired(BaseException):
    """The call ends here, and begins again once the client has answered.

    No Exception: a tool that catches everything must not catch this.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__(", ".join(questions))
        self.questions = questions
