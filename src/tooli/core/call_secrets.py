"""The secrets of the current call, which are removed from all of its output.

A secret is a `SecretInput`, or a value that pydantic hides: `SecretStr`, `SecretBytes`, `Secret`.
"""

from __future__ import annotations

from contextvars import ContextVar

from tooli.text.jsonable import iter_children

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.text.secret_forms import SecretData

call_secrets: ContextVar[list[Any] | None] = ContextVar("tooli_secrets", default=None)
"""The secrets of the current call; None if its tool takes no secrets."""


class ReceivedSecret:
    """A secret that is not a SecretInput: of pydantic, or in an argument that is not valid."""

    __slots__ = ("_value", "forms")
    is_loaded = True
    tooli_cli_text = None

    def __init__(self, value: object) -> None:
        self._value = value
        self.forms: SecretData | None = None  # a cache of text/secret_forms.py

    def reveal(self) -> Any:
        """Return the secret itself."""
        return self._value

    def load(self) -> None:
        """Do nothing: the value is known."""

    def __repr__(self) -> str:
        return "ReceivedSecret('***')"


def record_secret(secret: Any) -> Any:
    """Add a secret to those of the current call, and return it."""
    secrets = call_secrets.get()
    if secrets is not None:
        secrets.append(secret)
    return secret


def is_secret_type(kind: object) -> bool:
    """True for SecretInput and for the classes of pydantic that hide a value."""
    return isinstance(kind, type) and (
        hasattr(kind, "get_secret_value") or (hasattr(kind, "reveal") and hasattr(kind, "forms"))
    )


def record_secrets(value: object) -> None:
    """Add all secrets in a value to those of the current call."""
    secrets = call_secrets.get()
    if secrets is not None:
        known = {id(secret) for secret in secrets}
        secrets += [secret for secret in iter_secrets(value, set()) if id(secret) not in known]


def iter_secrets(value: Any, visited_ids: set[int]) -> Iterator[Any]:
    """Yield the secrets in a value: each SecretInput, and a ReceivedSecret for each other one."""
    if value.__class__ in _ATOMIC_TYPES or id(value) in visited_ids:
        return
    visited_ids.add(id(value))
    if hasattr(value.__class__, "get_secret_value"):
        yield ReceivedSecret(value.get_secret_value())
    elif is_secret_type(value.__class__):
        yield value
    else:
        for child in iter_children(value):
            yield from iter_secrets(child, visited_ids)


_ATOMIC_TYPES = frozenset([str, int, float, bool, bytes, type(None)])
