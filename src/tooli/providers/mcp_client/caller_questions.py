"""Questions of an MCP server during a call: they go to the caller of the tool.

elicitation ─┬▶ an MCP client that supports it ─▶ its user
             ├▶ a person at the terminal: one line per field
             └▶ nobody: declined, and the call fails with E2102
sampling ────┬▶ an MCP client that supports it ─▶ its model
             └▶ nobody: refused, and the call fails with E2102
"""

from __future__ import annotations

import sys

from tooli.core.peer import Elicit, Question
from tooli.errors import ApprovalRequired, Suggestion
from tooli.pipeline.present import present_text
from tooli.pipeline.terminal_prompts import ask_line, can_ask_human
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context

MAX_FIELDS = 50
_SAMPLING_FIELDS = (
    *("messages", "maxTokens", "systemPrompt", "temperature", "stopSequences"),
    *("modelPreferences", "includeContext", "metadata"),
)


class ForwardedSample(Question):
    """A prompt of a server for the model of the caller, with all its parameters."""

    request: Mapping[str, Any]

    method = "sampling/createMessage"

    def params(self) -> JsonObject:
        """Return the params of the MCP request."""
        return dict(self.request)


def build_question(method: str, params: JsonObject, source: str) -> Question:
    """Return the question of a server. Its words are cleaned, and the text names the server."""
    cleaned = _clean(params)
    if method == "sampling/createMessage":
        kept = {name: cleaned[name] for name in _SAMPLING_FIELDS if name in cleaned}
        return ForwardedSample({"messages": [], "maxTokens": 1_000, **kept})
    schema = cleaned.get("requestedSchema")
    schema = schema if is_object(schema) else {}
    message = cleaned.get("message")
    text = message if isinstance(message, str) else ""
    return Elicit(f"{source} asks: {text}", {"type": "object", "properties": {}, **schema})


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value, 100_000)
    if is_list(value):
        return [_clean(item) for item in value]
    if is_object(value):
        return {key: _clean(item) for key, item in value.items() if key != "_meta"}
    return value


def can_answer(ctx: Context, question: Question) -> bool:
    """True if the caller can be asked this question."""
    if ctx.can_ask(question):
        return True
    return isinstance(question, Elicit) and ctx._call.peer is None and can_ask_human(ctx._call)


def answer_question(ctx: Context, key: str, question: Question) -> JsonObject:
    """Ask the caller and return the MCP result. Call it only if `can_answer` is True."""
    if ctx.can_ask(question):
        answer = ctx.ask({key: question})[key]
        return dict(answer) if is_object(answer) else decline(question) or {}
    assert isinstance(question, Elicit)
    return _ask_on_terminal(ctx, question)


def decline(question: Question) -> JsonObject | None:
    """Return the answer to a question that nobody can answer; None if it has to be an error."""
    return {"action": "decline"} if isinstance(question, Elicit) else None


def unanswered_error(source: str, methods: set[str], outcome: object) -> ApprovalRequired:
    """Return the error of a call whose question nobody could answer."""
    names = ", ".join(sorted(methods))
    details: JsonObject = {"asked": sorted(methods)}
    if outcome is not None:
        details["result"] = outcome
    return ApprovalRequired(
        f"{source} has asked a question ({names}) that this caller cannot answer. It was declined.",
        code="E2102",
        details=details,
        suggestion=Suggestion(
            "ask_human",
            "Call the tool from a terminal, or with an MCP client that supports these requests.",
        ),
    )


# ------------------------------------------------------------------ a form on the terminal


def _ask_on_terminal(ctx: Context, question: Elicit) -> JsonObject:
    """Ask for one field after the other. Ctrl-D declines."""
    properties: Mapping[str, Any] = question.schema.get("properties") or {}
    required = question.schema.get("required")
    required = required if is_list(required) else []

    def show(text: str) -> None:
        print(present_text(text, ctx._call), file=sys.stderr, flush=True)

    show(question.message)
    show("Press Enter to leave a field out or to keep its default, Ctrl-D to decline.")
    content: JsonObject = {}
    try:
        for name, schema in list(properties.items())[:MAX_FIELDS]:
            field = _Field(name, schema if is_object(schema) else {}, name in required)
            prompt = present_text(field.prompt(), ctx._call)
            while True:
                try:
                    value = field.read(ask_line(prompt).strip())
                except ValueError as problem:
                    show(str(problem))
                    continue
                break
            if value is not None:
                content[name] = value
        if not properties and ask_line("Accept? [y/N] ").strip().lower() not in ("y", "yes"):
            return {"action": "decline"}
    except EOFError:
        show("Declined.")
        return {"action": "decline"}
    return {"action": "accept", "content": content}


class _Field:
    """One field of a form: a text, a number, yes or no, or a choice."""

    def __init__(self, name: str, schema: JsonObject, is_required: bool) -> None:
        self.name = name
        self.schema = schema
        self.is_required = is_required
        self.kind = schema.get("type")
        items = schema.get("items")
        self.choices = _choices(items if self.kind == "array" and is_object(items) else schema)

    def prompt(self) -> str:
        """Return the text before the input."""
        title, text = self.schema.get("title"), self.schema.get("description")
        label = title if isinstance(title, str) else self.name
        parts = [label, f" ({text})" if isinstance(text, str) else ""]
        if self.choices:
            parts.append(f" [{'/'.join(map(str, self.choices))}]")
        elif self.kind == "boolean":
            parts.append(" [y/n]")
        if "default" in self.schema:
            parts.append(f" (default: {self.schema['default']})")
        return clean_text("".join(parts).replace("\n", " "), 600) + ": "

    def read(self, text: str) -> Any:
        """Return the value of an input, or None to leave the field out."""
        if not text:
            if "default" in self.schema:
                return self.schema["default"]
            if self.is_required:
                raise ValueError(f"{self.name} is required.")
            return None
        if self.kind == "array":
            return [self._read_one(part.strip()) for part in text.split(",")]
        return self._read_one(text)

    def _read_one(self, text: str) -> Any:
        if self.choices:
            for choice in self.choices:
                if str(choice) == text:
                    return choice
            raise ValueError(f"{self.name} must be one of: {', '.join(map(str, self.choices))}")
        if self.kind == "boolean":
            if text.lower() in ("y", "yes", "true"):
                return True
            if text.lower() in ("n", "no", "false"):
                return False
            raise ValueError(f"{self.name} must be y or n.")
        if self.kind in ("integer", "number"):
            return self._read_number(text)
        return text

    def _read_number(self, text: str) -> float:
        try:
            number = int(text) if self.kind == "integer" else float(text)
        except ValueError:
            raise ValueError(f"{self.name} must be a number.") from None
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        if (isinstance(low, (int, float)) and number < low) or (
            isinstance(high, (int, float)) and number > high
        ):
            raise ValueError(f"{self.name} must be between {low} and {high}.")
        return number


def _choices(schema: JsonObject) -> list[Any]:
    values = schema.get("enum")
    if is_list(values):
        return [*values]
    for keyword in ("oneOf", "anyOf"):
        members = schema.get(keyword)
        if is_list(members):
            return [m["const"] for m in members if is_object(m) and "const" in m]
    return []
