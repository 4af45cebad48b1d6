"""Messages between a worker process and the calling process, in frames.

    frame: length, then (kind, payload), marshalled or pickled

A sandboxed process sends JSON instead (execution/safe_codec.py). Values and errors are packed
before they are put into a frame. A value that cannot be pickled is converted to JSON.
"""

from __future__ import annotations

import marshal
import os

from tooli.errors import Suggestion, ToolError, error_class_for
from tooli.execution.process_tree import SIGINT, SIGTERM, signals
from tooli.execution.timeouts import MAX_FRAME_BYTES, invalid_message_error
from tooli.pipeline.failure import as_tool_error, requested_exit_code
from tooli.text.jsonable import is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


_HEADER_BYTES = 8
_STACK_GLOBAL = b"\x93"  # opcode of a pickle that imports a class or function
_PLAIN_TYPES = frozenset((str, int, float, bool, type(None), bytes))
_MAX_MARSHAL_PARTS = 200
"""Maximum number of parts of a value that is marshalled. Larger values are pickled."""


def dumps(value: Any) -> bytes:
    """Encode any value. Small plain values are marshalled, because `pickle` is slow to import."""
    if _is_plain(value, [_MAX_MARSHAL_PARTS]):
        return b"m" + marshal.dumps(value)
    return b"p" + _import_pickle().dumps(value, 5)


def loads(data: bytes) -> Any:
    """Decode a value of a trusted process."""
    if data[:1] == b"j":  # sent by a nested sandboxed process
        return loads_untrusted(data)
    return marshal.loads(data[1:]) if data[:1] == b"m" else _import_pickle().loads(data[1:])


def loads_untrusted(data: bytes) -> Any:
    """Decode a value of an untrusted process."""
    from tooli.execution.safe_codec import loads as read

    return read(data)


def _is_plain(value: Any, budget: list[int]) -> bool:
    """True if a value consists of a few parts of built-in plain types."""
    if type(value) in _PLAIN_TYPES:
        return True
    if type(value) not in (list, tuple, dict) or len(value) >= budget[0]:
        return False
    budget[0] -= len(value) + 1
    if is_object(value):
        return all([type(k) in _PLAIN_TYPES and _is_plain(v, budget) for k, v in value.items()])
    return all([_is_plain(item, budget) for item in value])


def _import_pickle() -> Any:
    try:
        import _pickle as found  # pyright: ignore  the C half: `pickle` itself imports `re`
    except ImportError:
        import pickle as found
    return found  # pyright: ignore[reportUnknownVariableType]


class FrameSender:
    """Writes frames to a pipe; several threads may use it."""

    def __init__(self, descriptor: int) -> None:
        from _thread import allocate_lock

        self.descriptor = descriptor
        self._lock = allocate_lock()

    def send(self, kind: str, payload: Any = None) -> None:
        """Write one frame. Signals are blocked meanwhile, so a frame is never cut off."""
        data = _encode_frame(kind, payload)
        view = memoryview(len(data).to_bytes(_HEADER_BYTES, "big") + data)
        previous_mask = signals.pthread_sigmask(signals.SIG_BLOCK, (SIGINT, SIGTERM))
        try:
            with self._lock:
                while view:
                    view = view[os.write(self.descriptor, view) :]
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, previous_mask)


class FrameReceiver:
    """Reads frames from a pipe without blocking."""

    def __init__(self, descriptor: int, is_untrusted: bool = False) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.is_untrusted = is_untrusted
        self.is_closed = False  # the other end is closed
        self._buffer = bytearray()

    def read_frames(self) -> Iterator[tuple[str, Any]]:
        """Yield the frames that have arrived."""
        while not self.is_closed:
            try:
                chunk = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return
            self.is_closed = not chunk
            self._buffer += chunk
            yield from self._complete_frames()

    def _complete_frames(self) -> Iterator[tuple[str, Any]]:
        data = self._buffer
        while len(data) >= _HEADER_BYTES:
            size = int.from_bytes(data[:_HEADER_BYTES], "big")
            if self.is_untrusted and size > MAX_FRAME_BYTES:
                raise invalid_message_error(f"{size} bytes at once, more than {MAX_FRAME_BYTES}")
            end = _HEADER_BYTES + size
            if len(data) < end:
                return
            frame = bytes(data[_HEADER_BYTES:end])
            del data[:end]
            message: Any = unpack(frame, self.is_untrusted)
            if self.is_untrusted and (message.__class__ is not list or len(message) != 2):
                raise invalid_message_error("not a message")
            yield message


def preload_modules() -> None:
    """Import modules that are needed later, when the sandbox may not be able to read them."""
    for name in ("atexit", "traceback", "tooli.pipeline.failure", "tooli.execution.safe_codec"):
        __import__(name)
    _import_pickle()


# ------------------------------------------------------------------ values


def pack(value: Any, warn: Callable[[str], None]) -> bytes:
    """Pack a value for the calling process; convert it to JSON if it cannot be pickled."""
    if _safe_codec_enabled[-1]:
        from tooli.execution import safe_codec

        return safe_codec.dumps(value, warn)
    try:
        data = dumps(value)
        if data[:1] == b"p" and _STACK_GLOBAL in data:
            loads(data)  # fails if a class cannot be imported by its name or rebuilt
    except Exception:
        warnings: list[str] = []
        data = dumps(to_jsonable(value, warnings))
        for warning in warnings:
            warn(warning)
        warn(f"a {type(value).__name__} cannot be sent between processes; it was converted to JSON")
    return data


def unpack(data: bytes, is_untrusted: bool = False) -> Any:
    """Return the value that pack() encoded."""
    return loads_untrusted(data) if is_untrusted else loads(data)


_safe_codec_enabled = [False]
"""A stack of flags. The last one is True if values are packed with the safe codec."""


def _encode_frame(kind: str, payload: Any) -> bytes:
    if not _safe_codec_enabled[-1]:
        return dumps((kind, payload))
    from tooli.execution import safe_codec

    return safe_codec.encode_frame(kind, payload)


def enable_safe_codec() -> None:
    """Pack all values of this process with the safe codec from now on."""
    __import__("tooli.execution.safe_codec")  # now: the sandbox may not be able to read it
    _safe_codec_enabled.append(True)


# ------------------------------------------------------------------ errors


class RemoteTraceback(Exception):  # noqa: N818
    """The traceback of an exception that was raised in another process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pack_error(exc: BaseException) -> tuple[str, Any, str | None]:
    """Pack an exception. If it cannot be pickled, pack the fields of its ToolError."""
    if isinstance(exc.__cause__, KeyboardInterrupt) and type(exc).__name__ == "Abort":
        exc = exc.__cause__  # Click turns KeyboardInterrupt into Abort
    trace = None
    if isinstance(exc, Exception) and not isinstance(exc, ToolError):
        from traceback import format_exception

        trace = "".join(format_exception(type(exc), exc, exc.__traceback__))
    try:
        if _safe_codec_enabled[-1]:
            return _pack_error_fields(exc, trace)
        data = dumps(exc)
        if _is_same_error(loads(data), exc):
            return "itself", data, trace
    except Exception:
        pass
    error = exc if isinstance(exc, ToolError) else as_tool_error(exc)
    return type(exc).__name__, _error_fields(error), trace


def _pack_error_fields(exc: BaseException, trace: str | None) -> tuple[str, Any, str | None]:
    """Pack an exception without pickle, as an exit code or as the fields of its ToolError."""
    code = requested_exit_code(exc)
    if code is not None:
        exit_value = getattr(exc, "code", code)
        return "exit", exit_value if isinstance(exit_value, str) else code, None
    error = exc if isinstance(exc, ToolError) else as_tool_error(exc)
    return type(exc).__name__, _error_fields(error), trace


def _is_same_error(restored: BaseException, exc: BaseException) -> bool:
    return type(restored) is type(exc) and str(restored) == str(exc)


def _error_fields(error: Any) -> dict[str, Any]:
    fields = error.to_dict()
    fields["details"] = to_jsonable(error.details, []) if error.details else None
    fields["exit_code"] = error.exit_code
    return fields


def unpack_error(packed: tuple[str, Any, str | None], is_untrusted: bool = False) -> BaseException:
    """Return the exception that pack_error() encoded, to be raised in this process."""
    name, data, trace = packed
    if name == "exit":
        return SystemExit(data)
    if name == "itself" and not is_untrusted:
        exc: BaseException = loads(data)
        if trace is not None:
            exc.__cause__ = RemoteTraceback(trace)
        return exc
    suggestion = data.get("suggestion")
    error_class = error_class_for(data["code"], data["category"])
    # An error class of the app could run any code in its __init__.
    if is_untrusted and error_class.__init__ is not ToolError.__init__:
        candidates = (error_class_for("", data["category"]), ToolError)
        error_class = next(item for item in candidates if item.__init__ is ToolError.__init__)
    error = error_class(
        data["message"],
        code=data["code"],
        field=data.get("field"),
        suggestion=Suggestion.from_dict(suggestion) if suggestion else None,
        is_retryable=data["is_retryable"],
        details=data["details"],
        exit_code=data["exit_code"],
    )
    if trace is not None:
        error.__cause__ = type(name, (Exception,), {})(data["message"])
        error.__cause__.__cause__ = RemoteTraceback(trace)
        error.is_translated = True
    return error
