"""Frames: what a child process and its parent tell each other, whole or not at all.

    length ▸ (kind, what), marshalled or pickled; from behind walls as data (enforce/distrust.py)

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

    from tooli.errors import ToolRuntimeError

_HEAD = 8
LARGEST = 64 << 20
"""Bytes of one frame from behind walls: a longer one is not read."""
_BY_NAME = b"\x93"  # in a pickle: something that is looked up by its name when it is read
_PLAIN = frozenset((str, int, float, bool, type(None), bytes))
_SMALL = 200
"""Parts of a value that is looked at closely: a larger one is pickled as fast."""


def dumps(value: Any) -> bytes:
    """Any value in bytes; what is plain and small without the price of importing `pickle`."""
    if _is_plain(value, [_SMALL]):
        return b"m" + marshal.dumps(value)
    return b"p" + _pickle().dumps(value, 5)


def loads(data: bytes) -> Any:
    """The value again, from a process that is trusted."""
    if data[:1] == b"j":  # it stands behind the walls that this one is behind itself
        return read_data(data)
    return marshal.loads(data[1:]) if data[:1] == b"m" else _pickle().loads(data[1:])


def read_data(data: bytes) -> Any:
    """The value again, from behind walls."""
    from tooli.enforce.distrust import loads as read

    return read(data)


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
        data = _frame(kind, what)
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
        self.wary = wary
        self.ended = False  # nobody can say anything more
        self._data = bytearray()

    def frames(self) -> Iterator[tuple[str, Any]]:
        """The frames that are there by now."""
        while not self.ended:
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return
            self.ended = not piece
            self._data += piece
            yield from self._whole()

    def _whole(self) -> Iterator[tuple[str, Any]]:
        data = self._data
        while len(data) >= _HEAD:
            size = int.from_bytes(data[:_HEAD], "big")
            if self.wary and size > LARGEST:
                raise garbled(f"{size} bytes at once, and {LARGEST} are the most")
            end = _HEAD + size
            if len(data) < end:
                return
            frame = bytes(data[_HEAD:end])
            del data[:end]
            found: Any = unpack(frame, self.wary)
            if self.wary and (found.__class__ is not list or len(found) != 2):
                raise garbled("it is no message")
            yield found


def garbled(why: str) -> ToolRuntimeError:
    """The failure of a call whose process says what cannot be understood, or too much of it."""
    from tooli.errors import Suggestion, ToolRuntimeError

    return ToolRuntimeError(
        f"The isolated command was ended: what its process said cannot be taken ({why[:200]}).",
        code="E4051",
        suggestion=Suggestion("abort", "Look into the command: it tampers with its own answer."),
    )


def preload() -> None:
    """Import whatever may be needed later: behind walls there may be nothing to import from."""
    for name in ("atexit", "traceback", "tooli.call.failure", "tooli.enforce.distrust"):
        __import__(name)
    _pickle()


# ------------------------------------------------------------------ values


def pack(value: Any, warn: Callable[[str], None]) -> bytes:
    """A value as it can cross to the parent; what cannot be pickled goes as JSON has it."""
    if _behind_walls[-1]:
        from tooli.enforce import distrust

        return distrust.dumps(value, warn)
    try:
        data = dumps(value)
        if data[:1] == b"p" and _BY_NAME in data:
            loads(data)  # what is looked up by name may not be found, or not be made
    except Exception:
        from tooli.contract.jsonable import jsonable

        warnings: list[str] = []
        data = dumps(jsonable(value, warnings))
        for said in warnings:
            warn(said)
        warn(f"a {type(value).__name__} cannot leave the process of the command: given as JSON")
    return data


def unpack(data: bytes, wary: bool = False) -> Any:
    """The value that was packed."""
    return read_data(data) if wary else loads(data)


_behind_walls = [False]
"""Whether whoever reads what is said here takes nothing but data, last."""


def _frame(kind: str, what: Any) -> bytes:
    if not _behind_walls[-1]:
        return dumps((kind, what))
    from tooli.enforce import distrust

    return distrust.frame(kind, what)


def expect_distrust() -> None:
    """From now on: whoever reads what this process packs takes nothing but data."""
    __import__("tooli.enforce.distrust")  # while there is something to import from
    _behind_walls.append(True)


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
        if _behind_walls[-1]:
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
    from tooli.errors import Suggestion, ToolError, class_of

    said = data.get("suggestion")
    kind = class_of(data["code"], data["category"])
    if wary and kind.__init__ is not ToolError.__init__:  # an app's own: it may do anything
        likely = (class_of("", data["category"]), ToolError)
        kind = next(one for one in likely if one.__init__ is ToolError.__init__)
    error = kind(
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
