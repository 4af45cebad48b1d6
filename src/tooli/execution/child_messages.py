"""Hearing: what a function says on its way, in another process, and what is done about it.

    warning, meta      for the envelope
    text               for what stands in the place of stdout or stderr
    progress, log, ask, let go     for the client

Where that process is not trusted, each of them is looked at first: its kind, its shape, how much
it is. What cannot be honest ends the call.
"""

from __future__ import annotations

import sys

from tooli.execution.ipc import MAX_FRAME_BYTES, dumps, invalid_message_error, unpack

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call, Runner
    from tooli.core.peer import Question

RESULT_KINDS = ("value", "stream", "item", "done", "error")
"""What is kept until somebody asks for it."""
MAX_ENTRIES = 1000
"""Warnings, and acts beyond its word, that are taken from a process that is not trusted."""
MAX_TEXT_CHARS = 10_000
"""Characters of each."""


class ChildMessages:
    """What a process says that is trusted."""

    def __init__(self, call: Call, send_answer: Callable[[bytes], None]) -> None:
        self.call = call
        self.send_answer = send_answer  # to the process, in answer to a question

    def handle(self, kind: Any, payload: Any) -> bool:
        """Do what there is to do; False for what somebody waits for."""
        if kind in RESULT_KINDS:
            return False
        _HANDLERS[kind](self, self.decode(kind, payload))
        return True

    def decode(self, kind: str, payload: Any) -> Any:
        """What was said, with the values in it unpacked."""
        if kind in ("meta", "ask"):
            return unpack(payload)
        return (payload[0], unpack(payload[1])) if kind == "log" else payload

    def warn(self, text: str) -> None:
        """A warning of the function's."""
        self.call.warnings.append(text)

    def update_meta(self, meta: dict[str, Any]) -> None:
        """Something about the call, for `meta`."""
        if self.call.meta is not None:
            self.call.meta.update(meta)

    def write(self, message: tuple[str, str]) -> None:
        """A text for an object in the place of stdout or stderr."""
        if message[0] in ("stdout", "stderr"):
            getattr(sys, message[0]).write(message[1])

    def progress(self, update: tuple[float, float | None, str | None]) -> None:
        """How far the call has come."""
        if self.call.peer is not None:
            self.call.peer.progress(*update)

    def log(self, entry: tuple[str, Any]) -> None:
        """What is going on."""
        if self.call.peer is not None:
            self.call.peer.log(*entry)

    def disconnect_client(self, _: None) -> None:
        """The client may leave and come back."""
        if self.call.peer is not None:
            self.call.peer.disconnect_client()

    def ask(self, questions: dict[str, Question]) -> None:
        """A question for the client; a Pause ends the call, and with it the process."""
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
"""What a function says on its way, and what is done about it."""


# ------------------------------------------------------------------ from behind walls


class UntrustedMessages(ChildMessages):
    """What a process says that runs what nobody trusts."""

    def __init__(self, call: Call, send_answer: Callable[[bytes], None]) -> None:
        super().__init__(call, send_answer)
        self._warning_count = 0
        self._printed_chars = 0
        self._has_enforcement = False  # what holds it is known: it is said before the function runs

    def handle(self, kind: Any, payload: Any) -> bool:
        """The same, for what is known, in shape and not too much."""
        if type(kind) is not str or not (kind in _HANDLERS or kind in RESULT_KINDS):
            raise invalid_message_error("there is no such message")
        if kind == "warning":
            self._warning_count += 1
            if self._warning_count > MAX_ENTRIES:
                return True
        if kind == "text" and self._printed_chars > MAX_FRAME_BYTES:
            return True
        return super().handle(kind, payload)

    def decode(self, kind: str, payload: Any) -> Any:
        """What was said, once it is known to be that."""
        try:
            return _VALIDATORS[kind](self, payload)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise invalid_message_error(f"a {kind} that is none") from None

    def validate_warning(self, text: Any) -> str:
        """A text, whatever it was."""
        if self._warning_count == MAX_ENTRIES:
            return f"the command has more than {MAX_ENTRIES} warnings: the rest is left out"
        return str(text)[:MAX_TEXT_CHARS]

    def validate_meta(self, packed: Any) -> dict[str, Any]:
        """What holds the function, and what it did beyond its word; nothing else is its to say."""
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
        """Where to, and what; not for ever."""
        name, text = message
        self._printed_chars += len(text)
        if self._printed_chars > MAX_FRAME_BYTES:
            self.call.warnings.append("the command printed too much: the rest is left out")
            return "nowhere", ""
        return name, str.__str__(text)

    def validate_progress(self, raw: Any) -> tuple[Any, Any, str | None]:
        """Numbers, and a text."""
        done, total, message = raw
        if not (type(done) in (int, float) and type(total) in (int, float, type(None))):
            raise TypeError
        return done, total, None if message is None else _truncate_text(message)

    def validate_log(self, entry: Any) -> tuple[str, Any]:
        """A level, and data."""
        level, packed = entry
        return _truncate_text(level), unpack(packed, is_untrusted=True)

    def validate_questions(self, packed: Any) -> dict[str, Question]:
        """Questions by their names."""
        from tooli.core.peer import Question

        questions: Any = unpack(packed, is_untrusted=True)
        for name, question in questions.items():
            if not isinstance(question, Question):
                raise TypeError
            _truncate_text(name)
        return questions

    def validate_empty(self, _: Any) -> None:
        """Nothing is said with it."""


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
    """Whether anybody looks at what the function does: nobody else can tell of that."""
    while runner is not None and not isinstance(runner, monitored_runner.MonitoredRunner):
        runner = runner.inner
    return runner is not None


def _truncate_text(text: Any) -> str:
    return str.__str__(text)[:MAX_TEXT_CHARS]


def _validate_violation(row: Any) -> list[str]:
    """Something that was done beyond a command's word: the capability, of what, the code."""
    capability, target, code = row
    if code not in ("E2003", "E2005"):
        raise TypeError
    return [_truncate_text(capability), _truncate_text(target), code]


def validate_error(packed: Any) -> tuple[str, Any, str | None]:
    """An error from there, as it would be packed by somebody honest; raises one that is."""
    try:
        return _validate_error_fields(*packed)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise invalid_message_error("an error that is none") from None


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
    from tooli.errors import APPLICABILITY_LEVELS, SUGGESTION_ACTIONS

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
