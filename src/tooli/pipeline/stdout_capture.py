"""What a command prints, where many calls share one process: to each call its own text.

The servers put a Router in the place of `sys.stdout`. What a printing command writes goes to
the call that runs it; whatever anybody else writes goes to stderr, never into the protocol.
"""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar

from tooli.core.call import MAX_PRINTED_CHARS, Failed, Ok
from tooli.pipeline.present import measure_envelope, present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

    from tooli.core.call import Call, Outcome

_active_capture: ContextVar[StdoutCapture | None] = ContextVar("tooli_printed", default=None)


class StdoutCapture:
    """The text that one call prints, as much of it as may become a result."""

    __slots__ = ("_parts", "_size", "_token")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Take some text; what is beyond the limit is dropped."""
        if self._size <= MAX_PRINTED_CHARS:
            self._parts.append(text[: MAX_PRINTED_CHARS + 1 - self._size])
            self._size += len(text)

    def text(self) -> str:
        """All of it, without the newlines at its end."""
        return "".join(self._parts).rstrip("\n")

    def raw_text(self) -> str:
        """All of it, as it was printed."""
        return "".join(self._parts)

    def __enter__(self) -> StdoutCapture:
        self._token = _active_capture.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _active_capture.reset(self._token)


class StdoutRouter(io.TextIOBase):
    """`sys.stdout` of a server."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, s: str, /) -> int:
        """To the call that prints, or to stderr."""
        if not isinstance(s, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() takes str, not {type(s).__name__}")  # click tries it with b""
        capture = _active_capture.get()
        if capture is not None:
            capture.write(s)
        elif sys.stderr is not None:
            sys.stderr.write(s)
        return len(s)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        """Nobody looks at it."""
        return False

    @property
    def buffer(self) -> _ByteStream:
        """The same way for bytes."""
        return _ByteStream(self)


class _ByteStream(io.RawIOBase):
    def __init__(self, router: StdoutRouter) -> None:
        self._router = router

    def writable(self) -> bool:
        return True

    def write(self, b: bytes, /) -> int:  # type: ignore[override]
        self._router.write(bytes(b).decode("utf-8", "replace"))
        return len(b)


def route_stdout() -> Callable[[], None]:
    """Put a Router in the place of `sys.stdout`; gives the way to take it back."""
    original = sys.stdout
    if isinstance(original, StdoutRouter):
        return lambda: None
    sys.stdout = StdoutRouter()

    def restore() -> None:
        sys.stdout = original

    return restore


class _Tee:
    """`sys.stdout`, and a copy of what is written there."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.capture = StdoutCapture()

    def write(self, text: str) -> Any:
        self.capture.write(text)
        return self.stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tee_stdout() -> Callable[[], str]:
    """Listen to what the running call prints, while it goes where it goes.

    Gives what ends that, and says what was heard; not what children and C code have printed.
    """
    capture = _active_capture.get()
    if capture is not None:
        return capture.raw_text
    tee: Any = _Tee(sys.stdout)
    sys.stdout = tee

    def stop_tee() -> str:
        if sys.stdout is tee:
            sys.stdout = tee.stream
        return tee.capture.raw_text()

    return stop_tee


def add_printed_text(outcome: Outcome, capture: str, call: Call) -> Outcome:
    """What a command printed is its result; where it failed, a detail of the failure."""
    if len(capture) > MAX_PRINTED_CHARS:
        capture = capture[:MAX_PRINTED_CHARS]
        call.warnings.append(f"the printed text was cut after {MAX_PRINTED_CHARS} characters")
    if isinstance(outcome, Failed):
        outcome.error.details = {**(outcome.error.details or {}), "printed": capture}
    elif outcome.value is None:
        return Ok(capture)
    elif sys.stderr is not None:
        print(present_text(capture, call), file=sys.stderr)
    return outcome


def attach_printed_text(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """Add what a command printed to its outcome, and cut it to the call's size limits.

    The stage that limits results has not seen printed text.
    """
    if not printed:
        return outcome
    outcome = add_printed_text(outcome, printed, call)
    has_limit = call.options.result_options is not None or call.tool.limits.max_tokens
    if not has_limit or not isinstance(outcome, Ok) or not isinstance(outcome.value, str):
        return outcome
    from tooli.records.record_flow import RecordFlow
    from tooli.records.result_options import resolve_result_options

    result_options = resolve_result_options(call.options.result_options, call.tool)
    budget = result_options.byte_budget
    if budget is None or measure_envelope(outcome, call) <= budget[0]:
        return outcome
    from tooli.pipeline.truncate import truncate_result
    from tooli.storage.overflow import write_overflow

    return truncate_result(
        call, RecordFlow(result_options, call.arguments), outcome.value, write_overflow
    )
