"""What a tool asks of its client, and what it gets back: forms, prompts, replies."""

from __future__ import annotations

from tooli.call.peer import Elicit, Sample
from tooli.contract.jsonable import is_list, is_object
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call
    from tooli.call.peer import Peer, Question


class Reply(Record):
    """What a person did with a form: "accept", "decline" or "cancel"; and what they wrote."""

    action: str
    content: Mapping[str, Any] = {}

    @property
    def accepted(self) -> bool:
        """Whether the form was filled in."""
        return self.action == "accept"


YES_OR_NO: dict[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes"}},
    "required": ["yes"],
}
"""The form of a question that is answered with yes or no."""


def says_yes(answer: Reply, default: bool = False) -> bool:
    """Whether the answer to a yes-or-no form is yes; the default where nobody answered."""
    if answer.action == "cancel":
        return default
    return answer.accepted and answer.content.get("yes") is True


def form(message: str, schema: Any) -> Elicit:
    """A form for the client's person."""
    if not is_object(schema):
        from tooli.contract.schema import result_schema

        schema = result_schema(schema)
    return Elicit(message, {"type": "object", "properties": {}, **schema})


def reply(written: Any) -> Reply:
    """An answer of MCP's, read."""
    if not is_object(written):
        return Reply("cancel")
    content = written.get("content")
    return Reply(str(written.get("action", "cancel")), content if is_object(content) else {})


def prompt_of(prompt: Any, max_tokens: int, system: str | None) -> Sample:
    """A prompt for the client's model."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return Sample(prompt, max_tokens, system)


def text_of(written: Any) -> str:
    """What the client's model said."""
    content = written.get("content") if is_object(written) else None
    blocks = content if is_list(content) else [content]
    return "".join([str(block.get("text", "")) for block in blocks if is_object(block)])


def peer_for(call: Call, questions: Mapping[str, Question]) -> Peer:
    """The client, if it can answer; refuses with exit 101 where nobody can be asked."""
    from tooli.errors import ApprovalRequired, Suggestion

    peer = call.peer
    unable = [q.method for q in questions.values() if peer is None or not peer.can(q.method)]
    if peer is not None and not unable:
        return peer
    raise ApprovalRequired(
        f"{call.tool.name} has to ask ({', '.join(sorted(set(unable)))}), "
        "and nobody here can answer.",
        code="E2102",
        details={"asked": sorted(set(unable))},
        suggestion=Suggestion("ask_human", "Use a client that can be asked."),
    )
