"""Error classes, suggestions, and the tables of error codes and exit codes.

    ToolError
    ├── InputError            E1xxx  input       2   the arguments are not valid; nothing ran
    │   └── FormatError       E1065  input      65   the input data is malformed
    ├── AuthError             E2xxx  auth       30   the caller is not allowed to do this
    ├── ApprovalRequired      E2101  human     101   a human must approve first
    ├── StateError            E3xxx  state      20   the current state does not allow it
    │   ├── NotFoundError     E3010  state      10   something does not exist
    │   └── ConflictError     E3020  state      20   something changed or already exists
    ├── ToolRuntimeError      E4xxx  runtime    70   the tool failed while it ran
    │   ├── DependencyError   E4040  runtime    40   a service or program failed
    │   ├── TimeoutExceeded   E4050  runtime    50   the tool took longer than its timeout
    │   ├── PartialFailure    E4070  runtime    60   some items failed; the others are the result
    │   ├── TemporaryError    E4075  runtime    75   a retry may succeed
    │   ├── CommandExited     E4001  runtime     *   the command exited by itself
    │   └── Interrupted       E4130  runtime   130   Ctrl-C; 143 for SIGTERM
    └── InternalError         E5xxx  internal   70   a bug in the tool

The columns are the code, the category and the exit code (`*`: any).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, ClassVar, NoReturn


class DefinitionError(TypeError):
    """An app or one of its commands is defined incorrectly. The developer must correct it.

    The message ends with the file and line of the definition.
    """

    def __init__(self, message: str, location: str | None = None) -> None:
        self.message = message
        self.location = location or calling_location()
        super().__init__(f"{message} ({self.location})")

    def at(self, location: str) -> DefinitionError:
        """Return the same error with another file and line."""
        return type(self)(self.message, location)

    def to_tool_error(self) -> ToolError:
        """Return the error for a call, without the file and line, which clients must not see."""
        error = InternalError(
            f"The command cannot run because its definition is invalid: {self.message}",
            suggestion=Suggestion("abort", "Report it to the developer of the app."),
        )
        error.__cause__ = self
        return error

    def __reduce__(self) -> tuple[type[DefinitionError], tuple[str, str]]:
        return type(self), (self.message, self.location)


def calling_location() -> str:
    """Return "file:line" of the innermost frame that is not in this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] != "tooli":
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def function_location(fn: object) -> str | None:
    """Return "file:line" of a function, or None for a callable that has no source."""
    code = getattr(getattr(fn, "__wrapped__", None) or getattr(fn, "func", fn), "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


class Suggestion:
    """What a caller can do about an error.

    `arguments` are the arguments of a call that works, framework options such as `yes` included.
    The command line shows them as `argv`, and the other interfaces show an `argv` as `arguments`.
    A field with an invalid value is corrected or left out, because the error itself must reach the
    caller. `warnings` says what was wrong.
    """

    def __init__(
        self,
        action: str | None = None,
        fix: str = "",
        example: str | None = None,
        applicability: str = "maybe_incorrect",
        argv: Sequence[str] | None = None,
        arguments: Mapping[str, object] | None = None,
        **unknown: NoReturn,
    ) -> None:
        self.warnings = _keyword_warnings("Suggestion", unknown, _SUGGESTION_FIELDS)
        self.target: object = None  # the suggested call, of which an interface shows its own form
        self.query: dict[str, object] | None = None  # HTTP: the framework options of the call
        self.options: dict[str, object] | None = None  # options that have the name of a parameter
        self.command: str | None = None  # the command, if it is not the one that was called
        action, fix = plain_text(action), plain_text(fix) or ""
        if action not in SUGGESTION_ACTIONS:
            if action is not None:
                self._warn("action", action, f"one of {', '.join(SUGGESTION_ACTIONS)}")
                fix = fix or action
            action = "fix" if argv is None and arguments is None else "retry_with_modified_input"
        if applicability not in APPLICABILITY_LEVELS:
            self._warn("applicability", applicability, f"one of {', '.join(APPLICABILITY_LEVELS)}")
            applicability = "maybe_incorrect"
        if isinstance(argv, (str, bytes)):
            self._warn("argv", argv, "a list of words")
            example, argv = example or plain_text(argv), None
        if arguments is not None and not hasattr(arguments, "keys"):
            self._warn("arguments", arguments, "a dict")
            arguments = None
        self.action = action
        self.fix = fix
        self.argv = [plain_text(word) or "" for word in argv] if argv is not None else None
        self.arguments = dict(arguments) if arguments is not None else None
        if example is None and self.argv:
            example = " ".join(map(shell_quote, self.argv))
        self.example = plain_text(example)
        self.applicability = applicability

    def _warn(self, name: str, value: object, expected: str) -> None:
        self.warnings.append(f"Suggestion({name}={plain_text(value)!r:.60}): must be {expected}")

    def to_dict(self) -> dict[str, object]:
        """Return the suggestion as the envelope shows it, without empty fields."""
        fields = {
            "action": self.action,
            "fix": self.fix,
            "example": self.example,
            "argv": self.argv,
            "command": self.command,
            "arguments": self.arguments,
            "query": self.query,
            "options": self.options,
            "applicability": self.applicability,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Suggestion:
        """Return a suggestion from what `to_dict` returns."""
        values = {str(name): value for name, value in fields.items()}
        others = {name: values.pop(name, None) for name in ("query", "options", "command")}
        suggestion = cls(**values)  # pyright: ignore[reportArgumentType]
        vars(suggestion).update(others)
        return suggestion

    def replace(self, **changes: Any) -> Suggestion:
        """Return a copy with some fields changed."""
        suggestion = Suggestion.__new__(Suggestion)
        vars(suggestion).update(vars(self), **changes)
        return suggestion

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Suggestion) and self.to_dict() == other.to_dict()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Suggestion({self.to_dict()!r})"


SUGGESTION_ACTIONS = (
    *("retry_with_modified_input", "use_different_tool", "retry_later"),
    *("ask_human", "abort", "fix"),
)
APPLICABILITY_LEVELS = ("machine_applicable", "maybe_incorrect", "has_placeholders")
_SUGGESTION_FIELDS = ("action", "fix", "example", "applicability", "argv", "arguments")


_ERROR_FIELDS = ("code", "field", "suggestion", "is_retryable", "details", "exit_code")


def _keyword_warnings(name: str, unknown: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """Return a warning for each unknown keyword. An exception would hide the error itself."""
    from tooli.similar_names import did_you_mean

    return [f"{name}() has no keyword {key!r}{did_you_mean(key, known)}" for key in unknown]


def plain_text(value: object) -> str | None:
    """Return a value as text, or None for None. Never fails."""
    if value is None or type(value) is str:
        return value
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


ERROR_CODES: dict[str, tuple[str, int, int]] = {
    # code: (meaning, exit code, HTTP status). docs/errors.md is generated from this table.
    "E1000": ("invalid input", 2, 422),
    "E1001": ("unknown command", 2, 404),
    "E1002": ("a required parameter is missing", 2, 422),
    "E1003": ("a value is not valid for its parameter", 2, 422),
    "E1004": ("unknown parameter", 2, 422),
    "E1005": ("too many arguments", 2, 422),
    "E1006": ("an option has no value, or a flag has one", 2, 422),
    "E1007": ("invalid value or combination of framework options", 2, 422),
    "E1008": ("the input is not valid JSON", 2, 400),
    "E1010": ("a destructive command needs a confirmation: the option `yes`", 2, 428),
    "E1011": ("invalid configuration file or environment variable", 2, 422),
    "E1020": ("the server cannot start: invalid settings, or the address is in use", 2, 422),
    "E1030": ("a value contains forbidden characters: control characters, or `..`", 2, 422),
    "E1031": ("a path is outside the allowed folder", 2, 422),
    "E1032": ("a secret was passed on the command line", 2, 422),
    "E1033": ("the scheme, host or address of a URL is not allowed", 2, 422),
    "E1034": ("the input is too large", 65, 413),
    "E1035": ("stdin is not available or has already been read", 2, 422),
    "E1036": ("stdout is not available for output", 2, 422),
    "E1037": ("an argument, a file or the plan of a guarded call repeats a secret", 2, 422),
    "E1038": ("the command asks a question, and nobody can answer", 2, 422),
    "E1040": ("invalid filter expression or unknown field", 2, 422),
    "E1041": ("unknown field in the option `fields`", 2, 422),
    "E1042": ("the cursor is not valid for this call", 2, 422),
    "E1050": ("two different idempotency keys are given", 2, 422),
    "E1051": ("the plan token is invalid or belongs to another call", 2, 422),
    "E1065": ("the input data is malformed", 65, 422),
    "E1070": ("the script or the plan has errors; nothing ran", 2, 422),
    "E1400": ("HTTP: the request is malformed or its parts contradict each other", 2, 400),
    "E1404": ("HTTP: unknown path", 2, 404),
    "E1405": ("HTTP: the path does not accept this method", 2, 405),
    "E1408": ("HTTP: the request body arrived too slowly", 2, 408),
    "E1413": ("HTTP: the request body is too large", 2, 413),
    "E1415": ("HTTP: the content type of the request body is not JSON", 2, 415),
    "E1421": ("HTTP: the request is for another host", 2, 421),
    "E2000": ("not allowed", 30, 403),
    "E2001": ("the caller lacks a required scope", 30, 403),
    "E2002": ("strict policy: the command does not declare who may run it", 30, 403),
    "E2003": ("the command used a capability that it does not declare", 30, 403),
    "E2004": ("the caller's token is not valid", 30, 401),
    "E2005": ("the configuration does not allow access to the path", 30, 403),
    "E2006": ("isolation is required but not available on this system", 30, 403),
    "E2007": ("the command may not be called in this way: directly, or by a script", 30, 403),
    "E2008": ("the app does not allow Python expressions: `allow_python_eval`", 30, 403),
    "E2030": ("the operating system denied permission", 30, 403),
    "E2101": ("a human must approve the call", 101, 428),
    "E2102": ("the tool asks a question, and no one can answer it", 101, 428),
    "E2103": ("a human rejected the call", 101, 403),
    "E2104": ("approvals cannot be stored or verified on this system", 30, 503),
    "E2401": ("HTTP: a valid token is required", 30, 401),
    "E2403": ("HTTP: web pages of this origin may not call the server", 30, 403),
    "E3000": ("the current state does not allow the call", 20, 409),
    "E3010": ("not found", 10, 404),
    "E3020": ("conflict", 20, 409),
    "E3041": ("the command was removed, or its last day is over", 10, 410),
    "E3050": ("the idempotency key was used with different arguments", 20, 422),
    "E3051": ("a call with this idempotency key is still running", 75, 409),
    "E3052": ("a call with this idempotency key was interrupted; its effect is unknown", 101, 409),
    "E3053": ("the plan is out of date: something it depends on has changed", 20, 409),
    "E4000": ("the tool failed", 70, 500),
    "E4001": ("the command exited with its own exit code", 1, 500),
    "E4029": ("too many calls; retry later", 75, 429),
    "E4031": ("the same call failed too often; change it before you retry", 75, 429),
    "E4040": ("an external dependency failed", 40, 502),
    "E4050": ("timeout", 50, 504),
    "E4051": ("the command's process died or sent an invalid message", 70, 500),
    "E4060": ("stored data cannot be read or written", 75, 503),
    "E4061": ("the audit log cannot be written", 75, 503),
    "E4070": ("some items failed; the result has those that succeeded", 60, 207),
    "E4075": ("temporary failure", 75, 503),
    "E4080": ("the script failed", 70, 500),
    "E4081": ("the script exceeded a limit: time, memory or calls", 70, 500),
    "E4130": ("interrupted", 130, 503),
    "E4143": ("terminated", 143, 503),
    "E5000": ("internal error", 70, 500),
}

EXIT_CODES: dict[int, str] = {
    0: "success",
    2: "invalid usage or input; nothing ran",
    10: "not found",
    20: "conflict, or the state has changed",
    30: "permission denied",
    40: "external dependency failed",
    50: "timeout",
    60: "partial success: some items failed",
    65: "data format error",
    70: "internal error",
    75: "temporary failure, retry",
    101: "a human must approve or answer",
    130: "interrupted (SIGINT)",
    143: "terminated (SIGTERM)",
}


class ToolError(Exception):
    """A failure of a call, with a code, a category and a suggestion that an agent can act on.

    raise NotFoundError(
        "There is no note 7.",
        field="id",
        suggestion=Suggestion("retry_with_modified_input", "List the notes first."),
    )
    A subclass can set `code`, `category`, `is_retryable`, `exit_code` and `http_status`.
    """

    code: str = "E5000"
    category: str = "internal"  # or a member of ErrorCategory
    is_retryable: bool = False
    exit_code: int = 70
    http_status: int = 500
    # These also have a value in a subclass whose `__init__` does not call this one.
    message: str = ""
    field: str | None = None
    suggestion: Suggestion | None = None
    details: dict[str, object] | None = None
    warnings: Sequence[str] = ()  # what is wrong with the error itself, for the developer
    is_translated: bool = False  # made from another exception, or read from storage
    approval_text: str | None = None  # shown to the human who may approve the call
    approval_parts: dict[str, str] | None = None  # digests of what the human is shown
    _has_own_statuses: ClassVar[bool] = False  # a subclass of an app sets exit_code or http_status

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Use the exit code and HTTP status of the table, if a subclass sets only the code."""
        super().__init_subclass__(**kwargs)
        fields = vars(cls)
        if cls.__module__ != __name__ and ("exit_code" in fields or "http_status" in fields):
            cls._has_own_statuses = True
        if "category" in fields:
            cls.category = str(getattr(cls.category, "value", cls.category)).lower()
        row = ERROR_CODES.get(fields.get("code", ""))
        if row is not None:
            if "exit_code" not in fields:
                cls.exit_code = row[1]
            if "http_status" not in fields:
                cls.http_status = row[2]

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        suggestion: Suggestion | Mapping[str, object] | str | None = None,
        is_retryable: bool | None = None,
        details: Mapping[str, object] | None = None,
        exit_code: int | None = None,
        **unknown: NoReturn,
    ) -> None:
        super().__init__(message)
        if unknown:
            self.warnings = _keyword_warnings(type(self).__name__, unknown, _ERROR_FIELDS)
        self.message = message
        self.field = field
        self.suggestion = read_suggestion(suggestion)
        if suggestion is not None and self.suggestion is None:
            expected = "must be a Suggestion, a text or a dict"
            self.warnings = [*self.warnings, f"{type(self).__name__}(suggestion=…): {expected}"]
        if details:  # `repair_error` replaces what is not a dict
            self.details = dict(details) if hasattr(details, "keys") else details  # pyright: ignore
        if is_retryable is not None:
            self.is_retryable = is_retryable
        if code:
            self.code = code
        if exit_code is not None:
            self.exit_code = exit_code
        elif code in ERROR_CODES and not self._has_own_statuses:
            _, self.exit_code, self.http_status = ERROR_CODES[code]

    def to_dict(self) -> dict[str, object]:
        """Return the error as the envelope shows it: in a fixed order, without empty fields."""
        fields: dict[str, object] = {
            "code": self.code,
            "category": self.category,
            "message": self.message,
        }
        if self.field is not None:
            fields["field"] = self.field
        if self.suggestion is not None:
            fields["suggestion"] = self.suggestion.to_dict()
        fields["is_retryable"] = self.is_retryable
        if self.details:
            fields["details"] = self.details
        return fields


def read_suggestion(value: Any) -> Suggestion | None:
    """Return a suggestion that may be given as a text or a dict; None for anything else."""
    if value is None or isinstance(value, Suggestion):
        return value
    if isinstance(value, str):
        return Suggestion(fix=value)
    return Suggestion.from_dict(value) if isinstance(value, dict) else None  # pyright: ignore


def copy_error(error: ToolError) -> ToolError:
    """Return a copy of an error. Does not call `__init__`, which may have other parameters."""
    error_copy = type(error).__new__(type(error), *error.args)
    vars(error_copy).update(vars(error))
    error_copy.args, error_copy.__cause__ = error.args, error.__cause__
    error_copy.__suppress_context__ = error.__suppress_context__
    return error_copy.with_traceback(error.__traceback__)


CATEGORIES = ("input", "auth", "human", "state", "runtime", "internal")


class InputError(ToolError):
    """The arguments are not valid. Nothing ran."""

    category, code, exit_code, http_status, is_retryable = "input", "E1000", 2, 422, True


class FormatError(InputError):
    """The input data is malformed."""

    code, exit_code = "E1065", 65


class AuthError(ToolError):
    """The caller is not allowed to do this."""

    category, code, exit_code, http_status = "auth", "E2000", 30, 403


class ApprovalRequired(ToolError):  # noqa: N818  a public name
    """A human must approve the call first."""

    category, code, exit_code, http_status = "human", "E2101", 101, 428


class StateError(ToolError):
    """The current state does not allow the call."""

    category, code, exit_code, http_status = "state", "E3000", 20, 409


class NotFoundError(StateError):
    """Something that the call names does not exist."""

    code, exit_code, http_status = "E3010", 10, 404


class ConflictError(StateError):
    """Something that the call names has changed or exists already."""

    code = "E3020"


class ToolRuntimeError(ToolError):
    """The tool failed while it ran."""

    category, code = "runtime", "E4000"


class CommandExited(ToolRuntimeError):  # noqa: N818  a public name
    """The command exited with its own exit code."""

    code, exit_code = "E4001", 1


class DependencyError(ToolRuntimeError):
    """Something that the tool depends on failed."""

    code, exit_code, http_status = "E4040", 40, 502


class TimeoutExceeded(ToolRuntimeError):  # noqa: N818  a public name
    """The tool took longer than its timeout."""

    code, exit_code, http_status, is_retryable = "E4050", 50, 504, True


class PartialFailure(ToolRuntimeError):  # noqa: N818  a public name
    """Some items failed. The result of the call has those that succeeded."""

    code, exit_code, http_status = "E4070", 60, 207


class TemporaryError(ToolRuntimeError):
    """The failure is temporary. A retry may succeed."""

    code, exit_code, http_status, is_retryable = "E4075", 75, 503, True


class Interrupted(ToolRuntimeError):  # noqa: N818  a public name
    """The caller interrupted the call."""

    code, exit_code, http_status, is_retryable = "E4130", 130, 503, True


class InternalError(ToolError):
    """A bug in the tool, in a stage or in tooli."""


def check_keywords(callable_name: str, keywords: Iterable[str], known: Iterable[str]) -> None:
    """Raise DefinitionError for an unknown keyword, and suggest the closest one."""
    for name in keywords:
        if name not in known:
            from tooli.similar_names import did_you_mean

            hint = did_you_mean(name, known)
            raise DefinitionError(f"{callable_name}() has no keyword {name!r}{hint}")


_SHELL_SAFE_MARKS = dict.fromkeys(map(ord, "@%+=:,./-_"), "a")


def shell_quote(text: str) -> str:
    """Quote a text as one word of a POSIX shell."""
    if text and text.isascii() and text.translate(_SHELL_SAFE_MARKS).isalnum():
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def restore_error(
    error_class: type[ToolError], fields: Mapping[str, Any], exit_code: int | None = None
) -> ToolError:
    """Return an error of a class with the fields that `to_dict` returned.

    `fields` may also have `http_status` and `warnings`.
    The `__init__` of the class is not called, because an app's own class may have other parameters.
    """
    error = error_class.__new__(error_class)
    ToolError.__init__(
        error,
        fields["message"],
        code=fields["code"],
        field=fields.get("field"),
        suggestion=fields.get("suggestion"),
        is_retryable=fields["is_retryable"],
        details=fields.get("details"),
        exit_code=exit_code,
    )
    error.category = fields["category"]
    error.http_status = fields.get("http_status") or error.http_status
    error.warnings = fields.get("warnings", ())
    return error


def error_class_for(code: str, category: str) -> type[ToolError]:
    """Return the class of an error with this code and category."""
    classes = [ToolError]
    for error_class in classes:
        classes.extend(error_class.__subclasses__())
    for error_class in classes:
        if error_class.code == code and error_class is not ToolError:
            return error_class
    for error_class in classes[1:]:
        if error_class.category == category:
            return error_class
    return InternalError
