"""Messages between a worker process and the calling process.

    frame: length, then (kind, payload), encoded by a Codec

    kind                                  the calling process
    ------------------------------------  -------------------------------------------------
    value, stream, item, done, error      returns or raises it (execution/process_runner.py)
    warning, meta                         puts it into the envelope
    text                                  writes it to sys.stdout or sys.stderr
    progress, log, artifact, ask,          forwards it to the client
      disconnect

Values and errors are packed before they are put into a frame. A trusted process sends marshalled or
pickled data, and a value that cannot be pickled is converted to JSON. A sandboxed process is not
trusted and uses another codec (execution/safe_codec.py).
"""

from __future__ import annotations

import marshal
import os
import sys
from _thread import allocate_lock

from tooli.core.peer import Artifact, Peer
from tooli.errors import (
    Suggestion,
    TimeoutExceeded,
    ToolError,
    ToolRuntimeError,
    error_class_for,
    restore_error,
)
from tooli.execution.processes import SIGINT, SIGTERM, signals
from tooli.pipeline.failure import as_tool_error
from tooli.text.jsonable import is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from tooli.core.call import Call
    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject

    # Either "pickled" and the pickled exception, or the name of its class and the fields of its
    # ToolError; then the traceback.
    PackedError: TypeAlias = tuple[str, Any, str | None]

_HEADER_BYTES = 8
_STACK_GLOBAL = b"\x93"  # opcode of a pickle that imports a class or function
_PLAIN_TYPES = frozenset((str, int, float, bool, type(None), bytes))
_MAX_MARSHAL_PARTS = 200
"""Maximum number of parts of a value that is marshalled. Larger values are pickled."""
RESULT_KINDS = ("value", "stream", "item", "done", "error")
"""Kinds of messages with results. They are queued until the caller asks for them."""


def dumps(value: Any) -> bytes:
    """Encode a value. Small plain values are marshalled, because `pickle` is slow to import."""
    if _is_plain(value, [_MAX_MARSHAL_PARTS]):
        return b"m" + marshal.dumps(value)
    return b"p" + _import_pickle().dumps(value, 5)


def loads(data: bytes) -> Any:
    """Decode a value of a trusted process."""
    return marshal.loads(data[1:]) if data[:1] == b"m" else _import_pickle().loads(data[1:])


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
        import _pickle as found  # pyright: ignore  the C part: `pickle` itself imports `re`
    except ImportError:
        import pickle as found
    return found  # pyright: ignore[reportUnknownVariableType]


def preload_modules() -> None:
    """Import modules that are needed later, when the sandbox may not be able to read them."""
    __import__("traceback")
    _import_pickle()


def invalid_message_error(reason: str) -> ToolRuntimeError:
    """Return the error for a call whose process sent an invalid message."""
    return ToolRuntimeError(
        f"The isolated command was stopped: it sent an invalid message ({reason[:200]}).",
        code="E4051",
        suggestion=Suggestion(
            "abort", "Inspect the command: its code tampers with its own result."
        ),
    )


# ------------------------------------------------------------------ codec


class RemoteTraceback(Exception):  # noqa: N818
    """The traceback of an exception that was raised in another process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Codec:
    """Encodes and decodes the messages of a trusted process."""

    max_frame_bytes: int | None = None  # larger frames are refused

    def encode_frame(self, kind: str, payload: object) -> bytes:
        """Encode a message. Values in its payload are packed already."""
        return dumps((kind, payload))

    def decode_frame(self, data: bytes) -> tuple[str, Any]:
        """Return the kind and the payload of a message."""
        return loads(data)

    def pack(self, value: object, warn: Callable[[str], None]) -> bytes:
        """Pack a value for the calling process; convert it to JSON if it cannot be pickled."""
        try:
            data = dumps(value)
            if data[:1] == b"p" and _STACK_GLOBAL in data:
                loads(data)  # fails if a class cannot be imported by its name or rebuilt
        except Exception:
            warnings: list[str] = []
            data = dumps(to_jsonable(value, warnings))
            for warning in warnings:
                warn(warning)
            name = type(value).__name__
            warn(f"a {name} cannot be sent between processes; it was converted to JSON")
        return data

    def unpack(self, data: bytes) -> Any:
        """Return the value that pack() encoded."""
        return loads(data)

    def pack_error(self, exc: BaseException) -> PackedError:
        """Pack an exception. If it cannot be pickled, pack the fields of its ToolError."""
        exc, trace = prepare_exception(exc)
        try:
            data = dumps(exc)
            restored = loads(data)
            if type(restored) is type(exc) and str(restored) == str(exc):
                return "pickled", data, trace
        except Exception:
            pass
        return pack_error_fields(exc, trace)

    def unpack_error(self, packed: PackedError) -> BaseException:
        """Return the exception that pack_error() encoded, to be raised in this process."""
        name, data, trace = packed
        if name != "pickled":
            error_class = error_class_for(data["code"], data["category"])
            return build_error(error_class, name, data, trace)
        exc: BaseException = loads(data)
        if trace is not None:
            exc.__cause__ = RemoteTraceback(trace)
        return exc


def prepare_exception(exc: BaseException) -> tuple[BaseException, str | None]:
    """Return the exception to pack, and its traceback as text if it is an unexpected error."""
    if isinstance(exc.__cause__, KeyboardInterrupt) and type(exc).__name__ == "Abort":
        exc = exc.__cause__  # Click turns KeyboardInterrupt into Abort
    if not isinstance(exc, Exception) or isinstance(exc, ToolError):
        return exc, None
    from traceback import format_exception

    return exc, "".join(format_exception(type(exc), exc, exc.__traceback__))


def pack_error_fields(exc: BaseException, trace: str | None) -> PackedError:
    """Pack an exception without pickle, as the fields of its ToolError."""
    error = as_tool_error(exc)
    details = to_jsonable(error.details, []) if error.details else None
    fields = {
        **error.to_dict(),
        "details": details,
        "exit_code": error.exit_code,
        "http_status": error.http_status,
        "warnings": [*error.warnings],
    }
    return type(exc).__name__, fields, trace


def build_error(
    error_class: type[ToolError], name: str, fields: JsonObject, trace: str | None
) -> ToolError:
    """Return an error with these fields.

    If there is a traceback, the cause of the error is an exception whose class is called `name`.
    """
    error = restore_error(error_class, fields, fields["exit_code"])
    if trace is not None:
        error.__cause__ = type(name, (Exception,), {})(fields["message"])
        error.__cause__.__cause__ = RemoteTraceback(trace)
        error.is_translated = True
    return error


# ------------------------------------------------------------------ pipes


class FrameSender:
    """Writes frames to a pipe; several threads may use it."""

    def __init__(self, fd: int, codec: Codec) -> None:
        self.fd = fd
        self._codec = codec
        self._lock = allocate_lock()

    def send(self, kind: str, payload: object = None) -> None:
        """Write one frame. SIGINT and SIGTERM are blocked until the whole frame is written."""
        data = self._codec.encode_frame(kind, payload)
        view = memoryview(len(data).to_bytes(_HEADER_BYTES, "big") + data)
        previous_mask = signals.pthread_sigmask(signals.SIG_BLOCK, (SIGINT, SIGTERM))
        try:
            with self._lock:
                while view:
                    view = view[os.write(self.fd, view) :]
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, previous_mask)


class FrameReceiver:
    """Reads frames from a pipe without blocking."""

    def __init__(self, fd: int, codec: Codec) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.is_closed = False  # the other end is closed
        self.frame_bytes = 0  # size of the frame that was yielded last
        self._codec = codec
        self._buffer = bytearray()

    def read_frames(self) -> Iterator[tuple[str, Any]]:
        """Yield the frames that have arrived."""
        while not self.is_closed:
            try:
                chunk = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            self.is_closed = not chunk
            self._buffer += chunk
            yield from self._complete_frames()

    def _complete_frames(self) -> Iterator[tuple[str, Any]]:
        data, limit = self._buffer, self._codec.max_frame_bytes
        while len(data) >= _HEADER_BYTES:
            size = int.from_bytes(data[:_HEADER_BYTES], "big")
            if limit is not None and size > limit:
                raise invalid_message_error(f"{size} bytes at once, more than {limit}")
            end = _HEADER_BYTES + size
            if len(data) < end:
                return
            frame = bytes(data[_HEADER_BYTES:end])
            del data[:end]
            self.frame_bytes = size
            yield self._codec.decode_frame(frame)


# ------------------------------------------------------------------ messages during the call


class ChildMessages:
    """Handles the messages that a trusted process sends while its function runs."""

    def __init__(self, call: Call, codec: Codec, send_answer: Callable[[bytes], None]) -> None:
        self.call = call
        self.peer = Peer() if call.peer is None else call.peer
        self.codec = codec
        self.send_answer = send_answer  # sends an answer of the client to the worker

    def handle(self, kind: str, payload: Any) -> bool:
        """Handle a message and return True; return False if the message is a result.

        The caller of this method queues results until they are requested.
        """
        if kind in RESULT_KINDS:
            return False
        MESSAGE_HANDLERS[kind](self, self.decode(kind, payload))
        return True

    def decode(self, kind: str, payload: Any) -> Any:
        """Return the payload with its values unpacked."""
        if kind in ("meta", "ask"):
            return self.codec.unpack(payload)
        return (payload[0], self.codec.unpack(payload[1])) if kind == "log" else payload

    def update_meta(self, meta: JsonObject) -> None:
        """Add metadata to the call."""
        if self.call.meta is not None:
            self.call.meta.update(meta)

    def write(self, message: tuple[str, str]) -> None:
        """Write a text to sys.stdout or sys.stderr, if the process has this stream."""
        name, text = message
        stream = getattr(sys, name) if name in ("stdout", "stderr") else None
        if stream is not None:
            stream.write(text)

    def ask(self, questions: dict[str, Question]) -> None:
        """Ask the client and send its answers, or the exception, to the worker.

        InputRequired is a BaseException and is not caught here. It ends the call and its process.
        A question that is open at the deadline gets no answer: the supervisor stops the worker at
        the same deadline, so that the call always ends with the error of its timeout.
        """
        if self.call.peer is None:
            return
        try:
            answer: object = self.peer.ask(questions)
        except TimeoutExceeded:
            return
        except Exception as exc:
            answer = exc
        data = dumps(answer)
        self.send_answer(len(data).to_bytes(_HEADER_BYTES, "big") + data)


MESSAGE_HANDLERS: dict[str, Callable[[ChildMessages, Any], None]] = {
    "warning": lambda messages, text: messages.call.warnings.append(text),
    "meta": ChildMessages.update_meta,
    "text": ChildMessages.write,
    "progress": lambda messages, update: messages.peer.progress(*update),
    "log": lambda messages, entry: messages.peer.log(*entry),
    "artifact": lambda messages, fields: messages.peer.artifact(Artifact(*fields)),
    "ask": ChildMessages.ask,
    "disconnect": lambda messages, _: messages.peer.disconnect_client(),
}
"""The function that handles each kind of message, except results."""
