"""Handle the messages that an untrusted process sends while its function runs.

    message ──▶ known kind? ──▶ valid types and size? ──▶ redacted, sanitized ──▶ client, envelope
                     no, no ──▶ E4051, which ends the call

The process may send messages of its own instead of those of its Context. Therefore this process
checks, redacts and sanitizes every message again.
"""

from __future__ import annotations

from json import JSONDecoder
from math import isfinite

from tooli.core.command_route import EXIT_KEY
from tooli.core.peer import Artifact, Question
from tooli.execution.ipc import (
    MESSAGE_HANDLERS,
    RESULT_KINDS,
    ChildMessages,
    Codec,
    invalid_message_error,
)
from tooli.execution.monitor.audit_hook import MAX_VIOLATIONS
from tooli.execution.monitor.monitored_runner import (
    MAX_RECORDED,
    RECORDED_KEY,
    VIOLATIONS_KEY,
    MonitoredRunner,
)
from tooli.execution.safe_codec import (
    INVALID_DATA_ERRORS,
    MAX_DATA_BYTES,
    MAX_FRAME_BYTES,
    MAX_TEXT_CHARS,
    cut_text,
)
from tooli.pipeline.dry_run_recorder import APPLIED_FIELDS, MAX_REPORTED_ACTIONS
from tooli.pipeline.present import find_cut, present_message, present_questions, present_text
from tooli.pipeline.reports import MAX_ARTIFACTS
from tooli.text.json_encoder import make_json_encoder

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tooli.core.call import Call, Runner
    from tooli.core.protocols import JsonObject

MAX_ENTRIES = 1000
"""Maximum number of warnings that an untrusted process may report."""
MAX_QUESTIONS = 100
"""Maximum number of questions that an untrusted process may ask at once."""
_ROW_LIMITS = {VIOLATIONS_KEY: MAX_VIOLATIONS, RECORDED_KEY: MAX_RECORDED}
_MAX_NUMBER = 2.0**53  # larger integers are not exact in JSON


class UntrustedMessages(ChildMessages):
    """Validates and handles the messages of an untrusted process."""

    def __init__(self, call: Call, codec: Codec, send_answer: Callable[[bytes], None]) -> None:
        super().__init__(call, codec, send_answer)
        self._warning_count = 0
        self._printed_chars = 0
        # The sandbox reports its level before the function runs. Later values are ignored.
        self._has_enforcement = False

    def handle(self, kind: str, payload: Any) -> bool:
        """Handle a message of a known kind. Messages beyond the limits are dropped."""
        if not (kind in MESSAGE_HANDLERS or kind in RESULT_KINDS):
            raise invalid_message_error("unknown message")
        if kind in ("value", "item") and type(payload) is not bytes:
            raise invalid_message_error(f"invalid {kind}")
        if kind in ("stream", "done") and payload is not None:
            raise invalid_message_error(f"invalid {kind}")
        if kind == "warning":
            self._warning_count += 1
            if self._warning_count > MAX_ENTRIES:
                return True
        if kind == "text" and self._printed_chars > MAX_FRAME_BYTES:
            return True
        return super().handle(kind, payload)

    def decode(self, kind: str, payload: Any) -> Any:
        """Validate the payload and return it, redacted and sanitized."""
        try:
            return _VALIDATORS[kind](self, payload)
        except INVALID_DATA_ERRORS:
            raise invalid_message_error(f"invalid {kind}") from None

    def validate_warning(self, text: object) -> str:
        """Return a warning as text, cut to the maximum length."""
        if self._warning_count == MAX_ENTRIES:
            return f"the command has more than {MAX_ENTRIES} warnings; the rest is omitted"
        return self._present(str(text))

    def validate_meta(self, packed: bytes) -> JsonObject:
        """Return the metadata that an untrusted process may set.

        This is the enforcement level, whether a callback of Typer ended the call, the actions of
        an applied plan, artifacts, and violations and recorded actions of monitored calls.
        """
        meta, accepted = self.codec.unpack(packed), dict[str, object]()
        if "enforcement" in meta and not self._has_enforcement:
            self._has_enforcement = True
            accepted["enforcement"] = self._present(meta["enforcement"])
        if self.call.tool.route is not None and meta.get(EXIT_KEY) is True:
            accepted[EXIT_KEY] = True
        if "artifacts" in meta:
            rows = list(meta["artifacts"])[:MAX_ARTIFACTS]
            accepted["artifacts"] = [self._validate_artifact(**row).to_dict() for row in rows]
        if self.call.options.apply and "applied" in meta:
            accepted["applied"] = self._validate_applied(meta["applied"])
        limits = _ROW_LIMITS if _is_monitored(self.call.runner) else {}
        for key, limit in limits.items():
            if key in meta:
                known = (self.call.meta or {}).get(key, ())
                accepted[key] = _merge_rows(known, meta[key][:limit])[:limit]
        return accepted

    def _validate_applied(self, report: JsonObject) -> JsonObject:
        """Return the report about an applied plan with its known fields; raise if it is invalid."""
        rows = [
            {name: self._present(row[name]) for name in APPLIED_FIELDS if row.get(name) is not None}
            for row in report["actions"][:MAX_REPORTED_ACTIONS]
        ]
        applied: JsonObject = {"count": int(report["count"]), "actions": rows}
        if "state" in report:
            applied["state"] = self._present(report["state"])
        return applied

    def validate_text(self, message: tuple[str, str]) -> tuple[str, str]:
        """Return the stream name and the text; two empty strings once the limit is exceeded."""
        name, text = message
        self._printed_chars += len(text)
        if self._printed_chars > MAX_FRAME_BYTES:
            self.call.warnings.append("the command printed too much; the rest is omitted")
            return "", ""  # the empty name is not a stream
        return name, _replace_surrogates(text)

    def validate_progress(
        self, update: tuple[float, float | None, str | None]
    ) -> tuple[float, float | None, str | None]:
        """Return the progress, the total and a message; raise TypeError if one is invalid."""
        done, total, message = update
        for number in (done, 0 if total is None else total):
            if not _is_json_number(number):
                raise TypeError
        return done, total, None if message is None else self._present(message)

    def validate_log(self, entry: tuple[str, bytes]) -> tuple[str, object]:
        """Return the level and the data of a log entry."""
        level, packed = entry
        if len(packed) > MAX_DATA_BYTES:
            return self._present(level), f"omitted: a log message of {len(packed)} bytes"
        return self._present(level), _to_json(present_message(self.codec.unpack(packed), self.call))

    def validate_artifact(self, fields: tuple[str, str, str | None]) -> tuple[str, str, str | None]:
        """Return the name, the URI and the type of an artifact."""
        name, uri, mime_type = fields
        artifact = self._validate_artifact(name, uri, mime_type)
        return artifact.name, artifact.uri, artifact.mime_type

    def _validate_artifact(self, name: str, uri: str, mime_type: str | None = None) -> Artifact:
        mime_type = None if mime_type is None else self._present(mime_type)
        return Artifact(self._present(name), self._present(uri), mime_type)

    def validate_questions(self, packed: bytes) -> Mapping[str, Question]:
        """Return the questions by name; raise TypeError if the client cannot be asked one."""
        questions = self.codec.unpack(packed)
        if len(packed) > MAX_DATA_BYTES or not 0 < len(questions) <= MAX_QUESTIONS:
            raise ValueError
        for name, question in questions.items():
            if not isinstance(question, Question) or self._present(name) != name:
                raise TypeError
            if self.call.peer is not None and not self.peer.supports(question.method):
                raise ValueError
            _validate_integers(question)
        presented = present_questions(questions, self.call)
        return {name: _question_to_json(question) for name, question in presented.items()}

    def _present(self, text: str) -> str:
        """Return a text, cut, redacted and sanitized; raise TypeError if it is not text."""
        text = _replace_surrogates(text)
        if len(text) > MAX_TEXT_CHARS:
            text = text[: find_cut(text, MAX_TEXT_CHARS, self.call)]
        return present_text(text, self.call)


_VALIDATORS: dict[str, Callable[[UntrustedMessages, Any], object]] = {
    "warning": UntrustedMessages.validate_warning,
    "meta": UntrustedMessages.validate_meta,
    "text": UntrustedMessages.validate_text,
    "progress": UntrustedMessages.validate_progress,
    "log": UntrustedMessages.validate_log,
    "artifact": UntrustedMessages.validate_artifact,
    "ask": UntrustedMessages.validate_questions,
    "disconnect": lambda messages, payload: None,
}


def _is_monitored(runner: Runner | None) -> bool:
    """True if the call is monitored. Only monitored calls can report violations."""
    while runner is not None and not isinstance(runner, MonitoredRunner):
        runner = runner.inner
    return runner is not None


def _merge_rows(known: Iterable[list[str]], reported: list[Any]) -> list[list[str]]:
    """Return the known rows and then the new ones. A process cannot withdraw what it reported."""
    rows = dict.fromkeys([tuple(row) for row in known])
    rows.update(dict.fromkeys([tuple(_validate_violation(*row)) for row in reported]))
    return [list(row) for row in rows]


def _validate_violation(capability: str, target: str, code: str) -> list[str]:
    """Return a violation as [capability, target, code]; raise TypeError if it is invalid."""
    if code not in ("E2003", "E2005"):
        raise TypeError
    return [cut_text(capability), cut_text(target), code]


def _replace_surrogates(text: str) -> str:
    """Return a text that can be encoded; raise TypeError if it is not text."""
    return str.__str__(text).encode("utf-8", "replace").decode()


def _is_json_number(number: object) -> bool:
    """True for a finite number that every JSON parser accepts."""
    if type(number) is int:
        return abs(number) <= _MAX_NUMBER
    return type(number) is float and isfinite(number)


def _to_json(value: object) -> Any:
    """Return a value in JSON types, without lone surrogates and numbers that JSON lacks."""
    text = _replace_surrogates(make_json_encoder([])(value))
    return JSONDecoder(parse_int=_parse_int).decode(text)


def _parse_int(digits: str) -> int | str:
    number = int(digits)
    return number if abs(number) <= _MAX_NUMBER else digits


def _question_to_json(question: Question) -> Question:
    fields = {name: getattr(question, name) for name in type(question).__match_args__}
    return question.replace(**{name: _to_json(value) for name, value in fields.items()})


def _validate_integers(question: Question) -> None:
    for name in type(question).__match_args__:
        value = getattr(question, name)
        if isinstance(value, int) and not _is_json_number(value):
            raise ValueError
