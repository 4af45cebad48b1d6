"""Build all output of a call. Everything that `Presented` returns is redacted.

    Outcome, Call ─▶ Presented ─┬▶ envelope_json(), envelope()
                                ├▶ error, warnings(), meta()
                                └▶ value(), result_json(), format_with(…)
    item of a stream ─▶ ItemPresenter ─▶ encode(item) or value(item)
    log, progress, question, warning ─▶ present_text, present_message, present_questions

A surface encodes and sends what it gets from here. It never holds the Outcome, so it cannot send
something that was not redacted. `text/redact.py` has the rules: secrets, control sequences,
invisible characters and, with the strict policy, credentials and the home directory. None of them
applies with the policy `off`.

Every call loads this module, so it imports nothing more for a plain answer. `_encode_small` writes
small values without the JSON encoder. `may_need_redaction` uses fast string methods to find that
nothing has to be redacted.
"""

from __future__ import annotations

from tooli.core._hot_tables import INJECTION_MARKERS
from tooli.core.call import DEFAULT_OPTIONS, PYTHON_CALLER, Call, Failed, Ok
from tooli.core.tool import MAX_MESSAGE_CHARS, cut_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias, TypeVar

    from tooli.core.call import Caller, Outcome, RedactionPolicy
    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.text.redact import Redactor

    T = TypeVar("T")
    Redaction: TypeAlias = Call | RedactionPolicy
    """What decides how output is redacted: its `policy`, `secrets` and `caller`."""

MAX_DURATION_MS = 9_999_999
"""Duration in milliseconds that is assumed when an envelope is measured before the call ends."""


class Presented:
    """What the caller of a finished call may see. Every value it returns is redacted.

    `milliseconds` returns the duration of the call so far.
    """

    __slots__ = ("_call", "_error", "_milliseconds", "_outcome")

    def __init__(self, outcome: Outcome, call: Call, milliseconds: Callable[[], int]) -> None:
        self._outcome = outcome if isinstance(outcome, Ok) else _localize(outcome, call)
        self._call = call
        self._milliseconds = milliseconds
        self._error: ToolError | None = None

    # -------------------------------------------------------------- the whole answer

    def envelope_json(self) -> bytes:
        """Return the envelope as JSON."""
        outcome, call = self._outcome, self._call
        is_ok = isinstance(outcome, Ok)
        return encode_envelope(
            None if is_ok else outcome.error.to_dict(),
            outcome.value,
            lambda: build_meta(call, self._milliseconds()),
            call.warnings,
            call,
        )

    def envelope(self) -> JsonObject:
        """Return the envelope as a dict of JSON types."""
        result: JsonObject = {"ok": self.ok}
        if not self.ok:
            result["error"] = self._error_fields()
        if self.kind != "empty":
            result["result"] = self.value()
        result["meta"] = self.meta()
        return result

    def meta(self) -> JsonObject:
        """Return the envelope's `meta`. Call it last: the other methods may add warnings to it."""
        call = self._call
        return ItemPresenter(call, [], "").value(build_meta(call, self._milliseconds()))

    def warnings(self) -> list[str]:
        """Return the warnings of the call."""
        return outgoing_warnings(self._call)

    def add_warnings(self, lines: list[str]) -> None:
        """Add warnings of the surface to those of the call."""
        self._call.warnings.extend([line for line in lines if line not in self._call.warnings])

    # -------------------------------------------------------------- a failure

    @property
    def ok(self) -> bool:
        """True if the call succeeded."""
        return isinstance(self._outcome, Ok)

    @property
    def exit_code(self) -> int:
        """The exit code for a process that ends with this answer."""
        return 0 if isinstance(self._outcome, Ok) else self._outcome.error.exit_code

    @property
    def http_status(self) -> int:
        """The HTTP status of this answer."""
        if isinstance(self._outcome, Ok):
            return 200
        return self._outcome.error.http_status

    @property
    def error(self) -> ToolError | None:
        """The error, or None if the call succeeded."""
        if isinstance(self._outcome, Ok):
            return None
        if self._error is None:
            self._error = present_error(self._outcome.error, self._call, self._call.warnings)
        return self._error

    @property
    def is_refused(self) -> bool:
        """True if the call failed before the function started."""
        return not isinstance(self._outcome, Ok) and not self._outcome.has_started

    def with_error(self, error: ToolError) -> Presented:
        """Return an answer for this call that fails with the error instead."""
        return Presented(Failed(error), self._call, self._milliseconds)

    def change(self, change: Callable[[Call], tuple[Call, Outcome]]) -> Presented:
        """Return the answer of the call and outcome that `change` returns for this call."""
        call, outcome = change(self._call)
        return Presented(outcome, call, self._milliseconds)

    def _error_fields(self) -> JsonObject:
        assert not isinstance(self._outcome, Ok)
        return ItemPresenter(self._call, None, "error").value(self._outcome.error.to_dict())

    @property
    def can_show_traceback(self) -> bool:
        """True if the error and the traceback of its cause need no redaction."""
        if isinstance(self._outcome, Ok) or self.error is not self._outcome.error:
            return False
        cause, call = self._outcome.error.__cause__, self._call
        if cause is None or call.policy == "off":
            return True
        from traceback import format_exception

        text = "".join(format_exception(type(cause), cause, cause.__traceback__))
        return present_text(text, call, shorten_paths=False) == text

    # -------------------------------------------------------------- a result

    @property
    def kind(self) -> str:
        """The kind of the result: "empty", "text", "content" (MCP content) or "data"."""
        value = self._result
        if value is None:
            return "empty"
        if isinstance(value, str):
            return "text"
        from tooli.core.result_types import is_content

        return "content" if is_content(value) else "data"

    @property
    def _result(self) -> Any:
        return self._outcome.value

    def value(self, *, secrets_only: bool = False) -> Any:
        """Return the result in JSON types; with `secrets_only`, redact secrets and nothing else."""
        return ItemPresenter(self._call, secrets_only=secrets_only).value(self._result)

    def result_json(self, wrap: bool = False) -> bytes:
        """Return the result as JSON; with `wrap`, as `{"result": …}`."""
        data = encode_redacted(self._result, self._call.warnings, self._call)
        return b"".join([b'{"result":', data, b"}"]) if wrap else data

    def format_with(self, make: Callable[[Any, Callable[[object], str]], T]) -> T:
        """Return `make(value, to_json)`, redacted, in JSON types.

        It is for protocols with their own result format. `value` is the result, and `to_json`
        returns a part of it as redacted JSON text.
        """
        return ItemPresenter(self._call).value(make(self._result, self._to_json))

    def _to_json(self, value: object) -> str:
        return encode_redacted(value, self._call.warnings, self._call).decode()


def _localize(outcome: Failed, call: Call) -> Failed:
    """Return a failure in the words of the caller's interface."""
    error = for_caller(outcome.error, call)
    return outcome if error is outcome.error else outcome.replace(error=error)


def for_caller(error: ToolError, call: Call) -> ToolError:
    """Return an error with a suggestion in the form of the caller's interface."""
    if error.suggestion is None and not error.warnings:
        return error
    from tooli.pipeline.suggestions import localize_error

    return localize_error(error, call)


class ItemPresenter:
    """Redacts and encodes values, such as the items of a stream, one after another.

    It counts the redactions of all values together, and adds the counts to `warnings`, or to the
    warnings of the call. `part` names the values in these warnings: "result", "error", or "" for
    no warnings.
    """

    __slots__ = (
        *("_encode", "_part", "_redaction", "_redactor", "_secrets_only", "_warnings", "_write"),
    )

    def __init__(
        self,
        redaction: Redaction,
        warnings: list[str] | None = None,
        part: str = "result",
        *,
        secrets_only: bool = False,
    ) -> None:
        if warnings is None:
            warnings = redaction.warnings if isinstance(redaction, Call) else []
        self._redaction = redaction
        self._warnings = warnings
        self._part = part
        self._secrets_only = secrets_only
        self._encode: Callable[[object], str] | None = None
        self._write: Callable[[object], str] | None = None
        self._redactor: Redactor | None = None

    def encode(self, item: object) -> bytes:
        """Return an item as JSON. Never fails: values that JSON cannot hold are replaced."""
        text = _encode_small(item) if self._encode is None else None
        if text is not None and not may_need_redaction(text, self._redaction, self._part):
            return text.encode()
        from tooli.text.json_encoder import encode_directly, encode_text, make_json_encoder

        if self._encode is None:
            self._encode = make_json_encoder(self._warnings)
        data = encode_directly(item, may_import=not self._redaction.caller.owns_process)
        if data is not None and _is_clean(data, self._redaction, self._part):
            return data
        text = self._encode(item) if data is None else data.decode()
        redacted = self.redact_if_needed(text)
        if redacted is not None:
            return encode_text(self._encode(redacted[0]))
        return encode_text(text) if data is None else data

    def value(self, item: object) -> Any:
        """Return an item in JSON types."""
        from tooli.text.jsonable import to_jsonable

        value = to_jsonable(item, self._warnings)
        if self._redaction.policy == "off" or value is None:
            return value
        if self._secrets_only:
            return self._redact_only_secrets(value)
        if self._write is None:
            from tooli.text.json_encoder import make_json_writer

            self._write = make_json_writer()
        redacted = self.redact_if_needed(self._write(value))
        return value if redacted is None else redacted[0]

    def _redact_only_secrets(self, value: object) -> Any:
        if self._redactor is None:
            from tooli.text.redact import Redactor

            self._redactor = Redactor(self._redaction, secrets_only=True)
        return self._redactor.redact_value(value) if self._redactor.secret_forms else value

    def redact_if_needed(self, text: str) -> tuple[Any] | None:
        """Return the redacted value of JSON text in a tuple, or None if nothing changes.

        The value is parsed from the JSON, because parts of the original may be readable only once.
        """
        redaction = self._redaction
        if not may_need_redaction(text, redaction, self._part):
            return None
        from tooli.text.redact import Redactor, is_clean_json

        has_injection = _reader_may_be_agent(redaction) and may_contain_injection(text)
        if self._redactor is None:
            self._redactor = Redactor(redaction)
        must_redact = (
            has_injection
            or redaction.policy == "strict"
            or (redaction.secrets and self._redactor.may_contain_secret(text))
        )
        if not must_redact and is_clean_json(text):
            return None
        value = self._redactor.redact_json(text, self._part, has_injection)
        if self._part:
            self._redactor.add_warnings(self._warnings, self._part)
        return (value,)


# ------------------------------------------------------------------ the envelope


def encode_envelope(
    error: Mapping[str, Any] | None,
    result: object,
    meta: Callable[[], Mapping[str, Any]],
    warnings: list[str],
    redaction: Redaction,
) -> bytes:
    """Return the envelope as JSON: keys in a fixed order, empty ones left out.

    `meta` is called last, so that it includes the warnings of the rest.
    """
    if error is not None:
        parts = [b'{"ok":false,"error":', encode_redacted(error, warnings, redaction, "error")]
    else:
        parts = [b'{"ok":true']
    if result is not None:
        parts += [b',"result":', encode_redacted(result, warnings, redaction)]
    return b"".join([*parts, b',"meta":', encode_redacted(meta(), [], redaction, ""), b"}"])


def draft_envelope(outcome: Outcome, call: Call) -> bytes:
    """Return the envelope of an outcome before the call ends, to measure it.

    It ends with a newline, as on the command line.
    """
    return Presented(outcome, call, lambda: MAX_DURATION_MS).envelope_json() + b"\n"


def build_meta(call: Call, milliseconds: float) -> JsonObject:
    """Return the envelope's `meta`, without empty fields.

    Warnings are redacted. Other text is redacted only if the call has secrets.
    """
    tool = call.tool
    meta: JsonObject = {"tool": tool.id}
    if tool.version is not None:
        meta["version"] = tool.version
    meta["duration_ms"] = milliseconds
    if call.warnings:
        meta["warnings"] = outgoing_warnings(call)
    if call.options is not DEFAULT_OPTIONS and call.options.dry_run:
        meta["dry_run"] = True
    if call.caller is not PYTHON_CALLER:
        _add_caller(meta, call.caller, call.options.detailed)
    if tool.deprecated:
        meta["deprecated"] = tool.deprecated
    if call.request is not None and call.request.is_id_shown:
        meta["request_id"] = call.request.id
    if call.meta:
        meta.update(call.meta)
    return meta if not call.secrets else ItemPresenter(call, [], "").value(meta)


_MAX_UNLIMITED_WARNINGS = 3  # as many of one kind are shown


def outgoing_warnings(call: Call) -> list[str]:
    """Return the warnings of a call for its caller: redacted, and limited in number."""
    warnings = call.warnings
    must_redact = call.policy == "strict" or call.secrets
    if must_redact or not all([line.isascii() and line.isprintable() for line in warnings]):
        warnings = [present_text(line, call) for line in warnings]
    if len(warnings) > _MAX_UNLIMITED_WARNINGS:
        from tooli.pipeline.warning_limits import limit_warnings

        warnings = limit_warnings(warnings)
    return [cut_text(line, MAX_MESSAGE_CHARS) for line in warnings]


def _add_caller(meta: JsonObject, caller: Caller, detailed: bool | None) -> None:
    """Add the caller to `meta`. Its category is added if it has no name, or with `detailed`."""
    if caller.name is not None:
        meta["caller_id"] = caller.name
        if caller.version is not None:
            meta["caller_version"] = caller.version
    if caller.session is not None:
        meta["session_id"] = caller.session
    if caller.category is not None and (detailed or caller.name is None):
        meta["execution_context"] = caller.category


# ------------------------------------------------------------------ JSON with redaction


def encode_redacted(
    value: object, warnings: list[str], redaction: Redaction, part: str = "result"
) -> bytes:
    """Return a value as redacted JSON. Never fails: values that JSON cannot hold are replaced.

    `part` names the value in warnings: "result", "error", or "" for no warnings.
    """
    text = _encode_small(value)
    if text is not None and not may_need_redaction(text, redaction, part):
        return text.encode()
    return ItemPresenter(redaction, warnings, part).encode(value)


def measure_value(
    value: object, warnings: list[str], redaction: Redaction
) -> tuple[int, Any, bool]:
    """Return the size of a value's redacted JSON, the value, and whether redaction changes nothing.

    The value is a copy if a part of it can be read only once.
    """
    from tooli.text.json_encoder import encode_text, make_json_encoder, to_json_and_value

    text, value = to_json_and_value(value, warnings)
    redacted = ItemPresenter(redaction, []).redact_if_needed(text)
    if redacted is not None:
        text = make_json_encoder(warnings)(redacted[0])
    return len(encode_text(text)), value, redacted is None


def _encode_small(value: Any, depth: int = 0) -> str | None:
    """Return the JSON of a small value of plain types, or None if the encoder has to write it."""
    kind = value.__class__
    if kind is str:
        plain = value.isascii() and value.isprintable() and '"' not in value
        return f'"{value}"' if plain and "\\" not in value else None
    if kind is int:
        return str(value) if -(10**15) < value < 10**15 else None
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is list and len(value) <= 12 and depth < 4:
        texts = [text for item in value if (text := _encode_small(item, depth + 1)) is not None]
        return f"[{','.join(texts)}]" if len(texts) == len(value) else None
    if kind is dict and len(value) <= 12 and depth < 4:
        parts: list[str] = []
        for key, item in value.items():
            text = _encode_small(item, depth + 1)
            if text is None or type(key) is not str or not (key.isidentifier() and key.isascii()):
                return None
            parts.append(f'"{key}":{text}')
        return "{" + ",".join(parts) + "}"
    return None


# ------------------------------------------------------------------ redaction


def may_need_redaction(text: str, redaction: Redaction, part: str = "result") -> bool:
    """False if JSON text certainly needs no redaction; True if the full check has to decide.

    Prompt injections only cause a warning, so they are not searched for if `part` is "".
    """
    policy = redaction.policy
    if policy == "off":
        return False
    if policy == "strict" or redaction.secrets:
        return True
    if text.isascii():
        if "\x7f" in text:
            return True
    elif not text.isprintable() or _has_invisible_marks(text.encode(errors="replace")):
        return True
    if "\\" in text:
        from tooli.text.json_encoder import has_escaped_controls

        if has_escaped_controls(text):
            return True
    return part != "" and _reader_may_be_agent(redaction) and may_contain_injection(text)


def _has_invisible_marks(data: bytes) -> bool:
    """True if UTF-8 text may contain Unicode tag characters or variation selectors.

    `isprintable` does not find all of them.
    """
    return b"\xf3" in data or (b"\xef" in data and b"\xef\xb8" in data)


def _reader_may_be_agent(redaction: Redaction) -> bool:
    """True if the answer may be read by a model, which could follow instructions in it."""
    caller = redaction.caller
    return caller.maybe_agent or caller.category == "ai_agent" or redaction.policy == "strict"


def may_contain_injection(text: str) -> bool:
    """True if the first MAX_SCANNED_CHARS characters may contain a prompt injection."""
    text = text[:MAX_SCANNED_CHARS].lower()
    if len(text) > MAX_SHORT_CHARS:
        from tooli.text.long_texts import contains_any, load_core

        core = load_core(may_import=False)
        if core is not None:
            return contains_any(text, INJECTION_MARKERS, core)
    return any([marker in text for marker in INJECTION_MARKERS])


def _is_clean(data: bytes, redaction: Redaction, part: str) -> bool:
    """True if JSON in ASCII certainly needs no redaction. It is checked without a copy."""
    policy = redaction.policy
    if policy == "off" or policy == "strict" or redaction.secrets:
        return policy == "off"
    from tooli.text.long_texts import is_plain_json

    has_reader = part != "" and _reader_may_be_agent(redaction)
    return is_plain_json(data, INJECTION_MARKERS if has_reader else (), MAX_SCANNED_CHARS)


MAX_SHORT_CHARS = 1 << 14  # a longer text is searched with pydantic-core, if it is loaded
MAX_SCANNED_CHARS = 1 << 17
"""Number of characters of an answer that are searched for prompt injections."""


def present_error(error: ToolError, redaction: Redaction, warnings: list[str]) -> ToolError:
    """Return the error if nothing in it needs redaction, otherwise a redacted copy."""
    if redaction.policy == "off":
        return error
    from tooli.text.jsonable import to_jsonable

    fields: JsonObject = to_jsonable(error.to_dict(), warnings)
    redacted: JsonObject = ItemPresenter(redaction, warnings, "error").value(fields)
    if redacted == fields:
        return error
    from tooli.errors import copy_error, read_suggestion

    redacted_error = copy_error(error)
    redacted_error.message, redacted_error.field = redacted["message"], redacted.get("field")
    redacted_error.details = redacted.get("details")
    redacted_error.suggestion = read_suggestion(redacted.get("suggestion"))
    redacted_error.is_translated = False
    return redacted_error


def find_cut(text: str, position: int, redaction: Redaction) -> int:
    """Return the last position up to `position` where a cut does not split a secret."""
    if not redaction.secrets:
        return position
    from tooli.text.redact import find_safe_cut

    return find_safe_cut(text, position, redaction)


# ------------------------------------------------------------------ messages


def present_text(text: str, redaction: Redaction, *, shorten_paths: bool = True) -> str:
    """Return a redacted message, such as a log line or a question, without adding a warning."""
    if redaction.policy == "off":
        return text
    is_plain = text.isascii() and text.isprintable()
    if is_plain and redaction.policy != "strict" and not redaction.secrets:
        return text
    from tooli.text.redact import Redactor

    return Redactor(redaction).redact_text(text, shorten_paths)


def present_message(message: object, redaction: Redaction) -> Any:
    """Return a message that a running tool sends, redacted, in JSON types."""
    if isinstance(message, str):
        return present_text(message, redaction)
    return ItemPresenter(redaction, []).value(message)


def present_questions(
    questions: Mapping[str, Question], redaction: Redaction
) -> Mapping[str, Question]:
    """Return the questions for a client, with their texts redacted."""
    return {name: _present_question(question, redaction) for name, question in questions.items()}


def _present_question(question: Question, redaction: Redaction) -> Question:
    fields = {name: getattr(question, name) for name in type(question).__match_args__}
    texts = {name: value for name, value in fields.items() if not isinstance(value, int)}
    return question.replace(
        **{name: present_message(value, redaction) for name, value in texts.items()}
    )
