"""Requests that a function sends to its MCP client (forms and prompts), and the replies."""

from __future__ import annotations

from tooli.core.peer import Elicit, Sample
from tooli.core.record import Record
from tooli.errors import ApprovalRequired, Suggestion
from tooli.schema.json_schema import result_schema
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.peer import Peer, Question


class Reply(Record):
    """The reply to a form: "accept", "decline" or "cancel", and the content."""

    action: str
    content: Mapping[str, Any] = {}

    @property
    def accepted(self) -> bool:
        """True if the form was filled in."""
        return self.action == "accept"


YES_NO_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes"}},
    "required": ["yes"],
}
"""The form of a yes-or-no question."""


def is_yes(answer: Reply, default: bool = False) -> bool:
    """True if a yes-or-no form was answered with yes. Return the default if it was cancelled."""
    if answer.action == "cancel":
        return default
    return answer.accepted and answer.content.get("yes") is True


def build_elicit(message: str, schema: Any) -> Elicit:
    """Return the question that shows a form."""
    if not is_object(schema):
        schema = result_schema(schema)
    return Elicit(message, {"type": "object", "properties": {}, **schema})


def parse_reply(response: Any) -> Reply:
    """Return the reply in an MCP result. A malformed result counts as cancelled."""
    if not is_object(response):
        return Reply("cancel")
    content = response.get("content")
    return Reply(str(response.get("action", "cancel")), content if is_object(content) else {})


def build_sample(prompt: Any, max_tokens: int, system: str | None) -> Sample:
    """Return the question for the client's model."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return Sample(prompt, max_tokens, system)


def sample_text(response: Any) -> str:
    """Return the text in the answer of the client's model."""
    content = response.get("content") if is_object(response) else None
    blocks = content if is_list(content) else [content]
    return "".join([str(block.get("text", "")) for block in blocks if is_object(block)])


def require_peer(call: Call, questions: Mapping[str, Question]) -> Peer:
    """Return the client; raise ApprovalRequired (exit 101) if it cannot answer."""
    peer = call.peer
    unable = [q.method for q in questions.values() if peer is None or not peer.supports(q.method)]
    if peer is not None and not unable:
        return peer
    raise ApprovalRequired(
        f"{call.tool.name} has to ask ({', '.join(sorted(set(unable)))}), "
        "but the client cannot answer.",
        code="E2102",
        details={"asked": sorted(set(unable))},
        suggestion=Suggestion("ask_human", "Use a client that supports these requests."),
    )
