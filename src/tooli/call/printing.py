"""What a command prints, where many calls share one process: to each call its own text.

The servers put a Router in the place of `sys.stdout`. What a printing command writes goes to
the call that runs it; whatever anybody else writes goes to stderr, never into the protocol.
"""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar

from tooli.call.model import PRINTED_LIMIT, Failed, Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

    from tooli.call.model import Call, Outcome

_listening: ContextVar[Printed | None] = ContextVar("tooli_printed", default=None)


class Printed:
    """The text that one call prints, as much of it as may become a result."""

    __slots__ = ("_parts", "_size", "_token")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Take some text; what is beyond the limit is dropped."""
        if self._size <= PRINTED_LIMIT:
            self._parts.append(text[: PRINTED_LIMIT + 1 - self._size])
            self._size += len(text)

    def text(self) -> str:
        """All of it, without the newlines at its end."""
        return "".join(self._parts).rstrip("\n")

    def so_far(self) -> str:
        """All of it, as it was printed."""
        return "".join(self._parts)

    def __enter__(self) -> Printed:
        self._token = _listening.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _listening.reset(self._token)


class Router(io.TextIOBase):
    """`sys.stdout` of a server."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, s: str, /) -> int:
        """To the call that prints, or to stderr."""
        if not isinstance(s, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() takes str, not {type(s).__name__}")  # click tries it with b""
        printed = _listening.get()
        if printed is not None:
            printed.write(s)
        elif sys.stderr is not None:
            sys.stderr.write(s)
        return len(s)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        """Nobody looks at it."""
        return False

    @property
    def buffer(self) -> _Bytes:
        """The same way for bytes."""
        return _Bytes(self)


class _Bytes(io.RawIOBase):
    def __init__(self, router: Router) -> None:
        self._router = router

    def writable(self) -> bool:
        return True

    def write(self, b: bytes, /) -> int:  # type: ignore[override]
        self._router.write(bytes(b).decode("utf-8", "replace"))
        return len(b)


def route_stdout() -> Callable[[], None]:
    """Put a Router in the place of `sys.stdout`; gives the way to take it back."""
    before = sys.stdout
    if isinstance(before, Router):
        return lambda: None
    sys.stdout = Router()

    def restore() -> None:
        sys.stdout = before

    return restore


class _Tee:
    """`sys.stdout`, and a copy of what is written there."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.copy = Printed()

    def write(self, text: str) -> Any:
        self.copy.write(text)
        return self.stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def overhear() -> Callable[[], str]:
    """Listen to what the running call prints, while it goes where it goes.

    Gives what ends that, and says what was heard; not what children and C code have printed.
    """
    printed = _listening.get()
    if printed is not None:
        return printed.so_far
    tee: Any = _Tee(sys.stdout)
    sys.stdout = tee

    def end() -> str:
        if sys.stdout is tee:
            sys.stdout = tee.stream
        return tee.copy.so_far()

    return end


def with_printed(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """What a command printed is its result; where it failed, a detail of the failure."""
    if len(printed) > PRINTED_LIMIT:
        printed = printed[:PRINTED_LIMIT]
        call.warnings.append(f"the printed text was cut after {PRINTED_LIMIT} characters")
    if isinstance(outcome, Failed):
        outcome.error.details = {**(outcome.error.details or {}), "printed": printed}
    elif outcome.value is None:
        return Ok(printed)
    elif sys.stderr is not None:
        print(printed, file=sys.stderr)
    return outcome
