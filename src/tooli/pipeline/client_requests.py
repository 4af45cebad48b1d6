"""What a tool asks of its client, and what it gets back: forms, prompts, replies."""

from __future__ import annotations

from tooli.core.peer import Elicit, Sample
from tooli.core.record import Record
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.peer import Peer, Question


class Reply(Record):
    """What a person did with a form: "accept", "decline" or "cancel"; and what they wrote."""

    action: str
    content: Mapping[str, Any] = {}

    @property
    def accepted(self) -> bool:
        """Whether the form was filled in."""
        return self.action == "accept"


YES_NO_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes"}},
    "required": ["yes"],
}
"""The form of a question that is answered with yes or no."""


def is_yes(answer: Reply, default: bool = False) -> bool:
    """Whether the answer to a yes-or-no form is yes; the default where nobody answered."""
    if answer.action == "cancel":
        return default
    return answer.accepted and answer.content.get("yes") is True


def build_elicit(message: str, schema: Any) -> Elicit:
    """A form for the client's person."""
    if not is_object(schema):
        from tooli.schema.json_schema import result_schema

        schema = result_schema(schema)
    return Elicit(message, {"type": "object", "properties": {}, **schema})


def parse_reply(response: Any) -> Reply:
    """An answer of MCP's, read."""
    if not is_object(response):
        return Reply("cancel")
    content = response.get("content")
    return Reply(str(response.get("action", "cancel")), content if is_object(content) else {})


def build_sample(prompt: Any, max_tokens: int, system: str | None) -> Sample:
    """A prompt for the client's model."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return Sample(prompt, max_tokens, system)


def sample_text(response: Any) -> str:
    """What the client's model said."""
    content = response.get("content") if is_object(response) else None
    blocks = content if is_list(content) else [content]
    return "".join([str(block.get("text", "")) for block in blocks if is_object(block)])


def require_peer(call: Call, questions: Mapping[str, Question]) -> Peer:
    """The client, if it can answer; refuses with exit 101 where nobody can be asked."""
    from tooli.errors import ApprovalRequired, Suggestion

    peer = call.peer
    unable = [q.method for q in questions.values() if peer is None or not peer.supports(q.method)]
    if peer is not None and not unable:
        return peer
    raise ApprovalRequired(
        f"{call.tool.name} has to ask ({', '.join(sorted(set(unable)))}), "
        "and nobody here can answer.",
        code="E2102",
        details={"asked": sorted(set(unable))},
        suggestion=Suggestion("ask_human", "Use a client that can be asked."),
    )
