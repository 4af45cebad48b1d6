"""Capture the printed text of each call in a process that runs many calls.

Servers replace `sys.stdout` by a StdoutRouter. It adds the text that a command prints to the
StdoutCapture of its call. All other text goes to stderr, so that it does not disturb the protocol.
What a call writes to stderr is copied: if the command exits with a code, the text says why.
"""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar

from tooli.core.call import MAX_PRINTED_CHARS, Failed, Ok
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.errors import CommandExited
from tooli.pipeline.present import present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TextIO

    from typing_extensions import Buffer, Self

    from tooli.core.call import Call, Outcome
    from tooli.pipeline.child_output import ChildOutput

_active_capture: ContextVar[StdoutCapture | None] = ContextVar("tooli_printed", default=None)


class StdoutCapture:
    """The text that one call prints, and what it writes to stderr, each up to a limit.

    With `keeps_stdout=False`, printed text goes to stderr, and only its copy is kept.
    """

    __slots__ = ("_errors", "_outer", "_parts", "_size", "_token", "children", "keeps_stdout")

    def __init__(self, *, keeps_stdout: bool = True) -> None:
        self.keeps_stdout = keeps_stdout
        self._parts: list[str] = []
        self._size = 0
        self._errors: list[str] = []
        self.children: ChildOutput | None = None  # the pipes of child processes
        self._outer: StdoutCapture | None = None

    def write(self, text: str) -> None:
        """Add some text, after the text of child processes; drop what exceeds the limit."""
        if self.children is not None:
            self.children.read_available()
        self._append(text)

    def _append(self, text: str) -> None:
        if self._size <= MAX_PRINTED_CHARS:
            self._parts.append(text[: MAX_PRINTED_CHARS + 1 - self._size])
            self._size += len(text)

    def write_error(self, text: str) -> None:
        """Add text of stderr; keep only its end."""
        if self._outer is not None:  # the capture of the whole call
            self._outer.write_error(text)
            return
        self._errors.append(text)
        del self._errors[:-_MAX_ERROR_TEXTS]

    @property
    def stderr_texts(self) -> Sequence[str]:
        """The last texts that the call has written to stderr."""
        return self._errors

    def write_of_child(self, text: str) -> None:
        """Add text that a child process has written to stdout."""
        self._append(text) if self.keeps_stdout else self.write_error_of_child(text)

    def write_error_of_child(self, text: str) -> None:
        """Write text of a child process to stderr. It may be read in any thread."""
        self.write_error(text)
        token = _active_capture.set(None)  # the text is kept already
        try:
            _write_stderr(text)
        finally:
            _active_capture.reset(token)

    def text(self) -> str:
        """Return the text without the newlines at its end."""
        return "".join(self._parts).rstrip("\n")

    def raw_text(self) -> str:
        """Return the text as it was printed."""
        return "".join(self._parts)

    def __enter__(self) -> Self:
        self._outer = _active_capture.get()
        self._token = _active_capture.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self.children is not None:
            self.children.finish()
        _active_capture.reset(self._token)


MAX_ERROR_CHARS = 4000
"""Maximum number of characters of stderr in an error. The end is kept."""
_MAX_ERROR_TEXTS = 1000


def _write_stderr(text: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr.write(text)


class CallbackOutput(StdoutCapture):
    """The text that callbacks and their command print, within the capture of the whole call.

    Text that the call does not keep is written to stderr at once, in the order of all output.
    """

    __slots__ = ()

    @property
    def is_passed_on(self) -> bool:
        """True if the text has been written to stderr."""
        return self._outer is not None and not self._outer.keeps_stdout

    def write(self, text: str) -> None:
        """Add some text."""
        super().write(text)
        if self.is_passed_on:
            _write_stderr(text)

    def write_of_child(self, text: str) -> None:
        """Add text that a child process has written to stdout."""
        super().write_of_child(text)
        if self.is_passed_on:
            self.write_error_of_child(text)


class DiscardedOutput(StdoutCapture):
    """Discards what a call prints. The output of a sandboxed process is not relayed.

    Args:
        replaces_streams: also replace sys.stdout and sys.stderr. Other threads must not use them.
    """

    __slots__ = ("_replaces_streams", "_streams")

    def __init__(self, *, replaces_streams: bool) -> None:
        super().__init__()
        self._replaces_streams = replaces_streams

    def write(self, text: str) -> None:
        """Discard some text."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._streams = sys.stdout, sys.stderr
        if self._replaces_streams:
            sys.stdout, sys.stderr = _NullStream(), _NullStream()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._replaces_streams:
            sys.stdout, sys.stderr = self._streams
        super().__exit__(*exc_info)


def is_output_discarded() -> bool:
    """True if the output of the running call is discarded."""
    return isinstance(_active_capture.get(), DiscardedOutput)


class TextSink(io.TextIOBase):
    """Base class of streams that replace sys.stdout or sys.stderr and pass text to emit()."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def emit(self, text: str) -> None:
        """Handle written text."""
        raise NotImplementedError

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, s: str, /) -> int:
        """Pass text to emit()."""
        if not isinstance(s, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() takes str, not {type(s).__name__}")  # click tests with b""
        self.emit(s)
        return len(s)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def isatty(self) -> bool:
        """Return False."""
        return False

    @property
    def buffer(self) -> _ByteSink:
        """A binary stream that decodes UTF-8 and writes the text to this stream."""
        return _ByteSink(self)


class _ByteSink(io.RawIOBase):
    def __init__(self, text_sink: TextSink) -> None:
        self._text_sink = text_sink

    def writable(self) -> bool:
        return True

    def write(self, b: Buffer, /) -> int:
        data = bytes(b)
        self._text_sink.write(data.decode("utf-8", "replace"))
        return len(data)


class _NullStream(TextSink):
    def emit(self, text: str) -> None:
        pass


def read_children(*, is_last: bool = False) -> None:
    """Read what the child processes of the active call have written so far.

    A worker process calls it before it sends a text of the call, and at the end of the call.
    """
    capture = _active_capture.get()
    if capture is None or capture.children is None:
        return
    if is_last:
        capture.children.finish()
    else:
        capture.children.read_available()


class StdoutRouter(TextSink):
    """The `sys.stdout` of a server."""

    def emit(self, text: str) -> None:
        """Add text to the active capture, or write it to stderr if there is none."""
        capture = _active_capture.get()
        if capture is not None and capture.keeps_stdout:
            capture.write(text)
        else:
            _write_stderr(text)


def route_stdout() -> Callable[[], None]:
    """Capture the output of each call; return a function that ends this.

    `sys.stdout` is replaced by a StdoutRouter, what calls write to `sys.stderr` is copied, and
    their child processes get pipes. Their questions go to their clients.
    """
    original = sys.stdout
    if isinstance(original, StdoutRouter):
        return lambda: None
    from tooli.pipeline.child_output import route_children
    from tooli.pipeline.question_routing import route_questions

    sys.stdout = StdoutRouter()
    restore_stderr = copy_stderr(_keep_error)
    restore_children = route_children(_active_capture.get)
    restore_questions = route_questions()

    def restore() -> None:
        sys.stdout = original
        restore_stderr()
        restore_children()
        restore_questions()

    return restore


def _keep_error(text: str) -> None:
    capture = _active_capture.get()
    if capture is not None:
        capture.write_error(text)


def copy_stderr(keep: Callable[[str], None]) -> Callable[[], None]:
    """Pass a copy of what is written to `sys.stderr` to a function; return a function to stop.

    `sys.stderr` is not replaced: other code may compare or keep it.
    """
    stream: Any = sys.stderr
    if not hasattr(stream, "__dict__"):
        return lambda: None
    write = stream.write

    def write_and_keep(text: str) -> int:
        count = write(text)
        keep(text)
        return count

    stream.write = write_and_keep

    def stop() -> None:
        if stream.write is write_and_keep:
            del stream.write

    return stop


class _Tee:
    """A stream that passes text on and keeps a copy."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.capture = StdoutCapture()

    def write(self, text: str) -> int:
        self.capture.write(text)
        return self.stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tee_stdout() -> Callable[[], str]:
    """Copy the text that the running call prints.

    Returns a function that ends the copying and returns the text. Output of child processes and of
    C code is not included.
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


def add_printed_text(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """Return an outcome with the printed text as its result, or as a detail of its error.

    If the call has a result already, the text is written to stderr instead.
    """
    if len(printed) > MAX_PRINTED_CHARS:
        printed = printed[:MAX_PRINTED_CHARS]
        call.warnings.append(f"the printed text was cut after {MAX_PRINTED_CHARS} characters")
    if isinstance(outcome, Failed):
        outcome.error.details = {**(outcome.error.details or {}), "printed": printed}
    elif outcome.value is None:
        return Ok(printed)
    elif sys.stderr is not None:
        print(present_text(printed, call), file=sys.stderr)
    return outcome


def _add_error_output(outcome: Outcome, text: str) -> Outcome:
    """Return an outcome; the error of a command that exited contains its text on stderr.

    The last line with a letter or digit is added to the message.
    """
    if not isinstance(outcome, Failed) or type(outcome.error) is not CommandExited or not text:
        return outcome
    error = outcome.error
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    if lines and error.message.startswith(("The command ended with exit code", "Aborted.")):
        error.message = f"{error.message.rstrip('.')}: {cut_text(lines[-1], MAX_QUOTED_CHARS * 3)}"
    error.details = {**(error.details or {}), "stderr": text}
    return outcome


def attach_output(
    outcome: Outcome, printed: str, stderr_texts: Sequence[str], call: Call
) -> Outcome:
    """Add the printed text of a command to its outcome, and its text on stderr to its error."""
    text = "".join(stderr_texts)[-MAX_ERROR_CHARS:].strip("\n")
    return _attach_printed_text(_add_error_output(outcome, text), printed, call)


def _attach_printed_text(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """Add the printed text of a command to its outcome, and truncate it to the size limits.

    The stage `size_limit` does not see printed text, so it is truncated here.
    """
    if not printed:
        return outcome
    outcome = add_printed_text(outcome, printed, call)
    has_limit = call.options.result_options is not None or call.tool.limits.max_tokens
    if not has_limit or not isinstance(outcome, Ok) or not isinstance(outcome.value, str):
        return outcome
    from tooli.pipeline.truncate import truncate_printed_text

    return truncate_printed_text(outcome, call)
