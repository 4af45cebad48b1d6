"""Public enumerations. Each member is also a string, and its name is accepted in any case."""

from __future__ import annotations

from enum import Enum


class _TextEnum(str, Enum):
    """An enumeration whose members are equal to their values: `SecurityPolicy.OFF == "off"`."""

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> _TextEnum | None:
        """Return the member for a value in another case, such as `SecurityPolicy("STRICT")`."""
        text = str(value).lower()
        return next((member for member in cls if member.value == text), None)


class ErrorCategory(_TextEnum):
    """The kind of an error, which decides what a caller can do about it."""

    INPUT = "input"
    AUTH = "auth"
    HUMAN = "human"
    STATE = "state"
    RUNTIME = "runtime"
    INTERNAL = "internal"


class SecurityPolicy(_TextEnum):
    """How strictly an app checks its callers and its output."""

    OFF = "off"
    STANDARD = "standard"
    STRICT = "strict"
