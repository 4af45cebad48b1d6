"""Encode any value as compact JSON. This module does not redact; `pipeline/present.py` does.

`_json` is the C part of the standard library's `json`. The Python part takes longer to import
than the rest of an ordinary call. Imports inside functions keep `jsonable` out of calls whose
results are JSON types already.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def encode(value: object, warnings: list[str]) -> bytes:
    """Return compact JSON in UTF-8. Never fails; values that JSON cannot represent are replaced.

    A line about each kind of replacement is added to `warnings`.
    """
    return encode_text(make_json_encoder(warnings)(value))


def encode_text(text: str) -> bytes:
    """Return JSON text as UTF-8. A lone surrogate is written as a JSON escape.

    File names that are not valid UTF-8 contain lone surrogates.
    """
    return text.encode(errors="backslashreplace")


def make_json_encoder(warnings: list[str]) -> Callable[[object], str]:
    """Return a function that writes values as JSON text, for many values in a row.

    The function never fails. Replacements are reported in `warnings`, as in `encode`.
    """
    write = _make_replacing_writer(warnings)

    def encode_one(value: object) -> str:
        return _write_or_convert(write, value, warnings)[0]

    return encode_one


def to_json_and_value(value: object, warnings: list[str]) -> tuple[str, Any]:
    """Return the JSON text of a value, and a value that can be encoded again.

    The returned value is the value itself, or a copy in JSON types if the value cannot be encoded
    directly, for example because it contains an iterator.
    """
    return _write_or_convert(_make_replacing_writer(warnings), value, warnings)


def _write_or_convert(
    write: Callable[[object], str], value: object, warnings: list[str]
) -> tuple[str, Any]:
    try:
        return write(value), value
    except Exception:
        from tooli.text.jsonable import to_jsonable

        value = to_jsonable(value, warnings)
        return write(value), value


def _make_replacing_writer(warnings: list[str]) -> Callable[[object], str]:
    def replace(value: object) -> Any:
        from tooli.text.jsonable import convert_one_step

        if hasattr(value.__class__, "__next__"):  # an iterator is read once, by `to_jsonable`
            raise TypeError
        return convert_one_step(value, warnings)

    return _make_writer(replace)


def encode_directly(value: Any, may_import: bool) -> bytes | None:
    """Return the JSON of pydantic models or of a long text; None for any other value.

    pydantic-core writes it, which is faster. It is imported only with `may_import`.
    """
    kind = value.__class__
    if kind is str:
        from tooli.text.long_texts import MIN_LONG_TEXT_CHARS, encode_long_text, load_core

        core = load_core(may_import) if len(value) >= MIN_LONG_TEXT_CHARS else None
        return None if core is None else encode_long_text(value, core)
    first: object = value[0] if kind is list and value else value
    if not hasattr(first.__class__, "__pydantic_serializer__"):
        return None
    from tooli.text.model_encoder import encode_models

    return encode_models(value)


def make_json_writer() -> Callable[[object], str]:
    """Return a function that writes JSON types as text; it raises TypeError for anything else."""
    return _make_writer(_raise_type_error)


def _raise_type_error(value: object) -> Any:
    raise TypeError(value.__class__.__name__)


def _make_writer(replace: Callable[[object], object]) -> Callable[[object], str]:
    try:
        from _json import encode_basestring, make_encoder
    except ImportError:  # an interpreter without the C part
        from json import JSONEncoder

        return JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), default=replace, allow_nan=False
        ).encode

    json_encoder: Any = None

    def write(value: object) -> str:
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
            json_encoder = None  # its circularity check still has entries of the failed call
            raise

    return write


def has_escaped_surrogates(text: str) -> bool:
    """True if a JSON text may contain the escape of a surrogate."""
    if "\\" not in text:
        return False
    from tooli.text.long_texts import MIN_LONG_TEXT_CHARS, contains_any, load_core

    core = load_core(may_import=False) if len(text) >= MIN_LONG_TEXT_CHARS else None
    return "\\ud" in text if core is None else contains_any(text, ("\\ud",), core)


def has_escaped_controls(text: str) -> bool:
    """True if a JSON text escapes control characters other than tabs and line breaks."""
    at = text.find("\\")
    for _ in range(_MAX_SCANNED_ESCAPES):
        if at < 0:
            return False
        if text[at + 1] in "ubf":
            return True
        at = text.find("\\", at + 2)  # an escaped backslash takes two characters
    if at < 0:
        return False
    from tooli.text.long_texts import CONTROL_ESCAPES, contains_any, load_core

    core = load_core(may_import=False)
    if core is not None and not contains_any(text, CONTROL_ESCAPES, core):
        return False
    text = text[at:].replace("\\\\", "")
    return any([escape in text for escape in CONTROL_ESCAPES])


_MAX_SCANNED_ESCAPES = 100
"""Number of escapes that are checked one by one; the rest of the text is searched as a whole."""
