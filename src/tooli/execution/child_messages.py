"""Handle the messages that a worker process sends while its function runs.

    warning, meta                  go into the envelope
    text                           is written to sys.stdout or sys.stderr of this process
    progress, log, ask, let go     go to the client

Messages of an untrusted process are validated first: their kind, their types and their size. An
invalid message ends the call.
"""

from __future__ import annotations

import sys

from tooli.core.peer import Question
from tooli.errors import APPLICABILITY_LEVELS, SUGGESTION_ACTIONS
from tooli.execution.ipc import dumps, unpack
from tooli.execution.timeouts import MAX_FRAME_BYTES, invalid_message_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call, Runner

RESULT_KINDS = ("value", "stream", "item", "done", "error")
"""Kinds of messages with results. They are queued until the caller asks for them."""
MAX_ENTRIES = 1000
"""Maximum number of warnings, and of violations, that an untrusted process may report."""
MAX_TEXT_CHARS = 10_000
"""Maximum length of a text that an untrusted process sends, such as a warning."""


class ChildMessages:
    """Handles the messages of a trusted process."""

    def __init__(self, call: Call, send_answer: Callable[[bytes], None]) -> None:
        self.call = call
        self.send_answer = send_answer  # sends an answer of the client to the worker

    def handle(self, kind: Any, payload: Any) -> bool:
        """Handle a message and return True, or return False if it is a result.

        Results are not handled here: the process that made the call waits for them.
        """
        if kind in RESULT_KINDS:
            return False
        _HANDLERS[kind](self, self.decode(kind, payload))
        return True

    def decode(self, kind: str, payload: Any) -> Any:
        """Return the payload with its values unpacked."""
        if kind in ("meta", "ask"):
            return unpack(payload)
        return (payload[0], unpack(payload[1])) if kind == "log" else payload

    def warn(self, text: str) -> None:
        """Add a warning to the call."""
        self.call.warnings.append(text)

    def update_meta(self, meta: dict[str, Any]) -> None:
        """Add metadata to the call."""
        if self.call.meta is not None:
            self.call.meta.update(meta)

    def write(self, message: tuple[str, str]) -> None:
        """Write a text to sys.stdout or sys.stderr."""
        if message[0] in ("stdout", "stderr"):
            getattr(sys, message[0]).write(message[1])

    def progress(self, update: tuple[float, float | None, str | None]) -> None:
        """Forward progress to the client."""
        if self.call.peer is not None:
            self.call.peer.progress(*update)

    def log(self, entry: tuple[str, Any]) -> None:
        """Forward a log entry to the client."""
        if self.call.peer is not None:
            self.call.peer.log(*entry)

    def disconnect_client(self, _: None) -> None:
        """Let the client disconnect and fetch the result later."""
        if self.call.peer is not None:
            self.call.peer.disconnect_client()

    def ask(self, questions: dict[str, Question]) -> None:
        """Ask the client and send its answers, or the exception, to the worker.

        InputRequired is not an Exception: it ends the call and its process.
        """
        if self.call.peer is None:
            return
        try:
            answer: Any = self.call.peer.ask(questions)
        except Exception as exc:
            answer = exc
        data = dumps(answer)
        self.send_answer(len(data).to_bytes(8, "big") + data)


_HANDLERS: dict[str, Callable[[Any, Any], None]] = {
    "warning": ChildMessages.warn,
    "meta": ChildMessages.update_meta,
    "text": ChildMessages.write,
    "progress": ChildMessages.progress,
    "log": ChildMessages.log,
    "ask": ChildMessages.ask,
    "let go": ChildMessages.disconnect_client,
}
"""The method that handles each kind of message, except results."""


# ------------------------------------------------------------------ untrusted processes


class UntrustedMessages(ChildMessages):
    """Validates and handles the messages of an untrusted process."""

    def __init__(self, call: Call, send_answer: Callable[[bytes], None]) -> None:
        super().__init__(call, send_answer)
        self._warning_count = 0
        self._printed_chars = 0
        # The sandbox reports its level before the function runs. Later values are ignored.
        self._has_enforcement = False

    def handle(self, kind: Any, payload: Any) -> bool:
        """Handle a message of a known kind. Messages beyond the limits are dropped."""
        if type(kind) is not str or not (kind in _HANDLERS or kind in RESULT_KINDS):
            raise invalid_message_error("unknown message")
        if kind == "warning":
            self._warning_count += 1
            if self._warning_count > MAX_ENTRIES:
                return True
        if kind == "text" and self._printed_chars > MAX_FRAME_BYTES:
            return True
        return super().handle(kind, payload)

    def decode(self, kind: str, payload: Any) -> Any:
        """Validate the payload and return it."""
        try:
            return _VALIDATORS[kind](self, payload)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise invalid_message_error(f"invalid {kind}") from None

    def validate_warning(self, text: Any) -> str:
        """Return a warning as text, cut to the maximum length."""
        if self._warning_count == MAX_ENTRIES:
            return f"the command has more than {MAX_ENTRIES} warnings; the rest is omitted"
        return str(text)[:MAX_TEXT_CHARS]

    def validate_meta(self, packed: Any) -> dict[str, Any]:
        """Return the metadata that an untrusted process may set: enforcement and violations."""
        meta: Any = unpack(packed, is_untrusted=True)
        accepted: dict[str, Any] = {}
        if "enforcement" in meta and not self._has_enforcement:
            self._has_enforcement = True
            accepted["enforcement"] = _truncate_text(meta["enforcement"])
        monitored_runner: Any = sys.modules.get("tooli.execution.monitor.monitored_runner")
        if (
            monitored_runner is not None
            and monitored_runner.VIOLATIONS_KEY in meta
            and _is_monitored(self.call.runner, monitored_runner)
        ):
            accepted[monitored_runner.VIOLATIONS_KEY] = [
                _validate_violation(row)
                for row in meta[monitored_runner.VIOLATIONS_KEY][:MAX_ENTRIES]
            ]
        return accepted

    def validate_text(self, message: Any) -> tuple[str, str]:
        """Return the stream name and the text, or no text once too much was printed."""
        name, text = message
        self._printed_chars += len(text)
        if self._printed_chars > MAX_FRAME_BYTES:
            self.call.warnings.append("the command printed too much; the rest is omitted")
            return "nowhere", ""
        return name, str.__str__(text)

    def validate_progress(self, raw: Any) -> tuple[Any, Any, str | None]:
        """Return the progress, the total and a message; raise TypeError if a type is wrong."""
        done, total, message = raw
        if not (type(done) in (int, float) and type(total) in (int, float, type(None))):
            raise TypeError
        return done, total, None if message is None else _truncate_text(message)

    def validate_log(self, entry: Any) -> tuple[str, Any]:
        """Return the level and the data of a log entry."""
        level, packed = entry
        return _truncate_text(level), unpack(packed, is_untrusted=True)

    def validate_questions(self, packed: Any) -> dict[str, Question]:
        """Return the questions by name; raise TypeError if one is not a Question."""
        questions: Any = unpack(packed, is_untrusted=True)
        for name, question in questions.items():
            if not isinstance(question, Question):
                raise TypeError
            _truncate_text(name)
        return questions

    def validate_empty(self, _: Any) -> None:
        """Return nothing: the message has no payload."""


_VALIDATORS: dict[str, Callable[[Any, Any], Any]] = {
    "warning": UntrustedMessages.validate_warning,
    "meta": UntrustedMessages.validate_meta,
    "text": UntrustedMessages.validate_text,
    "progress": UntrustedMessages.validate_progress,
    "log": UntrustedMessages.validate_log,
    "ask": UntrustedMessages.validate_questions,
    "let go": UntrustedMessages.validate_empty,
}


def _is_monitored(runner: Runner | None, monitored_runner: Any) -> bool:
    """True if the call is monitored. Only monitored calls can report violations."""
    while runner is not None and not isinstance(runner, monitored_runner.MonitoredRunner):
        runner = runner.inner
    return runner is not None


def _truncate_text(text: Any) -> str:
    return str.__str__(text)[:MAX_TEXT_CHARS]


def _validate_violation(row: Any) -> list[str]:
    """Return a violation as [capability, target, code]; raise an error if it is invalid."""
    capability, target, code = row
    if code not in ("E2003", "E2005"):
        raise TypeError
    return [_truncate_text(capability), _truncate_text(target), code]


def validate_error(packed: Any) -> tuple[str, Any, str | None]:
    """Return the packed error if it is valid; otherwise raise the error E4051."""
    try:
        return _validate_error_fields(*packed)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise invalid_message_error("invalid error") from None


def _validate_error_fields(name: Any, raw: Any, trace: Any) -> tuple[str, Any, str | None]:
    if name == "exit":
        if type(raw) not in (int, str):
            raise TypeError
        return "exit", raw, None
    texts = (name, raw["code"], raw["category"], raw["message"], trace or "")
    if not all([type(text) is str for text in texts]):
        raise TypeError
    details: Any = raw.get("details")
    field: Any = raw.get("field")
    if type(details) not in (dict, type(None)) or type(field) not in (str, type(None)):
        raise TypeError
    code: Any = raw.get("exit_code")
    fields: dict[str, Any] = {
        **{key: raw[key] for key in ("code", "category", "message")},
        "field": field,
        "suggestion": _validate_suggestion(raw.get("suggestion")),
        "is_retryable": bool(raw.get("is_retryable")),
        "details": details,
        "exit_code": code if type(code) is int and 0 < code < 256 else None,
    }
    return (name if name.isidentifier() else "Exception"), fields, trace


def _validate_suggestion(raw: Any) -> dict[str, Any] | None:
    if not raw:
        return None
    argv, texts = raw.get("argv"), [raw.get(name) for name in ("fix", "example")]
    if (
        raw["action"] not in SUGGESTION_ACTIONS
        or raw.get("applicability") not in APPLICABILITY_LEVELS
    ):
        raise TypeError
    if type(texts[0]) is not str or type(texts[1]) not in (str, type(None)):
        raise TypeError
    if argv is not None and not all([type(word) is str for word in argv]):
        raise TypeError
    return {
        name: raw[name]
        for name in ("action", "fix", "example", "argv", "applicability")
        if name in raw
    }
