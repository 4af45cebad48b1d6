"""The process that a command has to itself, from inside: it runs the function and tells of it.

    function ── value, items, warnings, what it prints, questions ──▶ frames ──▶ the caller
    function ◀── answers, "the next item" ◀──────────────────────────────────┘

It ends by itself once the function has: with what was printed written out, with the threads that
the function started, and with the `atexit` of its own.
"""

from __future__ import annotations

import io
import os
import sys
from stat import S_ISSOCK

from tooli.call.peer import Peer
from tooli.enforce.forking import write_out
from tooli.enforce.frames import Sender, expect_distrust, loads, pack, pack_error
from tooli.enforce.processes import INT, TERM, die_with_parent, signals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, NoReturn

    from tooli.call.model import Call, Runner
    from tooli.call.peer import Question

    Texts, Notes = list[str], dict[str, Any]
else:
    Texts, Notes = list, dict

SERVERS = ("http", "mcp")
"""Doors of a process that others talk to: its connections are not the command's."""


class Stopped(KeyboardInterrupt):
    """The command was told to stop; it may clean up, but it has no time for more."""


def _stop(*_: object) -> None:
    raise Stopped


class Offspring:
    """One call in the process that was made for it."""

    def __init__(
        self, call: Call, inner: Runner | None, data: int, answers: int, flag: Any
    ) -> None:
        self.call = call
        self.flag = flag  # a byte that both processes see: whether the client has left
        self.inner = inner
        self.answers = answers
        self.interrupt: Any = None  # what answers Ctrl-C here, where the caller has put it off
        self.sender = Sender(data)
        self.send = self.sender.send

    def live(self, guardian: int, mask: Any) -> NoReturn:
        """Run the function, and end; never returns."""
        try:
            self._settle_in(guardian, mask)
            self._work()
        except BaseException as exc:
            self._fail(exc)
        finally:
            os._exit(0)

    def _settle_in(self, guardian: int, mask: Any) -> None:
        die_with_parent()
        if os.getppid() != guardian:
            os._exit(0)
        if self.apart:
            os.setsid()
        signals.set_wakeup_fd(-1)  # signals are ours alone now, not our parent's event loop's
        signals.signal(TERM, _stop)
        if self.interrupt is not None:
            signals.signal(INT, self.interrupt)
        if self.call.caller.surface in SERVERS:
            signals.signal(INT, signals.default_int_handler)
            leave_connections()
        _forget_endings()
        for name in ("stdout", "stderr"):
            self._lead(name)
        signals.pthread_sigmask(signals.SIG_SETMASK, mask)

    @property
    def apart(self) -> bool:
        """Whether it is a session of its own: a terminal is only for whoever was started there."""
        return self.call.caller.surface in SERVERS or not sys.platform.startswith("linux")

    def _lead(self, name: str) -> None:
        """Let what is written be there when the process is killed; or be sent, if no file it is."""
        stream = getattr(sys, name)
        try:
            if stream is not None and stream.fileno() in (1, 2):
                stream.reconfigure(line_buffering=True)
                return
        except (OSError, ValueError, AttributeError):
            pass
        if stream is not None:
            setattr(sys, name, Sent(name, self.send))

    # -------------------------------------------------------------- the call

    def _work(self) -> None:
        from tooli.call.pipeline import invoke, is_stream

        if self.inner is not None and self.inner.alone:
            expect_distrust()
            self.inner.keeps = (self.sender.descriptor, self.answers)
        call = self.call = self._heard()
        try:
            value = invoke(call.replace(runner=self.inner))
            if is_stream(value):
                self._give(value)
            else:
                self.send("value", pack(value, call.warnings.append))
                del value
        except Stopped:
            raise
        except BaseException as exc:
            self._fail(exc)
        if call.meta:
            self.send("meta", pack(dict(call.meta), call.warnings.append))
        self._end()

    def _heard(self) -> Call:
        """The call, with what is said on its way told to whoever waits for it."""
        call = self.call
        told = Told(call.warnings, self.send)
        peer = None if call.peer is None else FarPeer(call.peer, self.flag, self.send, self._answer)
        meta = None if call.meta is None else ToldMeta(call.meta, self.send)
        contexts: Any = sys.modules.get("tooli.call.context")
        for value in call.arguments.values():
            if contexts is not None and isinstance(value, contexts.Context):
                value._call = value._call.replace(warnings=told, peer=peer, meta=meta)
        return call.replace(warnings=told, peer=peer, meta=meta)

    def _give(self, items: Iterator[Any]) -> None:
        """Each item when it is asked for, so that the function is never ahead of its reader."""
        self.send("stream")
        wanted = self._next()
        try:
            while wanted:
                try:
                    item = next(items)
                except StopIteration:
                    break
                self.send("item", pack(item, self.call.warnings.append))
                del item
                wanted = self._next()
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        self.send("done")

    def _next(self) -> bool:
        return os.read(self.answers, 1) == b"n"

    def _answer(self) -> Any:
        """What the caller says to a question."""
        head = self._read(8)
        return loads(self._read(int.from_bytes(head, "big")))

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = os.read(self.answers, size - len(data))
            if not piece:
                raise Stopped
            data += piece
        return data

    def _fail(self, exc: BaseException) -> None:
        try:
            self.send("error", pack_error(exc))
        except BaseException:
            os._exit(70)

    # -------------------------------------------------------------- the end

    def _end(self) -> None:
        """What the end of an interpreter would do for the function."""
        if self.call.tool.handles:
            from tooli.inputs.output import outputs_in

            for output in outputs_in(self.call.arguments):
                output.close()
        signals.signal(TERM, signals.SIG_DFL)  # there is nothing left to clean up
        threading: Any = sys.modules.get("threading")
        import atexit

        try:
            if threading is not None:
                threading._shutdown()
            atexit._run_exitfuncs()
        except Exception:  # it has said so itself
            pass
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        if self.call.caller.surface == "cli":
            write_out()


def _forget_endings() -> None:
    """What is to be done in the end is for the process that it was registered in; so are pools."""
    import atexit

    atexit._clear()
    for module, name in (("thread", "_threads_queues"), ("process", "_threads_wakeups")):
        pools: Any = sys.modules.get(f"concurrent.futures.{module}")
        getattr(pools, name, {}).clear()


def leave_connections() -> None:
    """Let go of a server's sockets: a client must not wait for a command that is not its own."""
    found: dict[int, tuple[bool, Any]] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return
    for number in numbers:
        try:
            if S_ISSOCK(os.fstat(number).st_mode):
                found[number] = _look_at(os.dup(number))
        except (OSError, ValueError):
            continue
    doors = {door for listens, door in found.values() if listens}
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number, (_, door) in found.items():
        if door in doors:
            os.dup2(nowhere, number)
    os.close(nowhere)


def _look_at(copy: int) -> tuple[bool, Any]:
    """Whether a socket listens, and where it is; the descriptor is closed."""
    import socket

    try:
        one = socket.socket(fileno=copy)
    except BaseException:
        os.close(copy)
        raise
    with one:
        listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        address: Any = one.getsockname()
        named = one.family in (socket.AF_INET, socket.AF_INET6)
        return bool(listens), address[1] if named else address


# ------------------------------------------------------------------ what is said on the way


class Told(Texts):
    """Warnings that are told to the caller as they are made."""

    def __init__(self, before: list[str], send: Callable[[str, Any], None]) -> None:
        super().__init__(before)
        self._send = send

    def append(self, text: str, /) -> None:
        """Tell it, too."""
        super().append(text)
        self._send("warning", str(text))

    def extend(self, texts: Any, /) -> None:
        """Tell each of them."""
        for text in texts:
            self.append(text)


class ToldMeta(Notes):
    """The same of what is said about a call."""

    def __init__(self, before: Mapping[str, Any], send: Callable[[str, Any], None]) -> None:
        super().__init__(before)
        self._send = send

    def __setitem__(self, name: str, value: Any, /) -> None:
        super().__setitem__(name, value)
        self._send("meta", pack({name: value}, lambda _: None))


class FarPeer(Peer):
    """The client of a call, from the process of its command."""

    def __init__(self, near: Peer, flag: Any, send: Any, answer: Callable[[], Any]) -> None:
        from _thread import allocate_lock

        self._near = near
        self._flag = flag
        self._asking = allocate_lock()
        self._send = send
        self._answer = answer

    @property
    def cancelled(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the client has given the call up."""
        return self._flag[0] != 0

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come."""
        self._send("progress", (done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on."""
        self._send("log", (level, pack(data, lambda _: None)))

    def can(self, method: str) -> bool:
        """Whether the client can answer such a question."""
        return self._near.can(method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers: it is the caller who asks."""
        with self._asking:
            self._send("ask", pack(dict(questions), lambda _: None))
            said = self._answer()
        if isinstance(said, BaseException):
            raise said
        return said

    def let_go(self) -> None:
        """End the client's connection, where it can come back for the answer later."""
        self._send("let go")


class Sent(io.TextIOBase):
    """stdout or stderr, where that is no file but an object of the caller's."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, name: str, send: Callable[[str, Any], None]) -> None:
        self._name = name
        self._send = send

    def writable(self) -> bool:
        """It is there to be written to."""
        return True

    def write(self, s: str, /) -> int:
        """Send a text to be written where the caller has it."""
        if not isinstance(s, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() takes str, not {type(s).__name__}")
        self._send("text", (self._name, s))
        return len(s)

    @property
    def buffer(self) -> _Bytes:
        """The same way for bytes."""
        return _Bytes(self)


class _Bytes(io.RawIOBase):
    def __init__(self, text: Sent) -> None:
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, b: Any, /) -> int:
        self._text.write(bytes(b).decode("utf-8", "replace"))
        return len(b)
