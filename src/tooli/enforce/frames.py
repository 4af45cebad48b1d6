"""Frames: what a child process and its parent tell each other, whole or not at all.

    length ▸ (kind, what), marshalled or pickled

Values and errors are packed first, so that one which cannot cross arrives as something that can.
"""

from __future__ import annotations

import marshal
import os

from tooli.contract.jsonable import is_object
from tooli.enforce.processes import INT, TERM, signals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_HEAD = 8
_BY_NAME = b"\x93"  # in a pickle: something that is looked up by its name when it is read
_PLAIN = frozenset((str, int, float, bool, type(None), bytes))
_SMALL = 200
"""Parts of a value that is looked at closely: a larger one is pickled as fast."""


def dumps(value: Any) -> bytes:
    """Any value in bytes; what is plain and small without the price of importing `pickle`."""
    if _checks[-1] is loads and _is_plain(value, [_SMALL]):
        return b"m" + marshal.dumps(value)
    return b"p" + _pickle().dumps(value, 5)


def loads(data: bytes) -> Any:
    """The value again."""
    return marshal.loads(data[1:]) if data[:1] == b"m" else _pickle().loads(data[1:])


def _is_plain(value: Any, room: list[int]) -> bool:
    """Whether a value is made of JSON's own types alone, and not of too many."""
    if type(value) in _PLAIN:
        return True
    if type(value) not in (list, tuple, dict) or len(value) >= room[0]:
        return False
    room[0] -= len(value) + 1
    if is_object(value):
        return all([type(k) in _PLAIN and _is_plain(v, room) for k, v in value.items()])
    return all([_is_plain(one, room) for one in value])


def _pickle() -> Any:
    try:
        import _pickle as found  # pyright: ignore  the C half: `pickle` itself imports `re`
    except ImportError:
        import pickle as found
    return found  # pyright: ignore[reportUnknownVariableType]


class Sender:
    """The end of a pipe that frames are written to; from several threads, one at a time."""

    def __init__(self, descriptor: int) -> None:
        from _thread import allocate_lock

        self.descriptor = descriptor
        self._lock = allocate_lock()

    def send(self, kind: str, what: Any = None) -> None:
        """Write one frame; a signal waits until it is out."""
        data: bytes = dumps((kind, what))
        view = memoryview(len(data).to_bytes(_HEAD, "big") + data)
        before = signals.pthread_sigmask(signals.SIG_BLOCK, (INT, TERM))
        try:
            with self._lock:
                while view:
                    view = view[os.write(self.descriptor, view) :]
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, before)


class Receiver:
    """The other end; it never waits. What comes from behind walls is read warily."""

    def __init__(self, descriptor: int, wary: bool = False) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._loads = _reader(wary)
        self._data = bytearray()

    def frames(self) -> Iterator[tuple[str, Any]]:
        """The frames that are there by now."""
        while True:
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not piece:
                return
            self._data += piece
            yield from self._whole()

    def _whole(self) -> Iterator[tuple[str, Any]]:
        data = self._data
        while len(data) >= _HEAD:
            end = _HEAD + int.from_bytes(data[:_HEAD], "big")
            if len(data) < end:
                return
            frame = bytes(data[_HEAD:end])
            del data[:end]
            yield self._loads(frame)


def preload() -> None:
    """Import whatever may be needed later: behind walls there may be nothing to import from."""
    for name in ("atexit", "traceback", "tooli.call.failure"):
        __import__(name)
    _pickle()


# ------------------------------------------------------------------ values


def pack(value: Any, warn: Callable[[str], None]) -> bytes:
    """A value as it can cross to the parent; what cannot be pickled goes as JSON has it."""
    try:
        data: bytes = dumps(value)
        if data[:1] == b"p" and _BY_NAME in data:
            _checks[-1](data)  # what is looked up by name may not be found, or not be made
    except Exception:
        from tooli.contract.jsonable import jsonable

        warnings: list[str] = []
        data = dumps(jsonable(value, warnings))
        for said in warnings:
            warn(said)
        if _checks[-1] is loads:
            warn(f"a {type(value).__name__} cannot leave the process of the command: given as JSON")
    return data


def unpack(data: bytes, wary: bool = False) -> Any:
    """The value that was packed."""
    return _reader(wary)(data)


_checks: list[Callable[[bytes], Any]] = [loads]
"""How the other side reads what is packed here, last."""


def _reader(wary: bool) -> Callable[[bytes], Any]:
    if not wary:
        return loads
    from tooli.enforce.distrust import loads as read_warily

    return read_warily


def expect_distrust() -> None:
    """From now on: whoever reads what this process packs lets in nothing but values."""
    _checks.append(_reader(True))


# ------------------------------------------------------------------ errors


class Elsewhere(Exception):  # noqa: N818
    """Where an exception came from, in the words of the process that it was raised in."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pack_error(exc: BaseException) -> tuple[str, Any, str | None]:
    """An exception as it can cross: itself, else the fields of what it stands for."""
    from tooli.call.failure import as_tool_error
    from tooli.errors import ToolError

    if isinstance(exc.__cause__, KeyboardInterrupt) and type(exc).__name__ == "Abort":
        exc = exc.__cause__  # Click's word for it
    trace = None
    if isinstance(exc, Exception) and not isinstance(exc, ToolError):
        from traceback import format_exception

        trace = "".join(format_exception(type(exc), exc, exc.__traceback__))
    try:
        if _checks[-1] is not loads:
            return _pack_plainly(exc, trace)
        data = dumps(exc)
        if _same(loads(data), exc):
            return "itself", data, trace
    except Exception:
        pass
    error = exc if isinstance(exc, ToolError) else as_tool_error(exc)
    return type(exc).__name__, _fields(error), trace


def _pack_plainly(exc: BaseException, trace: str | None) -> tuple[str, Any, str | None]:
    """The same for somebody who takes nothing but values: an exit, or the fields of an error."""
    from tooli.call.failure import as_tool_error, exit_request
    from tooli.errors import ToolError

    code = exit_request(exc)
    if code is not None:
        said = getattr(exc, "code", code)
        return "exit", said if isinstance(said, str) else code, None
    error = exc if isinstance(exc, ToolError) else as_tool_error(exc)
    return type(exc).__name__, _fields(error), trace


def _same(again: BaseException, exc: BaseException) -> bool:
    return type(again) is type(exc) and str(again) == str(exc)


def _fields(error: Any) -> dict[str, Any]:
    from tooli.contract.jsonable import jsonable

    fields = error.to_dict()
    fields["details"] = jsonable(error.details, []) if error.details else None
    fields["exit_code"] = error.exit_code
    return fields


def unpack_error(packed: tuple[str, Any, str | None], wary: bool = False) -> BaseException:
    """The exception that was packed, to be raised here."""
    name, data, trace = packed
    if name == "exit":
        return SystemExit(data)
    if name == "itself" and not wary:
        exc: BaseException = loads(data)
        if trace is not None:
            exc.__cause__ = Elsewhere(trace)
        return exc
    from tooli.errors import Suggestion, class_of

    said = data.get("suggestion")
    error = class_of(data["code"], data["category"])(
        data["message"],
        code=data["code"],
        field=data.get("field"),
        suggestion=Suggestion.from_dict(said) if said else None,
        is_retryable=data["is_retryable"],
        details=data["details"],
        exit_code=data["exit_code"],
    )
    if trace is not None:
        error.__cause__ = type(name, (Exception,), {})(data["message"])
        error.__cause__.__cause__ = Elsewhere(trace)
        error.translated = True
    return error
