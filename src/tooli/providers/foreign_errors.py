"""Errors that another tooli app has reported, as errors of this app."""

from __future__ import annotations

from tooli.errors import CATEGORIES, ERROR_CODES, error_class_for, restore_error
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

MAX_ERROR_CHARS = 4_000
"""Maximum length of the message of an error of another app."""


_ABOUT_THE_TOKEN = frozenset(("E2001", "E2002", "E2004", "E2401", "E2403"))
"""Codes that are about the token of the caller. A server answers them with a challenge.

Another app means the token of the provider. Its answer must not make the clients of this app
request another token, or more scopes.
"""


def restore_foreign_error(fields: Mapping[str, Any]) -> ToolError | None:
    """Return the error that another tooli app has reported; None if the fields are not valid.

    Its texts are untrusted: they are cleaned. Suggested command lines are left out, because they
    are those of the other app. An error about the token of the provider becomes E2000.
    """
    code, category = fields.get("code"), fields.get("category")
    message = fields.get("message")
    if not (isinstance(code, str) and isinstance(message, str) and category in CATEGORIES):
        return None
    if len(code) > 60 or not code.isascii() or not code.replace("_", "").isalnum():
        return None
    field, (code, details) = fields.get("field"), own_code(code, fields.get("details"))
    suggestion = fields.get("suggestion")
    kept = _clean_suggestion(suggestion) if is_object(suggestion) else None
    restored: JsonObject = {
        "code": code,
        "category": category,
        "message": clean_text(message, MAX_ERROR_CHARS),
        "field": clean_text(field, 200) if isinstance(field, str) else None,
        "suggestion": kept,
        "is_retryable": fields.get("is_retryable") is True,
        "details": details,
    }
    error = restore_error(error_class_for(code, str(category)), restored)
    if code in ERROR_CODES:
        _, error.exit_code, error.http_status = ERROR_CODES[code]
    return error


def own_code(code: str, details: object) -> tuple[str, JsonObject | None]:
    """Return the code and the details of a foreign error, without what clients would act on."""
    kept = dict(details) if is_object(details) else {}
    if code in _ABOUT_THE_TOKEN:
        kept = {**kept, "remote_code": code}
        kept.pop("missing_scopes", None)
        code = "E2000"
    approval = kept.get("approval")
    if is_object(approval):
        kept["approval"] = {name: value for name, value in approval.items() if name != "command"}
    return code, kept or None


def _clean_suggestion(suggestion: JsonObject) -> JsonObject | None:
    """Return the parts of a suggestion that are true for callers of this app, too."""
    texts = {
        name: clean_text(suggestion[name], 2_000)
        for name in ("action", "fix", "applicability")
        if isinstance(suggestion.get(name), str)
    }
    return texts or None
