"""TooliResult: the result of `app.call`. The call never raises; `unwrap` does."""

from __future__ import annotations

from tooli.core.call import RedactionPolicy
from tooli.core.record import Record
from tooli.pipeline.present import encode_envelope, present_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Generic, TypeVar

    from tooli.core.call import Call
    from tooli.errors import ToolError

    T = TypeVar("T")

    class _GenericBase(Generic[T]):
        _output_policy: Call | RedactionPolicy

else:

    class _GenericBase:
        __slots__ = ("_output_policy",)

        def __class_getitem__(cls, item):
            return cls

    T = None


class TooliError(Record):
    """An error as a value, with the fields that the envelope has."""

    code: str
    category: str
    message: str
    suggestion: Mapping[str, Any] | None = None
    is_retryable: bool = False
    field: str | None = None
    details: Mapping[str, Any] | None = None
    source: ToolError | None = None

    def __repr__(self) -> str:
        """Return a text without `source`, which may contain secrets."""
        names = [name for name in type(self).__match_args__ if name != "source"]
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__name__}({fields})"

    def to_exception(self) -> ToolError:
        """Return the error as an exception of its class."""
        if self.source is not None:
            return self.source
        from tooli.errors import Suggestion, error_class_for

        return error_class_for(self.code, self.category)(
            self.message,
            code=self.code,
            field=self.field,
            suggestion=Suggestion.from_dict(self.suggestion) if self.suggestion else None,
            is_retryable=self.is_retryable,
            details=self.details,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the error as in the envelope: in fixed order, without empty fields."""
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


class TooliResult(Record, _GenericBase[T]):
    """The result of a call: `ok`, and a result or an error."""

    ok: bool
    result: T | None = None
    error: TooliError | None = None
    meta: Mapping[str, Any] = {}

    def unwrap(self) -> T:
        """Return the result, or raise the ToolError."""
        if self.error is not None:
            raise self.error.to_exception()
        return self.result  # pyright: ignore[reportReturnType]

    def set_output_policy(self, source: Call | RedactionPolicy) -> None:
        """Set the policy for output made from this result."""
        policy = RedactionPolicy(source.policy, source.secrets, source.caller)
        object.__setattr__(self, "_output_policy", policy)

    def replace(self, **changes: Any) -> TooliResult[T]:
        """Return a copy with some fields changed, and the same output policy."""
        copy = super().replace(**changes)
        if hasattr(self, "_output_policy"):
            copy.set_output_policy(self._output_policy)
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope as JSON values."""
        from json import loads

        return loads(self.model_dump_json())

    def model_dump_json(self) -> str:
        """Return the envelope as JSON text."""
        error = self.error.to_dict() if self.error is not None else None
        warnings: list[str] = []
        text = encode_envelope(
            error,
            self.result,
            lambda: _merge_warnings(self.meta, warnings),
            warnings,
            getattr(self, "_output_policy", _DEFAULT_POLICY),
        )
        return text.decode()


_DEFAULT_POLICY = RedactionPolicy()


def _merge_warnings(meta: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Return `meta` with more warnings, after the fields that every call has."""
    if not warnings:
        return dict(meta)
    known = meta.get("warnings", ())
    more = [line for line in warnings if line not in known]
    merged: dict[str, Any] = {"warnings": [*known, *more]}
    leading = [name for name in ("tool", "version", "duration_ms") if name in meta]
    return (
        {name: meta[name] for name in leading}
        | merged
        | {name: value for name, value in meta.items() if name not in (*leading, "warnings")}
    )


def to_tooli_error(
    error: ToolError,
    policy: Call | RedactionPolicy = _DEFAULT_POLICY,
    warnings: list[str] | None = None,
) -> TooliError:
    """Return a ToolError as a value for output, with the exception as its source."""
    source, error = error, present_error(error, policy, [] if warnings is None else warnings)
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
