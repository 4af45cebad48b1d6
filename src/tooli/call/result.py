"""TooliResult: what `app.call` returns. It never raises; `unwrap` does."""

from __future__ import annotations

from tooli.call.model import Terms
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Generic, TypeVar

    from tooli.call.model import Call
    from tooli.errors import ToolError

    T = TypeVar("T")

    class _Of(Generic[T]):
        _terms: Call | Terms

else:

    class _Of:
        __slots__ = ("_terms",)

        def __class_getitem__(cls, item):
            return cls

    T = None


class TooliError(Record):
    """An error as a value: the same fields that the envelope carries."""

    code: str
    category: str
    message: str
    suggestion: Mapping[str, Any] | None = None
    is_retryable: bool = False
    field: str | None = None
    details: Mapping[str, Any] | None = None
    source: ToolError | None = None

    def __repr__(self) -> str:
        """All but the source: that one may hold what the message does not tell."""
        told = [name for name in type(self).__match_args__ if name != "source"]
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in told])
        return f"{type(self).__name__}({fields})"

    def to_exception(self) -> ToolError:
        """The error as an exception of the right class."""
        if self.source is not None:
            return self.source
        from tooli.errors import Suggestion, class_of

        return class_of(self.code, self.category)(
            self.message,
            code=self.code,
            field=self.field,
            suggestion=Suggestion.from_dict(self.suggestion) if self.suggestion else None,
            is_retryable=self.is_retryable,
            details=self.details,
        )

    def to_dict(self) -> dict[str, Any]:
        """The error as the envelope carries it: fixed order, no empty fields."""
        fields: dict[str, Any] = {
            "code": self.code,
            "category": self.category,
            "message": self.message,
            "field": self.field,
            "suggestion": dict(self.suggestion) if self.suggestion else None,
            "is_retryable": self.is_retryable,
            "details": dict(self.details) if self.details else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


class TooliResult(Record, _Of[T]):
    """What became of a call: `ok`, and a result or an error."""

    ok: bool
    result: T | None = None
    error: TooliError | None = None
    meta: Mapping[str, Any] = {}

    def unwrap(self) -> T:
        """The result, or the right ToolError raised."""
        if self.error is not None:
            raise self.error.to_exception()
        return self.result  # pyright: ignore[reportReturnType]

    def on_terms(self, terms: Call | Terms) -> None:
        """Say on what terms it may be written: whose secrets it must not tell."""
        object.__setattr__(self, "_terms", Terms(terms.policy, terms.secrets, terms.caller))

    def replace(self, **changes: Any) -> TooliResult[T]:
        """The same result with some fields changed, on the same terms."""
        made = super().replace(**changes)
        if hasattr(self, "_terms"):
            made.on_terms(self._terms)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The envelope, in JSON's own types."""
        from json import loads

        return loads(self.model_dump_json())

    def model_dump_json(self) -> str:
        """The envelope as JSON text."""
        from tooli.call.envelope import write

        error = self.error.to_dict() if self.error is not None else None
        warnings: list[str] = []
        text = write(
            error,
            self.result,
            lambda: _with_warnings(self.meta, warnings),
            warnings,
            getattr(self, "_terms", _USUAL),
        )
        return text.decode()


_USUAL = Terms()


def _with_warnings(meta: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The same `meta`, with more warnings in their place: behind what every call says."""
    if not warnings:
        return dict(meta)
    known = meta.get("warnings", ())
    more = [line for line in warnings if line not in known]
    merged: dict[str, Any] = {"warnings": [*known, *more]}
    said = [name for name in ("tool", "version", "duration_ms") if name in meta]
    return (
        {name: meta[name] for name in said}
        | merged
        | {name: value for name, value in meta.items() if name not in (*said, "warnings")}
    )


def error_value(
    error: ToolError, terms: Call | Terms = _USUAL, warnings: list[str] | None = None
) -> TooliError:
    """An exception of the tree as a value, as it may be told; the exception is its source."""
    from tooli.call.cleaning import clean_error

    source, error = error, clean_error(error, terms, [] if warnings is None else warnings)
    return TooliError(
        code=error.code,
        category=error.category,
        message=error.message,
        suggestion=error.suggestion.to_dict() if error.suggestion else None,
        is_retryable=error.is_retryable,
        field=error.field,
        details=error.details,
        source=source,
    )
