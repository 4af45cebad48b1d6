"""Handle failed writes to stdout."""

from __future__ import annotations

import codecs
import sys

from tooli.cli.process import StdoutClosed, redirect_to_devnull, write_stderr

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

    from tooli.cli import CommandOutput


class StdoutErrorScope:
    """Context manager for code that writes text to stdout. A failed write ends the run."""

    def __init__(self, output: CommandOutput) -> None:
        self.output = output

    def __enter__(self) -> None:
        try:
            if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise OSError(9, "it is closed")
            if getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
                _tolerate_unencodable_text()
        except OSError as failure:
            _end_run(self.output, failure)

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if isinstance(failure, SystemExit) and failure.code == 1:
            failure = BrokenPipeError()  # Rich and Typer exit with 1 if the pipe is closed
        if isinstance(failure, OSError):
            _end_run(self.output, failure)


def abandon_stdout(output: CommandOutput, failure: BaseException) -> None:
    """Write nothing more to stdout; report the failure, unless the reader closed the pipe."""
    try:
        redirect_to_devnull(1)
    except OSError:
        pass
    report_write_error(output, failure)


def _end_run(output: CommandOutput, failure: BaseException) -> NoReturn:
    """End the run because writing to stdout failed."""
    abandon_stdout(output, failure)
    raise StdoutClosed from None


def report_write_error(output: CommandOutput, failure: BaseException) -> None:
    """Report that the answer could not be written, unless the reader closed the pipe."""
    if not isinstance(failure, BrokenPipeError):
        output.exit.set_internal_error()
        reason = getattr(failure, "strerror", None) or failure
        write_stderr(f"The result could not be written to stdout: {reason}")


def _tolerate_unencodable_text() -> None:
    """Let stdout accept any text.

    Undecodable bytes of file names are written unchanged. Other unencodable text is escaped.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        codecs.register_error("tooli", _encode_unencodable)
        reconfigure(errors="tooli")


def _encode_unencodable(failure: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(failure, UnicodeEncodeError):
        raise failure
    text = failure.object[failure.start : failure.end]
    try:
        return text.encode("ascii", "surrogateescape"), failure.end
    except UnicodeEncodeError:
        return text.encode("ascii", "backslashreplace"), failure.end


def is_stdout_closed() -> bool:
    """True if the reader of stdout has closed the pipe.

    False means that a BrokenPipeError was raised for another connection.
    """
    try:
        from select import POLLERR, poll

        poller = poll()
        poller.register(1, 0)
        return any(event & POLLERR for _, event in poller.poll(0))
    except (ImportError, OSError):
        return True
