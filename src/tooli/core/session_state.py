"""SessionState: the values that the functions of an app keep for one session, as `ctx.state`."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from tooli.errors import InternalError, StateError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SESSION_KEYS = 1000
"""Maximum number of values of one session."""


class SessionState(MutableMapping[str, Any]):
    """The values of one session by name. The calls of a session may run at the same time.

    Each method is thread-safe, and `setdefault` and `pop` are atomic.

    Attributes:
        is_kept: True if later calls of the session see the values; False if the call has no
            session, so that they exist for this call only.
    """

    __slots__ = ("_data", "_is_copy", "is_kept")

    def __init__(
        self, data: MutableMapping[str, Any], *, is_kept: bool, is_copy: bool = False
    ) -> None:
        self._data = data
        self._is_copy = is_copy  # True: this process ends with the call, and changes would be lost
        self.is_kept = is_kept

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._check_change(key)
        self._data[key] = value

    def __delitem__(self, key: str) -> None:
        self._check_change()
        del self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._data))  # another call may change the state meanwhile

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __repr__(self) -> str:
        return f"<SessionState: {len(self._data)} values>"  # they may be secret

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        return self._data.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value; set it to the default first if there is none."""
        if key in self._data:
            return self._data[key]
        self._check_change(key)
        return self._data.setdefault(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a value and return it, or return the default."""
        self._check_change()
        return self._data.pop(key, *default)

    def clear(self) -> None:
        """Remove all values."""
        self._check_change()
        self._data.clear()

    def _check_change(self, new_key: str | None = None) -> None:
        """Raise an error if the state cannot be changed, or cannot have one more value."""
        if self._is_copy and self.is_kept:
            raise InternalError(
                "The change of ctx.state would be lost: the command has a timeout or is isolated,"
                " so it runs in a process of its own.",
                suggestion=Suggestion(
                    "fix", "Make the command async, or set ctx.state in a command without them."
                ),
            )
        if new_key is None:
            return
        if not isinstance(new_key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(new_key).__name__
            raise InternalError(f"A key of ctx.state must be a str, not {kind}.")
        if len(self._data) >= MAX_SESSION_KEYS and new_key not in self._data:
            raise StateError(
                f"The session has {MAX_SESSION_KEYS} values in ctx.state, which is the limit.",
                suggestion=Suggestion("fix", "Open a new session."),
            )
