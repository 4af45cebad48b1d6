"""The envelope: one JSON document for every outcome, and how any value becomes JSON.

`_json` is the C half of the standard library's `json`; the Python half costs more
to import than the rest of a call together.
"""

from __future__ import annotations

from tooli.core._hot_tables import INJECTION_MARKERS
from tooli.core.call import DEFAULT_OPTIONS, PYTHON_CALLER, Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.call import Call, Caller, Outcome, RedactionPolicy


def encode_envelope(outcome: Outcome, call: Call, milliseconds: Callable[[], int]) -> bytes:
    """An outcome as every door answers it, in bytes."""
    error = None if isinstance(outcome, Ok) else outcome.error.to_dict()
    value = outcome.value if isinstance(outcome, Ok) else None
    return write_envelope(
        error, value, lambda: build_meta(call, milliseconds()), call.warnings, call
    )


MAX_DURATION_MS = 9_999_999
"""Milliseconds that a call is taken to have lasted, where its answer is measured before it ends."""


def measure_envelope(outcome: Outcome, call: Call) -> int:
    """Bytes of the document that an outcome becomes, with the end of its line."""
    return len(encode_envelope(outcome, call, lambda: MAX_DURATION_MS)) + 1


def write_envelope(
    error: Mapping[str, Any] | None,
    result: Any,
    meta: Callable[[], Mapping[str, Any]],
    warnings: list[str],
    redaction: Call | RedactionPolicy,
) -> bytes:
    """The envelope: fixed order, nothing empty; `meta` last, so that it can say what happened."""
    if error is not None:
        head = b'{"ok":false,"error":' + encode(error, warnings, redaction, "error")
    elif result is None:
        head = b'{"ok":true'
    else:
        head = b'{"ok":true,"result":' + encode(result, warnings, redaction)
    return head + b',"meta":' + encode(meta(), [], redaction, "") + b"}"


def build_meta(call: Call, milliseconds: int) -> dict[str, Any]:
    """What is said about a call beside its result; only what there is to say."""
    tool = call.tool
    meta: dict[str, Any] = {"tool": tool.id}
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
    if call.meta:
        meta.update(call.meta)
    return meta if not call.secrets else _redact_meta(meta, call)


def _redact_meta(meta: dict[str, Any], call: Call) -> dict[str, Any]:
    """What is said about a call, where some of its arguments are nobody else's."""
    from tooli.text.jsonable import to_jsonable
    from tooli.text.redact import redact_value

    return redact_value(to_jsonable(meta, []), call, [], "")


MAX_WARNINGS_PER_KIND = 3
"""Warnings of one kind in one answer. A summary line counts the others."""
MAX_WARNINGS = 20
"""Warnings in one answer, of all kinds together; summary lines are added to these."""


def outgoing_warnings(call: Call) -> list[str]:
    """Return the warnings of a call for its caller: redacted, and limited in number."""
    warnings = call.warnings
    must_redact = call.policy == "strict" or call.secrets
    if must_redact or not all([line.isascii() and line.isprintable() for line in warnings]):
        from tooli.text.redact import redact_line

        warnings = [redact_line(line, call) for line in warnings]
    return warnings if len(warnings) <= MAX_WARNINGS_PER_KIND else limit_warnings(warnings)


def limit_warnings(warnings: list[str]) -> list[str]:
    """Return the first warnings of each kind, and a line that counts the others.

    Warnings that begin with the same two words are of one kind: a command that touches
    a hundred undeclared files has one problem, not a hundred.
    """
    shown: list[str] = []
    counts: dict[str, int] = {}
    omitted = 0
    for line in warnings:
        kind = " ".join(line.split(None, 2)[:2])[:60]
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= MAX_WARNINGS_PER_KIND:
            if len(shown) < MAX_WARNINGS:
                shown.append(line)
            else:
                omitted += 1
    for kind, count in counts.items():
        if count > MAX_WARNINGS_PER_KIND and len(shown) < 2 * MAX_WARNINGS:
            shown.append(f"{count - MAX_WARNINGS_PER_KIND} more warnings that begin with {kind!r}")
    return [*shown, f"{omitted} more warnings of other kinds"] if omitted else shown


def _add_caller(meta: dict[str, Any], caller: Caller, detailed: bool | None) -> None:
    """Who called; of what kind they are only where no name says so, or all is wanted."""
    if caller.name is not None:
        meta["caller_id"] = caller.name
        if caller.version is not None:
            meta["caller_version"] = caller.version
    if caller.session is not None:
        meta["session_id"] = caller.session
    if caller.category is not None and (detailed or caller.name is None):
        meta["execution_context"] = caller.category


# ------------------------------------------------------------------ JSON


def encode(
    value: Any,
    warnings: list[str],
    redaction: Call | RedactionPolicy | None = None,
    part: str = "result",
) -> bytes:
    """Compact JSON in UTF-8. Never fails: what JSON cannot hold is replaced, with a warning."""
    text = _encode_small(value)
    if text is not None and (redaction is None or not may_need_redaction(text, redaction, part)):
        return text.encode()
    return make_json_encoder(warnings, redaction, part)(value)


def make_json_encoder(
    warnings: list[str], redaction: Call | RedactionPolicy | None = None, part: str = "result"
) -> Callable[[Any], bytes]:
    """An encoder for many values, one after another; what it replaces it notes in `warnings`.

    What is meant for somebody outside is written on the terms of a call: without what must not
    get there. `what` it is part of is named where something was taken out.
    """

    def replace(thing: Any) -> Any:
        from tooli.text.jsonable import convert_one_step

        if hasattr(thing.__class__, "__next__"):  # can be read but once: the thorough way does it
            raise TypeError
        return convert_one_step(thing, warnings)

    write: Callable[[Any], str] | None = None
    redactor: Any = None

    def encode_one(value: Any) -> bytes:
        nonlocal write, redactor
        text = _encode_small(value) if write is None else None
        if text is None:
            write = write or _make_writer(replace)
            try:
                text = write(value)
            except Exception:
                from tooli.text.jsonable import to_jsonable

                text = write(to_jsonable(value, warnings))
        if redaction is not None and may_need_redaction(text, redaction, part):
            from tooli.text.redact import redact_json

            redacted = redact_json(text, redaction, redactor, part)
            if redacted is not None:
                redacted_value, redactor = redacted
                text = (write or _make_writer(replace))(redacted_value)
                if part:
                    redactor.add_warnings(warnings, part)
        # Half a surrogate pair, from a file name that is not UTF-8, stands as JSON escapes it.
        return text.encode(errors="backslashreplace")

    return encode_one


# ------------------------------------------------------------------ what may go out


def may_need_redaction(text: str, redaction: Call | RedactionPolicy, part: str = "result") -> bool:
    """Whether there may be something in a JSON that must not go out: a no is a no.

    All of it at the speed of C, and nothing is imported for it. Phrases are only ever pointed
    out, so nobody looks for any where it is not said `what` they stand in.
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
    if "\\" in text and has_escaped_controls(text):
        return True
    return part != "" and reader_may_be_agent(redaction) and may_contain_injection(text)


def _has_invisible_marks(data: bytes) -> bool:
    """Whether there are tags or variation selectors: Unicode has them for printable."""
    return b"\xf3" in data or (b"\xef" in data and b"\xef\xb8" in data)


def has_escaped_controls(text: str) -> bool:
    """Whether control characters are written out in a JSON, beside tabs and line breaks."""
    at = text.find("\\")
    for _ in range(_MAX_SCANNED_ESCAPES):
        if at < 0:
            return False
        if text[at + 1] in "ubf":
            return True
        at = text.find("\\", at + 2)  # a backslash of its own is two
    text = text[at:].replace("\\\\", "") if at >= 0 else ""
    return "\\u00" in text or "\\b" in text or "\\f" in text


_MAX_SCANNED_ESCAPES = 1000
"""Escapes that are looked at one by one; where there are more, what is left is searched."""


def reader_may_be_agent(redaction: Call | RedactionPolicy) -> bool:
    """Whether somebody reads the answer who may take a text in it for an order."""
    caller = redaction.caller
    return caller.maybe_agent or caller.category == "ai_agent" or redaction.policy == "strict"


def may_contain_injection(text: str) -> bool:
    """Whether a text may hold a phrase that speaks to its reader."""
    text = text[:MAX_SCANNED_CHARS].lower()
    return any([marker in text for marker in INJECTION_MARKERS])


MAX_SCANNED_CHARS = 1 << 18
"""Characters of an answer that are looked through for phrases that speak to its reader."""


def measure_value(
    value: Any, warnings: list[str], redaction: Call | RedactionPolicy | None = None
) -> tuple[int, Any, bool]:
    """Bytes of a value's JSON, the value, and whether all of it may go out.

    Where a part of the value can be read but once, it is a copy.
    """
    from tooli.text.jsonable import convert_one_step, to_jsonable

    def replace(thing: Any) -> Any:
        if hasattr(thing.__class__, "__next__"):
            raise TypeError
        return convert_one_step(thing, warnings)

    write = _make_writer(replace)
    try:
        text = write(value)
    except Exception:
        value = to_jsonable(value, warnings)
        text = write(value)
    if redaction is not None and may_need_redaction(text, redaction):
        from tooli.text.redact import redact_json

        redacted = redact_json(text, redaction, None, "result")
        if redacted is not None:
            return len(write(redacted[0]).encode(errors="backslashreplace")), value, False
    return len(text.encode(errors="backslashreplace")), value, True


def _encode_small(value: Any, depth: int = 0) -> str | None:
    """A small value of the plainest kind: it does not need the encoder, which is a library."""
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


def make_json_writer() -> Callable[[Any], str]:
    """What writes a value of JSON's own types."""
    return _make_writer(_raise_type_error)


def _raise_type_error(thing: Any) -> Any:
    raise TypeError(thing.__class__.__name__)


def _make_writer(replace: Callable[[Any], Any]) -> Callable[[Any], str]:
    try:
        from _json import encode_basestring, make_encoder
    except ImportError:  # an interpreter without the C half
        from json import JSONEncoder

        return JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), default=replace, allow_nan=False
        ).encode

    json_encoder: Any = None

    def write(value: Any) -> str:
        nonlocal json_encoder
        if type(value) is str:
            return encode_basestring(value)
        if json_encoder is None:
            json_encoder = make_encoder(
                {}, replace, encode_basestring, None, ":", ",", False, False, False
            )
        try:
            return "".join(json_encoder(value, 0))
        except BaseException:
            json_encoder = None  # what it was inside of is still marked as seen
            raise

    return write
